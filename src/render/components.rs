//! What users attach to entities.

use crate::instance::InstanceSet;
use bevy::{
    asset::AsAssetId,
    camera::{
        primitives::Frustum,
        visibility::{NoAutoAabb, VisibilitySystems},
    },
    prelude::*,
    render::batching::NoAutomaticBatching,
    shape::{HalfSpace, ViewFrustum},
};

/// Draws the entity's mesh once per instance of a set, culled on the GPU for every view.
///
/// The entity also needs a [`Mesh3d`] or a [`MeshletMesh3d`](crate::render::MeshletMesh3d), and a
/// [`MeshMaterial3d`](bevy::pbr::MeshMaterial3d); or, in place of all these, an
/// [`InstanceScene`](crate::render::InstanceScene), whose children have them. The entity's
/// [`Transform`] moves the whole set, an [`InstanceOffset`](crate::render::InstanceOffset) the mesh
/// in each instance. [`Visibility`],
/// [`RenderLayers`](bevy::camera::visibility::RenderLayers), `NotShadowCaster` and
/// `NotShadowReceiver` mean the same as on any mesh. The entity's
/// [`Aabb`](bevy::camera::primitives::Aabb) surrounds the whole set.
///
/// Several entities may share one set. The set, the mesh and the material may be changed at any
/// time.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// fn spawn(
///     mut commands: Commands,
///     mut sets: ResMut<Assets<InstanceSet>>,
///     mut meshes: ResMut<Assets<Mesh>>,
///     mut materials: ResMut<Assets<StandardMaterial>>,
/// ) -> Result {
///     let row = (0..1000).map(|i| Transform::from_xyz(i as f32 * 2.0, 0.0, 0.0));
///     commands.spawn((
///         Mesh3d(meshes.add(Sphere::new(0.5))),
///         MeshMaterial3d(materials.add(StandardMaterial::default())),
///         GpuInstances(sets.add(InstanceSet::from_transforms(row)?)),
///     ));
///     Ok(())
/// }
/// ```
#[derive(
    Component, FromTemplate, Reflect, Clone, Debug, Default, PartialEq, Eq, Deref, DerefMut,
)]
#[reflect(Component, Default, Clone, PartialEq)]
#[require(Transform, Visibility, NoAutomaticBatching, NoAutoAabb)]
pub struct GpuInstances(pub Handle<InstanceSet>);

impl AsAssetId for GpuInstances {
    type Asset = InstanceSet;

    fn as_asset_id(&self) -> AssetId<InstanceSet> {
        self.id()
    }
}

impl From<Handle<InstanceSet>> for GpuInstances {
    fn from(handle: Handle<InstanceSet>) -> Self {
        Self(handle)
    }
}

/// Culls each instance by a sphere of this radius around its origin, in the mesh's units, instead
/// of a sphere around the mesh's vertices. For materials whose vertex stage moves vertices. (A
/// [`Mesh::final_aabb`] that is larger than the vertices does the same: the sphere is then around
/// that box.)
/// An [`InstanceOffset`](crate::render::InstanceOffset) moves and stretches the sphere, as it does
/// the mesh.
///
/// Entities that share a set, a transform and a radius are tested once, also if they have levels of
/// detail.
///
/// It must be between 0 and [`CullingRadius::MAX`]. Any other value is ignored with a warning. To
/// keep every instance, use [`NoFrustumCulling`](bevy::camera::visibility::NoFrustumCulling).
#[derive(Component, Reflect, Clone, Copy, Debug, PartialEq)]
#[reflect(Component, Clone, PartialEq)]
pub struct CullingRadius(pub f32);

impl CullingRadius {
    /// The largest radius. Its square is a finite `f32`, also in a world of some millions of units.
    pub const MAX: f32 = 1e12;

    /// The radius, if it is valid.
    pub(super) fn checked(self) -> Option<f32> {
        (0.0..=Self::MAX).contains(&self.0).then_some(self.0)
    }
}

/// On a set: the GPU writes Bevy's own `MeshUniform` for every survivor in every frame, so that any
/// shader for meshes works on the set: custom vertex shaders that call
/// `bevy_pbr::render::mesh_functions`, and `get_tag` in vertex and fragment shaders, which returns
/// the instance's tag.
///
/// It costs 176 bytes on the GPU per survivor and view; otherwise a set is drawn from its 16 bytes
/// per instance. A set whose material has a vertex shader that does not import
/// `bevy_gpu_culling::draw_instance` is drawn this way without the component. A set whose material
/// imports it never is, and no set is on the tier `Cpu`.
#[derive(Component, Reflect, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct InstanceMeshUniforms;

/// On a set: every view draws the instances in the order of the set.
///
/// Without it, instances of a set whose material writes depth are drawn front to back: words of 32
/// instances, or blocks of 1,024 in large frames, in rings of distance from the view. So near
/// instances hide far ones before these are shaded. Instances of a set with a blended or
/// transmissive material are drawn back to front in every camera, one by one, by the depth that
/// Bevy sorts its entities by: the center of the mesh, or the origin with a [`CullingRadius`].
///
/// Add it if the order carries a meaning, for example with a material that tests no depth, or if a
/// blended set is arranged back to front and need not be sorted.
#[derive(Component, Reflect, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct NoInstanceSorting;

/// On a camera: sets are tested against the frustum that the camera had when this was added, while
/// the camera moves on and shows what was kept. Remove it to test against the camera again.
#[derive(Component, Reflect, Clone, Debug, Default)]
#[reflect(Component, Default, Clone)]
pub struct FreezeCulling {
    /// The frustum that culls; `None` until the end of the frame in which the component is added.
    /// Its near plane is the one that the camera clips at. The near plane of Bevy's own [`Frustum`]
    /// lies behind an orthographic camera.
    #[reflect(ignore)]
    pub frustum: Option<Frustum>,
}

/// Sets [`FreezeCulling::frustum`] after Bevy has updated the camera's, also if the component is
/// inserted again.
pub(super) fn freeze_frusta(
    mut cameras: Query<
        (&mut FreezeCulling, &Frustum, &Camera, &GlobalTransform),
        Changed<FreezeCulling>,
    >,
) {
    for (mut freeze, frustum, camera, place) in &mut cameras {
        if freeze.frustum.is_none() {
            let clip_from_world = camera.clip_from_view() * place.to_matrix().inverse();
            let mut frustum = *frustum;
            if let Some(near) = near_half_space(&clip_from_world) {
                frustum.half_spaces[ViewFrustum::NEAR_PLANE_IDX] = near;
            }
            freeze.frustum = Some(frustum);
        }
    }
}

/// The half space of what is not nearer than the near plane: `w - z >= 0` in clip space. `None` if
/// the projection has no such plane.
fn near_half_space(clip_from_world: &Mat4) -> Option<HalfSpace> {
    let plane = clip_from_world.row(3) - clip_from_world.row(2);
    (plane.truncate() != Vec3::ZERO).then(|| HalfSpace::new(plane))
}

/// The set in which Bevy updates frusta. Ours follows it.
pub(super) const AFTER_FRUSTA: VisibilitySystems = VisibilitySystems::UpdateFrusta;
