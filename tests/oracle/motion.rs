//! Motion vectors of instances that move within their set: changed on the CPU, written by the GPU, drawn by either
//! vertex stage.

use crate::{
    build::{eye, members, moved, pane},
    scene::{How, Stage, different_pixels, field},
    stage, written,
};
use bevy::{
    asset::RenderAssetUsages,
    core_pipeline::prepass::{DepthPrepass, MotionVectorPrepass, NormalPrepass},
    prelude::*,
};
use bevy_gpu_culling::prelude::*;

/// How a swarm's instances move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum By {
    /// `InstanceSet::set`.
    Set,
    /// `InstanceSet::gpu_written`, and a compute pass.
    Gpu,
}

/// A set, or the entities that stand for it, whose members move by themselves.
#[derive(Component)]
pub struct Swarm {
    start: Vec<InstanceTransform>,
    by: By,
    tick: u32,
    moving: bool,
}

/// Every third stands still, some turn, some grow.
fn place(start: &InstanceTransform, index: usize, tick: u32) -> InstanceTransform {
    let (mut at, t) = (*start, tick as f32);
    if index.is_multiple_of(3) {
        return at;
    }
    let way = Vec3::new((index as f32).sin(), (index as f32 * 0.7).cos(), 0.4);
    at.translation += way * 0.06 * t;
    if index % 3 == 1 {
        // A rotation that 32 bits hold.
        let turned = Quat::from_rotation_z(0.05 * t) * start.rotation;
        at.rotation = PackedQuat::encode(turned).decode();
    }
    if index % 5 == 1 {
        at.scale *= 1.0 + 0.04 * t;
    }
    at
}

pub fn swarm(
    mut swarms: Query<(&mut Swarm, Option<&GpuInstances>, Option<&Children>)>,
    sets: Option<ResMut<Assets<InstanceSet>>>,
    mut written: ResMut<written::Writes>,
    mut transforms: Query<&mut Transform, Without<Swarm>>,
) {
    let mut sets = sets;
    for (mut swarm, instances, children) in &mut swarms {
        if !swarm.moving {
            continue;
        }
        swarm.tick += 1;
        let all = swarm.start.iter().enumerate();
        let places: Vec<_> = all
            .map(|(index, start)| place(start, index, swarm.tick))
            .collect();
        match (instances, swarm.by) {
            (Some(instances), By::Set) => {
                let sets = sets.as_mut().unwrap();
                let mut set = sets.get_mut(&instances.0).unwrap();
                for (index, at) in (0..).zip(&places) {
                    if set.get(index) != Some(*at) {
                        set.set(index, *at).unwrap();
                    }
                }
            }
            (Some(instances), By::Gpu) => {
                let set = InstanceSet::from_transforms(places).unwrap();
                written.0.insert(instances.id(), set);
            }
            (None, _) => {
                for (child, at) in children.into_iter().flatten().zip(places) {
                    *transforms.get_mut(*child).unwrap() = at.into();
                }
            }
        }
    }
}

/// Spawns the swarm, a camera and a pane that shows what the prepasses wrote.
fn spawn(stage: &mut Stage, by: By, keep: bool, uniforms: bool) -> Entity {
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(StandardMaterial::default());
    let set = field(250, true);
    let start: Vec<_> = set.iter().collect();
    let entity = match (stage.how, by) {
        (How::Set(_), By::Gpu) => {
            let around = GpuWritten::within(Vec3::splat(-15.0), Vec3::splat(15.0));
            let empty = InstanceSet::gpu_written(250, around.with_scales(5.0)).unwrap();
            let handle = stage.add(empty.keep_previous(keep));
            let id = handle.id();
            let mut writes = stage.app.world_mut().resource_mut::<written::Writes>();
            writes.0.insert(id, set);
            stage.spawn((Mesh3d(mesh), material, GpuInstances(handle), moved()))
        }
        _ => stage.spawn_set(&set.keep_previous(keep), (mesh, material), moved()),
    };
    if uniforms && stage.how != How::Entities {
        let world = stage.app.world_mut();
        world.entity_mut(entity).insert(InstanceMeshUniforms);
    }
    let (tick, moving) = (0, true);
    let swarm = Swarm {
        start,
        by,
        tick,
        moving,
    };
    stage.entity(entity).insert(swarm);
    let prepasses = (DepthPrepass, NormalPrepass, MotionVectorPrepass);
    let camera = stage.camera(eye(), (prepasses, Msaa::Off));
    pane(stage, camera);
    entity
}

