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
#[derive(Component)]
pub struct GivenOcclusion {
    /// Whether it had no depth prepass.
    depth_prepass: bool,
}

/// What decides in which passes a camera hides.
#[derive(QueryData)]
pub struct Passes {
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

impl PassesItem<'_, '_> {
    /// Whether the camera must hide in prepasses, if it hides.
    fn need_prepass(&self) -> bool {
        let was_given = self.given.is_some_and(|given| given.depth_prepass);
        let has_depth_prepass = self.has_depth_prepass && !was_given;
        has_depth_prepass
            || self.has_normal_prepass
            || self.has_motion_prepass
            || self.is_deferred
            || self.has_sky
    }
}

/// Cameras that hide, or have hidden.
type MayHide = (
    With<Camera3d>,
    Or<(With<InstanceOcclusion>, With<GivenOcclusion>)>,
);

/// Gives cameras with [`InstanceOcclusion`] that must hide in prepasses Bevy's
/// [`OcclusionCulling`] and a depth prepass, and takes them back when they are no longer needed.
pub fn equip_cameras(mut commands: Commands, cameras: Query<(Entity, Passes), MayHide>) {
    for (entity, passes) in &cameras {
        let mut camera = commands.entity(entity);
        match passes.given {
            None if passes.has_own && passes.need_prepass() && !passes.has_bevys => {
                let depth_prepass = !passes.has_depth_prepass;
                camera.insert((
                    OcclusionCulling,
                    DepthPrepass,
                    GivenOcclusion { depth_prepass },
                ));
            }
            Some(given) if !(passes.has_own && passes.need_prepass()) => {
                camera.remove::<(OcclusionCulling, GivenOcclusion)>();
                if given.depth_prepass {
                    camera.remove::<DepthPrepass>();
                }
            }
            _ => {}
        }
    }
}
