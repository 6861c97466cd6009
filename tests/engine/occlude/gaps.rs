//! What is hidden, dead or not sorted does not keep the rest from being hidden.

use super::{Frame, SIZE, VIEWPORT, culler_for, lists, scene, sorted};
use crate::{
    common::{Scene, gpu, rng, upload},
    depth::picture::Picture,
};
use bevy_gpu_culling::{
    cull::{
        Channels, Compaction, CullView, Culler, CullingTier, ErrorRange, Gpu, Order, SetId,
        WrittenSize,
        reference::{self, BoundState},
    },
    instance::InstanceSet,
};
use glam::Vec3;
use glam::camera::rh::{proj::directx, view};
use rand::RngExt;

/// A frame in which a wall at this distance covers the picture.
fn before_a_wall(eye: Vec3, to: Vec3, distance: f32, near_pixels: f32) -> Frame {
    let aspect = VIEWPORT[1].x as f32 / VIEWPORT[1].y as f32;
    let lens = directx::perspective_infinite_reverse(1.0, aspect, 0.1);
    let mut depth = Picture::walls(&mut rng(1), SIZE, 1, |_| 0.0);
    depth.depths.fill(0.1 / distance);
    Frame {
        eye,
        clip: lens * view::look_at_mat4(eye, to, Vec3::Y),
        near_pixels,
        depth,
        is_frozen: false,
    }
}

/// One set of small instances in a cube of side 100, in one level.
fn field(len: usize) -> Scene {
    let mut scene = scene(&mut rng(8), &[5]);
    let mut rng = rng(9);
    let mut place = || Vec3::from_array([(); 3].map(|()| rng.random_range(-50.0..50.0)));
    scene.sets = vec![InstanceSet::from_transforms((0..len).map(|_| place())).unwrap()];
    let request = &mut scene.frame.requests[0];
    (request.coarser, request.range) = (None, None);
    (request.errors, request.order) = (ErrorRange::default(), Order::NearFirst);
    request.world_from_local = Default::default();
    request.sphere.radius = 0.2;
    request.sphere.center = Vec3::ZERO;
    scene
}

/// Number of crossed blocks of a frame, and of early instances after three.
fn still(culler: &mut Culler, gpu: Gpu<'_>, scene: &Scene, frame: &Frame) -> (u32, Vec<u32>) {
    let mut early = Vec::new();
    for _ in 0..3 {
        early = lists(culler, gpu, scene, frame).remove(0).early;
    }
    let crossed = culler.read_totals(gpu, 0).unwrap().crossed;
    (crossed, early)
}

#[test]
fn hidden_instances_leave_their_blocks_to_be_rejected_and_hidden() {
    let gpu = gpu();
    let whole = {
        let mut scene = field(100_000);
        scene.sets[0] = scene.sets[0].clone().sorted();
        scene
    };
    let mut gaps = field(0);
    gaps.sets = whole.sets.clone();
    for index in (0..100_000).step_by(1024) {
        gaps.sets[0].hide(index + 5).unwrap();
    }
    // Along an edge of the cube, so that most blocks are beside the picture. The wall is before
    // all.
    let eye = Vec3::splat(-60.0);
    let frame = before_a_wall(eye, eye + Vec3::new(-20.0, 120.0, 0.0), 1.0, 60.0);
    for tier in [CullingTier::Subgroup, CullingTier::Workgroup] {
        for compaction in [Compaction::Classify, Compaction::VoteScanCompact] {
            let [whole, gaps] = [&whole, &gaps].map(|scene| {
                let mut culler = culler_for(gpu.device, tier, compaction);
                let view = CullView::from_clip_from_world(&frame.clip);
                let mut frame_of = scene.frame.clone();
                frame_of.views[0] = view;
                let scene = Scene {
                    sets: scene.sets.clone(),
                    frame: frame_of,
                };
                upload(&mut culler, gpu, &scene);
                let seen = still(&mut culler, gpu, &scene, &frame);
                let bounds = culler.store().read_bounds(gpu, SetId(0)).unwrap();
                assert!(bounds.iter().all(|bound| !bound.is_loose()));
                let batch = &culler.plan().batches[0];
                let planes = &batch.chunk_views[0].planes;
                let state = |bound| reference::block_state(&batch.chunks[0], planes, bound);
                let seen_of = bounds
                    .iter()
                    .filter(|bound| state(bound) != BoundState::Outside);
                (seen.0, seen.1, seen_of.count() as u32)
            });
            let name = format!(
                "{tier}, {compaction}: {} and {}",
                whole.1.len(),
                gaps.1.len()
            );
            // What is near is drawn in any case.
            assert!(
                gaps.1.len() <= whole.1.len() && whole.1.len() < 500,
                "{name}"
            );
            if compaction == Compaction::Classify {
                // A block with a gap is not inside as a whole. Rounding may decide at a border.
                let crossed = [whole.0, gaps.0, whole.2];
                assert!(whole.0 > 10 && whole.2 < 60, "{name}: {crossed:?}");
                assert!(gaps.0 <= whole.2 + 1, "{name}: {crossed:?}");
            }
        }
    }
}

