//! A TAP or TUN device: a link to the network stack of the kernel.
//!
//! The link receives the frames that the kernel sends on the interface. The kernel receives the
//! frames that the link sends. Dropping the link deletes the interface, unless the interface was
//! created as a persistent one.
//!
//! With offloads, GSO frames of up to 64 KiB pass in both directions without being segmented.
//! Checksums are not computed, because there is no wire on which a frame could be damaged.

mod error;
mod receive_buffers;
mod steered;

pub use error::TapError;
pub use steered::{QUEUES, SteeredTap};

use crate::MonotonicClock;
use crate::kernel_interface::{KernelInterface, check_name};
use crate::send_outcome::{SendOutcome, send_uninterrupted};
use crate::sys::tap::{
    DEVICE, MOST_QUEUES, MULTI_QUEUE, NO_PACKET_INFORMATION, TAP, TUN, VIRTIO_HEADER, attach,
    attached, set_header_length, set_offloads,
};
use crate::virtio::{self, FRAME_OFFSET, LARGEST_PACKET};
use crate::wait::Readiness;
use linerate_stack::{
    Capabilities, FrameSink, FrameSource, Link, LinkError, Medium, RxFrame, SMALLEST_MTU, TxFrame,
    ZeroCopyFrame,
};
use linerate_units::{Bytes, Clock, Instant};
use linerate_wire::VlanTag;
use receive_buffers::{AT_ONCE, ReceiveBuffers};
use rustix::io::{Errno, ioctl_fionbio, read, retry_on_intr, write, writev};
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The configuration of a TAP or TUN link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapConfig {
    /// The name of the interface. The kernel replaces `%d` by a free number.
    pub name: String,
    /// `Ethernet` for a TAP device, `Ip` for a TUN device.
    pub medium: Medium,
    /// The length of the largest IP packet, in bytes. If the interface exists with another MTU, its
    /// MTU is changed.
    pub mtu: usize,
    /// Whether the device uses offloads, like a NIC. With them, GSO frames of TCP pass in both
    /// directions without being segmented (`IFF_VNET_HDR`), and checksums are not computed. Without
    /// offloads, every frame is complete, so a NIC could send it unchanged.
    pub offloads: bool,
}

/// Returns the configuration of a TAP device with offloads and an MTU of 1,500 bytes. Its name is
/// `lr` and the next free number.
impl Default for TapConfig {
    fn default() -> Self {
        Self { name: "lr%d".to_owned(), medium: Medium::Ethernet, mtu: 1_500, offloads: true }
    }
}

/// A link to the network stack of this machine's kernel.
#[derive(Debug)]
pub struct Tap {
    device: OwnedFd,
    interface: KernelInterface,
    capabilities: Capabilities,
    /// The length of the virtio-net header in front of each frame, in bytes; zero without offloads.
    header: usize,
    /// Buffers for the frames that are received.
    receive_buffers: ReceiveBuffers,
    /// The buffer of the frame to send, with its virtio-net header.
    outgoing: Box<[u8]>,
    /// The length of the frame in `outgoing` that waits to be sent; zero if none waits.
    waiting: usize,
    refused: u64,
    malformed: u64,
}

impl Tap {
    /// Opens the interface, which is created if it does not exist. A new interface is down:
    /// configure its addresses and bring it up through [`interface`](Self::interface). Frames from
    /// the kernel wait in the interface's [queue](KernelInterface::set_queue_length).
    ///
    /// # Errors
    /// [`TapError`], which names what is missing on this machine, and the remedy.
    pub fn open(config: &TapConfig) -> Result<Self, TapError> {
        Self::attach(config, 0)
    }

