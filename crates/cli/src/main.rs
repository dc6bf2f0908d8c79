//! The `linerate` command: parses its arguments, and executes a command.

#![forbid(unsafe_code)]

mod amounts;
mod args;
mod commands;
mod interrupt;
mod output;
mod own_host;
mod result_files;
mod versions;

use std::process::ExitCode;

fn main() -> ExitCode {
    match args::parse(std::env::args_os()) {
        Ok(args::Parsed::Command(command)) => output::finish(commands::run(&command)),
        Ok(args::Parsed::Text(text)) => {
            output::finish(output::print(&text).map(|()| ExitCode::SUCCESS))
        }
        Err(failure) => output::finish(Err(failure)),
    }
}
