//! Other values of the policy's thresholds than those that were found by measuring.

use super::check::{check, rungs, with};
use crate::common::{gpu, random_scene, rng, run};
use bevy_gpu_culling::cull::{Compaction, Culler, CullingTier};

/// Both ends of each threshold, so that kernels take either way. With `FEW_SURVIVORS` and
/// `FEW_CROSSED`, only subgroups of 32 lanes do.
const VALUES: [(&str, &[u32]); 5] = [
    ("SPINS", &[0, 1]),
    ("FEW_IN_WORD", &[0, 32]),
    ("FEW_SURVIVORS", &[0, u32::MAX]),
    ("FEW_CROSSED", &[0, u32::MAX]),
    ("ROW_GROUP", &[1, 12]),
];

/// Runs a compaction with `name` as a constant of its kernels. Returns the number of survivors.
fn survivors(
    compaction: Compaction,
    tier: CullingTier,
    name: &str,
    value: u32,
) -> Result<u64, String> {
    let gpu = gpu();
    let constant = format!("const {name}: u32 = {value}u;");
    let edit = |_: &str, source: String| source.replace(&declaration(name), &constant);
    let mut culler = Culler::with_sources(gpu.device, with(compaction, tier, true), edit).unwrap();
    let mut survivors = 0;
    for seed in 0..6 {
        let mut scene = random_scene(&mut rng(seed), &[3000 + seed as usize * 9000, 77]);
        // Every view of each set, so that there are several groups of rows.
        let views = 0..scene.frame.views.len() as u32;
        for request in &mut scene.frame.requests {
            request.views = views.clone().collect();
        }
        scene.sets[0] = scene.sets[0].clone().sorted();
        run(&mut culler, gpu, &scene);
        survivors += check(&culler, gpu, &scene)?;
    }
    Ok(survivors)
}

fn declaration(name: &str) -> String {
    format!("override {name}: u32;")
}

#[test]
fn other_thresholds_give_the_same_survivors() {
    for (name, values) in VALUES {
        let uses = |(compaction, tier): &(Compaction, CullingTier)| {
            let mut sources = compaction.sources(*tier).into_iter();
            sources.any(|(_, source)| source.contains(&declaration(name)))
        };
        let users: Vec<_> = rungs().filter(uses).collect();
        assert!(!users.is_empty(), "no kernel declares {name}");
        for (compaction, tier) in users {
            for value in values {
                let seen = survivors(compaction, tier, name, *value);
                assert!(
                    seen.as_ref().is_ok_and(|survivors| *survivors > 1000),
                    "{compaction} on {tier} with {name} = {value}: {seen:?}"
                );
            }
        }
    }
    // Two bits per row of a group do not fit into a word any more.
    let wrong = survivors(
        Compaction::Classify,
        CullingTier::Workgroup,
        "ROW_GROUP",
        31,
    );
    assert!(wrong.is_err(), "{wrong:?}");
}
