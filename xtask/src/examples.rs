//! `cargo xtask examples`: each small example draws what it drew when its picture was stored.
//!
//! The stored pictures are in `xtask/pictures/`. Each of their pixels is the mean of a square of
//! pixels that the example drew, so that they are small, and so that an edge that another driver
//! rasterizes otherwise does not count. On one driver two runs are equal to the byte: in the
//! gallery, which draws the examples, the clock moves by the same step per frame, and dice are
//! seeded. What differs between drivers is rounding.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use crate::compare::{self, Difference, Picture};
use crate::project::{EVERY_FEATURE, Project, exit_code};

/// The example that draws the small examples without a window.
const GALLERY: &str = "gallery";

/// Width and height of the square of pixels that a stored pixel is the mean of.
const SQUARE: u32 = 8;

/// Number of examples that are drawn at the same time: much of an example is its start, which runs
/// on one core.
const AT_ONCE: usize = 2;

/// Draws the examples with these names, or all. Compares them with the stored pictures, or stores
/// them. Every one is drawn, so that one run names all that differ.
pub fn run(
    project: &Project,
    names: &[String],
    update: bool,
    variable: (&str, &str),
) -> Result<()> {
    let mut examples = small(project)?;
    for name in names {
        ensure!(examples.contains(name), "no example {name}");
    }
    examples.retain(|name| names.is_empty() || names.contains(name));
    build(project)?;
    let mut wrong = Vec::new();
    for (name, drawn) in draw_all(project, examples, variable) {
        let drawn = drawn?;
        if update {
            let picture = shrunk(&compare::read(&drawn)?);
            let path = stored(project, &name);
            picture
                .save(&path)
                .with_context(|| format!("cannot write {}", path.display()))?;
            println!("stored {}", path.display());
            continue;
        }
        match compare::read(&drawn).and_then(|drawn| difference(project, &name, &drawn)) {
            Ok(difference) if difference.is_small() => println!("{name}: {difference}"),
            Ok(difference) => wrong.push(format!("{name}: {difference}: see {}", drawn.display())),
            Err(error) => wrong.push(format!("{name}: {error:#}")),
        }
    }
    if !wrong.is_empty() {
        bail!(
            "{}; if this is what they should draw: cargo xtask examples --update",
            wrong.join("; ")
        );
    }
    Ok(())
}