/// A set that the GPU writes, with dead instances, with and without bounds.
#[test]
fn dead_instances_of_written_sets_leave_the_others_to_be_hidden() {
    let gpu = gpu();
    let mut scene = field(20_000);
    scene.sets[0] = scene.sets[0].clone().sorted();
    for index in (0..20_000).step_by(500) {
        scene.sets[0].hide(index + 5).unwrap();
    }
    let frame = before_a_wall(Vec3::splat(-60.0), Vec3::ZERO, 1.0, 60.0);
    scene.frame.views[0] = CullView::from_clip_from_world(&frame.clip);
    for tier in [CullingTier::Subgroup, CullingTier::Workgroup] {
        for classify in [true, false] {
            let mut culler = culler_for(gpu.device, tier, Compaction::Classify);
            let size = WrittenSize {
                capacity: 20_000,
                active: 20_000,
                channels: Channels::default(),
                classify,
                noted: false,
            };
            let store = culler.store_mut();
            store.reserve_written(gpu, SetId(0), size).unwrap();
            for region in store.written_regions(SetId(0)) {
                let part = &scene.sets[0].packed()[region.first as usize..];
                let part = &part[..region.capacity as usize];
                gpu.queue
                    .write_buffer(&region.instances, 0, bytemuck::cast_slice(part));
            }
            let (_, early) = still(&mut culler, gpu, &scene, &frame);
            assert!(
                early.len() < 200,
                "{tier}, {classify}: {} early",
                early.len()
            );
        }
    }
}

/// In a set in random order, each block is all around the camera.
#[test]
fn a_set_in_random_order_is_hidden_around_the_camera() {
    let gpu = gpu();
    // Full blocks: a last one that is not full has words of one instance.
    let mut scene = field(20 * 1024);
    scene.frame.requests[0].sphere.radius = 0.5;
    // A sphere is half a picture wide at 1.8 units, and a sixteenth of that at 29.3.
    let near = 0.5 * VIEWPORT[1].y as f32;
    let (eye, ahead) = (Vec3::new(3.0, 1.0, 2.0), Vec3::new(27.0, -1.0, -2.0));
    let frame = before_a_wall(eye, eye + ahead, 40.0, near);
    scene.frame.views[0] = CullView::from_clip_from_world(&frame.clip);
    for tier in [CullingTier::Subgroup, CullingTier::Workgroup] {
        let mut culler = culler_for(gpu.device, tier, Compaction::Auto);
        upload(&mut culler, gpu, &scene);
        let mut draw = |scene: &Scene, frame: &Frame| {
            let lists = lists(&mut culler, gpu, scene, frame).remove(0);
            [lists.early, lists.late, lists.visible].map(|ids| sorted(&ids))
        };
        // In the first frame, what is large is drawn before the rest is tested.
        let [first, late, seen] = draw(&scene, &frame);
        assert!(
            first.len() > 10 && !late.is_empty(),
            "{} early",
            first.len()
        );
        let distance = |id: &u32| {
            let place = scene.sets[0].packed()[*id as usize].position();
            (place - eye).dot(ahead.normalize())
        };
        assert!(first.iter().all(|id| distance(id) < 30.0));
        assert!(
            seen.len() > first.len() && seen.len() < 2000,
            "{}",
            seen.len()
        );
        for _ in 0..2 {
            let [early, late, visible] = draw(&scene, &frame);
            assert!(late.is_empty() && early == seen && visible == seen);
        }
        // The camera jumps without turning: again what is large, besides what was seen.
        let eye = Vec3::new(-20.0, 9.0, -12.0);
        let jumped = before_a_wall(eye, eye + ahead, 40.0, near);
        let mut moved = Scene {
            sets: scene.sets.clone(),
            frame: scene.frame.clone(),
        };
        moved.frame.views[0] = CullView::from_clip_from_world(&jumped.clip);
        let [early, ..] = draw(&moved, &jumped);
        let new = early.iter().filter(|id| seen.binary_search(id).is_err());
        assert!(new.count() > 10, "{} early", early.len());
        let [early, late, visible] = draw(&moved, &jumped);
        assert!(late.is_empty() && early == visible);
        // Bounds are made in the first frame.
        let bounds = culler.store().read_bounds(gpu, SetId(0)).unwrap();
        assert!(bounds.iter().all(|bound| bound.is_loose()));
    }
}
