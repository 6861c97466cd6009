//! What users attach to sets.

use super::{maps::ScatterError, window::side_of};
use crate::{cull::layout::SCATTER_SIDE, instance::InstanceSet, render::components::GpuInstances};
use bevy::{asset::UntypedAssetId, prelude::*};
use core::{
    f32::consts::{FRAC_PI_2, TAU},
    ops::Range,
};

/// Scatters instances of the entity's mesh around the cameras, where maps let them grow: grass,
/// trees, stones. The GPU places them, and the frame neither uploads nor reads back anything.
///
/// The land is the XZ plane of the entity's space, cut into square cells with a side of
/// [`spacing`](Self::spacing). Each cell has one candidate at a random place, which depends on the
/// [`seed`](Self::seed) alone. Maps and ranges say whether it grows. So a place always has the same
/// plants, whichever way a camera came. Tiles of 32 by 32 cells around each camera are filled when
/// they come near, and again when a map or the component changes. If nothing changes, the GPU does
/// nothing.
///
/// The plugin makes the entity's set ([`GpuInstances`]) itself; the entity needs a [`Mesh3d`] and a
/// material, and may have everything that a set may have: levels of detail, occlusion, shadows,
/// [`Wind`](crate::render::Wind). Layers are entities with different seeds. Every active camera
/// with a [`Camera3d`] and a common [`RenderLayers`](bevy::camera::visibility::RenderLayers) has
/// its own window of tiles.
///
/// Maps are images with one texel or more per place of [`map_area`](Self::map_area), of which the
/// first channel is read, between texels, too. Their values are from 0 to 1. Formats are
/// `R8Unorm`, `R16Unorm`, `R16Float`, `R32Float`, and those with more channels; not sRGB. A changed
/// image is seen in the frame of the change, so a map can be painted at run time: example
/// `scatter`. Outside the area, nothing grows if there is a map.
///
/// The tier `Cpu` cannot draw it, and logs an error. [`Self::plants`] gives the same instances on
/// the CPU.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// # fn spawn(commands: &mut Commands, grass: (Mesh3d, MeshMaterial3d<StandardMaterial>),
/// #     land: Handle<Image>, meadows: Handle<Image>) {
/// commands.spawn((
///     grass,
///     Scatter {
///         spacing: 0.4,
///         radius: 60.0,
///         density_map: Some(meadows),
///         height_map: Some(land),
///         map_area: Rect::from_center_size(Vec2::ZERO, Vec2::splat(500.0)),
///         map_heights: 0.0..80.0,
///         slopes: 0.0..0.6,
///         scales: 0.7..1.3,
///         ..default()
///     },
/// ));
/// # }
/// ```
#[derive(Component, Reflect, Clone, Debug, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
#[require(GpuInstances)]
pub struct Scatter {
    /// What makes layers differ: another number gives other places. The default is 0.
    pub seed: u32,
    /// Side of a cell, in units of the entity's space: at most one instance grows per cell. The
    /// default is 1.
    pub spacing: f32,
    /// Distance from a camera up to which instances grow, along X and Z. The tiles that it touches
    /// are filled as a whole. The default is 64.
    pub radius: f32,
    /// How far from the middle of its cell a candidate may stand: 0 is a grid, 1 the whole cell.
    /// The default is 1.
    pub jitter: f32,
    /// The least distance between two instances, over the spacing: 0 to 1. Of candidates that are
    /// nearer, one is left. With 1, a third of them is. The default is 0.5.
    pub min_distance: f32,
    /// Share of the candidates that grow where the density map is white, or everywhere without one:
    /// 0 to 1. The default is 1.
    pub density: f32,
    /// Where how many grow: all where it is white, none where it is black.
    pub density_map: Option<Handle<Image>>,
    /// Where nothing grows: where it is 0.5 or more. For roads, houses, lakes.
    pub exclusion_map: Option<Handle<Image>>,
    /// The height of the land; without one, it is 0.
    pub height_map: Option<Handle<Image>>,
    /// The rectangle of the maps, with x and z of the entity's space as x and y: the first texel is
    /// at its minimum. The default is 100 by 100 units around the origin.
    pub map_area: Rect,
    /// The heights, in the entity's units, at 0 and at 1 in the height map. The default is 0 to 1.
    pub map_heights: Range<f32>,
    /// Heights at which instances grow, if there is a height map. The default is all.
    pub heights: Range<f32>,
    /// Slopes on which instances grow, if there is a height map, in radians: 0 is level, π/2
    /// upright. The default is all.
    pub slopes: Range<f32>,
    /// A file of WGSL (`.wgsl`) with the function `scatter_share`, which says what share of the
    /// candidates grows at a place, after density and maps:
    ///
    /// ```wgsl
    /// fn scatter_share(place: vec3<f32>, slope: vec2<f32>, share: f32) -> f32 {
    ///     return select(0.0, share, place.y > 0.5 * sin(place.x));
    /// }
    /// ```
    ///
    /// `place` is in the entity's space, `slope` how much the land rises along x and z per unit.
    /// The file imports nothing. The CPU cannot follow it.
    pub rule: Option<Handle<Shader>>,
    /// How far instances lean with the slope: 0 stands upright, 1 at a right angle to the land. The
    /// default is 0.
    pub align: f32,
    /// Instances are turned about their Y axis, by a random angle between 0 and this, in radians.
    /// The default is a whole turn.
    pub turn: f32,
    /// Scales of instances, of which each has a random one. The default is 1.
    pub scales: Range<f32>,
}

