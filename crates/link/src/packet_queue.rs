//! A link that exchanges IP packets with other code in the program, instead of with a network. It
//! serves tunnels such as WireGuard: the application encrypts the host's packets and sends them
//! itself.
//!
//! The host uses a [`QueueLink`], and the application a [`PacketQueue`]. They can be in different
//! threads. Each direction holds a limited number of packets. If the application cannot push a
//! packet, the packet is counted.
//!
//! ```
//! use linerate_link::packet_queue::{PushError, QueueConfig, packet_queue};
//! use linerate_stack::{Event, Host, Stack, StackConfig};
//! use linerate_units::Instant;
//! use linerate_wire::MacAddress;
//!
//! let (link, mut packets) = packet_queue(QueueConfig { mtu: 1_420, capacity: 64 })?;
//! // The link has no Ethernet header, so the MAC address is not used.
//! let config = StackConfig::new(MacAddress::ZERO, "10.0.0.1/24".parse()?);
//! let mut host = Host::new(Stack::new(config, [7; 32]), link);
//! let peer: std::net::IpAddr = "10.0.0.2".parse()?;
//! host.stack_mut().echo_send(Instant::ZERO, peer, 1, 1, b"there?")?;
//! host.turn(Instant::ZERO)?;
//!
//! // The packet that the tunnel would encrypt and send. Here it is answered at once.
//! let request = packets.pop(<[u8]>::to_vec).ok_or("no packet")?;
//! let mut reply = request.clone();
//! reply[12..16].copy_from_slice(&request[16..20]);
//! reply[16..20].copy_from_slice(&request[12..16]);
//! reply[20] = 0; // an echo reply, whose checksum is larger by the 8 of the request
//! let sum = u16::from_be_bytes([reply[22], reply[23]]);
//! let (sum, carry) = sum.overflowing_add(0x0800);
//! reply[22..24].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
//! packets.push(&reply)?;
//! host.turn(Instant::ZERO)?;
//! assert!(matches!(host.stack_mut().poll_event(), Some(Event::EchoReply(_))));
//!
//! assert_eq!(packets.push(&[0; 1_421]), Err(PushError::TooLong { limit: 1_420 }));
//! assert_eq!(packets.counters().too_long, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::memory::{MemoryConfig, MemoryError, MemoryLink, pair};
use crate::wait::Readiness;
use linerate_stack::{
    Capabilities, FrameSink, FrameSource, Link, LinkError, Medium, RxFrame, TxFrame,
};
use linerate_units::Instant;
use std::os::fd::BorrowedFd;
use thiserror::Error;

/// The configuration of a packet queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// The largest IP packet in bytes: [`linerate_stack::SMALLEST_MTU`] to 65,535.
    pub mtu: usize,
    /// The number of packets that each direction can hold: 1 to 65,536, rounded up to a power of
    /// two. For each of these packets, memory for the MTU is allocated when the queue is created.
    pub capacity: usize,
}

/// The default: each direction holds 256 packets of at most 1,420 bytes, the usual MTU over
/// WireGuard.
impl Default for QueueConfig {
    fn default() -> Self {
        Self { mtu: 1_420, capacity: 256 }
    }
}

/// Creates a packet queue. Returns the link for the host, and the queue for the application.
///
/// # Errors
/// [`MemoryError`] if the configuration is invalid, or the system has no descriptor left.
pub fn packet_queue(config: QueueConfig) -> Result<(QueueLink, PacketQueue), MemoryError> {
    let QueueConfig { mtu, capacity } = config;
    let memory = MemoryConfig { mtu, capacity, medium: Medium::Ip, ..MemoryConfig::default() };
    let (link, queue) = pair(memory)?;
    let queue = PacketQueue { link: queue, mtu, counters: QueueCounters::default() };
    Ok((QueueLink(link), queue))
}

/// The host's endpoint of a packet queue. After the application has dropped its [`PacketQueue`],
/// the host still receives the packets that the application has pushed. Once they are received, the
/// link is down.
#[derive(Debug)]
pub struct QueueLink(MemoryLink);

