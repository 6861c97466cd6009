//! `cargo xtask bench` and `cargo xtask tune`: the benchmarks of the engine, built without the
//! plugin, and the benchmarks of frames, of edits and of many sets.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;

use crate::project::{EVERY_FEATURE, Project, exit_code};

/// The benchmarks, each with what it answers.
const BENCHMARKS: [(&str, &str); 11] = [
    ("ladder", "every compaction, timed and verified"),
    (
        "scale",
        "a thousand instances to as many as fit: stages, CPU, memory, start; --peer bevy",
    ),
    (
        "late",
        "what a view that hides costs, on the GPU and on the CPU",
    ),
    ("contention", "which way of counting this adapter likes"),
    (
        "expansion",
        "every way to give the items of sources to threads, timed and verified",
    ),
    (
        "scatter",
        "how long the GPU takes to fill tiles with what grows there",
    ),
    (
        FRAME,
        "whole frames of five scenes, drawn as sets and as Bevy's entities; --quick in software",
    ),
    (
        OCCLUSION,
        "frame, with flags that compare sets with and without occlusion",
    ),
    (
        FIGURES,
        "crowds that stand, play clips and blend them, and Bevy's skinned entities",
    ),
    (
        EDIT,
        "edits of a set in each frame: CPU time and uploaded bytes; --quick in software",
    ),
    (
        SETS,
        "a city of many meshes, as sets and as Bevy's entities: the whole CPU frame; --quick in software",
    ),
];

/// The benchmarks that need the plugin.
pub const FRAME: &str = "frame";
pub const EDIT: &str = "edit";
const FIGURES: &str = "figures";
pub const SETS: &str = "sets";

/// The short form of a choice of frames.
const OCCLUSION: &str = "occlusion";

/// The flags that the short form adds, unless they are named: scenes that hide much, some and
/// little, drawn with and without occlusion.
const OCCLUSION_FLAGS: [(&str, &str); 4] = [
    ("--scene", "canyon,demo,sparse"),
    ("--occlusion", "on,off"),
    ("--order", "near-first"),
    ("--peer", "sets"),
];

/// Those that draw a chart.
const CHARTS: [&str; 5] = ["ladder", "scale", "expansion", FRAME, OCCLUSION];

/// Runs the benchmark that the first argument names, with the others; returns its exit code.
pub fn run(project: &Project, arguments: &[OsString]) -> Result<i32> {
    let name = arguments.first().and_then(|name| name.to_str());
    let Some((name, _)) = BENCHMARKS.iter().find(|(known, _)| Some(*known) == name) else {
        let asks = matches!(name, Some("--help" | "-h"));
        eprint!("{}", usage());
        return Ok(if asks { 0 } else { 2 });
    };
    let mut flags = arguments[1..].to_vec();
    if *name == OCCLUSION {
        flags = with_defaults(flags, &OCCLUSION_FLAGS);
    }
    if CHARTS.contains(name) && !names(&flags, "--chart") {
        let folder = project.target.join("bench");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        flags.extend(["--chart".into(), folder.join(format!("{name}.svg")).into()]);
    }
    if *name == "scale" && !names(&flags, "--orbs") {
        // CPU times are measured in the demo.
        let demo = project.build_demo()?;
        flags.extend(["--orbs".into(), demo.path().into()]);
    }
    match *name {
        OCCLUSION => started(&mut plugin(project, FRAME, &flags)),
        FRAME | EDIT | FIGURES | SETS => started(&mut plugin(project, name, &flags)),
        _ => engine(project, name, &[], &flags),
    }
}

/// Runs a benchmark of the plugin with `--json` among its flags, and returns its rows.
pub fn rows<T: DeserializeOwned>(
    project: &Project,
    name: &str,
    flags: &[&str],
    variable: (&str, &str),
) -> Result<Vec<T>> {
    println!("$ cargo xtask bench {name} {}", flags.join(" "));
    let flags: Vec<_> = flags.iter().map(OsString::from).collect();
    let mut command = plugin(project, name, &flags);
    command.env(variable.0, variable.1);
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().context("the benchmark does not start")?;
    let lines = String::from_utf8_lossy(&output.stdout);
    print!("{lines}");
    let code = exit_code(output.status);
    ensure!(code == 0, "the benchmark ended with exit code {code}");
    let row = |line| serde_json::from_str(line).with_context(|| format!("no row: {line}"));
    lines.lines().map(row).collect()
}

