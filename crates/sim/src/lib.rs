//! A network simulator in virtual time: cables, NICs, machines and programs, around linerate's own
//! TCP/IP stack.
//!
//! A scenario is a data file: it specifies machines, their NICs and cables, and the programs that
//! they run. Every number has a unit, a source and a physical range. A scenario and a seed
//! determine every byte of a run, whichever computer executes it. This crate uses no real clock, no
//! files and no threads, and does not access the internal state of a connection.
//!
//! ```
//! use linerate_sim::{Keep, Scenario, TransferOptions};
//!
//! let mut scenario = Scenario::named("sun-3-60-to-3-60")?;
//! scenario.set("transfer.bytes=100000")?;
//! let outcome = scenario.blueprint()?.run(1988, &TransferOptions::default(), Keep::default());
//! let sink = outcome.program("transfer: sink").ok_or("there is none")?;
//! assert!(sink.complete && sink.wrong_at.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod background;
mod catalog;
mod event_queue;
mod frame;
mod generator;
mod mac;
mod machine;
mod measure;
mod medium;
mod nic;
mod outcome;
mod parameter;
mod program;
mod published;
mod relay;
mod rng;
mod scenario;
mod segment_labels;
mod timeline;
mod trace;
mod world;

pub use linerate_units::{Span, Tick};
pub use measure::Measure;
pub use medium::{EgressStatistics, MediumStatistics};
pub use nic::{NicStatistics, QueueStatistics};
pub use outcome::{
    MachineOutcome, Outcome, ProcessorOutcome, RelayNicOutcome, RelayOutcome, WireOutcome,
};
pub use parameter::{Number, ParameterError, Place, Setting, Settings};
pub use program::{ProgramReport, TcpReport};
pub use published::Published;
pub use relay::RelayStatistics;
pub use scenario::{Blueprint, Family, Reader, Scenario, TransferFacts, TransferOptions};
pub use timeline::{Activity, Held, Lane, SegmentLabel, Timeline, Window};
pub use trace::{Captured, Keep};
