//! The experiment: what is to be measured, in which order, on which bench, and what came out.
//!
//! A [`Plan`] is everything that decides the bytes; a [`Bench`] carries one transfer out and says
//! what happened. The laboratory never knows flags or terminals, and of a protocol no more than its
//! public counters.

#![forbid(unsafe_code)]

pub mod bench;
mod buffers;
mod interrupt;
mod maximum;
mod plan;
mod run;
pub mod stats;
mod sweep;
pub mod workload;

pub use bench::{Bench, BenchError};
pub use buffers::{BufferList, BufferSize, ParseBuffersError};
pub use interrupt::Interrupt;
pub use maximum::Maximum;
pub use plan::{BenchKind, Direction, Draft, Peer, Plan, PlanError};
pub use run::{BufferRecord, RunRecord};
pub use sweep::{Cell, PlannedRun, schedule};
