//! `cargo xtask bench`: linerate beside its peers. The program is a workspace of its own, because what
//! it is compared with is nothing that the crates may depend on.

use crate::error::Error;
use crate::workspace::{cargo, root};
use std::process::ExitCode;

/// Builds the program and runs it with these words.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    let manifest = root().join("peers/Cargo.toml");
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--manifest-path"]).arg(manifest);
    let status = command.arg("--").args(arguments).status();
    let status =
        status.map_err(|source| Error::Start { command: "cargo run".to_owned(), source })?;
    // It has said what was wrong: a usage (2), or a run that failed (1).
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}
