//! The comparison sees every compaction that is broken.

use super::check::{GPU_TIERS, check, with};
use crate::common::{Scene, gpu, random_scene, rng, run, test_gpu};
use bevy_gpu_culling::cull::{Compaction, Culler, Gpu};
use glam::Vec3;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use wgpu::Features;

/// The comparison detects every broken compaction, so it can fail.
#[test]
fn a_broken_compaction_is_seen() {
    use Compaction::{
        BallotScan, Classify, HillisSteele, LookBack, NaiveAtomic, SubgroupAtomic, VoteScanCompact,
        WorkgroupAtomic, WorkgroupScan,
    };
    let gpu = gpu();
    let mut breaks = vec![
        (NaiveAtomic, "reserve(chunk, r, 1u)", "region_of(chunk, r)"),
        (
            NaiveAtomic,
            "atomicAdd(&row_counters[chunk.first_row + row], count)",
            "atomicAdd(&row_counters[0], count)",
        ),
        (
            NaiveAtomic,
            "row_counts[id.x] = 0u;",
            "row_counts[id.x] = 1u;",
        ),
        (
            SubgroupAtomic,
            "ballot_count(ballot))",
            "ballot_count(ballot) + 1u)",
        ),
        (SubgroupAtomic, "+ ballot_before(ballot, lane)", ""),
        (SubgroupAtomic, "subgroupBroadcastFirst(base)", "base"),
        (
            WorkgroupAtomic,
            "atomicStore(&group_count, 0u)",
            "atomicStore(&group_count, 1u)",
        ),
        (WorkgroupAtomic, "base + places[k]", "base + k"),
        (HillisSteele, "at >= doubling.reach", "at > doubling.reach"),
        (HillisSteele, "sums[at - 1u]", "sums[at] - 1u"),
        (
            WorkgroupScan,
            "reach < BLOCK_THREADS;",
            "reach < BLOCK_THREADS / 2u;",
        ),
        (WorkgroupScan, "place += 1u;", ""),
        (
            BallotScan,
            "BLOCK_WORDS - 1u && before",
            "BLOCK_WORDS - 2u && before",
        ),
        (
            Classify,
            "least + reach + slack <= 0.0",
            "least + slack <= 0.0",
        ),
        (
            Classify,
            "least - radius - aside - slack > 0.0",
            "least - slack > 0.0",
        ),
        (Classify, "(reach + slack) * chunk.world_scale", "0.0"),
        (
            Classify,
            "place = atomicAdd(&group_crossed, 1u);",
            "atomicAdd(&group_crossed, 1u);",
        ),
        (
            Classify,
            "atomicExchange(&lists.crossed_count, 0u)",
            "atomicLoad(&lists.crossed_count)",
        ),
        (
            Classify,
            "if (survivors == block.len)",
            "if (survivors > 0u)",
        ),
        (
            Classify,
            "atomicAdd(&counts[cell],",
            "atomicAdd(&counts[cell], 1u +",
        ),
        (Classify, "f32(steps.w) * step", "f32(steps.w) * step * 0.5"),
        // Where bounds would be if all sets had whole blocks.
        (
            Classify,
            "chunk.first_bound + block",
            "chunk.first_instance / 1024u + block",
        ),
        (
            VoteScanCompact,
            "chunks[tile.chunk].first_bound",
            "chunks[tile.chunk].first_instance / 1024u",
        ),
        (
            Classify,
            "(vec3<f32>(steps) - 128.0)",
            "(vec3<f32>(steps) - 100.0)",
        ),
        (Classify, "row, at) == PARTIAL;", "row, at) == INSIDE;"),
        (Classify, "1u << (r % 32u)", "1u << (r % 31u)"),
        (Classify, "(rows >> turn)", "(rows >> 1u)"),
        (Classify, "word = full_word(", "word = 0u * full_word("),
        (Classify, "voted[k], states[k]", "voted[k], states[0]"),
        (Classify, "r += 4u) {", "r += 8u) {"),
        (Classify, "states[thread] >> r", "states[thread]"),
        (
            LookBack,
            "STATUS_VALUE, lane < end",
            "STATUS_VALUE, lane <= end",
        ),
        (
            LookBack,
            "subgroupAdd(select(0u, status",
            "subgroupAdd(select(1u, status",
        ),
        (LookBack, "atomicAdd(&look_back.epoch, 1u);", ""),
        (
            LookBack,
            "atomicStore(&look_back.statuses[half_len() - half + i], 0u);",
            "",
        ),
        (
            LookBack,
            "if (!is_end || sought == row_strip)",
            "if (sought == strip)",
        ),
        (
            LookBack,
            "* words_each + lane] += total",
            "* words_each + lane] += 0u",
        ),
        (
            LookBack,
            "this_strip.in_row * word_count;",
            "this_strip.in_row * word_count / 2u;",
        ),
        (VoteScanCompact, "(depth > wide.low) & ", ""),
        (VoteScanCompact, " & (depth < wide.high)", ""),
        (
            VoteScanCompact,
            "wide.slopes.x, depth,",
            "wide.slopes.x, 1.0,",
        ),
        (
            VoteScanCompact,
            "chunk_views[row].planes.pairs",
            "chunk_views[chunk.first_row + group].planes.pairs",
        ),
        (LookBack, "first_row + in_chunk / each", "first_row"),
        (LookBack, "first_rank() + rank", "first_rank() + rank / 2u"),
        (
            LookBack,
            "word_number(first, in_words) * 32u",
            "(first + in_words) * 32u",
        ),
        (
            LookBack,
            "return word_numbers[first + w];",
            "return first + w;",
        ),
        (Classify, "full_word(w, len)", "0u"),
        (
            Classify,
            "survivors += countOneBits",
            "survivors += 1u + countOneBits",
        ),
        (
            Classify,
            "place += countOneBits(unit",
            "place += 0u * countOneBits(unit",
        ),
        (LookBack, "word = all_bits;", "word = 0u;"),
        (VoteScanCompact, "apart >= band.low * size", "apart > -1.0"),
        (
            VoteScanCompact,
            "keeps & sphere_in_level(planes.band, chunk, sphere)",
            "keeps",
        ),
        (
            VoteScanCompact,
            "dot(away, away), (band.flags & BAND_BY_DISTANCE) != 0u",
            "dot(away, away), true",
        ),
        (
            VoteScanCompact,
            "keeps & is_in_range(planes.band, chunk, sphere, i)",
            "keeps",
        ),
        (VoteScanCompact, "apart < band.end", "apart > -1.0"),
        (VoteScanCompact, "apart >= band.start", "apart > -1.0"),
        (
            VoteScanCompact,
            "(band.flags & BAND_OF_ORIGINS) != 0u",
            "false",
        ),
        (VoteScanCompact, "dot(away, away)", "dot(away.xy, away.xy)"),
        (
            Classify,
            "max(apart - wide - slack, 0.0)",
            "apart + wide + slack",
        ),
        (
            Classify,
            "farthest = apart + wide + slack",
            "farthest = apart",
        ),
        (
            Classify,
            "chunk.sphere.w * scales.min",
            "chunk.sphere.w * scales.max",
        ),
        (
            Classify,
            "chunk.sphere.w * scales.max",
            "chunk.sphere.w * scales.min",
        ),
        (Classify, "if (!(is_beyond && is_within))", "if (false)"),
        (
            Classify,
            "distances.y < band.start || distances.x >= band.end",
            "distances.y < band.start || distances.x >= band.start",
        ),
        (
            Classify,
            "distances.x < band.start || distances.y >= band.end",
            "false",
        ),
        (Classify, "wide = reach * chunk.world_scale", "wide = reach"),
        (
            LookBack,
            "!is_limited || high < band.high",
            "true || high < band.high",
        ),
    ];
    if test_gpu().adapter.subgroup_max_size < 32 {
        // Subgroups share blocks.
        breaks.extend([(Classify, "lane_word + 2u * words_each", "lane_word")]);
    } else {
        breaks.extend([
            (LookBack, "subgroupShuffleXor(bits, 16u)", "bits"),
            (Classify, "subgroupShuffleXor(bits, 16u)", "bits"),
            // Each subgroup has blocks, and each row is voted on alone.
            (Classify, "group + firstTrailingBit(crossing)", "group"),
            (
                Classify,
                "chunk.first_row + row, at, lane)",
                "chunk.first_row, at, lane)",
            ),
        ]);
    }
    for broken in breaks {
        // Without thinning more sets are tested by positions alone.
        assert_seen(gpu, broken, |_, scene| {
            for request in &mut scene.frame.requests {
                request.thin_below = 0.0;
            }
        });
    }
}

