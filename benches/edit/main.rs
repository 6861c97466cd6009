//! Measures what editing a set costs: some of its instances move in each frame, in random places or
//! in runs, with and without scales. What arrives on the GPU is compared with the CPU twin. With
//! `--sets`, measures what it costs that one of many sets changes.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks by printing"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../examples/orbs/end.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod end;
#[path = "../../examples/orbs/offscreen.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod offscreen;
mod sets;

use anyhow::{Result, anyhow, bail, ensure};
use bevy::{
    camera::RenderTarget,
    prelude::*,
    render::{render_resource::TextureFormat, renderer::RenderAdapterInfo},
};
use bevy_gpu_culling::{
    instance::InstanceSet,
    prelude::{CullingReport, GpuCullingPlugin, GpuInstances},
    render::{CpuStage, verify::Verifier},
};
use clap::{Parser, ValueEnum};
use common::stats::Times;
use end::CleanEnd;
use offscreen::Uploads;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::time::Instant;

/// Measures what editing a set costs per frame.
#[derive(Parser)]
#[command(name = "edit", version)]
struct Args {
    /// Number of instances: 64000, 64k or 64M [default: 1M, 20k with --quick]
    #[arg(long, value_parser = common::parse_count)]
    count: Option<u32>,
    /// Measures this number of sets of which one changes per frame, against all still
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    sets: Option<u32>,
    /// Share of the instances that each frame edits, in percent
    #[arg(long, default_value_t = 1.0)]
    percent: f64,
    /// Measured frames per case [default: 150, 4 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    frames: Option<u32>,
    /// A small set and few frames, for software adapters
    #[arg(long)]
    quick: bool,
    /// Prints one JSON object per line instead of the table
    #[arg(long)]
    json: bool,
    /// Set by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// Where the edited instances are.
#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Places {
    /// Each anywhere: `InstanceSet::set`.
    Random,
    /// In runs that begin anywhere: `InstanceSet::set_range`.
    Runs,
}

/// Instances of a run.
const RUN: u32 = 1000;
/// Frames before the measured ones.
const WARM_UP: u32 = 5;
/// The longest wait for a set or a verdict, in frames.
const PATIENCE: u32 = 2000;
const SEED: u64 = 23;

/// What a case has shown: medians of its frames.
#[derive(Serialize)]
struct Row {
    places: Places,
    scales: bool,
    count: u32,
    /// Instances that each frame edits.
    edited: u32,
    /// CPU time of the edits.
    edit_ms: f64,
    /// CPU time of the plugin in the main world: bounds of changed sets.
    main_ms: f64,
    /// CPU time of extraction: changes are found, and uploaded.
    extract_ms: f64,
    /// Bytes that the frame uploads: instances, scales and tables.
    uploaded_bytes: u64,
    /// The same in frames without an edit.
    floor_bytes: u64,
    verified: bool,
    adapter: String,
}

fn main() {
    let args = Args::parse();
    common::main(args.bench, || run(&args));
}

fn run(args: &Args) -> Result<()> {
    let count = args
        .count
        .unwrap_or(if args.quick { 20_000 } else { 1_000_000 });
    let frames = args.frames.unwrap_or(if args.quick { 4 } else { 150 });
    ensure!(
        args.percent > 0.0 && args.percent <= 100.0,
        "--percent {} is not above 0 and at most 100",
        args.percent
    );
    let edited = ((f64::from(count) * args.percent / 100.0).round() as u32).max(1);
    // Before the app, because it must be dropped after the app.
    let end = CleanEnd::new();
    let mut stage = Stage::new(&end)?;
    if let Some(sets) = args.sets {
        return sets::run(&mut stage, [sets, count, frames], args.json);
    }
    if !args.json {
        println!("{edited} of {count} instances edited per frame; medians of {frames} frames");
        println!(
            "{:<8}{:<8}{:>10}{:>10}{:>12}{:>16}{:>12}",
            "places", "scales", "edit_ms", "main_ms", "extract_ms", "uploaded_bytes", "floor"
        );
    }
    for places in [Places::Random, Places::Runs] {
        for scales in [false, true] {
            let row = stage.measure(places, scales, [count, edited, frames])?;
            if args.json {
                println!("{}", serde_json::to_string(&row)?);
                continue;
            }
            let name = places.to_possible_value();
            println!(
                "{:<8}{:<8}{:>10.3}{:>10.3}{:>12.3}{:>16}{:>12}",
                name.as_ref().map_or("", |name| name.get_name()),
                if scales { "yes" } else { "no" },
                row.edit_ms,
                row.main_ms,
                row.extract_ms,
                row.uploaded_bytes,
                row.floor_bytes
            );
        }
    }
    Ok(())
}

/// An app without a window, with a camera in the middle of the set.
struct Stage {
    app: App,
}

impl Stage {
    fn new(end: &CleanEnd) -> Result<Self> {
        let mut app = App::new();
        let log = offscreen::log_to_stderr("warn,wgpu_hal=error");
        offscreen::add_bevy(&mut app, end, log, true);
        app.add_plugins(GpuCullingPlugin::default());
        offscreen::start(&mut app);
        let target = Image::new_target_texture(64, 64, TextureFormat::Rgba8UnormSrgb, None);
        let world = app.world_mut();
        let target = world.resource_mut::<Assets<Image>>().add(target);
        world.spawn((Camera3d::default(), RenderTarget::Image(target.into())));
        Ok(Self { app })
    }

    /// Draws a frame, waits for the GPU, and returns the time in milliseconds.
    fn frame(&mut self) -> Result<f64> {
        match end::frame(&mut self.app) {
            Ok(ms) => Ok(ms),
            Err(_) => bail!("the app ended before its work was done"),
        }
    }

