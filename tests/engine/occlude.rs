//! The lists of views that hide, frame after frame, against the twins, and broken on purpose.

mod broken;
mod gaps;
mod history;

use crate::{
    common::{self, Scene, compare_shapes, gpu, options, random_scene, rng, upload},
    depth::picture::Picture,
};
use bevy_gpu_culling::{
    cull::{
        Compaction, CullRequest, CullView, Culler, CullerOptions, CullingTier, DepthBuffer,
        DrawList, Gpu, OcclusionView, Order, PlainPasses, Tuning,
        layout::{BLOCK, Bound, DepthPyramid, OCCLUSION_IS_NEW, OcclusionRow, Projection},
        reference::{self, BlockWords},
    },
    instance::PackedInstance,
};
use glam::camera::rh::{proj::directx, view};
use glam::{Mat4, UVec2, Vec3};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::{HashMap, HashSet};

const GPU_TIERS: [CullingTier; 2] = [CullingTier::Subgroup, CullingTier::Workgroup];

/// Size of the depth texture, and the viewport in it.
const SIZE: UVec2 = UVec2::new(160, 100);
const VIEWPORT: [UVec2; 2] = [UVec2::new(17, 5), UVec2::new(131, 89)];

/// The lists of a request in a view, as indices into its set.
#[derive(Clone, Debug, Default, PartialEq)]
struct Lists {
    early: Vec<u32>,
    late: Vec<u32>,
    visible: Vec<u32>,
}

/// A frame: what the camera sees, and the depth that it finds.
struct Frame {
    eye: Vec3,
    clip: Mat4,
    near_pixels: f32,
    depth: Picture,
    is_frozen: bool,
}

impl Frame {
    fn random(rng: &mut ChaCha8Rng, before: Option<&Self>) -> Self {
        let (eye, clip) = match before {
            // A still camera, or one that moves a little, or a cut.
            Some(before) if rng.random_bool(0.3) => (before.eye, before.clip),
            Some(before) if rng.random_bool(0.7) => {
                let step = Vec3::new(rng.random_range(-1.0..1.0), 0.3, 0.0);
                let clip = before.clip * Mat4::from_translation(step);
                (before.eye - step, clip)
            }
            _ => {
                // Rarely so far that whole sets lie between two samples.
                let away = if rng.random_bool(0.15) {
                    12_000.0
                } else {
                    80.0
                };
                let eye = Vec3::new(0.0, rng.random_range(-30.0..30.0), away);
                let to = Vec3::new(rng.random_range(-20.0..20.0), 0.0, 0.0);
                let view = view::look_at_mat4(eye, to, Vec3::Y);
                let aspect = VIEWPORT[1].x as f32 / VIEWPORT[1].y as f32;
                let lens = match rng.random_bool(0.3) {
                    true => directx::orthographic(-50.0, 50.0, -40.0, 40.0, 200.0, 0.0),
                    false => directx::perspective_infinite_reverse(1.0, aspect, 0.1),
                };
                (eye, lens * view)
            }
        };
        Self::seen(rng, eye, clip)
    }

    /// A camera that turns a little, and stays where it is: no cut.
    fn turned(rng: &mut ChaCha8Rng, before: &Self) -> Self {
        let angle = rng.random_range(-0.03..0.03);
        let turn = Mat4::from_translation(before.eye)
            * Mat4::from_rotation_y(angle)
            * Mat4::from_translation(-before.eye);
        Self::seen(rng, before.eye, before.clip * turn)
    }

    /// What a camera sees before random walls.
    fn seen(rng: &mut ChaCha8Rng, eye: Vec3, clip: Mat4) -> Self {
        // Walls at depths between the set's.
        let depths: Vec<_> = (0..20)
            .map(|_| {
                let at = Vec3::from_array([(); 3].map(|()| rng.random_range(-50.0..50.0)));
                clip.project_point3(at).z.clamp(0.0, 1.0)
            })
            .collect();
        let depth = Picture::walls(rng, SIZE, 1, |rng| depths[rng.random_range(0..20)]);
        Self {
            eye,
            clip,
            near_pixels: [0.0, 12.0, 1e9][rng.random_range(0..3)],
            depth,
            is_frozen: false,
        }
    }

