//! Times every requested expansion at every requested size and distribution. The GPU times both
//! passes separately, and each result is compared with the sums that the counts give.
//!
//! Most of the expansions are from "Work expansion" by Ipotrick, the author of the renderer
//! Timberdoodle: <https://github.com/Ipotrick/Timberdoodle>
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

use anyhow::{Context, Result, bail, ensure};
use bevy_gpu_culling::cull::{
    CullError, CullingTier, Expander, Expansion,
    expand::{ExpandCode, ExpandDispatch, ExpandInput, ExpanderOptions, SourceCount},
};
use clap::{Parser, ValueEnum};
use common::{Gpu, parse_count, reader::Reader, stats::Times};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use input::{Distribution, Sums};
use row::{Case, Row};
use std::path::PathBuf;
use wgpu::{
    BindGroup, BindGroupLayout, Buffer, BufferUsages,
    util::{BufferInitDescriptor, DeviceExt},
};

/// Measures every work expansion on this adapter.
#[derive(Parser)]
#[command(name = "expansion", version)]
struct Args {
    /// Numbers of sources: 64000, 64k or 64M; commas separate several [default: 1k to 16M, 1k to
    /// 100k in software]
    #[arg(long, value_delimiter = ',', value_parser = parse_count)]
    sources: Vec<u32>,
    /// Distributions of the items over the sources [default: all]
    #[arg(long, value_delimiter = ',')]
    distribution: Vec<Distribution>,
    /// Items per source of the distribution "equal"
    #[arg(long, default_value_t = 64, value_parser = parse_count)]
    equal: u32,
    /// Expansions [default: all that this adapter supports]
    #[arg(long, value_delimiter = ',')]
    expansion: Vec<Expansion>,
    /// How pass 2 gets its workgroups
    #[arg(long, value_delimiter = ',', default_value = "persistent")]
    dispatch: Vec<Dispatch>,
    /// One dispatch for all buckets, or one per bucket
    #[arg(long, value_delimiter = ',', default_value = "merged")]
    buckets: Vec<Buckets>,
    /// The tier [default: the best that the adapter supports]
    #[arg(long)]
    tier: Option<CullingTier>,
    /// Skips cases with more items, or with more threads of "fixed-max" [default: 4200M, 32M in
    /// software]
    #[arg(long, value_parser = parse_count)]
    items: Option<u32>,
    /// Timed runs per case [default: 21, 3 in software]
    #[arg(long)]
    runs: Option<usize>,
    /// Untimed runs before them
    #[arg(long, default_value_t = 2)]
    warm_up: usize,
    /// Size of the cache in MiB. It is filled with other data before each pass 1 [default: 128, 4
    /// in software]
    #[arg(long)]
    cache: Option<u64>,
    /// Most memory for the buffers of one expansion, in GiB
    #[arg(long, default_value_t = 16)]
    memory: u64,
    /// Prints one JSON object per line instead of the table
    #[arg(long)]
    json: bool,
    /// Writes a chart of the rates to this SVG file
    #[arg(long)]
    chart: Option<PathBuf>,
    /// Checks the check: changes every result, so that the benchmark must fail
    #[arg(long)]
    spoil: bool,
    /// Set by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Dispatch {
    Persistent,
    Indirect,
}

