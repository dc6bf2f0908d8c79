//! A contender that runs in a child process, because it is written in another language or needs a
//! network namespace of its own. The process reads one run per line from standard input, and
//! answers each run with one line on standard output.

use crate::contender::{Contender, Run, Taken};
use crate::work::Work;
use clap::ValueEnum;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

/// A contender that runs in a child process.
pub struct Child {
    name: &'static str,
    /// The first line that the process has printed: its version and settings.
    version: String,
    /// The workloads that this contender can perform.
    works: &'static [Work],
    /// The divisor of the amount of work. A slow contender does a smaller part of the work that the
    /// others do.
    share: u64,
    process: std::process::Child,
    /// Standard input of the process, on which runs are requested. It becomes `None` when this
    /// value is dropped: closing the input makes the process end.
    to_do: Option<ChildStdin>,
    /// Standard output of the process, on which it answers.
    done: BufReader<ChildStdout>,
}

impl Child {
    /// Starts the process and reads the first line that it prints. The line contains the version,
    /// or an error if the process cannot take part.
    ///
    /// # Errors
    /// A message that says why the process cannot run on this machine.
    pub fn start(
        name: &'static str,
        mut command: Command,
        works: &'static [Work],
        share: u64,
    ) -> Result<Self, String> {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|error| {
                format!("`{}` does not start: {error}", command.get_program().to_string_lossy())
            })?;
        let to_do = process.stdin.take();
        let done = process.stdout.take().ok_or("it has no output")?;
        let mut child = Self {
            name,
            version: String::new(),
            works,
            share,
            process,
            to_do,
            done: BufReader::new(done),
        };
        child.version = child.line()?;
        match child.version.strip_prefix("error ") {
            Some(sentence) => Err(sentence.to_owned()),
            None => Ok(child),
        }
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let count = self
            .done
            .read_line(&mut line)
            .map_err(|error| format!("its answer cannot be read: {error}"))?;
        if count == 0 {
            return Err("its program has ended without an answer".to_owned());
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Contender for Child {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn can(&self, work: Work) -> bool {
        self.works.contains(&work)
    }

    fn share(&self) -> u64 {
        self.share
    }

    fn run(&mut self, run: Run) -> Result<Taken, String> {
        let to_do = self.to_do.as_mut().ok_or("its program has ended")?;
        writeln!(to_do, "{} {} {}", run.work.name(), run.amount, u8::from(run.verify))
            .map_err(|error| format!("its program does not listen: {error}"))?;
        taken(&self.line()?, run.amount)
    }
}

/// Parses the answer to a run of `units` units of work. It is `ok`, the nanoseconds and the number
/// of frames in each direction; or it is `error` and a message.
fn taken(answer: &str, units: u64) -> Result<Taken, String> {
    let unknown = || format!("it has answered `{answer}`");
    if let Some(sentence) = answer.strip_prefix("error ") {
        return Err(sentence.to_owned());
    }
    let numbers: Option<Vec<u64>> = answer
        .strip_prefix("ok ")
        .and_then(|words| words.split(' ').map(|word| word.parse().ok()).collect());
    match numbers.as_deref() {
        Some(&[nanoseconds, frames_out, frames_back]) => {
            Ok(Taken { nanoseconds, units, frames_out, frames_back })
        }
        _ => Err(unknown()),
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.to_do = None;
        // Standard input is closed, so the process ends. Its exit code does not matter.
        let _ = self.process.wait();
    }
}

/// Acts as the child process of a contender that is part of this program. Prints the version that
/// `begin` returns, and performs the runs requested on standard input, until the input ends.
///
/// # Errors
/// A message that a line cannot be read or written because the parent process has closed its pipe.
pub fn serve<T>(
    begin: impl FnOnce() -> Result<(String, T), String>,
    mut carry_out: impl FnMut(&mut T, Run) -> Result<Taken, String>,
) -> Result<(), String> {
    let (version, mut begun) = match begin() {
        Ok(begun) => begun,
        Err(reason) => return refuse(&reason),
    };
    answer(&version)?;
    for line in io::stdin().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let taken = run_of(&line).and_then(|run| carry_out(&mut begun, run));
        answer(&taken.map_or_else(
            |reason| format!("error {reason}"),
            |taken| format!("ok {} {} {}", taken.nanoseconds, taken.frames_out, taken.frames_back),
        ))?;
    }
    Ok(())
}

/// Prints the reason why this process cannot take part in the benchmark.
///
/// # Errors
/// A message that the parent process has closed its pipe.
pub fn refuse(reason: &str) -> Result<(), String> {
    answer(&format!("error {reason}"))
}

fn answer(line: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}

/// Parses a line that requests a run. It consists of the workload, the amount, and 1 if the data
/// are verified, otherwise 0.
fn run_of(line: &str) -> Result<Run, String> {
    let words: Vec<&str> = line.split(' ').collect();
    let &[work, amount, verify] = &words[..] else { return Err(format!("`{line}` is no run")) };
    let known = Work::value_variants().iter().find(|known| known.name() == work);
    let work = *known.ok_or_else(|| format!("there is no work called {work}"))?;
    let amount = amount.parse().map_err(|error| format!("`{amount}` is no amount: {error}"))?;
    Ok(Run { work, amount, verify: verify != "0" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_figure_or_an_error() {
        let figure = taken("ok 1000 7 3", 5).unwrap();
        assert_eq!(
            (figure.nanoseconds, figure.units, figure.frames_out, figure.frames_back),
            (1_000, 5, 7, 3)
        );
        assert_eq!(taken("error no room", 5).unwrap_err(), "no room");
        for nonsense in ["", "ok", "ok 1 2", "ok 1 2 x", "ok 1 2 3 4"] {
            assert!(taken(nonsense, 5).unwrap_err().contains(nonsense));
        }
    }

    #[test]
    fn a_run_is_parsed_as_it_was_written() {
        let run = run_of("tap-send 50 1").unwrap();
        assert_eq!((run.work, run.amount, run.verify), (Work::TapSend, 50, true));
        for nonsense in ["", "tap-send", "nothing 50 0", "bulk many 0", "bulk 1 0 1"] {
            assert!(run_of(nonsense).is_err());
        }
    }

    #[test]
    fn a_program_that_ends_without_output_is_refused() {
        let outcome = Child::start("silent", Command::new("true"), &[], 1);
        assert_eq!(outcome.err().as_deref(), Some("its program has ended without an answer"));
    }
}
