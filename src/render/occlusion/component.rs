//! What users attach to cameras, lights and sets.

use bevy::{
    prelude::*,
    render::{RenderApp, extract_component::ExtractComponent},
};

/// On a camera or a light: instances that are hidden behind what the camera, or the light's shadow
/// map, has drawn are not drawn.
///
/// The camera's main pass draws what it saw in the frame before. The depth that this leaves is
/// tested against all other instances, and what is visible of them, the late instances, is drawn
/// right after. The picture stays the same. It needs no prepass and hides behind Bevy's entities,
/// too.
///
/// A camera with a prepass, a deferred one, and one with
/// [`AtmosphereSettings`](bevy::pbr::AtmosphereSettings) hide in Bevy's prepasses: sets and
/// entities hide each other. Such a camera gets a
/// [`DepthPrepass`](bevy::core_pipeline::prepass::DepthPrepass) and Bevy's
/// [`OcclusionCulling`](bevy::render::occlusion_culling::OcclusionCulling), which also works
/// without this component. Both go with it, unless the app had added them; the depth prepass stays
/// beside another one. It needs the whole target: in a camera with prepasses and a viewport,
/// nothing is hidden.
///
/// On a `DirectionalLight`, `PointLight` or `SpotLight` it works in each of the light's shadow
/// maps, and the shadows stay the same. Bevy's `OcclusionCulling` on a light hides no instances.
///
/// Opaque and masked sets are hidden, unless their material does not test depth, or has a depth
/// bias. These sets are never hidden: blended and transmissive ones, those with
/// [`NoOcclusionCulling`],
/// [`NoFrustumCulling`](bevy::camera::visibility::NoFrustumCulling),
/// [`InstanceMeshUniforms`](crate::render::InstanceMeshUniforms), those whose mesh is lines or
/// points, and all sets on the tier [`Cpu`](crate::cull::CullingTier::Cpu). Of a set that is drawn
/// by meshlets, the meshlets of late instances are tested, too. The main pass of a camera with a
/// prepass tests the meshlets of all visible instances.
#[derive(Component, ExtractComponent, Reflect, Clone, Copy, Debug, PartialEq)]
#[extract_app(RenderApp)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct InstanceOcclusion {
    /// Groups of 32 instances, one of which is at least this wide in pixels (of a light, pixels of
    /// its shadow map), are drawn first even if the view did not see them in the frame before.
    /// After a cut, a sixteenth of the width is enough: what is large hides the rest. It changes
    /// the speed alone. The default is 256.
    pub near_pixels: f32,
    /// Whether the view stops to hide while that does not pay ([`Self::auto`]). The default is
    /// false.
    pub may_pause: bool,
}

impl InstanceOcclusion {
    /// Hides only while that pays: if the counters of some frames say that less than an eighth of
    /// the instances in the frustum are hidden, or fewer than 131,072 triangles, nothing is hidden
    /// for 60 frames, then for up to 240. Between these pauses, some frames try again. The picture
    /// stays the same. Cameras that hide in prepasses do not pause.
    #[must_use]
    pub fn auto() -> Self {
        Self {
            may_pause: true,
            ..Self::default()
        }
    }
}

impl Default for InstanceOcclusion {
    fn default() -> Self {
        Self {
            near_pixels: 256.0,
            may_pause: false,
        }
    }
}

/// On a set: its instances are never hidden by occlusion. For materials that write the depth of
/// their fragments, or whose vertex stage moves vertices out of the
/// [`CullingRadius`](crate::render::CullingRadius).
#[derive(Component, Reflect, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct NoOcclusionCulling;
