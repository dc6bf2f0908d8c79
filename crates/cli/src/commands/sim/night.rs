//! `linerate sim night`: repeats Van Jacobson's series of 1988 in the simulator.

use crate::amounts::{count, seed, size, small_count};
use crate::output::{Failure, can_be_written, cannot_write, print, write_file};
use clap::Args;
use linerate_ends::Interrupt;
use linerate_link::MonotonicClock;
use linerate_measure::BenchError;
use linerate_sim_tools::{Night, NightOptions, night_json, night_text};
use linerate_units::Clock;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::thread;

/// The options of `linerate sim night`.
#[derive(Debug, Args)]
pub(crate) struct NightArgs {
    /// Number of transfers of each cell
    #[arg(long, value_name = "COUNT", value_parser = count, default_value = "4")]
    repeat: NonZeroU32,
    /// Number of bytes in each transfer
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "8MiB")]
    bytes: NonZeroU64,
    /// Simulate only the cells with two equal buffers
    #[arg(long)]
    diagonal: bool,
    /// The seed of the random order, and of all random numbers
    #[arg(long, value_name = "NUMBER", value_parser = seed, default_value = "1988")]
    seed: u64,
    /// Number of threads, each of which simulates one world at a time [default: the number of
    /// cores]
    #[arg(long, value_name = "COUNT", value_parser = small_count)]
    threads: Option<NonZeroU32>,
    /// Change a parameter; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Write every cell and every parameter to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Simulates the series, and prints the report.
pub(crate) fn run(args: &NightArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    can_be_written(args.json.as_deref(), cannot_write)?;
    let options = NightOptions {
        repeat: args.repeat,
        bytes: args.bytes,
        seed: args.seed,
        threads: threads(args.threads),
        diagonal: args.diagonal,
        set: args.set.clone(),
    };
    let began = MonotonicClock.now();
    let night =
        Night::make(&options, &|| interrupt.is_raised(), &|_, _| ()).map_err(BenchError::from)?;
    let night = night.ok_or_else(|| Failure::interrupted("interrupted"))?;
    let seconds = MonotonicClock.now().since(began).as_secs_f64();
    print(&night_text(&night, seconds))?;
    write_file(args.json.as_deref(), || format!("{:#}\n", night_json(&night)), cannot_write)
}

/// Returns the requested number of threads, or the number of cores if none is given.
pub(super) fn threads(asked: Option<NonZeroU32>) -> NonZeroUsize {
    let asked = asked.and_then(|count| NonZeroUsize::try_from(count).ok());
    asked.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}
