//! `cargo xtask test`: every test of the workspace.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::process::Stdio;

use anyhow::{Context, Result};

use crate::journal::Journal;
use crate::project::{EVERY_FEATURE, Project, exit_code};
use crate::setup::{self, Wants};
use crate::transcript::{Kind, Tests, Transcript};

/// The workspace, without its doc tests. The targets are named, because otherwise cargo also builds
/// each small example, which has no tests; the gallery draws them all, and clippy checks them. All
/// programs run, also if one fails: a run takes long.
pub const WORKSPACE: &[&str] = &[
    "test",
    "--workspace",
    EVERY_FEATURE,
    "--lib",
    "--bins",
    "--tests",
    "--no-fail-fast",
];

/// The same in parts, for CI: the first two take about the same time, and run at once, since apps
/// wait for each other in a program. The third looks at times, and so runs alone.
pub const PARTS: [&[&str]; 3] = [
    &["--test", "app", "--test", "adapters", "--test", "logged"],
    &[
        "--lib",
        "--bins",
        "--example",
        "orbs",
        "--test",
        "engine",
        "--test",
        "frame",
        "--test",
        "hostile",
        "--test",
        "picture",
        "--test",
        "project",
        "--test",
        "recovery",
    ],
    &["--test", "allocations", "--test", "cost", "--test", "rays"],
];

/// Tests that CI leaves to `ci --more`: those that compare all strategies of a stage, also the ones
/// that `Auto` never takes, and those that break a kernel in dozens of places. They take most of the
/// engine's time.
pub const LONG: [&str; 9] = [
    "ladder::",
    "expansion::broken::",
    "every_expansion_equals_its_twin",
    "indirect_and_separate_dispatches_expand_the_same",
    "meshlets::expansions::",
    "further_expansions_hide_as_the_twins",
    "a_broken_kernel_is_seen",
    "a_broken_sort_is_seen",
    "every_expansion_draws_what_the_division_draws",
];

/// Runs a part of the tests, already built, without the [`LONG`] ones; true if all pass.
pub fn part(project: &Project, targets: &[&str], variable: (&str, &str)) -> Result<bool> {
    let mut command = project.cargo();
    command
        .args(CHOSEN)
        .args(targets)
        .args(["--no-fail-fast", "--"]);
    command.args(LONG.iter().flat_map(|tests| ["--skip", tests]));
    command.env(variable.0, variable.1);
    let status = command.status().context("cargo test does not start")?;
    Ok(status.success())
}

/// The examples of README, guide and API.
pub const DOCUMENTS: &[&str] = &["test", "--workspace", EVERY_FEATURE, "--doc"];

/// What the caller chooses of the workspace.
const CHOSEN: &[&str] = &["test", "--workspace", EVERY_FEATURE];

/// A `cargo test` with its own features.
struct Suite {
    name: &'static str,
    what: &'static str,
    /// Arguments of cargo, `test` first.
    arguments: &'static [&'static str],
}

/// All suites, in order.
const SUITES: [Suite; 2] = [
    Suite {
        name: "workspace",
        what: "the whole workspace. Their first build takes 3 to 6 minutes",
        arguments: WORKSPACE,
    },
    Suite {
        name: "documents",
        what: "the documents",
        arguments: DOCUMENTS,
    },
];

/// The suite if the caller chose a target.
const CHOICE: [Suite; 1] = [Suite {
    name: "chosen",
    what: "the chosen targets",
    arguments: CHOSEN,
}];

/// Flags of `cargo test` that choose what is tested.
const SELECTORS: [&str; 14] = [
    "--all-targets",
    "--bench",
    "--benches",
    "--bin",
    "--bins",
    "--doc",
    "--example",
    "--examples",
    "--exclude",
    "--lib",
    "--package",
    "--test",
    "--tests",
    "-p",
];

/// Flags of `cargo test` that do not go with `--no-run`.
const NO_BUILD: [&str; 5] = ["--doc", "--help", "-h", "--message-format", "--no-run"];

/// Makes sure of an adapter, then runs the [`SUITES`] with the caller's arguments; returns the exit
/// code of the first that fails.
pub fn run(project: &Project, arguments: &[OsString]) -> Result<i32> {
    let journal = Journal::begin();
    let demo = journal.step("build", || project.build_demo(), ToString::to_string)?;
    let wants = Wants {
        window: false,
        verbose: false,
    };
    let adapters = || setup::make_ready(&demo, wants);
    journal.step("adapter", adapters, |names| names.join(", "))?;

    let mut all = Transcript::default();
    let mut code = 0;
    for suite in suites(arguments) {
        eprintln!("\nThe tests of {}.", suite.what);
        let is_built_by_running = suite.arguments.contains(&"--doc");
        if !is_built_by_running && !names(arguments, &NO_BUILD) {
            let build = || build(project, suite, arguments);
            code = journal.step("build", build, told)?;
        }
        if code == 0 {
            let run = || test(project, suite, arguments);
            let (ended, transcript) =
                journal.step(suite.name, run, |(code, transcript)| match code {
                    0 => format!("{} tests passed", transcript.total().passed),
                    code => told(code),
                })?;
            code = ended;
            all.append(suite.name, transcript);
        }
        if code != 0 {
            break;
        }
    }
    if code != 0 || all.total() != Tests::default() {
        eprint!("\n{all}");
    }
    journal.end(&told(&code));
    Ok(code)
}

/// What an exit code says.
fn told(code: &i32) -> String {
    match code {
        0 => String::new(),
        code => format!("FAILED with exit code {code}"),
    }
}

