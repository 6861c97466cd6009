//! The survivors of all rows expanded together: every expansion draws what the division draws, and
//! both are the twins.

use super::{
    Levels, MeshletScene, Run, TIERS, add_request, check::Seen, checked, end_of, fixed_scene,
    meshlet_scene, random_meshlets, random_run, rows_find_room, see_levels, set_levels,
};
use crate::common::{gpu, gpu_with, options, rng};
use bevy_gpu_culling::cull::{
    CoarserLevel, CullError, CullView, Culler, CullingTier, Expansion, Gpu,
    meshlets::{MeshletCuller, MeshletExpansion, MeshletOptions, MeshletStage, SeenFaces},
};
use rand::RngExt;
use wgpu::Device;

/// A run of the division, and one of another way over the same scenes.
struct Pair {
    division: Run,
    items: Run,
}

fn run(device: &Device, tier: CullingTier, expansion: MeshletExpansion) -> Run {
    let room = MeshletOptions {
        expansion,
        ..checked()
    };
    super::cullers(device, tier, room)
}

impl Pair {
    fn new(device: &Device, tier: CullingTier, expansion: Expansion) -> Self {
        Self {
            division: run(device, tier, MeshletExpansion::Division),
            items: run(device, tier, MeshletExpansion::By(expansion)),
        }
    }

    /// Draws a frame both ways, and compares all that they wrote.
    fn frame(&mut self, gpu: Gpu<'_>, scene: &MeshletScene) -> Result<Seen, String> {
        self.division.frame(gpu, scene);
        self.items.frame(gpu, scene);
        let seen = self.items.check(gpu, scene)?;
        for batch in 0..self.items.culler.plan().batches.len() {
            let read = |run: &Run| {
                let has = run.meshlets.survivors(batch).is_some();
                has.then(|| run.meshlets.read_batch(gpu, batch).unwrap())
            };
            if read(&self.items) != read(&self.division) {
                return Err(format!("batch {batch} is not what the division draws"));
            }
        }
        Ok(seen)
    }

    /// The expansion in use.
    fn is_by_items(&self) -> bool {
        matches!(
            self.items.meshlets.expansion(),
            Some(MeshletExpansion::By(_))
        )
    }
}

