//! The command line.

use crate::{
    draw,
    list::{EXAMPLES, Example},
};
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

/// Lists the examples, or draws one.
pub fn run() -> AppExit {
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
