//! Loops whose index reaches the end of 32 bits. The tests edit the kernels: only the work around
//! the end runs, and a loop that would not end is aborted.

use super::harness::Gpu;
use bevy_gpu_culling::cull::{
    CullError, CullingTier, Expander, Expansion,
    expand::{ExpandCode, ExpandInput, ExpanderOptions, SourceCount},
    layout::expand::EXPAND_MAX_ITEMS,
};

/// Counts each of the first and last 128 items of every 2^28.
const BODY: &str = "
@group(1) @binding(0) var<storage, read> test_firsts: array<u32>;
@group(1) @binding(1) var<storage, read_write> test_marks: array<atomic<u32>>;
var<private> test_turns: u32;
fn expand_item(source: u32, item: u32) {
    atomicAdd(&test_marks[(item >> 28u) * 256u + ((item + 128u) & 255u)], 1u);
}
fn expand_done() {}
";

/// Replaces `from` in `source`, which must contain it.
fn replaced(source: &str, from: &str, to: &str) -> String {
    assert!(source.contains(from), "{from} is gone");
    source.replace(from, to)
}

fn known(counts: Option<&wgpu::Buffer>, sources: u32) -> ExpandInput<'_> {
    ExpandInput {
        counts,
        sources: SourceCount::Known(sources),
    }
}

#[test]
fn one_source_of_the_most_items_gives_each_once() {
    let gpu = Gpu::new();
    let body = ExpandCode {
        wgsl: BODY,
        ..gpu
            .options(CullingTier::Subgroup, Expansion::OneBucket)
            .body
    };
    let options = ExpanderOptions {
        expansion: Expansion::OneBucket,
        ..ExpanderOptions::new(CullingTier::Subgroup, body)
    };
    let edit = |pass: &str, source: String| {
        if pass != "expand_items_one_bucket" {
            return source;
        }
        let ends = "if (chunk == 0u || chunk == end - 1u) { expand_chunk(chunk, thread); }";
        let source = replaced(&source, "expand_chunk(chunk, thread);", ends);
        let left = "test_turns += 1u; if (test_turns > 64u) { return; } expand_item(source, item);";
        replaced(&source, "expand_item(source, item);", left)
    };
    let mut expander = Expander::with_sources(&gpu.device, &options, edit).unwrap();
    let counts = gpu.buffer(&[EXPAND_MAX_ITEMS]);
    let input = known(Some(&counts), 1);
    expander.prepare(&gpu.device, &gpu.queue, &input).unwrap();
    let (marks, group) = gpu.marks(&[16 * 256]);
    let report = gpu.expand_into(&expander, &group);
    report.check().unwrap();
    let marks = gpu.read(&marks);
    for (at, mark) in marks[..16 * 256].iter().enumerate() {
        let (turn, place) = (at as u64 / 256, at as u64 % 256);
        let first = if place < 128 {
            (1 << 28) - 128 + place
        } else {
            place - 128
        };
        let item = (turn << 28) + first;
        let expected = u32::from(item < u64::from(EXPAND_MAX_ITEMS));
        assert_eq!(*mark, expected, "item {item}");
    }
}

#[test]
fn the_most_sources_are_each_measured_once() {
    const COUNTING: &str = "
        var<private> test_turns: u32;
        fn items_of(source: u32) -> u32 { return 1u; }
    ";
    let gpu = Gpu::new();
    let counting = ExpandCode {
        wgsl: COUNTING,
        layout: None,
    };
    let options = ExpanderOptions {
        counting: Some(counting),
        ..gpu.options(CullingTier::Subgroup, Expansion::FixedMax)
    };
    let edit = |pass: &str, source: String| {
        if pass != "expand_measure" {
            return source;
        }
        // The last iteration of all threads covers 2^19 sources.
        let last = "let first = 0xfff80000u + workgroup.x";
        let source = replaced(&source, "let first = workgroup.x", last);
        let left =
            "test_turns += 1u; if (test_turns > 8u) { break; } let items = items_of(source);";
        replaced(&source, "let items = items_of(source);", left)
    };
    let mut expander = Expander::with_sources(&gpu.device, &options, edit).unwrap();
    let input = known(None, u32::MAX);
    expander.prepare(&gpu.device, &gpu.queue, &input).unwrap();
    let (_, group) = gpu.marks(&[1]);
    let report = gpu.expand_into(&expander, &group);
    assert_eq!((report.sources, report.items), (u32::MAX, (1 << 19) - 1));
    let error = report.check();
    assert!(
        matches!(error, Err(CullError::TooManyThreads { max: 1, .. })),
        "{error:?}"
    );
}
