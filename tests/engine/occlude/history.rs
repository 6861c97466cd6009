//! Views keep what they have seen while other views and sets come and go.

use super::{SIZE, VIEWPORT, culler_for, scene};
use crate::{
    common::{Scene, gpu, gpu_with, rng, upload},
    depth::picture::Picture,
};
use bevy_gpu_culling::cull::{
    CoarserLevel, Compaction, CullView, Culler, CullingTier, DepthBuffer, DrawList, ErrorRange,
    Gpu, OcclusionView, PlainPasses,
};
use glam::camera::rh::{proj::directx, view};
use glam::{Mat4, Vec3};

/// A view of a frame.
#[derive(Clone, Copy)]
struct Seeing {
    key: u64,
    clip: Mat4,
    is_frozen: bool,
}

impl Seeing {
    /// A view that looks at the origin from this side.
    fn from(key: u64, angle: f32) -> Self {
        let eye = Vec3::new(angle.cos(), 0.2, angle.sin()) * 80.0;
        let aspect = VIEWPORT[1].x as f32 / VIEWPORT[1].y as f32;
        let lens = directx::perspective_infinite_reverse(1.0, aspect, 0.1);
        Self {
            key,
            clip: lens * view::look_at_mat4(eye, Vec3::ZERO, Vec3::Y),
            is_frozen: false,
        }
    }
}

/// Two walls before most of the field.
fn walls(gpu: Gpu<'_>) -> DepthBuffer {
    let mut picture = Picture::walls(&mut rng(3), SIZE, 1, |_| 0.0);
    picture.depths.fill(0.0);
    for (at, depth) in picture.depths.iter_mut().enumerate() {
        let x = at as u32 % SIZE.x;
        *depth = if !(70..=90).contains(&x) {
            0.1 / 50.0
        } else {
            0.0
        };
    }
    DepthBuffer {
        texture: picture.draw(gpu),
        samples: 1,
        origin: VIEWPORT[0],
        size: VIEWPORT[1],
        range: 0.0..1.0,
    }
}

/// Draws a frame, and returns early, late and visible ids of request 0 in view 0.
fn draw(
    culler: &mut Culler,
    gpu: Gpu<'_>,
    scene: &mut Scene,
    depth: &DepthBuffer,
    views: &[Seeing],
) -> [Vec<u32>; 3] {
    scene.frame.views = views
        .iter()
        .map(|seeing| CullView::from_clip_from_world(&seeing.clip))
        .collect();
    for request in &mut scene.frame.requests {
        request.views = (0..views.len() as u32).collect();
    }
    let hiding: Vec<_> = (0..)
        .zip(views)
        .map(|(view, seeing)| OcclusionView {
            view,
            key: seeing.key,
            clip_from_world: seeing.clip,
            is_jittered: false,
            near_pixels: 1e9,
            requests: (0..scene.frame.requests.len() as u32).collect(),
            is_frozen: seeing.is_frozen,
            depth: depth.clone(),
        })
        .collect();
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let recorded = culler
        .prepare_hiding(gpu, &scene.frame, &hiding)
        .record(gpu, &mut encoder);
    for view in 0..views.len() as u32 {
        let late = culler.record_late(gpu, &mut encoder, view, &mut PlainPasses);
        assert_eq!(late.passes, u32::from(culler.hides(view)));
    }
    gpu.queue.submit([encoder.finish()]);
    culler.finish(recorded);
    [DrawList::Early, DrawList::Late, DrawList::Visible].map(|list| {
        let parts = culler.draw_parts_of(0, 0, 0, list).to_vec();
        let set = scene.frame.requests[0].set;
        let ids = parts.iter().map(|part| culler.read_part(gpu, set, part));
        let mut ids: Vec<u32> = ids.flat_map(Result::unwrap).collect();
        ids.sort_unstable();
        ids
    })
}

/// Sets of one level.
fn plain_scene(lengths: &[usize]) -> Scene {
    let mut scene = scene(&mut rng(21), lengths);
    for request in &mut scene.frame.requests {
        (request.coarser, request.range) = (None, None);
        request.errors = ErrorRange::default();
        request.world_from_local = Default::default();
        request.sphere.radius = 0.5;
    }
    scene
}

