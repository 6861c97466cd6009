//! Compares the expansions on the GPU with their CPU twins, for every distribution and edge case,
//! on both GPU tiers, with and without the shaders' bounds checks.

mod broken;
mod cases;
mod harness;
mod input;
mod wraps;

use crate::common::{instance, rng};
use bevy_gpu_culling::cull::{
    CullError, CullingTier, Expander, Expansion,
    expand::{ExpandCode, ExpandDispatch, ExpandInput, ExpanderOptions, SourceCount},
    layout::expand::EXPAND_MAX_ITEMS,
    reference::expand as twin,
};
use cases::{cases, is_out_of_reach};
use harness::Gpu;
use rand::RngExt;

const GPU_TIERS: [CullingTier; 2] = [CullingTier::Subgroup, CullingTier::Workgroup];

#[test]
fn every_expansion_equals_its_twin() {
    let gpu = Gpu::new();
    let cases = cases();
    for expansion in Expansion::ALL {
        for tier in GPU_TIERS {
            for shader_checks in [true, false] {
                let options = ExpanderOptions {
                    shader_checks,
                    ..gpu.options(tier, *expansion)
                };
                let mut expander = Expander::new(&gpu.device, &options).unwrap();
                if expander.expansion() != *expansion {
                    println!("{}", expander.fallback().unwrap());
                    continue;
                }
                for (name, counts) in &cases {
                    if is_out_of_reach(*expansion, counts) {
                        continue;
                    }
                    gpu.check(&mut expander, counts).unwrap_or_else(|error| {
                        panic!("{expansion} on {tier}, checks {shader_checks}, {name}: {error}")
                    });
                }
            }
        }
    }
}

#[test]
fn indirect_and_separate_dispatches_expand_the_same() {
    let gpu = Gpu::new();
    let cases = cases();
    for expansion in Expansion::ALL {
        for (dispatch, merged) in [
            (ExpandDispatch::Indirect, true),
            (ExpandDispatch::Indirect, false),
            (ExpandDispatch::Persistent, false),
        ] {
            let options = ExpanderOptions {
                dispatch,
                merged,
                ..gpu.options(CullingTier::Subgroup, *expansion)
            };
            let mut expander = Expander::new(&gpu.device, &options).unwrap();
            for (name, counts) in cases.iter().filter(|(_, counts)| counts.len() < 100_000) {
                if is_out_of_reach(*expansion, counts) {
                    continue;
                }
                let checked = match marks_no_thread(dispatch, counts) {
                    // Without a workgroup, no thread finishes.
                    true => continue,
                    false => gpu.check(&mut expander, counts),
                };
                checked.unwrap_or_else(|error| {
                    panic!(
                        "{expansion}, {}, merged {merged}, {name}: {error}",
                        dispatch.name()
                    )
                });
            }
        }
    }
}

/// The arena is larger than its parts and the kernels do not check bounds, so that the test sees
/// writes beyond the parts.
#[test]
fn without_sources_nothing_is_written_beyond_the_parts_of_the_arena() {
    let gpu = Gpu::new();
    let counts: Vec<u32> = (0..20_000).map(|source| source % 300).collect();
    let mut compared = 0;
    for expansion in Expansion::ALL {
        for tier in GPU_TIERS {
            let mut expander = Expander::new(&gpu.device, &gpu.options(tier, *expansion)).unwrap();
            gpu.check(&mut expander, &counts).unwrap();
            let before = gpu.read(expander.arena());
            gpu.check(&mut expander, &[]).unwrap();
            let after = gpu.read(expander.arena());
            let params = expander.params();
            let words = 2 * params.entry_capacity as usize;
            let end = (params.entries_at as usize + words).min(before.len());
            let changed = (end..before.len()).find(|at| before[*at] != after[*at]);
            assert_eq!(changed, None, "{expansion} on {tier}, {params:?}");
            compared += before.len() - end;
        }
    }
    assert!(compared > 0, "every arena is as large as its parts");
}

fn marks_no_thread(dispatch: ExpandDispatch, counts: &[u32]) -> bool {
    dispatch == ExpandDispatch::Indirect && twin::sum_items(counts) == 0
}

