//! Links that carry a host's frames: the kernel's interfaces, rings in memory, and what can be put
//! around them. Nothing here knows TCP, sockets or a simulator.
//!
//! A link is whatever implements [`linerate_stack::Link`]. The plain ones are [`MemoryLink`], whose other
//! end is in the same process, [`Tap`], whose other end is the kernel of this machine, and two that
//! share an interface with it: [`PacketLink`] by a packet socket, [`XdpLink`] at its driver; [`AnyLink`] is any of
//! these three, by the words that people have for them. Two go around
//! any link: [`Capture`] writes down what passes, [`Impair`] mistreats it. [`shard`] shares the queues of one
//! out among the shards of a host. All of them never wait;
//! [`Waiter`] is who waits, for any of them and for a [`Doorbell`] at the same time.
//!
//! ```
//! use linerate_link::capture_file::{CaptureReader, CaptureWriter, Direction};
//! use linerate_link::memory::{MemoryConfig, pair};
//! use linerate_link::{Capture, Impair, Waiter};
//! use linerate_stack::{Link, TxFrame};
//! use linerate_units::Instant;
//!
//! // A cable, of which one end loses every frame that it is given to send, and is captured.
//! let (left, mut right) = pair(MemoryConfig::default())?;
//! let lossy = Impair::new(left, "tx.loss=100%".parse()?, 1988);
//! let mut file = Vec::new();
//! let mut left = Capture::new(lossy, "left", CaptureWriter::new(&mut file));
//!
//! // A frame is written where the link wants it …
//! let hello = |bytes: &mut [u8]| {
//!     bytes[..60].fill(b'!');
//!     Some(TxFrame::whole(60))
//! };
//! assert_eq!(left.transmit(1, hello)?, 1);
//! assert_eq!(right.transmit(1, hello)?, 1);
//!
//! // … and read where it lies.
//! let mut waiter = Waiter::new()?;
//! assert!(waiter.wait(&mut left, Instant::NEVER)?.link);
//! assert_eq!(left.receive(64, |frame| assert_eq!(frame.bytes, [b'!'; 60]))?, 1);
//! assert_eq!(right.receive(64, |_| ())?, 0);
//!
//! // The capture was taken outside of the impairment: it shows what the host saw.
//! let (lossy, writer) = left.into_parts();
//! assert_eq!(lossy.transmitted().lost, 1);
//! writer.finish()?;
//! let mut reader = CaptureReader::new(&*file)?;
//! assert_eq!(reader.next_packet()?.unwrap().direction, Some(Direction::Sent));
//! assert_eq!(reader.next_packet()?.unwrap().direction, Some(Direction::Received));
//! assert!(reader.next_packet()?.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To have the kernel at the other end, open a [`Tap`] and set up its [`KernelInterface`]. That needs no
//! root in a network of one's own, which [`namespace`] makes.

#![deny(unsafe_code)]

mod any;
mod arrivals;
mod bell;
mod capture;
pub mod capture_file;
mod clock;
mod departure;
mod filler;
pub mod impair;
pub mod kernel_interface;
pub mod kernel_socket;
pub mod kernel_tcp;
pub mod memory;
pub mod namespace;
pub mod packet;
pub mod shard;
#[allow(
    unsafe_code,
    reason = "memory shared between threads, and system calls that take raw memory"
)]
mod sys;
pub mod tap;
#[cfg(test)]
mod testing;
mod virtio;
mod wait;
pub mod xdp;

pub use any::{AnyLink, LinkSpec, OpenError, ParseLinkError};
pub use capture::Capture;
pub use clock::{ManualClock, MonotonicClock, time_of_day};
pub use impair::{Impair, Impairments};
pub use kernel_interface::KernelInterface;
pub use memory::{MemoryConfig, MemoryLink};
pub use packet::{PacketConfig, PacketLink};
pub use shard::ShardLink;
pub use tap::{Tap, TapConfig};
pub use wait::{Doorbell, NoLink, Readiness, WaitError, Waiter, Wake};
pub use xdp::{XdpConfig, XdpLink};
