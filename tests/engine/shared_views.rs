//! Rows that share views, and rows that rest.

use crate::common::{
    Scene, compare, gpu, options, random_eye, random_scene, random_transform, random_view, rng,
    run, run_resident, upload_set,
};
use bevy_gpu_culling::cull::{
    CullRequest, Culler, CullingTier, DrawPart, Gpu, LodEye, SetId,
    layout::{ChunkView, PlanePairs, ViewPlanes},
};
use glam::{Affine3A, Vec3, Vec4};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Moves the views, some of which see levels of detail, or keeps them.
fn move_views(rng: &mut ChaCha8Rng, scene: &mut Scene, eyes: &mut [Option<LodEye>]) {
    if rng.random_bool(0.3) {
        return;
    }
    for (view, eye) in scene.frame.views.iter_mut().zip(eyes) {
        *view = random_view(rng);
        if let Some(eye) = eye {
            // Sometimes in another way than before.
            if rng.random_bool(0.1) {
                eye.resolution *= 1.5;
            }
            eye.position = Vec3::from([(); 3].map(|()| rng.random_range(-60.0..60.0)));
            *view = view.with_lods_of(*eye);
        }
    }
}

/// A random scene whose sets have up to this many instances, and how its views see levels of detail.
/// In every second case most sets have one transform, as in an app.
fn random_case(
    rng: &mut ChaCha8Rng,
    case: usize,
    (sets, max_len): (usize, usize),
) -> (Scene, Vec<Option<LodEye>>) {
    let lengths: Vec<usize> = (0..sets).map(|_| rng.random_range(1..max_len)).collect();
    let mut scene = random_scene(rng, &lengths);
    if case.is_multiple_of(2) {
        for request in scene.frame.requests.iter_mut().skip(case % 4) {
            request.world_from_local = Affine3A::IDENTITY;
        }
    }
    let mut thins = rng.clone();
    thins.set_stream(1);
    let eyes = scene.frame.views.iter().map(|_| {
        let eye = random_eye(rng, &mut thins);
        rng.random_bool(0.8).then_some(eye)
    });
    let eyes = eyes.collect();
    (scene, eyes)
}

/// Changes requests as a frame may; some move, with a probability. Returns those that changed.
fn change(rng: &mut ChaCha8Rng, scene: &mut Scene, moves: f64) -> Vec<usize> {
    let frame = &mut scene.frame;
    let mut changed = Vec::new();
    for (index, request) in frame.requests.iter_mut().enumerate() {
        if rng.random_bool(0.3) {
            request.resting = rng.random();
            changed.push(index);
        }
        // None of these makes another plan.
        if rng.random_bool(0.2) {
            if let Some(range) = &mut request.range {
                range.end += 3.0;
            }
            request.fade *= 0.7;
            request.thin_below *= 1.3;
            request.errors.end = request.errors.end.map(|end| end * 2.0);
            changed.push(index);
        }
        if rng.random_bool(moves) {
            request.world_from_local = random_transform(rng, false);
            changed.push(index);
        }
    }
    changed.dedup();
    changed
}

/// The distances from the origin of what is not far away.
const NEARBY: f32 = 100.0;

/// Whether rows of sets and views within `extent` of the origin have the same content. Planes that
/// a GPU has taken into the space of a set are rounded in another way; all else is equal. Rows that
/// rest keep nothing, in whatever order.
fn are_alike(rests: bool, extent: f32, a: &ChunkView, b: &ChunkView) -> bool {
    let mut b = *b;
    if rests {
        b.planes.order = a.planes.order;
        b.planes.band.eye = a.planes.band.eye;
    } else if a.planes.order.eye == Vec4::ZERO {
        b.planes.order.first_step = a.planes.order.first_step;
    }
    let (sides, near) = (a.planes, b.planes);
    let are_near = are_near(extent, &sides, &near);
    b.planes = ViewPlanes {
        order: b.planes.order,
        band: b.planes.band,
        ..a.planes
    };
    are_near && *a == b
}

/// The largest part of its numbers by which a plane may be off: some roundings of its normal. They
/// grow with the distance from the origin.
const MAX_OFF: f32 = 2e-6;