/// A benchmark of the plugin. It shares the tests' build of Bevy.
fn plugin(project: &Project, name: &str, flags: &[OsString]) -> Command {
    let mut command = cargo_bench(project);
    command
        .args([EVERY_FEATURE, "--bench", name, "--"])
        .args(flags);
    command
}

/// Measures which compaction `Auto` takes on this adapter, and keeps the answer.
pub fn tune(project: &Project, flags: &[OsString]) -> Result<i32> {
    engine(project, "tune", &["--features", "tune"], flags)
}

/// Runs a benchmark of the engine alone; returns its exit code.
fn engine(project: &Project, name: &str, features: &[&str], flags: &[OsString]) -> Result<i32> {
    let mut command = cargo_bench(project);
    command.args(["--no-default-features", "--features", "study"]);
    command.args(features);
    command.args(["--bench", name, "--"]).args(flags);
    started(&mut command)
}

/// The profile is the one of all other tasks, so that nothing is built twice.
fn cargo_bench(project: &Project) -> Command {
    let mut command = project.cargo();
    command.args(["bench", "--quiet", "--profile", "dev"]);
    command.args(["--package", "bevy_gpu_culling"]);
    command
}

fn started(command: &mut Command) -> Result<i32> {
    let status = command.status().context("cargo bench does not start")?;
    Ok(exit_code(status))
}

fn usage() -> String {
    let mut usage = String::from("Usage: cargo xtask bench <benchmark> [flags]\n\n");
    for (name, what) in BENCHMARKS {
        usage += &format!("  {name:<12}{what}\n");
    }
    usage + "\n`cargo xtask bench <benchmark> --help` lists the flags.\n"
}

/// The flags, with each default that they do not name.
fn with_defaults(mut flags: Vec<OsString>, defaults: &[(&str, &str)]) -> Vec<OsString> {
    for (option, value) in defaults {
        if !names(&flags, option) {
            flags.extend([option.into(), value.into()]);
        }
    }
    flags
}

/// Whether the option is among the flags, in either spelling, or help is asked for.
fn names(flags: &[OsString], option: &str) -> bool {
    flags.iter().any(|flag| {
        let flag = flag.to_string_lossy();
        let name = flag.split('=').next();
        name == Some(option) || flag == "--help" || flag == "-h"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_names_every_benchmark() {
        for (name, what) in BENCHMARKS {
            assert!(usage().contains(name) && usage().contains(what));
        }
    }

    #[test]
    fn an_option_is_added_only_where_it_is_not_named() {
        let flags = |line: &str| {
            line.split_whitespace()
                .map(OsString::from)
                .collect::<Vec<_>>()
        };
        assert!(!names(&flags("--count 1k --json"), "--chart"));
        assert!(names(&flags("--chart=a.svg"), "--chart"));
        assert!(names(&flags("--chart a.svg"), "--chart"));
        assert!(!names(&flags("--chart a.svg"), "--orbs"));
        assert!(names(&flags("--help"), "--orbs"));
    }

    #[test]
    fn the_short_form_keeps_the_flags_that_are_named() {
        let flags =
            |line: &str| -> Vec<_> { line.split_whitespace().map(OsString::from).collect() };
        let all = "--scene canyon,demo,sparse --occlusion on,off --order near-first --peer sets";
        assert_eq!(with_defaults(Vec::new(), &OCCLUSION_FLAGS), flags(all));
        assert_eq!(
            with_defaults(flags("--scene=dense --quick --peer bevy"), &OCCLUSION_FLAGS),
            flags("--scene=dense --quick --peer bevy --occlusion on,off --order near-first"),
        );
        let help = flags("--help");
        assert_eq!(with_defaults(help.clone(), &OCCLUSION_FLAGS), help);
    }
}
