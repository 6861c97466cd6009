//! The tiles around cameras, and their slots in the set.
//!
//! A window has as many slots along X and Z as tiles, and a tile has the slot of its number modulo
//! the window's side. So a tile that stays in the window keeps its slot, wherever the camera goes:
//!
//! ```text
//! tiles in the window     -1  0  1          0  1  2
//! their slots              2  0  1    ->    0  1  2    only tile 2 is filled
//! ```

use bevy::prelude::*;

/// The number of the farthest tile. The positions in it are whole numbers of steps that fit in an
/// `i32`.
const MAX_WINDOW_TILE: f32 = (1 << 17) as f32;

/// The most tiles along a side of a window: their square fits in a `u32`.
const MAX_SIDE: u32 = 65_535;

/// Number of tiles along a side of a window: all that `radius` touches, wherever in the middle one
/// the camera is.
pub(super) fn side_of(radius: f32, tile_size: f32) -> u32 {
    let tiles = (radius / tile_size).ceil();
    // A number that is too large, or none, becomes the most.
    let around = (tiles as u32).min(MAX_SIDE / 2);
    2 * around + 1
}

/// The tile that a place lies in. `None` if it is too far away, or nowhere.
pub(super) fn tile_of(place: Vec3, tile_size: f32) -> Option<IVec2> {
    let tile = (place.xz() / tile_size).floor();
    (tile.abs().max_element() < MAX_WINDOW_TILE && tile.is_finite()).then(|| tile.as_ivec2())
}

/// The corners of a window around a tile, in tiles: the first tile, and the one behind the last.
pub(super) fn window_around(center: IVec2, side: u32) -> [IVec2; 2] {
    let low = center - (side / 2) as i32;
    [low, low + side as i32]
}

/// The tile of each slot, window after window. A tile that is in several windows has a slot in the
/// first one alone.
pub(super) fn slots(centers: &[Option<IVec2>], side: u32) -> Vec<Option<IVec2>> {
    let per_window = (side * side) as usize;
    let mut slots = vec![None; per_window * centers.len()];
    for (index, center) in centers.iter().enumerate() {
        let Some(center) = center else { continue };
        let before = &centers[..index];
        let is_taken = |tile: IVec2| {
            before.iter().flatten().any(|other| {
                let [low, end] = window_around(*other, side);
                tile.cmpge(low).all() && tile.cmplt(end).all()
            })
        };
        let [low, end] = window_around(*center, side);
        for z in low.y..end.y {
            for x in low.x..end.x {
                let tile = IVec2::new(x, z);
                if !is_taken(tile) {
                    slots[index * per_window + slot_of(tile, side)] = Some(tile);
                }
            }
        }
    }
    slots
}

/// The slot of a tile in a window.
fn slot_of(tile: IVec2, side: u32) -> usize {
    let at = tile.rem_euclid(IVec2::splat(side as i32)).as_uvec2();
    (at.y * side + at.x) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::platform::collections::HashSet;
    use proptest::prelude::*;

    #[test]
    fn a_window_holds_the_radius_around_a_camera_anywhere_in_its_tile() {
        let sides = [1.0, 16.0, 16.1, 160.0].map(|radius| side_of(radius, 16.0));
        assert_eq!(sides, [3, 3, 5, 21]);
        assert_eq!(side_of(f32::INFINITY, 16.0), MAX_SIDE);
        assert_eq!(
            tile_of(Vec3::new(-0.1, 5.0, 16.0), 16.0),
            Some(IVec2::new(-1, 1))
        );
        assert_eq!(tile_of(Vec3::new(1e9, 0.0, 0.0), 16.0), None);
        assert_eq!(tile_of(Vec3::NAN, 16.0), None);
    }

    proptest! {
        #[test]
        fn tiles_have_one_slot_each_and_keep_it(
            side in prop::sample::select(vec![1u32, 3, 5, 11]),
            (x, z) in (-40i32..40, -40i32..40),
            (right, back) in (-3i32..4, -3i32..4),
            (far, deep) in (-12i32..12, -12i32..12),
        ) {
            let first = IVec2::new(x, z);
            let before = slots(&[Some(first)], side);
            let after = slots(&[Some(first + IVec2::new(right, back))], side);
            for (was, is) in before.iter().zip(&after) {
                // A tile of both windows is where it was.
                let [low, end] = window_around(first + IVec2::new(right, back), side);
                if let Some(tile) = was.filter(|was| was.cmpge(low).all() && was.cmplt(end).all()) {
                    prop_assert_eq!(*is, Some(tile));
                }
            }
            // Two windows that may overlap have each tile once.
            let second = first + IVec2::new(far, deep);
            let both = slots(&[Some(first), None, Some(second)], side);
            let tiles: Vec<_> = both.iter().flatten().collect();
            let set: HashSet<_> = tiles.iter().collect();
            prop_assert_eq!(set.len(), tiles.len());
            let alone = slots(&[Some(second)], side);
            prop_assert!(alone.iter().flatten().all(|tile| set.contains(&tile)));
            prop_assert!(before.iter().flatten().all(|tile| set.contains(&tile)));
        }
    }
}
