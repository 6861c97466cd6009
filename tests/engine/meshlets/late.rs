//! Meshlets of late lists: what the depth of a view hides, against the twin.

use super::{
    MeshletScene, Run, TIERS,
    check::{Seen, compare, compare_batches},
    checked, cullers, meshlet_scene,
};
use crate::{
    common::{gpu, gpu_with, options, rng},
    depth::picture::Picture,
};
use bevy_gpu_culling::cull::{
    CullView, Culler, CullingTier, DepthBuffer, Expansion, Gpu, OcclusionView, Order, PlainPasses,
    layout::DepthPyramid,
    meshlets::{MeshletCuller, MeshletExpansion, MeshletOptions, MeshletStage},
    reference,
};
use glam::camera::rh::{proj::directx, view};
use glam::{Mat4, UVec2, Vec3};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Size of the depth texture, and the viewport in it.
const SIZE: UVec2 = UVec2::new(160, 100);
const VIEWPORT: [UVec2; 2] = [UVec2::new(17, 5), UVec2::new(131, 89)];

/// What a camera sees, and the depth that it finds.
struct Sight {
    clip: Mat4,
    depth: Picture,
}

impl Sight {
    fn random(rng: &mut ChaCha8Rng) -> Self {
        let eye = Vec3::new(0.0, rng.random_range(-30.0..30.0), 80.0);
        let to = Vec3::new(rng.random_range(-20.0..20.0), 0.0, 0.0);
        let aspect = VIEWPORT[1].x as f32 / VIEWPORT[1].y as f32;
        let lens = match rng.random_bool(0.3) {
            true => directx::orthographic(-50.0, 50.0, -40.0, 40.0, 200.0, 0.0),
            false => directx::perspective_infinite_reverse(1.0, aspect, 0.1),
        };
        let clip = lens * view::look_at_mat4(eye, to, Vec3::Y);
        // Walls at depths between the set's.
        let depth = Picture::walls(rng, SIZE, 1, |rng| {
            let at = Vec3::from_array([(); 3].map(|()| rng.random_range(-50.0..50.0)));
            clip.project_point3(at).z.clamp(0.0, 1.0)
        });
        Self { clip, depth }
    }
}

/// A scene that may be hidden in its only view. Some requests draw no list of what is visible.
fn scene(rng: &mut ChaCha8Rng, sight: &Sight) -> MeshletScene {
    let lengths: Vec<_> = (0..rng.random_range(1..4))
        .map(|_| rng.random_range(1..1500))
        .collect();
    let counts = [rng.random_range(1..40), rng.random_range(1..200)];
    let mut scene = meshlet_scene(rng, &lengths, &counts);
    let frame = &mut scene.scene.frame;
    frame.views = vec![CullView::from_clip_from_world(&sight.clip)];
    for request in &mut frame.requests {
        request.views = vec![0];
        // What is thinned out, or far first, is never hidden.
        (request.fade, request.thin_below) = (0.0, 0.0);
        if request.order == Order::FarFirst {
            request.order = Order::NearFirst;
        }
    }
    for request in &mut scene.requests {
        request.draws_visible = vec![rng.random_bool(0.7)];
    }
    scene
}