fn are_near(extent: f32, a: &ViewPlanes, b: &ViewPlanes) -> bool {
    let near = |a: f32, b: f32| (a - b).abs() <= MAX_OFF * (extent + a.abs().min(b.abs()));
    let all = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| near(*a, *b));
    let directions_are_near = a.planes().iter().zip(b.planes()).all(|(a, b)| {
        let off = a.truncate() - b.truncate();
        off.abs().max_element() <= MAX_OFF
    });
    let are_paired = a.pairs.is_paired != 0 && b.pairs.is_paired != 0;
    directions_are_near
        && all(
            bytemuck::cast_slice(&a.planes()),
            bytemuck::cast_slice(&b.planes()),
        )
        && all(&a.reach.to_array(), &b.reach.to_array())
        && (!are_paired || all(&numbers(&a.pairs), &numbers(&b.pairs)))
}

fn numbers(pairs: &PlanePairs) -> Vec<f32> {
    let vectors = [pairs.x, pairs.y, pairs.depth, pairs.slopes];
    let limits = [pairs.low, pairs.high];
    bytemuck::cast_slice(&vectors)
        .iter()
        .copied()
        .chain(limits)
        .collect()
}

#[test]
fn shared_views_make_the_rows_that_own_planes_make() {
    let gpu = gpu();
    let mut rng = rng(0x5a);
    let tiers = [CullingTier::Subgroup, CullingTier::Workgroup];
    let mut cullers = tiers.map(|tier| Culler::new(gpu.device, options(tier, true)).unwrap().0);
    let (mut own, _) = Culler::new(gpu.device, options(CullingTier::Workgroup, true)).unwrap();
    own.limit_own_planes(usize::MAX);
    for culler in &mut cullers {
        culler.limit_own_planes(0);
    }
    let (mut rows, mut resting, mut visible, mut paired) = (0, 0, 0, [0; 2]);
    for case in 0..12 {
        let sets = rng.random_range(1..20);
        let (mut scene, mut eyes) = random_case(&mut rng, case, (sets, 3000));
        for step in 0..6 {
            move_views(&mut rng, &mut scene, &mut eyes);
            if step > 0 {
                let changed = change(&mut rng, &mut scene, 0.1);
                // What a caller knows changes no result.
                scene.frame.changed = (step % 2 == 0).then_some(changed);
            }
            let version = cullers[0].plan_version();
            run(&mut own, gpu, &scene);
            for culler in &mut cullers {
                run(culler, gpu, &scene);
                let seen = compare(culler, gpu, &scene).unwrap();
                visible += seen.visible;
            }
            // Views that move, sets that move, and rows that rest make no other plan.
            assert_eq!(
                cullers[0].plan_version() == version,
                step > 0,
                "{case} {step}"
            );
            for culler in &cullers {
                for (index, request) in scene.frame.requests.iter().enumerate() {
                    for view in 0..request.views.len() {
                        let parts = culler.draw_parts(index, view);
                        for (part, of_own) in parts.iter().zip(own.draw_parts(index, view)) {
                            let row = |culler: &Culler, part: &DrawPart| {
                                culler.plan().batches[part.batch].chunk_views[part.row as usize]
                            };
                            let (a, b) = (row(culler, part), row(&own, of_own));
                            let rests = request.rests_in(view);
                            assert!(
                                are_alike(rests, NEARBY, &a, &b),
                                "{case} {step}: {a:?} {b:?}"
                            );
                            rows += 1;
                            resting += usize::from(rests);
                            let pairs = [a, b].map(|row| row.planes.pairs.is_paired);
                            for (paired, is_paired) in paired.iter_mut().zip(pairs) {
                                *paired += is_paired;
                            }
                            let read = culler.read_part(gpu, request.set, part).unwrap();
                            assert!(!rests || read.is_empty());
                        }
                    }
                }
                equal_filled(culler, gpu, NEARBY).unwrap();
            }
        }
    }
    println!("{rows} rows, {resting} rest, {visible} visible, {paired:?} paired");
    // Both find pairs, except for a few transforms that are even up to more or less rounding.
    assert!(
        paired[0] * 10 > paired[1] * 9 && paired[1] * 10 > paired[0] * 9,
        "{paired:?}"
    );
    assert!(rows > 5000 && resting * 20 > rows && visible > 10_000);
}

