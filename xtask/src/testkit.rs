//! Tasks that run examples of other crates as separate programs. xtask itself must not depend on
//! the project's crates, which these examples use.

use crate::error::Error;
use crate::workspace::{cargo, root};
use std::fs;
use std::process::{Command, ExitCode, Stdio};

/// The file with the table of goodput for different loss rates.
const GRID: &str = "docs/loss-grid.txt";

/// `cargo xtask grid`: measures the table of goodput, and overwrites the recorded table, so that
/// the differences can be reviewed.
pub(crate) fn write_grid() -> Result<(), Error> {
    let mut command = example("loss_grid");
    let output = command.stderr(Stdio::inherit()).output();
    let output =
        output.map_err(|source| Error::Start { command: "cargo run".to_owned(), source })?;
    if !output.status.success() {
        return Err(Error::Failed { command: "cargo run --example loss_grid".to_owned() });
    }
    let path = root().join(GRID);
    fs::write(&path, output.stdout).map_err(|source| Error::Write { path, source })?;
    eprintln!("xtask: {GRID} is written; `git diff` shows what has changed");
    Ok(())
}

/// `cargo xtask explore`: runs random scenarios for some minutes, or repeats one scenario.
pub(crate) fn explore(arguments: &[String]) -> Result<ExitCode, Error> {
    let mut command = example("explore");
    command.arg("--release").arg("--").args(arguments);
    let status = command.status();
    let status =
        status.map_err(|source| Error::Start { command: "cargo run".to_owned(), source })?;
    // The exit code of the program is passed on: 2 for wrong usage, 1 for a failed scenario. The
    // program has already printed the reason.
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// `cargo xtask verdict`: tests diagnoses on paths whose limit is known, because the test has built
/// it in.
pub(crate) fn verdict(arguments: &[String]) -> Result<ExitCode, Error> {
    let run = |words: &[&str]| {
        let mut command = cargo();
        command.args(words).args(if words[0] == "run" { arguments } else { &[] });
        let status = command.status();
        status.map_err(|source| Error::Start { command: format!("cargo {}", words[0]), source })
    };
    let built = run(&["build", "--quiet", "--release", "--package", "linerate"])?;
    if !built.success() {
        return Err(Error::Failed { command: "cargo build".to_owned() });
    }
    let package = ["--package", "linerate", "--example", "verdict_matrix", "--"];
    let status = run(&[&["run", "--quiet", "--release"][..], &package].concat())?;
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
