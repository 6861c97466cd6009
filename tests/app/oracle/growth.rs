//! Sets that grow and shrink. Every frame shows the set as it is in that frame.

use super::{
    axes::Light,
    build::{self, eye, ground, moved},
    stage,
};
use crate::scene::{How, Stage, different_pixels, field, field_of};
use bevy::prelude::*;
use bevy_gpu_culling::instance::ScaleKind;
use bevy_gpu_culling::prelude::*;

type Edit = fn(&mut InstanceSet);

fn some(count: usize) -> Vec<InstanceTransform> {
    field(count, true).iter().collect()
}

fn run(set: &mut InstanceSet, range: std::ops::Range<u32>, count: usize) {
    set.splice(range, some(count)).unwrap();
}

/// Edits around multiples of the block size, after which the set needs a new region, and back.
const EDITS: [(&str, Edit); 9] = [
    ("into-the-middle", |set| run(set, 100..100, 800)),
    ("as-many", |set| run(set, 300..400, 100)),
    ("a-block-and-one", |set| set.extend(some(75)).unwrap()),
    ("two-blocks", |set| run(set, 0..1, 1100)),
    ("head-gone", |set| run(set, 0..300, 0)),
    ("truncated", |set| set.truncate(900)),
    ("one-left", |set| run(set, 1..900, 0)),
    ("empty", InstanceSet::clear),
    ("full-again", |set| set.extend(some(2200)).unwrap()),
];

struct Scene {
    entity: Entity,
    mesh: Handle<Mesh>,
    material: MeshMaterial3d<StandardMaterial>,
}

fn spawn(stage: &mut Stage, set: &InstanceSet) -> Scene {
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.4, 0.3)));
    let entity = stage.spawn_set(set, (mesh.clone(), material.clone()), moved());
    ground(stage);
    // A colorful mesh that no edit changes.
    let ball = stage.mesh(super::materials::colored(Sphere::new(1.0).into()));
    let white = stage.standard(StandardMaterial::default());
    stage.spawn((Mesh3d(ball), white, Transform::from_xyz(2.0, -1.5, 2.0)));
    build::lights(stage, Light::Directional);
    stage.camera(eye(), ());
    Scene {
        entity,
        mesh,
        material,
    }
}

fn edit(stage: &mut Stage, scene: &Scene, edit: Edit) {
    let world = stage.app.world_mut();
    let handle = world.get::<GpuInstances>(scene.entity).unwrap().0.clone();
    let mut sets = world.resource_mut::<Assets<InstanceSet>>();
    edit(&mut sets.get_mut(&handle).unwrap());
}

#[test]
fn a_set_that_grows_or_shrinks_is_whole_in_every_frame() {
    let mut model = field_of(250, ScaleKind::NonUniform);
    let mut stages = [stage(How::Set(None)), stage(How::Entities)];
    let mut scenes = stages.each_mut().map(|stage| spawn(stage, &model));
    for stage in &mut stages {
        stage.update(3);
    }
    let mut failures = Vec::new();
    for (name, change) in EDITS {
        change(&mut model);
        edit(&mut stages[0], &scenes[0], change);
        let Scene {
            entity,
            mesh,
            material,
        } = &mut scenes[1];
        stages[1].app.world_mut().despawn(*entity);
        let parts = (mesh.clone(), material.clone());
        *entity = stages[1].spawn_set(&model, parts, moved());
        // The frame of the change, and the next one.
        for frame in 0..2 {
            let pictures = stages.each_mut().map(Stage::picture_now);
            let name = format!("growth-{name}-{frame}");
            let result = different_pixels(&name, &pictures[0], &pictures[1]);
            println!("{name}: {} instances, {result:?}", model.len());
            failures.extend(result.err());
        }
        if !model.is_empty() {
            stages[0].verify();
            stages[1].update(1);
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Grows a set from a shared page to separate pages and back, and compares it with a set that is
/// created in the final size.
#[test]
fn a_large_set_that_grows_is_whole_in_every_frame() {
    let set = |count: usize| {
        // Only the last thousand are in view, and they come with the growth.
        let far =
            (0..count - 1000).map(|i| InstanceTransform::from(Vec3::new(i as f32, 0.0, 500.0)));
        let near = field(1000, true);
        InstanceSet::from_transforms(far.chain(near.iter())).unwrap()
    };
    let mut grown = stage(How::Set(None));
    let scene = spawn(&mut grown, &set(200_000));
    grown.update(3);
    for count in [270_000, 5000, 600_000] {
        let world = grown.app.world_mut();
        let handle = world.get::<GpuInstances>(scene.entity).unwrap().0.clone();
        let mut sets = world.resource_mut::<Assets<InstanceSet>>();
        let mut asset = sets.get_mut(&handle).unwrap();
        let (before, new) = (asset.len(), set(count));
        let tail = before.min(count) - 1000;
        asset.splice(tail as u32.., new.iter().skip(tail)).unwrap();
        assert_eq!(asset.len(), count);
        drop(asset);
        let picture = grown.picture_now();
        let mut fresh = stage(How::Set(None));
        spawn(&mut fresh, &new);
        let result = different_pixels(&format!("growth-{count}"), &picture, &fresh.picture());
        assert_eq!(result.map(|found| found.share), Ok(0.0));
        grown.verify();
    }
}
