//! The package that would be published has every file that it needs and that its documents show.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::project::Project;
use crate::steps::Outcome;

/// Folders and files that the package needs in any case: `build.rs` reads all shaders.
const NEEDED: [&str; 7] = [
    "build.rs",
    "build",
    "shaders",
    "src",
    "assets",
    "LICENSE-APACHE",
    "LICENSE-MIT",
];

/// Documents whose links must lead to files in the package.
const DOCUMENTS: [&str; 2] = ["README.md", "docs/guide"];

/// Checks the list of files that cargo would publish.
pub fn check(project: &Project) -> Result<Outcome> {
    let mut command = project.cargo();
    command.args([
        "package",
        "--list",
        "--allow-dirty",
        "--package",
        "bevy_gpu_culling",
    ]);
    let output = command.output().context("cargo package does not start")?;
    ensure!(
        output.status.success(),
        "cargo package: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let list = String::from_utf8_lossy(&output.stdout);
    let packed: BTreeSet<PathBuf> = list.lines().map(PathBuf::from).collect();
    let missing = missing(&project.root, &packed)?;
    ensure!(
        missing.is_empty(),
        "not in the package: {}",
        missing.join(", ")
    );
    println!("{} files in the package", packed.len());
    Ok(Outcome::Passed)
}

/// The files that should be in the package and are not, each with what needs it.
fn missing(root: &Path, packed: &BTreeSet<PathBuf>) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for needed in NEEDED {
        for file in files(root, Path::new(needed))? {
            if !packed.contains(&file) {
                missing.push(file.display().to_string());
            }
        }
    }
    for document in DOCUMENTS {
        for file in files(root, Path::new(document))? {
            let text = std::fs::read_to_string(root.join(&file))?;
            let lost = lost(&file, links(&text), packed);
            missing.extend(lost);
        }
    }
    for file in files(root, Path::new("src"))? {
        let text = std::fs::read_to_string(root.join(&file))?;
        missing.extend(lost(&file, includes(&text), packed));
    }
    Ok(missing)
}

/// The targets that are not in the package, named from a file. A target may be a folder.
fn lost<'a>(
    file: &Path,
    targets: impl Iterator<Item = &'a str>,
    packed: &BTreeSet<PathBuf>,
) -> Vec<String> {
    let folder = file.parent().unwrap_or(Path::new(""));
    targets
        .filter(|target| {
            let path = plain(&folder.join(target));
            !packed.iter().any(|packed| packed.starts_with(&path))
        })
        .map(|target| format!("{target} (of {})", file.display()))
        .collect()
}

/// The path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// The files of a document's links and pictures.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1);
    targets
        .filter_map(|rest| rest.split([')', '#']).next())
        .filter(|target| !target.is_empty() && !target.contains("://"))
}

/// The files that a source includes by their names.
fn includes(text: &str) -> impl Iterator<Item = &str> {
    let calls = ["include_str!(\"", "include_bytes!(\""];
    calls.into_iter().flat_map(|call| {
        let names = text.split(call).skip(1);
        names.filter_map(|rest| rest.split('"').next())
    })
}

/// A file, or all files below a folder, from the root.
fn files(root: &Path, path: &Path) -> Result<Vec<PathBuf>> {
    if !root.join(path).is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join(path))? {
        found.extend(files(root, &path.join(entry?.file_name()))?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_includes_are_found() {
        let text = "![](docs/a.png) and [b](b.md#part), [c](https://example.org) [d](#here)";
        assert_eq!(links(text).collect::<Vec<_>>(), ["docs/a.png", "b.md"]);
        let source = r#"include_str!("../x.wgsl") include_bytes!("y") include_str!(concat!(a))"#;
        assert_eq!(includes(source).collect::<Vec<_>>(), ["../x.wgsl", "y"]);
    }

    #[test]
    fn what_is_not_packed_is_named() {
        let packed = BTreeSet::from(["docs/guide/lod.md".into(), "docs/orbs.png".into()]);
        let lost = |targets: [&'static str; 3]| {
            lost(
                Path::new("docs/guide/gltf.md"),
                targets.into_iter(),
                &packed,
            )
        };
        assert!(lost(["lod.md", "../orbs.png", "../guide"]).is_empty());
        assert_eq!(
            lost(["lod.md", "../b.png", "c"]),
            [
                "../b.png (of docs/guide/gltf.md)",
                "c (of docs/guide/gltf.md)"
            ]
        );
    }

    #[test]
    fn a_package_without_its_shaders_is_seen() -> Result<()> {
        let project = Project::find()?;
        let whole: BTreeSet<_> = [
            "README.md",
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "docs",
            "examples",
        ]
        .iter()
        .chain(&NEEDED)
        .map(|path| files(&project.root, Path::new(path)))
        .collect::<Result<Vec<_>>>()?
        .concat()
        .into_iter()
        .collect();
        assert!(missing(&project.root, &whole)?.is_empty());
        let mut less = whole;
        less.retain(|path| !path.ends_with("draw/mesh.wesl") && !path.ends_with("minimal.png"));
        let missing = missing(&project.root, &less)?;
        for name in ["shaders/draw/mesh.wesl", "docs/images/minimal.png"] {
            assert!(
                missing.iter().any(|line| line.contains(name)),
                "{missing:?}"
            );
        }
        Ok(())
    }
}
