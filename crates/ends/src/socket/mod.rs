//! Sockets as the laboratory uses them, the kernel's and those of a host of linerate's own: opened
//! with every option set and read back, filled and drained against a deadline, and asked what they
//! saw.

mod congestion;
mod counters;
mod intake;
mod listening;
mod network;
mod open;
mod outflow;
mod own_counters;
mod pause;
mod stream;

pub use congestion::{Congestion, CongestionError, check_own_congestion};
pub use counters::{Sampler, counters};
pub use intake::{Intake, Taken};
pub(crate) use listening::Listening;
pub use network::{Network, NetworkError, OwnNetwork};
#[cfg(test)]
pub(crate) use open::deaf_port;
pub use open::{
    Options, connect, grant_receive, grant_send, listen, max_segment, remedy_for_buffer,
};
pub use outflow::{Contents, Given, Outflow};
pub use own_counters::of_connection;
pub use pause::is_pause;
pub use stream::Stream;