/// The application's endpoint of a packet queue.
///
/// The queue implements [`Readiness`]. So a [`crate::Waiter`] can wait for packets of the host and,
/// after [`PushError::Full`], until there is room to push a packet.
#[derive(Debug)]
pub struct PacketQueue {
    link: MemoryLink,
    mtu: usize,
    counters: QueueCounters,
}

/// The counters of a packet queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueCounters {
    /// Packets that the application has pushed into the queue to the host.
    pub pushed: u64,
    /// Packets of the host that the application has popped.
    pub popped: u64,
    /// Packets that the application could not push because the queue to the host was full.
    pub full: u64,
    /// Packets that the application could not push because they exceeded the MTU.
    pub too_long: u64,
}

/// The reason why a packet could not be pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PushError {
    /// The queue is full. A tunnel can drop the packet or wait for room.
    #[error("the queue is full: drop the packet, or wait until the host has received")]
    Full,
    /// The packet exceeds the MTU.
    #[error("the packet is too long: the MTU of the queue is {limit} bytes")]
    TooLong {
        /// The MTU in bytes.
        limit: usize,
    },
    /// The host has dropped its endpoint of the queue.
    #[error("the host has closed its end of the queue")]
    Closed,
}

impl PacketQueue {
    /// Gives a packet to the host.
    ///
    /// # Errors
    /// [`PushError`]: the host does not get the packet. [`PushError::Full`] and
    /// [`PushError::TooLong`] also increment a counter.
    pub fn push(&mut self, packet: &[u8]) -> Result<(), PushError> {
        if packet.len() > self.mtu {
            self.counters.too_long += 1;
            return Err(PushError::TooLong { limit: self.mtu });
        }
        let sent = self.link.transmit(1, |frame| {
            frame[..packet.len()].copy_from_slice(packet);
            Some(TxFrame::whole(packet.len()))
        });
        match sent {
            Ok(1..) => {
                self.counters.pushed += 1;
                Ok(())
            }
            Ok(0) => {
                self.counters.full += 1;
                Err(PushError::Full)
            }
            Err(_) => Err(PushError::Closed),
        }
    }

    /// Passes the next packet of the host to `take`, without copying it, and returns the result of
    /// `take`. Returns `None` if there is no packet now, or there will be none because the [host is
    /// gone](Self::is_closed).
    pub fn pop<R>(&mut self, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let (mut take, mut result) = (Some(take), None);
        let received = self.link.receive(1, |frame| {
            result = take.take().map(|take| take(frame.bytes));
        });
        self.counters.popped += u64::from(matches!(received, Ok(1)));
        result
    }

    /// Returns whether the host has dropped its endpoint, and all packets that it had sent have
    /// been popped.
    #[must_use]
    pub fn is_closed(&mut self) -> bool {
        // The check whether the host's endpoint was dropped must come before the check for packets.
        // In the opposite order, the host could send a packet and drop its endpoint between the two
        // checks. That packet would be missed.
        let is_down = self.link.transmit(0, |_| None) == Err(LinkError::Down);
        let mut has_packet = false;
        self.link.peek(1, |_| has_packet = true);
        is_down && !has_packet
    }

    /// Returns the counters of the queue.
    #[must_use]
    pub const fn counters(&self) -> QueueCounters {
        self.counters
    }
}

impl Link for QueueLink {
    fn receive(
        &mut self,
        budget: usize,
        on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        self.0.receive(budget, on_frame)
    }

    fn receive_into(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        self.0.receive_into(budget, sink)
    }

    fn peek(&mut self, budget: usize, look: impl FnMut(&[u8])) {
        self.0.peek(budget, look);
    }

    fn transmit(
        &mut self,
        budget: usize,
        fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        self.0.transmit(budget, fill)
    }

    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        self.0.transmit_from(budget, source)
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
}

