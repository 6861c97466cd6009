//! Test inputs: the benchmark's distributions, edge cases, and sizes around every boundary.

use crate::common::rng;
use bevy_gpu_culling::cull::{Expansion, reference::expand as twin};
use rand::RngExt;

/// Numbers of items around each power of two, as long as their sum stays small.
fn around_powers() -> Vec<u32> {
    (0..17u32)
        .flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1])
        .collect()
}

/// The benchmark's distributions, edge cases, and sizes around every boundary.
pub fn cases() -> Vec<(String, Vec<u32>)> {
    let mut rng = rng(0xe5);
    let mut cases: Vec<(String, Vec<u32>)> = Vec::new();
    let mut case = |name: &str, counts: Vec<u32>| cases.push((name.into(), counts));
    case("no source", vec![]);
    case("all N = 0", vec![0; 3000]);
    case("one source without items", vec![0]);
    case("one N of a million", vec![1_000_000]);
    let mut giant = vec![1; 5000];
    giant[3210] = 1_000_000;
    case("one giant", giant);
    let mut first = vec![3; 3000];
    first[0] = 500;
    case("the greatest first", first);
    case("around powers of two", around_powers());
    case("all 1", vec![1; 70_000]);
    case("all 7", vec![7; 3001]);
    case("all 128", vec![128; 2000]);
    case("all 1023", vec![1023; 700]);
    case(
        "uniform",
        (0..2500).map(|_| rng.random_range(0..=1000)).collect(),
    );
    case(
        "uniform, many",
        (0..40_000).map(|_| rng.random_range(0..=20)).collect(),
    );
    let power_law = |rng: &mut rand_chacha::ChaCha8Rng| {
        let share: f64 = rng.random_range(1e-4..1.0);
        (share.powf(-1.2) as u32).min(100_000)
    };
    case(
        "power law",
        (0..60_000).map(|_| power_law(&mut rng)).collect(),
    );
    // The largest number of sources for which pass 1 of the buckets needs no scan, and one more.
    for sources in [262_144, 262_145] {
        let counts = (0..sources).map(|_| rng.random_range(0..5)).collect();
        case(&format!("{sources} sources"), counts);
    }
    case(
        "power law, many",
        (0..300_000).map(|_| power_law(&mut rng)).collect(),
    );
    // More than 4,096 tiles, which is more than one step of the spine.
    let mut long = vec![0; 4_300_000];
    for _ in 0..2000 {
        let at = rng.random_range(0..long.len());
        long[at] = rng.random_range(1..200);
    }
    *long.last_mut().unwrap() = 3;
    case("a long way between items", long);
    for sources in [
        1, 2, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 2047,
        2049, 32_768, 32_769,
    ] {
        let counts = (0..sources).map(|_| rng.random_range(0..40)).collect();
        case(&format!("{sources} sources"), counts);
    }
    cases
}

/// Whether `fixed-max` would need too many threads for a software adapter.
pub fn is_out_of_reach(expansion: Expansion, counts: &[u32]) -> bool {
    let (max, _) = twin::measure(counts);
    expansion == Expansion::FixedMax && u64::from(max) * counts.len() as u64 > 1 << 27
}
