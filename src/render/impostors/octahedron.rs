//! The grid of directions from which an impostor is photographed. Twin:
//! `shaders/draw/impostor_views.wesl`, which draws it.
//!
//! Octahedral maps of directions are from Engelhardt and Dachsbacher, "Octahedron environment maps"
//! (2008); impostors on such grids from Brucks, "Octahedral impostors" (2018).

use bevy::{math::Mat3, prelude::*};

/// From where an impostor is photographed.
#[derive(Reflect, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[reflect(Default, Clone, Debug, PartialEq, Hash)]
pub enum ImpostorSides {
    /// From everywhere, as for asteroids.
    #[default]
    All,
    /// From above and from the horizon, with Y up, as for trees. Between the views is half the
    /// angle. From below, the views of the horizon are shown.
    Above,
}

/// The direction at a place of the grid, from 0 to 1 along each side.
fn direction_at(place: Vec2, sides: ImpostorSides) -> Vec3 {
    let at = place * 2.0 - 1.0;
    let direction = match sides {
        ImpostorSides::Above => {
            let (x, z) = ((at.x + at.y) * 0.5, (at.y - at.x) * 0.5);
            Vec3::new(x, 1.0 - x.abs() - z.abs(), z)
        }
        ImpostorSides::All => {
            let y = 1.0 - at.x.abs() - at.y.abs();
            let below = (1.0 - Vec2::new(at.y, at.x).abs()) * side_of(at);
            let flat = if y < 0.0 { below } else { at };
            Vec3::new(flat.x, y, flat.y)
        }
    };
    direction.normalize()
}

/// 1 or -1 for each number.
fn side_of(at: Vec2) -> Vec2 {
    Vec2::select(at.cmpge(Vec2::ZERO), Vec2::ONE, Vec2::NEG_ONE)
}

/// To the right in a picture that is taken from a direction. Y is up, unless it is taken along Y.
fn right_of(direction: Vec3) -> Vec3 {
    if direction.y.abs() > 0.9999 {
        return Vec3::X;
    }
    Vec3::new(direction.z, 0.0, -direction.x).normalize()
}

/// Turns a mesh so that the view of a cell of the grid sees it along -Z, with X to the right.
/// The grid has `side` views per side, at least two.
pub(super) fn turn_of(cell: [u32; 2], side: u32, sides: ImpostorSides) -> Mat3 {
    let last = (side - 1) as f32;
    let direction = direction_at(Vec2::from(cell.map(|at| at as f32)) / last, sides);
    let right = right_of(direction);
    Mat3::from_cols(right, direction.cross(right), direction).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in the shader.
    fn place_of(direction: Vec3, sides: ImpostorSides) -> Vec2 {
        match sides {
            ImpostorSides::Above => {
                let up = Vec3::new(direction.x, direction.y.max(1e-4), direction.z);
                let at = up / up.abs().element_sum();
                Vec2::new(at.x - at.z, at.x + at.z) * 0.5 + 0.5
            }
            ImpostorSides::All => {
                let at = direction / direction.abs().element_sum();
                let flat = Vec2::new(at.x, at.z);
                let below = (1.0 - Vec2::new(at.z, at.x).abs()) * side_of(flat);
                (if at.y < 0.0 { below } else { flat }) * 0.5 + 0.5
            }
        }
    }

    #[test]
    fn each_place_has_a_direction_and_each_direction_a_place() {
        for sides in [ImpostorSides::All, ImpostorSides::Above] {
            for at in 0..33 * 33 {
                // The borders of all sides are folded: two places of a direction.
                let place = Vec2::new((at % 33) as f32 + 0.5, (at / 33) as f32 + 0.5) / 33.0;
                let direction = direction_at(place, sides);
                assert!((direction.length() - 1.0).abs() < 1e-5);
                assert!(sides == ImpostorSides::All || direction.y >= 0.0);
                let back = place_of(direction, sides);
                assert!(back.distance(place) < 1e-4, "{sides:?} {place} {back}");
            }
        }
    }

    #[test]
    fn a_turn_keeps_shapes_and_points_its_direction_to_the_camera() {
        for sides in [ImpostorSides::All, ImpostorSides::Above] {
            for cell in (0..49).map(|at| [at % 7, at / 7]) {
                let turn = turn_of(cell, 7, sides);
                let direction =
                    direction_at(Vec2::new(cell[0] as f32, cell[1] as f32) / 6.0, sides);
                assert!((turn * direction).distance(Vec3::Z) < 1e-5, "{cell:?}");
                assert!((turn.determinant() - 1.0).abs() < 1e-5, "{cell:?}");
                // What is up stays up in the picture.
                assert!((turn * Vec3::Y).y >= -1e-6, "{cell:?}");
            }
        }
    }

    #[test]
    fn the_poles_are_where_the_shader_says() {
        let at = |x, y, sides| direction_at(Vec2::new(x, y), sides);
        for (place, direction) in [
            ((0.5, 0.5), Vec3::Y),
            ((1.0, 0.5), Vec3::X),
            ((0.5, 1.0), Vec3::Z),
            ((0.0, 0.0), Vec3::NEG_Y),
            ((1.0, 1.0), Vec3::NEG_Y),
        ] {
            let found = at(place.0, place.1, ImpostorSides::All);
            assert!(found.distance(direction) < 1e-6, "{place:?} {found}");
        }
        for (place, direction) in [
            ((0.5, 0.5), Vec3::Y),
            ((1.0, 1.0), Vec3::X),
            ((0.0, 1.0), Vec3::Z),
            ((0.0, 0.0), Vec3::NEG_X),
            ((1.0, 0.0), Vec3::NEG_Z),
        ] {
            let found = at(place.0, place.1, ImpostorSides::Above);
            assert!(found.distance(direction) < 1e-6, "{place:?} {found}");
        }
    }
}
