//! The `linerate` command as a test runs it: to its end, or in the background until it is
//! interrupted.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// `linerate` with these words.
pub(crate) fn linerate(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(words).stdin(Stdio::null());
    command
}

/// Runs `linerate` to its end: exit code, standard output, standard error.
pub(crate) fn run(words: &[&str]) -> (i32, String, String) {
    finished(&linerate(words).output().unwrap())
}

/// Exit code, standard output, standard error.
pub(crate) fn finished(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// A `linerate` that runs beside the test; it does not outlive it.
pub(crate) struct Background {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Background {
    pub(crate) fn start(words: &[&str]) -> Self {
        Self::of(linerate(words).stdout(Stdio::piped()).spawn().unwrap())
    }

    pub(crate) fn of(mut child: Child) -> Self {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> String {
        self.lines.next().expect("it has ended").unwrap()
    }

    /// Where it says that it listens.
    pub(crate) fn address(&mut self) -> SocketAddr {
        self.line().strip_prefix("listening at ").unwrap().parse().unwrap()
    }

    /// Ctrl-C, and what it says and does then: the rest of its lines, and its exit code.
    pub(crate) fn interrupt(mut self) -> (Vec<String>, i32) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let rest = self.lines.by_ref().map(Result::unwrap).collect();
        (rest, self.child.wait().unwrap().code().unwrap())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
