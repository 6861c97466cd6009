//! Measures a city: many meshes with a few instances each, as sets and as Bevy's entities. What
//! counts is the whole frame on the CPU, with and without the wait for the GPU.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks by printing"
)]

mod city;
#[path = "../common/mod.rs"]
mod common;
#[path = "../../examples/orbs/end.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod end;
#[path = "../../examples/orbs/offscreen.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod offscreen;
mod schedule;
mod stage;

use anyhow::Result;
use bevy::math::UVec2;
use city::City;
use clap::{Parser, ValueEnum};
use end::CleanEnd;
use serde::Serialize;
use stage::Stage;

/// Measures frames of many meshes, as sets and as Bevy's entities.
#[derive(Parser)]
#[command(name = "sets", version)]
struct Args {
    /// Numbers of meshes: 300 or 2k [default: 300,2k, 12 with --quick]
    #[arg(long, value_delimiter = ',', value_parser = common::parse_count)]
    meshes: Vec<u32>,
    /// Numbers of instances per mesh [default: 100, 20 with --quick]
    #[arg(long, value_delimiter = ',', value_parser = common::parse_count)]
    per: Vec<u32>,
    /// Numbers of materials
    #[arg(long, value_delimiter = ',', default_value = "1", value_parser = common::parse_count)]
    materials: Vec<u32>,
    /// Numbers of point lights with shadow maps around the camera
    #[arg(long, value_delimiter = ',', default_value = "0", value_parser = parse_lamps)]
    lamps: Vec<u32>,
    /// Numbers of cascades of the sun's shadows; 0 for none [default: 0,4, 2 with --quick]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(0..=4))]
    cascades: Vec<u32>,
    /// How the city is drawn
    #[arg(long, value_delimiter = ',', default_value = "sets,bevy")]
    peer: Vec<Peer>,
    /// Each mesh has a coarser level, drawn by distance
    #[arg(long)]
    lods: bool,
    /// The camera hides instances of sets that are behind others
    #[arg(long)]
    occlusion: bool,
    /// Each set has its own transform; otherwise all have the same
    #[arg(long)]
    tiles: bool,
    /// Number of sets, or of entities of the peer, that move in each frame
    #[arg(long, default_value_t = 0)]
    moving: u32,
    /// The measured frames are the first turn of the camera: it meets sets that no view has seen
    #[arg(long)]
    first_turn: bool,
    /// Measured frames per case [default: 150, 8 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    frames: Option<u32>,
    /// A small city and few frames, for software adapters
    #[arg(long)]
    quick: bool,
    /// Prints one JSON object per line instead of the table
    #[arg(long)]
    json: bool,
    /// Set by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// How the city is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Peer {
    /// One set per mesh.
    Sets,
    /// One entity per instance, as Bevy draws it by default.
    Bevy,
    /// The same with `NoCpuCulling`: only the GPU tests entities against the frustum.
    #[value(name = "bevy-gpu-culled")]
    BevyGpuCulled,
    /// The same with `NoAutomaticBatching`: one draw per entity.
    #[value(name = "bevy-unbatched")]
    BevyUnbatched,
}

/// How a case is measured.
#[derive(Clone, Copy)]
struct Settings {
    size: UVec2,
    /// Frames before the measured ones.
    warm_up: u32,
    frames: u32,
    /// Sets or entities that move in each frame.
    moving: u32,
    /// The camera turns for the first time.
    first_turn: bool,
}