impl Dispatch {
    const fn engine(self) -> ExpandDispatch {
        match self {
            Self::Persistent => ExpandDispatch::Persistent,
            Self::Indirect => ExpandDispatch::Indirect,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Buckets {
    Merged,
    Separate,
}

/// State that all cases share.
struct Bench {
    gpu: Gpu,
    args: Args,
    runs: usize,
    /// Most items of a case, or threads of `fixed-max`.
    max_items: u32,
    reader: Reader,
    filler: Buffer,
    sums: Buffer,
    /// Initial contents of `sums`.
    start: Buffer,
    group: BindGroup,
    bar: ProgressBar,
    rows: Vec<Row>,
}

/// The sources' counts on the GPU, and the sums over their items.
struct Input {
    distribution: Distribution,
    sources: u32,
    /// Items of the largest source.
    max: u32,
    counts: Buffer,
    expected: Sums,
}

fn main() {
    let args = Args::parse();
    common::main(args.bench, || run(args));
}

fn run(mut args: Args) -> Result<()> {
    ensure!(args.runs != Some(0), "--runs of 0 measures nothing");
    let gpu = Gpu::new()?;
    let tier = gpu.tier(args.tier)?;
    let features = gpu.device.features();
    eprintln!("{}, tier {tier}", gpu.name());
    let software = gpu.is_software();
    if software {
        eprintln!("This adapter is software: its times say nothing about a GPU.");
    }
    if args.sources.is_empty() {
        args.sources = vec![1000, 10_000, 100_000];
        if !software {
            args.sources.extend([1_000_000, 4_000_000, 16_000_000]);
        }
    }
    if args.distribution.is_empty() {
        args.distribution = Distribution::ALL.to_vec();
    }
    if args.expansion.is_empty() {
        args.expansion = Expansion::ALL.to_vec();
        args.expansion.retain(|expansion| {
            let (_, reason) = expansion.supported(features);
            reason
                .inspect(|reason| eprintln!("left out: {reason}"))
                .is_none()
        });
    }
    for expansion in &args.expansion {
        expansion.check(features)?;
    }
    let layout = sums_layout(&gpu);
    let mut expanders = build(&gpu, &args, tier, &layout)?;
    let bar = ProgressBar::with_draw_target(
        Some((expanders.len() * args.sources.len() * args.distribution.len()) as u64),
        ProgressDrawTarget::stderr(),
    );
    bar.set_style(ProgressStyle::with_template(
        "{wide_bar} {pos}/{len} {msg} ({eta})",
    )?);
    let sums = common::buffer(
        &gpu.device,
        "sums",
        16,
        BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST,
    );
    let start = [0, 0, 0, u32::from(args.spoil)];
    let cache = args.cache.unwrap_or(if software { 4 } else { 128 });
    let mut bench = Bench {
        runs: args.runs.unwrap_or(if software { 3 } else { 21 }),
        max_items: args
            .items
            .unwrap_or(if software { 32_000_000 } else { 4_200_000_000 }),
        reader: Reader::new(&gpu),
        filler: Reader::filler(&gpu, cache.clamp(1, 1 << 16)),
        start: gpu.device.create_buffer_init(&BufferInitDescriptor {
            label: Some("start"),
            contents: bytemuck::cast_slice(&start),
            usage: BufferUsages::COPY_SRC,
        }),
        group: gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("sums"),
            layout: &layout,
            entries: &[wgpu::BindGroupEntry {
                binding: 0,
                resource: sums.as_entire_binding(),
            }],
        }),
        sums,
        bar,
        rows: Vec::new(),
        gpu,
        args,
    };
    for distribution in bench.args.distribution.clone() {
        for sources in bench.args.sources.clone() {
            bench.measure_input(distribution, sources, &mut expanders)?;
        }
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

fn sums_layout(gpu: &Gpu) -> BindGroupLayout {
    let descriptor = wgpu::BindGroupLayoutDescriptor {
        label: Some("sums"),
        entries: &[wgpu::BindGroupLayoutEntry {
            binding: 0,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only: false },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        }],
    };
    gpu.device.create_bind_group_layout(&descriptor)
}

/// One expander per expansion, dispatch and way to dispatch buckets.
fn build(
    gpu: &Gpu,
    args: &Args,
    tier: CullingTier,
    layout: &BindGroupLayout,
) -> Result<Vec<(Case, Expander)>> {
    let mut expanders = Vec::new();
    for dispatch in &args.dispatch {
        for expansion in &args.expansion {
            let ways = if expansion.has_buckets() {
                &args.buckets[..]
            } else {
                &[Buckets::Merged]
            };
            for way in ways {
                let case = Case {
                    expansion: *expansion,
                    tier,
                    dispatch: dispatch.engine(),
                    merged: *way == Buckets::Merged,
                };
                let body = ExpandCode {
                    wgsl: include_str!("sum.wgsl"),
                    layout: Some(layout),
                };
                let options = ExpanderOptions {
                    expansion: *expansion,
                    dispatch: case.dispatch,
                    merged: case.merged,
                    ..ExpanderOptions::new(tier, body)
                };
                expanders.push((case, Expander::new(&gpu.device, &options)?));
            }
        }
    }
    Ok(expanders)
}

/// The reason why a case has no row.
struct Skipped(String);

impl Bench {
    fn measure_input(
        &mut self,
        distribution: Distribution,
        sources: u32,
        expanders: &mut [(Case, Expander)],
    ) -> Result<()> {
        let what = format!("{}, {sources} sources", distribution.name());
        self.bar.set_message(what.clone());
        let counts = distribution.counts(sources, self.args.equal);
        let items: u64 = counts.iter().map(|items| u64::from(*items)).sum();
        if items > u64::from(self.max_items) {
            let why = format!("{items} items exceed --items");
            self.skip(&what, &why, expanders.len());
            return Ok(());
        }
        let input = Input {
            distribution,
            sources,
            max: counts.iter().copied().max().unwrap_or(0),
            counts: self.gpu.device.create_buffer_init(&BufferInitDescriptor {
                label: Some("counts"),
                contents: bytemuck::cast_slice(&counts),
                usage: BufferUsages::STORAGE,
            }),
            expected: Sums::of(&counts),
        };
        let first = self.rows.len();
        for (case, expander) in expanders {
            let what = format!("{what}, {}", case.expansion);
            self.bar.set_message(what.clone());
            match self
                .measure(&input, *case, expander)
                .with_context(|| what.clone())?
            {
                Ok(row) => {
                    self.rows.push(row);
                    self.bar.inc(1);
                }
                Err(Skipped(why)) => self.skip(&what, &why, 1),
            }
        }
        row::fill_ratios(&mut self.rows, first);
        if self.args.json {
            for row in &self.rows[first..] {
                let line = serde_json::to_string(row)?;
                self.bar.suspend(|| println!("{line}"));
            }
        }
        Ok(())
    }

    fn skip(&self, what: &str, why: &str, cases: usize) {
        self.bar.suspend(|| eprintln!("skipped: {what}: {why}"));
        self.bar.inc(cases as u64);
    }

    /// Times all runs of one expansion and verifies each.
    fn measure(
        &self,
        input: &Input,
        case: Case,
        expander: &mut Expander,
    ) -> Result<Result<Row, Skipped>> {
        let threads = u64::from(input.max) * u64::from(input.sources);
        if case.expansion == Expansion::FixedMax && threads > u64::from(self.max_items) {
            let why = format!("{threads} threads exceed --items");
            return Ok(Err(Skipped(why)));
        }
        if let Err(Skipped(why)) = self.prepare(input, expander)? {
            return Ok(Err(Skipped(why)));
        }
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for run in 0..self.args.warm_up + self.runs {
            let [pass1, pass2] = self.run(input, expander)?;
            if run >= self.args.warm_up {
                first.push(pass1);
                second.push(pass2);
            }
        }
        Ok(Ok(Row::new(
            case,
            (input.distribution, input.sources, input.expected.items),
            [Times::of(first), Times::of(second)],
            expander.gpu_bytes(),
        )))
    }

    /// Makes room for all entries, as counted by a first run of pass 1.
    fn prepare(&self, input: &Input, expander: &mut Expander) -> Result<Result<(), Skipped>> {
        let gpu = &self.gpu;
        let source = ExpandInput {
            counts: Some(&input.counts),
            sources: SourceCount::Known(input.sources),
        };
        // The size must be this case's, so give up what another case needed.
        expander.shrink(&gpu.device);
        let prepared =
            gpu.within_memory(|| Ok(expander.prepare(&gpu.device, &gpu.queue, &source)?));
        let ready = prepared.and_then(|()| {
            gpu.run(
                |_| (),
                |pass| expander.record_sources(pass, None),
                |_| (),
                None,
            )?;
            let report = expander.read(&gpu.device, &gpu.queue)?;
            match report.check() {
                Ok(()) => Ok(()),
                Err(CullError::ExpansionOverflow { .. }) => gpu.within_memory(|| {
                    expander.grow(&gpu.device, &gpu.queue, &report)?;
                    Ok(())
                }),
                Err(error) => Err(error.into()),
            }
        });
        if let Err(error) = ready {
            return Ok(Err(Skipped(format!("{error:#}"))));
        }
        let (bytes, max) = (expander.gpu_bytes(), self.args.memory << 30);
        if bytes > max {
            let why = format!("{bytes} bytes exceed --memory");
            return Ok(Err(Skipped(why)));
        }
        Ok(Ok(()))
    }

    /// Microseconds of both passes, or an error if the sums differ from those that the counts give.
    fn run(&self, input: &Input, expander: &Expander) -> Result<[f64; 2]> {
        let gpu = &self.gpu;
        let (pass1, _) = gpu.run(
            |encoder| {
                let mut pass = encoder.begin_compute_pass(&Default::default());
                self.reader.record(gpu, &self.filler, &mut pass);
            },
            |pass| expander.record_sources(pass, None),
            |_| (),
            None,
        )?;
        let (pass2, sums) = gpu.run(
            |encoder| {
                encoder.copy_buffer_to_buffer(&self.start, 0, &self.sums, 0, 16);
                // This leaves the input of pass 2 in the caches, as pass 1 does in a frame.
                let mut pass = encoder.begin_compute_pass(&Default::default());
                expander.record_sources(&mut pass, None);
            },
            |pass| expander.record_items(pass, Some(&self.group)),
            |_| (),
            Some(&self.sums),
        )?;
        let [items, a, b, _] = *sums else {
            bail!("{} words of sums, expected 4", sums.len());
        };
        let expected = input.expected;
        ensure!(
            u64::from(items) == expected.items,
            "{items} items, but the counts add up to {}",
            expected.items
        );
        ensure!(
            (a, b) == (expected.a, expected.b),
            "the number of items ({items}) is right, but their sums differ"
        );
        Ok([pass1, pass2])
    }
}
