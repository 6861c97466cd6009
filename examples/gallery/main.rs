//! Draws the small examples without a window, each into a picture. CI compares the pictures with
//! stored ones, and reports time the frames.
//!
//! ```sh
//! cargo run --example gallery --features meshlets,picking                  # lists the examples
//! cargo run --example gallery --features meshlets,picking -- tint --out tint.png
//! ```
//!
//! * `draw`: waits until everything is there, draws frames and saves the picture.
//! * `still`: versions of examples to compare with.
//! * `end`, `offscreen`: a clean end, and an app without a window; shared with the demo.
//!
//! Each example is included unchanged, and knows nothing of the gallery.
#![allow(
    dead_code,
    clippy::print_stdout,
    reason = "the `main` of an example is not run; a list and times are printed"
)]

mod draw;
#[path = "../orbs/end.rs"]
mod end;
#[path = "../orbs/offscreen.rs"]
mod offscreen;
mod still;

#[path = "../city.rs"]
mod city;
#[path = "../crowd.rs"]
mod crowd;
#[path = "../custom_material.rs"]
mod custom_material;
#[path = "../dynamic.rs"]
mod dynamic;
#[path = "../edit.rs"]
mod edit;
#[path = "../from_file.rs"]
mod from_file;
#[path = "../gltf_forest.rs"]
mod gltf_forest;
#[path = "../gpu_written.rs"]
mod gpu_written;
#[path = "../impostors.rs"]
mod impostors;
#[path = "../lod.rs"]
mod lod;
#[path = "../minimal.rs"]
mod minimal;
#[path = "../motion_blur.rs"]
mod motion_blur;
#[path = "../occlusion.rs"]
mod occlusion;
#[path = "../pick_on_gpu.rs"]
mod pick_on_gpu;
#[path = "../picking.rs"]
mod picking;
#[path = "../shadows.rs"]
mod shadows;
#[path = "../split_screen.rs"]
mod split_screen;
#[path = "../streaming_chunks.rs"]
mod streaming_chunks;
#[path = "../tags.rs"]
mod tags;
#[path = "../tint.rs"]
mod tint;
#[path = "../wind.rs"]
mod wind;

use bevy::prelude::*;
use clap::{CommandFactory, Parser, error::ErrorKind};
use std::path::PathBuf;

/// Draws an example without a window. Without a name, lists the examples.
#[derive(Parser)]
#[command(name = "gallery", version)]
struct Cli {
    /// The example
    #[arg(requires = "out", value_parser = Example::find)]
    name: Option<&'static Example>,
    /// File for the picture
    #[arg(long, value_name = "FILE.png", requires = "name")]
    out: Option<PathBuf>,
    /// Number of instances, if the example has a `Count` [default: what software draws in seconds]
    #[arg(long, value_name = "N", requires = "name")]
    count: Option<u32>,
    /// Size of the picture in pixels
    #[arg(long, value_name = "WIDTHxHEIGHT", requires = "name", value_parser = size, default_value = "640x360")]
    size: UVec2,
    /// Draw N frames that move before the picture, in an example that flies, and print their times
    #[arg(long, value_name = "N", requires = "name")]
    flight: Option<usize>,
    /// Draw N more frames after the picture and print their times
    #[arg(long, value_name = "N", requires = "name", default_value_t = 0)]
    frames: usize,
    /// Draw the still version to compare with, if the example has one
    #[arg(long, requires = "name")]
    still: bool,
}

/// A small example, and what its picture needs.
#[derive(Clone, Copy)]
struct Example {
    name: &'static str,
    scene: fn(&mut App),
    /// The number of instances, and how to set it.
    count: Option<(u32, SetCount)>,
    /// Whether the work that only the example knows of is done.
    is_ready: fn(&mut World) -> bool,
    /// Number of frames that are drawn and timed before the picture. Then the clock stops.
    flight: usize,
    still: Option<Still>,
}

type SetCount = fn(&mut App, u32);

/// A still version of an example.
#[derive(Clone, Copy)]
struct Still {
    /// Changes the example.
    change: fn(&mut App),
    is_ready: fn(&mut World) -> bool,
}

/// An example.
macro_rules! example {
    ($name:ident) => {
        Example {
            name: stringify!($name),
            scene: $name::scene,
            count: None,
            is_ready: |_| true,
            flight: 0,
            still: None,
        }
    };
    // With a default number of instances: software draws them in seconds.
    ($name:ident, $count:literal) => {
        Example {
            count: Some(($count, |app, count| {
                app.insert_resource($name::Count(count));
            })),
            ..example!($name)
        }
    };
}

const EXAMPLES: [Example; 21] = [
    example!(city),
    example!(crowd, 1_500),
    example!(custom_material),
    example!(dynamic),
    example!(edit),
    example!(from_file),
    example!(gltf_forest, 1_000),
    Example {
        still: Some(still::ORBS),
        ..example!(gpu_written, 20_000)
    },
    example!(impostors, 2_000),
    example!(lod, 400),
    example!(minimal),
    example!(motion_blur),
    Example {
        still: Some(still::FROM_ABOVE),
        ..example!(occlusion, 1_000)
    },
    example!(pick_on_gpu),
    example!(picking, 19_600),
    example!(shadows),
    example!(split_screen),
    Example {
        is_ready: |world| {
            let land = world.get_resource::<streaming_chunks::Land>();
            land.is_some_and(streaming_chunks::Land::is_complete)
        },
        flight: 30,
        ..example!(streaming_chunks, 1_000)
    },
    example!(tags, 100_000),
    example!(tint, 20_000),
    example!(wind, 5_000),
];

impl Example {
    /// The example with this name.
    fn find(name: &str) -> Result<&'static Self, String> {
        const ALL: &[Example] = &EXAMPLES;
        let found = ALL.iter().find(|example| example.name == name);
        found.ok_or_else(|| "no such example; without a name, they are listed".into())
    }
}

fn main() -> AppExit {
    let cli = Cli::parse();
    let (Some(mut example), Some(out)) = (cli.name.copied(), cli.out) else {
        for example in EXAMPLES {
            println!("{}", example.name);
        }
        return AppExit::Success;
    };
    if let Some((count, _)) = &mut example.count {
        *count = cli.count.unwrap_or(*count);
    } else if cli.count.is_some() {
        refuse(&example, "the number of its instances is fixed");
    }
    if let Some(flight) = cli.flight {
        if example.flight == 0 {
            refuse(&example, "it does not fly");
        }
        example.flight = flight;
    }
    let still = cli.still.then(|| match example.still {
        Some(still) => still,
        None => refuse(&example, "it has no still version"),
    });
    let order = draw::Order {
        out,
        size: cli.size,
        frames: cli.frames,
    };
    draw::run(&example, still, order)
}

/// Width and height.
fn size(text: &str) -> Result<UVec2, String> {
    let sides = text
        .split_once('x')
        .and_then(|(width, height)| Some(UVec2::new(width.parse().ok()?, height.parse().ok()?)));
    sides
        .filter(|size| size.min_element() >= 64 && size.max_element() <= 8192)
        .ok_or_else(|| "write width and height in pixels, 64 to 8192 each: 1920x1080".into())
}

/// Ends the program as clap does at a wrong flag.
fn refuse(example: &Example, reason: &str) -> ! {
    let message = format!("{}: {reason}", example.name);
    Cli::command()
        .error(ErrorKind::ArgumentConflict, message)
        .exit()
}