/// Every expansion on both tiers.
fn each(mut test: impl FnMut(&Device, Gpu<'_>, &mut Pair, &str)) {
    let gpu = gpu();
    let device = gpu.device;
    for tier in TIERS {
        for expansion in Expansion::ALL {
            let mut pair = Pair::new(device, tier, *expansion);
            test(device, gpu, &mut pair, &format!("{expansion} on {tier}"));
        }
    }
}

#[test]
fn every_expansion_is_the_division_on_random_scenes() {
    let mut all = Seen::default();
    each(|_, gpu, pair, name| {
        for seed in 0..4 {
            let mut rng = rng(100 + seed);
            let lengths: Vec<_> = (0..rng.random_range(1..4))
                .map(|_| rng.random_range(0..1200))
                .collect();
            let counts = [rng.random_range(1..40), rng.random_range(1..200)];
            let scene = meshlet_scene(&mut rng, &lengths, &counts);
            all += pair
                .frame(gpu, &scene)
                .unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
            assert!(pair.is_by_items() || !pair.items.meshlets.has_gpu_work());
        }
    });
    let some = all.tested / 20;
    assert!(
        all.visible > some && all.outside > some && all.facing_away > some && all.coarser > some,
        "{all:?}"
    );
}

/// No survivor, one, and numbers around a word and a tile of bits, of meshlets and of sources.
#[test]
fn every_expansion_is_the_division_at_every_edge() {
    each(|_, gpu, pair, name| {
        for instances in [0, 1, 31, 33, 127, 128, 129, 1023, 1025] {
            for meshlets in [1, 2, 31, 33, 128, 129, 257] {
                let scene = fixed_scene(instances, meshlets);
                let seen = pair.frame(gpu, &scene);
                let seen = seen.unwrap_or_else(|e| panic!("{name}, {instances} x {meshlets}: {e}"));
                assert!(seen.visible >= (instances * meshlets) as u64);
            }
        }
    });
}

/// A mesh with as many levels as given, of this many meshlets and fewer, and a camera that sees
/// survivors at many of them.
fn levels_scene(instances: usize, meshlets: usize, levels: usize) -> MeshletScene {
    let mut scene = fixed_scene(instances, meshlets);
    let mut rng = rng(9);
    let full: &mut Levels = &mut scene.meshes[0];
    full.truncate(1);
    for level in 1..levels {
        let end = end_of(full.iter().rev().find(|run| !run.is_empty()).unwrap());
        full.push(random_run(
            &mut rng,
            meshlets - level * meshlets / levels,
            end,
        ));
    }
    let request = &mut scene.scene.frame.requests[0];
    let shape = request.shape;
    let level = |level: usize| CoarserLevel {
        shape,
        error: 8.0 * level as f32 / levels as f32,
        sphere: None,
    };
    request.coarser = Some((1..levels).map(level).collect::<Vec<_>>().into());
    set_levels(request, &scene.meshes[0], 300);
    see_levels(&mut scene);
    scene
}

/// Forty levels, each with another number of meshlets, in two views; then a view that sees nothing,
/// so that rows in between are empty.
#[test]
fn many_levels_and_empty_rows_are_the_division() {
    each(|_, gpu, pair, name| {
        let mut scene = levels_scene(1500, 120, 40);
        let seen = pair.frame(gpu, &scene);
        let seen = seen.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(seen.coarser > seen.tested / 2, "{seen:?}");
        let nothing = CullView::EVERYTHING.sorted_toward(glam::Vec3::Z);
        let views = &mut scene.scene.frame.views;
        views[0] = nothing;
        scene.scene.frame.requests[0].views = vec![1, 0, 1];
        scene.requests[0].faces = vec![SeenFaces::Front; 3];
        pair.frame(gpu, &scene)
            .unwrap_or_else(|error| panic!("{name}, empty rows: {error}"));
    });
}

/// Levels without meshlets are drawn whole; meshes come and go, and so do their numbers.
#[test]
fn meshes_without_meshlets_and_meshes_that_change_are_the_division() {
    each(|_, gpu, pair, name| {
        let mut scene = fixed_scene(500, 20);
        add_request(&mut scene);
        for meshlets in [90, 3, 300] {
            scene.meshes[1] = random_meshlets(&mut rng(2), meshlets);
            set_levels(&mut scene.scene.frame.requests[1], &scene.meshes[1], 300);
            pair.frame(gpu, &scene)
                .unwrap_or_else(|error| panic!("{name}, {meshlets}: {error}"));
        }
        scene.meshes[1] = vec![vec![]];
        pair.frame(gpu, &scene)
            .unwrap_or_else(|error| panic!("{name}, none: {error}"));
        scene.meshes[0] = vec![vec![]];
        pair.frame(gpu, &scene).unwrap();
        assert_eq!(pair.items.meshlets.expansion(), None, "{name}");
    });
}

/// Rows that do not fit are drawn whole, and are no sources.
#[test]
fn rows_without_room_are_no_sources() {
    for tier in TIERS {
        for expansion in Expansion::ALL {
            rows_find_room(tier, MeshletExpansion::By(*expansion));
        }
    }
}

#[test]
fn meshlets_are_divided_unless_asked_otherwise() {
    let gpu = gpu();
    let mut run = run(gpu.device, TIERS[0], MeshletExpansion::Auto);
    let (plain, leveled) = (fixed_scene(300, 20), levels_scene(300, 20, 3));
    let by = MeshletExpansion::By;
    let mut expansion_of = |way, scene| {
        run.meshlets.set_expansion(way);
        run.frame(gpu, scene);
        run.check(gpu, scene).unwrap();
        assert_eq!(run.meshlets.take_notes(), [""; 0]);
        run.meshlets.expansion().unwrap()
    };
    for (way, used) in [
        (MeshletExpansion::Auto, MeshletExpansion::Division),
        (by(Expansion::Po2Buckets), by(Expansion::Po2Buckets)),
        (MeshletExpansion::Division, MeshletExpansion::Division),
    ] {
        for _ in 0..2 {
            assert_eq!(expansion_of(way, &plain), used, "{way}");
            assert_eq!(expansion_of(way, &leveled), used, "{way}");
        }
    }
}

/// A device that cannot expand survivors together divides them, and says so once.
#[test]
fn what_the_device_cannot_expand_is_divided() {
    let scene = levels_scene(300, 20, 3);
    let by = MeshletExpansion::By;
    // Too few buffers per stage; a binding that does not hold the list of items.
    type Lower = fn(&mut wgpu::Limits);
    let lowers: [(MeshletExpansion, Lower, [&str; 2]); 3] = [
        (
            by(Expansion::OneBucket),
            |limits| limits.max_storage_buffers_per_shader_stage = 8,
            ["\"one-bucket\" of meshlets needs 9", "has 8"],
        ),
        (
            by(Expansion::Po2Buckets),
            |limits| limits.max_storage_buffers_per_shader_stage = 8,
            ["\"po2-buckets\" of meshlets needs 9", "has 8"],
        ),
        (
            by(Expansion::ItemList),
            |limits| limits.max_storage_buffer_binding_size = 1 << 16,
            ["\"item-list\" needs", "binds 65536"],
        ),
    ];
    for (way, lower, says) in lowers {
        let limited = gpu_with(lower);
        let gpu = limited.gpu();
        let mut run = run(gpu.device, CullingTier::Workgroup, way);
        let mut notes = Vec::new();
        // With more survivors it is tried again, but not told again.
        for scene in [&scene, &scene, &levels_scene(500, 20, 3)] {
            run.frame(gpu, scene);
            run.check(gpu, scene).unwrap();
            assert_eq!(run.meshlets.expansion(), Some(MeshletExpansion::Division));
            assert_eq!(run.meshlets.take_errors(), [] as [CullError; 0]);
            notes.extend(run.meshlets.take_notes());
        }
        let [note] = &notes[..] else {
            panic!("{way}: {notes:?}")
        };
        // Another expansion is not refused for what was refused to this one.
        if way == by(Expansion::ItemList) {
            run.meshlets.set_expansion(by(Expansion::OneBucket));
            run.frame(gpu, &scene);
            run.check(gpu, &scene).unwrap();
            assert_eq!(run.meshlets.expansion(), Some(by(Expansion::OneBucket)));
        }
        let says = [&["meshlets are expanded by \"division\""], &says[..]].concat();
        assert!(says.iter().all(|part| note.contains(part)), "{note}");
    }
}

/// The comparison detects every broken line of the vote by items, so it can fail.
#[test]
fn a_broken_vote_by_items_is_seen() {
    let gpu = gpu();
    for (stage, from, to) in [
        // clear
        (MeshletStage::Expand, "words[cell] = vec4<u32>(0u);", ""),
        (
            MeshletStage::Expand,
            "source_count = spans.totals.source_count;",
            "source_count = spans.totals.source_count - 1u;",
        ),
        (MeshletStage::Expand, "cell < cells;", "cell < cells / 2u;"),
        // vote_items
        (
            MeshletStage::Vote,
            "first_source <= source",
            "first_source < source",
        ),
        (
            MeshletStage::Vote,
            "first + spans.rows[low].survivor_count",
            "first + 2u * spans.rows[low].survivor_count",
        ),
        (MeshletStage::Vote, "source < row_sources.y", "true"),
        (MeshletStage::Vote, "source >= row_sources.x &&", ""),
        (MeshletStage::Vote, "first_meshlet + item", "first_meshlet"),
        (MeshletStage::Vote, "first_survivor + i]", "first_survivor]"),
        (
            MeshletStage::Vote,
            "item * spans.rows[r].tile_count + tile",
            "item * spans.rows[r].tile_count",
        ),
        (
            MeshletStage::Vote,
            "item * spans.rows[r].tile_count + tile",
            "item + tile",
        ),
        (MeshletStage::Vote, "+ bit / 32u]", "]"),
        (
            MeshletStage::Vote,
            "u32(found.outside)",
            "u32(found.visible)",
        ),
        (MeshletStage::Vote, "if (found.visible) {", "if (true) {"),
        (
            MeshletStage::Vote,
            "        row_outside = 0u;\n        row_hidden = 0u;\n",
            "",
        ),
        (
            MeshletStage::Vote,
            "atomicAdd(&group_outside, row_outside);",
            "",
        ),
        (MeshletStage::Vote, "atomicLoad(&group_row) - 1u", "0u"),
        (
            MeshletStage::Vote,
            "    add_found();\n    var low",
            "    var low",
        ),
        (
            MeshletStage::Vote,
            "atomicExchange(&group_outside, 0u)",
            "atomicLoad(&group_outside)",
        ),
        // scan
        (
            MeshletStage::Scan,
            "ones.x + ones.y + ones.z + ones.w",
            "ones.x + ones.y + ones.z",
        ),
    ] {
        for tier in TIERS {
            let (culler, _) = Culler::new(gpu.device, options(tier, true)).unwrap();
            let found = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            let is_found = found.clone();
            let edit = move |of: MeshletStage, source: String| {
                if of == stage && source.contains(from) {
                    is_found.store(true, std::sync::atomic::Ordering::Relaxed);
                }
                match of == stage {
                    true => source.replace(from, to),
                    false => source,
                }
            };
            let room = MeshletOptions {
                expansion: MeshletExpansion::By(Expansion::OneBucket),
                ..checked()
            };
            let meshlets = MeshletCuller::with_sources(gpu.device, tier, room, edit);
            let meshlets = meshlets.unwrap().unwrap();
            let mut run = Run { culler, meshlets };
            let seen = (0..3).any(|seed| {
                // The second frame finds what the first one left.
                let scene = meshlet_scene(&mut rng(seed), &[3000, 2000], &[150, 20]);
                let other = meshlet_scene(&mut rng(seed + 50), &[3000, 2000], &[150, 20]);
                [scene, other].iter().any(|scene| {
                    run.frame(gpu, scene);
                    run.check(gpu, scene).is_err()
                })
            });
            assert!(
                found.load(std::sync::atomic::Ordering::Relaxed),
                "no {from:?}"
            );
            assert!(seen, "{stage:?} on {tier}: {from:?} -> {to:?} is not seen");
        }
    }
}
