//! The scenes in the world: first a camera and lights, then the instances.

pub mod canyon;
pub mod cube;
pub mod demo;
pub mod forest;
pub mod leaves;
pub mod meshlets;

use anyhow::{Result, anyhow};

use crate::case::{Case, Peer, Scene};
use crate::cli::{DrawOrder, Lods};
use crate::field;
use bevy::{
    camera::visibility::VisibilityRange,
    mesh::{Mesh3d, MeshCompressionArgs, VertexAttributeValues},
    prelude::*,
    render::renderer::RenderAdapterInfo,
};
use bevy_gpu_culling::{
    instance::InstanceSet,
    prelude::{
        AggregateDetail, BakeImpostor, GpuInstances, ImpostorSides, InstanceLod, InstanceLods,
        InstanceOcclusion, LodSettings, MeshletMesh, MeshletMesh3d, MeshletSettings,
        NoInstanceSorting,
    },
};
use wgpu::DeviceType;

/// Pixels per unit at a distance of one unit, for a picture of 1,080 rows and Bevy's default lens.
const PIXELS_AT_1: f32 = 1_304.0;

/// What is drawn at each place of a scene, or a part of that: a mesh with a material.
pub struct Part {
    pub mesh: Mesh,
    /// The coarser levels of the mesh, with their errors. Entities have none unless the case says
    /// that they have levels.
    pub levels: Vec<(Mesh, f32)>,
    /// The mesh in meshlets, by which a set is drawn instead.
    pub meshlets: Option<MeshletMesh>,
    pub material: StandardMaterial,
}

impl Part {
    /// A mesh with one level.
    fn new(mesh: Mesh, material: StandardMaterial) -> Self {
        Self {
            mesh,
            levels: Vec::new(),
            meshlets: None,
            material,
        }
    }
}

/// Spawns the scene's camera and lights. Returns the camera, which has no target yet.
pub fn furnish(world: &mut World, case: &Case) -> Entity {
    match case.scene {
        Scene::Demo => demo::furnish(world, case),
        Scene::Dense | Scene::Sparse | Scene::Meshlets => {
            sun(world);
            let lens = cube::lens(cube::side(case.scene, case.count));
            camera(world, lens, Transform::IDENTITY)
        }
        Scene::Leaves => {
            sun(world);
            camera(world, leaves::lens(case.count), Transform::IDENTITY)
        }
        Scene::Canyon => {
            sun(world);
            camera(world, canyon::lens(case.count), canyon::eye())
        }
        Scene::Forest => {
            sun(world);
            forest::ground(world, case.count);
            camera(world, forest::lens(case.count), forest::eye())
        }
    }
}

/// Adds the scene's instances.
pub fn fill(world: &mut World, case: &Case) -> Result<()> {
    let has_levels = case.lods == Some(Lods::On);
    match case.scene {
        Scene::Demo => demo::fill(world, case)?,
        Scene::Dense | Scene::Sparse => {
            let part = Part::new(cube::mesh(), cube::material());
            spawn(world, case, cube::set(case.scene, case.count)?, [part])?;
        }
        Scene::Meshlets => {
            let part = Part {
                meshlets: meshlets::meshlets(case)?,
                ..Part::new(meshlets::sphere(), cube::material())
            };
            spawn(world, case, cube::set(case.scene, case.count)?, [part])?;
        }
        Scene::Canyon => {
            let mut part = Part::new(canyon::mesh(), canyon::material());
            if has_levels {
                part.levels = canyon::levels()?;
            }
            spawn(world, case, canyon::set(case.count)?, [part])?;
        }
        Scene::Leaves => {
            let texture = world.resource_mut::<Assets<Image>>().add(leaves::texture());
            let part = Part::new(leaves::mesh(), leaves::material(texture));
            spawn(world, case, leaves::set(case.count)?, [part])?;
        }
        Scene::Forest => {
            let mut parts = forest::parts(world)?;
            if !has_levels {
                parts.iter_mut().for_each(|part| part.levels.clear());
            }
            spawn(world, case, forest::set(case.count)?, parts)?;
        }
    }
    Ok(())
}

