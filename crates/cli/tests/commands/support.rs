//! Runs the `linerate` command, to its end or in the background.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// Returns the command that runs `linerate` with these arguments.
pub(crate) fn linerate(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(words).stdin(Stdio::null());
    command
}

/// Runs `linerate` to its end. Returns the exit code, standard output and standard error.
pub(crate) fn run(words: &[&str]) -> (i32, String, String) {
    finished(&linerate(words).output().unwrap())
}

/// Returns the exit code, standard output and standard error of a finished process.
pub(crate) fn finished(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// A `linerate` process in the background, which is killed when this value is dropped.
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

    /// Returns the next line of standard output.
    pub(crate) fn line(&mut self) -> String {
        self.lines.next().expect("it has ended").unwrap()
    }

    /// Reads the line `listening at ADDR`, and returns the address.
    pub(crate) fn address(&mut self) -> SocketAddr {
        self.line().strip_prefix("listening at ").unwrap().parse().unwrap()
    }

    /// Sends SIGINT, as Ctrl-C does. Returns the remaining lines of output, and the exit code.
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
