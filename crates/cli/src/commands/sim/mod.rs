//! `linerate sim`: runs scenarios in virtual time.

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

/// The options of `linerate sim`.
#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    #[command(subcommand)]
    command: SimCommand,
}

/// The subcommands of `linerate sim`.
#[derive(Debug, Subcommand)]
enum SimCommand {
    /// List the scenarios with their questions.
    List,
    /// Show every parameter of a scenario: value, unit, physical range, source.
    Show(ShowArgs),
    /// Run a scenario once, and report the activity of each part.
    Run(RunArgs),
    /// Repeat Van Jacobson's series of 1988 with both machines, and compare it with his table.
    Night(NightArgs),
    /// Remove one cause after the other from the model, and report the effect on both machines.
    Controls(ControlsArgs),
}

/// Executes the subcommand.
pub(crate) fn run(args: &SimArgs) -> Result<(), Failure> {
    match &args.command {
        SimCommand::List => show::list(),
        SimCommand::Show(args) => show::run(args),
        // `sim run` has no partial result to report after an interrupt. It therefore has no signal
        // handler, so that Ctrl-C ends the process at once.
        SimCommand::Run(args) => run::run(args),
        SimCommand::Night(args) => night::run(args, &on_signals()?),
        SimCommand::Controls(args) => controls::run(args, &on_signals()?),
    }
}
