//! Motion vectors of instances that move within their set. The CPU or the GPU changes the
//! instances, and either kind of vertex shader draws them.

use super::{
    build::{eye, members, moved, pane},
    stage, written,
};
use crate::scene::{How, Stage, different_pixels, field, field_of};
use bevy::{
    asset::RenderAssetUsages,
    core_pipeline::prepass::{DepthPrepass, MotionVectorPrepass, NormalPrepass},
    prelude::*,
};
use bevy_gpu_culling::instance::ScaleKind;
use bevy_gpu_culling::prelude::*;

/// How the instances of a swarm are changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum By {
    /// With `InstanceSet::set`.
    Set,
    /// With `InstanceSet::gpu_written` and a compute pass.
    Gpu,
}

/// A set, or the entities that stand for it, whose instances move.
#[derive(Component)]
pub struct Swarm {
    start: Vec<InstanceTransform>,
    by: By,
    tick: u32,
    moving: bool,
}

/// The transform of instance `index` at `tick`. Every third instance stands still, some rotate,
/// some grow.
fn place(start: &InstanceTransform, index: usize, tick: u32) -> InstanceTransform {
    let (mut at, t) = (*start, tick as f32);
    if index.is_multiple_of(3) {
        return at;
    }
    let way = Vec3::new((index as f32).sin(), (index as f32 * 0.7).cos(), 0.4);
    at.translation += way * 0.06 * t;
    if index % 3 == 1 {
        // A rotation that 32 bits represent exactly.
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

/// Spawns the swarm, a camera and a pane that shows the prepasses' textures.
fn spawn(stage: &mut Stage, by: By, keep: bool, uniforms: bool) -> Entity {
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(StandardMaterial::default());
    let set = field_of(250, ScaleKind::NonUniform);
    let start: Vec<_> = set.iter().collect();
    let entity = match (stage.how, by) {
        (How::Set(_), By::Gpu) => {
            let around = GpuWritten::within(Vec3::splat(-15.0), Vec3::splat(15.0));
            let around = around.with_non_uniform_scales(5.0);
            let empty = InstanceSet::gpu_written(250, around).unwrap();
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

/// Pictures of the moving swarm, of the frame in which it stops, and of the frames after that.
fn pictures(how: How, by: By, keep: bool, uniforms: bool) -> Vec<image::RgbaImage> {
    let mut stage = stage(how);
    let entity = spawn(&mut stage, by, keep, uniforms);
    stage.update(3);
    let mut pictures = vec![stage.picture_now()];
    if how != How::Entities {
        stage.verify();
        // `verify` takes as many frames as the update below.
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
    // The comparison sees motion. Without the previous frame's instances, it fails.
    let still = pictures(How::Set(None), By::Set, false, false);
    assert!(different_pixels("motion-not-kept", &still[0], &entities[0]).is_err());
}

/// Pictures of sets that rest for some frames, and of which one moves for a frame.
fn pushed(how: How) -> Vec<image::RgbaImage> {
    let mut stage = stage(how);
    let material = stage.standard(StandardMaterial::default());
    let entities: Vec<_> = (0..3)
        .map(|number| {
            let mesh = stage.mesh(Cuboid::new(0.5, 0.4 + 0.1 * number as f32, 0.6));
            let at = moved() * Transform::from_xyz(0.3 * number as f32, 0.2, 0.0);
            stage.spawn_set(&field(60, true), (mesh, material.clone()), at)
        })
        .collect();
    let prepasses = (DepthPrepass, NormalPrepass, MotionVectorPrepass);
    let camera = stage.camera(eye(), (prepasses, Msaa::Off));
    pane(&mut stage, camera);
    stage.update(8);
    let mut pictures = vec![stage.picture_now()];
    for push in [0.4, 0.0, 0.0] {
        let mut entity = stage.entity(entities[1]);
        if push > 0.0 {
            entity.get_mut::<Transform>().unwrap().translation.x += push;
        }
        pictures.push(stage.picture_now());
    }
    pictures
}

#[test]
fn a_set_that_rested_has_the_motion_of_entities_when_it_moves() {
    let (sets, entities) = (pushed(How::Set(None)), pushed(How::Entities));
    for (frame, (set, entities)) in sets.iter().zip(&entities).enumerate() {
        let name = format!("motion-pushed-{frame}");
        different_pixels(&name, set, entities).unwrap();
    }
    // The comparison sees motion.
    assert!(different_pixels("motion-pushed-moves", &sets[1], &sets[2]).is_err());
}

/// After a splice, other instances are at the same indices. They have no motion, even if the set
/// needs a new region for them.
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

/// The picture of the frame in which twenty resting instances are removed and `count` others
/// inserted.
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

/// The picture of a frame in which the swarm moves or rests, and the set is edited, too.
fn edited(moving: bool, edit: impl Fn(&mut InstanceSet)) -> (Stage, image::RgbaImage) {
    let mut stage = stage(How::Set(None));
    let entity = spawn(&mut stage, By::Set, true, false);
    stage.update(4);
    let mut swarm = stage.app.world_mut().get_mut::<Swarm>(entity).unwrap();
    swarm.moving = moving;
    stage.update(2);
    let handle = stage
        .app
        .world()
        .get::<GpuInstances>(entity)
        .unwrap()
        .0
        .clone();
    let mut sets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
    edit(&mut sets.get_mut(&handle).unwrap());
    let picture = stage.picture_now();
    (stage, picture)
}

#[test]
fn neighbors_of_an_edited_instance_keep_their_motion() {
    let (_, moving) = edited(true, |_| ());
    let (_, rest) = edited(false, |_| ());
    assert!(different_pixels("motion-edited-moves", &moving, &rest).is_err());
    // Instance 9 stands still, so it has no motion in either case.
    type Edit = fn(&mut InstanceSet);
    let edits: [(&str, Edit); 3] = [
        ("show", |set| {
            set.hide(9).unwrap();
            set.show(9).unwrap();
        }),
        ("teleport", |set| {
            let same = set.get(9).unwrap();
            set.teleport(9, same).unwrap();
        }),
        ("pop-and-push", |set| {
            // Instance 249 stands still, too.
            let last = set.pop().unwrap();
            set.push(last).unwrap();
        }),
    ];
    for (name, edit) in edits {
        let name = format!("motion-edited-{name}");
        different_pixels(&name, &edited(true, edit).1, &moving).unwrap();
    }
}

#[test]
fn a_teleported_instance_has_no_motion() {
    let place = |set: &InstanceSet, index: u32| {
        let mut at = set.get(index).unwrap();
        at.translation.x += 0.5;
        at
    };
    let moved = 0..100;
    let (mut stage, teleported) = edited(false, |set| {
        for index in moved.clone() {
            set.teleport(index, place(set, index)).unwrap();
        }
    });
    stage.update(3);
    let rest = stage.picture_now();
    different_pixels("motion-teleported", &teleported, &rest).unwrap();
    let (_, moved) = edited(false, |set| {
        for index in moved.clone() {
            set.set(index, place(set, index)).unwrap();
        }
    });
    assert!(different_pixels("motion-not-teleported", &moved, &rest).is_err());
}

/// A set may be released on the CPU in the frame of its last edit. It has motion in that frame
/// only.
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
    let result = different_pixels("motion-released", &released, &rest);
    assert_eq!(result.map(|found| found.share), Ok(0.0));
}
