//! An egress gateway. Flows arrive on a link, and the gateway relays each of them over a socket of
//! the kernel. A network namespace or a virtual machine thus reaches the network without
//! privileges.
//!
//! The gateway accepts a client's connection only after the destination has accepted. Errors of the
//! destination, such as "connection refused" and "no route", therefore reach the client. A single
//! thread runs the host, and waits with one epoll instance for the link and all sockets.
//!
//! ```no_run
//! use linerate_gateway::{Gateway, GatewayConfig};
//! use linerate_link::{Tap, TapConfig};
//! use linerate_stack::Medium;
//! use std::os::fd::AsFd;
//!
//! let tun = Tap::open(&TapConfig { medium: Medium::Ip, ..TapConfig::default() })?;
//! let mut gateway = Gateway::new(tun, &GatewayConfig::default(), [7; 32])?;
//! // Write to the other end of this pipe to make the gateway finish its flows and return.
//! let (drain, _stop) = std::io::pipe()?;
//! let summary = gateway.run(drain.as_fd(), None)?;
//! println!("{} connections", summary.tcp_accepted);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod admission;
mod config;
mod error;
mod flows;
mod gateway;
mod metrics;
mod metrics_server;
mod pace;
mod poller;
mod tcp;
mod udp;

pub use config::{DnsRelay, GatewayConfig};
pub use error::GatewayError;
pub use gateway::Gateway;
pub use metrics::GatewayCounters;
