//! Compiles the programs of contenders that are written in other languages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Paths for compiling a contender: the folder of its source, and its program.
pub struct Build {
    pub folder: PathBuf,
    pub output: PathBuf,
}

impl Build {
    /// Returns the paths of the contender with this name.
    ///
    /// # Errors
    /// A message if the folder for its program cannot be created.
    pub fn of(name: &str) -> Result<Self, String> {
        let peers = Path::new(env!("CARGO_MANIFEST_DIR"));
        let target = peers.join("target/peers");
        fs::create_dir_all(&target)
            .map_err(|error| format!("{} cannot be made: {error}", target.display()))?;
        Ok(Self { folder: peers.join(name), output: target.join(name) })
    }
}

/// Runs a compiler and waits for it.
///
/// # Errors
/// A message that it is not installed, or the first line of its errors.
pub fn finish(compiler: &mut Command) -> Result<(), String> {
    output(compiler).map(drop)
}

/// Runs a program, and returns its output.
///
/// # Errors
/// A message that it is not installed, or the first line of its errors.
pub fn program(name: &str, arguments: &[&str]) -> Result<String, String> {
    output(Command::new(name).args(arguments))
}

fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{name}` does not start: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{name}` failed: {}", complaint.lines().next().unwrap_or("without a word")))
}
