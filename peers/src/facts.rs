//! The circumstances of a run that affect its figures: date, commit, machine and versions.

use serde::Serialize;
use std::fs;
use std::path::Path;
use std::process::Command;

#[derive(Debug, Serialize)]
pub struct Facts {
    /// Day of the run, as `2026-11-21`.
    pub date: String,
    /// Commit of the repository, followed by `+` if files differ from it.
    pub commit: String,
    pub processor: String,
    pub kernel: String,
    /// Whether the runs were short (`--quick`).
    pub quick: bool,
    /// The contenders and their versions.
    pub contenders: Vec<(&'static str, String)>,
}

impl Facts {
    pub fn gather(quick: bool, contenders: Vec<(&'static str, String)>) -> Self {
        let commit = output("git", &["describe", "--always", "--dirty=+", "--exclude=*"]);
        Self {
            date: output("date", &["--utc", "+%Y-%m-%d"]).unwrap_or_else(unknown),
            commit: commit.unwrap_or_else(unknown),
            processor: processor().unwrap_or_else(unknown),
            kernel: kernel(),
            quick,
            contenders,
        }
    }
}

/// Returns the release of the kernel.
pub fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease");
    release.map_or_else(|_| unknown(), |release| release.trim().to_owned())
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let model = text.lines().find(|line| line.starts_with("model name"))?.split_once(':')?.1.trim();
    let level = text.lines().find(|line| line.starts_with("model\t"))?.split_once(':')?.1.trim();
    Some(format!("{model}, model {level}"))
}

/// Runs a program in the project's folder, and returns its output.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(program).args(arguments).current_dir(folder).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
