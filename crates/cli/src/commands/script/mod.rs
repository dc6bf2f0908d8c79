//! `linerate script`: runs and compares packet scripts.

mod against;
mod compare;
mod family;
mod head;
mod record;
mod run;
mod summary;

use crate::output::Failure;
use clap::{Args, Subcommand};
use linerate_ends::Interrupt;

/// The subcommands of `linerate script`.
#[derive(Debug, Args)]
pub(crate) struct ScriptArgs {
    #[command(subcommand)]
    command: ScriptCommand,
}

#[derive(Debug, Subcommand)]
enum ScriptCommand {
    /// Run scripts, and report where the host differs from them.
    Run(run::RunArgs),
    /// Run scripts against linerate's host and against the kernel, and report where they differ.
    Compare(compare::CompareArgs),
}

/// Executes the subcommand.
pub(crate) fn run(args: &ScriptArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    match &args.command {
        ScriptCommand::Run(args) => run::run(args, interrupt),
        ScriptCommand::Compare(args) => compare::run(args, interrupt),
    }
}
