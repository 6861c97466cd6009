//! The comparison sees every kernel that is broken.

use super::{culler_for, sequences};
use crate::common::{gpu, options};
use bevy_gpu_culling::cull::{Compaction, Culler, CullerOptions, CullingTier};

#[test]
fn broken_kernels_are_seen() {
    let gpu = gpu();
    let tier = CullingTier::Workgroup;
    let breaks: [(&str, &str, &str); 14] = [
        ("recall", "large |= select(0u, 1u << bit, is_wide);", ""),
        ("recall", "if (has_word_bounds(cell))", "if (true)"),
        ("recall", "early &= kept;", ""),
        ("recall", "early = last_word(cell, word);", "early = 0u;"),
        (
            "recall",
            "history[cell.record + RECORD_KEPT + word] = kept;",
            "",
        ),
        (
            "recall",
            "history[cell.record + RECORD_LAST_COUNT] = early_count;",
            "",
        ),
        (
            "occlude_words",
            "if (of_word == VISIBLE)",
            "if (word % 2u == 1u)",
        ),
        (
            "occlude_words",
            "atomicAdd(&small_count, countOneBits(candidates));",
            "",
        ),
        ("occlude", "small += u32(found == COVERS_NO_SAMPLE);", ""),
        ("compact", "atomicExchange(&lists.too_small, 0u)", "0u"),
        ("occlude", "& ~last_word(cell, thread)", ""),
        (
            "occlude",
            "history[cell.record + RECORD_LAST + thread] = visible;",
            "",
        ),
        ("occlude", "if (found == VISIBLE)", "if (true)"),
        ("occlude", "counts[late_at] = atomicLoad(&late_count);", ""),
    ];
    let whole = || culler_for(gpu.device, tier, Compaction::VoteScanCompact);
    sequences(&whole, &mut whole(), gpu, 0..6).unwrap();
    for (pass, line, instead) in breaks {
        let make = || {
            let options = CullerOptions {
                compaction: Compaction::VoteScanCompact,
                ..options(tier, true)
            };
            Culler::with_sources(gpu.device, options, |name, source| {
                if name != pass {
                    return source;
                }
                assert!(source.contains(line), "{pass} has no {line}");
                source.replace(line, instead)
            })
            .unwrap()
        };
        let mut plain = culler_for(gpu.device, tier, Compaction::VoteScanCompact);
        let broken = sequences(&make, &mut plain, gpu, 0..6);
        assert!(
            broken.is_err(),
            "{pass} without {line} was not seen: {broken:?}"
        );
    }
}
