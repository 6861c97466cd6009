//! Small sets that share pages: their neighbors lie within what would be their last block.

use super::check::{check, rungs, with};
use crate::common::{Scene, gpu, random_scene, rng, run};
use bevy_gpu_culling::{
    cull::{
        CullView, Culler, SetId,
        layout::{BLOCK, Bound, GRANULE},
        reference,
    },
    instance::InstanceSet,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Many sets of 1 to 3,000 instances, each with a view that keeps everything. If a kernel reads a
/// neighbor's instances, some of them survive.
fn small_sets(rng: &mut ChaCha8Rng) -> Scene {
    let count = rng.random_range(10..40);
    let lengths: Vec<_> = (0..count).map(|_| rng.random_range(1..=3000)).collect();
    let mut scene = random_scene(rng, &lengths);
    let everything = scene.frame.views.len() as u32;
    scene.frame.views.truncate(6);
    scene.frame.views.push(CullView::EVERYTHING);
    let views = scene.frame.views.len() as u32;
    for request in &mut scene.frame.requests {
        request
            .views
            .retain(|view| *view + 1 < views && *view < everything);
        request.views.push(views - 1);
        request.range = None;
    }
    for set in &mut scene.sets {
        if rng.random() {
            *set = core::mem::take(set).sorted();
        }
    }
    scene
}

/// Asserts that a bound on the GPU is the twin's, up to rounding.
fn assert_bound(set: &InstanceSet, block: usize, bound: &Bound) {
    let first = block * BLOCK as usize;
    let end = set.len().min(first + BLOCK as usize);
    let floats = set.scale_floats().len() / set.len();
    let scales = &set.scale_floats()[first * floats..end * floats];
    let twin = reference::bound(&set.packed()[first..end], scales);
    let near = |a: f32, b: f32| (a - b).abs() <= 1e-3 * (1.0 + b.abs());
    assert!(
        bound.center.distance(twin.center) < 1e-3
            && near(bound.radius, twin.radius)
            && near(bound.max_scale, twin.max_scale)
            && near(bound.min_scale, twin.min_scale)
            && bound.gaps == twin.gaps,
        "block {block} of {}: {bound:?}, not {twin:?}",
        set.len()
    );
}

/// Where regions lie, in the pages that have several.
fn assert_places(culler: &Culler, scene: &Scene) {
    let mut regions: Vec<_> = (0..scene.sets.len() as u64)
        .flat_map(|id| culler.store().set_regions(SetId(id)))
        .collect();
    regions.sort_by_key(|region| (region.page, region.first));
    for pair in regions.windows(2) {
        let [a, b] = pair else { continue };
        let blocks = a.capacity.div_ceil(BLOCK);
        if a.page == b.page {
            assert!(a.first + a.capacity <= b.first);
            assert!(a.first_bound + blocks <= b.first_bound);
        }
        assert_eq!(a.first % GRANULE + a.capacity % GRANULE, 0);
    }
    let within = regions.iter().filter(|region| region.first % BLOCK != 0);
    assert!(within.count() * 2 > regions.len(), "{regions:?}");
}

#[test]
fn small_sets_that_share_pages_equal_the_twin_in_every_compaction() {
    let gpu = gpu();
    let mut rng = rng(0x128);
    let cullers = rungs().enumerate().map(|(k, (compaction, tier))| {
        let options = with(compaction, tier, k % 2 == 0);
        Culler::new(gpu.device, options).unwrap().0
    });
    let mut cullers: Vec<_> = cullers.collect();
    let mut survivors = 0;
    // Each case has other sets than the one before: places get other tenants.
    for case in 0..8 {
        let scene = small_sets(&mut rng);
        for culler in &mut cullers {
            let fresh = case % 3 == 2;
            if fresh {
                let ids: Vec<_> = culler.store().set_ids().collect();
                for id in ids {
                    culler.store_mut().remove_set(id);
                }
            }
            run(culler, gpu, &scene);
            let name = format!("case {case}, {} on {}", culler.compaction(), culler.tier());
            if fresh {
                assert_places(culler, &scene);
            }
            let seen = check(culler, gpu, &scene);
            survivors += seen.unwrap_or_else(|error| panic!("{name}: {error}"));
            for (id, set) in scene.sets.iter().enumerate() {
                let bounds = culler.store().read_bounds(gpu, SetId(id as u64)).unwrap();
                assert_eq!(bounds.len(), set.len().div_ceil(BLOCK as usize), "{name}");
                for (block, bound) in bounds.iter().enumerate() {
                    assert_bound(set, block, bound);
                }
            }
        }
    }
    assert!(survivors > 1_000_000, "{survivors}");
}