    /// The report of the frame before this one.
    fn report(&self) -> &CullingReport {
        self.app.world().resource()
    }

    /// Draws a new set, edits it in each frame, and removes it.
    fn measure(
        &mut self,
        places: Places,
        scales: bool,
        [count, edited, frames]: [u32; 3],
    ) -> Result<Row> {
        let set = self.spawn(count, scales)?;
        // Buffers have grown, and nothing of the new set is left to upload.
        (0..WARM_UP).try_for_each(|_| self.frame().map(drop))?;
        let floor_bytes = self.report().uploaded_bytes;
        let mut dice = ChaCha8Rng::seed_from_u64(SEED);
        let mut samples: [Vec<f64>; 4] = Default::default();
        for frame in 0..WARM_UP + frames {
            let begin = Instant::now();
            self.edit(&set, places, [count, edited], scales, &mut dice)?;
            let edit_ms = begin.elapsed().as_secs_f64() * 1e3;
            self.frame()?;
            if frame < WARM_UP {
                continue;
            }
            // Its report is of the frame before, which was edited, too.
            let report = self.report();
            let ms = |stage| report.cpu.of(stage).as_secs_f64() * 1e3;
            let values = [
                edit_ms,
                ms(CpuStage::Main),
                ms(CpuStage::Extract),
                report.uploaded_bytes as f64,
            ];
            for (samples, value) in samples.iter_mut().zip(values) {
                samples.push(value);
            }
        }
        let verified = self.verify()?;
        let [edit_ms, main_ms, extract_ms, bytes] =
            samples.map(|samples| Times::of(samples).median);
        let world = self.app.world_mut();
        let entity = world.query_filtered::<Entity, With<GpuInstances>>();
        for entity in { entity }.iter(world).collect::<Vec<_>>() {
            world.despawn(entity);
        }
        drop(set);
        Ok(Row {
            places,
            scales,
            count,
            edited,
            edit_ms,
            main_ms,
            extract_ms,
            uploaded_bytes: bytes as u64,
            floor_bytes,
            verified,
            adapter: self.adapter(),
        })
    }

    fn adapter(&self) -> String {
        let info = self.app.world().resource::<RenderAdapterInfo>();
        info.name.clone()
    }

    /// Spawns a sorted set around the camera, and waits until it has arrived.
    fn spawn(&mut self, count: u32, scales: bool) -> Result<Handle<InstanceSet>> {
        let side = count.isqrt().max(1);
        let grid = (0..count).map(|i| {
            let place = Vec2::new((i % side) as f32, (i / side) as f32) - side as f32 / 2.0;
            Transform::from_xyz(place.x, 0.0, place.y).with_scale(Vec3::splat(scale(scales, 0.5)))
        });
        let set = InstanceSet::from_transforms(grid)?.sorted();
        let world = self.app.world_mut();
        let set = world.resource_mut::<Assets<InstanceSet>>().add(set);
        let mesh = world
            .resource_mut::<Assets<Mesh>>()
            .add(Triangle3d::default());
        let material = Color::srgb(0.8, 0.8, 0.8);
        let material = world
            .resource_mut::<Assets<StandardMaterial>>()
            .add(material);
        world.spawn((
            Mesh3d(mesh),
            MeshMaterial3d(material),
            GpuInstances(set.clone()),
        ));
        let mut uploads = Uploads::default();
        for _ in 0..PATIENCE {
            self.frame()?;
            if uploads.are_complete(self.app.world_mut()) {
                return Ok(set);
            }
        }
        bail!("the set did not arrive within {PATIENCE} frames")
    }

    /// Moves instances up or down, into the view or out of it.
    fn edit(
        &mut self,
        set: &Handle<InstanceSet>,
        places: Places,
        [count, edited]: [u32; 2],
        scales: bool,
        dice: &mut ChaCha8Rng,
    ) -> Result<()> {
        let mut sets = self.app.world_mut().resource_mut::<Assets<InstanceSet>>();
        let mut set = sets
            .get_mut(set)
            .ok_or_else(|| anyhow!("the set is gone"))?;
        let run = match places {
            Places::Random => 1,
            Places::Runs => RUN.min(count),
        };
        let mut left = edited;
        while left > 0 {
            let len = run.min(left);
            left -= len;
            let first = dice.random_range(0..=count - len);
            let mut moved = Vec::with_capacity(len as usize);
            for index in first..first + len {
                let instance = set.get(index).ok_or_else(|| anyhow!("no such instance"))?;
                let up = dice.random_range(-40.0f32..40.0);
                let size = scale(scales, dice.random_range(0.5f32..1.5));
                let place = Transform::from_translation(instance.translation.with_y(up));
                moved.push(place.with_scale(Vec3::splat(size)));
            }
            match (places, moved.as_slice()) {
                (Places::Random, [place]) => set.set(first, *place)?,
                _ => set.set_range(first, moved)?,
            }
        }
        Ok(())
    }

    /// Compares the survivors of the last view with the CPU twin's.
    fn verify(&mut self) -> Result<bool> {
        let verifier = self.app.world().get_resource::<Verifier>().cloned();
        let verifier = verifier.ok_or_else(|| anyhow!("the device cannot cull"))?;
        verifier.request();
        for _ in 0..PATIENCE {
            self.frame()?;
            if let Some(verdicts) = verifier.take() {
                offscreen::check_verdicts(&verdicts, 1).map_err(|reason| anyhow!(reason))?;
                return Ok(true);
            }
        }
        bail!("the verdicts did not come within {PATIENCE} frames")
    }
}

/// The scale of an instance: 1 in a set without scales.
fn scale(scales: bool, scale: f32) -> f32 {
    if scales { scale } else { 1.0 }
}
