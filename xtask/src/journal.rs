//! What a command says about its steps: one line per step with its time. On stderr, because stdout
//! belongs to the programs that the command runs.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::steps::readable;

/// The steps of one command.
pub struct Journal {
    begin: Instant,
}

impl Journal {
    /// Starts the clock of the whole command.
    pub fn begin() -> Self {
        Self {
            begin: Instant::now(),
        }
    }

    /// Runs a step, then prints its line. `tell` says what came of it.
    pub fn step<T>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<T>,
        tell: impl FnOnce(&T) -> String,
    ) -> Result<T> {
        let start = Instant::now();
        let result = work();
        let what = match &result {
            Ok(value) => tell(value),
            Err(_) => "FAILED".into(),
        };
        eprintln!("{}", line(name, start.elapsed(), &what));
        result
    }

    /// Prints the last line: the time of the whole command.
    pub fn end(&self, what: &str) {
        eprintln!("{}", line("total", self.begin.elapsed(), what));
    }
}

/// One line of the journal.
fn line(name: &str, time: Duration, what: &str) -> String {
    let line = format!("{name:<10}{:>12}   {what}", readable(time));
    line.trim_end().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn a_line_has_name_time_and_what_came_of_it() {
        let seconds = Duration::from_secs;
        assert_eq!(
            line("build", seconds(130), "orbs"),
            "build       2 min 10 s   orbs"
        );
        assert_eq!(line("total", seconds(3), ""), "total            3.0 s");
    }

    #[test]
    fn a_failed_step_stays_an_error() -> Result<()> {
        let journal = Journal::begin();
        assert_eq!(journal.step("one", || Ok(7), i32::to_string)?, 7);
        let failed = journal.step("two", || bail!("broken"), |(): &()| "never".into());
        assert_eq!(
            failed.map_err(|error| error.to_string()),
            Err("broken".into())
        );
        Ok(())
    }
}
