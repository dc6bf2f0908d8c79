//! The experiment: what is to be measured, in which order, on which bench, and what came out.
//!
//! A [`Plan`] is everything that decides the bytes; a [`Bench`] carries one transfer out and says
//! what happened. The laboratory never knows flags or terminals, and of a protocol no more than its
//! public counters.
//!
//! A whole experiment, four cells of it, on linerate's own TCP:
//!
//! ```
//! use linerate_lab::bench::StackBench;
//! use linerate_lab::{BenchKind, Draft, Interrupt, Plan, Report, Store, Style, Unwatched, make_runs};
//!
//! let mut draft = Draft::of_1988(BenchKind::Stack);
//! draft.send_buffers = "1,8".parse()?;
//! draft.receive_buffers = "1,8".parse()?;
//! draft.bytes = (64 << 10).try_into()?;
//! let plan = Plan::new(draft)?;
//!
//! let folder = tempfile::tempdir()?;
//! let mut bench = StackBench::new(&plan, None)?;
//! let mut store = Store::create(&folder.path().join("night"), plan)?;
//! make_runs(&mut bench, &mut store, &[], &Interrupt::default(), &mut Unwatched)?;
//!
//! let report = Report::of(&store).ok_or("nothing was measured")?;
//! assert_eq!(report.table().iter().count(), 4);
//! println!("{}", report.text(Style::PLAIN));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod bench;
mod buffers;
pub mod control;
mod diagnose;
pub mod doctor;
mod facts;
pub mod figures;
mod interrupt;
mod maximum;
mod own_host;
pub mod ping;
mod plan;
mod report;
mod run;
mod runner;
pub mod serve;
pub mod simulation;
pub mod sink;
mod socket;
pub mod source;
pub mod stats;
mod store;
mod sweep;
mod table;
#[cfg(test)]
mod testing;
mod utc;
pub mod workload;

pub use bench::{Bench, BenchError};
pub use buffers::{BufferList, BufferSize, ParseBuffersError};
pub use diagnose::{CellName, Finding, FindingKind};
pub use facts::{CpuFacts, Facts, MachineFacts, Versions};
pub use interrupt::Interrupt;
pub use maximum::Maximum;
pub use own_host::OwnHost;
pub use plan::{BenchKind, Direction, Draft, Peer, Plan, PlanError};
pub use report::{Report, Style};
pub use run::{BufferRecord, RunRecord};
pub use runner::{NightError, Observer, Progress, Unwatched, make_runs};
pub use socket::{Network, NetworkError, OwnNetwork};
pub use store::{Start, Store, StoreError};
pub use sweep::{Cell, PlannedRun, schedule};
pub use table::{CellSummary, Table};
pub use utc::Utc;