    /// Opens the interface with `count` queues, one for each shard of a host. The kernel sends a
    /// flow to the queue on which it last received a packet of that flow, and a new flow to any
    /// queue. A frame can thus arrive on the queue of another shard than its own;
    /// [`crate::shard::share`] hands such frames over. An existing interface must have been created
    /// with several queues.
    ///
    /// # Errors
    /// An error of [`open`](Self::open), or [`TapError::Queues`] if `count` is zero or exceeds the
    /// kernel's limit.
    pub fn open_queues(config: &TapConfig, count: usize) -> Result<Vec<Self>, TapError> {
        if !(1..=MOST_QUEUES).contains(&count) {
            return Err(TapError::Queues(count));
        }
        let first = Self::attach(config, MULTI_QUEUE)?;
        let rest = TapConfig { name: first.interface.name().to_owned(), ..config.clone() };
        let mut queues = vec![first];
        for _ in 1..count {
            queues.push(Self::attach(&rest, MULTI_QUEUE)?);
        }
        Ok(queues)
    }

    fn attach(config: &TapConfig, queues: u16) -> Result<Self, TapError> {
        check_name(&config.name.replace("%d", "0"))?;
        let device = open_device()?;
        let kind = match config.medium {
            Medium::Ethernet => TAP,
            Medium::Ip => TUN,
        };
        let header = if config.offloads { VIRTIO_HEADER } else { 0 };
        let flags = kind | NO_PACKET_INFORMATION | header | queues;
        let name = attach(device.as_fd(), padded(&config.name), flags)
            .map_err(|errno| TapError::of_attaching(&config.name, errno))?;
        let refused = |errno: Errno| TapError::Offloads { errno: errno.raw_os_error() };
        if config.offloads {
            set_header_length(device.as_fd(), virtio::LENGTH).map_err(refused)?;
        }
        set_offloads(device.as_fd(), config.offloads).map_err(refused)?;
        let interface = KernelInterface::named(&unpadded(&name))?;
        let mtu = Bytes::new(config.mtu as u64);
        if interface.state()?.mtu != mtu {
            interface.set_mtu(mtu)?;
        }
        Ok(Self::over(device, interface, config))
    }

    /// Creates a link over a device that another process has opened and attached to an interface.
    /// That process may be the parent process, in another network namespace. The kernel reports
    /// whether the device is TAP or TUN, and whether it has offloads. `mtu` is the largest IP
    /// packet of the interface, in bytes. The [interface](Self::interface) can be configured only
    /// if it is in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`TapError::NoTap`] if the descriptor is not a TUN or TAP device;
    /// [`TapError::PacketInformation`], or an error of the system.
    pub fn from_fd(device: OwnedFd, mtu: usize) -> Result<Self, TapError> {
        let (name, flags) = attached(device.as_fd()).map_err(|errno| match errno {
            Errno::INVAL | Errno::BADFD => TapError::NoTap,
            errno => TapError::Open { errno: errno.raw_os_error() },
        })?;
        if flags & NO_PACKET_INFORMATION == 0 {
            return Err(TapError::PacketInformation);
        }
        if !(SMALLEST_MTU..=LARGEST_PACKET).contains(&mtu) {
            return Err(TapError::Mtu(mtu));
        }
        ioctl_fionbio(&device, true)
            .map_err(|errno| TapError::Open { errno: errno.raw_os_error() })?;
        let offloads = flags & VIRTIO_HEADER != 0;
        let refused = |errno: Errno| TapError::Offloads { errno: errno.raw_os_error() };
        if offloads {
            set_header_length(device.as_fd(), virtio::LENGTH).map_err(refused)?;
            set_offloads(device.as_fd(), true).map_err(refused)?;
        }
        let medium = if flags & TAP == 0 { Medium::Ip } else { Medium::Ethernet };
        let name = unpadded(&name);
        let interface = KernelInterface::elsewhere(&name);
        Ok(Self::over(device, interface, &TapConfig { name, medium, mtu, offloads }))
    }