    /// The pyramid of the viewport, as the twin makes it.
    fn pyramid(&self) -> (Vec<f32>, DepthPyramid) {
        let shape = DepthPyramid::new(VIEWPORT[0], VIEWPORT[1], 1);
        let texels = reference::pyramid(&self.depth.depths, SIZE.x, &shape);
        (texels, shape)
    }
}

/// Draws a frame of a scene in one view that hides, and reads the lists of all requests and the
/// number of instances that reach no sample.
fn draw(culler: &mut Culler, gpu: Gpu<'_>, scene: &Scene, frame: &Frame) -> (Vec<Lists>, usize) {
    let view = OcclusionView {
        view: 0,
        key: 7,
        clip_from_world: frame.clip,
        is_jittered: false,
        near_pixels: frame.near_pixels,
        requests: (0..scene.frame.requests.len() as u32).collect(),
        is_frozen: frame.is_frozen,
        depth: DepthBuffer {
            texture: frame.depth.draw(gpu),
            samples: 1,
            origin: VIEWPORT[0],
            size: VIEWPORT[1],
            range: 0.0..1.0,
        },
    };
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let prepared = culler.prepare_hiding(gpu, &scene.frame, &[view]);
    let recorded = prepared.record(gpu, &mut encoder);
    gpu.queue.submit([encoder.finish()]);
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let late = culler.record_late(gpu, &mut encoder, 0, &mut PlainPasses);
    assert_eq!(late.passes, u32::from(culler.hides(0)));
    gpu.queue.submit([encoder.finish()]);
    culler.finish(recorded);
    culler.finish(late);
    let batches = culler.late_batches(0);
    let totals = batches.map(|batch| culler.read_totals(gpu, batch).unwrap());
    let too_small = totals.map(|totals| totals.too_small as usize).sum();
    let requests = scene.frame.requests.iter().enumerate();
    let lists = requests
        .map(|(index, request)| {
            let read = |list| {
                let parts = culler.draw_parts_of(index, 0, 0, list).to_vec();
                // Not in every frame: it waits for each command.
                if culler.frame_number().is_multiple_of(4) {
                    compare_shapes(culler, gpu, request, &parts).unwrap();
                }
                let ids = parts
                    .iter()
                    .map(|part| culler.read_part(gpu, request.set, part));
                ids.flat_map(Result::unwrap).collect()
            };
            Lists {
                early: read(DrawList::Early),
                late: read(DrawList::Late),
                visible: read(DrawList::Visible),
            }
        })
        .collect();
    (lists, too_small)
}

/// The lists of [`draw`] alone.
fn lists(culler: &mut Culler, gpu: Gpu<'_>, scene: &Scene, frame: &Frame) -> Vec<Lists> {
    draw(culler, gpu, scene, frame).0
}

/// A scene of sets in one view. Each instance is in one level at most.
fn scene(rng: &mut ChaCha8Rng, lengths: &[usize]) -> Scene {
    let mut scene = random_scene(rng, lengths);
    scene.frame.views.truncate(1);
    for request in &mut scene.frame.requests {
        request.views = vec![0];
        // What is thinned out is never hidden.
        (request.fade, request.thin_below) = (0.0, 0.0);
        if request.order == Order::FarFirst {
            request.order = Order::NearFirst;
        }
    }
    scene
}

/// Sorted ids.
fn sorted(ids: &[u32]) -> Vec<u32> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids
}

/// The rows of a set's request in the tables of the frame's plan: one per level.
fn rows_of(culler: &Culler, request: usize) -> Vec<(usize, OcclusionRow, Projection)> {
    let parts = culler.draw_parts(request, 0);
    let parts = parts.iter().map(|part| {
        let batch = &culler.plan().batches[part.batch];
        let first_count = batch.chunk_views[part.row as usize].first_count;
        let mut rows = batch.occlusion.iter();
        let row = rows.find(|row| row.first_count == first_count).unwrap();
        let projections = &culler.plan().projections;
        (part.level, *row, projections[row.projection as usize])
    });
    parts.collect()
}

