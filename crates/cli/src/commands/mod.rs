//! The commands, one per file.

pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod dump;
pub(crate) mod gateway;
pub(crate) mod ping;
pub(crate) mod report;
pub(crate) mod script;
pub(crate) mod sim;
pub(crate) mod sink;
mod sink_metrics;
pub(crate) mod source;
pub(crate) mod sweep;
mod tool_host;
pub(crate) mod trace;
pub(crate) mod why;

use crate::args::Command;
use crate::interrupt::on_signals;
use crate::output::Failure;
use std::process::ExitCode;

/// Executes a command. Commands that finish in an orderly way after Ctrl-C get a flag that the
/// signal sets.
pub(crate) fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        // The gateway handles signals itself, and returns the exit code of the user's program.
        Command::Gateway(args) => return gateway::run(args),
        Command::GatewayInside(args) => gateway::run_inside(args),
        Command::Sweep(args) => sweep::run(args, &on_signals()?),
        Command::Why(args) => why::run(args, &on_signals()?),
        Command::Report(args) => report::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Sink(args) => sink::run(args, &on_signals()?),
        Command::Source(args) => source::run(args, &on_signals()?),
        Command::Dump(args) => dump::run(args, &on_signals()?),
        Command::Ping(args) => ping::run(args, &on_signals()?),
        Command::Trace(args) => trace::run(args, &on_signals()?),
        Command::Script(args) => script::run(args, &on_signals()?),
        Command::Sim(args) => sim::run(args),
        Command::Doctor(args) => doctor::run(args, &on_signals()?),
    }
    .map(|()| ExitCode::SUCCESS)
}
