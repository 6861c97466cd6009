//! The comparison sees every kernel that is broken.

use super::GPU_TIERS;
use crate::common::{compare, gpu, options, random_scene, rng, run};
use bevy_gpu_culling::cull::Culler;
use rand::RngExt;

/// As many words as no scene has.
const FINE_WORDS: u32 = 1 << 24;

/// The comparison detects every broken kernel, so it can fail.
#[test]
fn a_broken_kernel_is_seen() {
    let gpu = gpu();
    // Kernel, whether the counts are scanned, text, replacement.
    let breaks: &[(&str, bool, &str, &str)] = &[
        ("vote", false, "+ sphere.w > 0.0", "+ sphere.w > 0.01"),
        ("vote", false, "& plane_keeps(planes.near, sphere) ", ""),
        ("vote", false, "(i < chunk.instance_count) &", "true &"),
        ("vote", false, "* chunk.world_scale", ""),
        (
            "vote",
            false,
            "chunk.sphere.xyz * scale",
            "chunk.sphere.xyz",
        ),
        (
            "vote",
            false,
            "max(max(scale.x, scale.y), scale.z)",
            "scale.x",
        ),
        ("vote", false, "slot < 15u &&", "slot < 1u &&"),
        (
            "scan",
            true,
            "four < vec4<u32>(len);",
            "four < vec4<u32>(len - 1u);",
        ),
        (
            "scan",
            true,
            "total / OCCUPIED);",
            "total / OCCUPIED + 1u);",
        ),
        (
            "scan",
            true,
            "place = sums[k] % OCCUPIED;",
            "place = sums[k];",
        ),
        (
            "scan",
            true,
            "counts[cell / 4u][cell % 4u]",
            "counts[cell / 4u][0]",
        ),
        ("order", false, "return Unit(ring,", "return Unit(0u,"),
        (
            "order",
            false,
            "unit_rings[other] == ring",
            "unit_rings[other] >= ring",
        ),
        ("order", false, "bytes & ((1u <<", "bytes | ((1u <<"),
        ("order", false, "(pairs >> 16u)", "(pairs >> 17u)"),
        ("order", false, "- 128.0) * step", "- 120.0) * step"),
        (
            "order",
            false,
            "abs(center - order.eye.xyz)",
            "center - order.eye.xyz",
        ),
        ("order", false, "(steps.x + steps.y + steps.z)", "steps.x"),
        ("order", false, "flip |= (", "flip = ("),
        ("order", false, "code & 1u", "code & 2u"),
        ("order", false, "BLOCK <= chunks", "0u * BLOCK <= chunks"),
        (
            "compact",
            false,
            "four.yxwz, (flip & 1u)",
            "four.yxwz, (flip & 2u)",
        ),
        ("compact", false, "k + 2u) ^ flip)", "k + 2u))"),
        ("compact", false, "k ^ flip) * 32u", "k) * 32u"),
        (
            "scan",
            true,
            "((first + k) << OCCUPIED_SHIFT) |",
            "((first + k + 1u) << OCCUPIED_SHIFT) |",
        ),
        ("vote", true, "atomicStore(&lists.occupied_count, 0u);", ""),
        ("compact", true, "& OCCUPIED_SURVIVORS,", "& 1u,"),
        (
            "compact",
            true,
            "OCCUPIED_SURVIVORS, entry.y);",
            "OCCUPIED_SURVIVORS, entry.y + 1u);",
        ),
        ("compact", true, "bit < before", "bit > before"),
        (
            "compact",
            true,
            "vec4<u32>(tile) < tiles",
            "vec4<u32>(tile) <= tiles",
        ),
        ("compact", true, "row + 1u == batch.row_count", "row == 0u"),
        (
            "compact",
            false,
            "vec4<u32>(i) < ends",
            "vec4<u32>(i) <= ends",
        ),
        ("compact", false, "before += ", "before = "),
        ("compact", false, "(1u << bit) - 1u", "(2u << bit) - 1u"),
        (
            "compact",
            false,
            "survivors == block.len",
            "survivors > 31u",
        ),
        (
            "compact",
            false,
            "let instances = end - first;",
            "let instances = max(end - first, 1u) - 1u;",
        ),
    ];
    for &(kernel, is_scanned, from, to) in breaks {
        for tier in GPU_TIERS {
            let broken = |pass: &str, source: String| {
                if pass != kernel {
                    return source;
                }
                assert!(source.contains(from), "{from} is gone");
                source.replace(from, to)
            };
            let mut culler = Culler::with_sources(gpu.device, options(tier, true), broken).unwrap();
            culler.limit_pages(1 << 20, 1 << 20, if is_scanned { 0 } else { u32::MAX });
            let caught = (0..20).any(|seed| {
                let mut rng = rng(seed);
                // Blocks are the units, or words.
                culler.limit_fine_words(if seed % 2 == 0 { 0 } else { FINE_WORDS });
                let max = if is_scanned { 120_000 } else { 8_000 };
                let lengths = [rng.random_range(max / 20..max), 77];
                let scene = random_scene(&mut rng, &lengths);
                run(&mut culler, gpu, &scene);
                compare(&culler, gpu, &scene).is_err()
            });
            assert!(
                caught,
                "{kernel} with \"{to}\" for \"{from}\" passed on {tier}"
            );
        }
    }
}
