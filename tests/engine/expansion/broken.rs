//! Broken kernels. The comparison must detect each of them.

use super::{
    GPU_TIERS,
    cases::{cases, is_out_of_reach},
    harness::Gpu,
};
use crate::common::rng;
use bevy_gpu_culling::cull::{Expander, Expansion, expand::ExpanderOptions};
use rand::RngExt;

#[test]
fn a_broken_expansion_is_seen() {
    use Expansion::*;
    let gpu = Gpu::new();
    let breaks: &[(Expansion, &str, &str)] = &[
        (FixedMax, "i % state.width", "i % (state.width + 1u)"),
        (
            FixedMax,
            "max_items = max(max_items, items);",
            "max_items = items;",
        ),
        (
            FixedMax,
            "item < items_of(source)",
            "item <= items_of(source)",
        ),
        (ItemList, "arena[at + 1u] = k;", "arena[at + 1u] = k + 1u;"),
        (ItemList, "(place + k);", "place;"),
        (ItemList, "return carry;", "return 0u;"),
        (
            WorkgroupItems,
            "+ select(0u, 1u, items % EXPAND_CHUNK != 0u)",
            "",
        ),
        (WorkgroupItems, "item < items_of(source)", "true"),
        (PrefixSearch, "<= in_tile", "< in_tile"),
        (PrefixSearch, "<= i)", "< i)"),
        (
            PrefixSearch,
            "index_of(thread)) + before;",
            "index_of(thread));",
        ),
        (PrefixSearch, "+ prefixes[r]", ""),
        (
            WorkgroupSearch,
            "select(begin, end - 1u, thread == 1u)",
            "begin",
        ),
        (WorkgroupSearch, "if (before <= i)", "if (before < i)"),
        (WorkgroupSearch, "count <= SPAN_ROOM", "true"),
        (
            WorkgroupSearch,
            "span_firsts[k] = first_item_of(first + k);",
            "span_firsts[k] = first_item_of(first);",
        ),
        (
            PackedAtomic,
            "let place = sources_before + i",
            "let place = i",
        ),
        (PackedAtomic, "return items_before;", "return 0u;"),
        (PackedAtomic, "<= i)", "< i)"),
        (Po2Buckets, "& ~((2u << b) - 1u)", "& ~((1u << b) - 1u)"),
        (Po2Buckets, "k & (size - 1u)", "k"),
        (Po2Buckets, "place += 1u;", ""),
        (Po2Buckets, "left >= below", "left > below"),
        (Po2Buckets, "bit += width;", ""),
        (
            Po2Buckets,
            "entries_before(index, index / EXPAND_BUCKETS)",
            "0u",
        ),
        (Po2Buckets, "select(0u, entries, t < tile)", "entries"),
        (
            Po2Buckets,
            "place_of(index % EXPAND_BUCKETS * tiles + tile)",
            "place_of(index % EXPAND_BUCKETS * tiles)",
        ),
        (OneBucket, "firsts[bucket] + before", "before"),
        (Po2Buckets, "(atomicLoad(&words[w]) >> index) & 1u", "1u"),
        (
            Po2Buckets,
            "atomicOr(&words[word], all)",
            "atomicOr(&words[word], bits)",
        ),
        (Po2Buckets, "first_chunk += chunks_in[b];", ""),
        (
            Po2Buckets,
            "bucket_index += step;",
            "bucket_index += step / 2u;",
        ),
        (
            OneBucket,
            "places[slot] + countOneBits(before)",
            "places[slot]",
        ),
        (OneBucket, "place += entries_of(mask_at(index, k));", ""),
        (OneBucket, "min(lanes, items - item)", "lanes + 1u"),
        (
            OneBucket,
            "1u << firstLeadingBit(items)",
            "1u << firstTrailingBit(items)",
        ),
    ];
    let cases = cases();
    let mut rng = rng(3);
    let random: Vec<u32> = (0..9000).map(|_| rng.random_range(0..300)).collect();
    for (expansion, from, to) in breaks {
        if expansion.check(gpu.device.features()).is_err() {
            continue;
        }
        for tier in GPU_TIERS {
            let sources = expansion.sources(tier);
            if !sources.iter().any(|(_, source)| source.contains(from)) {
                let other = GPU_TIERS.iter().any(|tier| {
                    expansion
                        .sources(*tier)
                        .iter()
                        .any(|(_, source)| source.contains(from))
                });
                assert!(other, "{from} is gone");
                continue;
            }
            let options = ExpanderOptions {
                shader_checks: true,
                ..gpu.options(tier, *expansion)
            };
            let edit = |_: &str, source: String| source.replace(from, to);
            let mut expander = Expander::with_sources(&gpu.device, &options, edit).unwrap();
            // Only long inputs have a scan of the table or long spans, and only the longest has a
            // second step of the spine.
            let long = ["carry", "tiles", "ROOM"]
                .iter()
                .any(|part| from.contains(part));
            let small = cases.iter().filter(|(_, counts)| match long {
                // Few items per source, so that a thread with a wrong source does not take long.
                true => counts.len() > 262_144 && counts.iter().all(|items| *items < 1000),
                false => counts.len() < 4000,
            });
            let caught = small
                .map(|(_, counts)| counts)
                .chain([&random])
                .filter(|counts| !is_out_of_reach(*expansion, counts))
                .any(|counts| gpu.check(&mut expander, counts).is_err());
            assert!(
                caught,
                "{expansion} with \"{to}\" for \"{from}\" passed on {tier}"
            );
        }
    }
}

/// Other values of the policy's thresholds than those that were found by measuring. With other
/// threads, the twin's buckets are not the GPU's, so only the items are compared.
///
/// `LONG_SOURCE` stays below 65,535: Mesa's software driver ends a loop after that number of turns.
#[test]
fn other_thresholds_expand_the_same() {
    let gpu = Gpu::new();
    let cases = cases();
    for (name, values, expansions) in [
        (
            "LONG_SOURCE",
            [0, 50_000],
            [Expansion::ItemList, Expansion::WorkgroupItems],
        ),
        (
            "ENOUGH_THREADS",
            [0, 1000],
            [Expansion::Po2Buckets, Expansion::OneBucket],
        ),
    ] {
        let declared = format!("override {name}: u32;");
        for (expansion, tier) in expansions
            .iter()
            .flat_map(|e| GPU_TIERS.map(|tier| (*e, tier)))
        {
            let sources = expansion.sources(tier);
            assert!(
                sources.iter().any(|(_, source)| source.contains(&declared)),
                "{expansion} on {tier} has no {name}"
            );
            for value in values {
                let options = ExpanderOptions {
                    shader_checks: true,
                    ..gpu.options(tier, expansion)
                };
                let constant = format!("const {name}: u32 = {value}u;");
                let edit = |_: &str, source: String| source.replace(&declared, &constant);
                let mut expander = Expander::with_sources(&gpu.device, &options, edit).unwrap();
                for (case, counts) in cases.iter().filter(|(_, counts)| counts.len() < 50_000) {
                    gpu.prepare(&mut expander, counts).unwrap();
                    gpu.check_items(&mut expander, counts)
                        .unwrap_or_else(|error| {
                            panic!("{expansion} on {tier} with {name} = {value}, {case}: {error}")
                        });
                }
            }
        }
    }
}
