//! The number of items of each source, and the sums that pass 2 must produce from them.

use clap::ValueEnum;

/// The distribution of the numbers of items over the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Distribution {
    /// One item per source.
    Ones,
    /// The number that `--equal` gives, for every source.
    Equal,
    /// A uniform distribution from 0 to 1000.
    Uniform,
    /// Many small numbers and few large ones. The share of sources with more than n items is
    /// proportional to n to the power of -1.2.
    PowerLaw,
    /// One source with a million items. All others have one.
    Giant,
}

impl Distribution {
    pub const ALL: [Self; 5] = [
        Self::Ones,
        Self::Equal,
        Self::Uniform,
        Self::PowerLaw,
        Self::Giant,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Ones => "ones",
            Self::Equal => "equal",
            Self::Uniform => "uniform",
            Self::PowerLaw => "power-law",
            Self::Giant => "giant",
        }
    }

    /// The number of items of each of `sources` sources.
    pub fn counts(self, sources: u32, equal: u32) -> Vec<u32> {
        let mut counts: Vec<u32> = (0..sources)
            .map(|source| match self {
                Self::Ones | Self::Giant => 1,
                Self::Equal => equal,
                Self::Uniform => (unit(source) * 1001.0) as u32,
                // The minimum is 2, the mean about 11.
                Self::PowerLaw => (2.0 * unit(source).powf(-1.0 / 1.2)).min(1e6) as u32,
            })
            .collect();
        if let (Self::Giant, Some(giant)) = (self, counts.get_mut(sources as usize / 3)) {
            *giant = 1_000_000;
        }
        counts
    }
}

/// A pseudorandom number above 0 and below 1 (SplitMix64 of `source`).
fn unit(source: u32) -> f64 {
    let mut z = u64::from(source).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 + 1e-12
}

/// The sums that pass 2 must produce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub items: u64,
    pub a: u32,
    pub b: u32,
}

impl Sums {
    pub fn of(counts: &[u32]) -> Self {
        let max = counts.iter().copied().max().unwrap_or(0);
        // Sums over all items before each index.
        let mut before = vec![(0u32, 0u32)];
        before.reserve(max as usize);
        let (mut i, mut j) = (0u32, 0u32);
        for item in 0..max {
            let hash = hash(item.wrapping_add(0x7f4a_7c15));
            i = i.wrapping_add(hash);
            j = j.wrapping_add(hash ^ 0x5bd1_e995);
            before.push((i, j));
        }
        let mut sums = Self::default();
        for (items, source) in counts.iter().zip(0u32..) {
            let s = hash(source.wrapping_add(1));
            let (i, j) = before[*items as usize];
            sums.items += u64::from(*items);
            sums.a = sums.a.wrapping_add(s.wrapping_mul(i));
            sums.b = sums.b.wrapping_add((s >> 7).wrapping_mul(j));
        }
        sums
    }
}

/// Twin of `bench_hash` in `sum.wgsl`.
fn hash(value: u32) -> u32 {
    let product = value.wrapping_mul(0x9e37_79b1);
    product ^ (product >> 15)
}
