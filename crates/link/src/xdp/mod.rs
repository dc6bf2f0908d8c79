//! A link by AF_XDP, which bypasses the kernel's network stack. The driver puts received frames for
//! the host into memory that this program shares with the kernel. It also sends frames from this
//! memory.
//!
//! An XDP program on the interface selects frames by IP address ([`XdpConfig::addresses`]). The
//! kernel receives all other frames. Host and kernel both use the MAC address of the interface.
//! Dropping the link detaches the program.
//!
//! Some drivers copy frames between their own memory and the shared memory; see
//! [`XdpLink::is_zero_copy`]. There are no offloads, so the host computes and verifies all
//! checksums. On a veth pair, the checksum offload of the peer interface must be turned off
//! ([`KernelInterface::set_checksum_offload`], or `ethtool -K NAME tx off`). Otherwise the peer
//! sends frames with incomplete checksums, and the host discards all of them as damaged.

mod error;
mod program;

pub use error::XdpError;

use crate::MonotonicClock;
use crate::closure_source::ClosureSource;
use crate::kernel_interface::{KernelInterface, explain};
use crate::sys::xdp::{Failed, Shape, XdpSocket};
use crate::wait::Readiness;
use linerate_stack::{
    Capabilities, FrameSink, FrameSlots, FrameSource, Link, LinkError, Medium, PlainFrame, RxFrame,
    TxFrame,
};
use linerate_units::{Clock, Duration, Instant};
use program::{MOST_ADDRESSES, Program};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Number of bytes that the kernel leaves free in front of a received frame, so that XDP programs
/// can add headers (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// The possible sizes of a frame's buffer, in bytes.
const FRAME_SIZES: [u32; 2] = [2_048, 4_096];
/// The length of an Ethernet header with a VLAN tag, in bytes.
const TAGGED_HEADER: usize = 18;
/// The maximum number of received frames with a common time stamp, so that the clock is read only
/// once for them. These frames arrived within microseconds of each other, so the stamp is accurate
/// enough.
const STAMPED_AT_ONCE: usize = 64;

/// The configuration of an AF_XDP link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpConfig {
    /// The name of the interface.
    pub interface: String,
    /// The number of the receive queue.
    pub queue: u32,
    /// The IP addresses of the host, from 1 to 64.
    pub addresses: Vec<Ipv4Addr>,
    /// The number of frames for each direction: 64 to 65,536, rounded up to a power of two. They
    /// should have room for the receive windows of all connections together. On the other hand, the
    /// receive buffers are used in rotation. If together they exceed the processor's cache,
    /// receiving takes 14 % more time.
    pub frames: usize,
    /// Whether the XDP program runs in the driver. If this is false, or the driver does not support
    /// it, the program runs after the driver (generic XDP).
    ///
    /// The choice matters for a veth pair. Its driver copies each frame once more to make room for
    /// the program. If the program runs after the driver, a full segment takes a seventh less time
    /// (measured with one queue). But then nothing is zero-copy. GSO frames also arrive, and these
    /// are lost and counted. To prevent that, the peer must not send GSO frames (`ethtool -K NAME
    /// tx off`), and this interface must not coalesce (`ethtool -K NAME gro off`).
    pub in_driver: bool,
    /// Whether zero-copy is used if the driver supports it. Otherwise frames are copied.
    pub zero_copy: bool,
    /// The maximum time for which the driver polls this queue each time the host asks for frames.
    /// The driver then uses no interrupts (`SO_PREFER_BUSY_POLL`). Busy polling is useful for a
    /// thread that has a CPU of its own. `None` turns it off.
    pub busy_poll: Option<Duration>,
}

impl XdpConfig {
    /// Creates a configuration for `address` on the first queue of the interface `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, address: Ipv4Addr) -> Self {
        Self {
            interface: name.into(),
            queue: 0,
            addresses: vec![address],
            frames: 1_024,
            in_driver: true,
            zero_copy: true,
            busy_poll: None,
        }
    }
}

