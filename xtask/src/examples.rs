//! `cargo xtask examples`: each small example draws what it drew when its picture was stored.
//!
//! The stored pictures are in `xtask/pictures/`. Each of their pixels is the mean of a square of
//! pixels that the example drew, so that they are small, and so that an edge that another driver
//! rasterizes otherwise does not count. On one driver two runs are equal to the byte: an example's
//! clock moves by the same step per frame, and its dice are seeded. What differs between drivers is
//! rounding.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use image::RgbaImage;

use crate::compare::{self, Difference};
use crate::project::{EVERY_FEATURE, Project, exit_code};

/// The small examples, each with its number of instances if that is not its default: software draws
/// all of them in minutes.
const EXAMPLES: [(&str, Option<&str>); 19] = [
    ("minimal", None),
    ("shadows", None),
    ("split_screen", None),
    ("custom_material", None),
    ("tags", Some("100000")),
    ("dynamic", None),
    ("gpu_written", Some("20000")),
    ("gltf_forest", Some("1000")),
    ("lod", Some("400")),
    ("impostors", Some("2000")),
    ("occlusion", Some("1000")),
    ("from_file", None),
    ("tint", Some("20000")),
    ("picking", Some("20000")),
    ("edit", None),
    ("wind", Some("5000")),
    ("crowd", Some("1500")),
    ("streaming_chunks", Some("1000")),
    ("motion_blur", None),
];

/// Width and height of the square of pixels that a stored pixel is the mean of.
const SQUARE: u32 = 8;

/// Draws the examples with these names, or all. Compares them with the stored pictures, or stores
/// them. Every one is drawn, so that one run names all that differ.
pub fn run(
    project: &Project,
    names: &[String],
    update: bool,
    variable: (&str, &str),
) -> Result<()> {
    for name in names {
        let is_known = EXAMPLES.iter().any(|(known, _)| known == name);
        ensure!(is_known, "no example {name}");
    }
    let mut wrong = Vec::new();
    for (name, count) in EXAMPLES {
        if !names.is_empty() && names.iter().all(|wanted| wanted != name) {
            continue;
        }
        let drawn = draw(project, name, count, variable)?;
        if update {
            let picture = shrunk(&compare::read(&drawn)?);
            let path = stored(project, name);
            picture
                .save(&path)
                .with_context(|| format!("cannot write {}", path.display()))?;
            println!("stored {}", path.display());
            continue;
        }
        match difference(&drawn, &stored(project, name)) {
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

/// Where the picture of an example is stored.
fn stored(project: &Project, name: &str) -> PathBuf {
    project.root.join(format!("xtask/pictures/{name}.png"))
}

/// How far the picture that an example drew is from the stored one.
fn difference(drawn: &Path, stored: &Path) -> Result<Difference> {
    compare::pictures(&shrunk(&compare::read(drawn)?), &compare::read(stored)?)
}

/// Runs an example headless, and returns its picture.
fn draw(
    project: &Project,
    name: &str,
    count: Option<&str>,
    variable: (&str, &str),
) -> Result<PathBuf> {
    let picture = project.output_folder()?.join(format!("example-{name}.png"));
    // A picture of an earlier run must not pass for this one's.
    let _ = std::fs::remove_file(&picture);
    println!("$ {name} --headless --out {}", picture.display());
    let mut command = project.cargo();
    command
        .args(["run", "--quiet", EVERY_FEATURE, "--example", name])
        .args(["--", "--headless", "--out"])
        .arg(&picture)
        .args(count.iter().flat_map(|count| ["--count", count]))
        .env(variable.0, variable.1)
        .stdin(Stdio::null());
    let status = command.status().context("cargo does not start")?;
    let code = exit_code(status);
    ensure!(code == 0, "{name} ended with exit code {code}");
    ensure!(picture.is_file(), "{name} wrote no {}", picture.display());
    Ok(picture)
}

/// The means of all squares of a picture.
fn shrunk(picture: &RgbaImage) -> RgbaImage {
    let pixels = SQUARE * SQUARE;
    RgbaImage::from_fn(
        picture.width() / SQUARE,
        picture.height() / SQUARE,
        |x, y| {
            let mut sums = [pixels / 2; 4];
            for offset in 0..pixels {
                let [dx, dy] = [offset % SQUARE, offset / SQUARE];
                let pixel = picture.get_pixel(x * SQUARE + dx, y * SQUARE + dy);
                for (sum, channel) in sums.iter_mut().zip(pixel.0) {
                    *sum += u32::from(channel);
                }
            }
            image::Rgba(sums.map(|sum| (sum / pixels) as u8))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgba;

    #[test]
    fn a_stored_pixel_is_the_mean_of_a_square() {
        let stripes = RgbaImage::from_fn(16, 8, |x, _| Rgba([(x % 2) as u8 * 200, 7, 0, 255]));
        let small = shrunk(&stripes);
        assert_eq!(small.dimensions(), (2, 1));
        assert_eq!(small.get_pixel(1, 0).0, [100, 7, 0, 255]);
    }

    /// A hundred of 230,400 pixels are enough, if they are together.
    #[test]
    fn an_instance_that_is_missing_is_seen() -> Result<()> {
        let field = |x: u32, y: u32| Rgba([(x / 8) as u8 * 2, (y / 8) as u8 * 4, 90, 255]);
        let whole = RgbaImage::from_fn(640, 360, field);
        let mut holed = whole.clone();
        let same = compare::pictures(&shrunk(&whole), &shrunk(&holed))?;
        assert!(same.is_small());
        for (x, y) in (0..10).flat_map(|x| (0..10).map(move |y| (300 + x, 100 + y))) {
            holed.put_pixel(x, y, Rgba([0, 0, 0, 255]));
        }
        let beyond = compare::pictures(&shrunk(&whole), &shrunk(&holed))?;
        assert!(!beyond.is_small(), "{beyond}");
        Ok(())
    }

    #[test]
    fn every_small_example_has_a_stored_picture() -> Result<()> {
        let project = Project::find()?;
        let mut here = Vec::new();
        for entry in std::fs::read_dir(project.root.join("examples"))? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "rs") {
                here.extend(
                    path.file_stem()
                        .map(|name| name.to_string_lossy().into_owned()),
                );
            }
        }
        here.sort();
        let mut listed = EXAMPLES.map(|(name, _)| name.to_owned()).to_vec();
        listed.sort();
        assert_eq!(here, listed);
        for name in listed {
            assert!(stored(&project, &name).is_file(), "{name}");
        }
        Ok(())
    }
}