/// Compares what changes from frame to frame in the rows of a request, since the twins read it.
fn check_rows(
    rows: &[(usize, OcclusionRow, Projection)],
    request: &CullRequest,
    frame: &Frame,
    number: usize,
) -> Result<(), String> {
    let clip_from_set = frame.clip.as_dmat4() * Mat4::from(request.world_from_local).as_dmat4();
    let expected = Projection::new(clip_from_set, VIEWPORT[1], 1, false);
    let matrix = |projection: &Projection| {
        let unit = projection.unit;
        let [x, y, z, w] = [projection.x, projection.y, projection.z, projection.w];
        (x, y, z, w, unit)
    };
    for (_, row, projection) in rows {
        if matrix(projection) != matrix(&expected) {
            return Err("the projection of another frame".into());
        }
        if row.near_pixels != frame.near_pixels {
            return Err(format!("{} pixels of another frame", row.near_pixels));
        }
        if (row.flags & OCCLUSION_IS_NEW != 0) != (number == 0) {
            return Err(format!("flags {}", row.flags));
        }
    }
    Ok(())
}

/// What is drawn early, what is visible and what reaches no sample of a set, by the twins. `kept`
/// and `last` are bits per instance. `grown` scales the instances, to find what rounding may decide
/// differently.
fn twin(
    rows: &[(usize, OcclusionRow, Projection)],
    (instances, scales): (&[PackedInstance], &[f32]),
    (kept, last): (&[bool], &[bool]),
    (pyramid, shape): (&[f32], &DepthPyramid),
    grown: f32,
) -> [Vec<u32>; 3] {
    let [mut early, mut visible, mut small] = [(); 3].map(|()| Vec::new());
    // All levels have the same instances: the level matters for the bits alone.
    let (_, mut row, projection) = rows[0];
    row.first_instance = 0;
    row.sphere.w *= grown;
    let all = (instances, scales);
    for (block, instances_of) in instances.chunks(BLOCK as usize).enumerate() {
        let first = block * BLOCK as usize;
        let floats = scales.len() / instances.len();
        let scales_of = &scales[first * floats..][..instances_of.len() * floats];
        let bound: Bound = reference::bound(instances_of, scales_of);
        let words = |bits: &[bool]| {
            let mut words = BlockWords::default();
            for (bit, _) in bits[first..]
                .iter()
                .take(1024)
                .enumerate()
                .filter(|(_, bit)| **bit)
            {
                words[bit / 32] |= 1 << (bit % 32);
            }
            words
        };
        let (kept, last) = (words(kept), words(last));
        let ids = |words: BlockWords, into: &mut Vec<u32>| {
            let bits = (0..1024usize).filter(|bit| words[bit / 32] >> (bit % 32) & 1 != 0);
            into.extend(bits.map(|bit| (first + bit) as u32));
        };
        let block = (block as u32, &bound);
        let recalled = reference::recall((&row, &projection), block, all, &kept, &last);
        ids(recalled, &mut early);
        let occluded = reference::occlude((pyramid, shape), (&row, &projection), block, all, &kept);
        ids(occluded.visible, &mut visible);
        ids(occluded.too_small, &mut small);
    }
    [early, visible, small]
}

fn bits(ids: &[u32], len: usize) -> Vec<bool> {
    let mut bits = vec![false; len];
    for id in ids {
        bits[*id as usize] = true;
    }
    bits
}

/// Whether all of `few` is in `many`. Both are sorted.
fn is_subset(few: &[u32], many: &[u32]) -> bool {
    few.iter().all(|id| many.binary_search(id).is_ok())
}

/// What a sequence of frames had to show.
#[derive(Debug, Default)]
struct Seen {
    kept: usize,
    visible: usize,
    late: usize,
    too_small: usize,
    recalled: usize,
    borderline: usize,
}

