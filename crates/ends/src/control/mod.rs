//! The control connection of a sink: how a sweep on one machine sets up the far end on another.
//!
//! Control and data share one TCP port. A connection that opens with `greeting::CONTROL` is a
//! sweep asking for runs; one that opens with a data greeting carries the bytes of a run that was
//! asked for; anything else is a plain peer (`ttcp`, `nc`, RFC 863), whose bytes are counted and
//! thrown away. After the greeting a control connection carries one JSON object a line, in both
//! directions, each line limited in length and in time.
//!
//! ```text
//! sweep                                   sink
//! LINERATE/1 CONTROL            ───▶
//!                               ◀───      LINERATE/1 SINK
//! {"describe":{}}               ───▶
//!                               ◀───      {"description":{"program":"linerate 0.1.0", …}}
//! {"open":{"receive_buffer":…}} ───▶                 sets the listening socket's receive buffer
//!                               ◀───      {"opened":{"token":"9f…","granted_bytes":2920}}
//!     second connection: LINERATE/1 DATA 9f…
//!                               ◀───      {"ready":{"granted_bytes":2920, …}}
//!     the bytes of the run
//!                               ◀───      {"done":{"bytes":8388608, …}}   as soon as the last is read
//! ```

mod client;
mod error;
#[cfg(any(test, feature = "false-sink"))]
mod false_sink;
pub(crate) mod greeting;
mod lines;
mod message;

pub use client::Remote;
pub use error::ControlError;
pub use lines::LineError;
pub use message::{Description, Opened, Ready, Report, RunSpec, SinkTcp};

#[cfg(any(test, feature = "false-sink"))]
pub use false_sink::false_sink;
pub(crate) use lines::{Lines, send};
pub(crate) use message::{Reply, Request};
