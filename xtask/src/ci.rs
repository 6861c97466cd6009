//! `cargo xtask ci`: everything that must hold, in the order in which it is quickest to fail.

use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, ensure};
use xshell::{Cmd, Shell};

use crate::compare;
use crate::project::{Demo, EVERY_FEATURE, NO_LAYER, Project, exit_code};
use crate::report::Report;
use crate::setup::{self, Wants};
use crate::steps::{self, Outcome, Step};
use crate::{edits, ends, examples, frames, package, sets, soak, test, tint, validation, web};

/// A new check is one more line here.
const STEPS: &[Step<Ci>] = &[
    Step {
        name: "tools",
        run: tools,
    },
    Step {
        name: "format",
        run: format,
    },
    Step {
        name: "package",
        run: |ci| package::check(&ci.project),
    },
    Step {
        name: "kernels in a browser",
        run: |ci| tint::check(&ci.project),
    },
    Step {
        name: "clippy",
        run: clippy,
    },
    Step {
        name: "clippy, default",
        run: clippy_default,
    },
    Step {
        name: "clippy, engine",
        run: clippy_engine,
    },
    Step {
        name: "docs",
        run: docs,
    },
    Step {
        name: "docs, engine",
        run: docs_engine,
    },
    Step {
        name: "adapter",
        run: adapter,
    },
    Step {
        name: "tests",
        run: tests,
    },
    Step {
        name: "tests, documents",
        run: |ci| ci.cargo(test::DOCUMENTS),
    },
    Step {
        name: "demo, three tiers",
        run: demo_tiers,
    },
    Step {
        name: "clean ends",
        run: |ci| ends::check(&ci.project, ci.demo()?),
    },
    Step {
        name: "picture against Bevy",
        run: pictures,
    },
    Step {
        name: "validation",
        run: |ci| validation::check(&ci.project, ci.demo()?),
    },
];

/// `cargo xtask ci --more`: apart, because more programs are built, and CI should take an hour.
const MORE: &[Step<Ci>] = &[
    Step {
        name: "adapter",
        run: adapter,
    },
    Step {
        name: "long tests",
        run: long_tests,
    },
    Step {
        name: "soak",
        run: |ci| soak::check(&ci.project, NO_LAYER),
    },
    Step {
        name: "picture with occlusion",
        run: occlusion,
    },
    Step {
        name: "picture by meshlets",
        run: meshlets,
    },
    Step {
        name: "examples",
        run: |ci| {
            examples::run(&ci.project, &[], false, NO_LAYER)?;
            Ok(Outcome::Passed)
        },
    },
    Step {
        name: "validation of examples",
        run: |ci| validation::check_examples(&ci.project, ci.demo()?),
    },
    Step {
        name: "examples in a browser",
        run: |ci| web::check(&ci.project, ci.demo()?),
    },
    Step {
        name: "benchmark of frames",
        run: |ci| frames::check(&ci.project, NO_LAYER),
    },
    Step {
        name: "benchmark of edits",
        run: |ci| edits::check(&ci.project, NO_LAYER),
    },
    Step {
        name: "benchmark of sets",
        run: |ci| sets::check(&ci.project, NO_LAYER),
    },
];

/// The tiers that must agree. The first is the one that the others are compared with.
const TIERS: [&str; 3] = ["subgroup", "workgroup", "cpu"];

/// What the steps share.
struct Ci {
    project: Project,
    sh: Shell,
    /// Built by the step `adapter`.
    demo: Option<Demo>,
}

/// Runs all steps, or the further ones, and returns the exit code.
pub fn run(project: Project, more: bool) -> Result<i32> {
    let sh = project.shell()?;
    Ok(steps::run_all(
        if more { MORE } else { STEPS },
        &mut Ci {
            project,
            sh,
            demo: None,
        },
    ))
}