/// The kernel's counters of a socket (`XDP_STATISTICS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct XdpStatistics {
    /// Received frames that were lost for another reason than a full receive ring.
    pub dropped: u64,
    /// Addresses in the fill ring that were invalid.
    pub invalid_fill_addresses: u64,
    /// Descriptors in the transmit ring that were invalid.
    pub invalid_descriptors: u64,
    /// Received frames that were lost because the receive ring was full.
    pub receive_ring_full: u64,
    /// Number of times that the kernel received a frame but had no buffer for it, because the fill
    /// ring was empty.
    pub fill_ring_empty: u64,
    /// Number of times that the kernel looked for frames to send and found the transmit ring empty.
    pub transmit_ring_empty: u64,
}

/// A link over one queue of an interface, by AF_XDP.
#[derive(Debug)]
pub struct XdpLink {
    socket: XdpSocket,
    interface: KernelInterface,
    mac: [u8; 6],
    capabilities: Capabilities,
    zero_copy: bool,
    busy: bool,
    /// Whether the most recent transmission ended because no frame was free.
    starved: bool,
    // This field is declared after the socket, so that the socket is dropped first. In the opposite
    // order, the program would be detached while the socket exists, and the kernel would get the
    // host's frames.
    _program: Arc<Program>,
}

impl XdpLink {
    /// Opens one queue. Frames pass only while the interface is up.
    ///
    /// # Errors
    /// [`XdpError`], which names what is missing, and the remedy.
    pub fn open(config: &XdpConfig) -> Result<Self, XdpError> {
        let mut links = Self::open_queues(config, 1)?;
        links.pop().ok_or(XdpError::Queues)
    }

    /// Opens `count` queues from [`XdpConfig::queue`] on, one for each shard of a host (see
    /// [`crate::shard`]).
    ///
    /// # Errors
    /// [`XdpError`], which names what is missing, and the remedy.
    pub fn open_queues(config: &XdpConfig, count: u32) -> Result<Vec<Self>, XdpError> {
        let addresses = config.addresses.len();
        if !(1..=MOST_ADDRESSES).contains(&addresses) {
            return Err(XdpError::Addresses(addresses));
        }
        if !(64..=65_536).contains(&config.frames) {
            return Err(XdpError::Frames(config.frames));
        }
        let end = config.queue.checked_add(count).filter(|_| count > 0).ok_or(XdpError::Queues)?;
        let interface = KernelInterface::named(&config.interface)?;
        let state = interface.state()?;
        let mac = interface.mac_address()?;
        let mtu = usize::try_from(state.mtu.count()).unwrap_or(usize::MAX);
        let too_large = || XdpError::Mtu { name: config.interface.clone(), mtu };
        let frame_size = frame_size(mtu).ok_or_else(too_large)?;
        let frames = u32::try_from(config.frames.next_power_of_two()).unwrap_or(u32::MAX);
        let shape = Shape { frames, frame_size };
        let refused =
            |what, queue, error: io::Error| XdpError::of(what, &config.interface, queue, &error);
        let program = Program::new(interface.index(), &config.addresses, end, config.in_driver)
            .map_err(|error| refused("attach a program to the interface", config.queue, error))?;
        let program = Arc::new(program);
        let open = |queue| {
            let (socket, zero_copy) = open_socket(interface.index(), queue, shape, config)
                .map_err(|failed| refused(failed.what, queue, failed.error))?;
            program
                .direct(queue, socket.as_fd())
                .map_err(|error| refused("direct frames to the socket", queue, error))?;
            Ok(Self {
                socket,
                interface: interface.clone(),
                mac,
                capabilities: Capabilities::new(Medium::Ethernet, mtu),
                zero_copy,
                busy: config.busy_poll.is_some(),
                starved: false,
                _program: Arc::clone(&program),
            })
        };
        (config.queue..end).map(open).collect()
    }

    /// Checks whether this process may load XDP programs, and whether the kernel supports them.
    ///
    /// # Errors
    /// [`XdpError`], which names what is missing, and the remedy.
    pub fn probe() -> Result<(), XdpError> {
        program::probe()
            .map_err(|error| XdpError::of("load a program into the kernel", "", 0, &error))
    }

    /// Returns the kernel's interface that the link uses.
    #[must_use]
    pub const fn interface(&self) -> &KernelInterface {
        &self.interface
    }

