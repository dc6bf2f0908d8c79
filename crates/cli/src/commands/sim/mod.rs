//! `linerate sim`: scenarios in virtual time.

mod controls;
mod night;
mod run;
mod show;

use crate::interrupt::on_signals;
use crate::output::Failure;
use clap::{Args, Subcommand};
use controls::ControlsArgs;
use night::NightArgs;
use run::RunArgs;
use show::ShowArgs;

/// The flags of `linerate sim`.
#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    #[command(subcommand)]
    command: SimCommand,
}

/// What can be done with scenarios.
#[derive(Debug, Subcommand)]
enum SimCommand {
    /// List the scenarios, each with its question.
    List,
    /// Show every parameter of a scenario: value, unit, physical range, source.
    Show(ShowArgs),
    /// Run a scenario once, and say what every part of it did.
    Run(RunArgs),
    /// Repeat the night of 1988, both columns, and set it beside what was published.
    Night(NightArgs),
    /// Take one cause after the other away, and say what that does to both columns.
    Controls(ControlsArgs),
}

/// Does what was asked for.
pub(crate) fn run(args: &SimArgs) -> Result<(), Failure> {
    match &args.command {
        SimCommand::List => show::list(),
        SimCommand::Show(args) => show::run(args),
        // One world has nothing to put in order: Ctrl-C ends it at once.
        SimCommand::Run(args) => run::run(args),
        SimCommand::Night(args) => night::run(args, &on_signals()?),
        SimCommand::Controls(args) => controls::run(args, &on_signals()?),
    }
}
