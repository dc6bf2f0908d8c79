//! The design of a sweep, and the measurements of its runs.
//!
//! These types are the same for every engine: the kernel's TCP, linerate's on a device, and
//! linerate's in the simulator. Benches measure the values, and a store saves them. Verdicts and
//! reports are computed from these types alone.

#![forbid(unsafe_code)]

mod adaptive;
mod bench_facts;
mod buffers;
mod cell;
mod change;
mod counters;
mod design;
mod end_evidence;
mod facts;
mod floor;
mod framing;
mod line_rate;
mod maximum;
pub mod notation;
mod run_evidence;
mod run_outcome;
mod run_record;
#[cfg(any(test, feature = "sample-data"))]
pub mod sample_data;
mod schedule;
mod start;
pub mod stats;

pub use adaptive::next_run;
pub use bench_facts::BenchFacts;
pub use buffers::{BufferList, BufferSize, ParseBuffersError};
pub use cell::Cell;
pub use change::Change;
pub use counters::{Counters, EndCounters, FastPath, names};
pub use design::{Design, TooManyRuns};
pub use end_evidence::{
    ConnectionEvidence, Distribution, EndEvidence, MachineEvidence, QueueEvidence, SenderStates,
    ThreadEvidence,
};
pub use facts::{CpuFacts, Facts, MachineFacts, Versions};
pub use floor::Floor;
pub use framing::Framing;
pub use line_rate::LineRate;
pub use maximum::Maximum;
pub use run_evidence::RunEvidence;
pub use run_outcome::RunOutcome;
pub use run_record::{BufferRecord, RunRecord};
pub use schedule::{PlannedRun, schedule, shuffle};
pub use start::Start;
