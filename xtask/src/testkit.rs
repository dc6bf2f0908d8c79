//! Programs of the test kit that are chores: they need our crates, which this program does not use.

use crate::error::Error;
use crate::workspace::{cargo, root};
use std::fs;
use std::process::{Command, ExitCode, Stdio};

/// Where the grid of goodput over loss is kept.
const GRID: &str = "docs/loss-grid.txt";

/// `cargo xtask grid`: measures the grid and keeps it, to be reviewed as a difference.
pub(crate) fn write_grid() -> Result<(), Error> {
    let mut command = example("loss_grid");
    let output = command.stderr(Stdio::inherit()).output();
    let output =
        output.map_err(|source| Error::Start { command: "cargo run".to_owned(), source })?;
    if !output.status.success() {
        return Err(Error::Failed { command: "cargo run --example loss_grid".to_owned() });
    }
    let path = root().join(GRID);
    fs::write(&path, output.stdout).map_err(|source| Error::Keep { path, source })?;
    eprintln!("xtask: {GRID} is written; `git diff` shows what has changed");
    Ok(())
}

/// `cargo xtask explore`: random worlds for so many minutes, or one of them again.
pub(crate) fn explore(arguments: &[String]) -> Result<ExitCode, Error> {
    let mut command = example("explore");
    command.arg("--release").arg("--").args(arguments);
    let status = command.status();
    let status =
        status.map_err(|source| Error::Start { command: "cargo run".to_owned(), source })?;
    // It has said what was wrong: a usage (2), or a world that failed (1).
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

fn example(name: &str) -> Command {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "linerate-testkit", "--example", name]);
    command
}