/// The same for what thins instances out: all sets are, in lights of limited range.
#[test]
fn a_broken_thinning_is_seen() {
    use Compaction::{Classify, LookBack, VoteScanCompact};
    let gpu = gpu();
    let breaks = [
        (
            VoteScanCompact,
            "(threshold_of(i) < share) & sphere",
            "sphere",
        ),
        (VoteScanCompact, "^ hash(i >> 5u)", ""),
        (
            VoteScanCompact,
            "sphere_in_view(planes, grown)",
            "sphere_in_view(planes, sphere)",
        ),
        (
            VoteScanCompact,
            "sphere_in_reach(planes, chunk, grown)",
            "sphere_in_reach(planes, chunk, sphere)",
        ),
        (
            VoteScanCompact,
            "max(growth - 1.0, 1.0) * aside",
            "(growth - 1.0) * aside",
        ),
        (Classify, "state = min(state, PARTIAL);", ""),
        (LookBack, "state = min(state, PARTIAL);", ""),
        (Classify, "reach = max(reach, radius + aside + widest);", ""),
        (
            Classify,
            "0.99999 >= THIN_SHARE * apart",
            "0.99999 >= 0.5 * apart",
        ),
    ];
    for broken in breaks {
        assert_seen(gpu, broken, |rng, scene| {
            for request in &mut scene.frame.requests {
                request.thin_below = 10f32.powf(rng.random_range(0.0..2.0));
            }
            for view in &mut scene.frame.views {
                if rng.random() {
                    *view = view.within(random_place(rng), rng.random_range(1.0..60.0));
                }
            }
        });
    }
}

