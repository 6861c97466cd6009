//! Measures what a view that hides costs besides what a frustum alone does: GPU time of each stage,
//! and CPU time of a frame's preparation and recording. The engine alone, without draws.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks by printing"
)]

#[path = "../common/mod.rs"]
mod common;
mod frame;
mod row;
mod scene;

use anyhow::{Result, ensure};
use bevy_gpu_culling::cull::CullingTier;
use clap::Parser;
use common::Gpu;
use frame::{Bench, Case};
use glam::UVec2;

/// Measures what hiding costs in one view, compared with the frustum alone.
#[derive(Parser)]
#[command(name = "late", version)]
struct Args {
    /// Numbers of instances: 64000, 64k or 64M; commas separate several [default: 100k,1M,16M; 10k
    /// in software]
    #[arg(long, value_delimiter = ',', value_parser = common::parse_count)]
    count: Vec<u32>,
    /// Numbers of levels of detail
    #[arg(long, value_delimiter = ',', default_values_t = [1, 6], value_parser = clap::value_parser!(u32).range(1..=8))]
    levels: Vec<u32>,
    /// Number of sets that the instances are spread over
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1024))]
    sets: u32,
    /// Shares of what the frustum keeps that a wall hides
    #[arg(long, value_delimiter = ',', default_values_t = [0.0, 0.75])]
    hidden: Vec<f64>,
    /// Samples per pixel of the depth
    #[arg(long, value_delimiter = ',', default_values_t = [4])]
    samples: Vec<u32>,
    /// Size of the viewport
    #[arg(long, default_value = "1920x1080", value_parser = parse_size)]
    size: UVec2,
    /// Degrees by which the camera turns from frame to frame
    #[arg(long, default_value_t = 0.0)]
    turn: f32,
    /// All stages before the early draws in one pass, as in an app without timestamps
    #[arg(long)]
    together: bool,
    /// Timed frames per case [default: 201, 5 in software]
    #[arg(long)]
    frames: Option<usize>,
    /// The tier [default: the best that the adapter supports]
    #[arg(long)]
    tier: Option<CullingTier>,
    /// Prints one JSON object per line instead of the table
    #[arg(long)]
    json: bool,
    /// Set by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn parse_size(text: &str) -> Result<UVec2, String> {
    let sides = text.split_once('x');
    let size = sides.and_then(|(x, y)| Some(UVec2::new(x.parse().ok()?, y.parse().ok()?)));
    let size = size.filter(|size| size.min_element() > 0 && size.max_element() <= 8192);
    size.ok_or_else(|| format!("\"{text}\" is not a size such as 1920x1080, of up to 8192"))
}

fn main() {
    let args = Args::parse();
    common::main(args.bench, || run(args));
}

fn run(mut args: Args) -> Result<()> {
    let shares_hold = args.hidden.iter().all(|share| (0.0..=1.0).contains(share));
    ensure!(shares_hold, "--hidden takes shares from 0 to 1");
    ensure!(
        args.samples.iter().all(|samples| [1, 4].contains(samples)),
        "--samples takes 1 and 4"
    );
    let gpu = Gpu::new()?;
    let limits = gpu.device.limits();
    let best = CullingTier::supported(gpu.device.features(), &limits).0;
    let tier = args.tier.unwrap_or(best);
    ensure!(
        tier != CullingTier::Cpu,
        "on the tier \"cpu\" nothing is hidden"
    );
    let software = gpu.is_software();
    if args.count.is_empty() {
        args.count = match software {
            true => vec![10_000],
            false => vec![100_000, 1_000_000, 16_000_000],
        };
    }
    let frames = args.frames.unwrap_or(if software { 5 } else { 201 });
    ensure!(frames > 0, "--frames of 0 measures nothing");
    eprintln!("{}, tier {tier}, {}", gpu.name(), args.size);
    if software {
        eprintln!("This adapter is software: its times say nothing about a GPU.");
    }
    let mut rows = Vec::new();
    for count in &args.count {
        let sets = scene::sets(*count, args.sets)?;
        for levels in &args.levels {
            let mut bench = Bench::new(&gpu, tier, &sets, (*levels, args.together))?;
            for samples in &args.samples {
                for hidden in &args.hidden {
                    let case = Case {
                        size: args.size,
                        samples: *samples,
                        hidden: *hidden,
                        turn: args.turn.to_radians(),
                        frames,
                    };
                    let row = bench.measure(&case)?;
                    if args.json {
                        println!("{}", serde_json::to_string(&row)?);
                    }
                    rows.push(row);
                }
            }
        }
    }
    if !args.json {
        print!("{}", row::table(&rows));
    }
    Ok(())
}
