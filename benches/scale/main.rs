//! Measures the engine from a thousand instances to as many as fit: all stages in one pass, each
//! stage alone, CPU time, memory, upload and start-up. Each run's result is compared with the twin.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks by printing"
)]

mod chart;
mod cli;
#[path = "../common/mod.rs"]
mod common;
mod demo;
mod points;
mod requests;
mod row;

use anyhow::{Context, Result, ensure};
use bevy_gpu_culling::{
    cull::{
        Channels, Compaction, CullFrame, Culler, CullerOptions, CullingTier, DrawSource,
        IndirectDraws, Order as DrawOrder, SetId, Stage, layout::FarFirstJob, reference,
    },
    instance::InstanceSet,
};
use clap::{Parser, ValueEnum};
use cli::{Args, PeerName, Switch};
use common::{
    Gpu,
    reader::Reader,
    stats::Times,
    verify::{Expected, Verifier},
};
use demo::Demo;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use points::Order;
use requests::Requests;
use row::{Peer, Row};
use std::{collections::BTreeMap, time::Instant};
use wgpu::{Buffer, CommandEncoder, ComputePass, PollType};

/// Most entities for the comparison with Bevy. More take minutes to start.
const MAX_ENTITIES: u32 = 4_000_000;
/// Repetitions of all stages in one pass for `repeated_us`.
const REPEATS: u32 = 10;
/// The only set.
const SET: SetId = SetId(1);

/// State that all cases share.
struct Bench {
    gpu: Gpu,
    args: Args,
    tier: CullingTier,
    runs: usize,
    verifier: Verifier,
    reader: Reader,
    filler: Buffer,
    demo: Option<Demo>,
    bar: ProgressBar,
    rows: Vec<Row>,
}

fn main() {
    let args = Args::parse();
    common::main(args.bench, || run(args));
}

fn run(mut args: Args) -> Result<()> {
    ensure!(args.runs != Some(0), "--runs of 0 measures nothing");
    let shares_hold = args.visible.iter().all(|share| (0.0..=1.0).contains(share));
    ensure!(shares_hold, "--visible takes shares from 0 to 1");
    let gpu = Gpu::new()?;
    let tier = gpu.tier(args.tier)?;
    let features = gpu.device.features();
    let software = gpu.is_software();
    if args.count.is_empty() {
        args.count = vec![1000, 10_000, 100_000, 1_000_000];
        if !software {
            args.count
                .extend([4_000_000, 16_000_000, 67_108_864, 100_000_000]);
        }
    }
    if args.order.is_empty() {
        args.order = Order::value_variants().to_vec();
    }
    if args.classify.is_empty() {
        args.classify = Switch::value_variants().to_vec();
    }
    if args.compaction.is_empty() {
        args.compaction = [
            Compaction::LookBack,
            Compaction::Classify,
            Compaction::VoteScanCompact,
        ]
        .into_iter()
        .filter(|compaction| args.classify.contains(&Switch::of(*compaction)))
        .filter(|compaction| compaction.check(tier, features).is_ok())
        .collect();
    }
    for compaction in &args.compaction {
        compaction.check(tier, features)?;
    }
    eprintln!("{}, tier {tier}", gpu.name());
    if software {
        eprintln!("This adapter is software: its times say nothing about a GPU.");
    }
    let cases = args.count.len() * args.order.len() * args.compaction.len();
    let cases = cases * args.visible.len() * args.views.len() * args.requests().len();
    let cases = cases * args.hide.len();
    let bar = ProgressBar::with_draw_target(Some(cases as u64), ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::with_template(
        "{wide_bar} {pos}/{len} {msg} ({eta})",
    )?);
    let (runs, cache) = if software { (5, 4) } else { (21, 128) };
    let cache = args.cache.unwrap_or(cache).clamp(1, 1 << 16);
    let mut bench = Bench {
        verifier: Verifier::new(&gpu, args.spoil),
        reader: Reader::new(&gpu),
        filler: Reader::filler(&gpu, cache),
        demo: args.orbs.as_deref().map(Demo::new),
        runs: args.runs.unwrap_or(runs),
        bar,
        rows: Vec::new(),
        gpu,
        args,
        tier,
    };
    for count in bench.args.count.clone() {
        for order in bench.args.order.clone() {
            for hide in bench.args.hide.clone() {
                bench.measure_set(count, order, hide)?;
            }
        }
    }
    bench.bar.finish_and_clear();
    let peers = bench.peers()?;
    if bench.args.json {
        for peer in &peers {
            println!("{}", serde_json::to_string(peer)?);
        }
    } else {
        print!("{}", row::table(&bench.rows));
        if !peers.is_empty() {
            print!("\n{}", row::peer_table(&peers));
        }
    }
    if let Some(path) = &bench.args.chart {
        chart::write(path, &bench.gpu.name(), &bench.rows)?;
        eprintln!("chart: {}", path.display());
    }
    Ok(())
}

