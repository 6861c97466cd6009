//! The command line.

use crate::{common, points::Order, requests::Requests};
use bevy_gpu_culling::cull::{Compaction, CullingTier};
use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// Measures how the culling scales on this adapter.
#[derive(Parser)]
#[command(name = "scale", version)]
pub struct Args {
    /// Numbers of instances: 64000, 64k or 64M; commas separate several [default: 1k to 100M, 1k to
    /// 1M in software]
    #[arg(long, value_delimiter = ',', value_parser = common::parse_count)]
    pub count: Vec<u32>,
    /// Shares of the instances that each view keeps
    #[arg(long, value_delimiter = ',', default_values_t = [0.0, 0.02, 0.25, 1.0])]
    pub visible: Vec<f64>,
    /// Orders of the instances [default: both]
    #[arg(long, value_delimiter = ',')]
    pub order: Vec<Order>,
    /// Hides every N-th instance, as `InstanceSet::hide` does; 0 hides none
    #[arg(long, value_delimiter = ',', default_values_t = [0])]
    pub hide: Vec<u32>,
    /// Draws near instances first. Their order is not checked (the tests do)
    #[arg(long)]
    pub near_first: bool,
    /// Sorts survivors far first, as blended sets need: another stage. The order is compared with
    /// the twin if a view's survivors are in one page
    #[arg(long, conflicts_with = "near_first")]
    pub far_first: bool,
    /// Numbers of views
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 8], value_parser = clap::value_parser!(u32).range(1..=64))]
    pub views: Vec<u32>,
    /// Numbers of primitives that the instances are drawn with. More than one are measured
    /// together, as one request, and apart, as a request each
    #[arg(long, value_delimiter = ',', default_values_t = [1], value_parser = clap::value_parser!(u32).range(1..=64))]
    pub primitives: Vec<u32>,
    /// Numbers of levels of detail. Each level is one more row, which keeps the instances of a
    /// range of distances
    #[arg(long, value_delimiter = ',', default_values_t = [1], value_parser = clap::value_parser!(u32).range(1..=8))]
    pub levels: Vec<u32>,
    /// Whether blocks are tested before instances [default: both]
    #[arg(long, value_delimiter = ',')]
    pub classify: Vec<Switch>,
    /// Compactions [default: --classify chooses: look-back and classify test blocks,
    /// vote-scan-compact does not]
    #[arg(long, value_delimiter = ',', conflicts_with = "classify")]
    pub compaction: Vec<Compaction>,
    /// The tier [default: the best that the adapter supports]
    #[arg(long)]
    pub tier: Option<CullingTier>,
    /// Timed runs per case [default: 21, 5 in software]
    #[arg(long)]
    pub runs: Option<usize>,
    /// Untimed runs before them
    #[arg(long, default_value_t = 3)]
    pub warm_up: usize,
    /// MiB of other data that are read before each run, so that the cache holds none of the
    /// instances [default: 128, 4 in software]
    #[arg(long)]
    pub cache: Option<u64>,
    /// The demo's program. With it, CPU times are the plugin's in Bevy, and `--peer` is possible
    #[arg(long, value_name = "PATH")]
    pub orbs: Option<PathBuf>,
    /// Compares the demo with the same scene drawn as entities
    #[arg(long, requires = "orbs")]
    pub peer: Option<PeerName>,
    /// Prints one JSON object per line instead of the table
    #[arg(long)]
    pub json: bool,
    /// Writes a chart of the times to this SVG file
    #[arg(long)]
    pub chart: Option<PathBuf>,
    /// Checks the check: changes an id of every result, so that the benchmark must fail
    #[arg(long)]
    pub spoil: bool,
    /// Set by `cargo bench`
    #[arg(long, hide = true)]
    pub bench: bool,
}

impl Args {
    /// The requests of each number of primitives and levels.
    pub fn requests(&self) -> Vec<Requests> {
        let primitives = self.primitives.iter();
        let requests = primitives.flat_map(|primitives| {
            let levels = self.levels.iter();
            levels.flat_map(|levels| Requests::all(*primitives, *levels))
        });
        requests.collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

impl Switch {
    pub fn of(compaction: Compaction) -> Self {
        match compaction {
            Compaction::Classify | Compaction::LookBack => Self::On,
            _ => Self::Off,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PeerName {
    Bevy,
}
