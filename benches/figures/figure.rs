//! The figures: a fox from a glTF file, and a tube of five thousand triangles.

use anyhow::{Result, anyhow, bail};
use bevy::{
    animation::AnimationClip,
    math::Affine3A,
    mesh::{VertexAttributeValues, skinning::SkinnedMesh},
    prelude::*,
};
use bevy_gpu_culling::{
    instance::InstanceSet,
    prelude::{AnimationPoses, BakeAnimation, GpuInstances, InstanceAnimation, InstanceScene},
    render::PoseClip,
};
use clap::ValueEnum;

/// What a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Figure {
    /// 576 triangles, 24 joints.
    Fox,
    /// 5,000 triangles, 24 joints.
    Tube,
}

/// A figure that is loaded.
pub struct Placed {
    pub mesh: Mesh,
    pub material: Handle<StandardMaterial>,
    pub poses: AnimationPoses,
    /// Its size in the field.
    pub scale: f32,
    scene: Option<Handle<WorldAsset>>,
    clips: Vec<Handle<AnimationClip>>,
}

const JOINTS: u16 = 24;
const HEIGHT: f32 = 1.6;

/// Loads a figure.
pub fn load(app: &mut App, figure: Figure, patience: u32) -> Result<Placed> {
    match figure {
        Figure::Tube => {
            let mut materials = app.world_mut().resource_mut::<Assets<StandardMaterial>>();
            Ok(Placed {
                mesh: tube(),
                material: materials.add(Color::srgb(0.8, 0.5, 0.3)),
                poses: tube_poses()?,
                scale: 1.0,
                scene: None,
                clips: Vec::new(),
            })
        }
        Figure::Fox => load_fox(app, patience),
    }
}

/// Loads the fox, as a set bakes it.
fn load_fox(app: &mut App, patience: u32) -> Result<Placed> {
    let server = app.world().resource::<AssetServer>().clone();
    let scene: Handle<WorldAsset> = server.load("fox.glb#Scene0");
    let clips = [1, 2].map(|clip| server.load(format!("fox.glb#Animation{clip}")));
    let is_loaded = |id| server.is_loaded_with_dependencies(id);
    for _ in 0..patience {
        app.update();
        std::thread::sleep(core::time::Duration::from_millis(2));
        if is_loaded(scene.id().untyped())
            && clips.iter().all(|clip| is_loaded(clip.id().untyped()))
        {
            break;
        }
    }
    app.update();
    let world = app.world_mut();
    if !world.contains_resource::<Assets<AnimationPoses>>() {
        // Bevy's entities need no poses.
        return Ok(Placed {
            mesh: tube(),
            material: Handle::default(),
            poses: tube_poses()?,
            scale: 0.01,
            scene: Some(scene),
            clips: clips.into(),
        });
    }
    let one = InstanceSet::from_transforms([Transform::from_xyz(0.0, -1e4, 0.0)])?;
    let one = GpuInstances(world.resource_mut::<Assets<InstanceSet>>().add(one));
    let bake = BakeAnimation::looping(clips.clone());
    let root = world.spawn((InstanceScene(scene.clone()), bake, one)).id();
    for _ in 0..patience {
        app.update();
        std::thread::sleep(core::time::Duration::from_millis(2));
        let world = app.world_mut();
        let mut parts = world.query::<(
            &InstanceAnimation,
            &Mesh3d,
            &MeshMaterial3d<StandardMaterial>,
        )>();
        let poses = world.resource::<Assets<AnimationPoses>>();
        let baked = parts.iter(world).find_map(|(animation, mesh, material)| {
            let poses = poses.get(&animation.poses)?.clone();
            Some((poses, mesh.0.clone(), material.0.clone()))
        });
        if let Some((poses, mesh, material)) = baked {
            let mesh = world.resource::<Assets<Mesh>>().get(&mesh).cloned();
            world.entity_mut(root).despawn();
            return Ok(Placed {
                mesh: mesh.ok_or_else(|| anyhow!("the fox has no mesh"))?,
                material,
                poses,
                scale: 0.01,
                scene: Some(scene),
                clips: clips.into(),
            });
        }
    }
    bail!("the fox was not baked within {patience} frames")
}

