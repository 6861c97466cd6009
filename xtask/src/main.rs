//! The project's tasks: `cargo xtask <task>`.
//!
//! Every task does its own set-up, so a fresh machine with Rust, even one too old for the crate,
//! needs one command to see the demo and one to run every test.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks by printing"
)]

mod assets;
mod bench;
mod browser;
mod ci;
mod compare;
mod edits;
mod ends;
mod examples;
mod frames;
mod journal;
mod orbs;
mod package;
mod project;
mod report;
mod server;
mod sets;
mod setup;
mod soak;
mod steps;
mod test;
mod tint;
mod toolchain;
mod transcript;
mod validation;
mod web;
mod wgsl;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::project::{NO_LAYER, Project};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "The tasks of bevy_gpu_culling",
    version
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

/// One variant per task, one arm in [`run`]. A task whose arguments belong to another program is
/// also named in [`PASSES_ARGUMENTS_ON`].
#[derive(Subcommand)]
enum Task {
    /// Builds and runs the demo: in a window, or headless if there is no display
    Orbs {
        /// Flags of the demo, passed on as they are (`cargo xtask orbs --help` lists them)
        flags: Vec<OsString>,
    },
    /// Runs every test: of the workspace, then of its documents
    Test {
        /// Arguments of `cargo test`, passed on as they are
        args: Vec<OsString>,
    },
    /// Runs a benchmark on this adapter: ladder, scale, contention, expansion, scatter, frame, edit, sets
    Bench {
        /// The benchmark and its flags, passed on as they are
        arguments: Vec<OsString>,
    },
    /// Measures which compaction is the fastest on this adapter, for `Compaction::Auto`, and keeps
    /// the answer
    Tune {
        /// Flags of the benchmark, passed on as they are
        flags: Vec<OsString>,
    },
    /// Writes the files in `assets/` again, as `tests/app/assets` makes them
    Assets,
    /// Runs what CI runs: format, lints, docs, tests, the demo's own checks, Vulkan validation
    Ci {
        /// Instead, long tests, random apps, the pictures of the examples, and benchmarks with few
        /// instances
        #[arg(long)]
        more: bool,
    },
    /// Draws the small examples and compares them with the stored pictures
    Examples {
        /// Only these examples
        names: Vec<String>,
        /// Store what they draw now
        #[arg(long)]
        update: bool,
    },
    /// Tries random apps, one after the other: survivors against the CPU twin, pictures against
    /// Bevy's entities
    Soak {
        /// For how long: the app that runs then is the last
        #[arg(long, default_value_t = 10.0, value_parser = parse_minutes)]
        minutes: f64,
        /// The seed of the first app; the next one has the next number
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Draws the demo and the small examples under Vulkan's validation layer, with its
    /// synchronization checks: they may say what Bevy alone says
    Validate,
    /// Only the set-up: finds a compiler and a GPU adapter, fetches or installs them if it may
    Setup,
    /// Prints the compiler that the tasks use, or runs a command with it
    ///
    /// If the machine's rustc is too old for the crate, one is fetched: by rustup, or, on Debian
    /// and Ubuntu, from Debian's packages into `~/.cache/bevy_gpu_culling/rust`. Nothing that is
    /// installed is replaced.
    Toolchain {
        /// The command, such as `cargo clippy`
        #[arg(trailing_var_arg = true)]
        command: Vec<OsString>,
    },
    /// Has Chromium compile every kernel, and lists the errors and warnings of its compiler, Tint
    ///
    /// Browsers follow WGSL's rules of uniform control flow, which naga does not check. This needs
    /// no GPU. If Chromium is missing, its package is installed (Debian and Ubuntu, as root or with
    /// a sudo that asks for no password), otherwise the line to type is printed. Kernels with
    /// `u64` are left out: no browser has that type. So are the shaders that import Bevy's.
    Tint,
    /// Builds the demo and the examples for browsers, and serves them on this machine
    ///
    /// They need WebGPU. The first build compiles Bevy for WebAssembly. What lacks is installed: the
    /// compiler's standard library for `wasm32-unknown-unknown`, wasm-bindgen in the target folder,
    /// and, on Debian and Ubuntu, clang, because meshoptimizer is C++.
    Web {
        /// Write the pages into this folder, for any server of files, instead of serving them
        #[arg(long, value_name = "FOLDER", conflicts_with = "check")]
        out: Option<PathBuf>,
        /// Draw them in headless Chromium, by software, and compare: survivors with the CPU twin's,
        /// pictures with what native adapters draw. Any error in the console is one
        #[arg(long)]
        check: bool,
        /// Check these examples, instead of those that software draws in seconds
        #[arg(requires = "check")]
        names: Vec<String>,
    },
    /// Writes the composed kernels to `target/wgsl/`
    Wgsl,
}

impl Task {
    /// Whether it needs the compiler.
    fn compiles(&self) -> bool {
        !matches!(self, Self::Tint | Self::Wgsl)
    }

