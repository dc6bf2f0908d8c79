//! `cargo xtask check`: runs all checks that a change must pass, except for tests.

use crate::api;
use crate::error::Error;
use crate::layers;
use crate::words;
use crate::workspace::cargo;
use std::process::Command;

type Step = fn() -> Result<(), Error>;

/// Runs all steps, even after a failure, so that one run reports all problems.
pub(crate) fn run() -> Result<(), Error> {
    let steps: [(&'static str, Step); 6] = [
        ("fmt", fmt),
        ("layers", layers::run),
        ("words", words::run),
        ("api", api::compare),
        ("clippy", clippy),
        ("doc", doc),
    ];
    let mut failed = Vec::new();
    for (name, step) in steps {
        eprintln!("xtask: {name}");
        if let Err(error) = step() {
            eprintln!("xtask: {name}: {error}");
            failed.push(name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Error::Check { steps: failed }) }
}

fn fmt() -> Result<(), Error> {
    spawn("cargo fmt", cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<(), Error> {
    let what = ["--quiet", "--workspace", "--all-targets", "--keep-going"];
    spawn("cargo clippy", cargo().arg("clippy").args(what).args(["--", "-D", "warnings"]))
}

fn doc() -> Result<(), Error> {
    let arguments = ["doc", "--quiet", "--workspace", "--no-deps"];
    spawn("cargo doc", cargo().args(arguments).env("RUSTDOCFLAGS", "-D warnings"))
}

fn spawn(name: &str, command: &mut Command) -> Result<(), Error> {
    let status =
        command.status().map_err(|source| Error::Start { command: name.to_owned(), source })?;
    if status.success() { Ok(()) } else { Err(Error::Failed { command: name.to_owned() }) }
}