/// Thins out the instances of all sets that are seen with a smaller diameter, in pixels.
pub fn thin_out(world: &mut World, below_pixels: f32) {
    let mut sets = world.query_filtered::<Entity, With<GpuInstances>>();
    for set in sets.iter(world).collect::<Vec<_>>() {
        world
            .entity_mut(set)
            .insert(AggregateDetail { below_pixels });
    }
}

/// Has all sets photographed. Sets with the same instances become one card.
pub fn bake_impostors(world: &mut World, scene: Scene, below_pixels: f32) -> Result<()> {
    let sides = match scene {
        Scene::Forest => ImpostorSides::Above,
        _ => ImpostorSides::All,
    };
    let bake = BakeImpostor {
        below_pixels,
        sides,
        ..default()
    };
    let mut sets = world.query_filtered::<Entity, (With<GpuInstances>, With<Mesh3d>)>();
    match &sets.iter(world).collect::<Vec<_>>()[..] {
        [set] => drop(world.entity_mut(*set).insert(bake)),
        parts => {
            let whole = (Transform::default(), Visibility::default(), bake);
            world.spawn(whole).add_children(parts);
        }
    }
    Ok(())
}

/// Cuts the meshes of all sets into meshlets, with as many levels of detail as
/// [`LodSettings::default`] makes if the set has some.
pub fn cut_into_meshlets(world: &mut World) -> Result<()> {
    let mut sets =
        world.query_filtered::<(Entity, &Mesh3d, Has<InstanceLods>), With<GpuInstances>>();
    let sets: Vec<_> = sets
        .iter(world)
        .map(|(set, mesh, has_levels)| (set, mesh.0.clone(), has_levels))
        .collect();
    for (set, mesh, has_levels) in sets {
        let settings = MeshletSettings {
            lods: has_levels.then(LodSettings::default),
            ..default()
        };
        let mesh = world.resource::<Assets<Mesh>>().get(&mesh);
        let mesh = mesh.ok_or_else(|| anyhow!("a set's mesh is gone"))?;
        let mesh = MeshletMesh::from_mesh(mesh, &settings)?;
        let mesh = MeshletMesh3d(world.resource_mut::<Assets<MeshletMesh>>().add(mesh));
        let mut set = world.entity_mut(set);
        set.remove::<(Mesh3d, InstanceLods)>().insert(mesh);
    }
    Ok(())
}

/// Compresses the vertices of all meshes.
pub fn compress(world: &mut World) -> Result<()> {
    let is_plain = |mesh: &Mesh| {
        let positions = mesh.attribute(Mesh::ATTRIBUTE_POSITION);
        matches!(positions, Some(VertexAttributeValues::Float32x3(_)))
    };
    let mut meshes = world.resource_mut::<Assets<Mesh>>();
    // A mesh of Bevy is compressed already.
    for (_, mesh) in meshes.iter_mut().filter(|(_, mesh)| is_plain(mesh)) {
        let compressed = mesh.compress_mesh(&MeshCompressionArgs::regular());
        compressed.map_err(|errors| anyhow!("a mesh is not compressed: {errors:?}"))?;
    }
    Ok(())
}

/// The camera's rotation after a share of the measured frames; `None` if it stands still.
pub fn pose(scene: Scene, share: f32) -> Option<Quat> {
    match scene {
        Scene::Dense | Scene::Sparse | Scene::Meshlets => Some(cube::pose(share)),
        Scene::Canyon => Some(canyon::pose(share)),
        Scene::Forest => Some(forest::pose(share)),
        Scene::Demo | Scene::Leaves => None,
    }
}

/// Spawns the instances as sets, one per part, or as one entity per instance, part and level.
fn spawn(
    world: &mut World,
    case: &Case,
    mut set: InstanceSet,
    parts: impl IntoIterator<Item = Part>,
) -> Result<()> {
    match case.peer {
        Peer::Sets => {
            if case.order == Some(DrawOrder::Nearest) {
                let mut cameras = world.query_filtered::<&Transform, With<Camera3d>>();
                let eye = cameras.single(world)?.translation;
                set = field::nearest_first(&set, eye)?;
            }
            let set = GpuInstances(world.resource_mut::<Assets<InstanceSet>>().add(set));
            for part in parts {
                spawn_set(world, case, set.clone(), part);
            }
        }
        Peer::Bevy => {
            for part in parts {
                spawn_entities(world, &set, part);
            }
        }
    }
    Ok(())
}

