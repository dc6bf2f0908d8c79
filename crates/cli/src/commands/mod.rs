//! One file for each command.

pub(crate) mod doctor;
pub(crate) mod dump;
pub(crate) mod ping;
pub(crate) mod script;
pub(crate) mod sim;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod sweep;

use crate::args::Command;
use crate::interrupt;
use crate::output::Failure;

/// Does what was asked for. Each command gets its flags and the wish to stop.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    let interrupt = interrupt::on_signals()?;
    match command {
        Command::Sweep(args) => sweep::run(args, &interrupt),
        Command::Sink(args) => sink::run(args, &interrupt),
        Command::Source(args) => source::run(args, &interrupt),
        Command::Dump(args) => dump::run(args, &interrupt),
        Command::Ping(args) => ping::run(args, &interrupt),
        Command::Script(args) => script::run(args, &interrupt),
        Command::Sim(args) => sim::run(args, &interrupt),
        Command::Doctor(args) => doctor::run(args, &interrupt),
    }
}
