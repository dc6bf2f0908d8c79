//! The command line: the commands, and error messages for invalid input.

use crate::commands::compare::CompareArgs;
use crate::commands::doctor::DoctorArgs;
use crate::commands::dump::DumpArgs;
use crate::commands::gateway::{GatewayArgs, InsideArgs};
use crate::commands::ping::PingArgs;
use crate::commands::report::ReportArgs;
use crate::commands::script::ScriptArgs;
use crate::commands::sim::SimArgs;
use crate::commands::sink::SinkArgs;
use crate::commands::source::SourceArgs;
use crate::commands::sweep::SweepArgs;
use crate::commands::trace::TraceArgs;
use crate::commands::why::WhyArgs;
use crate::output::Failure;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;

/// TCP at line rate in user space, and the experiment that shows what limits it.
#[derive(Debug, Parser)]
#[command(name = "linerate", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The commands of `linerate`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure the throughput for every pair of send and receive buffers, in random order.
    Sweep(Box<SweepArgs>),
    /// Name what limits a path, and prove it: the cause, its evidence and one piece of advice.
    Why(Box<WhyArgs>),
    /// Report a sweep from its folder, finished or not: text, HTML, SVG, CSV, JSON.
    Report(ReportArgs),
    /// Compare two sweeps: what changed, how certain that is, and what else differs.
    Compare(CompareArgs),
    /// Receive and discard data of any peer; the far end of a sweep to another machine.
    Sink(SinkArgs),
    /// Send data as fast as it is accepted, to a sink or to every peer that connects.
    Source(SourceArgs),
    /// Print a capture file, one line per packet.
    Dump(DumpArgs),
    /// Send echo requests from linerate's own host, on any link.
    Ping(PingArgs),
    /// Show the routers on the way to a host, from linerate's own host.
    Trace(TraceArgs),
    /// Run packet scripts, in packetdrill's language, against linerate's host in virtual time.
    Script(ScriptArgs),
    /// Run scenarios in virtual time: machines, NICs and cables of 1988 and of today.
    Sim(SimArgs),
    /// Relay the flows of a namespace or virtual machine over the kernel's sockets, unprivileged.
    Gateway(Box<GatewayArgs>),
    /// Open the device of a gateway inside a namespace.
    #[command(hide = true)]
    GatewayInside(Box<InsideArgs>),
    /// Examine what this machine can do, the consequences for each command, and remedies.
    Doctor(DoctorArgs),
}

/// The result of parsing a command line.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// A command to execute.
    Command(Command),
    /// The help or version text to print.
    Text(String),
}

/// Parses the command line. The error is a single line that names the mistake and the remedy.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Parsed, Failure> {
    let words: Vec<OsString> = words.into_iter().collect();
    let command = numbers_may_be_negative(Cli::command());
    let name = command_of(&command, &words);
    match command.try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => Ok(Parsed::Command(cli.command)),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                Ok(Parsed::Text(error.render().to_string()))
            }
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
                Err(Failure::input(format!("no command was given: see `{name} --help`")))
            }
            _ => Err(Failure::input(one_line(&error, &name))),
        },
    }
}

/// Allows negative numbers as values of options. Without this setting, clap would report `-1` as an
/// unknown flag. With it, the error says that the number is invalid.
fn numbers_may_be_negative(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let takes_a_value = arg.get_long().is_some() && arg.get_action().takes_values();
        if takes_a_value { arg.allow_negative_numbers(true) } else { arg }
    });
    command.mut_subcommands(numbers_may_be_negative)
}

/// Shortens clap's error message to one line that contains the error and the remedy.
fn one_line(error: &clap::Error, command: &str) -> String {
    let text = error.render().to_string();
    let paragraph = text.split("\n\n").next().unwrap_or(&text);
    let message = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    match suggestion(error) {
        Some(suggestion) => format!("{message}: did you mean `{suggestion}`?"),
        None if error.kind() == ErrorKind::ValueValidation => message.to_owned(),
        None => format!("{message}: see `{command} --help`"),
    }
}

/// Returns the option, value or command that clap suggests in place of a misspelt one; `None` if it
/// suggests none.
fn suggestion(error: &clap::Error) -> Option<String> {
    let kinds =
        [ContextKind::SuggestedArg, ContextKind::SuggestedValue, ContextKind::SuggestedSubcommand];
    kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(word) => Some(word.clone()),
        ContextValue::Strings(words) => words.first().cloned(),
        _ => None,
    })
}

/// Returns the full name of the command that the command line `words` calls, such as
/// `linerate sweep`. Returns `linerate` if `words` name no command.
fn command_of(command: &clap::Command, words: &[OsString]) -> String {
    let mut named = vec![command];
    for word in words.iter().skip(1) {
        let Some(next) = named.last().and_then(|last| last.find_subcommand(word)) else { break };
        named.push(next);
    }
    named.iter().map(|command| command.get_name()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(words: &[&str]) -> String {
        parse(words.iter().map(OsString::from)).unwrap_err().to_string()
    }

    #[test]
    fn the_commands_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_error_is_one_line() {
        for (words, expected_text) in [
            (&["linerate"][..], "--help"),
            (&["linerate", "swep"], "did you mean `sweep`?"),
            (&["linerate", "sweep", "--reciv-buffers", "1"], "did you mean `--receive-buffers`?"),
            (&["linerate", "sweep", "--zzz"], "see `linerate sweep --help`"),
            (&["linerate", "sweep", "--send-buffers", "9..1"], "write the smaller end first"),
            (&["linerate", "sweep", "--on", "moon"], "stack, tap, tun, kernel"),
            (&["linerate", "sweep", "--bytes"], "--bytes <SIZE>"),
            (&["linerate", "sweep", "--bytes", "-1"], "`-1` is not an amount of bytes"),
            (&["linerate", "sweep", "--seed", "-1"], "write a whole number from 0 to"),
            (&["linerate", "sweep", "-1"], "unexpected argument '-1'"),
            (&["linerate", "sim"], "see `linerate sim --help`"),
            (&["linerate", "ping"], "<HOST>: see `linerate ping --help`"),
            (&["linerate", "source", "--listen", "5", "--verify"], "see `linerate source --help`"),
            (&["linerate", "sink", "--listen"], "see `linerate sink --help`"),
            (
                &["linerate", "script", "run", "x", "--against", "moon"],
                "see `linerate script run --help`",
            ),
        ] {
            let line = refused(words);
            assert!(line.contains(expected_text) && !line.contains('\n'), "{words:?}: {line}");
        }
    }

    /// Clap wraps the texts below the options at the terminal's width. A manual line break in such
    /// a text would leave a short line in the middle of a paragraph.
    #[test]
    fn texts_below_the_options_have_no_manual_line_breaks() {
        fn look_at(command: &clap::Command) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for paragraph in text.split("\n\n") {
                let mut lines = paragraph.lines();
                let is_list = lines.next() == Some("Examples:");
                for line in lines {
                    assert!(is_list && line.starts_with("  "), "{}: {line}", command.get_name());
                    assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
                }
            }
            command.get_subcommands().for_each(look_at);
        }
        look_at(&Cli::command());
    }
}
