//! `linerate sim night`: the table of 1988.

use super::run::write;
use crate::amounts::{count, size};
use crate::output::{Failure, print};
use clap::Args;
use linerate_lab::simulation::{Night, NightOptions, night_json, night_text};
use linerate_lab::{BenchError, Interrupt};
use linerate_link::MonotonicClock;
use linerate_units::Clock;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::thread;

/// The flags of `linerate sim night`.
#[derive(Debug, Args)]
pub(crate) struct NightArgs {
    /// Transfers of each cell
    #[arg(long, value_name = "COUNT", value_parser = count, default_value = "4")]
    repeat: NonZeroU32,
    /// Bytes of each
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "8MiB")]
    bytes: NonZeroU64,
    /// Only the cells where both buffers are equal
    #[arg(long)]
    diagonal: bool,
    /// Decides the order, and whatever is drawn
    #[arg(long, value_name = "NUMBER", default_value_t = 1988)]
    seed: u64,
    /// Threads, each with a world of its own at a time [default: as many as there are cores]
    #[arg(long, value_name = "COUNT")]
    threads: Option<NonZeroUsize>,
    /// Change a parameter, as often as wanted
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Write every cell and every parameter to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Makes the night, and reports.
pub(crate) fn run(args: &NightArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let options = NightOptions {
        repeat: args.repeat,
        bytes: args.bytes,
        seed: args.seed,
        threads: threads(args.threads),
        diagonal: args.diagonal,
        set: args.set.clone(),
    };
    let began = MonotonicClock.now();
    let night = Night::make(&options, interrupt, &|_, _| ()).map_err(BenchError::from)?;
    let night = night.ok_or_else(|| Failure::interrupted("interrupted"))?;
    let seconds = MonotonicClock.now().since(began).as_secs_f64();
    print(&night_text(&night, seconds))?;
    write(args.json.as_deref(), || format!("{:#}\n", night_json(&night)))
}

/// As many as were asked for, or as there are cores.
pub(super) fn threads(asked: Option<NonZeroUsize>) -> NonZeroUsize {
    asked.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}
