//! A plan before its validation.

use super::kind::{BenchKind, Direction, Family};
use super::seconds;
use linerate_ends::{OwnHost, Peer};
use linerate_evidence::{BufferList, Design};
use linerate_units::Duration;
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU32, NonZeroU64};

/// A plan before its validation. Each field is valid by itself; [`Plan::new`](crate::Plan::new)
/// checks that they fit together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// The engine.
    pub on: BenchKind,
    /// The simulated scenario: its name, or its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Changes of the scenario's parameters, as KEY=VALUE.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// The rate of the serial line in baud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baud: Option<NonZeroU32>,
    /// Are headers compressed on the serial line (RFC 1144)?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_compression: Option<bool>,
    /// linerate's host on an interface of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<OwnHost>,
    /// The machine at the other end, which runs a sink.
    pub peer: Option<Peer>,
    /// The direction of the data, if the ends differ (TAP, TUN).
    pub direction: Option<Direction>,
    /// The IP version of the packets (TAP, TUN).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// Does linerate's link use offloads: GSO frames, and frames without checksums?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloads: Option<bool>,
    /// The sender's socket buffers.
    pub send_buffers: BufferList,
    /// The receiver's socket buffers.
    pub receive_buffers: BufferList,
    /// Is the plan limited to cells with equal buffers?
    pub diagonal: bool,
    /// Number of runs of each cell.
    pub repeat: NonZeroU32,
    /// Bytes of a run.
    pub bytes: NonZeroU64,
    /// Maximum time of a run.
    #[serde(rename = "max_seconds", with = "seconds")]
    pub max_time: Duration,
    /// The seed of the order of the runs and of everything random in them.
    pub seed: u64,
    /// Are the runs in randomised complete blocks, and not all shuffled together?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blocks: bool,
    /// Number of runs between two runs of the baseline, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_every: Option<NonZeroU32>,
    /// Time in which the runs that tell the most are made; `None` if all are.
    #[serde(
        default,
        rename = "budget_seconds",
        skip_serializing_if = "Option::is_none",
        with = "seconds::optional"
    )]
    pub budget: Option<Duration>,
    /// Bytes of a write of the source.
    pub write_size: NonZeroU32,
    /// Bytes of a read of the sink.
    pub read_size: NonZeroU32,
    /// Size of the largest IP packet in bytes.
    pub mtu: u16,
    /// Congestion control of the sender; `None` selects the bench's default.
    pub congestion: Option<String>,
    /// The configuration of linerate's TCP (`modern`, `bsd_tahoe` …).
    pub profile: Option<String>,
    /// Impairments of the frames of linerate's host (`loss=1%,delay=10ms`).
    pub impair: Option<String>,
    /// The bit rate of the link in bits per second, if its driver reports none or a wrong one.
    pub line_rate: Option<NonZeroU64>,
    /// Is the received data compared with the sent data?
    pub verify: bool,
}

/// Runs of each cell in process.
const IN_PROCESS_RUNS: NonZeroU32 = NonZeroU32::new(16).unwrap();
/// Runs between two runs of the baseline, and fewest runs of a plan that has one: fewer do not
/// show the epochs of a machine.
const BASELINE_EVERY: NonZeroU32 = NonZeroU32::new(8).unwrap();
const FEWEST_WITH_BASELINE: u64 = 48;

impl Draft {
    /// Returns the experiment of 1988 on this bench: every pair of buffers from 1 to 17 packets,
    /// four runs of 8 MiB each, in random order. In process, where a run takes milliseconds, there
    /// are 16 runs of each cell: they determine it to 3 % on a shared machine, in less than a
    /// minute. 8 MiB take milliseconds there, a million times the resolution of the clock.
    /// In real time, each block has one run of each cell; in process, runs of the baseline
    /// are interleaved.
    ///
    /// # Panics
    /// Never: the constants are valid.
    #[must_use]
    pub fn of_1988(on: BenchKind) -> Self {
        let design = Design::of_1988();
        let is_real = on != BenchKind::Sim;
        Self {
            on,
            scenario: None,
            set: Vec::new(),
            baud: None,
            header_compression: None,
            host: None,
            peer: None,
            direction: None,
            family: None,
            offloads: None,
            send_buffers: design.send_buffers,
            receive_buffers: design.receive_buffers,
            diagonal: design.diagonal,
            repeat: if on == BenchKind::Stack { IN_PROCESS_RUNS } else { design.repeat },
            bytes: design.bytes,
            // A simulated run takes no real time, so it does not need a short limit.
            max_time: if is_real { design.max_time } else { Duration::from_secs(100_000) },
            seed: design.seed,
            blocks: is_real,
            baseline_every: (on == BenchKind::Stack).then_some(BASELINE_EVERY),
            budget: None,
            write_size: const { NonZeroU32::new(64 << 10).unwrap() },
            read_size: const { NonZeroU32::new(64 << 10).unwrap() },
            mtu: 1_500,
            congestion: None,
            profile: None,
            impair: None,
            line_rate: None,
            verify: false,
        }
    }

    /// Removes the baseline from a plan that is too small for it, or whose order depends on its
    /// results.
    pub(super) fn drop_useless_baseline(&mut self) {
        let runs = self.design().cell_run_count();
        let has_order = self.budget.is_none();
        let is_useful = has_order && runs >= FEWEST_WITH_BASELINE;
        self.baseline_every = self.baseline_every.filter(|_| is_useful);
    }

    /// Returns the part of the plan that does not depend on the engine.
    #[must_use]
    pub fn design(&self) -> Design {
        Design {
            send_buffers: self.send_buffers.clone(),
            receive_buffers: self.receive_buffers.clone(),
            diagonal: self.diagonal,
            repeat: self.repeat,
            bytes: self.bytes,
            max_time: self.max_time,
            seed: self.seed,
            blocks: self.blocks,
            baseline_every: self.baseline_every,
            budget: self.budget,
        }
    }
}