/// A culler with the set, and the times of its start.
struct Loaded<'a> {
    culler: Culler,
    set: &'a InstanceSet,
    start_ms: Vec<(&'static str, f64)>,
    upload_gb_s: f64,
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

impl Bench {
    fn measure_set(&mut self, count: u32, order: Order, hide: u32) -> Result<()> {
        let requests = self.args.requests();
        let cases = self.args.visible.len() * self.args.views.len() * requests.len();
        let compactions = self.args.compaction.clone();
        let what = format!("{count} {}", order.name());
        self.bar.set_message(format!("{what}: instances"));
        let max_views = self.args.views.iter().copied().max().unwrap_or(1);
        let shares = self.args.visible.clone();
        let begin = Instant::now();
        let mut set = points::points(count, order, &shares, max_views)?;
        if let Some(last) = hide.checked_sub(1) {
            for index in (last..count).step_by(hide as usize) {
                set.hide(index)?;
            }
        }
        let generate = milliseconds(begin);
        let expected = points::expected(&set, &shares, max_views);
        for (index, compaction) in compactions.iter().copied().enumerate() {
            let loaded = self.load(&set, compaction, generate);
            let mut loaded = match loaded {
                Ok(loaded) => loaded,
                Err(error) => {
                    self.bar.suspend(|| eprintln!("skipped: {what}: {error:#}"));
                    self.bar.inc((cases * (compactions.len() - index)) as u64);
                    return Ok(());
                }
            };
            for views in self.args.views.clone() {
                self.gpu
                    .warm_up(|pass| self.reader.record(&self.gpu, &self.filler, pass))?;
                let read = self.time_read(&mut loaded.culler, views)?;
                let cases = requests.iter().flat_map(|requests| {
                    shares.iter().zip(&expected).map(move |of| (*requests, of))
                });
                for (requests, (share, expected)) in cases {
                    let name = format!("{what}, {share} visible, {views} views");
                    self.bar.set_message(name.clone());
                    let case = (*share, views, requests, hide);
                    let row = self
                        .measure_case(&mut loaded, (count, order), case, expected, read)
                        .with_context(|| format!("{name}, {compaction}"))?;
                    if self.args.json {
                        let line = serde_json::to_string(&row)?;
                        self.bar.suspend(|| println!("{line}"));
                    }
                    self.rows.push(row);
                    self.bar.inc(1);
                }
            }
        }
        Ok(())
    }

    /// A culler with the set uploaded, or an error if the memory does not suffice.
    fn load<'a>(
        &self,
        set: &'a InstanceSet,
        compaction: Compaction,
        generate: f64,
    ) -> Result<Loaded<'a>> {
        let (device, queue) = (&self.gpu.device, &self.gpu.queue);
        let begin = Instant::now();
        let options = CullerOptions {
            tier: Some(self.tier),
            compaction,
            // Room for all survivors, so that no run is lost to an arena that still has to grow.
            survivor_capacity: u32::MAX,
            ..CullerOptions::default()
        };
        let (mut culler, _) = Culler::new(device, options)?;
        let pipelines = milliseconds(begin);
        self.gpu.within_memory(|| {
            culler
                .store_mut()
                .reserve_set(device, SET, set.len() as u32, Channels::default())?;
            Ok(())
        })?;
        // The driver allocates the memory at its first use.
        queue.submit([]);
        device.poll(PollType::wait_indefinitely())?;
        let begin = Instant::now();
        culler.store_mut().upload(queue, SET, 0, set.packed())?;
        queue.submit([]);
        device.poll(PollType::wait_indefinitely())?;
        let upload = milliseconds(begin);
        Ok(Loaded {
            culler,
            set,
            start_ms: vec![
                ("generate", generate),
                ("pipelines", pipelines),
                ("upload", upload),
            ],
            upload_gb_s: size_of_val(set.packed()) as f64 / upload.max(1e-6) / 1e6,
        })
    }

    /// Whether the ids of a row are in instance order.
    fn in_order(&self, culler: &Culler) -> bool {
        culler.compaction().is_ordered() && !self.args.near_first && !self.args.far_first
    }

    /// The order in which the requests draw.
    fn draw_order(&self) -> DrawOrder {
        match (self.args.near_first, self.args.far_first) {
            (true, _) => DrawOrder::NearFirst,
            (_, true) => DrawOrder::FarFirst,
            _ => DrawOrder::Set,
        }
    }

    fn frame(&self, share: f64, views: u32, requests: Requests) -> CullFrame {
        requests.frame(share, views, self.draw_order())
    }

    fn measure_case(
        &mut self,
        loaded: &mut Loaded<'_>,
        (count, order): (u32, Order),
        (share, views, requests, hide): (f64, u32, Requests, u32),
        expected: &[Expected],
        read: Times,
    ) -> Result<Row> {
        let frame = self.frame(share, views, requests);
        let culler = &mut loaded.culler;
        let (mut totals, mut prepares, mut records) = (Vec::new(), Vec::new(), Vec::new());
        let mut dispatches = 0;
        let mut expected_of_all = Expected::default();
        expected.iter().take(views as usize).for_each(|one| {
            for _ in 0..requests.count {
                expected_of_all += *one;
            }
        });
        for run in 0..self.args.warm_up + self.runs {
            let begin = Instant::now();
            self.gpu.within_memory(|| {
                culler.prepare(
                    bevy_gpu_culling::cull::Gpu::new(&self.gpu.device, &self.gpu.queue),
                    &frame,
                );
                Ok(())
            })?;
            let prepare = milliseconds(begin);
            let mut record = 0.0;
            dispatches = 0;
            let (us, digest) = self.gpu.run(
                |encoder| self.fill_cache(encoder),
                |pass| {
                    let begin = Instant::now();
                    for stage in culler.stages() {
                        dispatches += culler.record_stage(stage, pass);
                    }
                    record = milliseconds(begin);
                },
                |encoder| self.digest(culler, (views, requests), encoder),
                Some(self.verifier.digest()),
            )?;
            self.verifier
                .check(self.in_order(culler), &digest, &expected_of_all)?;
            if run >= self.args.warm_up {
                totals.push(us);
                prepares.push(prepare);
                records.push(record);
            }
        }
        if self.args.far_first {
            self.check_far_first(culler, loaded.set, &frame)?;
        }
        let again = self.time_again(culler, (views, requests), &expected_of_all, 1)?;
        let repeated = self.time_again(culler, (views, requests), &expected_of_all, REPEATS)?;
        let stage_us = self.time_stages(culler)?;
        let total = Times::of(totals);
        let (prepare, record) = (Times::of(prepares).median, Times::of(records).median);
        let engine: BTreeMap<_, _> = [("prepare", prepare), ("record", record)]
            .map(|(part, time)| (part.to_owned(), Some(time)))
            .into();
        let (cpu_ms, cpu_bytes) = match &mut self.demo {
            Some(demo) => demo.cpu(count, views)?,
            None => (engine, 0.0),
        };
        let survivor_bytes = culler.survivor_capacity() * 4;
        let on = bevy_gpu_culling::cull::Gpu::new(&self.gpu.device, &self.gpu.queue);
        let batches = 0..culler.plan().batches.len();
        let crossed = batches.map(|batch| Ok(culler.read_totals(on, batch)?.crossed));
        // Other compactions count none.
        let crossed_blocks = match culler.compaction() {
            Compaction::Classify => Some(crossed.sum::<Result<u32>>()?),
            _ => None,
        };
        Ok(Row {
            count,
            visible: share,
            order,
            hide,
            crossed_blocks,
            views,
            primitives: requests.primitives * requests.count,
            requests: requests.count,
            levels: requests.levels,
            compaction: culler.compaction(),
            near_first: self.args.near_first,
            far_first: self.args.far_first,
            classify: Switch::of(culler.compaction()) == Switch::On,
            tier: self.tier.to_string(),
            survivors: expected
                .iter()
                .take(views as usize)
                .map(|one| u64::from(one.survivors))
                .sum(),
            stage_us,
            total_us: total.median,
            again_us: again.median,
            repeated_us: repeated.median,
            spread: total.spread,
            read_fraction: read.median / total.median,
            dispatches,
            cpu_ms,
            bytes_per_instance: (culler.gpu_bytes() - survivor_bytes) as f64 / f64::from(count),
            cpu_bytes_per_instance: cpu_bytes,
            survivor_bytes,
            start_ms: loaded.start_ms.clone(),
            upload_gb_s: loaded.upload_gb_s,
            verified: true,
        })
    }

    /// Compares the order of each view's survivors with the twin's keys, if they are in one page.
    fn check_far_first(&self, culler: &Culler, set: &InstanceSet, frame: &CullFrame) -> Result<()> {
        let gpu = bevy_gpu_culling::cull::Gpu::new(&self.gpu.device, &self.gpu.queue);
        for view in 0..frame.views.len() {
            let [part] = culler.draw_parts(0, view) else {
                continue;
            };
            let plan = &culler.plan().batches[part.batch];
            let chunk = &plan.chunks[part.chunk as usize];
            let row = &plan.chunk_views[part.row as usize];
            let job = FarFirstJob::of_row(part.row, chunk, row).context("a row is not sorted")?;
            let key = |id: &u32| (reference::depth_key(&job, set.packed(), &[], *id), *id);
            let ids = culler.read_survivors(gpu, frame, 0, view)?;
            // Ties are in set order, unless the compaction keeps none.
            let is_ordered = culler.compaction().is_ordered();
            let is_sorted = match is_ordered {
                true => ids.is_sorted_by_key(key),
                false => ids.is_sorted_by_key(|id| key(id).0),
            };
            ensure!(is_sorted, "the survivors of view {view} are not far first");
        }
        Ok(())
    }

    /// Times all stages, run `repeats` times in one pass, after an untimed pass of the same stages.
    /// Code and tables are then in the caches.
    fn time_again(
        &self,
        culler: &Culler,
        (views, requests): (u32, Requests),
        expected: &Expected,
        repeats: u32,
    ) -> Result<Times> {
        let record = |pass: &mut ComputePass<'_>, repeats| {
            for _ in 0..repeats {
                for stage in culler.stages() {
                    culler.record_stage(stage, pass);
                }
            }
        };
        let mut times = Vec::new();
        for _ in 0..self.runs {
            let (us, digest) = self.gpu.run(
                |encoder| record(&mut encoder.begin_compute_pass(&Default::default()), 1),
                |pass| record(pass, repeats),
                |encoder| self.digest(culler, (views, requests), encoder),
                Some(self.verifier.digest()),
            )?;
            self.verifier
                .check(self.in_order(culler), &digest, expected)?;
            times.push(us / f64::from(repeats));
        }
        Ok(Times::of(times))
    }

    /// Median times of the stages. Each is timed in a separate pass, after a pass with the stages
    /// before it.
    fn time_stages(&self, culler: &Culler) -> Result<Vec<(&'static str, f64)>> {
        let stages: Vec<Stage> = culler.stages().collect();
        let mut medians = Vec::new();
        for (index, stage) in stages.iter().enumerate() {
            let mut times = Vec::new();
            for run in 0..self.args.warm_up + self.runs {
                let (us, _) = self.gpu.run(
                    |encoder| {
                        self.fill_cache(encoder);
                        let mut pass = encoder.begin_compute_pass(&Default::default());
                        for stage in &stages[..index] {
                            culler.record_stage(*stage, &mut pass);
                        }
                    },
                    |pass| {
                        culler.record_stage(*stage, pass);
                    },
                    |encoder| {
                        // A frame runs all stages. The last ones leave what the first ones expect.
                        let mut pass = encoder.begin_compute_pass(&Default::default());
                        for stage in &stages[index + 1..] {
                            culler.record_stage(*stage, &mut pass);
                        }
                    },
                    None,
                )?;
                if run >= self.args.warm_up {
                    times.push(us);
                }
            }
            medians.push((stage.name(), Times::of(times).median));
        }
        Ok(medians)
    }

    /// Adds the survivors of all requests and views to the digest.
    fn digest(
        &self,
        culler: &Culler,
        (views, requests): (u32, Requests),
        encoder: &mut CommandEncoder,
    ) {
        self.verifier.clear(encoder);
        let all =
            (0..requests.count).flat_map(|at| (0..views as usize).map(move |view| (at, view)));
        for (request, view) in all {
            for part in culler.draw_parts(request, view) {
                let region = &culler.store().set_regions(SET)[part.region];
                let rows = culler.plan().batches[part.batch].batch.row_count;
                if let (
                    Some(DrawSource::Indirect(IndirectDraws { buffer, .. })),
                    Some([survivors, ..]),
                ) = (culler.draw_source(part), culler.batch_buffers(part.batch))
                {
                    let first: u32 = culler.store().set_regions(SET)[..part.region]
                        .iter()
                        .map(|region| region.capacity)
                        .sum();
                    let first = first.wrapping_sub(region.first);
                    let outputs = (buffer, survivors);
                    self.verifier
                        .add(&self.gpu, encoder, outputs, first, (part.row, rows > 1));
                }
            }
        }
    }

    /// Times a plain read of the instances.
    fn time_read(&self, culler: &mut Culler, views: u32) -> Result<Times> {
        let (device, queue) = (&self.gpu.device, &self.gpu.queue);
        self.gpu.within_memory(|| {
            culler.prepare(
                bevy_gpu_culling::cull::Gpu::new(device, queue),
                &self.frame(0.0, views, Requests::ONE),
            );
            Ok(())
        })?;
        let culler = &*culler;
        let mut pages: Vec<_> = (0..culler.plan().batches.len())
            .map(|batch| (culler.plan().batches[batch].page, batch))
            .collect();
        pages.dedup_by_key(|(page, _)| *page);
        let mut times = Vec::new();
        for run in 0..self.args.warm_up + self.runs {
            let (us, _) = self.gpu.run(
                |encoder| self.fill_cache(encoder),
                |pass| {
                    for (_, batch) in &pages {
                        let instances = culler.plan().batches[*batch].chunks.iter();
                        let instances = instances.map(|chunk| u64::from(chunk.instance_count));
                        if let Some([_, page, ..]) = culler.batch_buffers(*batch) {
                            self.reader
                                .record_first(&self.gpu, page, instances.sum(), pass);
                        }
                    }
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

    fn fill_cache(&self, encoder: &mut CommandEncoder) {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        self.reader.record(&self.gpu, &self.filler, &mut pass);
    }

    /// The demo with sets compared with Bevy's entities.
    fn peers(&self) -> Result<Vec<Peer>> {
        let (Some(demo), Some(PeerName::Bevy)) = (&self.demo, self.args.peer) else {
            return Ok(Vec::new());
        };
        let counts = self
            .args
            .count
            .iter()
            .filter(|count| **count <= MAX_ENTITIES);
        let mut peers = Vec::new();
        for count in counts {
            peers.extend(demo.peers(*count)?);
        }
        Ok(peers)
    }
}