/// Builds the tests of a suite, with cargo's own progress; returns the exit code.
fn build(project: &Project, suite: &Suite, arguments: &[OsString]) -> Result<i32> {
    let mut command = project.cargo();
    command
        .args(suite.arguments)
        // Otherwise cargo lists all programs that it has built.
        .args(["--no-run", "--message-format", "json-render-diagnostics"])
        .args(arguments)
        .stdout(Stdio::null());
    let status = command.status().context("cargo test does not start")?;
    Ok(exit_code(status))
}

/// Runs the tests of a suite, already built, and shows what is news; returns the exit code and what
/// was said.
fn test(project: &Project, suite: &Suite, arguments: &[OsString]) -> Result<(i32, Transcript)> {
    // One pipe for both streams: cargo names a program on stderr, its tests are on stdout, and
    // their order says which belong together.
    let (reader, writer) = os_pipe::pipe()?;
    let mut command = project.cargo();
    command.args(suite.arguments).args(arguments);
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().context("cargo test does not start")?;
    // It holds the pipe's other end: the end of the output would never come.
    drop(command);

    let mut transcript = Transcript::default();
    let mut screen = Screen::new(arguments.is_empty());
    for line in BufReader::new(reader).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        let kind = transcript.read(&line);
        screen.show(&line, kind)?;
    }
    screen.end()?;
    Ok((exit_code(child.wait()?), transcript))
}

/// Where lines are shown.
struct Screen {
    /// Leaves out what is no news. Whoever chose tests wants to see their names.
    only_news: bool,
    /// On a terminal, how many tests have passed since the last news is shown as it changes.
    counts: bool,
    passed: u32,
}

impl Screen {
    fn new(only_news: bool) -> Self {
        Self {
            only_news,
            counts: only_news && std::io::stdout().is_terminal(),
            passed: 0,
        }
    }

    fn show(&mut self, line: &str, kind: Kind) -> Result<()> {
        let mut out = std::io::stdout().lock();
        if !self.only_news || kind == Kind::News {
            self.clear(&mut out)?;
            writeln!(out, "{line}")?;
        } else if self.counts && kind == Kind::Test {
            self.passed += 1;
            write!(out, "\rtests done: {}", self.passed)?;
            out.flush()?;
        }
        Ok(())
    }

    fn end(mut self) -> Result<()> {
        self.clear(&mut std::io::stdout().lock())
    }

    /// Takes the count back.
    fn clear(&mut self, out: &mut impl Write) -> Result<()> {
        if std::mem::take(&mut self.passed) > 0 {
            write!(out, "\r\x1b[K")?;
        }
        Ok(())
    }
}

/// All suites, or the caller's choice.
fn suites(arguments: &[OsString]) -> &'static [Suite] {
    if names(arguments, &SELECTORS) {
        &CHOICE
    } else {
        &SUITES
    }
}

/// Whether one of these flags is among cargo's own arguments.
fn names(arguments: &[OsString], flags: &[&str]) -> bool {
    let mut for_cargo = arguments.iter().take_while(|argument| *argument != "--");
    for_cargo.any(|argument| {
        let text = argument.to_string_lossy();
        flags.contains(&text.split('=').next().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn count(line: &str) -> usize {
        suites(&arguments(line)).len()
    }

    #[test]
    fn a_filter_goes_to_all_suites() {
        assert_eq!(count(""), 2);
        assert_eq!(count("vote"), 2);
        assert_eq!(count("-- --test-threads 1"), 2);
        assert_eq!(count("--release -- --test"), 2);
    }

    #[test]
    fn a_chosen_target_goes_to_the_workspace() {
        assert_eq!(count("--test engine"), 1);
        assert_eq!(count("--test=engine"), 1);
        assert_eq!(count("-p xtask"), 1);
        assert_eq!(count("--doc -- --nocapture"), 1);
        assert_eq!(suites(&arguments("-p xtask"))[0].arguments, CHOSEN);
    }

    #[test]
    fn the_workspace_has_no_target_that_a_choice_could_add_to() {
        assert!(WORKSPACE.starts_with(CHOSEN) && DOCUMENTS.starts_with(CHOSEN));
        let adds_nothing = |flag: &&str| SELECTORS.contains(flag) || *flag == "--no-fail-fast";
        assert!(WORKSPACE[CHOSEN.len()..].iter().all(adds_nothing));
    }

    /// A name that no test has would leave nothing out.
    #[test]
    fn long_tests_exist() -> Result<()> {
        let sh = Project::find()?.shell()?;
        for name in LONG {
            let test = format!("fn {name}()");
            match name.strip_suffix("::") {
                Some(room) => {
                    let file = format!("tests/engine/{}.rs", room.replace("::", "/"));
                    assert!(sh.read_file(file)?.contains("#[test]"), "{name}");
                }
                None => drop(xshell::cmd!(sh, "grep -rF {test} tests").read()?),
            }
        }
        Ok(())
    }

    /// Every program of tests is in one part.
    #[test]
    fn no_program_is_left_out() -> Result<()> {
        let tests = Project::find()?.root.join("tests");
        for entry in std::fs::read_dir(tests)? {
            let path = entry?.path();
            let is_program = path.is_file() || path.join("main.rs").is_file();
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let named = PARTS.iter().filter(|part| part.contains(&&*name)).count();
            assert_eq!(named, usize::from(is_program), "{name}");
        }
        Ok(())
    }

    #[test]
    fn doc_tests_are_not_built_beforehand() {
        assert!(names(&arguments("--doc"), &NO_BUILD));
        assert!(names(&arguments("--message-format=json"), &NO_BUILD));
        assert!(!names(&arguments("vote -- --list -h"), &NO_BUILD));
    }
}
