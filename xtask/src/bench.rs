//! `cargo xtask bench`: compares linerate with other stacks. The benchmark is a separate workspace,
//! because the crates must not depend on the other stacks.

use crate::error::Error;
use crate::workspace::{cargo, root};
use std::process::ExitCode;

/// Builds the benchmark, and runs it with these arguments.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    let manifest = root().join("peers/Cargo.toml");
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--manifest-path"]).arg(manifest);
    let status = command.arg("--").args(arguments).status();
    let status =
        status.map_err(|source| Error::Start { command: "cargo run".to_owned(), source })?;
    // The exit code of the benchmark is passed on: 2 for wrong usage, 1 for a failed run. The
    // benchmark has already printed the reason.
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}
