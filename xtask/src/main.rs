//! The development tasks of the project: `cargo xtask <verb>`.

#![forbid(unsafe_code)]

mod api;
mod bench;
mod check;
mod chromium;
mod error;
mod fuzz;
mod instructions;
mod layers;
mod page;
mod pictures;
mod rfc;
mod testkit;
mod words;
mod workspace;

use error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// Returns the usage of all tasks.
fn usage() -> String {
    let lines =
        instructions::workloads().chunks(6).map(|names| names.join(", ")).collect::<Vec<_>>();
    let workloads = lines.join(",\n                 ");
    format!(
        "\
usage: cargo xtask <verb>

  api [--accept] compares the public items of the crates for applications with docs/api/ (or
                 updates the listings), and finds types without an example
  bench          measures the processor time of linerate and of other stacks: see `bench --help`
  check          checks formatting, lints, documentation, layers, words and interfaces, as for every
                 change
  layers         checks the dependencies among our crates against the architecture
  explore        runs random scenarios under all invariants: see `explore --help`
  fuzz           fuzzes with libFuzzer (needs a C++ compiler): see `fuzz --help`
  grid           measures goodput over loss in virtual time, and updates docs/loss-grid.txt
  instructions   counts instructions (needs valgrind), and compares with docs/instructions.toml
  instructions --accept
                 counts instructions, and updates docs/instructions.toml
  instructions --profile WORKLOAD
                 prints the functions that execute the instructions of a unit of
                 {workloads}
  page FILE      checks a page of `linerate report --html` in headless Chromium, at three widths
                 and in both colour schemes
  pictures [DIR] draws the pictures of the README (needs Chromium), from a new sweep or from DIR
  rfc [--run]    checks that the tests that specs/ names for each requirement exist (and pass)
  rfc --texts FOLDER
                 compares specs/ with the normative sentences of the texts rfcNNNN.txt
  verdict        plants limits, asks `linerate why` for them, and prints what it named: see
                 `verdict --help`
  words          checks the language: retired words, comments, widths, commit subjects
  words PATH...  checks the language of these files and folders only"
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
            // Printing the usage fails if the output is a closed pipe, such as `| head`. This is no
            // error.
            let _ = writeln!(io::stdout(), "{}", usage());
            return Ok(ExitCode::SUCCESS);
        }
        ["bench", ..] => return bench::run(&arguments[1..]),
        ["explore", ..] => return testkit::explore(&arguments[1..]),
        ["fuzz", ..] => return fuzz::run(&arguments[1..]),
        ["verdict", ..] => return testkit::verdict(&arguments[1..]),
        ["api"] => api::compare(),
        ["api", "--accept"] => api::accept(),
        ["check"] => check::run(),
        ["layers"] => layers::run(),
        ["grid"] => testkit::write_grid(),
        ["instructions"] => instructions::compare(),
        ["instructions", "--accept"] => instructions::accept(),
        ["instructions", "--profile", workload] => instructions::profile(workload),
        ["page", file] => page::check(Path::new(file)),
        ["pictures"] => pictures::draw(None),
        ["pictures", sweep] => pictures::draw(Some(sweep)),
        ["rfc"] => rfc::run(false),
        ["rfc", "--run"] => rfc::run(true),
        ["rfc", "--texts", folder] => rfc::count(Path::new(folder)),
        ["words"] => words::run(),
        ["words", ..] if !arguments[1].starts_with('-') => words::run_on(&arguments[1..]),
        _ => Err(Error::Usage(usage())),
    }?;
    Ok(ExitCode::SUCCESS)
}
