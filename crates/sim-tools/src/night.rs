//! The simulated measurement series of October 1988, called a night. Both columns of its throughput
//! table are simulated for every pair of socket buffers from 1 to 17 packets. Each pair gets four
//! transfers of 8 MB, in random order.

use crate::load::{ScenarioError, load, refuse_twice};
use crate::published::{COLUMNS, Column};
use crate::transfers::{Job, Made, make};
use linerate_evidence::{Design, PlannedRun, schedule};
use linerate_sim::{Blueprint, Scenario};
use serde::Serialize;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

/// Options of a simulated night.
#[derive(Clone, Debug)]
pub struct NightOptions {
    /// Number of transfers for each cell.
    pub repeat: NonZeroU32,
    /// Number of bytes of each transfer.
    pub bytes: NonZeroU64,
    /// Seed that determines the order of the runs, and the random numbers in each of them.
    pub seed: u64,
    /// Number of threads that run simulations.
    pub threads: NonZeroUsize,
    /// Whether to run only the cells whose send and receive buffer are equal.
    pub diagonal: bool,
    /// Changes of parameters, as KEY=VALUE. At least one of the two scenarios must have the
    /// parameter.
    pub set: Vec<String>,
}

/// The results of a simulated night.
#[derive(Debug)]
pub struct Night {
    /// Results of each column of the table of 1988.
    pub columns: Vec<ColumnOutcome>,
}

/// A column of the table of 1988 with its simulated cells.
#[derive(Debug)]
pub struct ColumnOutcome {
    /// The column of the table, with the published figures of its calibration cells.
    pub column: Column,
    /// The scenario that was run.
    pub scenario: Scenario,
    /// The simulated cells, by send buffer and receive buffer in packets.
    pub cells: BTreeMap<(u32, u32), CellOutcome>,
}

/// The results of one cell, combined over its transfers.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CellOutcome {
    /// Number of transfers that were simulated.
    pub transfers: u32,
    /// Mean throughput, in units of 1,024 bytes per second, from the sending to the receiving task.
    pub kilobytes: f64,
    /// Throughput of the slowest and of the fastest transfer, in units of 1,024 bytes per second.
    pub range: (f64, f64),
    /// Standard error of the mean; `None` for a single transfer.
    pub standard_error: Option<f64>,
    /// Sum of the squared deviations of the transfers' throughputs from their mean.
    #[serde(skip)]
    deviations: f64,
    /// Bit rate of all frames on the wire, from all senders, in bit/s.
    pub wire_bits: f64,
    /// Fraction of time in which the sender's processor was idle, from 0 to 1.
    pub sender_idle: f64,
    /// Fraction of time in which the receiver's processor was idle, from 0 to 1.
    pub receiver_idle: f64,
    /// Mean number of collisions per frame.
    pub collisions_per_frame: f64,
    /// Number of frames in all transfers.
    pub frames: u64,
    /// Number of retransmitted segments in all transfers.
    pub sent_again: u64,
}

impl Night {
    /// Runs a simulated night. Returns `None` if `is_stopped` has returned true. `tell` is called
    /// with the number of finished runs and the number of all runs.
    ///
    /// # Errors
    /// If a change of a parameter is invalid.
    pub fn make(
        options: &NightOptions,
        is_stopped: &(dyn Fn() -> bool + Sync),
        tell: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Option<Self>, ScenarioError> {
        let scenarios = scenarios(&options.set)?;
        let blueprints =
            scenarios.iter().map(Scenario::blueprint).collect::<Result<Vec<_>, _>>()?;
        let design = design(options);
        design.check()?;
        let planned: Vec<(usize, PlannedRun)> =
            schedule(&design).into_iter().flat_map(|run| [(0, run), (1, run)]).collect();
        let jobs: Vec<Job<'_>> =
            planned.iter().map(|(column, run)| job(&blueprints[*column], run, &design)).collect();
        let Some(made) = make(&jobs, options.threads, is_stopped, &|done| tell(done, jobs.len()))
        else {
            return Ok(None);
        };
        let mut columns: Vec<ColumnOutcome> = COLUMNS
            .into_iter()
            .zip(scenarios)
            .map(|(column, scenario)| ColumnOutcome { column, scenario, cells: BTreeMap::new() })
            .collect();
        for ((column, _), (job, made)) in planned.iter().zip(jobs.iter().zip(&made)) {
            columns[*column].cells.entry((job.send, job.receive)).or_default().add(made);
        }
        Ok(Some(Self { columns }))
    }

    /// Returns the number of frames on the wires of all simulations.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.columns.iter().flat_map(|column| column.cells.values()).map(|cell| cell.frames).sum()
    }

    /// Returns the number of transfers of all cells.
    #[must_use]
    pub fn transfers(&self) -> u32 {
        self.columns
            .iter()
            .flat_map(|column| column.cells.values())
            .map(|cell| cell.transfers)
            .sum()
    }
}

/// Loads the scenarios of both columns of the table of 1988, and applies the changes to both. A
/// scenario that lacks a changed parameter keeps its values, but one of the two must have the
/// parameter.
pub(crate) fn scenarios(changes: &[String]) -> Result<Vec<Scenario>, ScenarioError> {
    refuse_twice(changes)?;
    let mut scenarios = COLUMNS
        .iter()
        .map(|column| load(column.scenario, &[]))
        .collect::<Result<Vec<_>, ScenarioError>>()?;
    for change in changes {
        let results: Vec<_> = scenarios.iter_mut().map(|scenario| scenario.set(change)).collect();
        if !results.iter().any(Result::is_ok) {
            results.into_iter().next().unwrap_or(Ok(()))?;
        }
    }
    Ok(scenarios)
}

