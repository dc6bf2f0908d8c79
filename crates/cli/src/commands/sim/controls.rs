//! `linerate sim controls`: finds causes of the results of 1988. The simulation of that year's
//! machines is repeated, each time with one property of the model removed or changed. A property
//! with a large effect on throughput is a cause.

use super::night::threads;
use crate::amounts::{size, small_count};
use crate::output::{Failure, print};
use clap::Args;
use linerate_ends::Interrupt;
use linerate_measure::BenchError;
use linerate_sim_tools::{ControlOutcome, controls_text};
use std::num::{NonZeroU32, NonZeroU64};

/// The options of `linerate sim controls`.
#[derive(Debug, Args)]
pub(crate) struct ControlsArgs {
    /// Number of transfers of each cell
    #[arg(long, value_name = "COUNT", value_parser = small_count, default_value = "4")]
    repeat: NonZeroU32,
    /// Number of bytes in each transfer
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "8MiB")]
    bytes: NonZeroU64,
    /// Number of threads, each of which simulates one world at a time [default: the number of
    /// cores]
    #[arg(long, value_name = "COUNT", value_parser = small_count)]
    threads: Option<NonZeroU32>,
}

/// Runs the simulations, and prints the report.
pub(crate) fn run(args: &ControlsArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let outcomes = ControlOutcome::make_all(
        args.repeat.get(),
        args.bytes.get(),
        threads(args.threads),
        &|| interrupt.is_raised(),
    );
    let outcomes = outcomes.map_err(BenchError::from)?;
    let outcomes = outcomes.ok_or_else(|| Failure::interrupted("interrupted"))?;
    print(&controls_text(&outcomes))
}
