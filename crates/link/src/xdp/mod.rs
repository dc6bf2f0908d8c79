//! AF_XDP: frames for our addresses come to us from the driver, before the kernel's own network sees them, into
//! memory that we share with it, and leave from there.
//!
//! A program in front of the interface chooses them by their IP address ([`XdpConfig::addresses`]), so the kernel
//! keeps the interface for everything else, and we are its station. The program goes with the link.
//!
//! Drivers that cannot work in our memory copy frames into it and out of it; [`XdpLink::is_zero_copy`] tells. There
//! are no offloads: checksums are ours, also those that the other end of a virtual cable would leave out. Take them
//! from it ([`KernelInterface::set_checksum_offload`], or `ethtool -K NAME tx off`), or everything that it sends looks
//! damaged.

mod error;
mod program;

pub use error::XdpError;

use crate::MonotonicClock;
use crate::filler::Filler;
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

/// Bytes of a frame's memory in front of it that the kernel keeps for programs (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// The sizes that a frame's memory can have.
const FRAME_SIZES: [u32; 2] = [2_048, 4_096];
/// Bytes of the longest Ethernet header, with a tag.
const TAGGED_HEADER: usize = 18;
/// Frames that are taken in a row, in a few microseconds, and have one time of arrival.
const STAMPED_AT_ONCE: usize = 64;

/// Which queue of which interface, for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpConfig {
    /// The interface's name.
    pub interface: String,
    /// Its receive queue.
    pub queue: u32,
    /// What is for these addresses is ours; 1 to 64.
    pub addresses: Vec<Ipv4Addr>,
    /// Frames in each direction, rounded up to a power of two; 64 to 65,536. What a window of the peers holds should
    /// fit, and what does not stay in the processor's cache costs a seventh more: all memory for arriving frames is used by
    /// turns.
    pub frames: usize,
    /// Whether the program stands in the driver, if that can have one. A virtual cable's driver copies each frame once
    /// more to make room for a program; behind it, where the kernel's own network begins, a frame of a full segment takes
    /// a seventh less (measured with one queue). Behind a driver nothing is zero-copy, and super-frames come that the
    /// driver would have forbidden, only to be lost, and counted: neither the other end may send them
    /// (`ethtool -K NAME tx off`) nor this one join any (`ethtool -K NAME gro off`).
    pub in_driver: bool,
    /// Whether to try the driver's own way into our memory before one by copies.
    pub zero_copy: bool,
    /// Has the driver work for this queue when we ask for frames, for at most so long, and no interrupts in between:
    /// for a thread with a processor of its own. (`SO_PREFER_BUSY_POLL`.)
    pub busy_poll: Option<Duration>,
}

impl XdpConfig {
    /// What is for `address` on the first queue of the interface called `name`.
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

/// What the kernel counts of a socket (`XDP_STATISTICS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpStatistics {
    /// Frames that arrived and were lost for other reasons than those below.
    pub dropped: u64,
    /// Places for frames to be received that cannot be.
    pub invalid_places: u64,
    /// Frames to be sent whose description cannot be.
    pub invalid_frames: u64,
    /// Frames that arrived faster than they were received, and were lost.
    pub receive_ring_full: u64,
    /// Frames that arrived when all memory for them was in use.
    pub fill_ring_empty: u64,
    /// Times that the kernel found nothing more to send.
    pub transmit_ring_empty: u64,
}

/// A link over one queue of an interface.
#[derive(Debug)]
pub struct XdpLink {
    socket: XdpSocket,
    interface: KernelInterface,
    mac: [u8; 6],
    capabilities: Capabilities,
    zero_copy: bool,
    busy: bool,
    /// Whether the last transmission ended for want of a free frame.
    starved: bool,
    // Behind the socket, which nothing is led to when it is gone.
    _program: Arc<Program>,
}

impl XdpLink {
    /// Opens one queue. The interface must be up, or be brought up, for frames to pass.
    ///
    /// # Errors
    /// [`XdpError`], which says what is missing and how to get it.
    pub fn open(config: &XdpConfig) -> Result<Self, XdpError> {
        let mut links = Self::open_queues(config, 1)?;
        links.pop().ok_or(XdpError::Queues)
    }

    /// Opens `count` queues from [`XdpConfig::queue`] on, one for each shard of a host; see [`crate::shard`].
    ///
    /// # Errors
    /// As for [`open`](Self::open).
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
        let mac = interface.station()?;
        let mtu = usize::try_from(state.mtu.count()).unwrap_or(usize::MAX);
        let too_large = || XdpError::Mtu { name: config.interface.clone(), mtu };
        let frame_size = frame_size(mtu).ok_or_else(too_large)?;
        let frames = u32::try_from(config.frames.next_power_of_two()).unwrap_or(u32::MAX);
        let shape = Shape { frames, frame_size };
        let refused =
            |what, queue, error: io::Error| XdpError::of(what, &config.interface, queue, &error);
        let program = Program::new(interface.index(), &config.addresses, end, config.in_driver)
            .map_err(|error| {
                refused("put a program in front of the interface", config.queue, error)
            })?;
        let program = Arc::new(program);
        let open = |queue| {
            let (socket, zero_copy) = open_socket(interface.index(), queue, shape, config)
                .map_err(|failed| refused(failed.what, queue, failed.error))?;
            program
                .lead(queue, socket.as_fd())
                .map_err(|error| refused("lead frames to the socket", queue, error))?;
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

    /// Whether this process may put programs into the kernel, and this kernel has such sockets.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn probe() -> Result<(), XdpError> {
        program::probe()
            .map_err(|error| XdpError::of("put a program into the kernel", "", 0, &error))
    }

    /// The interface.
    #[must_use]
    pub const fn interface(&self) -> &KernelInterface {
        &self.interface
    }

    /// The station that we are, which is the interface's.
    #[must_use]
    pub const fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Does the driver work in our memory itself?
    #[must_use]
    pub const fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// What the kernel has counted; zeros if it does not tell.
    #[must_use]
    pub fn statistics(&self) -> XdpStatistics {
        let [
            dropped,
            invalid_places,
            invalid_frames,
            receive_ring_full,
            fill_ring_empty,
            transmit_ring_empty,
        ] = self.socket.statistics().unwrap_or_default();
        XdpStatistics {
            dropped,
            invalid_places,
            invalid_frames,
            receive_ring_full,
            fill_ring_empty,
            transmit_ring_empty,
        }
    }

    /// Frames that were dropped because the kernel has described what cannot be.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.socket.malformed()
    }
}

/// A socket in the driver's own way, if that is wanted and can be, and else by copies.
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

/// Bytes of memory for each frame of an interface with this MTU.
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
        self.transmit_from(budget, &mut Filler { now: Instant::ZERO, fill })
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

/// The empty frames of one transmission.
struct Slots<'a> {
    link: &'a mut XdpLink,
    /// How many may still be filled.
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

    /// What a driver has not taken yet leaves when it is asked again. Nobody would do so before the host has something else
    /// to do, which may be a retransmission.
    fn wants_room(&self) -> bool {
        self.starved || self.socket.wants_call()
    }

    fn is_ready(&mut self) -> bool {
        self.socket.has_arrived() || (self.starved && self.socket.reclaim())
    }
}

#[cfg(test)]
mod tests;