    /// Returns the descriptor of the device, so that it can be passed to another process. An
    /// interface that is not persistent is deleted when no process has the descriptor open any
    /// more.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.device
    }

    fn over(device: OwnedFd, interface: KernelInterface, config: &TapConfig) -> Self {
        let offloads = virtio::offloads(config.offloads);
        let tag_room = if config.medium == Medium::Ethernet { VlanTag::LENGTH } else { 0 };
        let capabilities =
            Capabilities { offloads, tag_room, ..Capabilities::new(config.medium, config.mtu) };
        Self {
            device,
            interface,
            capabilities,
            header: if config.offloads { virtio::LENGTH } else { 0 },
            receive_buffers: ReceiveBuffers::new(config.offloads),
            outgoing: vec![0; FRAME_OFFSET + capabilities.room() + VlanTag::LENGTH].into(),
            waiting: 0,
            refused: 0,
            malformed: 0,
        }
    }

    /// Returns the kernel's interface that the link uses.
    #[must_use]
    pub const fn interface(&self) -> &KernelInterface {
        &self.interface
    }

    /// Returns the number of sent frames that were lost because the kernel had no memory for them.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the number of received frames that were dropped because of an invalid virtio-net
    /// header.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Reads one frame into each of the next `lengths.len()` receive buffers, and stores the
    /// lengths of the frames. Returns the number of frames. If that is less than `lengths.len()`,
    /// returns also the error that ended the reading.
    ///
    /// This function, `flush` and `send_gathered` are inlined into the loops that call them. After
    /// a system call, the first return from a function is slow (see the page on TAP devices in
    /// docs/notebook), and inlining avoids this return.
    #[inline(always)]
    fn read(&mut self, lengths: &mut [usize]) -> (usize, Option<Errno>) {
        for (place, length) in lengths.iter_mut().enumerate() {
            match retry_on_intr(|| read(&self.device, self.receive_buffers.place(place))) {
                Ok(bytes) => *length = bytes,
                Err(errno) => return (place, Some(errno)),
            }
        }
        (lengths.len(), None)
    }

    /// Sends the frame that waits in `outgoing`, if there is one. Returns false if the kernel still
    /// has no room for it.
    #[inline(always)]
    fn flush(&mut self) -> Result<bool, LinkError> {
        if self.waiting > 0 {
            let frame = &self.outgoing[FRAME_OFFSET - self.header..FRAME_OFFSET + self.waiting];
            let outcome = send_uninterrupted(|| write(&self.device, frame));
            if outcome == SendOutcome::WouldBlock {
                return Ok(false);
            }
            self.waiting = 0;
            self.note(outcome)?;
        }
        Ok(true)
    }

    /// Sends a frame whose first `length` bytes are in `outgoing`, and whose other bytes are
    /// `rest`. If the kernel has no room, `rest` is copied into `outgoing`, and the frame waits
    /// there.
    #[inline(always)]
    fn send_gathered(&mut self, length: usize, rest: [&[u8]; 2]) -> Result<(), LinkError> {
        let frame = &self.outgoing[FRAME_OFFSET - self.header..FRAME_OFFSET + length];
        let parts = [frame, rest[0], rest[1]].map(IoSlice::new);
        let parts = if rest[1].is_empty() { &parts[..2] } else { &parts[..] };
        let outcome = send_uninterrupted(|| writev(&self.device, parts));
        if outcome == SendOutcome::WouldBlock {
            self.waiting = length;
            for part in rest {
                let end = self.waiting + part.len();
                self.outgoing[FRAME_OFFSET + self.waiting..FRAME_OFFSET + end]
                    .copy_from_slice(part);
                self.waiting = end;
            }
        }
        self.note(outcome)
    }

    /// Evaluates the outcome of a send operation: counts the frame if the kernel has lost it, and
    /// converts errors.
    fn note(&mut self, outcome: SendOutcome) -> Result<(), LinkError> {
        match outcome {
            SendOutcome::Sent(_) | SendOutcome::WouldBlock => Ok(()),
            SendOutcome::Dropped => {
                self.refused += 1;
                Ok(())
            }
            SendOutcome::Failed(errno) => Err(explain("write a frame", errno)),
        }
    }

    /// Writes the virtio-net header before the frame in `outgoing`, if the device uses these
    /// headers.
    fn write_header(&mut self, frame: &TxFrame) {
        if self.header > 0 {
            virtio::write_header(frame, &mut self.outgoing);
        }
    }
}

