//! Atomic contention on this adapter: every addressing scheme with every operation.
//!
//! The study repeats the measurements of Devsh Graphics Programming, "Think you're reducing atomic
//! SSBO op contention. Think again", Nabla's wiki, 2020:
//! <https://github.com/Devsh-Graphics-Programming/Nabla/wiki/Think-You're-Reducing-Atomic-SSBO-Op-Contention.-Think-Again>
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks by printing"
)]

mod case;
mod claims;
#[path = "../common/mod.rs"]
mod common;

use anyhow::{Result, bail, ensure};
use case::{Case, THREADS};
use claims::Measured;
use clap::Parser;
use common::{Gpu, buffer, stats::Times};
use indicatif::{ProgressBar, ProgressDrawTarget};
use wgpu::{BufferUsages, Features};

/// Measures which way of counting is fastest on this adapter, and whether the conclusions of
/// Nabla's wiki (2020) hold here.
#[derive(Parser)]
#[command(name = "contention", version)]
struct Args {
    /// Invocations, rounded up to whole workgroups [default: 16777216, 262144 in software]
    #[arg(long)]
    count: Option<u32>,
    /// Timed runs of each case
    #[arg(long, default_value_t = 21)]
    runs: usize,
    /// Prints one JSON object per line instead of the tables
    #[arg(long)]
    json: bool,
    /// Set by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// Most workgroups in x. More than that take several rows.
const WIDTH: u32 = 1 << 15;

fn main() {
    let args = Args::parse();
    common::main(args.bench, || run(args));
}

fn run(args: Args) -> Result<()> {
    ensure!(args.runs > 0, "--runs of 0 measures nothing");
    let gpu = Gpu::new()?;
    let subgroups = gpu.device.features().contains(Features::SUBGROUP);
    let default = if gpu.is_software() { 1 << 18 } else { 1 << 24 };
    let count = args.count.unwrap_or(default).clamp(THREADS, 1 << 30);
    // Whole workgroups, and whole rows if there is more than one row.
    let grain = if count > THREADS * WIDTH {
        THREADS * WIDTH
    } else {
        THREADS
    };
    let count = count.next_multiple_of(grain);
    let size = if subgroups { subgroup_size(&gpu)? } else { 1 };
    eprintln!("{}, subgroups of {size}, {count} invocations", gpu.name());
    if gpu.is_software() {
        eprintln!("This adapter is software: its times say nothing about a GPU.");
    }
    let cases = Case::all(subgroups);
    let bar = ProgressBar::with_draw_target(Some(cases.len() as u64), ProgressDrawTarget::stderr());
    let mut all = Vec::new();
    for case in cases {
        all.push(measure(&gpu, case, (subgroups, size), count, args.runs)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    report(&args, &all)
}

/// Prints the measurements, whether the article's conclusions hold, and the advice.
fn report(args: &Args, all: &[Measured]) -> Result<()> {
    let claims = claims::judge(all);
    if args.json {
        for measured in all {
            println!("{}", serde_json::to_string(measured)?);
        }
        for claim in &claims {
            println!("{}", serde_json::to_string(claim)?);
        }
        return Ok(());
    }
    println!("| address | operation | ballot | result | us | spread | G/s |");
    println!("| --- | --- | --- | --- | --: | --: | --: |");
    for measured in all {
        let Case {
            address,
            operation,
            reduced,
            used,
        } = measured.case;
        println!(
            "| {address:?} | {operation:?} | {} | {} | {:.1} | {:.0} % | {:.2} |",
            if reduced { "yes" } else { "no" },
            if used { "used" } else { "unused" },
            measured.us,
            measured.spread * 100.0,
            measured.g_per_s,
        );
    }
    println!("\n| the article concludes | on this adapter | agrees |\n| --- | --- | --- |");
    for claim in &claims {
        let agrees = if claim.agrees { "yes" } else { "no" };
        println!("| {} | {} | {agrees} |", claim.article, claim.here);
    }
    println!("\n{}", claims::advice(all));
    Ok(())
}

/// Times all runs of a case and verifies each.
fn measure(
    gpu: &Gpu,
    case: Case,
    (subgroups, size): (bool, u32),
    count: u32,
    runs: usize,
) -> Result<Measured> {
    let pipeline = gpu.pipeline("contention", case.wgsl(subgroups), "count_all");
    let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
    let len = match case.address {
        case::Address::One => 1,
        case::Address::Lane => 128,
        case::Address::Subgroup => count / size.max(1),
        case::Address::Workgroup => count / THREADS,
    };
    let cells = buffer(&gpu.device, "cells", u64::from(len) * 4, usage);
    let kept = buffer(&gpu.device, "kept", 4, usage);
    let bind_group = if case.used {
        gpu.bind(&pipeline, &[&cells, &kept])
    } else {
        gpu.bind(&pipeline, &[&cells])
    };
    let (x, y) = (
        WIDTH.min(count / THREADS),
        (count / THREADS).div_ceil(WIDTH),
    );
    let invocations = u64::from(count);
    let mut times = Vec::new();
    for run in 0..runs + 3 {
        let (us, words) = gpu.run(
            |encoder| encoder.clear_buffer(&cells, 0, None),
            |pass| {
                pass.set_pipeline(&pipeline);
                pass.set_bind_group(0, &bind_group, &[]);
                pass.dispatch_workgroups(x, y, 1);
            },
            |_| (),
            Some(&cells),
        )?;
        if let Some(reason) = case.refuse(&words, invocations, size) {
            bail!("{case:?}: {reason}");
        }
        if run >= 3 {
            times.push(us);
        }
    }
    let times = Times::of(times);
    Ok(Measured {
        case,
        us: times.median,
        spread: times.spread,
        g_per_s: invocations as f64 / times.median / 1e3,
        verified: true,
    })
}

/// Lanes per subgroup in these kernels, as the GPU reports them.
fn subgroup_size(gpu: &Gpu) -> Result<u32> {
    let wgsl = "@group(0) @binding(0) var<storage, read_write> kept: array<u32>;
        @compute @workgroup_size(128)
        fn ask(@builtin(subgroup_size) size: u32) { kept[0] = size; }";
    let pipeline = gpu.pipeline("subgroup size", wgsl.into(), "ask");
    let kept = buffer(
        &gpu.device,
        "kept",
        4,
        BufferUsages::STORAGE | BufferUsages::COPY_SRC,
    );
    let bind_group = gpu.bind(&pipeline, &[&kept]);
    let timed = |pass: &mut wgpu::ComputePass<'_>| {
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &bind_group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    };
    let (_, words) = gpu.run(|_| (), timed, |_| (), Some(&kept))?;
    match words.first() {
        Some(size) if (1..=128).contains(size) => Ok(*size),
        other => bail!("unexpected subgroup size: {other:?}"),
    }
}