/// Pictures while it moves, in the frame in which it stops, and in the next.
fn pictures(how: How, by: By, keep: bool, uniforms: bool) -> Vec<image::RgbaImage> {
    let mut stage = stage(how);
    let entity = spawn(&mut stage, by, keep, uniforms);
    let mut pictures = vec![stage.picture()];
    if how != How::Entities {
        stage.verify();
        // As many frames as that took.
    } else {
        stage.update(1);
    }
    for moving in [true, false, false, true] {
        let world = stage.app.world_mut();
        world.get_mut::<Swarm>(entity).unwrap().moving = moving;
        pictures.push(stage.picture_now());
    }
    pictures
}

#[test]
fn moved_instances_have_the_motion_of_moved_entities() {
    let entities = pictures(How::Entities, By::Set, false, false);
    let mut failures = Vec::new();
    for by in [By::Set, By::Gpu] {
        for uniforms in [false, true] {
            let set = pictures(How::Set(None), by, true, uniforms);
            for (frame, (set, entities)) in set.iter().zip(&entities).enumerate() {
                let name = format!("motion-{by:?}-{uniforms}-{frame}").to_lowercase();
                let result = different_pixels(&name, set, entities);
                println!("{name}: {result:?}");
                failures.extend(result.err());
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // The comparison sees motion: without the frame before, it fails.
    let still = pictures(How::Set(None), By::Set, false, false);
    assert!(different_pixels("motion-not-kept", &still[0], &entities[0]).is_err());
}

/// After a splice other instances are at the indices: they have not moved there. Nor have they when the set needs new
/// room for it.
#[test]
fn spliced_instances_have_no_motion() {
    for count in [0, 1500] {
        let (set, entities) = (
            spliced(How::Set(None), count),
            spliced(How::Entities, count),
        );
        let result = different_pixels(&format!("motion-spliced-{count}"), &set, &entities);
        assert!(result.is_ok(), "{result:?}");
    }
}

/// The frame in which twenty instances that do not move went, and others came.
fn spliced(how: How, count: usize) -> image::RgbaImage {
    let came = || field(2000, true).iter().take(count).collect::<Vec<_>>();
    let mut stage = stage(how);
    let entity = spawn(&mut stage, By::Set, true, false);
    let mut swarm = stage.app.world_mut().get_mut::<Swarm>(entity).unwrap();
    swarm.moving = false;
    stage.update(4);
    match how {
        How::Entities => {
            let gone: Vec<_> = members(&stage, entity)[10..30].to_vec();
            for entity in gone {
                stage.app.world_mut().despawn(entity);
            }
            let world = stage.app.world();
            let alike = members(&stage, entity)[0];
            let mesh = world.get::<Mesh3d>(alike).unwrap().clone();
            let material = world.get::<MeshMaterial3d<StandardMaterial>>(alike);
            let material = material.unwrap().clone();
            for at in came() {
                let parts = (mesh.clone(), material.clone());
                stage.spawn((parts, Transform::from(at), ChildOf(entity)));
            }
        }
        How::Set(_) => {
            let world = stage.app.world_mut();
            let handle = world.get::<GpuInstances>(entity).unwrap().0.clone();
            let mut sets = world.resource_mut::<Assets<InstanceSet>>();
            let mut set = sets.get_mut(&handle).unwrap();
            set.splice(10..30, came()).unwrap();
        }
    }
    stage.picture_now()
}

/// A set that is released on the CPU in the frame of its last edit has moved in that frame only.
#[test]
fn a_set_that_is_released_in_the_frame_of_an_edit_comes_to_rest() {
    let picture = |usage: Option<RenderAssetUsages>| {
        let mut stage = stage(How::Set(None));
        let entity = spawn(&mut stage, By::Set, true, false);
        stage.update(3);
        let world = stage.app.world_mut();
        world.get_mut::<Swarm>(entity).unwrap().moving = false;
        let start = world.get::<Swarm>(entity).unwrap().start.clone();
        let handle = world.get::<GpuInstances>(entity).unwrap().0.clone();
        let mut sets = world.resource_mut::<Assets<InstanceSet>>();
        let mut set = sets.get_mut(&handle).unwrap();
        for (index, at) in start.iter().enumerate() {
            set.set(index as u32, place(at, index, 20)).unwrap();
        }
        set.asset_usage = usage.unwrap_or(set.asset_usage);
        drop(set);
        let moving = stage.picture_now();
        stage.update(4);
        let sets = stage.app.world().resource::<Assets<InstanceSet>>();
        assert_eq!(sets.get(&handle).unwrap().is_released(), usage.is_some());
        (moving, stage.picture_now())
    };
    let (moving, rest) = picture(None);
    assert!(different_pixels("motion-released-moving", &moving, &rest).is_err());
    let (_, released) = picture(Some(RenderAssetUsages::RENDER_WORLD));
    assert_eq!(
        different_pixels("motion-released", &released, &rest),
        Ok(0.0)
    );
}