/// Draws random sequences and compares each list of each frame with the twins.
fn sequences(
    make: &dyn Fn() -> Culler,
    plain: &mut Culler,
    gpu: Gpu<'_>,
    seeds: core::ops::Range<u64>,
) -> Result<Seen, String> {
    let mut seen = Seen::default();
    for seed in seeds {
        let mut rng = rng(seed);
        let lengths: Vec<_> = (0..rng.random_range(1..=3))
            .map(|_| 10f32.powf(rng.random_range(0.0..3.9)) as usize)
            .collect();
        let mut scene = scene(&mut rng, &lengths);
        let mut culler = make();
        if seed % 2 == 1 {
            // As in frames of many sets.
            culler.limit_own_planes(0);
        }
        let mut rests = rng.clone();
        rests.set_stream(1);
        upload(&mut culler, gpu, &scene);
        let mut frame = Frame::random(&mut rng, None);
        let mut last: HashMap<usize, Vec<u32>> = HashMap::new();
        for number in 0..6 {
            let mut changed = Vec::new();
            for (index, request) in scene.frame.requests.iter_mut().enumerate() {
                let resting = u128::from(rests.random_bool(0.15));
                if core::mem::replace(&mut request.resting, resting) != resting {
                    changed.push(index);
                }
            }
            // What a caller knows changes no list.
            scene.frame.changed = (number % 2 == 1).then_some(changed);
            scene.frame.views[0] = CullView::from_clip_from_world(&frame.clip);
            common::run(plain, gpu, &scene);
            let (all, too_small) = draw(&mut culler, gpu, &scene, &frame);
            let (pyramid, shape) = frame.pyramid();
            let (mut certain, mut possible) = (0, 0);
            for (index, lists) in all.iter().enumerate() {
                let set = &scene.sets[index];
                let kept = plain.read_survivors(gpu, &scene.frame, index, 0).unwrap();
                let kept = sorted(&kept);
                let place = format!("seed {seed}, frame {number}, set {index} of {}", set.len());
                let Lists {
                    early,
                    late,
                    visible,
                } = lists;
                let (early, late, visible) = (sorted(early), sorted(late), sorted(visible));
                let is_late = |id: &&u32| early.binary_search(id).is_err();
                let expected: Vec<_> = visible.iter().filter(is_late).copied().collect();
                if late != expected {
                    return Err(format!("{place}: late is not visible without early"));
                }
                if !is_subset(&visible, &kept) || !is_subset(&early, &kept) {
                    return Err(format!("{place}: more than the frustum keeps"));
                }
                if set.is_empty() {
                    continue;
                }
                let rows = rows_of(&culler, index);
                check_rows(&rows, &scene.frame.requests[index], &frame, number)
                    .map_err(|error| format!("{place}: {error}"))?;
                let scales = set.scale_floats();
                let before = last.get(&index).cloned().unwrap_or_default();
                let bits = (bits(&kept, set.len()), bits(&before, set.len()));
                // An instance that changes its level has no history at the new one.
                let has_levels = rows.len() > 1;
                let twin = |grown| {
                    let bits = (&bits.0[..], &bits.1[..]);
                    twin(
                        &rows,
                        (set.packed(), scales),
                        bits,
                        (&pyramid, &shape),
                        grown,
                    )
                };
                let [min_early, min, small] = twin(0.9995);
                let [max_early, max, large] = twin(1.0005);
                // A group of larger ones may be hidden no more: then each of it is looked at.
                let exact = &twin(1.0)[2];
                let all_small = small.iter().chain(&large).chain(exact);
                possible += all_small.collect::<HashSet<_>>().len();
                let is_certain =
                    |id: &&u32| is_subset(&[**id], &small) && is_subset(&[**id], &large);
                certain += exact.iter().filter(is_certain).count();
                if !is_subset(&early, &max_early) || (!has_levels && !is_subset(&min_early, &early))
                {
                    return Err(format!("{place}: not what is drawn early"));
                }
                if !is_subset(&min, &visible) {
                    return Err(format!("{place}: something visible is hidden"));
                }
                if !is_subset(&visible, &max) {
                    return Err(format!("{place}: something hidden is visible"));
                }
                seen.kept += kept.len();
                seen.visible += visible.len();
                seen.late += late.len();
                seen.recalled += early.iter().filter(|id| before.contains(id)).count();
                seen.borderline += max.len() - min.len();
                last.insert(index, visible);
            }
            if !(certain..=possible).contains(&too_small) {
                return Err(format!(
                    "seed {seed}, frame {number}: {too_small} reach no sample, by the twin \
                     {certain} to {possible}"
                ));
            }
            seen.too_small += too_small;
            // Some cameras turn alone, with the same settings: then no row changes.
            frame = match seed % 4 {
                2 | 3 => Frame {
                    near_pixels: frame.near_pixels,
                    ..Frame::turned(&mut rng, &frame)
                },
                _ => Frame::random(&mut rng, Some(&frame)),
            };
        }
    }
    Ok(seen)
}

