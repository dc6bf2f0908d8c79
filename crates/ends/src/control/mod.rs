//! The control connection of a sink, which is the receiver of test data. A program on another
//! machine, called the sweep, requests runs on this connection.
//!
//! The sink has one TCP port for all connections. The first bytes of a connection tell its purpose:
//!
//! - A connection that starts with `greeting::CONTROL` is a control connection. After this greeting
//!   it carries one JSON object per line in both directions. A line has a maximum length, and must
//!   arrive completely within a time limit.
//! - A connection that starts with a data greeting carries the data of a run.
//! - Any other connection comes from a program without this protocol, such as `ttcp` or `nc`. Its
//!   data is counted and discarded (RFC 863).
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
//!                               ◀───      {"ready":{"granted_bytes":2920}}
//!     the bytes of the run
//!                               ◀───      {"done":{"bytes":8388608, …}}   after the last byte
//! ```

mod client;
mod error;
#[cfg(any(test, feature = "fake-sink"))]
mod fake_sink;
pub(crate) mod greeting;
mod lines;
mod message;

pub use client::Remote;
pub use error::ControlError;
pub use lines::LineError;
pub use message::{Description, Opened, Ready, Report, RunSpec, SinkTcp};

#[cfg(any(test, feature = "fake-sink"))]
pub use fake_sink::fake_sink;
pub(crate) use lines::{Lines, send};
pub(crate) use message::{Reply, Request};