/// Compares the rows that the GPU filled with the twin's. Returns their number.
fn equal_filled(culler: &Culler, gpu: Gpu<'_>, extent: f32) -> Result<usize, String> {
    let mut rows = 0;
    for (index, batch) in culler.plan().batches.iter().enumerate() {
        let data = culler.read_batch(gpu, index).unwrap();
        assert_eq!(data.rows.len(), batch.chunk_views.len());
        for (filled, twin) in data.rows.iter().zip(&batch.chunk_views) {
            let mut twin = *twin;
            // The GPU sorts these by jobs.
            if twin.planes.order.is_far_first != 0 {
                twin.planes.order = filled.planes.order;
            }
            let pairs = [filled, &twin].map(|row| row.planes.pairs.is_paired);
            if !are_alike(false, extent, filled, &twin) || pairs[0] != pairs[1] {
                return Err(format!("{filled:?}, not {twin:?}"));
            }
            rows += 1;
        }
    }
    Ok(rows)
}

/// What 32-bit arithmetic loses there is added to the planes and to the reach of lights.
#[test]
fn rows_far_from_the_origin_are_the_twins() {
    let gpu = gpu();
    let mut rng = rng(0x62);
    let (mut culler, _) = Culler::new(gpu.device, options(CullingTier::Workgroup, true)).unwrap();
    culler.limit_own_planes(0);
    let far = 1e5;
    let mut rows = 0;
    for case in 0..12 {
        let (mut scene, _) = random_case(&mut rng, case, (12, 200));
        for request in &mut scene.frame.requests {
            request.world_from_local.translation += glam::Vec3A::new(far, -far, far);
        }
        run(&mut culler, gpu, &scene);
        rows += equal_filled(&culler, gpu, far).unwrap();
    }
    assert!(rows > 500, "{rows}");
}

#[test]
fn a_plan_that_grows_is_the_plan_that_is_built_at_once() {
    let gpu = gpu();
    let mut rng = rng(0x60);
    let culler = |own_planes| {
        let (mut culler, _) =
            Culler::new(gpu.device, options(CullingTier::Workgroup, true)).unwrap();
        culler.limit_own_planes(own_planes);
        culler
    };
    // The second one shares planes, and the third one starts to when it has more rows.
    let mut cullers = [usize::MAX, 0, 40].map(culler);
    let mut built = culler(usize::MAX);
    let (mut grown, mut rows, mut visible) = ([0; 3], 0, 0);
    for case in 0..12 {
        let sets = rng.random_range(4..24);
        let (mut scene, mut eyes) = random_case(&mut rng, case, (sets, 1200));
        // The commands of further shapes come behind all rows: such a plan is built again.
        if case % 4 < 3 {
            for request in &mut scene.frame.requests {
                request.more.clear();
            }
        }
        let first = rng.random_range(0..4);
        let mut later = scene.frame.requests.split_off(first);
        for step in 0..6 {
            move_views(&mut rng, &mut scene, &mut eyes);
            if step > 0 {
                let mut changed = change(&mut rng, &mut scene, 0.01);
                let known = scene.frame.requests.len();
                let new = rng.random_range(0..=later.len().min(6));
                scene.frame.requests.extend(later.drain(..new));
                changed.extend(known..known + new);
                scene.frame.changed = (step % 2 == 0).then_some(changed);
            }
            // Drops its plan.
            built.limit_own_planes(usize::MAX);
            run(&mut built, gpu, &scene);
            for (index, culler) in cullers.iter_mut().enumerate() {
                let version = culler.plan_version();
                run(culler, gpu, &scene);
                visible += compare(culler, gpu, &scene).unwrap().visible;
                grown[index] += u32::from(culler.plan_version() == version);
                let (plan, expected) = (culler.plan(), built.plan());
                assert_eq!(plan.batches.len(), expected.batches.len(), "{case} {step}");
                for (batch, expected) in plan.batches.iter().zip(&expected.batches) {
                    let at = format!("{case} {step} {index}");
                    assert_eq!(batch.batch, expected.batch, "{at}");
                    assert_eq!(batch.chunks, expected.chunks, "{at}");
                    assert_eq!(batch.has_rings, expected.has_rings, "{at}");
                    // A plan that has grown may list rows of which none rests any more.
                    let resting = |rests: &[bool]| {
                        let rows = rests.iter().enumerate();
                        rows.filter_map(|(row, rests)| rests.then_some(row))
                            .collect::<Vec<_>>()
                    };
                    let (a, b) = (resting(&batch.resting), resting(&expected.resting));
                    assert_eq!(a, b, "{at}");
                    assert_eq!(batch.awake_survivors, expected.awake_survivors, "{at}");
                    let both = batch.chunk_views.iter().zip(&expected.chunk_views);
                    for (row, (a, b)) in both.enumerate() {
                        let rests = batch.resting.get(row).copied().unwrap_or(false);
                        assert!(are_alike(rests, NEARBY, a, b), "{at}: {a:?} {b:?}");
                        rows += 1;
                    }
                }
                assert_eq!(plan.draws, expected.draws, "{case} {step} {index}");
            }
        }
    }
    println!("{grown:?} grown, {rows} rows, {visible} visible");
    assert!(
        grown[0] >= 40 && grown[1] >= 40 && grown[2] >= 20,
        "{grown:?}"
    );
    assert!(rows > 5000 && visible > 10_000);
}

