//! The types of `tokio::net`, and forwarders.

mod forwarder;
mod listener;
mod multicast;
mod socket;
mod stream;
pub mod tcp;
mod udp;

pub use crate::address::ToSocketAddrs;
pub use forwarder::{Flow, Forwarder, Handshake};
pub use listener::TcpListener;
pub use socket::TcpSocket;
pub use stream::TcpStream;
pub use udp::UdpSocket;
