//! Times every requested compaction at every requested encoding, size, share and order. The GPU
//! times each run, and each result is compared with the twin.
//!
//! Most of the compactions and the encodings are from these articles:
//!
//! * AMD GPUOpen, "Fast compaction with mbcnt", 2016:
//!   <https://gpuopen.com/learn/fast-compaction-with-mbcnt/>
//! * Kostas Anagnostou, "Stream compaction using wave intrinsics", 2022:
//!   <https://interplayoflight.wordpress.com/2022/12/25/stream-compaction-using-wave-intrinsics/>
//! * Marco Giordano, "Unity GPU culling experiments, part 2: optimizations", 2019:
//!   <https://www.mpc-rnd.com/unity-gpu-culling-experiments-part2-optimizations/>
//! * Duane Merrill and Michael Garland, "Single-pass parallel prefix scan with decoupled
//!   look-back", 2016:
//!   <https://research.nvidia.com/publication/2016-03_single-pass-parallel-prefix-scan-decoupled-look-back>
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks by printing"
)]

mod chart;
#[path = "../common/mod.rs"]
mod common;
mod input;
mod row;

use anyhow::{Context, Result, ensure};
use bevy_gpu_culling::cull::{Compaction, Compactor, CompactorOptions, CullingTier, plan::Plan};
use clap::Parser;
use common::{
    Gpu, encoding::Encoding, parse_count, reader::Reader, stats::Times, verify::Verifier,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use input::{Input, Order, Shape};
use row::Row;
use std::path::PathBuf;
use wgpu::{Buffer, CommandEncoder};

/// Measures every compaction on this adapter.
#[derive(Parser)]
#[command(name = "ladder", version)]
struct Args {
    /// Numbers of instances: 64000, 64k or 64M; commas separate several [default: 1k to 64M, 1k to
    /// 1M in software]
    #[arg(long, value_delimiter = ',', value_parser = parse_count)]
    count: Vec<u32>,
    /// Shares of the instances that are visible
    #[arg(long, value_delimiter = ',', default_values_t = [0.02, 0.25, 1.0])]
    visible: Vec<f64>,
    /// Orders of the instances [default: both]
    #[arg(long, value_delimiter = ',')]
    order: Vec<Order>,
    /// Instance encodings [default: all]
    #[arg(long, value_delimiter = ',')]
    encoding: Vec<Encoding>,
    /// Compactions [default: all that this adapter supports]
    #[arg(long, value_delimiter = ',')]
    strategy: Vec<Compaction>,
    /// The tier [default: the best that the adapter supports]
    #[arg(long)]
    tier: Option<CullingTier>,
    /// Timed runs per case [default: 21, 5 in software]
    #[arg(long)]
    runs: Option<usize>,
    /// Untimed runs before them
    #[arg(long, default_value_t = 3)]
    warm_up: usize,
    /// Size of the cache in MiB. It must not hold a run's instances, so the input sets rotate; if
    /// they are too small for that, the cache is filled with other data before each run [default:
    /// 128, 4 in software]
    #[arg(long)]
    cache: Option<u64>,
    /// Most memory to use, in GiB [default: 16, 3 in software]
    #[arg(long)]
    memory: Option<u64>,
    /// Prints one JSON object per line instead of the table
    #[arg(long)]
    json: bool,
    /// Writes a chart of the rates to this SVG file
    #[arg(long)]
    chart: Option<PathBuf>,
    /// Checks the check: changes an id of every result, so that the benchmark must fail
    #[arg(long)]
    spoil: bool,
    /// Set by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// State that all cases share.
struct Bench {
    gpu: Gpu,
    args: Args,
    tier: CullingTier,
    runs: usize,
    /// Size of the cache in MiB.
    cache: u64,
    verifier: Verifier,
    reader: Reader,
    /// Data that is read before a run, so that the cache holds none of the instances.
    filler: Buffer,
    bar: ProgressBar,
    rows: Vec<Row>,
}

fn main() {
    let args = Args::parse();
    common::main(args.bench, || run(args));
}

fn run(mut args: Args) -> Result<()> {
    ensure!(args.runs != Some(0), "--runs of 0 measures nothing");
    let shares_hold = args
        .visible
        .iter()
        .all(|share| *share > 0.0 && *share <= 1.0);
    ensure!(shares_hold, "--visible takes shares above 0 and up to 1");
    let gpu = Gpu::new()?;
    let tier = gpu.tier(args.tier)?;
    let features = gpu.device.features();
    if args.count.is_empty() {
        args.count = vec![1000, 10_000, 100_000, 1_000_000];
        if !gpu.is_software() {
            args.count.extend([4_000_000, 16_000_000, 64_000_000]);
        }
    }
    if args.order.is_empty() {
        args.order = vec![Order::Sorted, Order::Random];
    }
    if args.encoding.is_empty() {
        args.encoding = Encoding::ALL.to_vec();
    }
    if args.strategy.is_empty() {
        args.strategy = Compaction::supported(tier, features).collect();
    }
    for compaction in &args.strategy {
        compaction.check(tier, features)?;
    }
    eprintln!("{}, tier {tier}", gpu.name());
    if gpu.is_software() {
        eprintln!("This adapter is software: its times say nothing about a GPU.");
    }
    let cases = args.encoding.len() * args.count.len() * args.order.len() * args.visible.len();
    let bar = ProgressBar::with_draw_target(
        Some((cases * (args.strategy.len() + 1)) as u64),
        ProgressDrawTarget::stderr(),
    );
    bar.set_style(ProgressStyle::with_template(
        "{wide_bar} {pos}/{len} {msg} ({eta})",
    )?);
    let (runs, cache) = if gpu.is_software() { (5, 4) } else { (21, 128) };
    let runs = args.runs.unwrap_or(runs);
    let cache = args.cache.unwrap_or(cache).clamp(1, 1 << 16);
    let mut bench = Bench {
        verifier: Verifier::new(&gpu, args.spoil),
        reader: Reader::new(&gpu),
        filler: Reader::filler(&gpu, cache),
        bar,
        rows: Vec::new(),
        gpu,
        args,
        tier,
        runs,
        cache,
    };
    for encoding in bench.args.encoding.clone() {
        bench.measure_encoding(encoding)?;
    }
    bench.bar.finish_and_clear();
    if !bench.args.json {
        print!("{}", row::table(&bench.rows));
    }
    if let Some(path) = &bench.args.chart {
        chart::write(path, &bench.gpu.name(), &bench.rows)?;
        eprintln!("chart: {}", path.display());
    }
    Ok(())
}

impl Bench {
    fn measure_encoding(&mut self, encoding: Encoding) -> Result<()> {
        let mut compactors = Vec::new();
        for compaction in &self.args.strategy {
            let options = CompactorOptions {
                tier: self.tier,
                compaction: *compaction,
                shader_checks: false,
                encoding: encoding.wgsl(),
            };
            compactors.push((*compaction, Compactor::new(&self.gpu.device, options)?));
        }
        for count in self.args.count.clone() {
            for order in self.args.order.clone() {
                let shape = Shape::new(&self.gpu, count, order, encoding, &self.args.visible);
                let cases = (self.args.visible.len() * (compactors.len() + 1)) as u64;
                let Some(sets) = self.sets(&shape) else {
                    self.skip(&shape, "more memory than --memory allows", cases);
                    continue;
                };
                self.bar
                    .set_message(format!("{encoding:?}, {count}: instances"));
                let made = (0..sets).map(|seed| Input::new(&self.gpu, &shape, seed, |_| ()));
                match made.collect::<Result<Vec<_>>>() {
                    Ok(inputs) => self.measure_inputs(&shape, &inputs, &mut compactors)?,
                    Err(error) => self.skip(&shape, &error.to_string(), cases),
                }
            }
        }
        Ok(())
    }

    fn skip(&self, shape: &Shape, why: &str, cases: u64) {
        let what = format!("{} {} instances", shape.count, shape.encoding.name());
        self.bar.suspend(|| eprintln!("skipped: {what}: {why}"));
        self.bar.inc(cases);
    }

    /// Number of input sets to rotate among. Together they are twice as large as the cache. There
    /// are at least two and at most eight, or fewer if the memory does not suffice.
    fn sets(&self, shape: &Shape) -> Option<u64> {
        let default = if self.gpu.is_software() { 3 } else { 16 };
        // The strategies keep their buffers of sums, votes and ids.
        let scratch = u64::from(shape.count) * 12 * self.args.strategy.len() as u64;
        let budget = self.args.memory.unwrap_or(default) << 30;
        let max = budget.checked_sub(scratch)? / shape.bytes();
        let wanted = ((self.cache << 21) / shape.bytes()).clamp(2, 8);
        (max > 0).then(|| wanted.min(max))
    }

    fn measure_inputs(
        &mut self,
        shape: &Shape,
        inputs: &[Input],
        compactors: &mut [(Compaction, Compactor)],
    ) -> Result<()> {
        self.gpu
            .warm_up(|pass| self.reader.record(&self.gpu, &self.filler, pass))?;
        let read = self.time_read(shape, inputs)?;
        for (which, share) in self.args.visible.clone().into_iter().enumerate() {
            let plan = shape.plan(&self.gpu, share);
            let first = self.rows.len();
            self.bar.inc(1);
            for (compaction, compactor) in compactors.iter_mut() {
                let name = shape.encoding.name();
                self.bar
                    .set_message(format!("{name}, {}, {compaction}", shape.count));
                let times = self
                    .time(shape, inputs, which, &plan, (*compaction, compactor))
                    .with_context(|| {
                        let order = shape.order.name();
                        format!(
                            "{compaction}, {name}, {} instances, {order}, {share} visible",
                            shape.count
                        )
                    })?;
                let survivors = inputs[0].expected[which].survivors;
                let case = (*compaction, self.tier);
                self.rows
                    .push(Row::new(case, shape, (share, survivors), (times, read)));
                self.bar.inc(1);
            }
            row::fill_ratios(&mut self.rows, first);
            if self.args.json {
                for row in &self.rows[first..] {
                    let line = serde_json::to_string(row)?;
                    self.bar.suspend(|| println!("{line}"));
                }
            }
        }
        Ok(())
    }

    /// Reads the filler if the input sets together are smaller than twice the cache.
    fn fill_cache(&self, shape: &Shape, inputs: &[Input], encoder: &mut CommandEncoder) {
        if shape.bytes() * inputs.len() as u64 >= self.cache << 21 {
            return;
        }
        let mut pass = encoder.begin_compute_pass(&Default::default());
        self.reader.record(&self.gpu, &self.filler, &mut pass);
    }

    /// Times a plain read of the instances.
    fn time_read(&self, shape: &Shape, inputs: &[Input]) -> Result<Times> {
        let mut times = Vec::new();
        for run in 0..self.args.warm_up + self.runs {
            let input = &inputs[run % inputs.len()];
            let (us, _) = self.gpu.run(
                |encoder| self.fill_cache(shape, inputs, encoder),
                |pass| {
                    input
                        .pages
                        .iter()
                        .for_each(|page| self.reader.record(&self.gpu, page, pass));
                },
                |_| (),
                None,
            )?;
            if run >= self.args.warm_up {
                times.push(us);
            }
        }
        Ok(Times::of(times))
    }

    /// Times all runs of one compaction and verifies each.
    fn time(
        &self,
        shape: &Shape,
        inputs: &[Input],
        which: usize,
        plan: &Plan,
        (compaction, compactor): (Compaction, &mut Compactor),
    ) -> Result<Times> {
        let gpu = &self.gpu;
        let mut times = Vec::new();
        for run in 0..self.args.warm_up + self.runs {
            let input = &inputs[run % inputs.len()];
            gpu.within_memory(|| {
                Ok(compactor.prepare(&gpu.device, &gpu.queue, plan, &input.pages)?)
            })?;
            let compactor = &*compactor;
            let (us, digest) = gpu.run(
                |encoder| self.fill_cache(shape, inputs, encoder),
                |pass| compactor.record(plan, pass),
                |encoder| {
                    self.verifier.clear(encoder);
                    for (batch, tables) in plan.batches.iter().enumerate() {
                        let first = tables.page as u32 * shape.page_len;
                        if let Some(outputs) = compactor.outputs(batch) {
                            let verifier = &self.verifier;
                            verifier.add(gpu, encoder, outputs, first, (0, false));
                        }
                    }
                },
                Some(self.verifier.digest()),
            )?;
            self.verifier
                .check(compaction.is_ordered(), &digest, &input.expected[which])?;
            if run >= self.args.warm_up {
                times.push(us);
            }
        }
        Ok(Times::of(times))
    }
}