/// The mesh without joints.
pub fn without_joints(mesh: &Mesh) -> Mesh {
    let mut mesh = mesh.clone();
    mesh.remove_attribute(Mesh::ATTRIBUTE_JOINT_INDEX);
    mesh.remove_attribute(Mesh::ATTRIBUTE_JOINT_WEIGHT);
    mesh
}

fn tube() -> Mesh {
    let mut tube = Cylinder::new(0.2, HEIGHT)
        .mesh()
        .resolution(40)
        .segments(62)
        .build();
    let Some(VertexAttributeValues::Float32x3(points)) = tube.attribute(Mesh::ATTRIBUTE_POSITION)
    else {
        return tube;
    };
    let last = JOINTS - 1;
    let along = |point: &[f32; 3]| (point[1] / HEIGHT + 0.5).clamp(0.0, 1.0) * f32::from(last);
    let lower = |point: &[f32; 3]| (along(point) as u16).min(last - 1);
    let joints = points
        .iter()
        .map(|point| [lower(point), lower(point) + 1, 0, 0]);
    let joints = VertexAttributeValues::Uint16x4(joints.collect());
    let weights = points.iter().map(|point| {
        let upper = along(point) - f32::from(lower(point));
        [1.0 - upper, upper, 0.0, 0.0]
    });
    let weights: Vec<_> = weights.collect();
    tube.insert_attribute(Mesh::ATTRIBUTE_JOINT_INDEX, joints);
    tube.insert_attribute(Mesh::ATTRIBUTE_JOINT_WEIGHT, weights);
    tube
}

/// Two clips in which the tube waves.
fn tube_poses() -> Result<AnimationPoses> {
    let pivot = |joint: u16| Vec3::Y * HEIGHT * (f32::from(joint) / f32::from(JOINTS - 1) - 0.5);
    let clip = |axis: Vec3, waves: f32| {
        let pose = |at: u32| {
            let mut place = Affine3A::IDENTITY;
            let joints = (0..JOINTS).map(|joint| {
                let phase = core::f32::consts::TAU * (at as f32 / 30.0 - f32::from(joint) * waves);
                let turn = Affine3A::from_axis_angle(axis, 0.06 * phase.sin());
                let [to, from] = [pivot(joint), -pivot(joint)].map(Affine3A::from_translation);
                place = place * to * turn * from;
                place
            });
            joints.collect()
        };
        PoseClip {
            poses: (0..=30).map(pose).collect(),
            seconds: 1.0,
            loops: true,
        }
    };
    let clips = [clip(Vec3::X, 0.04), clip(Vec3::Z, 0.08)];
    Ok(AnimationPoses::around((0..JOINTS).map(pivot), clips)?)
}

/// Spawns a scene per figure.
pub fn spawn_entities(world: &mut World, placed: &Placed, places: Vec<Transform>) {
    let Some(scene) = &placed.scene else { return };
    for place in places {
        world.spawn((WorldAssetRoot(scene.clone()), place));
    }
}

/// Has all players that are there play a clip. Returns their number.
pub fn play(world: &mut World, placed: &Placed) -> usize {
    let mut new =
        world.query_filtered::<Entity, (With<AnimationPlayer>, Without<AnimationGraphHandle>)>();
    let new: Vec<_> = new.iter(world).collect();
    if !new.is_empty() {
        let (graph, nodes) = AnimationGraph::from_clips(placed.clips.clone());
        let graph = world.resource_mut::<Assets<AnimationGraph>>().add(graph);
        for (at, player) in new.into_iter().enumerate() {
            let mut entity = world.entity_mut(player);
            entity.insert(AnimationGraphHandle(graph.clone()));
            if let Some(mut player) = entity.get_mut::<AnimationPlayer>() {
                let playing = player.play(nodes[0]).repeat();
                playing.seek_to((at * 37 % 1000) as f32 / 1000.0);
            }
        }
    }
    world.query::<&SkinnedMesh>().iter(world).count()
}
