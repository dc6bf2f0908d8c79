//! gVisor's TCP stack (netstack) as a contender. A Go program drives it and is compiled on demand.

use crate::build::{Build, finish};
use crate::child::Child;
use crate::contender::{Candidate, Missing};
use crate::work::Work;
use std::path::PathBuf;
use std::process::Command;

const NAME: &str = "gvisor";
const REMEDY: &str = "install Go 1.26 or later, and let it reach its module proxy once";

/// Returns gVisor as a contender, if a Go compiler is installed.
pub fn candidate() -> Candidate {
    start()
        .map(|child| Box::new(child) as _)
        .map_err(|reason| Missing { name: NAME, reason: format!("{reason}; {REMEDY}") })
}

fn start() -> Result<Child, String> {
    Child::start(NAME, Command::new(program()?), &[Work::Bulk, Work::PingPong, Work::Connect], 10)
}

/// Compiles the Go program if its source has changed, and returns the path of the compiled program.
///
/// # Errors
/// A message that says why the program cannot be compiled.
pub fn program() -> Result<PathBuf, String> {
    let Build { folder, output } = Build::of(NAME)?;
    let mut compiler = Command::new("go");
    finish(compiler.args(["build", "-o"]).arg(&output).arg(".").current_dir(folder))?;
    Ok(output)
}
