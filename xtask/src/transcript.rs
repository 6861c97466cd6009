//! What `cargo test` prints, read line by line: which test programs ran, and how each ended.

use std::fmt;
use std::time::Duration;

use crate::steps::readable;

/// The test programs so far.
#[derive(Default)]
pub struct Transcript {
    programs: Vec<Program>,
}

/// One test program, or the doc tests of a package.
#[derive(Default)]
struct Program {
    /// What was tested.
    suite: &'static str,
    name: String,
    tests: Tests,
    time: Duration,
    /// Whether it said how its tests went.
    ended: bool,
}

/// Numbers of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tests {
    pub passed: u64,
    pub failed: u64,
    pub ignored: u64,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One test passed, or was left out on purpose.
    Test,
    /// Cargo has built what was already built, or a test takes its time: no news.
    Chatter,
    /// An empty line.
    Empty,
    /// All else: programs, results, failures.
    News,
}

impl Transcript {
    /// Takes a line in and says what it is.
    pub fn read(&mut self, line: &str) -> Kind {
        let line = without_colors(line);
        let line = line.trim();
        if let Some(name) = program(line) {
            self.programs.push(Program {
                name,
                ..Program::default()
            });
        } else if let Some((tests, time)) = result(line) {
            if self.programs.is_empty() {
                self.programs.push(Program::default());
            }
            if let Some(program) = self.programs.last_mut() {
                // The doc tests of a package may come in two parts.
                program.tests.add(tests);
                program.time += time;
                program.ended = true;
            }
        }
        kind(line)
    }

    /// Takes the programs of a suite in.
    pub fn append(&mut self, suite: &'static str, other: Self) {
        let programs = other.programs.into_iter();
        self.programs
            .extend(programs.map(|program| Program { suite, ..program }));
    }

    /// All tests so far.
    pub fn total(&self) -> Tests {
        let mut total = Tests::default();
        for program in &self.programs {
            total.add(program.tests);
        }
        total
    }
}

impl Tests {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }

    fn texts(self) -> [String; 3] {
        [self.passed, self.failed, self.ignored].map(|number| number.to_string())
    }
}

impl fmt::Display for Transcript {
    /// A row per program that had tests, and the sum.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |suite: &str, name: &str, counts: [&str; 3], time: &str| {
            let [passed, failed, ignored] = counts;
            writeln!(
                f,
                "{suite:<11}{name:<30}{passed:>8}{failed:>8}{ignored:>9}{time:>12}"
            )
        };
        row(
            "suite",
            "test program",
            ["passed", "failed", "ignored"],
            "time",
        )?;
        for program in &self.programs {
            if !program.ended {
                row(program.suite, &program.name, ["-"; 3], "no result")?;
            } else if program.tests != Tests::default() {
                let counts = program.tests.texts();
                let counts = counts.each_ref().map(String::as_str);
                row(
                    program.suite,
                    &program.name,
                    counts,
                    &readable(program.time),
                )?;
            }
        }
        let total = self.total().texts();
        let time = self.programs.iter().map(|program| program.time).sum();
        row(
            "all",
            "",
            total.each_ref().map(String::as_str),
            &readable(time),
        )
    }
}

/// What a line without colors is.
fn kind(line: &str) -> Kind {
    let of_test = line.strip_prefix("test ").is_some_and(|_| {
        line.ends_with(" ... ok")
            || line.ends_with(" ... ignored")
            || line.contains(" ... ignored, ")
    });
    if line.is_empty() {
        Kind::Empty
    } else if of_test {
        Kind::Test
    } else if line.starts_with("Finished ")
        || line.ends_with(" seconds") && line.starts_with("test ")
    {
        Kind::Chatter
    } else {
        Kind::News
    }
}

/// The name of the program that cargo begins to run.
fn program(line: &str) -> Option<String> {
    if let Some(package) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{package}, doc tests"));
    }
    let (source, path) = line.strip_prefix("Running ")?.rsplit_once(" (")?;
    let stem = path.strip_suffix(')')?.rsplit(['/', '\\']).next()?;
    let stem = stem.strip_suffix(".exe").unwrap_or(stem);
    // Cargo ends the names of test programs with a hash.
    let name = match stem.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 16 => name,
        _ => stem,
    };
    Some(if source.starts_with("unittests ") {
        format!("{name}, unit tests")
    } else {
        name.to_owned()
    })
}