/// The survivors of a request in all its views. If its set went, its commands must draw nothing.
fn survivors(culler: &Culler, gpu: Gpu<'_>, (index, request): (usize, &CullRequest)) -> Vec<u32> {
    let views = 0..request.views.len();
    let parts = views.flat_map(|view| culler.draw_parts(index, view));
    let is_there = culler.store().set_len(request.set).is_some();
    let read = |part| {
        if is_there {
            return culler.read_part(gpu, request.set, part).unwrap();
        }
        let (command, _) = culler.read_command(gpu, part, 0).unwrap();
        assert_eq!(command.instance_count, 0);
        Vec::new()
    };
    parts.flat_map(read).collect()
}

/// A set goes while its request rests, and another one gets its room. The plan stays, and the others
/// keep what they kept. If the request stops to rest, there is another plan.
#[test]
fn a_set_that_goes_leaves_rows_that_rest() {
    let gpu = gpu();
    let mut rng = rng(0x61);
    let (mut cases, mut kept) = (0, 0);
    for case in 0..24 {
        let (mut culler, _) =
            Culler::new(gpu.device, options(CullingTier::Workgroup, true)).unwrap();
        culler.limit_own_planes([0, usize::MAX][case % 2]);
        let sets = rng.random_range(3..12);
        let (mut scene, _) = random_case(&mut rng, case, (sets, 700));
        let frame = &mut scene.frame;
        frame.requests.iter_mut().for_each(|request| {
            request.more.clear();
            request.resting = 0;
        });
        let users = |set| {
            frame
                .requests
                .iter()
                .filter(|other| other.set == set)
                .count()
        };
        let fit = |request: &CullRequest| !request.views.is_empty() && users(request.set) == 1;
        let Some(gone) = frame.requests.iter().position(fit) else {
            continue;
        };
        run(&mut culler, gpu, &scene);
        let version = culler.plan_version();
        let all = |culler: &Culler, scene: &Scene| -> Vec<_> {
            let requests = scene.frame.requests.iter().enumerate();
            requests
                .map(|request| survivors(culler, gpu, request))
                .collect()
        };
        let mut expected = all(&culler, &scene);
        let request = &mut scene.frame.requests[gone];
        let set = core::mem::take(&mut expected[gone]);
        request.resting = (1 << request.views.len()) - 1;
        culler.store_mut().remove_set(request.set);
        scene.frame.changed = (case % 3 > 0).then(|| vec![gone]);
        run_resident(&mut culler, gpu, &scene.frame);
        assert_eq!(culler.plan_version(), version, "{case}: the set went");
        assert_eq!(all(&culler, &scene), expected, "{case}");

        // The same instances under another name.
        let mut new = scene.frame.requests[gone].clone();
        let instances = &scene.sets[new.set.0 as usize];
        (new.set, new.key, new.resting) = (SetId(1000), 1000, 0);
        upload_set(&mut culler, gpu, (new.set, instances));
        scene.frame.requests.push(new);
        scene.frame.changed = (case % 3 > 0).then(Vec::new);
        expected.push(set);
        run_resident(&mut culler, gpu, &scene.frame);
        assert_eq!(culler.plan_version(), version, "{case}: another came");
        let seen = all(&culler, &scene);
        assert_eq!(seen, expected, "{case}");
        kept += seen.iter().map(Vec::len).sum::<usize>();

        scene.frame.requests[gone].resting = 0;
        scene.frame.changed = Some(vec![gone]);
        run_resident(&mut culler, gpu, &scene.frame);
        assert_ne!(culler.plan_version(), version, "{case}: it wakes");
        assert_eq!(all(&culler, &scene), expected, "{case}: it has no set");
        cases += 1;
    }
    assert!(cases > 12 && kept > 5000, "{cases} cases, {kept} kept");
}
