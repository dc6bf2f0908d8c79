//! `linerate script`: packet scripts, run and compared.

mod against;
mod compare;
mod head;
mod record;
mod run;
mod summary;

use crate::output::Failure;
use clap::{Args, Subcommand};
use linerate_ends::Interrupt;

/// What `linerate script` can do.
#[derive(Debug, Args)]
pub(crate) struct ScriptArgs {
    #[command(subcommand)]
    command: ScriptCommand,
}

#[derive(Debug, Subcommand)]
enum ScriptCommand {
    /// Run scripts, and say where the host leaves them.
    Run(run::RunArgs),
    /// Run scripts against linerate's host and against the kernel, and say who differs, and where.
    Compare(compare::CompareArgs),
}

/// Does it.
pub(crate) fn run(args: &ScriptArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    match &args.command {
        ScriptCommand::Run(args) => run::run(args, interrupt),
        ScriptCommand::Compare(args) => compare::run(args, interrupt),
    }
}
