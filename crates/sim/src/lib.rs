//! Cables, network cards, machines and programs in virtual time, around linerate's own host.
//!
//! A scenario is data: which machines with which cards are on which cable, and what runs on them; every number in
//! it has a unit, a source and a physical range. The same scenario and seed give the same bytes on any machine.
//! Nothing here knows the real clock, files, threads, or the inside of a connection.
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

mod catalog;
mod frame;
mod machine;
mod medium;
mod nic;
mod noise;
mod outcome;
mod parameter;
mod program;
mod published;
mod queue;
mod relay;
mod rng;
mod scenario;
mod speaker;
mod station;
mod timeline;
mod trace;
mod world;

pub use linerate_units::{Span, Tick};
pub use medium::{MediumStatistics, OutletStatistics};
pub use nic::{NicStatistics, QueueStatistics};
pub use outcome::{
    MachineOutcome, Outcome, ProcessorOutcome, RelayCardOutcome, RelayOutcome, WireOutcome,
};
pub use parameter::{Number, ParameterError, Place, Setting, Settings};
pub use program::{ProgramReport, TcpReport};
pub use published::{Measure, Published};
pub use relay::RelayStatistics;
pub use scenario::{Blueprint, Reader, Scenario, TransferFacts, TransferOptions};
pub use timeline::{By, Held, Lane, Timeline, Window};
pub use trace::{Captured, Keep};