    /// Whether it compiles Bevy.
    fn builds_bevy(&self) -> bool {
        self.compiles() && !matches!(self, Self::Toolchain { .. })
    }
}

/// Tasks whose arguments go to another program, dashes, `--help` and `--` included.
const PASSES_ARGUMENTS_ON: [&str; 4] = ["orbs", "test", "bench", "tune"];

fn main() {
    let cli = Cli::parse_from(verbatim(std::env::args_os().collect()));
    let code = match run(cli.task) {
        Ok(code) => code,
        // What failed was ended on purpose.
        Err(_) if CTRL_C.load(Ordering::Relaxed) => INTERRUPTED,
        Err(error) => {
            eprintln!("error: {error:#}");
            1
        }
    };
    std::process::exit(code);
}

/// The exit code after Ctrl-C, by the shells' habit: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// Whether Ctrl-C was typed.
static CTRL_C: AtomicBool = AtomicBool::new(false);

/// On a terminal, Ctrl-C reaches the program that a task runs as well. Lets that program end in its
/// own way first; the second Ctrl-C ends the task too.
fn on_ctrl_c() {
    if CTRL_C.swap(true, Ordering::Relaxed) {
        std::process::exit(INTERRUPTED);
    }
}

/// Runs one task and returns the exit code.
fn run(task: Task) -> Result<i32> {
    ctrlc::set_handler(on_ctrl_c)?;
    let mut project = Project::find()?;
    if task.compiles() {
        project = project.with_compiler()?;
    }
    if task.builds_bevy() {
        setup::build_libraries()?;
    }
    match task {
        Task::Orbs { flags } => orbs::run(&project, flags),
        Task::Test { args } => test::run(&project, &args),
        Task::Bench { arguments } => bench::run(&project, &arguments),
        Task::Tune { flags } => bench::tune(&project, &flags),
        Task::Assets => assets::run(&project),
        Task::Ci { more } => ci::run(project, more),
        Task::Examples { names, update } => {
            examples::run(&project, &names, update, NO_LAYER)?;
            Ok(0)
        }
        Task::Soak { minutes, seed } => soak::run(&project, minutes, seed),
        Task::Validate => validation::run(&project),
        Task::Setup => setup::run(&project),
        Task::Toolchain { command } => toolchain::run(&project, &command),
        Task::Tint => tint::run(&project),
        Task::Web {
            check: true, names, ..
        } => web::check_only(&project, &names),
        Task::Web { out, .. } => web::run(&project, out.as_deref()),
        Task::Wgsl => wgsl::run(&project),
    }
}

/// A number of minutes that ends.
fn parse_minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse::<f64>().map_err(|error| format!("{error}"))?;
    match (0.0..=MAX_MINUTES).contains(&minutes) {
        true => Ok(minutes),
        false => Err(format!("it must be between 0 and {MAX_MINUTES}")),
    }
}

