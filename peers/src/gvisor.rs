//! gVisor's netstack, driven by a Go program that is compiled on demand.

use crate::build::{Build, finish};
use crate::child::Child;
use crate::contender::{Candidate, Missing};
use crate::work::Work;
use std::path::PathBuf;
use std::process::Command;

const NAME: &str = "gvisor";
const REMEDY: &str = "install Go 1.26 or later, and let it reach its module proxy once";

/// Returns gVisor if a Go compiler is installed.
pub fn candidate() -> Candidate {
    start()
        .map(|child| Box::new(child) as _)
        .map_err(|reason| Missing { name: NAME, reason: format!("{reason}; {REMEDY}") })
}

fn start() -> Result<Child, String> {
    Child::start(NAME, Command::new(program()?), &[Work::Bulk, Work::PingPong, Work::Connect], 10)
}

/// Returns the path of gVisor's program, which is compiled if its source has changed.
///
/// # Errors
/// A message that says why it cannot be compiled.
pub fn program() -> Result<PathBuf, String> {
    let Build { folder, output } = Build::of(NAME)?;
    let mut compiler = Command::new("go");
    finish(compiler.args(["build", "-o"]).arg(&output).arg(".").current_dir(folder))?;
    Ok(output)
}