#[test]
fn the_number_of_sources_may_come_from_the_gpu() {
    let gpu = Gpu::new();
    let mut rng = rng(7);
    let counts: Vec<u32> = (0..5000).map(|_| rng.random_range(0..50)).collect();
    let buffer = gpu.buffer(&counts);
    for expansion in Expansion::ALL {
        let mut expander =
            Expander::new(&gpu.device, &gpu.options(CullingTier::Subgroup, *expansion)).unwrap();
        for (said, sources) in [
            (0, 0),
            (1, 1),
            (1024, 1024),
            (4999, 4999),
            (5000, 5000),
            (u32::MAX, 5000),
        ] {
            let words = gpu.buffer(&[77, 88, said]);
            let input = ExpandInput {
                counts: Some(&buffer),
                sources: SourceCount::Buffer {
                    buffer: &words,
                    offset: 8,
                    max: counts.len() as u32,
                },
            };
            expander.prepare(&gpu.device, &gpu.queue, &input).unwrap();
            gpu.check_prepared(&mut expander, &counts[..sources])
                .unwrap_or_else(|error| panic!("{expansion}, {said} sources: {error}"));
        }
    }
}

#[test]
fn a_caller_may_count_by_itself() {
    const COUNTING: &str = "fn items_of(source: u32) -> u32 { return source * 7u % 61u; }";
    let gpu = Gpu::new();
    let counts: Vec<u32> = (0..3000u32).map(|source| source * 7 % 61).collect();
    for expansion in Expansion::ALL {
        for tier in GPU_TIERS {
            let options = ExpanderOptions {
                counting: Some(ExpandCode {
                    wgsl: COUNTING,
                    layout: None,
                }),
                ..gpu.options(tier, *expansion)
            };
            let mut expander = Expander::new(&gpu.device, &options).unwrap();
            let input = ExpandInput {
                counts: None,
                sources: SourceCount::Known(counts.len() as u32),
            };
            expander.prepare(&gpu.device, &gpu.queue, &input).unwrap();
            gpu.check_prepared(&mut expander, &counts)
                .unwrap_or_else(|error| panic!("{expansion} on {tier}: {error}"));
        }
    }
}

#[test]
fn totals_near_2_32_are_refused_clearly() {
    let gpu = Gpu::new();
    let limit = u64::from(EXPAND_MAX_ITEMS);
    let spread = |total: u64, sources: u64| -> Vec<u32> {
        let (each, rest) = (total / sources, total % sources);
        (0..sources)
            .map(|i| (each + u64::from(i < rest)) as u32)
            .collect()
    };
    let mut wraps_in_a_late_tile = vec![0u32; 9000];
    wraps_in_a_late_tile[8999] = u32::MAX;
    wraps_in_a_late_tile[10] = 5;
    let cases = [
        vec![u32::MAX],
        vec![u32::MAX; 2000],
        vec![0x8000_0000, 0x8000_0000],
        vec![0x8000_0000, 0, 0x7fff_ffff],
        vec![EXPAND_MAX_ITEMS + 1],
        wraps_in_a_late_tile,
        spread(limit + 1, 1500),
        spread(1 << 32, 5000),
        spread((1 << 32) + 3, 5000),
        spread(3 << 32, 70_000),
    ];
    for expansion in Expansion::ALL {
        for tier in GPU_TIERS {
            let mut expander = Expander::new(&gpu.device, &gpu.options(tier, *expansion)).unwrap();
            for (index, counts) in cases.iter().enumerate() {
                let buffer = gpu.buffer(counts);
                let input = ExpandInput {
                    counts: Some(&buffer),
                    sources: SourceCount::Known(counts.len() as u32),
                };
                expander.prepare(&gpu.device, &gpu.queue, &input).unwrap();
                let (report, marks) = gpu.expand(&expander, counts);
                let what = format!("{expansion} on {tier}, case {index}: {report:?}");
                let total = twin::exact_items(counts).min(u64::from(u32::MAX)) as u32;
                // An atomic counter cannot tell by how much the limit is exceeded.
                let items = match expander.expansion() {
                    Expansion::PackedAtomic => u32::MAX,
                    _ => total,
                };
                assert_eq!(report.items, items, "{what}");
                assert_eq!(marks[0], 0, "{what}");
                assert!(marks[2..].iter().all(|mark| *mark == 0), "{what}");
                let error = report.check().unwrap_err();
                assert!(matches!(error, CullError::TooManyItems { .. }), "{what}");
                assert!(error.to_string().contains("at most 4278190080"), "{error}");
            }
        }
    }
}