/// The names of the small examples: the files in `examples/`, sorted.
pub fn small(project: &Project) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(project.root.join("examples"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "rs") {
            let stem = path.file_stem();
            names.extend(stem.map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Where the picture of an example is stored.
fn stored(project: &Project, name: &str) -> PathBuf {
    project.root.join(format!("xtask/pictures/{name}.png"))
}

/// How far the picture that an example drew is from the stored one.
pub fn difference(project: &Project, name: &str, drawn: &Picture) -> Result<Difference> {
    compare::pictures(&shrunk(drawn), &compare::read(&stored(project, name))?)
}

/// Builds the gallery, so that runs at the same time do not wait for each other's build.
pub fn build(project: &Project) -> Result<()> {
    let mut command = project.cargo();
    command.args(["build", "--quiet", EVERY_FEATURE, "--example", GALLERY]);
    let status = command.status().context("cargo does not start")?;
    ensure!(status.success(), "{GALLERY} does not build");
    Ok(())
}

/// Draws the examples, [`AT_ONCE`] at the same time, and returns their pictures.
fn draw_all(
    project: &Project,
    examples: Vec<String>,
    variable: (&str, &str),
) -> Vec<(String, Result<PathBuf>)> {
    let names = Mutex::new(examples.into_iter());
    let next = || names.lock().ok()?.next();
    let draw_some = || {
        let drawn = |name: String| {
            let picture = draw(project, &name, variable);
            (name, picture)
        };
        std::iter::from_fn(next).map(drawn).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = thread::scope(|scope| {
        let threads = [(); AT_ONCE].map(|()| scope.spawn(draw_some));
        let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
        let drawn =
            |ended: thread::Result<Vec<_>>| ended.unwrap_or_else(|panic| resume_unwind(panic));
        ended.flat_map(drawn).collect()
    });
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all
}

/// Has the gallery draw an example, and returns the picture.
fn draw(project: &Project, name: &str, variable: (&str, &str)) -> Result<PathBuf> {
    let picture = project.output_folder()?.join(format!("example-{name}.png"));
    // A picture of an earlier run must not pass for this one's.
    let _ = std::fs::remove_file(&picture);
    println!("$ {GALLERY} {name} --out {}", picture.display());
    let mut command = gallery(project, name, &picture);
    let command = command.env(variable.0, variable.1);
    let status = command.status().context("cargo does not start")?;
    let code = exit_code(status);
    ensure!(code == 0, "{name} ended with exit code {code}");
    ensure!(picture.is_file(), "{name} wrote no {}", picture.display());
    Ok(picture)
}

/// The gallery, about to draw an example into a picture.
pub fn gallery(project: &Project, name: &str, picture: &Path) -> Command {
    let mut command = project.cargo();
    command
        .args(["run", "--quiet", EVERY_FEATURE, "--example", GALLERY])
        .args(["--", name, "--out"])
        .arg(picture)
        .stdin(Stdio::null());
    command
}

/// The means of all squares of a picture.
pub fn shrunk(picture: &Picture) -> Picture {
    let pixels = SQUARE * SQUARE;
    let (width, height) = picture.dimensions();
    Picture::from_fn(width / SQUARE, height / SQUARE, |x, y| {
        let mut sums = [pixels / 2; 4];
        for offset in 0..pixels {
            let [dx, dy] = [offset % SQUARE, offset / SQUARE];
            let pixel = picture.pixel(x * SQUARE + dx, y * SQUARE + dy);
            for (sum, channel) in sums.iter_mut().zip(pixel) {
                *sum += u32::from(channel);
            }
        }
        sums.map(|sum| (sum / pixels) as u8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_pixel_is_the_mean_of_a_square() {
        let stripes = Picture::from_fn(16, 8, |x, _| [(x % 2) as u8 * 200, 7, 0, 255]);
        let small = shrunk(&stripes);
        assert_eq!(small.dimensions(), (2, 1));
        assert_eq!(small.pixel(1, 0), [100, 7, 0, 255]);
    }

    /// A hundred of 230,400 pixels are enough, if they are together.
    #[test]
    fn an_instance_that_is_missing_is_seen() -> Result<()> {
        let field = |x: u32, y: u32| [(x / 8) as u8 * 2, (y / 8) as u8 * 4, 90, 255];
        let whole = Picture::from_fn(640, 360, field);
        let mut holed = whole.clone();
        let same = compare::pictures(&shrunk(&whole), &shrunk(&holed))?;
        assert!(same.is_small());
        for (x, y) in (0..10).flat_map(|x| (0..10).map(move |y| (300 + x, 100 + y))) {
            *holed.pixel_mut(x, y) = [0, 0, 0, 255];
        }
        let beyond = compare::pictures(&shrunk(&whole), &shrunk(&holed))?;
        assert!(!beyond.is_small(), "{beyond}");
        Ok(())
    }

    #[test]
    fn every_small_example_has_a_stored_picture() -> Result<()> {
        let project = Project::find()?;
        for name in small(&project)? {
            assert!(stored(&project, &name).is_file(), "{name}");
        }
        let mut pictures = Vec::new();
        for entry in std::fs::read_dir(project.root.join("xtask/pictures"))? {
            pictures.push(entry?.path());
        }
        assert_eq!(pictures.len(), small(&project)?.len());
        Ok(())
    }

    #[test]
    fn every_small_example_is_in_the_gallery() -> Result<()> {
        let project = Project::find()?;
        let gallery = project.root.join("examples/gallery/list.rs");
        let gallery = std::fs::read_to_string(gallery)?;
        for name in small(&project)? {
            let module = format!("#[path = \"../{name}.rs\"]\nmod {name};\n");
            assert!(gallery.contains(&module), "{name} is no module");
            let listed = [")", ","].map(|end| format!("example!({name}{end}"));
            let listed = listed.iter().any(|listed| gallery.contains(listed));
            assert!(listed, "{name} is not listed");
        }
        Ok(())
    }

    /// Crates that an app needs to run a small example.
    const ALLOWED: [&str; 4] = ["bevy", "bevy_gpu_culling", "rand", "rand_chacha"];

    /// What keeps an example from being copied into another project.
    fn strings(source: &str, crates: &[&str]) -> Vec<String> {
        let code = source.lines().map(str::trim);
        let code = code.filter(|line| !line.starts_with("//"));
        let mut strings = Vec::new();
        for line in code {
            let is_module = ["mod ", "pub mod ", "#[path"];
            if is_module.iter().any(|start| line.starts_with(start)) || line.contains("include") {
                strings.push(line.to_owned());
            }
            let words = line.split(|c: char| c != ':' && c != '_' && !c.is_ascii_alphanumeric());
            let foreign = words
                .filter_map(|word| word.split_once("::"))
                .map(|(first, _)| first)
                .filter(|first| crates.contains(first) && !ALLOWED.contains(first));
            strings.extend(foreign.map(|name| format!("{name} in: {line}")));
        }
        strings
    }

    /// The crates that a manifest's lists of dependencies name.
    fn dependencies(manifest: &str) -> Vec<&str> {
        let lists = ["\n[dependencies]\n", "\n[dev-dependencies]\n"];
        let lists = lists.iter().filter_map(|head| manifest.split(head).nth(1));
        let lines = lists.flat_map(|list| list.lines().take_while(|line| !line.starts_with('[')));
        lines
            .filter_map(|line| Some(line.split_once(" = ")?.0))
            .filter(|name| !name.starts_with('#'))
            .collect()
    }

    #[test]
    fn small_examples_are_self_contained() -> Result<()> {
        let project = Project::find()?;
        let manifest = std::fs::read_to_string(project.root.join("Cargo.toml"))?;
        let crates = dependencies(&manifest);
        for name in ["bytemuck", "clap", "rand"] {
            assert!(crates.contains(&name), "{crates:?}");
        }
        for name in small(&project)? {
            let path = project.root.join("examples").join(format!("{name}.rs"));
            let strings = strings(&std::fs::read_to_string(path)?, &crates);
            assert!(strings.is_empty(), "{name}: {}", strings.join("; "));
        }
        Ok(())
    }

    #[test]
    fn what_an_example_cannot_be_copied_with_is_seen() {
        let crates = ["bevy", "rand", "clap", "bytemuck"];
        for line in [
            "mod common;",
            "    #[path = \"common/mod.rs\"]",
            "use clap::Parser;",
            "    let bytes = bytemuck::cast_slice(&texels);",
            "    load_internal_asset!(app, S, include_str!(\"a.wgsl\"));",
        ] {
            assert_eq!(strings(line, &crates).len(), 1, "{line}");
        }
        for line in ["use bevy::prelude::*;", "// mod a", "use rand::RngExt;"] {
            assert!(strings(line, &crates).is_empty(), "{line}");
        }
    }
}