/// Implements [`Readiness`] for a wrapper type, by calling the methods of the link in its field
/// `$inside`.
macro_rules! readiness_of_inside {
    ($wrapper:ty, $inside:tt) => {
        impl Readiness for $wrapper {
            fn fd(&self) -> BorrowedFd<'_> {
                self.$inside.fd()
            }

            fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
                self.$inside.wakeup_fd()
            }

            fn wants_room(&self) -> bool {
                self.$inside.wants_room()
            }

            fn is_ready(&mut self) -> bool {
                self.$inside.is_ready()
            }

            fn prepare_to_sleep(&mut self) -> bool {
                self.$inside.prepare_to_sleep()
            }

            fn awake(&mut self, signalled: bool) {
                self.$inside.awake(signalled);
            }

            fn next_deadline(&self) -> Instant {
                self.$inside.next_deadline()
            }
        }
    };
}

readiness_of_inside!(QueueLink, 0);
readiness_of_inside!(PacketQueue, link);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::Waiter;
    use std::thread;

    fn queue(capacity: usize) -> (QueueLink, PacketQueue) {
        packet_queue(QueueConfig { mtu: 100, capacity }).unwrap()
    }

    #[test]
    fn a_full_queue_refuses_and_counts_until_the_host_receives() {
        let (mut link, mut packets) = queue(4);
        for number in 0..4 {
            packets.push(&[number]).unwrap();
        }
        assert_eq!(packets.push(&[4]), Err(PushError::Full));
        assert_eq!(packets.push(&[0; 101]), Err(PushError::TooLong { limit: 100 }));
        let mut received = Vec::new();
        assert_eq!(link.receive(8, |frame| received.extend_from_slice(frame.bytes)), Ok(4));
        assert_eq!(received, [0, 1, 2, 3]);
        packets.push(&[5]).unwrap();
        let expected = QueueCounters { pushed: 5, popped: 0, full: 1, too_long: 1 };
        assert_eq!(packets.counters(), expected);
    }

    #[test]
    fn a_host_without_room_keeps_its_packets() {
        let (mut link, mut packets) = queue(2);
        let hello = |frame: &mut [u8]| {
            frame[..5].copy_from_slice(b"hello");
            Some(TxFrame::whole(5))
        };
        assert_eq!(link.transmit(8, hello), Ok(2));
        assert_eq!(packets.pop(<[u8]>::to_vec), Some(b"hello".to_vec()));
        assert!(link.is_ready(), "there is room again");
        assert_eq!(link.transmit(8, hello), Ok(1));
        assert_eq!(packets.counters().popped, 1);
    }

    #[test]
    fn a_closed_end_is_reported_after_the_last_packet() {
        let (mut link, mut packets) = queue(2);
        link.transmit(1, |_| Some(TxFrame::whole(1))).unwrap();
        drop(link);
        assert_eq!(packets.push(&[1]), Err(PushError::Closed));
        assert_eq!(packets.pop(<[u8]>::len), Some(1));
        assert!(packets.is_closed());
        let (mut link, packets) = queue(2);
        drop(packets);
        assert_eq!(link.receive(1, |_| ()), Err(LinkError::Down));
    }

    #[test]
    fn both_ends_wait_for_each_other() {
        let (mut link, mut packets) = queue(2);
        let application = thread::spawn(move || {
            let mut waiter = Waiter::new().unwrap();
            let (mut sum, mut number) = (0, 0_u32);
            while number < 1_000 {
                match packets.push(&number.to_be_bytes()) {
                    Ok(()) => number += 1,
                    Err(PushError::Full) => drop(waiter.wait(&mut packets, Instant::NEVER)),
                    Err(error) => panic!("{error}"),
                }
            }
            while sum < 1_000 {
                match packets.pop(|_| ()) {
                    Some(()) => sum += 1,
                    None => drop(waiter.wait(&mut packets, Instant::NEVER)),
                }
            }
        });
        let mut waiter = Waiter::new().unwrap();
        let mut received = 0;
        while received < 1_000 {
            received += link.receive(8, |_| ()).unwrap();
            if received < 1_000 {
                waiter.wait(&mut link, Instant::NEVER).unwrap();
            }
        }
        let mut sent = 0;
        while sent < 1_000 {
            sent += link.transmit(1_000 - sent, |_| Some(TxFrame::whole(1))).unwrap();
            if sent < 1_000 {
                waiter.wait(&mut link, Instant::NEVER).unwrap();
            }
        }
        application.join().unwrap();
    }
}
