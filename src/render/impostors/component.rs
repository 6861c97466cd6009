//! The component that asks for photographs, and the event with the answer.

use super::{atlas::ImpostorAtlas, error::ImpostorError, grid::Grid, octahedron::ImpostorSides};
use bevy::prelude::*;

/// Photographs the entity's mesh from all sides on the GPU, and draws far instances as cards that
/// show the photographs. It needs [`ImpostorPlugin`](super::ImpostorPlugin).
///
/// An entity without a [`Mesh3d`] has its children photographed together, if they have
/// [`GpuInstances`](crate::render::GpuInstances): the parts of an
/// [`InstanceScene`](crate::render::InstanceScene), or entities with the same set and no transform,
/// such as bark and leaves. All of them become one card.
///
/// When meshes, materials and textures are loaded, the plugin takes the photographs in the frames
/// that follow, inserts an [`ImpostorAtlas3d`](super::ImpostorAtlas3d), and triggers
/// [`ImpostorBaked`] on the entity. Until then all instances are drawn as without it. Cards are
/// lit, cast and receive shadows, are in prepasses, and show what the three nearest photographs see
/// where the line of sight meets it. With [`InstanceLods::fade`](crate::render::InstanceLods::fade)
/// of the meshes, these fade into them.
///
/// Entities with the same meshes, materials and settings share an [`ImpostorAtlas`]. Insert the
/// component again if they change later. To draw meshes only, remove this component and
/// [`ImpostorAtlas3d`](super::ImpostorAtlas3d).
///
/// While photographs are taken, the world has two more cameras and many copies of the meshes, with
/// [`ImpostorStage`](super::ImpostorStage). Systems that expect one camera must leave them out.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// // With `app.add_plugins(ImpostorPlugin)`.
/// fn spawn(
///     mut commands: Commands,
///     assets: Res<AssetServer>,
///     mut sets: ResMut<Assets<InstanceSet>>,
/// ) -> Result {
///     let row = (0..1000).map(|i| Transform::from_xyz(i as f32 * 2.0, 0.0, 0.0));
///     commands.spawn((
///         InstanceScene(assets.load("tree.glb#Scene0")),
///         BakeImpostor { sides: ImpostorSides::Above, ..default() },
///         GpuInstances(sets.add(InstanceSet::from_transforms(row)?)),
///     ));
///     Ok(())
/// }
/// ```
///
/// Only [`StandardMaterial`] is photographed: its base color with its texture, the mesh's vertex
/// colors, and normals with their map. What is less than half opaque is left out, emissive light
/// too. Roughness, metallic and reflectance are numbers of the first material.
#[derive(Component, Reflect, Clone, Copy, Debug, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct BakeImpostor {
    /// [`ImpostorAtlas3d::below_pixels`](super::ImpostorAtlas3d::below_pixels). The default is 64.
    pub below_pixels: f32,
    /// From where it is photographed. The default is all sides.
    pub sides: ImpostorSides,
    /// Number of photographs per side of their square grid: 2 to 32. The default is 12, which is
    /// one per 16 degrees, or per 8 degrees from [above](ImpostorSides::Above).
    pub views: u32,
    /// Pixels per side of a photograph: a multiple of 32, up to 512. The default is 96. Times
    /// [`views`](Self::views) it may be 4,096.
    pub resolution: u32,
}

impl Default for BakeImpostor {
    fn default() -> Self {
        Self {
            below_pixels: 64.0,
            sides: ImpostorSides::All,
            views: 12,
            resolution: 96,
        }
    }
}

impl BakeImpostor {
    /// The grid of photographs.
    pub(super) fn grid(&self) -> Result<Grid, ImpostorError> {
        let Self {
            below_pixels,
            sides,
            views: side,
            resolution: pixels,
        } = *self;
        let bad = [
            (
                !(below_pixels > 0.0 && below_pixels.is_finite()),
                "below_pixels",
                below_pixels.to_string(),
                "finite and above 0",
            ),
            (
                !Grid::SIDE.contains(&side),
                "views",
                side.to_string(),
                "2 to 32",
            ),
            (
                !Grid::PIXELS.contains(&pixels) || !pixels.is_multiple_of(Grid::STEP),
                "resolution",
                pixels.to_string(),
                "a multiple of 32, from 32 to 512",
            ),
        ];
        match bad.into_iter().find(|(is_bad, ..)| *is_bad) {
            Some((_, setting, value, expected)) => Err(ImpostorError::Setting {
                setting,
                value,
                expected,
            }),
            None => Ok(Grid {
                side,
                pixels,
                sides,
            }),
        }
    }
}

/// An entity was photographed, or could not be.
#[derive(EntityEvent, Reflect, Clone, Debug)]
#[reflect(opaque, Event, Clone, Debug)]
pub struct ImpostorBaked {
    /// The entity with [`BakeImpostor`].
    pub entity: Entity,
    /// The photographs, or what is wrong.
    pub result: Result<Handle<ImpostorAtlas>, ImpostorError>,
}
