//! What happens in the middle of something: the render world skips frames, a set goes while it is
//! uploaded, the device is lost at some point of a frame.

use crate::{
    cube_and_red,
    log::Log,
    scene::{How, Stage, assert_same_picture, field, posed},
    starts, wait_for_device,
};
use bevy::{
    core_pipeline::schedule::camera_driver,
    light::cluster::GlobalClusterSettings,
    prelude::*,
    render::{
        Render, RenderApp, RenderSystems,
        renderer::{RenderDevice, RenderGraph, RenderGraphSystems},
    },
};
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A camera that hides, and lights.
fn hiding_stage() -> Stage {
    let mut stage = Stage::new(How::Set(None));
    stage.lights(true);
    let eye = Transform::from_xyz(0.0, 3.0, 7.0).looking_at(Vec3::new(0.5, 0.0, 0.0), Vec3::Y);
    stage.camera(eye, InstanceOcclusion::default());
    stage
}

/// Sets that stay, go, come, move, are edited, exchanged, hidden and shared, one after the other.
/// `between` is called after each change.
fn change_all(stage: &mut Stage, mut between: impl FnMut(&mut Stage)) {
    let look = cube_and_red(stage);
    let at = |x| Transform::from_xyz(x, 0.0, 0.0);
    let sets: Vec<_> = (0..6)
        .map(|number| {
            let set = field(150 + 40 * number, true);
            stage.spawn_set(&set, look.clone(), at(number as f32 * 0.4 - 1.0))
        })
        .collect();
    stage.update(3);
    stage.edit_set(sets[0], |set| set.set(7, Vec3::new(1.0, 0.5, 0.0)).unwrap());
    between(stage);
    stage.entity(sets[1]).despawn();
    between(stage);
    let come = stage.spawn_set(&field(90, false), look.clone(), at(1.7));
    between(stage);
    stage.entity(come).insert(at(2.0));
    stage.edit_set(sets[0], |set| set.extend(field(2000, true).iter()).unwrap());
    between(stage);
    let other = GpuInstances(stage.add(field(300, false)));
    stage.entity(sets[2]).insert(other.clone());
    between(stage);
    stage.entity(sets[3]).insert((Visibility::Hidden, other));
    between(stage);
    stage.entity(sets[3]).insert(Visibility::Inherited);
    stage.edit_set(sets[4], |set| *set = field(30, true));
    between(stage);
    stage.entity(sets[5]).remove::<GpuInstances>();
    between(stage);
}

/// A frame of the main world that the render world does not see.
fn skip(stage: &mut Stage) {
    stage.app.main_mut().update();
}

/// Messages and changes that Bevy tells for two frames are not missed by sets.
#[test]
fn what_changes_while_the_render_world_skips_frames_is_drawn() {
    let log = Log::start();
    let mut stages = [0, 1].map(|_| hiding_stage());
    change_all(&mut stages[0], |stage| stage.update(1));
    change_all(&mut stages[1], |stage| (0..3).for_each(|_| skip(stage)));
    let [expected, skipped] = stages.each_mut().map(|stage| {
        stage.update(3);
        stage.verify();
        stage.picture()
    });
    assert_same_picture("skipped-frames", &skipped, &expected);
    assert_eq!(log.lines(), Vec::<String>::new());
}

/// Frames until what nobody uses is released.
const QUIET: usize = 130;

/// Size of the staging buffers of counters, in bytes: two rings of up to 4 buffers of 256 bytes. How
/// many there are depends on when the device answers: no driver answers at the same time twice.
const STAGING: u64 = 2 * 4 * 256;

/// Number of instances of a set that is uploaded in several frames.
const MANY: usize = 60_000;

/// A set goes, is edited, or is exchanged, each after each number of frames in which its instances
/// arrive.
#[test]
fn a_set_that_goes_while_it_is_uploaded_leaves_nothing() {
    let log = Log::start();
    let mut stage = Stage::new(How::Set(None));
    let eye = Transform::from_xyz(0.0, 3.0, 7.0).looking_at(Vec3::ZERO, Vec3::Y);
    let camera = stage.camera(eye, InstanceOcclusion::default());
    stage.spawn(DirectionalLight::default());
    let settings = &mut stage.app.world_mut().resource_mut::<GpuCullingSettings>();
    settings.upload_budget = Some(200_000);
    let look = cube_and_red(&mut stage);
    stage.spawn_set(&field(200, true), look.clone(), Transform::IDENTITY);
    let large = field(MANY, true);
    let rest = |stage: &mut Stage| {
        // Nothing is drawn until what is left behind is released.
        stage.entity(camera).get_mut::<Camera>().unwrap().is_active = false;
        stage.update(QUIET);
        stage.entity(camera).get_mut::<Camera>().unwrap().is_active = true;
        (stage.picture(), stage.report().gpu_bytes)
    };
    // The first one leaves room for the next.
    let mut before = None;
    for (frames, way) in (0..8).flat_map(|frames| [0, 1, 2].map(|way| (frames, way))) {
        let set = GpuInstances(stage.add(large.clone()));
        // A software adapter would draw it for long.
        let at = Transform::from_xyz(0.0, -500.0, 0.0);
        let parts = (Mesh3d(look.0.clone()), look.1.clone());
        let entity = stage.spawn((parts, set, at));
        stage.update(frames);
        match way {
            0 => drop(stage.entity(entity).remove::<GpuInstances>()),
            1 => {
                stage.edit_set(entity, |set| set.truncate(10));
                stage.update(1);
            }
            _ => {
                let other = stage.add(field(MANY / 2, false));
                stage.entity(entity).insert(GpuInstances(other));
                stage.update(1);
            }
        }
        stage.entity(entity).despawn();
        let after = rest(&mut stage);
        if let Some((picture, bytes)) = &before {
            assert_same_picture(&format!("gone-after-{frames}-{way}"), &after.0, picture);
            let after = after.1;
            assert!(
                after.abs_diff(*bytes) <= STAGING,
                "after {frames} frames, {way}: {after} bytes instead of {bytes}"
            );
        }
        before = Some(after);
    }
    stage.verify();
    assert_eq!(log.lines(), Vec::<String>::new());
}