/// What a case has shown. Times are medians in milliseconds.
#[derive(Serialize)]
struct Row {
    peer: Peer,
    #[serde(flatten)]
    city: City,
    moving: u32,
    /// The whole frame on the CPU, from the main schedule to the last submission.
    cpu_ms: f64,
    /// The part of the plugin's systems.
    ours_ms: Option<f64>,
    /// The same by stage of the frame, in the order of `CpuStage::ALL`.
    stages_ms: Option<Vec<(&'static str, f64)>>,
    /// The whole frame on the CPU by part of Bevy's schedules, ours included.
    schedule_ms: Vec<(&'static str, f64)>,
    /// The whole frame and the GPU's work.
    frame_ms: f64,
    /// The longest measured frame.
    worst_ms: f64,
    /// Sets or entities that the camera sees.
    seen: usize,
    /// Draw calls of sets in the last frame, in all views and passes.
    draw_calls: Option<u32>,
    /// Uploaded by the plugin in a frame.
    uploaded_bytes: Option<u64>,
    /// Held by the plugin on the GPU.
    gpu_bytes: Option<u64>,
    /// Whether all survivors of the last frame equal the survivors of the CPU twin.
    verified: Option<bool>,
    adapter: String,
    driver: String,
    size: [u32; 2],
    frames: u32,
}

fn main() {
    let args = Args::parse();
    common::main(args.bench, || run(&args));
}

fn run(args: &Args) -> Result<()> {
    let or = |given: &[u32], quick: &[u32], full: &[u32]| match (given, args.quick) {
        ([], true) => quick.to_vec(),
        ([], false) => full.to_vec(),
        (given, _) => given.to_vec(),
    };
    let settings = match args.quick {
        true => Settings {
            size: UVec2::new(320, 180),
            warm_up: 4,
            frames: args.frames.unwrap_or(8),
            moving: args.moving,
            first_turn: args.first_turn,
        },
        false => Settings {
            size: UVec2::new(1920, 1080),
            warm_up: 150,
            frames: args.frames.unwrap_or(150),
            moving: args.moving,
            first_turn: args.first_turn,
        },
    };
    if !args.json {
        println!(
            "medians of {} frames at {}x{}",
            settings.frames, settings.size.x, settings.size.y
        );
        println!(
            "{:<17}{:>7}{:>6}{:>10}{:>6}{:>9}{:>9}{:>9}{:>9}{:>9}{:>7}{:>7}{:>10}{:>11}",
            "peer",
            "meshes",
            "per",
            "materials",
            "lamps",
            "cascades",
            "cpu_ms",
            "ours_ms",
            "frame_ms",
            "worst_ms",
            "seen",
            "calls",
            "up_bytes",
            "gpu_bytes"
        );
    }
    // Before the apps, because it must be dropped after them.
    let end = CleanEnd::new();
    for meshes in or(&args.meshes, &[12], &[300, 2000]) {
        for per in or(&args.per, &[20], &[100]) {
            for cascades in or(&args.cascades, &[2], &[0, 4]) {
                for &lamps in &args.lamps {
                    for &materials in &args.materials {
                        let city = City {
                            meshes,
                            per,
                            materials,
                            lamps,
                            cascades,
                            lods: args.lods,
                            occlusion: args.occlusion,
                            tiles: args.tiles,
                        };
                        for &peer in &args.peer {
                            let row = Stage::new(city, peer, settings, &end)?.row()?;
                            print(&row, args.json)?;
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

fn print(row: &Row, json: bool) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string(row)?);
        return Ok(());
    }
    let city = row.city;
    let value = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    let name = row.peer.to_possible_value();
    println!(
        "{:<17}{:>7}{:>6}{:>10}{:>6}{:>9}{:>9.2}{:>9}{:>9.2}{:>9.2}{:>7}{:>7}{:>10}{:>11}",
        name.as_ref().map_or("", |name| name.get_name()),
        city.meshes,
        city.per,
        city.materials,
        city.lamps,
        city.cascades,
        row.cpu_ms,
        value(row.ours_ms.map(|ms| format!("{ms:.3}"))),
        row.frame_ms,
        row.worst_ms,
        row.seen,
        value(row.draw_calls.map(|calls| calls.to_string())),
        value(row.uploaded_bytes.map(|bytes| bytes.to_string())),
        value(row.gpu_bytes.map(|bytes| bytes.to_string())),
    );
    Ok(())
}

/// Zero is a number of lamps, other than of meshes.
fn parse_lamps(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a number of lamps"))
}
