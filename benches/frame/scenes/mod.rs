//! The scenes in the world: first a camera and lights, then the instances.

pub mod canyon;
pub mod cube;
pub mod demo;
pub mod leaves;
pub mod meshlets;

use anyhow::Result;

use crate::case::{Case, Peer, Scene};
use crate::cli::{DrawOrder, Lods};
use bevy::{mesh::Mesh3d, prelude::*, render::renderer::RenderAdapterInfo};
use bevy_gpu_culling::{
    instance::InstanceSet,
    prelude::{
        GpuInstances, InstanceLods, InstanceOcclusion, MeshletMesh, MeshletMesh3d,
        NoInstanceSorting,
    },
};
use wgpu::DeviceType;

/// Instances of one mesh and one material.
struct Instances {
    set: InstanceSet,
    mesh: Mesh,
    /// The coarser levels of the mesh, for a set.
    levels: Option<InstanceLods>,
    /// The mesh in meshlets, by which a set is drawn instead.
    meshlets: Option<MeshletMesh>,
    material: StandardMaterial,
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
    }
}

/// Adds the scene's instances.
pub fn fill(world: &mut World, case: &Case) -> Result<()> {
    let instances = match case.scene {
        Scene::Demo => return Ok(demo::fill(world, case)?),
        Scene::Dense | Scene::Sparse => Instances {
            set: cube::set(case.scene, case.count)?,
            mesh: cube::mesh(),
            levels: None,
            meshlets: None,
            material: cube::material(),
        },
        Scene::Meshlets => Instances {
            set: cube::set(case.scene, case.count)?,
            mesh: meshlets::sphere(),
            levels: None,
            meshlets: meshlets::meshlets(case)?,
            material: cube::material(),
        },
        Scene::Canyon => Instances {
            set: canyon::set(case.count)?,
            mesh: canyon::mesh(),
            levels: match case.lods {
                Some(Lods::On) => Some(canyon::levels(world)?),
                _ => None,
            },
            meshlets: None,
            material: canyon::material(),
        },
        Scene::Leaves => {
            let texture = world.resource_mut::<Assets<Image>>().add(leaves::texture());
            Instances {
                set: leaves::set(case.count)?,
                mesh: leaves::mesh(),
                levels: None,
                meshlets: None,
                material: leaves::material(texture),
            }
        }
    };
    spawn(world, case, instances);
    Ok(())
}

/// The camera's rotation after a share of the measured frames; `None` if it stands still.
pub fn pose(scene: Scene, share: f32) -> Option<Quat> {
    match scene {
        Scene::Dense | Scene::Sparse | Scene::Meshlets => Some(cube::pose(share)),
        Scene::Canyon => Some(canyon::pose(share)),
        Scene::Demo | Scene::Leaves => None,
    }
}

/// Spawns the instances as a set, or as one entity each.
fn spawn(world: &mut World, case: &Case, instances: Instances) {
    let Instances {
        set,
        mesh,
        levels,
        meshlets,
        material,
    } = instances;
    let mesh = Mesh3d(world.resource_mut::<Assets<Mesh>>().add(mesh));
    let mut materials = world.resource_mut::<Assets<StandardMaterial>>();
    let material = MeshMaterial3d(materials.add(material));
    match case.peer {
        Peer::Sets => {
            let set = GpuInstances(world.resource_mut::<Assets<InstanceSet>>().add(set));
            let meshlets =
                meshlets.map(|mesh| world.resource_mut::<Assets<MeshletMesh>>().add(mesh));
            let mut spawned = world.spawn((material, set));
            match meshlets {
                Some(meshlets) => spawned.insert(MeshletMesh3d(meshlets)),
                None => spawned.insert(mesh),
            };
            if let Some(levels) = levels {
                spawned.insert(levels);
            }
            if case.order == Some(DrawOrder::Set) {
                spawned.insert(NoInstanceSorting);
            }
        }
        // Decoded from the packed set, so that both draw exactly the same rotations.
        Peer::Bevy => {
            let entities: Vec<_> = set
                .iter()
                .map(|instance| {
                    let place = Transform {
                        translation: instance.translation,
                        rotation: instance.rotation,
                        scale: instance.scale,
                    };
                    (mesh.clone(), material.clone(), place)
                })
                .collect();
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
