//! Measures whole frames: the demo's field, spheres, meshlets and leaves, drawn as sets of this
//! crate or as Bevy's own entities. The GPU is waited for in each frame, and the survivors are
//! compared with the CPU twin.
//!
//! * `case`: what a row measures. `row`, `chart`: how it is shown.
//! * `scenes`: the scenes in the world.
//! * `likeness`: how a picture with levels of detail differs from one in full detail.
//! * `measure`: the frames of one case. Each case has a separate process, so that it finds the
//!   GPU's memory empty.
//! * `adapters`, `cli`, `field`, `look`, `picture`, `failure`: parts of the demo, whose field is
//!   one of the scenes.
//! * `end`, `offscreen`: a clean end, and an app without a window.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks by printing"
)]

#[path = "../../examples/orbs/adapters.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod adapters;
mod case;
mod chart;
#[path = "../../examples/orbs/cli.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod cli;
#[path = "../common/mod.rs"]
mod common;
#[path = "../../examples/orbs/end.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod end;
#[path = "../../examples/orbs/failure.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod failure;
#[path = "../../examples/orbs/field.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod field;
#[path = "../../tests/scene/items.rs"]
mod items;
mod likeness;
#[path = "../../examples/orbs/look.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod look;
mod measure;
#[path = "../../examples/orbs/offscreen.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod offscreen;
#[path = "../../examples/orbs/picture.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod picture;
mod row;
mod scenes;

use anyhow::{Context, Result, anyhow, bail, ensure};
use bevy::math::UVec2;
use bevy_gpu_culling::prelude::MeshletExpansion;
use case::{Case, MAX_ENTITIES, Peer, Scene, Selection, Shadows};
use clap::{Parser, ValueEnum};
use cli::{DrawOrder, Lods, Occlusion};
use failure::Failure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use measure::Settings;
use row::Row;
use std::{path::PathBuf, process::Command};

/// Measures whole frames on this adapter.
#[derive(Parser)]
#[command(name = "frame", version)]
struct Args {
    /// Scenes [default: all]
    #[arg(long, value_delimiter = ',')]
    scene: Vec<Scene>,
    /// Numbers of instances: 64000, 64k or 64M; commas separate several [default: 100k,1M, 2k with
    /// --quick]
    #[arg(long, value_delimiter = ',', value_parser = common::parse_count)]
    count: Vec<u32>,
    /// Which instances of a set are drawn first [default: near-first, set]
    #[arg(long, value_delimiter = ',')]
    order: Vec<DrawOrder>,
    /// Whether demo, meshlets, canyon and forest have levels of detail [default: both]
    #[arg(long, value_delimiter = ',')]
    lods: Vec<Lods>,
    /// How sets of the scene meshlets are expanded: auto, division, or by an expansion, as
    /// one-bucket and po2-buckets [default: auto]
    #[arg(long, value_delimiter = ',')]
    expansion: Vec<MeshletExpansion>,
    /// Whether instances of sets behind others are left out [default: off]
    #[arg(long, value_delimiter = ',')]
    occlusion: Vec<Occlusion>,
    /// Groups with an instance this wide are drawn before what hides them is known
    /// (InstanceOcclusion::near_pixels) [default: the component's]
    #[arg(long, value_name = "PIXELS")]
    near_pixels: Option<f32>,
    /// Instances of sets that are seen with a smaller diameter than this are thinned out
    /// (AggregateDetail::below_pixels) [default: none are]
    #[arg(long, value_name = "PIXELS")]
    aggregate: Option<f32>,
    /// Instances of sets become cards that show photographs of them, once they are seen this wide
    /// (BakeImpostor::below_pixels) [default: none do]
    #[arg(long, value_name = "PIXELS")]
    impostors: Option<f32>,
    /// Draw sets of every scene by meshlets. (The scene meshlets is always drawn by them.)
    #[arg(long)]
    by_meshlets: bool,
    /// Compress the vertices of all meshes, of sets and of entities (Mesh::compress_mesh)
    #[arg(long)]
    compressed: bool,
    /// Whether the sun casts shadows, in scenes other than demo, and what they show
    #[arg(long, value_name = "HOW", default_value_t, value_enum)]
    shadows: Shadows,
    /// What the instances are; bevy takes at most 4M [default: both]
    #[arg(long, value_delimiter = ',')]
    peer: Vec<Peer>,
    /// Size of the picture [default: 1920x1080, 320x180 with --quick]
    #[arg(long, value_name = "WxH", value_parser = cli::parse_size)]
    size: Option<UVec2>,
    /// Measured frames per case, in which the camera of some scenes turns once if there are at
    /// least 8 [default: 150, 4 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    frames: Option<u32>,
    /// Frames before them [default: 150, 2 with --quick]
    #[arg(long)]
    warm_up: Option<u32>,
    /// Small scenes and few frames, for software adapters
    #[arg(long)]
    quick: bool,
    /// Writes the last view of a case to this PNG file
    #[arg(long, value_name = "FILE.png")]
    out: Option<PathBuf>,
    /// Prints one JSON object per line instead of the table
    #[arg(long)]
    json: bool,
    /// Writes a chart of the frames to this SVG file
    #[arg(long)]
    chart: Option<PathBuf>,
    /// Measures the only case in this process
    #[arg(long, hide = true)]
    alone: bool,
    /// Set by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let args = Args::parse();
    common::main(args.bench, || run(&args));
}

