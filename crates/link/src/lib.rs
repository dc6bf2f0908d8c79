//! Links that carry a host's frames: interfaces of the kernel, rings in memory, and wrappers around
//! other links. This crate is independent of TCP, sockets and the simulator.
//!
//! A link implements [`linerate_stack::Link`]:
//!
//! - [`MemoryLink`]: both of its endpoints are in the same process.
//! - [`Tap`]: its peer is the kernel of this machine.
//! - [`PacketLink`]: shares an interface with the kernel through a packet socket.
//! - [`XdpLink`]: shares an interface with the kernel at its driver (AF_XDP).
//! - [`SerialLink`]: a serial line, with SLIP and header compression.
//! - [`AnyLink`]: a link to the kernel or a serial line, selected by a text such as `tap:lr0`.
//! - [`packet_queue`](packet_queue::packet_queue): IP packets that the application itself sends and
//!   receives.
//! - [`StreamLink`]: a Unix stream in the format of QEMU.
//! - [`Capture`]: writes the frames of another link to a file.
//! - [`Vlan`]: a VLAN of another link.
//! - [`Impair`]: loses, delays, reorders and damages the frames of another link.
//!
//! [`shard`] distributes the queues of a link among the shards of a host. Links never wait: a
//! [`Waiter`] waits for a link and for a [`Doorbell`] together.
//!
//! ```
//! use linerate_link::capture_file::{CaptureReader, CaptureWriter, Direction};
//! use linerate_link::memory::{MemoryConfig, pair};
//! use linerate_link::{Capture, Impair, Waiter};
//! use linerate_stack::{Link, TxFrame};
//! use linerate_units::Instant;
//!
//! // Two endpoints in memory. The left one loses every frame that it sends, and is captured.
//! let (left, mut right) = pair(MemoryConfig::default())?;
//! let lossy = Impair::new(left, "tx.loss=100%".parse()?, 1988);
//! let mut file = Vec::new();
//! let mut left = Capture::new(lossy, "left", CaptureWriter::new(&mut file));
//!
//! // A frame is written into the memory of the link …
//! let hello = |bytes: &mut [u8]| {
//!     bytes[..60].fill(b'!');
//!     Some(TxFrame::whole(60))
//! };
//! assert_eq!(left.transmit(1, hello)?, 1);
//! assert_eq!(right.transmit(1, hello)?, 1);
//!
//! // … and read from the memory of the link.
//! let mut waiter = Waiter::new()?;
//! assert!(waiter.wait(&mut left, Instant::NEVER)?.link);
//! assert_eq!(left.receive(64, |frame| assert_eq!(frame.bytes, [b'!'; 60]))?, 1);
//! assert_eq!(right.receive(64, |_| ())?, 0);
//!
//! // The capture wraps the impairment, so it shows what the host has sent and received.
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
//! For a link to the kernel, open a [`Tap`] and configure its [`KernelInterface`]. This requires no
//! root privileges inside a network namespace, which [`namespace`] creates.

#![deny(unsafe_code)]

mod any;
mod capture;
pub mod capture_file;
mod clock;
mod closure_source;
mod eventfd;
mod freed_memory;
pub mod impair;
pub mod kernel_interface;
pub mod kernel_socket;
pub mod kernel_tcp;
pub mod memory;
pub mod namespace;
pub mod packet;
pub mod packet_queue;
pub mod passing;
mod random;
mod send_outcome;
pub mod serial;
pub mod shard;
mod shared_buffers;
pub mod stream;
#[allow(
    unsafe_code,
    reason = "memory shared between threads, and system calls that access raw memory"
)]
mod sys;
pub mod tap;
#[cfg(test)]
mod testing;
mod virtio;
pub mod vlan;
mod wait;
pub mod xdp;

/// Makes glibc's allocator return its free memory to the operating system, for all threads.
/// The call takes several milliseconds for each 100 MB of memory. During this time, other threads
/// that allocate may have to wait. It is worthwhile when much less memory is in use than before;
/// `linerate-sockets` decides this by [`FreedMemory`]. The call has no effect with another C
/// library than glibc, or if the program has a global allocator of its own.
pub fn return_free_memory() {
    sys::allocator::trim();
}

pub use any::{AnyLink, LinkOptions, LinkSpec, OpenError, ParseLinkError};
pub use capture::Capture;
pub use clock::{ManualClock, MonotonicClock, time_of_day};
pub use freed_memory::FreedMemory;
pub use impair::{Impair, Impairments};
pub use kernel_interface::KernelInterface;
pub use memory::{MemoryConfig, MemoryLink};
pub use packet::{PacketConfig, PacketLink};
pub use packet_queue::{PacketQueue, QueueLink};
pub use random::random_bytes;
pub use serial::{SerialConfig, SerialLink};
pub use shard::ShardLink;
pub use stream::StreamLink;
pub use tap::{SteeredTap, Tap, TapConfig};
pub use vlan::Vlan;
pub use wait::{Doorbell, NoLink, Readiness, WaitError, Waiter, Wake};
pub use xdp::{XdpConfig, XdpLink};