impl Default for Scatter {
    fn default() -> Self {
        Self {
            seed: 0,
            spacing: 1.0,
            radius: 64.0,
            jitter: 1.0,
            min_distance: 0.5,
            density: 1.0,
            density_map: None,
            exclusion_map: None,
            height_map: None,
            map_area: Rect::from_center_size(Vec2::ZERO, Vec2::splat(100.0)),
            map_heights: 0.0..1.0,
            heights: f32::NEG_INFINITY..f32::INFINITY,
            slopes: 0.0..FRAC_PI_2,
            rule: None,
            align: 0.0,
            turn: TAU,
            scales: 1.0..1.0,
        }
    }
}

impl Scatter {
    /// Number of cells along a side of a tile.
    pub const TILE_CELLS: u32 = SCATTER_SIDE;
    /// The largest number in any field with a size. With it, positions and bounds stay finite.
    pub const MAX: f32 = 1e12;

    /// How far the maps may reach from the origin, over the spacing.
    const MAX_AREA: f32 = 4e6;

    /// Side of a tile, in units of the entity's space.
    #[must_use]
    pub fn tile_size(&self) -> f32 {
        self.spacing * SCATTER_SIDE as f32
    }

    /// The maps that there are: density, height, exclusion.
    pub(super) fn maps(&self) -> [(&'static str, Option<&Handle<Image>>); 3] {
        [
            ("density_map", self.density_map.as_ref()),
            ("height_map", self.height_map.as_ref()),
            ("exclusion_map", self.exclusion_map.as_ref()),
        ]
    }

    /// The images and the shader that it has.
    pub(super) fn assets(&self) -> impl Iterator<Item = UntypedAssetId> {
        let maps = self.maps().into_iter();
        let maps = maps.filter_map(|(_, map)| map.map(|map| map.id().untyped()));
        let rule = self.rule.as_ref().map(|rule| rule.id().untyped());
        maps.chain(rule)
    }

    /// What is wrong with a field.
    pub(super) fn problem(&self) -> Option<ScatterError> {
        let max = Self::MAX;
        let is_length = |length: f32| length > max.recip() && length <= max;
        let length = |field, value: f32| {
            let wanted = "above 1e-12 and at most 1e12";
            (field, value.to_string(), wanted, is_length(value))
        };
        let share = |field, value: f32| {
            let is_share = (0.0..=1.0).contains(&value);
            (field, value.to_string(), "between 0 and 1", is_share)
        };
        let range = |field, Range { start, end }: &Range<f32>, low: f32, high: f32, wanted| {
            let is_between = low <= *start && start <= end && *end <= high;
            (field, format!("{start}..{end}"), wanted, is_between)
        };
        let corners = [self.map_area.min, self.map_area.max];
        let area = self.map_area.size();
        // Places on the maps are counted in steps of 31 bits.
        let has_map = self.maps().iter().any(|(_, map)| map.is_some());
        let reach = if has_map {
            self.spacing * Self::MAX_AREA
        } else {
            max
        };
        let is_area = corners
            .iter()
            .all(|corner| corner.abs().max_element() <= reach.min(max))
            && is_length(area.x)
            && is_length(area.y);
        let infinity = f32::INFINITY;
        let fields = [
            length("spacing", self.spacing),
            length("radius", self.radius),
            share("jitter", self.jitter),
            share("min_distance", self.min_distance),
            share("density", self.density),
            (
                "map_area",
                format!("{} to {}", corners[0], corners[1]),
                "within 4,000,000 times the spacing of the origin, with sides above 1e-12",
                is_area,
            ),
            range(
                "map_heights",
                &self.map_heights,
                -max,
                max,
                "between -1e12 and 1e12, the smaller one first",
            ),
            range(
                "heights",
                &self.heights,
                -infinity,
                infinity,
                "two numbers, the smaller one first",
            ),
            range(
                "slopes",
                &self.slopes,
                0.0,
                FRAC_PI_2,
                "between 0 and π/2, the smaller one first",
            ),
            share("align", self.align),
            (
                "turn",
                self.turn.to_string(),
                "between -1e12 and 1e12",
                self.turn.abs() <= max,
            ),
            range(
                "scales",
                &self.scales,
                0.0,
                max,
                "between 0 and 1e12, the smaller one first",
            ),
        ];
        let bad = fields.into_iter().find(|(_, _, _, is_good)| !is_good);
        let bad = bad.map(|(field, value, wanted, _)| ScatterError::Field {
            field,
            value,
            wanted: wanted.to_owned(),
        });
        bad.or_else(|| self.too_many())
    }

    /// Whether one window has more candidates than a set has instances.
    fn too_many(&self) -> Option<ScatterError> {
        let tiles = u64::from(side_of(self.radius, self.tile_size())).pow(2);
        let candidates = tiles.saturating_mul(u64::from(SCATTER_SIDE).pow(2));
        let limit = InstanceSet::MAX_LEN as u64;
        (candidates > limit).then(|| ScatterError::Field {
            field: "radius",
            value: format!("{}, with a spacing of {}", self.radius, self.spacing),
            wanted: format!("small enough for {limit} candidates"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_not_valid_are_named() {
        assert!(Scatter::default().problem().is_none());
        type Change = fn(&mut Scatter);
        let changes: [(&str, Change); 20] = [
            ("spacing", |bad| bad.spacing = 0.0),
            ("spacing", |bad| bad.spacing = f32::NAN),
            ("spacing", |bad| bad.spacing = f32::INFINITY),
            ("radius", |bad| bad.radius = -1.0),
            ("radius", |bad| bad.radius = 1e9),
            ("jitter", |bad| bad.jitter = 1.5),
            ("min_distance", |bad| bad.min_distance = -0.1),
            ("density", |bad| bad.density = 2.0),
            ("map_area", |bad| bad.map_area.max.x = f32::INFINITY),
            ("map_area", |bad| {
                bad.map_area = Rect::new(1.0, 1.0, 1.0, 3.0);
            }),
            ("map_area", |bad| {
                bad.density_map = Some(Handle::default());
                bad.map_area.max.y = 4.1e6;
            }),
            ("map_heights", |bad| bad.map_heights = 2.0..1.0),
            ("map_heights", |bad| bad.map_heights = 0.0..f32::NAN),
            ("heights", |bad| bad.heights = f32::NAN..1.0),
            ("slopes", |bad| bad.slopes = 0.0..3.0),
            ("align", |bad| bad.align = f32::NAN),
            ("turn", |bad| bad.turn = f32::INFINITY),
            ("scales", |bad| bad.scales = -1.0..1.0),
            ("scales", |bad| bad.scales = 1.0..f32::INFINITY),
            ("scales", |bad| bad.scales = 2.0..1.0),
        ];
        for (field, change) in changes {
            let mut bad = Scatter::default();
            change(&mut bad);
            let Some(ScatterError::Field { field: found, .. }) = bad.problem() else {
                panic!("{field} is taken for valid")
            };
            assert_eq!(found, field);
        }
    }
}
