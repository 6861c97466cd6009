//! Data of instances that changes while an app runs.

use super::{
    axes::Light,
    build::{self, eye},
    materials::{Extended, Tint},
    stage,
};
use crate::scene::{How, Stage, different_pixels, field};
use bevy::prelude::*;
use bevy_gpu_culling::prelude::*;

/// Instances of each of the two sets, more than a block.
const COUNT: u32 = 1500;

/// Spawns a set above or below another one. Its color depends on the second word of its data.
fn spawn(stage: &mut Stage, set: InstanceSet, height: f32) -> Handle<InstanceSet> {
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.add(Extended {
        base: StandardMaterial::from(Color::srgb(0.9, 0.7, 0.5)),
        extension: Tint {
            tint: LinearRgba::WHITE,
        },
    });
    let set = stage.add(set);
    stage.spawn((
        Mesh3d(mesh),
        MeshMaterial3d(material),
        GpuInstances(set.clone()),
        Transform::from_xyz(0.0, height, 0.0),
    ));
    set
}

fn edit(stage: &mut Stage, set: &Handle<InstanceSet>, change: impl FnOnce(&mut InstanceSet)) {
    let mut sets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
    change(&mut sets.get_mut(set).unwrap());
}

/// Both sets end with two or more words per instance, and share their buffers meanwhile.
#[test]
fn data_that_changes_looks_like_data_that_was_there() {
    let data = |i: u32| [!i, i / 3];
    let all = |range: core::ops::Range<u32>| range.map(data).collect::<Vec<_>>();
    let with_scene = |stage: &mut Stage| {
        build::lights(stage, Light::Directional);
        stage.camera(eye(), ());
    };
    let mut fresh = stage(How::Set(None));
    with_scene(&mut fresh);
    for height in [1.0, -1.0] {
        let set = field(COUNT as usize, true);
        spawn(&mut fresh, set.with_data(all(0..COUNT)).unwrap(), height);
    }
    let expected = fresh.picture();
    for keeps in [false, true] {
        let mut stage = stage(How::Set(None));
        with_scene(&mut stage);
        let set = || field(COUNT as usize, true).keep_previous(keeps);
        let high = set().with_tags((0..COUNT).collect()).unwrap();
        let high = spawn(&mut stage, high, 1.0);
        let low = set().with_data(vec![[7u32, 0]; COUNT as usize]).unwrap();
        let low = spawn(&mut stage, low, -1.0);
        assert!(different_pixels("data-at-first", &stage.picture(), &expected).is_err());
        edit(&mut stage, &high, |set| {
            set.set_data_range(0, &all(0..COUNT)).unwrap();
        });
        edit(&mut stage, &low, |set| {
            set.set_data_range(300, &all(300..COUNT)).unwrap();
        });
        stage.update(2);
        assert!(different_pixels("data-in-part", &stage.picture(), &expected).is_err());
        edit(&mut stage, &low, |set| {
            set.set_data_range(0, &all(0..300)).unwrap();
        });
        let name = format!("data-edited-{keeps}");
        let result = different_pixels(&name, &stage.picture(), &expected);
        assert_eq!(result.map(|found| found.share), Ok(0.0));
        // A third word, which nothing reads.
        edit(&mut stage, &low, |set| {
            set.set_data(9, [data(9)[0], data(9)[1], 5]).unwrap();
        });
        let name = format!("data-wider-{keeps}");
        let result = different_pixels(&name, &stage.picture(), &expected);
        assert_eq!(result.map(|found| found.share), Ok(0.0));
    }
}
