//! The levels of detail of an entity's set.

use bevy::prelude::*;
use core::ops::Range;

/// Levels of detail of the entity's set: coarser meshes, which far instances draw instead of the
/// entity's [`Mesh3d`].
///
/// The GPU chooses for each instance and view. An instance is drawn at the coarsest level whose
/// error the view sees as at most
/// [`GpuCullingSettings::lod_pixels`](crate::render::GpuCullingSettings::lod_pixels) pixels: the
/// level's [`error`](InstanceLod::error) times the largest scale of the instance and the entity's,
/// seen from the distance of the nearest point of the instance's sphere. Shadow views see instances
/// from where their camera sees them, and allow
/// [`shadow_lod_pixels`](crate::render::GpuCullingSettings::shadow_lod_pixels).
///
/// At most [`InstanceLods::MAX`] levels are drawn. Their meshes must have the vertex attributes
/// and the topology of the entity's mesh; a level that does not is left out, and the log says so.
/// `InstanceLods::simplified` makes levels from a mesh. Sets that are drawn by meshlets have the
/// levels of their [`MeshletMesh`](crate::meshlet::MeshletMesh) instead. Sets with
/// [`InstanceMeshUniforms`](crate::render::InstanceMeshUniforms), with a vertex shader for single
/// meshes, or with a blended or transmissive material are drawn in full detail.
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
///         Mesh3d(meshes.add(Sphere::new(0.5).mesh().ico(8)?)),
///         InstanceLods {
///             levels: vec![InstanceLod::new(meshes.add(Sphere::new(0.5).mesh().ico(2)?), 0.03)],
///             ..default()
///         },
///         MeshMaterial3d(materials.add(StandardMaterial::default())),
///         GpuInstances(sets.add(InstanceSet::from_transforms(row)?)),
///     ));
///     Ok(())
/// }
/// ```
#[derive(Component, Reflect, Clone, Debug, Default, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct InstanceLods {
    /// The levels, each coarser than the one before.
    pub levels: Vec<InstanceLod>,
    /// How long an instance fades from level to level, as a share of the distance at which the
    /// coarser one begins, from 0 to 1. In between, cameras draw it at both, each with the pixels
    /// of Bevy's dither pattern that the other leaves out. The default, 0, switches at once.
    ///
    /// Instances also fade before they become smaller than
    /// [`min_pixels`](crate::render::GpuCullingSettings::min_pixels): from 1 + `fade` times
    /// that diameter on. Shadow views draw them whole until then. This needs no levels.
    pub fade: f32,
    /// The indices of the entity's mesh that are drawn in full detail, if the mesh has the indices
    /// of its levels, too ([`LodMesh::Indices`]). `None`, the default, draws all of them.
    pub full: Option<Range<u32>>,
}

impl InstanceLods {
    /// Largest number of levels, without the entity's own mesh.
    pub const MAX: usize = 7;

    /// These levels with the `fade` of others, if there are others.
    #[cfg(feature = "meshlets")]
    pub(super) fn fading_like(self, others: Option<&Self>) -> Self {
        Self {
            fade: others.map_or(self.fade, |others| others.fade),
            ..self
        }
    }
}

/// A level of detail that is coarser than the full mesh.
#[derive(Reflect, Clone, Debug, Default, PartialEq)]
#[reflect(Default, Clone, PartialEq)]
pub struct InstanceLod {
    /// The coarser mesh.
    pub mesh: LodMesh,
    /// How far its surface lies from the full mesh's at most, in the mesh's units. It must not be
    /// less than the error of the level before.
    pub error: f32,
}

impl InstanceLod {
    /// A level with the mesh of this handle, or with these indices of the entity's mesh.
    pub fn new(mesh: impl Into<LodMesh>, error: f32) -> Self {
        Self {
            mesh: mesh.into(),
            error,
        }
    }
}

/// What a level of detail draws.
#[derive(Reflect, Clone, Debug, PartialEq)]
#[reflect(Default, Clone, PartialEq)]
pub enum LodMesh {
    /// Another mesh, with the vertex attributes and the topology of the entity's.
    Mesh(Handle<Mesh>),
    /// A part of the entity's own mesh: its indices from the first to before the last number. The
    /// levels share the vertices, as simplifiers such as meshoptimizer's make them.
    ///
    /// The range must not be empty nor end beyond the mesh's indices, and of a list of triangles it
    /// must have three indices per triangle (of a list of lines, two per line). A level that does
    /// not follow this is left out, and the log says so.
    Indices(Range<u32>),
}

impl LodMesh {
    /// The handle of another mesh; `None` for a part of the entity's.
    #[must_use]
    pub fn handle(&self) -> Option<&Handle<Mesh>> {
        match self {
            Self::Mesh(mesh) => Some(mesh),
            Self::Indices(_) => None,
        }
    }
}

impl Default for LodMesh {
    fn default() -> Self {
        Self::Mesh(Handle::default())
    }
}

impl From<Handle<Mesh>> for LodMesh {
    fn from(mesh: Handle<Mesh>) -> Self {
        Self::Mesh(mesh)
    }
}

impl From<Range<u32>> for LodMesh {
    fn from(indices: Range<u32>) -> Self {
        Self::Indices(indices)
    }
}