/// Points of a frame of the render world. Before them, Bevy 0.20.1 itself panics on a lost device
/// (`StorageBuffer::write_buffer`, of its clusters of lights).
const POINTS: [&str; 5] = [
    "before sets are prepared",
    "after sets are prepared",
    "before culling is recorded",
    "after culling is recorded",
    "after the submission",
];

/// The point at which the device is lost in the next frame.
#[derive(Resource)]
struct LossAt(AtomicUsize);

/// Makes the render world lose its device where a test says.
pub fn lose_devices(render_app: &mut SubApp) {
    use GpuCullingSystems::{Finish, Prepare, Record};
    render_app
        .insert_resource(LossAt(AtomicUsize::new(usize::MAX)))
        .add_systems(
            Render,
            (
                lose::<0>
                    .after(RenderSystems::PrepareResources)
                    .before(Prepare),
                lose::<1>
                    .after(Prepare)
                    .before(RenderSystems::PrepareResourcesBatchPhases),
            ),
        )
        .add_systems(
            RenderGraph,
            (
                (lose::<2>.before(Record), lose::<3>.after(Record))
                    .in_set(RenderGraphSystems::Render)
                    .before(camera_driver),
                lose::<4>.in_set(RenderGraphSystems::Finish).after(Finish),
            ),
        );
}

fn lose<const POINT: usize>(at: Res<LossAt>, device: Res<RenderDevice>) {
    let is_here = at.0.compare_exchange(POINT, usize::MAX, Relaxed, Relaxed);
    if is_here.is_ok() {
        device.wgpu_device().destroy();
    }
}

/// A picture after an edit, in whose frame the device is lost at a point, if there is one.
fn draw_edited(point: Option<usize>) -> RgbaImage {
    let mut stage = crate::stage();
    // If a device is lost, Bevy 0.20.1 itself panics when its clusters of lights come back.
    let world = stage.app.world_mut();
    let mut clusters = world.resource_mut::<GlobalClusterSettings>();
    clusters.gpu_clustering = None;
    let (cube, red) = cube_and_red(&mut stage);
    let at = |x| Transform::from_xyz(x, 0.0, 0.0);
    let plain = stage.spawn_set(&field(300, true), (cube.clone(), red.clone()), at(0.0));
    let poses = stage.add(posed::poses());
    let pole = (stage.mesh(posed::mesh()), red.clone());
    let figures = stage.spawn_set(&field(60, false), pole, at(-0.7));
    stage.entity(figures).insert(InstanceAnimation::from(poses));
    let leveled = stage.spawn_set(&field(200, false), (cube.clone(), red.clone()), at(0.7));
    let levels = vec![InstanceLod::new(cube, 0.02)];
    stage.entity(leveled).insert(InstanceLods {
        levels,
        ..default()
    });
    stage.picture();
    for set in [plain, leveled] {
        stage.edit_set(set, |set| set.truncate(150));
    }
    if let Some(point) = point {
        let made = starts(&stage);
        let render_world = stage.app.sub_app(RenderApp).world();
        render_world.resource::<LossAt>().0.store(point, Relaxed);
        let old = stage.app.world().resource::<RenderDevice>().clone();
        let wait = || drop(old.wgpu_device().poll(wgpu::PollType::wait_indefinitely()));
        wait();
        stage.update(1);
        // Bevy must know before its next frame, in which it would panic.
        wait();
        wait_for_device(&mut stage, made);
    }
    let picture = stage.picture();
    stage.verify();
    assert_eq!(stage.report().instances, 360);
    picture
}

#[test]
fn a_device_may_be_lost_at_each_point_of_a_frame() {
    let log = Log::start();
    let expected = draw_edited(None);
    for (point, name) in POINTS.iter().enumerate() {
        println!("{name}");
        let picture = draw_edited(Some(point));
        assert_same_picture(&format!("lost-{point}"), &picture, &expected);
    }
    assert_eq!(log.lines(), Vec::<String>::new());
}
