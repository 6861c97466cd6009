//! `cargo xtask prose`: holds comments, documents and messages to the house's rules of writing.
//!
//! The rules are plain American English; `CONTRIBUTING.md` lists them. This counts the phrases that
//! break one (`prose/tics.rs`) in all text that people read (`prose/text.rs`), and names the idiom
//! to use instead.

mod text;
mod tics;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::project::Project;
use text::Kind;

/// The files and folders that are read, from the workspace's root.
const READ: [&str; 12] = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "Cargo.toml",
    "assets",
    "docs",
    "src",
    "shaders",
    "examples",
    "tests",
    "benches",
    "xtask",
];

/// Not read: the list of phrases itself, and what build scripts leave behind.
const NOT_READ: [&str; 2] = ["xtask/src/prose/tics.rs", "target"];

/// One phrase that breaks a rule.
struct Finding {
    /// From the workspace's root, with `/`.
    file: String,
    line: usize,
    /// The phrase as it stands there.
    phrase: String,
    /// What to write instead.
    idiom: &'static str,
}

/// Reads everything, or only the paths given, prints what breaks a rule and returns the exit code.
pub fn run(project: &Project, paths: &[PathBuf]) -> Result<i32> {
    let findings = findings(&project.root, paths)?;
    for finding in &findings {
        println!("{finding}");
    }
    print!("{}", counts(&findings));
    Ok(i32::from(!findings.is_empty()))
}

/// The step of `cargo xtask ci`: an error with the counts of each folder if a rule is broken.
pub fn check(project: &Project) -> Result<()> {
    let findings = findings(&project.root, &[])?;
    print!("{}", counts(&findings));
    ensure!(
        findings.is_empty(),
        "{} phrases break the rules of writing: `cargo xtask prose` lists them",
        findings.len()
    );
    Ok(())
}

fn findings(root: &Path, paths: &[PathBuf]) -> Result<Vec<Finding>> {
    let mut files = Vec::new();
    if paths.is_empty() {
        for path in READ.map(|path| root.join(path)) {
            if path.exists() {
                collect(root, &path, &mut files)?;
            }
        }
    } else {
        for path in paths {
            let path = root.join(path);
            ensure!(path.exists(), "there is no {}", path.display());
            collect(root, &path, &mut files)?;
        }
    }
    let tics = tics::all();
    let mut findings = Vec::new();
    for file in files {
        let source = std::fs::read_to_string(root.join(&file))
            .with_context(|| format!("cannot read {file}"))?;
        let Some(kind) = Kind::of(&file) else {
            bail!("{file} is of an unknown kind");
        };
        findings.extend(read(&tics, &file, kind, &source));
    }
    Ok(findings)
}

/// Adds the readable files at and below `path` in order of their names, as paths from the root.
fn collect(root: &Path, path: &Path, files: &mut Vec<String>) -> Result<()> {
    let name = path.strip_prefix(root).unwrap_or(path);
    let name = name.to_string_lossy().replace('\\', "/");
    if NOT_READ.contains(&name.as_str()) {
        return Ok(());
    }
    if path.is_dir() {
        let entries = std::fs::read_dir(path).with_context(|| format!("cannot list {name}"))?;
        let mut inside = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<_>>>()?;
        inside.sort();
        for path in inside {
            collect(root, &path, files)?;
        }
    } else if Kind::of(&name).is_some() {
        files.push(name);
    }
    Ok(())
}

/// What breaks a rule in one file, in the order of its lines.
fn read(tics: &[tics::Tic], file: &str, kind: Kind, source: &str) -> Vec<Finding> {
    let finding = |line, phrase: &str, idiom| Finding {
        file: file.into(),
        line,
        phrase: phrase.into(),
        idiom,
    };
    let mut findings: Vec<Finding> = text::paragraphs(kind, source)
        .iter()
        .flat_map(|paragraph| {
            tics::found(tics, &paragraph.text)
                .into_iter()
                .map(|(range, idiom)| {
                    finding(
                        paragraph.line_of(range.start),
                        &paragraph.text[range],
                        idiom,
                    )
                })
        })
        .collect();
    findings.extend(
        text::wide_lines(kind, source)
            .into_iter()
            .map(|(line, width)| finding(line, &format!("{width} columns"), "wrap at 100 columns")),
    );
    findings.sort_by_key(|finding| finding.line);
    findings
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            file,
            line,
            phrase,
            idiom,
        } = self;
        write!(f, "{file}:{line}: \"{phrase}\": {idiom}")
    }
}

/// A table of how many findings each folder has, and their sum.
fn counts(findings: &[Finding]) -> String {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in findings {
        *folders.entry(folder(&finding.file)).or_default() += 1;
    }
    let mut table = format!("{:<32}{:>8}\n", "folder", "phrases");
    for (folder, count) in folders {
        let _ = writeln!(table, "{folder:<32}{count:>8}");
    }
    let _ = writeln!(table, "{:<32}{:>8}", "all", findings.len());
    table
}

/// Up to three levels deep, so that the rooms of the library have a line each.
fn folder(file: &str) -> &str {
    let folder = file.rfind('/').map_or(file, |end| &file[..end]);
    let deeper = folder.match_indices('/').nth(2);
    deeper.map_or(folder, |(end, _)| &folder[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_file_line_and_idiom() {
        let source = "//! Fine.\n\n/// One bit is kept\n/// where it is visible.\nfn main() {}\n";
        let findings = read(&tics::all(), "src/a.rs", Kind::Rust, source);
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["src/a.rs:4: \"where\": if, when"]);
    }

    #[test]
    fn folders_are_counted() {
        assert_eq!(folder("README.md"), "README.md");
        assert_eq!(folder("src/cull/plan.rs"), "src/cull");
        assert_eq!(folder("src/cull/a/b/c.rs"), "src/cull/a");
        let source = ["so ", "many\n\nan", "ew\n"].concat();
        let findings = read(&tics::all(), "docs/a.md", Kind::Markdown, &source);
        let table = counts(&findings);
        assert!(
            table.contains("docs                                   2"),
            "{table}"
        );
        assert!(
            table.contains("all                                    2"),
            "{table}"
        );
    }
}
