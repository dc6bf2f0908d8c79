//! iperf3's protocol in both roles: a client that transfers data to an iperf3 server, and a server
//! for iperf3 clients.
//!
//! All connections of a test use one TCP port, and begin with a cookie of 37 bytes. The first
//! connection is the control connection. On the control connection, both ends send states, each as
//! one byte, and JSON texts, each after its length in four bytes.
//!
//! ```text
//! client                                    server
//! cookie                           ───▶
//!                                  ◀───     PARAM_EXCHANGE
//! {"tcp":true,"parallel":1, …}     ───▶
//!                                  ◀───     CREATE_STREAMS
//!     a connection for each stream: cookie
//!                                  ◀───     TEST_START, TEST_RUNNING
//!     data
//! TEST_END                         ───▶
//!                                  ◀───     EXCHANGE_RESULTS
//! {"streams":[…], …}               ───▶
//!                                  ◀───     {"streams":[…], …}
//!                                  ◀───     DISPLAY_RESULTS
//! IPERF_DONE                       ───▶
//! ```
//!
//! Peers are not trusted. A message must arrive within a time limit, and the length of texts and
//! the number of streams are limited.

mod client;
mod messages;
mod server;
mod wire;

pub use client::{Client, Test};
pub use messages::{Results, StreamResults};
pub use server::{Event, Served, Server};
pub use wire::Iperf3Error;

/// The default port of an iperf3 server.
pub const DEFAULT_PORT: u16 = 5201;
/// Maximum number of streams in a test, as in iperf3.
pub const MAX_STREAMS: usize = 128;
