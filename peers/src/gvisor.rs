//! gVisor's TCP stack (netstack) as a contender. A Go program drives it and is compiled on demand.

use crate::build::{Build, finish};
use crate::child::Child;
use crate::contender::{Candidate, Missing};
use crate::work::Work;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const NAME: &str = "gvisor";
const REMEDY: &str = "install Go 1.26 or later, and let it reach its module proxy once";

/// Returns gVisor as a contender, if a Go compiler is installed.
pub fn candidate() -> Candidate {
    start().map(|child| Box::new(child) as _).map_err(|reason| Missing { name: NAME, reason })
}

fn start() -> Result<Child, String> {
    Child::start(NAME, Command::new(program()?), &[Work::Bulk, Work::PingPong, Work::Connect], 10)
}

/// Compiles the contender if its source has changed, and returns the path of the program.
///
/// # Errors
/// A message that says why the program cannot be compiled, with the remedy.
pub fn program() -> Result<PathBuf, String> {
    compile(".", NAME)
}

/// Compiles the minimal gateway if its source has changed, and returns the path of the program.
///
/// # Errors
/// A message that says why the program cannot be compiled, with the remedy.
pub fn gateway() -> Result<PathBuf, String> {
    compile("./gateway", "gvisor-gateway")
}

/// Compiles the Go program in the folder `package` of gVisor's module as a program called `name`.
fn compile(package: &str, name: &str) -> Result<PathBuf, String> {
    let Build { folder, output } = Build::of(NAME)?;
    let output = output.with_file_name(name);
    let mut compiler = Command::new("go");
    finish(compiler.args(["build", "-o"]).arg(&output).arg(package).current_dir(folder))
        .map_err(|reason| format!("{reason}; {REMEDY}"))?;
    Ok(output)
}

/// Returns the version of gVisor that the programs are compiled with.
pub fn version() -> String {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("gvisor/go.mod");
    let module = fs::read_to_string(module).unwrap_or_default();
    let mut lines =
        module.lines().filter_map(|line| line.trim().strip_prefix("gvisor.dev/gvisor "));
    lines.next().unwrap_or_default().to_owned()
}
