//! A plan before it is validated.

use super::kind::{BenchKind, Direction, Family};
use super::seconds;
use linerate_ends::{OwnHost, Peer};
use linerate_evidence::{BufferList, Design};
use linerate_units::Duration;
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU32, NonZeroU64};

/// A plan before it is validated. Each field is valid by itself; [`Plan::new`](crate::Plan::new)
/// checks that the fields are consistent with each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// The engine that makes the runs.
    pub on: BenchKind,
    /// Name or file of the simulated scenario; `None` if the engine is not the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Changes of the scenario's parameters, each as `KEY=VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// Rate in baud of the serial line of [`BenchKind::Serial`]; `None` on all other engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baud: Option<NonZeroU32>,
    /// Are headers compressed on the serial line of [`BenchKind::Serial`] (RFC 1144)? `None` means
    /// yes on that engine. On all other engines, `None` is the only valid value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_compression: Option<bool>,
    /// Configuration of the host of [`BenchKind::Interface`]; `None` on all other engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<OwnHost>,
    /// Address of the machine that runs the sink; `None` if source and sink are on this machine.
    pub peer: Option<Peer>,
    /// Direction of the data on a TAP or TUN device, where one end is linerate's TCP and the other
    /// the kernel's. `None` selects transfers to the kernel. On engines without such a device,
    /// `None` is the only valid value.
    pub direction: Option<Direction>,
    /// IP version of the packets. On a TAP or TUN device, `None` selects IPv4. In a simulation,
    /// `None` selects the IP version of the scenario. On other engines, `None` is the only valid
    /// value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// Does linerate's link use offloads: GSO frames, and frames without checksums? On a link with
    /// offloads, `None` selects the default of that link. On other links, `None` is the only valid
    /// value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloads: Option<bool>,
    /// Sizes of the sender's socket buffer.
    pub send_buffers: BufferList,
    /// Sizes of the receiver's socket buffer.
    pub receive_buffers: BufferList,
    /// Is the plan limited to cells whose two buffers are equal?
    pub diagonal: bool,
    /// Number of runs of each cell.
    pub repeat: NonZeroU32,
    /// Number of bytes that a run transfers.
    pub bytes: NonZeroU64,
    /// Maximum duration of a run.
    #[serde(rename = "max_seconds", with = "seconds")]
    pub max_time: Duration,
    /// Seed of the random order of the runs, and of all random numbers that are used in the runs.
    pub seed: u64,
    /// Does the random order consist of blocks, each with one run of every cell in random order
    /// (randomised complete blocks)? Otherwise all runs of the sweep are shuffled together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blocks: bool,
    /// Number of runs from one baseline run to the next; `None` without a baseline. Baseline runs
    /// measure one cell repeatedly, to show changes of the machine's speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_every: Option<NonZeroU32>,
    /// Time budget of the sweep. The most informative runs are made first, until the budget is
    /// spent. `None` makes all runs.
    #[serde(
        default,
        rename = "budget_seconds",
        skip_serializing_if = "Option::is_none",
        with = "seconds::optional"
    )]
    pub budget: Option<Duration>,
    /// Size of each `write` call of the source, in bytes.
    pub write_size: NonZeroU32,
    /// Size of each `read` call of the sink, in bytes.
    pub read_size: NonZeroU32,
    /// Size of the largest IP packet in bytes.
    pub mtu: u16,
    /// Name of the sender's congestion control; `None` selects the engine's default.
    pub congestion: Option<String>,
    /// Name of the profile that configures linerate's TCP, such as `modern` or `bsd_tahoe`; `None`
    /// selects the default profile.
    pub profile: Option<String>,
    /// Impairments of the frames of linerate's host, such as `loss=1%,delay=10ms`; `None` for an
    /// unimpaired link.
    pub impair: Option<String>,
    /// Bit rate of the link in bits per second, for links whose driver reports none or a wrong one.
    /// `None` uses the rate that the driver reports.
    pub line_rate: Option<NonZeroU64>,
    /// Is the received data compared with the sent data?
    pub verify: bool,
}

/// Number of runs of each cell if source and sink are in this process, where a run takes
/// milliseconds.
const IN_PROCESS_RUNS: NonZeroU32 = NonZeroU32::new(32).unwrap();
/// Number of runs from one baseline run to the next, if source and sink are in this process.
const BASELINE_EVERY: NonZeroU32 = NonZeroU32::new(8).unwrap();
/// Minimum number of runs of a plan with a baseline. A shorter sweep has too few baseline runs to
/// show changes of the machine's speed.
const FEWEST_WITH_BASELINE: u64 = 48;

impl Draft {
    /// Returns the plan of Van Jacobson's experiment of 1988 on the engine `on`: every pair of
    /// buffers from 1 to 17 packets, with four runs of 8 MiB each, in random order.
    ///
    /// On [`BenchKind::Stack`] a run takes milliseconds. Each cell therefore has 32 runs, with
    /// baseline runs between them. On two shared cores this sweep takes one to two minutes. The
    /// medians of cells are then precise to 3 %, if the runs of a cell deviate from its median by
    /// up to 5 %. On all engines except the simulator, the order of runs consists of blocks with
    /// one run of each cell.
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
            // The maximum duration of a simulated run can be long, because virtual time passes
            // without cost.
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

    /// Removes the baseline if the plan has too few runs for it, or if it has a time budget. With a
    /// time budget, the order of runs depends on previous results, so baseline runs have no place
    /// in it.
    pub(super) fn drop_useless_baseline(&mut self) {
        let runs = self.design().cell_run_count();
        let has_order = self.budget.is_none();
        let is_useful = has_order && runs >= FEWEST_WITH_BASELINE;
        self.baseline_every = self.baseline_every.filter(|_| is_useful);
    }

    /// Returns the experimental design: the fields of the plan that do not depend on the engine.
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
