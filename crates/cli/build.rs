//! Passes the git commit and the compiler's version to the program, which stores them with each
//! sweep.

use std::path::Path;
use std::process::Command;

fn main() {
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = output(Command::new(compiler).arg("--version"));
    println!("cargo::rustc-env=LINERATE_RUSTC={}", version.as_deref().unwrap_or("unknown"));
    println!("cargo::rustc-env=LINERATE_COMMIT={}", commit().unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");
}

/// Returns the hash of the checked-out commit. A note follows if the files of the crates have
/// uncommitted changes. Returns `None` outside of a git checkout.
fn commit() -> Option<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let git = |words: &[&str]| output(Command::new("git").arg("-C").arg(crates).args(words));
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--", "."])?;
    // The commit and the note must be up to date, so Cargo must run this program again after every
    // commit and every edit. A commit changes Git's log of `HEAD`, and an edit changes the folder
    // of the crates.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    for watched in [crates.join(log), crates.to_owned()] {
        if watched.exists() {
            println!("cargo::rerun-if-changed={}", watched.display());
        }
    }
    Some(if changes.is_empty() { commit } else { format!("{commit}, with changes") })
}

/// Returns the standard output of a command, or `None` if the command fails.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