fn culler_for(device: &wgpu::Device, tier: CullingTier, compaction: Compaction) -> Culler {
    let options = CullerOptions {
        compaction,
        ..options(tier, true)
    };
    Culler::new(device, options).unwrap().0
}

#[test]
fn lists_of_random_sequences_equal_the_twins() {
    let gpu = gpu();
    for (number, tier) in GPU_TIERS.into_iter().enumerate() {
        for compaction in [Compaction::VoteScanCompact, Compaction::Classify] {
            let mut plain = culler_for(gpu.device, tier, compaction);
            let make = || culler_for(gpu.device, tier, compaction);
            let first = 100 * number as u64;
            let seen = sequences(&make, &mut plain, gpu, first..first + 20).unwrap();
            assert!(
                seen.visible * 10 > seen.kept && seen.visible * 10 < seen.kept * 9,
                "{seen:?}"
            );
            assert!(seen.late > 100 && seen.recalled > 100, "{seen:?}");
            assert!(seen.too_small > 100, "{seen:?}");
            assert!(seen.borderline * 200 < seen.kept, "{seen:?}");
        }
    }
}

#[test]
fn small_pages_batches_and_scans_hide_the_same() {
    let gpu = gpu();
    let device = gpu.device;
    for (page, counts, few) in [(1024, 2, 0), (2048, 7, 0), (4096, 10_000, 1)] {
        let limited = || {
            let mut culler = culler_for(device, CullingTier::Subgroup, Compaction::VoteScanCompact);
            culler.limit_pages(page, counts, few);
            culler
        };
        equals_one_page(&limited, gpu);
    }
}

/// Draws random sequences and compares each list with the same of a culler of one page.
fn equals_one_page(make: &dyn Fn() -> Culler, gpu: Gpu<'_>) {
    for seed in 300..308 {
        let mut rng = rng(seed);
        let mut scene = scene(&mut rng, &[9000, 700]);
        let mut cullers = [
            make(),
            culler_for(
                gpu.device,
                CullingTier::Subgroup,
                Compaction::VoteScanCompact,
            ),
        ];
        for culler in &mut cullers {
            upload(culler, gpu, &scene);
        }
        let mut frame = Frame::random(&mut rng, None);
        for number in 0..5 {
            scene.frame.views[0] = CullView::from_clip_from_world(&frame.clip);
            let [paged, whole] = cullers.each_mut().map(|culler| {
                let lists = lists(culler, gpu, &scene, &frame);
                lists
                    .iter()
                    .map(|lists| [&lists.early, &lists.late, &lists.visible].map(|ids| sorted(ids)))
                    .collect::<Vec<_>>()
            });
            assert!(paged == whole, "seed {seed}, frame {number}");
            frame = Frame::random(&mut rng, Some(&frame));
        }
    }
}

#[test]
fn shared_views_list_the_same_in_the_same_order() {
    let gpu = gpu();
    let device = gpu.device;
    for seed in 400..408 {
        let mut rng = rng(seed);
        let mut scene = scene(&mut rng, &[20_000, 3000, 90]);
        let make = || culler_for(device, CullingTier::Subgroup, Compaction::VoteScanCompact);
        let mut cullers = [make(), make()];
        cullers[0].limit_own_planes(0);
        for culler in &mut cullers {
            upload(culler, gpu, &scene);
        }
        let mut frame = Frame::random(&mut rng, None);
        for number in 0..5 {
            scene.frame.views[0] = CullView::from_clip_from_world(&frame.clip);
            let [shared, own] =
                (cullers.each_mut()).map(|culler| lists(culler, gpu, &scene, &frame));
            assert!(shared == own, "seed {seed}, frame {number}");
            frame = Frame::random(&mut rng, Some(&frame));
        }
    }
}

#[test]
fn a_still_frame_has_nothing_late() {
    let gpu = gpu();
    let mut rng = rng(5);
    let mut culler = culler_for(gpu.device, CullingTier::Subgroup, Compaction::Auto);
    let mut scene = scene(&mut rng, &[20_000]);
    upload(&mut culler, gpu, &scene);
    let mut frame = Frame::random(&mut rng, None);
    frame.near_pixels = 1e9;
    scene.frame.views[0] = CullView::from_clip_from_world(&frame.clip);
    let first = lists(&mut culler, gpu, &scene, &frame);
    assert!(!first[0].late.is_empty());
    let second = lists(&mut culler, gpu, &scene, &frame);
    assert!(is_subset(
        &sorted(&first[0].visible),
        &sorted(&second[0].early)
    ));
    assert!(second[0].late.is_empty());
    assert_eq!(second[0].visible, first[0].visible);
}