impl Link for Tap {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        self.receive_into(budget, &mut on_frame)
    }

    /// Receives frames of the device. Frames with an invalid virtio-net header are dropped, but
    /// count towards the budget, because they take processing time.
    fn receive_into(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        let mut received = 0;
        let mut arrived = Instant::ZERO;
        while received < budget {
            let mut lengths = [0; AT_ONCE];
            let wanted = self.receive_buffers.at_once().min(budget - received);
            let (came, refusal) = self.read(&mut lengths[..wanted]);
            if came > 0 {
                if received.is_multiple_of(AT_ONCE) {
                    arrived = MonotonicClock.now();
                }
                self.malformed += self.receive_buffers.hand_over(&lengths[..came], arrived, sink);
                received += came;
            }
            match refusal {
                None => {}
                Some(Errno::AGAIN) => break,
                Some(errno) => return Err(explain("read a frame", errno)),
            }
        }
        Ok(received)
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        let mut sent = 0;
        while self.flush()? && sent < budget {
            let Some(frame) = fill(&mut self.outgoing[FRAME_OFFSET..]) else { break };
            self.waiting = frame.length.min(self.outgoing.len() - FRAME_OFFSET);
            self.write_header(&frame);
            sent += 1;
        }
        Ok(sent)
    }

    /// Sends the frames of `source`. If the device has offloads, borrowed data is sent from where
    /// it is, by `writev`. Otherwise the source copies it into the frame.
    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        if self.header == 0 {
            return self.transmit(budget, |frame| source.fill(frame));
        }
        let mut sent = 0;
        while self.flush()? && sent < budget {
            let Some(ZeroCopyFrame { frame, rest }) =
                source.fill_zero_copy(&mut self.outgoing[FRAME_OFFSET..])
            else {
                break;
            };
            sent += 1;
            self.write_header(&frame);
            if rest[0].is_empty() {
                // A frame without borrowed data is in one piece. It waits for `flush`, which sends
                // it by `write`. Sending it by the `writev` of `send_gathered` would take 5 % more
                // time.
                self.waiting = frame.length;
            } else {
                self.send_gathered(frame.length, rest)?;
            }
        }
        Ok(sent)
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
}

impl Readiness for Tap {
    fn fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn wants_room(&self) -> bool {
        self.waiting > 0
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn is_ready(&mut self) -> bool {
        false
    }

    fn prepare_to_sleep(&mut self) -> bool {
        true
    }

    fn awake(&mut self, _signalled: bool) {}

    fn next_deadline(&self) -> Instant {
        Instant::NEVER
    }
}

/// Converts an error of the kernel to an error of the link. EIO means that the interface is down,
/// and EBADFD that it was deleted.
fn explain(what: &'static str, errno: Errno) -> LinkError {
    match errno {
        Errno::IO | Errno::BADFD => LinkError::Down,
        _ => LinkError::Io { errno: errno.raw_os_error(), what },
    }
}

fn open_device() -> Result<OwnedFd, TapError> {
    let file = File::options().read(true).write(true).open(DEVICE).map_err(|error| match error
        .kind()
    {
        io::ErrorKind::NotFound => TapError::NoDevice,
        io::ErrorKind::PermissionDenied => TapError::DeviceForbidden,
        _ => TapError::Open { errno: error.raw_os_error().unwrap_or(0) },
    })?;
    ioctl_fionbio(&file, true).map_err(|errno| TapError::Open { errno: errno.raw_os_error() })?;
    Ok(file.into())
}

/// Returns the name as the kernel expects it, padded with zeros.
fn padded(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    // The kernel expects a zero behind the name, so at most 15 of the 16 bytes are used.
    for (to, from) in bytes.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    bytes
}

fn unpadded(name: &[u8]) -> String {
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..length]).into_owned()
}

#[cfg(test)]
mod tests;
