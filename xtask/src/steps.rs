//! Named steps, timed, that stop at the first failure.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;

/// How a step that did not fail ended.
pub enum Outcome {
    /// It ran and holds.
    Passed,
    /// It could not run here, and why.
    Skipped(String),
}

/// One step over a state `S` that the steps share.
pub struct Step<S> {
    /// What the table calls it.
    pub name: &'static str,
    /// What it does.
    pub run: fn(&mut S) -> Result<Outcome>,
}

/// A line of the table.
struct Line {
    name: &'static str,
    result: &'static str,
    time: Duration,
}

/// Runs the steps in order, prints the table of their times and returns the exit code. The last
/// line printed says which step failed, and why.
pub fn run_all<S>(steps: &[Step<S>], state: &mut S) -> i32 {
    let mut lines = Vec::new();
    let mut failure = None;
    for (index, step) in steps.iter().enumerate() {
        println!("\n== {}/{} {}", index + 1, steps.len(), step.name);
        let start = Instant::now();
        let outcome = (step.run)(state);
        let result = match outcome {
            Ok(Outcome::Passed) => "passed",
            Ok(Outcome::Skipped(reason)) => {
                println!("{reason}");
                "skipped"
            }
            Err(error) => {
                failure = Some((step.name, error));
                "FAILED"
            }
        };
        let time = start.elapsed();
        // The table never comes if something ends the run from outside.
        println!("{} {result} after {}", step.name, readable(time));
        lines.push(Line {
            name: step.name,
            result,
            time,
        });
        if failure.is_some() {
            break;
        }
    }
    print!("\n{}", table(&lines));
    match failure {
        None => 0,
        Some((name, error)) => {
            println!("\nFAILED at {name}: {error:#}");
            1
        }
    }
}

/// The steps, their results and times, and the sum.
fn table(lines: &[Line]) -> String {
    let total = lines.iter().map(|line| line.time).sum();
    let mut table = format!("{:<24}{:<10}{:>12}\n", "step", "result", "time");
    for line in lines {
        let _ = writeln!(
            table,
            "{:<24}{:<10}{:>12}",
            line.name,
            line.result,
            readable(line.time)
        );
    }
    let _ = writeln!(table, "{:<24}{:<10}{:>12}", "total", "", readable(total));
    table
}

/// Seconds to a tenth, from a minute on minutes and seconds.
pub fn readable(time: Duration) -> String {
    if time < Duration::from_secs(60) {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        let seconds = time.as_secs();
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn steps_stop_at_the_first_failure() {
        let steps: [Step<Vec<u32>>; 4] = [
            Step {
                name: "one",
                run: |seen| {
                    seen.push(1);
                    Ok(Outcome::Passed)
                },
            },
            Step {
                name: "two",
                run: |seen| {
                    seen.push(2);
                    Ok(Outcome::Skipped("no reason".into()))
                },
            },
            Step {
                name: "three",
                run: |seen| {
                    seen.push(3);
                    bail!("broken")
                },
            },
            Step {
                name: "four",
                run: |seen| {
                    seen.push(4);
                    Ok(Outcome::Passed)
                },
            },
        ];
        let mut seen = Vec::new();
        assert_eq!(run_all(&steps, &mut seen), 1);
        assert_eq!(seen, [1, 2, 3]);

        seen.clear();
        assert_eq!(run_all(&steps[..2], &mut seen), 0);
        assert_eq!(seen, [1, 2]);
    }

    #[test]
    fn the_table_adds_the_times_up() {
        let lines = [
            Line {
                name: "format",
                result: "passed",
                time: Duration::from_millis(800),
            },
            Line {
                name: "tests",
                result: "FAILED",
                time: Duration::from_secs(125),
            },
        ];
        let table = table(&lines);
        let cells = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let rows: Vec<_> = table.lines().map(cells).collect();
        let expected = [
            "step result time",
            "format passed 0.8 s",
            "tests FAILED 2 min 05 s",
            "total 2 min 05 s",
        ];
        assert_eq!(rows, expected);
        assert!(table.lines().all(|line| line.len() == 46), "{table}");
    }

    #[test]
    fn times_are_readable() {
        assert_eq!(readable(Duration::from_millis(40)), "0.0 s");
        assert_eq!(readable(Duration::from_secs_f64(59.94)), "59.9 s");
        assert_eq!(readable(Duration::from_secs(60)), "1 min 00 s");
        assert_eq!(readable(Duration::from_secs(3_725)), "62 min 05 s");
    }
}
