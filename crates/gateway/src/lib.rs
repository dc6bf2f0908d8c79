//! An egress gateway: the flows that arrive on a link are relayed over the kernel's sockets, so
//! that a namespace or a virtual machine reaches the network without privileges.
//!
//! A connection is accepted only when the far end has accepted, so "connection refused" and "no
//! route" reach the client. One thread does everything: it turns the host and waits for its link
//! and for all sockets by one epoll.
//!
//! ```no_run
//! use linerate_gateway::{Gateway, GatewayConfig};
//! use linerate_link::{Tap, TapConfig};
//! use linerate_stack::Medium;
//! use std::os::fd::AsFd;
//!
//! let tun = Tap::open(&TapConfig { medium: Medium::Ip, ..TapConfig::default() })?;
//! let mut gateway = Gateway::new(tun, &GatewayConfig::default(), [7; 32])?;
//! // Write to `stop` to let it finish its flows and return.
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
mod poller;
mod tcp;
mod udp;

pub use config::{DnsRelay, GatewayConfig};
pub use error::GatewayError;
pub use gateway::Gateway;
pub use metrics::GatewayCounters;
