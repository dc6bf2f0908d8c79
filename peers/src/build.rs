//! Compilation of contenders that are programs in other languages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The paths for the compilation of a contender.
pub struct Build {
    /// Folder that contains the contender's source.
    pub folder: PathBuf,
    /// Path of the compiled program.
    pub output: PathBuf,
}

impl Build {
    /// Returns the paths for the contender called `name`, and creates the folder for its program.
    ///
    /// # Errors
    /// A message that the folder cannot be created.
    pub fn of(name: &str) -> Result<Self, String> {
        let peers = Path::new(env!("CARGO_MANIFEST_DIR"));
        let target = peers.join("target/peers");
        fs::create_dir_all(&target)
            .map_err(|error| format!("{} cannot be made: {error}", target.display()))?;
        Ok(Self { folder: peers.join(name), output: target.join(name) })
    }
}

/// Runs a compiler and waits until it has ended.
///
/// # Errors
/// A message that the compiler is not installed, or the first line that it printed to standard
/// error.
pub fn finish(compiler: &mut Command) -> Result<(), String> {
    output(compiler).map(drop)
}

/// Runs the program `name` and returns its standard output.
///
/// # Errors
/// A message that the program is not installed, or the first line that it printed to standard
/// error.
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