/// A place within the sets.
fn random_place(rng: &mut ChaCha8Rng) -> Vec3 {
    Vec3::from_array([(); 3].map(|()| rng.random_range(-40.0..40.0)))
}

/// Random scenes, each after `change`, tell a kernel in which the second text replaces the first
/// from the twin, on every tier that has the text.
fn assert_seen(
    gpu: Gpu<'_>,
    (compaction, from, to): (Compaction, &str, &str),
    change: impl Fn(&mut ChaCha8Rng, &mut Scene),
) {
    let tiers = GPU_TIERS.into_iter().filter(|tier| {
        compaction.check(*tier, Features::SUBGROUP).is_ok()
            && compaction
                .sources(*tier)
                .iter()
                .any(|(_, source)| source.contains(from))
    });
    let tiers: Vec<_> = tiers.collect();
    assert!(!tiers.is_empty(), "{from} is gone");
    for tier in tiers {
        let edit = |_: &str, source: String| source.replace(from, to);
        let mut culler =
            Culler::with_sources(gpu.device, with(compaction, tier, true), edit).unwrap();
        let is_seen = |culler: &mut Culler, seed: u64| {
            let mut scene = random_scene(&mut rng(seed), &[3000 + seed as usize * 7000, 77]);
            change(&mut rng(seed), &mut scene);
            // Sorted instances have compact blocks: some are inside a view and some outside.
            scene.sets[0] = scene.sets[0].clone().sorted();
            run(culler, gpu, &scene);
            check(culler, gpu, &scene).is_err()
        };
        let mut caught = (0..20).any(|seed| is_seen(&mut culler, seed));
        if !caught {
            // As many counts as there are are many.
            culler.limit_pages(1 << 20, 1 << 20, 0);
            caught = (0..20).any(|seed| is_seen(&mut culler, seed));
        }
        assert!(
            caught,
            "{compaction} with \"{to}\" for \"{from}\" passed on {tier}"
        );
    }
}