impl Run {
    /// Draws a frame in which the view may hide what the scene has.
    fn hiding_frame(&mut self, gpu: Gpu<'_>, scene: &MeshletScene, sight: &Sight) {
        let Gpu { device, queue } = gpu;
        self.upload(gpu, scene);
        let frame = &scene.scene.frame;
        let view = OcclusionView {
            view: 0,
            key: 7,
            clip_from_world: sight.clip,
            is_jittered: false,
            near_pixels: 12.0,
            requests: (0..frame.requests.len() as u32).collect(),
            is_frozen: false,
            depth: DepthBuffer {
                texture: sight.depth.draw(gpu),
                samples: 1,
                origin: VIEWPORT[0],
                size: VIEWPORT[1],
                range: 0.0..1.0,
            },
        };
        self.culler.prepare_hiding(gpu, frame, &[view]);
        self.meshlets
            .prepare(gpu, &self.culler, frame, &scene.requests);
        let mut encoder = device.create_command_encoder(&Default::default());
        let recorded = self.culler.prepared().unwrap().record_with(
            gpu,
            &mut encoder,
            &mut PlainPasses,
            &mut [&mut self.meshlets],
        );
        let passes = &mut PlainPasses;
        let late = self.culler.record_late(gpu, &mut encoder, 0, passes);
        self.meshlets
            .record_late(&self.culler, device, &mut encoder, 0, passes);
        queue.submit([encoder.finish()]);
        self.culler.finish(recorded);
        self.culler.finish(late);
        self.meshlets.finish();
    }

    /// Compares all lists with the twins; what was seen of the early lists, and of the late ones.
    fn check_hiding(
        &self,
        gpu: Gpu<'_>,
        scene: &MeshletScene,
        sight: &Sight,
    ) -> Result<[Seen; 2], String> {
        let shape = DepthPyramid::new(VIEWPORT[0], VIEWPORT[1], 1);
        let texels = reference::pyramid(&sight.depth.depths, SIZE.x, &shape);
        let cullers = (&self.culler, &self.meshlets);
        let late = (self.culler.late_batches(0), Some((&texels[..], &shape)));
        Ok([
            compare(cullers, gpu, &scene.scene)?,
            compare_batches(cullers, gpu, &scene.scene, late)?,
        ])
    }
}

/// Draws random scenes, each for some frames, with a run.
fn sights(run: &mut Run, gpu: Gpu<'_>, seeds: core::ops::Range<u64>) -> Result<[Seen; 2], String> {
    let mut all = [Seen::default(); 2];
    for seed in seeds {
        let mut rng = rng(200 + seed);
        let mut sight = Sight::random(&mut rng);
        let scene = scene(&mut rng, &sight);
        for frame in 0..3 {
            run.hiding_frame(gpu, &scene, &sight);
            let seen = run.check_hiding(gpu, &scene, &sight);
            let seen = seen.map_err(|error| format!("seed {seed}, frame {frame}: {error}"))?;
            for (all, seen) in all.iter_mut().zip(seen) {
                *all += seen;
            }
            sight.depth = Sight::random(&mut rng).depth;
        }
    }
    Ok(all)
}

#[test]
fn meshlets_of_late_lists_are_hidden_as_the_twins_are() {
    assert_hidden_by([
        MeshletExpansion::Division,
        MeshletExpansion::By(Expansion::OneBucket),
    ]);
}

#[test]
fn further_expansions_hide_as_the_twins() {
    assert_hidden_by([
        MeshletExpansion::By(Expansion::Po2Buckets),
        MeshletExpansion::By(Expansion::PrefixSearch),
    ]);
}

fn assert_hidden_by(ways: [MeshletExpansion; 2]) {
    let gpu = gpu();
    for (tier, expansion) in TIERS
        .into_iter()
        .flat_map(|tier| ways.map(|way| (tier, way)))
    {
        let room = MeshletOptions {
            expansion,
            ..checked()
        };
        let mut run = cullers(gpu.device, tier, room);
        let fail = |error| panic!("{expansion}, {tier}: {error}");
        let seen = sights(&mut run, gpu, 0..6).unwrap_or_else(fail);
        // As in frames of many sets.
        run.culler.limit_own_planes(0);
        let shared = sights(&mut run, gpu, 0..6).unwrap_or_else(fail);
        assert_eq!(shared, seen, "{expansion}, {tier}: with shared views");
        let [early, late] = seen;
        assert_eq!(run.meshlets.expansion(), Some(expansion));
        assert_eq!(early.hidden, 0, "{early:?}");
        let some = late.tested / 50;
        assert!(
            late.hidden > some && late.visible > some && late.facing_away > some,
            "{late:?}"
        );
        assert!(late.borderline * 10_000 < late.tested, "{late:?}");
    }
}

