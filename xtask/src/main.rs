//! The project's chores: `cargo xtask <verb>`.

#![forbid(unsafe_code)]

mod arrow;
mod bench;
mod check;
mod error;
mod fuzz;
mod instructions;
mod layers;
mod rfc;
mod source;
mod testkit;
mod workspace;

use error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// What the words behind `cargo xtask` may be.
fn usage() -> String {
    let works = instructions::works(", ");
    format!(
        "\
usage: cargo xtask <verb>

  bench          processor time of linerate and of other stacks, by turns: see `bench --help`
  check          formatting, lints, documentation and layers: what a change must pass
  layers         the dependencies among our crates, against the arrow of the architecture
  explore        let random worlds live for so many minutes, or one of them again: see `explore --help`
  fuzz           let libFuzzer make up stories (needs a C++ compiler): see `fuzz --help`
  grid           measure goodput over loss anew, in virtual time, and keep it in docs/loss-grid.txt
  instructions   count instructions (needs valgrind) and compare them with docs/instructions.toml
  instructions --accept
                 keep the counts in docs/instructions.toml
  instructions --profile WORK
                 where a unit of a work spends them:
                 {works}
  rfc [--run]    each requirement of the RFCs in specs/ with its tests: do they exist, and pass?
  rfc --texts FOLDER
                 count the normative sentences of the RFCs anew, from their texts rfcNNNN.txt there"
    )
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error @ Error::Usage(_)) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--help" | "-h" | "help"] => {
            // A reader that has gone away is no failure.
            let _ = writeln!(io::stdout(), "{}", usage());
            return Ok(ExitCode::SUCCESS);
        }
        ["bench", ..] => return bench::run(&arguments[1..]),
        ["explore", ..] => return testkit::explore(&arguments[1..]),
        ["fuzz", ..] => return fuzz::run(&arguments[1..]),
        ["check"] => check::run(),
        ["layers"] => layers::run(),
        ["grid"] => testkit::write_grid(),
        ["instructions"] => instructions::compare(),
        ["instructions", "--accept"] => instructions::accept(),
        ["instructions", "--profile", work] => instructions::profile(work),
        ["rfc"] => rfc::run(false),
        ["rfc", "--run"] => rfc::run(true),
        ["rfc", "--texts", folder] => rfc::count(Path::new(folder)),
        _ => Err(Error::Usage(usage())),
    }?;
    Ok(ExitCode::SUCCESS)
}
