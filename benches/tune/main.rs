//! Measures which compaction `Auto` should use on this adapter, and saves the result.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks by printing"
)]

#[path = "../common/mod.rs"]
mod common;

use anyhow::Result;
use bevy_gpu_culling::cull::{
    CullingTier,
    tune::{TuneOptions, tuning},
};
use clap::Parser;
use common::Gpu;
use std::path::PathBuf;

/// Measures which ordered compaction is the fastest on this adapter, and saves the result for
/// `Auto`.
#[derive(Parser)]
#[command(name = "tune", version)]
struct Args {
    /// The tier [default: the best that the adapter supports]
    #[arg(long)]
    tier: Option<CullingTier>,
    /// Shows the saved result, and measures only if there is none
    #[arg(long)]
    show: bool,
    /// Uses this folder instead of the user's cache folder
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Set by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let args = Args::parse();
    common::main(args.bench, || run(args));
}

fn run(args: Args) -> Result<()> {
    let gpu = Gpu::new()?;
    let best = CullingTier::supported(gpu.device.features(), &gpu.device.limits()).0;
    let tier = args.tier.unwrap_or(best);
    let options = TuneOptions {
        folder: args.folder,
        again: !args.show,
    };
    let tuned = tuning(&gpu.device, &gpu.queue, &gpu.info, tier, &options)?;
    println!("{}, tier {tier}", gpu.name());
    for measured in &tuned.measurements {
        println!(
            "{:>10} instances  {:<20}{:>10.1} us",
            measured.count, measured.compaction, measured.us
        );
    }
    for (max, compaction) in tuned.tuning.steps() {
        match max {
            &u64::MAX => println!("any higher count: {compaction}"),
            max => println!("up to {max} tests per frame: {compaction}"),
        }
    }
    for problem in &tuned.problems {
        eprintln!("warning: {problem}");
    }
    if let Some(file) = &tuned.file {
        println!("saved in {}", file.display());
    }
    Ok(())
}