/// Numbers and time of libtest's closing line.
fn result(line: &str) -> Option<(Tests, Duration)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut tests = Tests::default();
    let mut time = Duration::ZERO;
    for part in counts.split("; ") {
        if let Some(seconds) = part.strip_prefix("finished in ") {
            let seconds = seconds.trim_end_matches('s').parse().ok()?;
            time = Duration::try_from_secs_f64(seconds).ok()?;
        } else if let Some((number, what)) = part.split_once(' ') {
            let number = number.parse().ok()?;
            match what {
                "passed" => tests.passed = number,
                "failed" => tests.failed = number,
                "ignored" => tests.ignored = number,
                _ => {}
            }
        }
    }
    Some((tests, time))
}

/// The line without a terminal's color codes.
fn without_colors(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, code)) = rest.split_once("\x1b[") {
        plain += before;
        let end = code.find(|c: char| c.is_ascii_alphabetic());
        rest = end.map_or("", |end| &code[end + 1..]);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "    Finished `test` profile [optimized + debuginfo] target(s) in 0.20s
     Running unittests src/lib.rs (target/debug/deps/bevy_gpu_culling-2f7a1b3c4d5e6f70)

running 3 tests
test cull::plan::tests::few ... ok
test cull::plan::tests::slow has been running for over 60 seconds
test cull::plan::tests::slow ... ok
test cull::plan::tests::big ... ignored, takes an hour

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 61.25s

     Running tests/engine/main.rs (target/debug/deps/engine-0123456789abcdef)

running 2 tests
test culling ... FAILED
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 4 filtered out; finished in 0.50s
     Running tests/empty.rs (target/debug/deps/empty-0123456789abcdef)
test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running tests/crash.rs (target/debug/deps/crash-0123456789abcdef)
   Doc-tests bevy_gpu_culling
test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.00s
";

    #[test]
    fn every_program_gets_its_tests() {
        let mut transcript = Transcript::default();
        for line in SAID.lines() {
            transcript.read(line);
        }
        let total = transcript.total();
        let mut all = Transcript::default();
        all.append("workspace", transcript);
        assert_eq!(all.total(), total);
        let table = all.to_string();
        let cells = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let rows: Vec<_> = table.lines().map(cells).collect();
        let expected = [
            "suite test program passed failed ignored time",
            "workspace bevy_gpu_culling, unit tests 2 0 1 1 min 01 s",
            "workspace engine 1 1 0 0.5 s",
            "workspace crash - - - no result",
            "workspace bevy_gpu_culling, doc tests 7 0 0 3.0 s",
            "all 10 1 1 1 min 04 s",
        ];
        assert_eq!(rows, expected);
        assert_eq!((total.passed, total.failed, total.ignored), (10, 1, 1));
    }

    #[test]
    fn news_are_told_from_lines_of_single_tests() {
        let kinds: Vec<_> = SAID
            .lines()
            .take(11)
            .map(|line| (kind(line.trim()), line))
            .collect();
        let of = |wanted| {
            let lines = kinds.iter().filter(move |(kind, _)| *kind == wanted);
            lines.map(|(_, line)| line.trim()).collect::<Vec<_>>()
        };
        assert_eq!(of(Kind::Test).len(), 3);
        assert_eq!(of(Kind::Chatter).len(), 2);
        assert_eq!(of(Kind::Empty).len(), 3);
        assert!(
            of(Kind::News)
                .iter()
                .any(|line| line.starts_with("test result: ok. 2 passed"))
        );
        for news in [
            "test culling ... FAILED",
            "thread 'main' panicked at tests/x.rs:1:1:",
            "error: test failed, to rerun pass `--test engine`",
        ] {
            assert_eq!(kind(news), Kind::News, "{news}");
        }
    }

    #[test]
    fn colors_hide_nothing() {
        let colored =
            "\x1b[1m\x1b[92m     Running\x1b[0m tests/x.rs (target/debug/deps/x-0123456789abcdef)";
        assert_eq!(program(without_colors(colored).trim()), Some("x".into()));
        let colored = "test result: \x1b[32mok\x1b[0m. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert!(result(&without_colors(colored)).is_some_and(|(tests, _)| tests.passed == 1));
    }

    #[test]
    fn names_of_programs_lose_their_hash_only() {
        let name = |path: &str| program(&format!("Running tests/a.rs ({path})"));
        assert_eq!(
            name("/t/deps/meshlet_picture-0123456789abcdef"),
            Some("meshlet_picture".into())
        );
        assert_eq!(name(r"C:\t\deps\a-0123456789abcdef.exe"), Some("a".into()));
        assert_eq!(name("/t/a-b"), Some("a-b".into()));
        assert_eq!(program("Running out of memory"), None);
    }
}
