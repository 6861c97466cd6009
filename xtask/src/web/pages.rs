//! The folder of pages: for each example what it is, its source, its keys and its number of
//! instances, and the packed program.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Component, Path};

use anyhow::{Context, Result};
use flate2::{Compression, write::GzEncoder};
use serde::Serialize;
use serde_json::json;

use super::build::Program;
use crate::examples;
use crate::project::Project;

/// Files that are the same for all programs.
const FILES: [(&str, &str); 4] = [
    ("index.html", include_str!("index.html")),
    ("page.css", include_str!("page.css")),
    ("page.js", include_str!("page.js")),
    ("view.html", include_str!("view.html")),
];

/// The packed program. Servers take `.gz` for a packed file of another type, and browsers then
/// unpack it before the page does.
const PACKED: &str = "gallery.wasm.gzip";

/// The demo, by its name in addresses.
pub const DEMO: &str = "orbs";
const DEMO_ABOUT: &str = "The demo: a field of orbs of nine looks, to fly through.";
const DEMO_COUNT: u32 = 100_000;
const DEMO_SOURCES: [&str; 6] = [
    "orbs/scene.rs",
    "orbs/field.rs",
    "orbs/fly.rs",
    "orbs/look.rs",
    "orbs/freeze.rs",
    "orbs/help.rs",
];

/// A key: what is on it, its code, what it does.
type Key = (&'static str, &'static str, &'static str);

const MORE: Key = ("I", "KeyI", "numbers");

/// The keys of an example, besides those that fly and [`MORE`].
const KEYS: [(&str, &[Key]); 5] = [
    (
        DEMO,
        &[
            ("F", "KeyF", "freeze culling"),
            ("L", "KeyL", "levels of detail"),
            ("O", "KeyO", "occlusion"),
            ("T", "KeyT", "next tier"),
            ("C", "KeyC", "next compaction"),
            ("H", "KeyH", "help"),
        ],
    ),
    ("from_file", &[("R", "KeyR", "load again")]),
    ("impostors", &[("C", "KeyC", "tint")]),
    ("lod", &[("L", "KeyL", "levels"), ("C", "KeyC", "colors")]),
    (
        "occlusion",
        &[("O", "KeyO", "occlusion"), ("F", "KeyF", "freeze culling")],
    ),
];

/// What a page tells about an example.
#[derive(Serialize)]
struct About {
    about: String,
    /// The number of instances at first; `None` if it is fixed.
    count: Option<u32>,
    keys: Vec<Key>,
    /// Files in `examples/`.
    sources: Vec<String>,
}

/// The names of the demo and the examples.
pub fn names(project: &Project) -> Result<Vec<String>> {
    let mut names = vec![DEMO.to_owned()];
    names.extend(examples::small(project)?);
    Ok(names)
}

/// Writes the pages into a folder, made if there is none, and says how large the program is.
pub fn write(project: &Project, program: &Program, folder: &Path) -> Result<()> {
    let create = |path: &Path| {
        fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))
    };
    create(folder)?;
    let wasm = fs::read(program.folder.join(Program::WASM))?;
    let packed = pack(&wasm)?;
    eprintln!(
        "The program has {:.1} MiB, {:.1} MiB packed.",
        wasm.len() as f64 / f64::from(1 << 20),
        packed.len() as f64 / f64::from(1 << 20)
    );
    fs::write(folder.join(PACKED), &packed)?;
    copy(&program.folder, folder, "js")?;
    for (name, text) in FILES {
        fs::write(folder.join(name), text)?;
    }
    copy(
        &project.root.join("docs/images"),
        &folder.join("images"),
        "png",
    )?;
    copy(&project.root.join("assets"), &folder.join("assets"), "")?;
    let examples = project.root.join("examples");
    copy(&examples, &folder.join("source"), "rs")?;
    copy(
        &examples.join(DEMO),
        &folder.join("source").join(DEMO),
        "rs",
    )?;

    let (mut list, mut abouts) = (String::new(), serde_json::Map::new());
    for name in names(project)? {
        let about = about(&examples, &name)?;
        writeln!(
            list,
            "<li><a href=\"view.html?example={name}\"><img src=\"images/{name}.png\" alt=\"\">\
             <b>{name}</b> {}</a></li>",
            escaped(&about.about)
        )?;
        abouts.insert(name, serde_json::to_value(about)?);
    }
    let index = include_str!("index.html").replace("<!-- examples -->\n", &list);
    fs::write(folder.join("index.html"), index)?;
    let facts = json!({
        "file": PACKED,
        "bytes": packed.len(),
        "script": format!("./{}", Program::SCRIPT),
    });
    let script = format!(
        "export const PROGRAM = {facts};\nexport const EXAMPLES = {};\n",
        serde_json::to_string_pretty(&abouts)?
    );
    fs::write(folder.join("examples.js"), script)?;
    Ok(())
}

