//! One TCP connection, sans-IO: bytes, time and randomness are arguments, segments and events are
//! results. The crate implements sequence space, windows, loss recovery and congestion control. It
//! knows no addresses, ports, links, sockets, threads or clocks.
//!
//! A [`Connection`] has three interfaces, one for each kind of user. The application calls methods
//! that are named by verbs (`write`, `read`, `close`, `set_*`). The host driver delivers segments
//! and timers (`handle_*`), and takes segments and events (`poll_*`), through
//! [`Connection::driver`]. Observers call methods that only return values (`state`, `statistics`).
//! Two connections and a loop that carries segments between them are a whole transfer:
//!
//! ```
//! use linerate_tcp::{Config, Connection, Offload, Path, Seeds};
//! use linerate_units::Instant;
//! use linerate_wire::{Segment, SeqNum};
//!
//! let now = Instant::ZERO;
//! let path = Path::ipv4(1_500);
//! let seeds = |n| Seeds { initial_sequence: SeqNum::new(n), timestamp_offset: 0 };
//!
//! // The client's SYN creates the server.
//! let mut frame = [0; 1_480];
//! let mut client = Connection::connect(Config::modern(), path, seeds(1), now);
//! let syn = client.driver().poll_transmit(now, Offload::None, &mut frame).unwrap();
//! let segment = Segment::parse(&frame[..syn.length]).unwrap();
//! let mut server = Connection::accept(Config::modern(), path, seeds(2), &segment, now);
//!
//! // Deliver segments in both directions until there are none.
//! client.write(now, b"line rate").unwrap();
//! loop {
//!     let mut quiet = true;
//!     for _ in 0..2 {
//!         while let Some(sent) = client.driver().poll_transmit(now, Offload::None, &mut frame) {
//!             let segment = Segment::parse(&frame[..sent.length]).unwrap();
//!             server.driver().handle_segment(now, &segment);
//!             quiet = false;
//!         }
//!         core::mem::swap(&mut client, &mut server);
//!     }
//!     if quiet {
//!         break;
//!     }
//! }
//!
//! let mut received = [0; 16];
//! assert_eq!(server.read(now, &mut received), Ok(9));
//! assert_eq!(&received[..9], b"line rate");
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod buffer_size;
mod calls;
mod compact;
mod config;
mod congestion;
mod connection;
mod driver;
mod ecn;
mod ending;
mod error;
mod event;
mod expectation;
mod fast_open;
mod information;
mod input;
mod invariants;
mod memory;
mod opening;
mod options;
mod output;
mod path;
mod rare_options;
mod receive;
mod ring;
mod segmented_buffer;
mod send;
mod shared_config;
mod state;
mod stats;
mod timeout;
mod timers;
mod user_timeout;
mod zero_copy;

pub use buffer_size::{BufferSize, LARGEST_BUFFER};
pub use compact::{CompactConnection, TimeWaitRecord};
pub use config::{Config, KeepAlive, NagleRule, Profile, TimeLimits, UnknownProfile};
pub use congestion::{
    Acknowledged, CongestionName, Controller, CustomCongestion, FastRecovery, Lost, RateSample,
    UnknownCongestion, Window,
};
pub use connection::Connection;
pub use driver::Driver;
pub use ecn::EcnRule;
pub use error::Error;
pub use event::{Event, Events, SoftError};
pub use fast_open::{FastOpenLesson, FastOpenOffer};
pub use input::icmp::IcmpReport;
pub use input::listen::{ListenVerdict, judge_listen, judge_unconnected};
pub use input::run::{AckRun, DataRun, Run, ShortRun};
pub use input::validate::control::ControlRun;
pub use input::validate::predict::MissReason;
pub use input::{Disposition, Refusal};
pub use memory::MemoryGrant;
pub use opening::{Open, Seeds};
pub use output::batch::{AckWindow, Batch, BatchContent};
pub use output::reset::Reset;
pub use output::zero_copy::ZeroCopyRange;
pub use output::{Kind, Offload, Transmit};
pub use path::Path;
pub use receive::ack_policy::AckRule;
pub use ring::SMALLEST_BUFFER_MEMORY;
pub use send::busy_time::BusyTime;
pub use send::pacing::PacingRule;
pub use send::path_mtu::PathSearch;
pub use send::rtt::RtoLimits;
pub use shared_config::SharedConfig;
pub use state::State;
pub use stats::{AccurateEcn, Information, PredictionStatistics, RecoveryState, Statistics};
