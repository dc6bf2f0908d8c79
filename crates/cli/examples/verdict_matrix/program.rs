//! The program `linerate`, which diagnoses the paths of the plants and receives their data.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Duration of one diagnosis, in seconds.
pub(crate) const SECONDS: &str = "30";

/// Runs `linerate why` with these arguments, which are separated by spaces. Returns the limit that
/// the command writes to the file `json`.
pub(crate) fn ask(words: &str, json: &Path) -> Result<String, Box<dyn Error>> {
    let mut command = Command::new(program()?);
    command
        .arg("why")
        .args(words.split_whitespace())
        .arg("--json")
        .arg(json)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = command.status()?;
    if !status.success() {
        return Err(format!("linerate why {words} failed: {status}").into());
    }
    let verdict: serde_json::Value = serde_json::from_slice(&std::fs::read(json)?)?;
    Ok(verdict["limit"].as_str().unwrap_or("nothing").to_owned())
}

/// Returns the path of the `linerate` binary. Cargo puts it into the parent folder of the folder
/// with this example.
fn program() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent).unwrap_or_else(|| Path::new("."));
    Ok(folder.join("linerate"))
}

/// A child process that is killed when this value is dropped.
pub(crate) struct Ended(pub(crate) Child);

impl Ended {
    /// Starts `linerate sink` with these additional arguments, and waits until it listens.
    pub(crate) fn sink(words: &str) -> io::Result<Self> {
        let mut command = Command::new(program()?);
        command.args(["sink", "--quiet"]).args(words.split_whitespace());
        let mut sink = Self(command.stdout(Stdio::piped()).spawn()?);
        let stdout = sink.0.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        io::BufRead::read_line(&mut io::BufReader::new(stdout), &mut String::new())?;
        Ok(sink)
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