/// A file of the pages, by its path in their address. None outside of the folder.
pub fn read(folder: &Path, path: &str) -> Option<Vec<u8>> {
    let path = match path.trim_start_matches('/') {
        "" => "index.html",
        path => path,
    };
    let path = Path::new(path);
    let is_inside = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    is_inside
        .then(|| fs::read(folder.join(path)).ok())
        .flatten()
}

fn pack(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Copies the files of a folder and of its folders whose names end in `end`; all if that is empty.
fn copy(from: &Path, to: &Path, end: &str) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let path = entry?.path();
        let copied = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            if end.is_empty() {
                copy(&path, &copied, end)?;
            }
        } else if end.is_empty() || path.extension().is_some_and(|found| found == end) {
            fs::copy(&path, &copied)?;
        }
    }
    Ok(())
}

fn about(examples: &Path, name: &str) -> Result<About> {
    let found = KEYS.iter().find(|(known, _)| *known == name);
    let keys = found.map_or(&[][..], |(_, keys)| *keys);
    let keys = keys.iter().copied().chain([MORE]).collect();
    if name == DEMO {
        return Ok(About {
            about: DEMO_ABOUT.into(),
            count: Some(DEMO_COUNT),
            keys,
            sources: DEMO_SOURCES.map(Into::into).into(),
        });
    }
    let file = format!("{name}.rs");
    let source = fs::read_to_string(examples.join(&file))?;
    Ok(About {
        about: first_paragraph(&source),
        count: count(&source),
        keys,
        sources: vec![file],
    })
}

/// The first paragraph of a file's documentation.
fn first_paragraph(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//! "));
    lines.collect::<Vec<_>>().join(" ").replace('`', "")
}

/// The number of instances that an example sets itself.
fn count(source: &str) -> Option<u32> {
    let (_, rest) = source.split_once("insert_resource(Count(")?;
    let (number, _) = rest.split_once(')')?;
    number.replace('_', "").parse().ok()
}

/// A text in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_tells_what_the_source_says() {
        let source = "//! A `tower`.\n//! It is tall.\n//!\n//! Not this.\n\nuse a;\n";
        assert_eq!(first_paragraph(source), "A tower. It is tall.");
        assert_eq!(count(".insert_resource(Count(40_000))"), Some(40_000));
        assert_eq!(count(source), None);
    }

    #[test]
    fn every_example_has_a_picture_and_a_page() -> Result<()> {
        let project = Project::find()?;
        let examples = project.root.join("examples");
        let names = names(&project)?;
        for name in &names {
            let about = about(&examples, name)?;
            assert!(about.about.len() > 20, "{name}");
            for source in &about.sources {
                assert!(examples.join(source).is_file(), "{source}");
            }
            let picture = project.root.join(format!("docs/images/{name}.png"));
            assert!(picture.is_file(), "{name}");
        }
        assert!(
            KEYS.iter()
                .all(|(name, _)| names.iter().any(|known| known == name))
        );
        Ok(())
    }

    #[test]
    fn nothing_outside_of_the_folder_is_served() -> Result<()> {
        let project = Project::find()?;
        let folder = project.root.join("xtask");
        assert!(read(&folder, "/Cargo.toml").is_some());
        for path in [
            "/../Cargo.toml",
            "//etc/passwd/../../Cargo.toml",
            "/src/../../LICENSE-MIT",
        ] {
            assert!(read(&folder, path).is_none(), "{path}");
        }
        Ok(())
    }

    #[test]
    fn what_is_packed_is_smaller() -> Result<()> {
        let packed = pack(&[7; 10_000])?;
        assert!(packed.len() < 100 && packed.starts_with(&[0x1f, 0x8b]));
        Ok(())
    }
}