#[test]
fn a_still_view_has_nothing_late_while_others_come_and_go() {
    let gpu = gpu();
    let depth = walls(gpu);
    let mut culler = culler_for(gpu.device, CullingTier::Subgroup, Compaction::Auto);
    let mut scene = plain_scene(&[3000, 2000]);
    upload(&mut culler, gpu, &scene);
    let still = Seeing::from(7, 0.0);
    let requests = scene.frame.requests.clone();
    let mut seen = Vec::new();
    for frame in 0..300u64 {
        // Three frames with the second set, each time as another entity, and three without.
        scene.frame.requests.truncate(1);
        if frame % 6 >= 3 {
            let mut other = requests[1].clone();
            other.key = 1000 + frame / 6;
            scene.frame.requests.push(other);
        }
        // The faces of a light that goes on and off. Long enough that its records are dropped.
        let faces = match frame % 140 {
            0..9 => 0,
            9..12 | 20..30 => 6,
            _ => u64::from(frame % 7 == 0),
        };
        let others = (0..faces).map(|face| Seeing::from(100 + frame / 9 * 10 + face, face as f32));
        let views: Vec<_> = core::iter::once(still).chain(others).collect();
        let [early, late, visible] = draw(&mut culler, gpu, &mut scene, &depth, &views);
        assert!((0..views.len() as u32).all(|view| culler.hides(view)));
        if frame == 0 {
            assert!(early.is_empty() && late == visible && visible.len() > 300);
            seen = visible;
            continue;
        }
        assert_eq!(late, [] as [u32; 0], "frame {frame}");
        assert!(early == seen && visible == seen, "frame {frame}");
    }
    assert_eq!(culler.take_refusals(), []);
}

#[test]
fn a_frozen_view_draws_what_it_saw_while_others_come_and_go() {
    let gpu = gpu();
    let depth = walls(gpu);
    let mut culler = culler_for(gpu.device, CullingTier::Subgroup, Compaction::Auto);
    let mut scene = plain_scene(&[3000, 2000]);
    upload(&mut culler, gpu, &scene);
    let mut view = Seeing::from(7, 0.0);
    let [.., seen] = draw(&mut culler, gpu, &mut scene, &depth, &[view]);
    view.is_frozen = true;
    for faces in [0, 0, 6, 6, 0, 0, 12] {
        let others = (0..faces).map(|face| Seeing::from(100 + face, face as f32));
        let views: Vec<_> = core::iter::once(view).chain(others).collect();
        let [early, late, _] = draw(&mut culler, gpu, &mut scene, &depth, &views);
        assert!(early == seen && late.is_empty(), "with {faces} others");
    }
}

#[test]
fn the_views_that_came_last_stop_to_hide_if_a_binding_holds_no_more() {
    const LIMIT: u64 = 1 << 20;
    let limited = gpu_with(|limits| {
        limits.max_storage_buffer_binding_size = LIMIT;
    });
    let gpu = limited.gpu();
    let depth = walls(gpu);
    let mut culler = culler_for(gpu.device, CullingTier::Workgroup, Compaction::Auto);
    // 34 blocks, for which there are 64 records of 264 bytes in each of 8 levels: seven views fit.
    let mut scene = plain_scene(&[34_000]);
    let level = |level| CoarserLevel {
        shape: scene.frame.requests[0].shape,
        error: 1.0 + level as f32,
        sphere: None,
    };
    scene.frame.requests[0].coarser = Some((0..7).map(level).collect());
    upload(&mut culler, gpu, &scene);
    let views: Vec<_> = (0..10).map(|key| Seeing::from(key, key as f32)).collect();
    let mut seen = Vec::new();
    for count in 1..=views.len() {
        for frame in 0..2 {
            let [early, late, visible] =
                draw(&mut culler, gpu, &mut scene, &depth, &views[..count]);
            let hiding = (0..count as u32).filter(|view| culler.hides(*view));
            let hiding: Vec<_> = hiding.collect();
            let expected: Vec<_> = (0..count.min(7) as u32).collect();
            assert_eq!(hiding, expected, "of {count} views");
            if count == 1 && frame == 0 {
                seen = visible;
            } else {
                let is_same = early == seen && late.is_empty() && visible == seen;
                assert!(is_same, "of {count} views, frame {frame}");
            }
        }
        let refusals = culler.take_refusals();
        assert_eq!(refusals.len(), usize::from(count > 7), "{refusals:?}");
    }
    assert!(seen.len() > 500);
    // If another view goes, there is room again, after some time.
    let others: Vec<_> = [0, 1, 2, 3, 4, 5, 9].map(|at: usize| views[at]).into();
    for _ in 0..120 {
        let [_, late, _] = draw(&mut culler, gpu, &mut scene, &depth, &others[..1]);
        assert!(late.is_empty());
    }
    let [_, late, _] = draw(&mut culler, gpu, &mut scene, &depth, &others);
    assert!(late.is_empty());
    assert!((0..7).all(|view| culler.hides(view)));
}
