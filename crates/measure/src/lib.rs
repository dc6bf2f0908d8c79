//! The plans, engines and result folders of sweeps. A sweep is a series of measured transfers,
//! usually one for each pair of socket-buffer sizes.
//!
//! A [`Plan`] determines every byte that a sweep transfers. A [`Bench`] executes one transfer and
//! returns its outcome. [`make_runs`] executes the runs of a plan one after the other, and appends
//! each to a [`Store`].
//!
//! The example is a complete sweep with linerate's own TCP. It has four cells, which are pairs of
//! buffer sizes:
//!
//! ```
//! use linerate_ends::Interrupt;
//! use linerate_evidence::Versions;
//! use linerate_measure::{
//!     BenchKind, Draft, Invocation, NoObserver, Plan, StackBench, Store, make_runs,
//! };
//!
//! let mut draft = Draft::of_1988(BenchKind::Stack);
//! draft.send_buffers = "1,8".parse()?;
//! draft.receive_buffers = "1,8".parse()?;
//! draft.repeat = 1.try_into()?;
//! draft.bytes = (64 << 10).try_into()?;
//! let plan = Plan::new(draft)?;
//!
//! let folder = tempfile::tempdir()?;
//! let mut bench = StackBench::new(&plan, None)?;
//! let mut store = Store::create(&folder.path().join("sweep"), plan)?;
//! let versions = Versions {
//!     linerate: "0.1.0".to_owned(),
//!     commit: None,
//!     rustc: "rustc 1.95.0".to_owned(),
//!     debug_build: true,
//! };
//! let invocation = Invocation { options: Vec::new(), versions };
//! make_runs(&mut bench, &mut store, &invocation, &Interrupt::default(), &mut NoObserver)?;
//! assert_eq!(store.runs().len(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod bench;
mod bench_error;
mod best_so_far;
mod engines;
#[cfg(test)]
mod fake_bench;
mod machine_facts;
mod path;
mod plan;
mod runner;
mod store;
mod utc;

pub use bench::{Bench, BufferRequest, RunRequest};
pub use bench_error::{BenchError, Fault};
pub use engines::{InterfaceBench, KernelBench, SerialBench, SimBench, StackBench, TapBench};
pub use machine_facts::Invocation;
pub use path::{Application, DiagnosedPath, SimPath, SocketPath};
pub use plan::{BenchKind, Direction, Draft, Family, Plan, PlanError};
pub use runner::{NightError, NoObserver, Observer, Progress, make_runs};
pub use store::{SavedSweep, Store, StoreError};
pub use utc::Utc;
