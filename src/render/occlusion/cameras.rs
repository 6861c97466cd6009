//! Cameras that cannot hide in their main pass: they hide in Bevy's prepasses, which need more
//! components.

use super::component::InstanceOcclusion;
use bevy::{
    core_pipeline::prepass::{DeferredPrepass, DepthPrepass, MotionVectorPrepass, NormalPrepass},
    ecs::query::QueryData,
    pbr::AtmosphereSettings,
    prelude::*,
    render::occlusion_culling::OcclusionCulling,
};

/// What a camera with [`InstanceOcclusion`] was given to hide in Bevy's prepasses.
#[derive(Component, Clone, Copy, Default)]
pub struct GivenOcclusion {
    has_depth_prepass: bool,
    has_culling: bool,
}

/// What decides in which passes a camera hides.
#[derive(QueryData)]
pub struct CameraPasses {
    camera: &'static Camera,
    has_own: Has<InstanceOcclusion>,
    has_bevys: Has<OcclusionCulling>,
    has_depth_prepass: Has<DepthPrepass>,
    has_normal_prepass: Has<NormalPrepass>,
    has_motion_prepass: Has<MotionVectorPrepass>,
    is_deferred: Has<DeferredPrepass>,
    /// The sky is drawn over what is late in the main pass.
    has_sky: Has<AtmosphereSettings>,
    given: Option<&'static GivenOcclusion>,
}

impl CameraPassesItem<'_, '_> {
    /// Whether the camera must hide in prepasses, if it hides.
    fn needs_prepass(&self) -> bool {
        let was_given = self.given.is_some_and(|given| given.has_depth_prepass);
        let has_depth_prepass = self.has_depth_prepass && !was_given;
        has_depth_prepass || self.has_other_prepass() || self.has_sky
    }

    /// Whether the camera has a prepass besides the depth prepass. Its users need depth, too.
    fn has_other_prepass(&self) -> bool {
        self.has_normal_prepass || self.has_motion_prepass || self.is_deferred
    }

    /// Whether the camera draws to all of its target, in all depths: otherwise Bevy's depth pyramid
    /// is wrong, and hides entities that are in view.
    fn covers_target(&self) -> bool {
        self.camera.viewport.as_ref().is_none_or(|viewport| {
            viewport.depth == (0.0..1.0)
                && viewport.physical_position == UVec2::ZERO
                && Some(viewport.physical_size) == self.camera.physical_target_size()
        })
    }
}

/// Cameras that hide, or have hidden.
type MayHide = (
    With<Camera3d>,
    Or<(With<InstanceOcclusion>, With<GivenOcclusion>)>,
);

/// Gives cameras with [`InstanceOcclusion`] that must hide in prepasses Bevy's
/// [`OcclusionCulling`] and a depth prepass, and takes them back when they are no longer needed.
/// The depth prepass stays beside another one.
pub fn equip_cameras(mut commands: Commands, cameras: Query<(Entity, CameraPasses), MayHide>) {
    for (entity, passes) in &cameras {
        let mut camera = commands.entity(entity);
        let has_both = passes.has_bevys && passes.has_depth_prepass;
        let given = passes.given.copied();
        if passes.has_own && passes.needs_prepass() && passes.covers_target() {
            let given = given.unwrap_or_default();
            let given = GivenOcclusion {
                has_depth_prepass: given.has_depth_prepass || !passes.has_depth_prepass,
                has_culling: given.has_culling || !passes.has_bevys,
            };
            if !has_both {
                camera.try_insert((OcclusionCulling, DepthPrepass, given));
            }
        } else if let Some(given) = given {
            camera.try_remove::<GivenOcclusion>();
            if given.has_culling {
                camera.try_remove::<OcclusionCulling>();
            }
            if given.has_depth_prepass && !passes.has_other_prepass() {
                camera.try_remove::<DepthPrepass>();
            }
        }
    }
}
