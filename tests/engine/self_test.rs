//! The test at the start: it takes what works, and no tier whose kernels cull wrongly.

use crate::common::gpu;
use bevy_gpu_culling::cull::{Compaction, CullError, Culler, CullerOptions, CullingTier};

#[test]
fn what_works_passes() {
    let gpu = gpu();
    for tier in CullingTier::ALL {
        for &compaction in Compaction::ALL {
            let options = CullerOptions {
                tier: Some(tier),
                compaction,
                ..CullerOptions::default()
            };
            match Culler::new_tested(gpu, options) {
                Ok((culler, reason)) => assert_eq!((culler.tier(), reason), (tier, None)),
                Err(
                    CullError::TierUnsupported { .. } | CullError::CompactionUnsupported { .. },
                ) => {}
                Err(error) => panic!("{tier}, {compaction}: {error}"),
            }
        }
    }
}

/// Kernels that cull wrongly, everywhere or with subgroups alone.
#[test]
fn a_tier_that_culls_wrongly_is_not_taken() {
    let gpu = gpu();
    let breaks = [
        ("plane_keeps(planes.near, sphere)", "true"),
        ("+ sphere.w > 0.0", "+ sphere.w > 0.3"),
    ];
    for (from, to) in breaks {
        for subgroups_alone in [true, false] {
            let edit = |_: &str, source: String| {
                if subgroups_alone && !source.contains("subgroup_invocation_id") {
                    return source;
                }
                source.replace(from, to)
            };
            let options = CullerOptions::default();
            let (best, _) = Culler::new(gpu.device, options.clone()).unwrap();
            let (culler, reason) = Culler::new_tested_with(gpu, options, edit).unwrap();
            let expected = match best.tier() {
                CullingTier::Subgroup if subgroups_alone => CullingTier::Workgroup,
                CullingTier::Subgroup => CullingTier::Cpu,
                _ if subgroups_alone => continue,
                _ => CullingTier::Cpu,
            };
            assert_eq!(culler.tier(), expected, "{from}: {reason:?}");
            let reason = reason.unwrap();
            assert!(reason.contains("test at the start"), "{reason}");
        }
    }
}