    /// Returns the MAC address of the host, which is the MAC address of the interface.
    #[must_use]
    pub const fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Returns whether the driver itself reads and writes the memory shared with this program, so
    /// that no frame is copied.
    #[must_use]
    pub const fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Returns the kernel's counters of this socket; zeros if the query fails.
    #[must_use]
    pub fn statistics(&self) -> XdpStatistics {
        let [
            dropped,
            invalid_fill_addresses,
            invalid_descriptors,
            receive_ring_full,
            fill_ring_empty,
            transmit_ring_empty,
        ] = self.socket.statistics().unwrap_or_default();
        XdpStatistics {
            dropped,
            invalid_fill_addresses,
            invalid_descriptors,
            receive_ring_full,
            fill_ring_empty,
            transmit_ring_empty,
        }
    }

    /// Returns the number of descriptors in the receive ring that were invalid.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.socket.malformed()
    }
}

/// Opens a socket. It is zero-copy if that is wanted and the driver supports it; otherwise it
/// copies frames. Returns the socket, and whether it is zero-copy.
fn open_socket(
    interface: u32,
    queue: u32,
    shape: Shape,
    config: &XdpConfig,
) -> Result<(XdpSocket, bool), Failed> {
    let span = config.busy_poll.map(|span| i32::try_from(span.as_micros()).unwrap_or(i32::MAX));
    let open = |zero_copy| XdpSocket::open(interface, queue, shape, zero_copy, span);
    match (config.zero_copy && config.in_driver).then(|| open(true)) {
        Some(Ok(socket)) => Ok((socket, true)),
        Some(Err(_)) | None => Ok((open(false)?, false)),
    }
}

/// Returns the smallest frame size that has room for packets of this MTU, or `None` if there is
/// none.
fn frame_size(mtu: usize) -> Option<u32> {
    let needed = mtu.checked_add(HEADROOM + TAGGED_HEADER)?;
    FRAME_SIZES.into_iter().find(|&size| needed <= size as usize)
}

impl Link for XdpLink {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        self.receive_into(budget, &mut on_frame)
    }

    #[inline]
    fn receive_into(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        let mut received = 0;
        while received < budget && self.socket.has_arrived() {
            let arrived = MonotonicClock.now();
            let batch = STAMPED_AT_ONCE.min(budget - received);
            let mut left = batch;
            sink.take_plain(
                self.socket.arrived(&mut left).map(|bytes| PlainFrame { bytes, arrived }),
            );
            received += batch - left;
            if left > 0 {
                break;
            }
        }
        self.socket.finish_receiving(self.busy && received < budget);
        Ok(received)
    }

    fn transmit(
        &mut self,
        budget: usize,
        fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        self.transmit_from(budget, &mut ClosureSource { now: Instant::ZERO, fill })
    }

    #[inline]
    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        self.starved = false;
        let mut left = budget;
        if source.has_frames() {
            self.socket.reclaim();
            source.fill_all(&mut Slots { left: &mut left, link: self });
        }
        if left < budget || self.socket.has_unsent() {
            self.socket
                .send()
                .map_err(|error| explain("send frames", error.raw_os_error().unwrap_or(0)))?;
        }
        Ok(budget - left)
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
}

/// The free frames of the socket, for a host to fill.
struct Slots<'a> {
    link: &'a mut XdpLink,
    /// The number of frames that may still be sent in this transmission.
    left: &'a mut usize,
}

impl FrameSlots for Slots<'_> {
    #[inline(always)]
    fn offer(&mut self, fill: impl FnOnce(&mut [u8]) -> Option<TxFrame>) -> bool {
        if *self.left == 0 {
            return false;
        }
        let room = self.link.capabilities.frame_length();
        let Some(memory) = self.link.socket.offer() else {
            self.link.starved = true;
            return false;
        };
        let Some(frame) = fill(&mut memory[..room]) else { return false };
        self.link.socket.commit(frame.length.min(room));
        *self.left -= 1;
        true
    }
}

impl Readiness for XdpLink {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Returns whether the most recent transmission found no free frame, or whether frames remain
    /// that the driver sends only when called. Without the second condition, these frames would
    /// wait until the host sends other frames, such as retransmissions.
    fn wants_room(&self) -> bool {
        self.starved || self.socket.wants_call()
    }

    fn is_ready(&mut self) -> bool {
        self.socket.has_arrived() || (self.starved && self.socket.reclaim())
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn prepare_to_sleep(&mut self) -> bool {
        !self.is_ready()
    }

    fn awake(&mut self, _signalled: bool) {}

    fn next_deadline(&self) -> Instant {
        Instant::NEVER
    }
}

#[cfg(test)]
mod tests;
