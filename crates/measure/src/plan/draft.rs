//! A plan as somebody asks for it.

use super::kind::{BenchKind, Direction};
use super::seconds;
use linerate_ends::{OwnHost, Peer};
use linerate_evidence::{BufferList, Design};
use linerate_units::Duration;
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU32, NonZeroU64};

/// A plan as somebody asks for it. Each field is right by itself; [`Plan::new`](crate::Plan::new)
/// checks that they fit together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// What carries the bytes.
    pub on: BenchKind,
    /// The scenario that is simulated: its name, or the file that it stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Changes of the scenario's parameters, as KEY=VALUE.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// linerate's host on an interface of this machine, and the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<OwnHost>,
    /// The machine at the other end, where a sink runs.
    pub peer: Option<Peer>,
    /// Which way the bytes go; only across TAP do the ends differ.
    pub direction: Option<Direction>,
    /// Whether linerate's link takes super-frames, and frames without checksums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloads: Option<bool>,
    /// The sender's socket buffers.
    pub send_buffers: BufferList,
    /// The receiver's socket buffers.
    pub receive_buffers: BufferList,
    /// Only the cells where both buffers are equal?
    pub diagonal: bool,
    /// Runs of each cell.
    pub repeat: NonZeroU32,
    /// Bytes that a run transfers.
    pub bytes: NonZeroU64,
    /// A run that takes longer is cut short.
    #[serde(rename = "max_seconds", with = "seconds")]
    pub max_time: Duration,
    /// Decides the order of the runs, and in each run everything that is drawn.
    pub seed: u64,
    /// Bytes that the source offers in one write.
    pub write_size: NonZeroU32,
    /// Bytes that the sink asks for in one read.
    pub read_size: NonZeroU32,
    /// Largest IP packet, in bytes.
    pub mtu: u16,
    /// Congestion control of the sender; the bench's own default if there is none.
    pub congestion: Option<String>,
    /// The rules that linerate's TCP keeps to (`modern`, `bsd_tahoe` …).
    pub profile: Option<String>,
    /// What is done to the frames of linerate's host (`loss=1%,delay=10ms`).
    pub impair: Option<String>,
    /// The bit rate of the link, in bits per second, where its driver does not tell or is wrong.
    pub line_rate: Option<NonZeroU64>,
    /// Compare what arrives with what was sent, byte for byte?
    pub verify: bool,
}

impl Draft {
    /// Returns the experiment of 1988 on this bench: every pair of buffers from 1 to 17 packets,
    /// four runs of 8 MiB each, in random order.
    ///
    /// # Panics
    /// Never: the constants are valid.
    #[must_use]
    pub fn of_1988(on: BenchKind) -> Self {
        let design = Design::of_1988();
        Self {
            on,
            scenario: None,
            set: Vec::new(),
            host: None,
            peer: None,
            direction: None,
            offloads: None,
            send_buffers: design.send_buffers,
            receive_buffers: design.receive_buffers,
            diagonal: design.diagonal,
            repeat: design.repeat,
            bytes: design.bytes,
            // A simulated run takes no real time, so it needs no short limit.
            max_time: if on == BenchKind::Sim {
                Duration::from_secs(100_000)
            } else {
                design.max_time
            },
            seed: design.seed,
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
        }
    }
}