#[test]
fn a_frozen_view_draws_what_it_saw() {
    let gpu = gpu();
    for tier in GPU_TIERS {
        let mut rng = rng(5);
        let make = || culler_for(gpu.device, tier, Compaction::Auto);
        let mut culler = make();
        let mut scene = scene(&mut rng, &[20_000]);
        upload(&mut culler, gpu, &scene);
        let mut frame = Frame::random(&mut rng, None);
        scene.frame.views[0] = CullView::from_clip_from_world(&frame.clip);
        let live = lists(&mut culler, gpu, &scene, &frame).remove(0);
        let seen = sorted(&live.visible);
        assert!(!seen.is_empty());

        // The camera goes on, and other walls stand there: nothing is tested against them.
        let mut frozen = Frame::random(&mut rng, None);
        frozen.is_frozen = true;
        for _ in 0..3 {
            let lists = lists(&mut culler, gpu, &scene, &frozen).remove(0);
            assert_eq!(sorted(&lists.visible), seen);
            assert_eq!(sorted(&lists.early), seen);
            assert!(lists.late.is_empty());
            frozen.near_pixels = 0.0;
        }

        // From then on, it hides again.
        frame.depth = frozen.depth;
        let again = lists(&mut culler, gpu, &scene, &frame).remove(0);
        let mut fresh = make();
        upload(&mut fresh, gpu, &scene);
        let expected = lists(&mut fresh, gpu, &scene, &frame).remove(0);
        assert_eq!(sorted(&again.visible), sorted(&expected.visible));
        assert_ne!(sorted(&again.visible), seen);

        // Without a frame to remember, it draws what the frustum keeps.
        let mut blind = make();
        upload(&mut blind, gpu, &scene);
        frame.is_frozen = true;
        frame.near_pixels = 1e9;
        for _ in 0..2 {
            let lists = lists(&mut blind, gpu, &scene, &frame).remove(0);
            let mut plain = make();
            upload(&mut plain, gpu, &scene);
            common::run(&mut plain, gpu, &scene);
            let kept = plain.read_survivors(gpu, &scene.frame, 0, 0).unwrap();
            assert_eq!(sorted(&lists.visible), sorted(&kept));
        }
    }
}

#[test]
fn the_cpu_tier_and_other_compactions_hide_nothing() {
    let gpu = gpu();
    let mut rng = rng(6);
    let mut scene = scene(&mut rng, &[3000]);
    let frame = Frame::random(&mut rng, None);
    scene.frame.views[0] = CullView::from_clip_from_world(&frame.clip);
    for (tier, compaction) in [
        (CullingTier::Cpu, Compaction::Auto),
        (CullingTier::Subgroup, Compaction::LookBack),
        (CullingTier::Subgroup, Compaction::NaiveAtomic),
    ] {
        let mut culler = culler_for(gpu.device, tier, compaction);
        upload(&mut culler, gpu, &scene);
        let lists = lists(&mut culler, gpu, &scene, &frame);
        assert!(!culler.hides(0));
        let kept = culler.read_survivors(gpu, &scene.frame, 0, 0).unwrap();
        assert_eq!((&lists[0].early, &lists[0].visible), (&kept, &kept));
        assert!(lists[0].late.is_empty());
    }
}

/// Compactions without `recall` do not run while a view hides.
#[test]
fn a_tuning_of_other_compactions_hides_the_same() {
    let gpu = gpu();
    let device = gpu.device;
    for step in [Compaction::HillisSteele, Compaction::LookBack] {
        let make = || {
            let options = CullerOptions {
                compaction: Compaction::Auto,
                tuning: Some(Tuning::new([(u64::MAX, step)])),
                ..options(CullingTier::Subgroup, true)
            };
            Culler::new(device, options).unwrap().0
        };
        let mut plain = culler_for(device, CullingTier::Subgroup, Compaction::VoteScanCompact);
        sequences(&make, &mut plain, gpu, 20..24).unwrap();
    }
}