#[test]
fn fixed_max_refuses_more_threads_than_there_can_be() {
    let gpu = Gpu::new();
    let mut counts = vec![1; 70_000];
    counts[5] = 100_000;
    let mut expander = Expander::new(
        &gpu.device,
        &gpu.options(CullingTier::Subgroup, Expansion::FixedMax),
    )
    .unwrap();
    let buffer = gpu.buffer(&counts);
    let input = ExpandInput {
        counts: Some(&buffer),
        sources: SourceCount::Known(counts.len() as u32),
    };
    expander.prepare(&gpu.device, &gpu.queue, &input).unwrap();
    let (report, marks) = gpu.expand(&expander, &counts);
    assert!(marks.iter().skip(2).all(|mark| *mark == 0));
    let error = report.check().unwrap_err().to_string();
    assert!(
        error.contains("70000 sources") && error.contains("100000 items"),
        "{error}"
    );
}

#[test]
fn an_arena_beyond_a_binding_is_refused_and_leaves_nothing_half_done() {
    let gpu = Gpu::new();
    let limits = gpu.device.limits();
    let max = limits
        .max_storage_buffer_binding_size
        .min(limits.max_buffer_size);
    if max >= 1 << 34 {
        println!("this adapter binds {max} bytes: no arena is too large");
        return;
    }
    // No buffer can hold the counts of that many sources.
    let options = ExpanderOptions {
        counting: Some(ExpandCode {
            wgsl: "fn items_of(source: u32) -> u32 { return source + 1u; }",
            layout: None,
        }),
        ..gpu.options(CullingTier::Subgroup, Expansion::PrefixSearch)
    };
    let mut expander = Expander::new(&gpu.device, &options).unwrap();
    let prepare = |expander: &mut Expander, count| {
        let input = ExpandInput {
            counts: None,
            sources: SourceCount::Known(count),
        };
        expander.prepare(&gpu.device, &gpu.queue, &input)
    };
    let error = prepare(&mut expander, u32::MAX).unwrap_err();
    assert!(
        matches!(error, CullError::ExpansionTooLarge { .. }),
        "{error}"
    );
    // Nothing is bound, so nothing is recorded.
    let (marks, group) = gpu.marks(&[1]);
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        expander.record_sources(&mut pass, None);
        expander.record_items(&mut pass, Some(&group));
    }
    gpu.queue.submit([encoder.finish()]);
    assert_eq!(gpu.read(&marks)[1], 0);
    prepare(&mut expander, 3).unwrap();
    gpu.check_prepared(&mut expander, &[1, 2, 3]).unwrap();
}

#[test]
fn without_64_bit_atomics_the_buckets_take_over() {
    let adapter = pollster::block_on(instance().request_adapter(&Default::default())).unwrap();
    let (device, _) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        required_features: adapter.features() & CullingTier::wanted_features(),
        required_limits: adapter.limits(),
        ..Default::default()
    }))
    .unwrap();
    let body = ExpandCode {
        wgsl: "fn expand_item(source: u32, item: u32) {}\nfn expand_done() {}",
        layout: None,
    };
    let options = ExpanderOptions {
        expansion: Expansion::PackedAtomic,
        ..ExpanderOptions::new(CullingTier::Workgroup, body)
    };
    let expander = Expander::new(&device, &options).unwrap();
    assert_eq!(expander.expansion(), Expansion::OneBucket);
    let reason = expander.fallback().unwrap();
    assert!(reason.contains("SHADER_INT64_ATOMIC_ALL_OPS"), "{reason}");
}