impl Ci {
    /// A cargo command without the layer; xshell would show its whole path, this shows its name.
    fn command(&self, arguments: &[&str]) -> Cmd<'_> {
        println!("$ cargo {}", arguments.join(" "));
        let command = self.sh.cmd(self.project.toolchain.cargo()).args(arguments);
        command.env(NO_LAYER.0, NO_LAYER.1).quiet()
    }

    fn cargo(&mut self, arguments: &[&str]) -> Result<Outcome> {
        self.command(arguments).run()?;
        Ok(Outcome::Passed)
    }

    /// Documents what `selection` names. If it has Bevy, it names an example too, although few read
    /// its page: then Bevy has the features that clippy checked it with, and is not checked again.
    fn docs(&mut self, selection: &[&str]) -> Result<Outcome> {
        let arguments = [&["doc", "--no-deps"], selection].concat();
        self.command(&arguments)
            .env("RUSTDOCFLAGS", "-D warnings")
            .run()?;
        Ok(Outcome::Passed)
    }

    fn demo(&self) -> Result<&Demo> {
        self.demo.as_ref().context("the demo is not built")
    }

    /// Runs the demo headless and returns what it printed; anything but exit code 0 is an error.
    fn run_demo(&self, flags: &[&str], picture: &Path) -> Result<String> {
        println!(
            "$ orbs --headless {} --out {}",
            flags.join(" "),
            picture.display()
        );
        // A picture of an earlier run must not pass for this one's.
        let _ = std::fs::remove_file(picture);
        let mut command = self.demo()?.command();
        command
            .arg("--headless")
            .args(flags)
            .arg("--out")
            .arg(picture)
            .env(NO_LAYER.0, NO_LAYER.1);
        command
            .stdin(std::process::Stdio::null())
            .stderr(std::process::Stdio::inherit());
        let output = command.output().context("the demo does not start")?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        print!("{stdout}");
        let code = exit_code(output.status);
        ensure!(code == 0, "the demo ended with exit code {code}");
        ensure!(picture.is_file(), "the demo wrote no {}", picture.display());
        Ok(stdout)
    }
}

/// A toolchain of rustup's minimal profile lacks rustfmt and clippy.
fn tools(ci: &mut Ci) -> Result<Outcome> {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        let asked = ci
            .command(&[subcommand, "--version"])
            .ignore_stdout()
            .ignore_stderr();
        if asked.run().is_err() {
            let rustup = which::which("rustup")
                .with_context(|| format!("cargo {subcommand} is not installed"))?;
            ci.sh
                .cmd(rustup)
                .args(["component", "add", component])
                .run()?;
        }
    }
    Ok(Outcome::Passed)
}

fn format(ci: &mut Ci) -> Result<Outcome> {
    ci.cargo(&["fmt", "--all", "--check"])
}

fn clippy(ci: &mut Ci) -> Result<Outcome> {
    ci.cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        EVERY_FEATURE,
        "--",
        "-D",
        "warnings",
    ])
}

/// What an app gets by default, with every example that needs no more. With examples, because only
/// with the development dependencies is Bevy the one that is checked already.
fn clippy_default(ci: &mut Ci) -> Result<Outcome> {
    ci.cargo(&[
        "clippy",
        "--package",
        "bevy_gpu_culling",
        "--lib",
        "--examples",
        "--",
        "-D",
        "warnings",
    ])
}

/// Without development dependencies: the proof that the engine needs no Bevy. Then with the
/// features of the engine that others bring, too, if all are on.
fn clippy_engine(ci: &mut Ci) -> Result<Outcome> {
    for features in [&[][..], &["--features", "tune"], &["--features", "lods"]] {
        let engine = [
            "clippy",
            "--package",
            "bevy_gpu_culling",
            "--no-default-features",
        ];
        ci.cargo(&[&engine, features, &["--", "-D", "warnings"]].concat())?;
    }
    Ok(Outcome::Passed)
}

fn docs(ci: &mut Ci) -> Result<Outcome> {
    ci.docs(&[
        "--workspace",
        "--lib",
        "--bins",
        "--example",
        "minimal",
        EVERY_FEATURE,
    ])
}

fn docs_engine(ci: &mut Ci) -> Result<Outcome> {
    ci.docs(&[
        "--package",
        "bevy_gpu_culling",
        "--lib",
        "--no-default-features",
    ])
}