/// A year.
const MAX_MINUTES: f64 = 525_600.0;

/// Puts `--` behind a task that passes its arguments on, so that clap touches none of them.
fn verbatim(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let passes_on = |task: &OsString| PASSES_ARGUMENTS_ON.iter().any(|name| task == name);
    if arguments.get(1).is_some_and(passes_on) {
        arguments.insert(2, "--".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use proptest::{prelude::*, test_runner::FileFailurePersistence};

    fn parse(line: &str) -> Task {
        let arguments = line.split(' ').map(OsString::from).collect();
        Cli::parse_from(verbatim(arguments)).task
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_demos_flags_arrive_as_they_were_typed() {
        let Task::Orbs { flags } = parse("xtask orbs --help --count=5 -x -- --tier cpu") else {
            panic!("not the orbs task");
        };
        assert_eq!(flags, ["--help", "--count=5", "-x", "--", "--tier", "cpu"]);
    }

    #[test]
    fn the_tests_arguments_keep_their_own_double_dash() {
        let Task::Test { args } = parse("xtask test -- --nocapture") else {
            panic!("not the test task");
        };
        assert_eq!(args, ["--", "--nocapture"]);
        assert!(matches!(parse("xtask test"), Task::Test { args } if args.is_empty()));
    }

    #[test]
    fn a_benchmark_keeps_its_name_and_flags() {
        let Task::Bench { arguments } = parse("xtask bench ladder --count 1k,2k --json") else {
            panic!("not the bench task");
        };
        assert_eq!(arguments, ["ladder", "--count", "1k,2k", "--json"]);
        assert!(matches!(parse("xtask tune --show"), Task::Tune { flags } if flags == ["--show"]));
    }

    #[test]
    fn a_command_for_the_compiler_keeps_its_flags() {
        let Task::Toolchain { command } = parse("xtask toolchain cargo --version -- -D x") else {
            panic!("not the toolchain task");
        };
        assert_eq!(command, ["cargo", "--version", "--", "-D", "x"]);
        assert!(parse("xtask toolchain").compiles());
        assert!(!parse("xtask wgsl").compiles());
        assert!(!parse("xtask tint").compiles());
    }

    /// A word of a command line: mostly a task, one of its flags, or a number.
    fn word() -> impl Strategy<Value = String> {
        let command = Cli::command();
        let mut known: Vec<_> = command
            .get_subcommands()
            .flat_map(clap::Command::get_arguments)
            .filter_map(|flag| Some(format!("--{}", flag.get_long()?)))
            .collect();
        known.extend(
            command
                .get_subcommands()
                .map(|task| task.get_name().to_owned()),
        );
        prop_oneof![
            6 => prop::sample::select(known),
            1 => any::<i64>().prop_map(|number| number.to_string()),
            1 => any::<f64>().prop_map(|number| number.to_string()),
            1 => "[-=x0-9a-z\\PC]{0,12}",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: ProptestConfig::default().cases.max(2000),
            failure_persistence: Some(Box::new(FileFailurePersistence::Direct(concat!(
                env!("CARGO_MANIFEST_DIR"), "/../tests/hostile/seeds/xtask.txt"
            )))),
            ..Default::default()
        })]

        /// Whatever is written, it is read or refused.
        #[test]
        fn any_words_are_read_or_refused(words in prop::collection::vec(word(), 0..6)) {
            let words = words.into_iter().map(OsString::from);
            let all = core::iter::once(OsString::from("xtask")).chain(words);
            match Cli::try_parse_from(verbatim(all.collect())) {
                Ok(Cli { task: Task::Soak { minutes, .. } }) => {
                    prop_assert!((0.0..=MAX_MINUTES).contains(&minutes));
                }
                Ok(_) => {}
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn other_tasks_are_left_to_clap() {
        assert!(matches!(parse("xtask ci"), Task::Ci { more: false }));
        assert!(Cli::try_parse_from(["xtask", "ci", "--nonsense"]).is_err());
    }
}