/// Returns the experimental design of 1988, modified by the options.
fn design(options: &NightOptions) -> Design {
    Design {
        repeat: options.repeat,
        bytes: options.bytes,
        seed: options.seed,
        diagonal: options.diagonal,
        ..Design::of_1988()
    }
}

fn job<'a>(blueprint: &'a Blueprint, run: &PlannedRun, design: &Design) -> Job<'a> {
    Job {
        blueprint,
        send: run.cell.send.packets().unwrap_or(1),
        receive: run.cell.receive.packets().unwrap_or(1),
        bytes: design.bytes.get(),
        seed: run.seed(design),
    }
}

impl ColumnOutcome {
    /// Returns the cell in which both buffers hold this many packets; `None` if it was not
    /// simulated.
    #[must_use]
    pub fn diagonal(&self, packets: u32) -> Option<&CellOutcome> {
        self.cells.get(&(packets, packets))
    }

    /// Returns the errors of the model: for each simulated calibration cell, its buffer size in
    /// packets, and the relative difference between its throughput and the published one.
    #[must_use]
    pub fn errors(&self) -> Vec<(u32, f64)> {
        let error = |&(packets, published): &(u32, f64)| {
            Some((packets, self.diagonal(packets)?.kilobytes / published - 1.0))
        };
        self.column.cells.iter().filter_map(error).collect()
    }
}

impl CellOutcome {
    fn add(&mut self, made: &Made) {
        let before = f64::from(self.transfers);
        let mean = |old: f64, new: f64| (old * before + new) / (before + 1.0);
        self.range = match self.transfers {
            0 => (made.kilobytes, made.kilobytes),
            _ => (self.range.0.min(made.kilobytes), self.range.1.max(made.kilobytes)),
        };
        let kilobytes = mean(self.kilobytes, made.kilobytes);
        self.deviations += (made.kilobytes - self.kilobytes) * (made.kilobytes - kilobytes);
        self.standard_error =
            (before > 0.0).then(|| (self.deviations / before / (before + 1.0)).sqrt());
        self.kilobytes = kilobytes;
        self.wire_bits = mean(self.wire_bits, made.wire_bits);
        self.sender_idle = mean(self.sender_idle, made.sender_idle);
        self.receiver_idle = mean(self.receiver_idle, made.receiver_idle);
        #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
        let met = made.collisions as f64 / made.frames.max(1) as f64;
        self.collisions_per_frame = mean(self.collisions_per_frame, met);
        self.frames += made.frames;
        self.sent_again += made.sent_again;
        self.transfers += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_means_standard_error_and_range_of_its_transfers() {
        let made = |kilobytes: f64| Made {
            kilobytes,
            wire_bits: kilobytes * 9.0,
            sender_idle: kilobytes / 2_000.0,
            receiver_idle: kilobytes / 4_000.0,
            collisions: 5,
            frames: if kilobytes > 1_000.0 { 10 } else { 100 },
            sent_again: 2,
            complete: true,
        };
        let mut cell = CellOutcome::default();
        cell.add(&made(990.0));
        assert_eq!((cell.kilobytes, cell.standard_error), (990.0, None));
        cell.add(&made(1_000.0));
        cell.add(&made(1_010.0));
        // Three transfers with a standard deviation of 10: the standard error is 10/√3.
        let error = cell.standard_error.unwrap();
        assert!(
            (cell.kilobytes, (error - 10.0 / 3.0_f64.sqrt()).abs() < 1e-9) == (1_000.0, true),
            "{cell:?}"
        );
        assert_eq!(cell.range, (990.0, 1_010.0));
        let means =
            [cell.wire_bits, cell.sender_idle, cell.receiver_idle, cell.collisions_per_frame];
        for (mean, expected) in means.into_iter().zip([9_000.0, 0.5, 0.25, 0.2]) {
            assert!((mean - expected).abs() < 1e-9, "{cell:?}");
        }
        assert_eq!((cell.transfers, cell.frames, cell.sent_again), (3, 210, 6));
        cell.add(&made(1_000.0));
        assert_eq!(cell.range, (990.0, 1_010.0), "the range does not depend on the last transfer");
    }

    fn options(threads: usize) -> NightOptions {
        NightOptions {
            repeat: NonZeroU32::MIN,
            bytes: NonZeroU64::new(100_000).unwrap(),
            seed: 1988,
            threads: NonZeroUsize::new(threads).unwrap(),
            diagonal: true,
            set: Vec::new(),
        }
    }

    fn made(options: &NightOptions) -> Night {
        Night::make(options, &|| false, &|_, _| ()).unwrap().unwrap()
    }

    #[test]
    fn a_night_has_both_columns_with_any_number_of_threads() {
        let (one, three) = (made(&options(1)), made(&options(3)));
        assert_eq!((one.transfers(), one.frames()), (34, three.frames()));
        let rates = |night: &Night| -> Vec<f64> {
            night
                .columns
                .iter()
                .flat_map(|column| column.cells.values().map(|cell| cell.kilobytes))
                .collect()
        };
        assert_eq!(rates(&one), rates(&three));
    }

    #[test]
    fn a_change_applies_to_columns_with_the_parameter_and_an_unknown_one_is_refused() {
        let slower =
            NightOptions { set: vec!["82586.transmit.start=1000".to_owned()], ..options(2) };
        let (before, after) = (made(&options(2)), made(&slower));
        let rate =
            |night: &Night, column: usize| night.columns[column].diagonal(8).unwrap().kilobytes;
        assert_eq!(rate(&before, 0), rate(&after, 0));
        assert!(rate(&before, 1) > rate(&after, 1));
        let unknown = NightOptions { set: vec!["82587.start=1".to_owned()], ..options(1) };
        assert!(Night::make(&unknown, &|| false, &|_, _| ()).is_err());
    }
}
