//! The circumstances of a benchmark run that affect its results: date, commit, machine and
//! versions.

use serde::Serialize;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The circumstances of a benchmark run that affect its results. A fact that cannot be determined
/// is `unknown`.
#[derive(Debug, Serialize)]
pub struct Facts {
    /// Day of the run in UTC, such as `2026-11-21`.
    pub date: String,
    /// Abbreviated commit of the repository, followed by `+` if a file differs from the commit.
    pub commit: String,
    /// Model name and model number of the processor.
    pub processor: String,
    /// Release of the Linux kernel.
    pub kernel: String,
    /// Whether the runs were few and short (`--quick`).
    pub quick: bool,
    /// Name and version of each contender.
    pub contenders: Vec<(&'static str, String)>,
}

impl Facts {
    /// Collects the circumstances of this run from Git, `/proc` and the arguments.
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

/// Returns the release of the Linux kernel; `unknown` if it cannot be read.
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

/// Runs a program in the folder of this package. Returns its output without surrounding space;
/// `None` if the program fails.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(program).args(arguments).current_dir(folder).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