/// Spawns a part of the instances as a set.
fn spawn_set(world: &mut World, case: &Case, set: GpuInstances, part: Part) {
    let mut meshes = world.resource_mut::<Assets<Mesh>>();
    let mesh = Mesh3d(meshes.add(part.mesh));
    let levels = InstanceLods {
        levels: part
            .levels
            .into_iter()
            .map(|(mesh, error)| InstanceLod::new(meshes.add(mesh), error))
            .collect(),
        ..default()
    };
    let mut materials = world.resource_mut::<Assets<StandardMaterial>>();
    let material = MeshMaterial3d(materials.add(part.material));
    let meshlets = part
        .meshlets
        .map(|mesh| world.resource_mut::<Assets<MeshletMesh>>().add(mesh));
    let mut spawned = world.spawn((material, set));
    match meshlets {
        Some(meshlets) => spawned.insert(MeshletMesh3d(meshlets)),
        None => spawned.insert(mesh),
    };
    if !levels.levels.is_empty() {
        spawned.insert(levels);
    }
    if case.order != Some(DrawOrder::NearFirst) {
        spawned.insert(NoInstanceSorting);
    }
}

/// Spawns a part of the instances as entities, one per level, each of which is seen from the
/// distance at which a set draws that level for an instance of scale 1.
fn spawn_entities(world: &mut World, set: &InstanceSet, part: Part) {
    let mut materials = world.resource_mut::<Assets<StandardMaterial>>();
    let material = MeshMaterial3d(materials.add(part.material));
    let has_levels = !part.levels.is_empty();
    let mut levels = vec![(part.mesh, 0.0)];
    levels.extend(part.levels);
    let starts: Vec<_> = levels.iter().map(|level| level.1 * PIXELS_AT_1).collect();
    let ends = starts.iter().skip(1).copied().chain([f32::INFINITY]);
    let ranges = starts.iter().zip(ends);
    for ((mesh, _), (start, end)) in levels.into_iter().zip(ranges) {
        let mesh = Mesh3d(world.resource_mut::<Assets<Mesh>>().add(mesh));
        // Decoded from the packed set, so that both draw exactly the same rotations.
        let entities = set.iter().map(|instance| {
            let place = Transform {
                translation: instance.translation,
                rotation: instance.rotation,
                scale: instance.scale,
            };
            (mesh.clone(), material.clone(), place)
        });
        if has_levels {
            let range = VisibilityRange::abrupt(*start, end);
            let entities: Vec<_> = entities.map(|entity| (entity, range.clone())).collect();
            world.spawn_batch(entities);
        } else {
            let entities: Vec<_> = entities.collect();
            world.spawn_batch(entities);
        }
    }
}

/// A plain camera.
fn camera(world: &mut World, lens: PerspectiveProjection, place: Transform) -> Entity {
    // Four samples per pixel make a software renderer four times as slow.
    let is_software = world.resource::<RenderAdapterInfo>().device_type == DeviceType::Cpu;
    let samples = if is_software {
        Msaa::Off
    } else {
        Msaa::Sample4
    };
    let lens = Projection::Perspective(lens);
    let camera = (Camera3d::default(), samples, lens, place);
    world.spawn(camera).id()
}

/// A light from behind the camera's shoulder, without shadows.
fn sun(world: &mut World) {
    let direction = Vec3::new(-0.5, -0.8, -0.6);
    world.spawn((
        DirectionalLight::default(),
        Transform::default().looking_to(direction, Vec3::Y),
    ));
}

/// Lets the scene's light cast shadows. If `hides`, instances that are hidden from it are left out.
pub fn cast_shadows(world: &mut World, hides: bool) {
    let mut lights = world.query::<(Entity, &mut DirectionalLight)>();
    let lights = lights.iter_mut(world).map(|(entity, mut light)| {
        light.shadow_maps_enabled = true;
        entity
    });
    for light in lights.collect::<Vec<_>>() {
        if hides {
            world.entity_mut(light).insert(InstanceOcclusion::default());
        }
    }
}
