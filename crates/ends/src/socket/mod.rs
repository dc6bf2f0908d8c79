//! Sockets of the kernel and of linerate hosts, which a program uses in the same way.
//!
//! Options are set before the handshake, and the granted values are read back. Reads and writes
//! have deadlines. After a run, the counters of the connection are collected.

mod congestion;
mod counters;
mod host_threads;
mod listening;
mod network;
mod open;
mod own_counters;
mod pause;
mod read_task;
mod stream;
mod write_task;

pub use congestion::{Congestion, CongestionError, check_own_congestion};
pub use counters::{Sampler, counters};
pub use host_threads::HostThreads;
pub(crate) use listening::Listening;
pub use network::{Network, NetworkError, OwnNetwork};
#[cfg(test)]
pub(crate) use open::closed_port;
pub use open::{
    Options, connect, grant_receive, grant_send, listen, max_segment, remedy_for_buffer,
};
pub use own_counters::of_connection;
pub(crate) use pause::SLICE;
pub use pause::is_pause;
pub use read_task::{ReadResult, ReadTask};
pub use stream::Stream;
pub use write_task::{Contents, WriteResult, WriteTask};
