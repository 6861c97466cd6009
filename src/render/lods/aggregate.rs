//! Aggregate detail: fewer and larger instances in place of many that are too small to be seen one
//! by one.

use super::super::{components::GpuInstances, told::Told};
use bevy::{math::Vec4, prelude::*};

/// On a set: instances that are too small to be seen one by one are thinned out, and what is left
/// of them is drawn larger, so that together they cover as much of the picture as before. For
/// fields, grass, points and forests, whose far instances are many and alike.
///
/// If the bounding sphere of an instance is seen with a diameter of `s` pixels, and `s` is below
/// [`below_pixels`](Self::below_pixels), the share `(s / below_pixels)^2` of such instances is
/// drawn in cameras and shadow views. Each grows about its origin, and shrinks to nothing before it
/// goes, so that nothing pops. Instances begin to change at 1.22 times the diameter. Which ones are
/// kept depends on their places in the set, and is the same in every frame and view. In a set in
/// Morton order ([`InstanceSet::sorted`](crate::instance::InstanceSet::sorted)), neighbors are
/// thinned out evenly.
///
/// It changes the picture: single instances become larger than they are, up to about
/// `below_pixels`. Without the component, every instance is drawn. An
/// [`InstanceImpostor`](crate::render::InstanceImpostor) has the component of its parent, unless
/// it has its own.
///
/// Views do not test these sets for occlusion. Picking on the CPU hits all instances, at their
/// own sizes. Sets that are drawn by meshlets or from a `MeshUniform` per survivor
/// ([`InstanceMeshUniforms`](crate::render::InstanceMeshUniforms)) ignore the component, with a
/// warning. Vertex shaders that call `bevy_gpu_culling::draw_instance::position_to_set` need no
/// change.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// # fn spawn(commands: &mut Commands, grass: (Mesh3d, MeshMaterial3d<StandardMaterial>),
/// #     set: Handle<InstanceSet>) {
/// commands.spawn((grass, GpuInstances(set), AggregateDetail::default()));
/// # }
/// ```
#[derive(Component, Reflect, Clone, Copy, Debug, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct AggregateDetail {
    /// The diameter, in pixels of the camera, below which instances are thinned out. The default
    /// is 2. 0 draws every instance. A number that is negative or not finite is ignored with a
    /// warning.
    pub below_pixels: f32,
}

impl Default for AggregateDetail {
    fn default() -> Self {
        Self { below_pixels: 2.0 }
    }
}

impl AggregateDetail {
    /// The diameter; 0 if it is not valid.
    pub(in crate::render) fn checked(self) -> f32 {
        if self.below_pixels.is_finite() {
            self.below_pixels.max(0.0)
        } else {
            0.0
        }
    }
}

/// How shadow views see the instances that cameras thin out: as the camera with the finest picture
/// does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::render) struct ShadowPixels {
    /// Pixels of the camera per world unit, at distance 1 if it is not orthographic. 0 thins
    /// nothing out.
    pub pixels: f32,
    pub is_orthographic: bool,
}

impl ShadowPixels {
    /// Of cameras with these pixels. Orthographic and other cameras at once thin nothing out in
    /// shadow views, because one vertex stage serves all of them.
    pub fn of_cameras(cameras: impl IntoIterator<Item = (f32, bool)>) -> Self {
        let mut all: Option<Self> = None;
        for (pixels, is_orthographic) in cameras {
            let this = Self {
                pixels,
                is_orthographic,
            };
            all = Some(match all {
                None => this,
                Some(before) if before.is_orthographic != is_orthographic => {
                    return Self::default();
                }
                Some(before) if before.pixels >= pixels => before,
                Some(_) => this,
            });
        }
        all.unwrap_or_default()
    }
}

/// How the vertex stage thins a set out: `DrawSlot::thin` in `shaders/draw/instance.wesl`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::render) struct Thinning {
    /// In cameras.
    pub camera: Vec4,
    /// In shadow views, and in cameras whose culling is frozen.
    pub other: Vec4,
}

impl Thinning {
    /// Of a set that is thinned out below a diameter in pixels. `radius` is the radius of its
    /// sphere.
    pub fn new(below: f32, radius: f32, stretch: f32, shadow: ShadowPixels) -> Self {
        let wide = 2.0 * radius * stretch / below;
        let by_size = if shadow.is_orthographic { 1.0 } else { 0.0 };
        Self {
            camera: Vec4::new(wide, 0.0, 0.0, 1.0),
            other: Vec4::new(wide, shadow.pixels, by_size, 0.0),
        }
    }
}

/// Components of sets that were inserted or changed.
type ChangedDetail = (Changed<AggregateDetail>, With<GpuInstances>);

/// Warns of diameters that are not valid.
pub(in crate::render) fn warn_of_bad_details(
    details: Query<(Entity, &AggregateDetail), ChangedDetail>,
    mut told: Local<Told<Entity>>,
) {
    for (entity, detail) in &details {
        let below = detail.below_pixels;
        if !(below.is_finite() && below >= 0.0) && told.is_new(entity) {
            warn!(
                "AggregateDetail on {entity} is ignored: below_pixels is {below}, which must be finite and at least 0. \
                 Let it be 2, or remove the component"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diameters_that_are_no_diameters_thin_nothing_out() {
        let checked = |below_pixels| AggregateDetail { below_pixels }.checked();
        assert_eq!(checked(2.5), 2.5);
        for bad in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert_eq!(checked(bad), 0.0, "{bad}");
        }
    }

    #[test]
    fn shadows_are_seen_as_the_finest_camera_sees_them() {
        let of = |cameras: &[(f32, bool)]| {
            let seen = ShadowPixels::of_cameras(cameras.iter().copied());
            (seen.pixels, seen.is_orthographic)
        };
        assert_eq!(of(&[]), (0.0, false));
        assert_eq!(
            of(&[(500.0, false), (900.0, false), (700.0, false)]),
            (900.0, false)
        );
        assert_eq!(of(&[(50.0, true)]), (50.0, true));
        assert_eq!(
            of(&[(50.0, true), (900.0, false)]).0,
            0.0,
            "nothing is thinned out"
        );
    }
}