fn adapter(ci: &mut Ci) -> Result<Outcome> {
    let demo = ci.demo.insert(ci.project.build_demo()?);
    let wants = Wants {
        window: false,
        verbose: true,
    };
    for name in setup::make_ready(demo, wants)? {
        println!("adapter: {name}");
    }
    Ok(Outcome::Passed)
}

/// The tests that the step `tests` leaves out.
fn long_tests(ci: &mut Ci) -> Result<Outcome> {
    let programs = &[
        "test",
        "--workspace",
        EVERY_FEATURE,
        "--test",
        "app",
        "--test",
        "engine",
        "--",
    ];
    ci.cargo(&[programs, &test::LONG[..]].concat())
}

/// Every test of the workspace except [`test::LONG`], two programs at a time.
fn tests(ci: &mut Ci) -> Result<Outcome> {
    ci.cargo(&[test::WORKSPACE, &["--no-run"]].concat())?;
    let project = &ci.project;
    let part = |targets| test::part(project, targets, NO_LAYER);
    let [first, second, alone] = test::PARTS;
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| part(first));
        let second = part(second);
        let first = first.join().unwrap_or_else(|panic| resume_unwind(panic));
        (first, second)
    });
    let all = [first?, second?, part(alone)?];
    ensure!(all == [true; 3], "tests failed");
    Ok(Outcome::Passed)
}

/// A hundred thousand orbs on every tier: each verified against the CPU twin, all equal.
fn demo_tiers(ci: &mut Ci) -> Result<Outcome> {
    let folder = ci.project.output_folder()?;
    let mut first: Option<Report> = None;
    for tier in TIERS {
        let flags = [
            "--count",
            "100000",
            "--size",
            "640x360",
            "--frames",
            "4",
            "--verify",
            "--json",
            "--tier",
            tier,
            // The tier `cpu` hides nothing.
            "--occlusion=off",
        ];
        let report =
            Report::from_output(&ci.run_demo(&flags, &folder.join(format!("orbs-{tier}.png")))?)?;
        report.check(tier)?;
        match &first {
            None => first = Some(report),
            Some(first) => report.same_visible(first)?,
        }
    }
    Ok(Outcome::Passed)
}

/// The same scene with the plugin and as one entity per orb must look the same.
fn pictures(ci: &mut Ci) -> Result<Outcome> {
    let scene = [
        "--count", "20000", "--seed", "7", "--size", "640x360", "--frames", "4",
    ];
    same_picture(
        ci,
        &scene,
        [
            ("plugin", &["--lods", "off"]),
            ("peer", &["--peer", "bevy"]),
        ],
    )
}

/// Orbs behind others are not drawn, and nobody sees it.
fn occlusion(ci: &mut Ci) -> Result<Outcome> {
    let scene = [
        "--count", "50000", "--size", "640x360", "--frames", "4", "--verify",
    ];
    let ways: [(&str, &[&str]); 2] = [
        ("occlusion", &["--occlusion=on"]),
        ("frustum", &["--occlusion=off"]),
    ];
    same_picture(ci, &scene, ways)
}

/// Orbs of many triangles must look the same by meshlets and whole.
fn meshlets(ci: &mut Ci) -> Result<Outcome> {
    let scene = ["--count", "1000", "--size", "640x360", "--frames", "2"];
    let ways: [(&str, &[&str]); 2] = [
        ("meshlets", &["--meshlets"]),
        ("whole", &["--meshlets=whole"]),
    ];
    same_picture(ci, &scene, ways)
}

/// A scene of the demo, drawn in two ways with these names and flags.
fn same_picture(ci: &mut Ci, scene: &[&str], ways: [(&str, &[&str]); 2]) -> Result<Outcome> {
    let folder = ci.project.output_folder()?;
    let [first, second] = ways.map(|(name, _)| folder.join(format!("picture-{name}.png")));
    for ((_, flags), picture) in ways.iter().zip([&first, &second]) {
        ci.run_demo(&[scene, flags].concat(), picture)?;
    }
    let difference = compare::files(&first, &second)?;
    println!("{difference}");
    ensure!(
        difference.is_small(),
        "{difference}: see {} and {}",
        first.display(),
        second.display()
    );
    Ok(Outcome::Passed)
}
