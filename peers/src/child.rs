//! A contender that lives in a process of its own, because it is written in another language or needs a
//! network of its own. It is told a run a line, and answers with a line.

use crate::contender::{Contender, Run, Taken};
use crate::work::Work;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

pub struct Child {
    name: &'static str,
    /// What the program has said of itself.
    version: String,
    works: &'static [Work],
    share: u64,
    process: std::process::Child,
    /// `None` once it is being dropped: the end of its input ends the program.
    to_do: Option<ChildStdin>,
    done: BufReader<ChildStdout>,
}

impl Child {
    /// Starts the program, which first says a line about itself.
    ///
    /// # Errors
    /// A sentence that says why it cannot work here.
    pub fn start(
        name: &'static str,
        mut command: Command,
        works: &'static [Work],
        share: u64,
    ) -> Result<Self, String> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|error| {
            format!("`{}` does not start: {error}", command.get_program().to_string_lossy())
        })?;
        let to_do = process.stdin.take();
        let done = process.stdout.take().ok_or("it has no output")?;
        let mut child =
            Self { name, version: String::new(), works, share, process, to_do, done: BufReader::new(done) };
        child.version = child.line()?;
        match child.version.strip_prefix("error ") {
            Some(sentence) => Err(sentence.to_owned()),
            None => Ok(child),
        }
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let count =
            self.done.read_line(&mut line).map_err(|error| format!("its answer cannot be read: {error}"))?;
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

/// What an answer says: `ok`, nanoseconds, frames there and back; or `error` and a sentence.
fn taken(answer: &str, units: u64) -> Result<Taken, String> {
    let unknown = || format!("it has answered `{answer}`");
    if let Some(sentence) = answer.strip_prefix("error ") {
        return Err(sentence.to_owned());
    }
    let numbers: Option<Vec<u64>> =
        answer.strip_prefix("ok ").and_then(|words| words.split(' ').map(|word| word.parse().ok()).collect());
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
        // It ends at the end of its input; how makes no difference any more.
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_figure_or_the_sentence_that_says_why_there_is_none() {
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
    fn a_program_that_ends_without_a_word_is_no_contender() {
        let outcome = Child::start("silent", Command::new("true"), &[], 1);
        assert_eq!(outcome.err().as_deref(), Some("its program has ended without an answer"));
    }
}