impl Args {
    fn settings(&self) -> Settings {
        let (size, warm_up, frames) = if self.quick {
            (UVec2::new(320, 180), 2, 4)
        } else {
            (UVec2::new(1920, 1080), 150, 150)
        };
        Settings {
            size: self.size.unwrap_or(size),
            warm_up: self.warm_up.unwrap_or(warm_up),
            frames: self.frames.unwrap_or(frames),
            out: self.out.clone(),
            near_pixels: self.near_pixels,
            aggregate: self.aggregate,
            impostors: self.impostors,
            by_meshlets: self.by_meshlets,
            compressed: self.compressed,
            shadows: self.shadows,
        }
    }

    /// All cases, and those that are left out.
    fn cases(&self) -> (Vec<Case>, Vec<Case>) {
        let counts: &[u32] = if self.quick {
            &[2000]
        } else {
            &[100_000, 1_000_000]
        };
        Selection {
            scenes: or_all(&self.scene),
            counts: if self.count.is_empty() {
                counts
            } else {
                &self.count
            },
            orders: match &self.order[..] {
                [] => &[DrawOrder::NearFirst, DrawOrder::Set],
                chosen => chosen,
            },
            lods: or_all(&self.lods),
            expansions: match &self.expansion[..] {
                [] => &[MeshletExpansion::Auto],
                chosen => chosen,
            },
            occlusion: match &self.occlusion[..] {
                [] => &[Occlusion::Off],
                chosen => chosen,
            },
            peers: or_all(&self.peer),
        }
        .cases()
    }
}

/// The values that were chosen, or else all.
fn or_all<T: ValueEnum>(chosen: &[T]) -> &[T] {
    if chosen.is_empty() {
        T::value_variants()
    } else {
        chosen
    }
}

fn run(args: &Args) -> Result<()> {
    let settings = args.settings();
    let (cases, left_out) = args.cases();
    if let Some(path) = &args.out {
        ensure!(
            cases.len() == 1,
            "--out is a picture of one case: choose one scene, count, order, level of detail, expansion, occlusion and peer"
        );
        picture::check_writable(path).map_err(|failure: Failure| anyhow!(failure.message))?;
    }
    if args.alone {
        let [case] = &cases[..] else {
            bail!("--alone measures one case");
        };
        adapters::require_one().map_err(|failure| anyhow!(failure.message))?;
        println!(
            "{}",
            serde_json::to_string(&measure::row(case, &settings)?)?
        );
        return Ok(());
    }
    for case in left_out {
        eprintln!("left out: {case}: more than {MAX_ENTITIES} entities");
    }
    ensure!(!cases.is_empty(), "no case is left to measure");
    let bar = ProgressBar::with_draw_target(Some(cases.len() as u64), ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::with_template(
        "{wide_bar} {pos}/{len} {msg} ({eta})",
    )?);
    let mut rows: Vec<Row> = Vec::new();
    // The rows before an error are shown.
    let mut ended = Ok(());
    for case in cases {
        bar.set_message(case.to_string());
        let row = match in_process(&case, &settings) {
            Ok(row) => row,
            Err(error) => {
                ended = Err(error.context(case.to_string()));
                break;
            }
        };
        if args.json {
            let line = serde_json::to_string(&row)?;
            bar.suspend(|| println!("{line}"));
        }
        rows.push(row);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if !args.json {
        if let Some(row) = rows.first() {
            let [width, height] = row.size;
            println!("{} ({}), {width}x{height}\n", row.adapter, row.driver);
        }
        print!("{}", row::table(&rows));
    }
    if let Some(path) = &args.chart {
        chart::write(path, &rows)?;
        eprintln!("chart: {}", path.display());
    }
    ended
}

/// Measures a case in a separate process.
fn in_process(case: &Case, settings: &Settings) -> Result<Row> {
    let program = std::env::current_exe().context("this program's path")?;
    let mut command = Command::new(program);
    command.args(["--alone", "--bench"]).args(case.flags());
    let UVec2 {
        x: width,
        y: height,
    } = settings.size;
    command.arg("--size").arg(format!("{width}x{height}"));
    for (flag, value) in [
        ("--frames", settings.frames),
        ("--warm-up", settings.warm_up),
    ] {
        command.arg(flag).arg(value.to_string());
    }
    if let Some(pixels) = settings.near_pixels {
        command.arg("--near-pixels").arg(pixels.to_string());
    }
    if let Some(pixels) = settings.aggregate {
        command.arg("--aggregate").arg(pixels.to_string());
    }
    if let Some(pixels) = settings.impostors {
        command.arg("--impostors").arg(pixels.to_string());
    }
    if settings.by_meshlets {
        command.arg("--by-meshlets");
    }
    if settings.compressed {
        command.arg("--compressed");
    }
    command.args(["--shadows", &case::name(settings.shadows)]);
    if let Some(path) = &settings.out {
        command.arg("--out").arg(path);
    }
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .context("the program does not start again")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{}\n{}",
        output.status,
        said.trim_end()
    );
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().last().context("no row came back")?;
    serde_json::from_str(line).context("the last line is no row")
}
