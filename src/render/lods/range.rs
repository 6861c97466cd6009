//! Visibility ranges of instances.

use super::super::{components::GpuInstances, told::Told};
use crate::cull::DistanceRange;
use bevy::{camera::visibility::VisibilityRange, prelude::*};

/// On a set: Bevy's [`VisibilityRange`], for each instance instead of the whole set.
///
/// Each view draws the instances whose origins are at a distance in the range, and fades them in
/// and out between the ends of the margins by a dither pattern, as Bevy does with entities. Several
/// entities that share one set, with ranges that follow each other, are hierarchical levels of
/// detail of any meshes and materials:
///
/// ```
/// # use bevy::{camera::visibility::VisibilityRange, prelude::*};
/// # use bevy_gpu_culling::prelude::*;
/// # fn spawn(commands: &mut Commands, near: (Mesh3d, MeshMaterial3d<StandardMaterial>),
/// #     far: (Mesh3d, MeshMaterial3d<StandardMaterial>), set: Handle<InstanceSet>) {
/// commands.spawn((near, GpuInstances(set.clone()), InstanceVisibilityRange(VisibilityRange {
///     start_margin: 0.0..0.0,
///     end_margin: 50.0..55.0,
///     use_aabb: false,
/// })));
/// commands.spawn((far, GpuInstances(set), InstanceVisibilityRange(VisibilityRange {
///     start_margin: 50.0..55.0,
///     end_margin: 400.0..450.0,
///     use_aabb: false,
/// })));
/// # }
/// ```
///
/// Distances are in world units, from the view's camera
/// ([`ShadowLodOrigin`](bevy::camera::ShadowLodOrigin) for point and spot lights). With
/// `use_aabb`, they are of the centers of the instances' meshes. Shadow views draw what is in the
/// range, without fading. The four ends of the margins must not fall, nor be NaN; a range that
/// does not follow this is ignored with a warning.
///
/// Materials fade if their fragment shader calls
/// `bevy_pbr::pbr_functions::visibility_range_dither`, as [`StandardMaterial`]'s does. These sets
/// do not fade: those with a custom vertex shader, and those with
/// [`InstanceMeshUniforms`](crate::render::InstanceMeshUniforms).
#[derive(Component, Reflect, Clone, Default, PartialEq, Deref, DerefMut)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct InstanceVisibilityRange(pub VisibilityRange);

/// A range that is valid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::render) struct SetRange {
    /// Start and end of the start margin, start and end of the end margin.
    pub margins: [f32; 4],
    pub of_centers: bool,
}

impl InstanceVisibilityRange {
    /// The range, if it is valid.
    pub(in crate::render) fn checked(&self) -> Option<SetRange> {
        let (start, end) = (&self.start_margin, &self.end_margin);
        let margins = [start.start, start.end, end.start, end.end];
        margins.is_sorted_by(|a, b| a <= b).then_some(SetRange {
            margins,
            of_centers: self.use_aabb,
        })
    }
}

impl SetRange {
    /// Whether instances fade in or out.
    pub fn fades(self) -> bool {
        let [start, full, fading, end] = self.margins;
        start < full || fading < end
    }

    /// Where instances are more than half there: of two ranges that fade into each other, one has
    /// each distance.
    #[cfg(feature = "picking")]
    pub fn mostly_there(self) -> DistanceRange {
        let [start, full, fading, end] = self.margins;
        DistanceRange {
            start: 0.5 * (start + full),
            end: 0.5 * (fading + end),
            of_centers: self.of_centers,
        }
    }

    /// Where instances are drawn at all.
    pub fn distances(self) -> DistanceRange {
        let [start, .., end] = self.margins;
        DistanceRange {
            start,
            end,
            of_centers: self.of_centers,
        }
    }
}

/// A range of a set that was inserted or changed.
type ChangedRange = (Changed<InstanceVisibilityRange>, With<GpuInstances>);

/// Warns of ranges that are not valid.
pub(in crate::render) fn warn_of_bad_ranges(
    ranges: Query<(Entity, &InstanceVisibilityRange), ChangedRange>,
    mut told: Local<Told<Entity>>,
) {
    for (entity, range) in &ranges {
        if range.checked().is_none() && told.is_new(entity) {
            warn!(
                "InstanceVisibilityRange on {entity} is ignored, because its margins {:?} and {:?} fall or are not \
                 numbers. Let each of the four ends be at least the one before",
                range.start_margin, range.end_margin
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: [f32; 2], end: [f32; 2]) -> InstanceVisibilityRange {
        InstanceVisibilityRange(VisibilityRange {
            start_margin: start[0]..start[1],
            end_margin: end[0]..end[1],
            use_aabb: true,
        })
    }

    #[test]
    fn ends_of_margins_must_not_fall() {
        let valid = [
            range([0.0, 0.0], [1.0, 1.0]),
            range([-1.0, 2.0], [2.0, f32::INFINITY]),
            InstanceVisibilityRange(VisibilityRange::abrupt(3.0, 3.0)),
        ];
        assert!(valid.iter().all(|range| range.checked().is_some()));
        let invalid = [
            range([1.0, 0.0], [1.0, 1.0]),
            range([0.0, 2.0], [1.0, 3.0]),
            range([0.0, 1.0], [2.0, 1.5]),
            range([f32::NAN, 1.0], [2.0, 3.0]),
            range([0.0, 1.0], [2.0, f32::NAN]),
        ];
        assert!(invalid.iter().all(|range| range.checked().is_none()));
    }

    #[test]
    fn a_range_fades_if_a_margin_has_a_width() {
        let fades = |start, end| range(start, end).checked().is_some_and(SetRange::fades);
        assert!(!fades([1.0, 1.0], [2.0, 2.0]));
        assert!(fades([1.0, 1.5], [2.0, 2.0]));
        assert!(fades([1.0, 1.0], [2.0, 2.5]));
    }
}