/// A device with 8 storage buffers per stage hides meshlets by the division, and with 9 it expands
/// what is early by buckets.
#[test]
fn few_storage_buffers_hide_the_same() {
    for (buffers, expected) in [
        (8, MeshletExpansion::Division),
        (9, MeshletExpansion::By(Expansion::OneBucket)),
    ] {
        let limited = gpu_with(|limits| {
            limits.max_storage_buffers_per_shader_stage = buffers;
        });
        let gpu = limited.gpu();
        let room = MeshletOptions {
            expansion: MeshletExpansion::By(Expansion::OneBucket),
            ..checked()
        };
        let mut run = cullers(gpu.device, CullingTier::Workgroup, room);
        let [_, late] = sights(&mut run, gpu, 0..3).unwrap();
        assert!(late.hidden > 0, "{late:?}");
        assert_eq!(run.meshlets.expansion(), Some(expected));
        let notes = run.meshlets.take_notes();
        assert!(
            notes.iter().any(|note| note.contains("storage buffers")),
            "{notes:?}"
        );
    }
}

#[test]
fn counters_of_late_lists_add_up() {
    let gpu = gpu();
    let device = gpu.device;
    let mut run = cullers(device, TIERS[0], checked());
    let mut rng = rng(7);
    let sight = Sight::random(&mut rng);
    let scene = scene(&mut rng, &sight);
    run.hiding_frame(gpu, &scene, &sight);
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let [early, late] = run.check_hiding(gpu, &scene, &sight).unwrap();
    let counts = run.meshlets.take_counts().unwrap();
    let sum = |of: fn(&bevy_gpu_culling::cull::meshlets::MeshletRowCount) -> u64| {
        counts.rows.iter().map(of).sum::<u64>()
    };
    assert_eq!(sum(|row| row.tested), early.tested + late.tested);
    assert_eq!(sum(|row| row.hidden), late.hidden);
    assert_eq!(
        sum(|row| row.facing_away),
        early.facing_away + late.facing_away
    );
    assert_eq!(sum(|row| row.visible), early.visible + late.visible);
    assert!(late.hidden > 0);
}

/// The comparison detects a hidden test that is broken.
#[test]
fn a_broken_hidden_test_is_seen() {
    let gpu = gpu();
    let division = MeshletExpansion::Division;
    let buckets = MeshletExpansion::By(Expansion::OneBucket);
    let test = "return is_hidden(projection, sphere);";
    for (expansion, from, to) in [
        (division, test, "return false;"),
        (division, test, "return !is_hidden(projection, sphere);"),
        (division, "is_candidate & !hidden", "is_candidate"),
        (
            division,
            "survives & found.hidden",
            "survives & found.visible",
        ),
        (division, "atomicStore(&item_hidden, 0u);", ""),
        (
            division,
            "meshlet_rows[r].projection, sphere",
            "meshlet_rows[r].projection, meshlet.sphere",
        ),
        (buckets, test, "return false;"),
        (buckets, "row_hidden += u32(found.hidden);", ""),
        (buckets, "atomicAdd(&group_hidden, row_hidden);", ""),
    ] {
        let (culler, _) = Culler::new(gpu.device, options(TIERS[0], true)).unwrap();
        let edit = move |stage: MeshletStage, source: String| match stage {
            MeshletStage::Vote => source.replace(from, to),
            _ => source,
        };
        let room = MeshletOptions {
            expansion,
            ..checked()
        };
        let meshlets = MeshletCuller::with_sources(gpu.device, TIERS[0], room, edit);
        let meshlets = meshlets.unwrap().unwrap();
        let mut run = Run { culler, meshlets };
        let seen = sights(&mut run, gpu, 0..6).is_err();
        assert!(seen, "{from:?} -> {to:?} is not seen");
    }
}
