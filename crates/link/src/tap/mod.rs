//! A TAP or TUN device: the kernel's own network stack at the other end of the link.
//!
//! Whatever the kernel sends out of the interface is received here, and the other way round. The
//! interface goes with the link unless somebody made it to stay.
//!
//! With offloads the two do not cut what a wire would have them cut: super-frames of up to 64 KiB go whole
//! both ways, and checksums, which would protect them from nothing, are left out.

mod arrival;
mod error;

pub use error::TapError;

use crate::MonotonicClock;
use crate::departure::{Departure, leave};
use crate::kernel_interface::{KernelInterface, check_name};
use crate::sys::tun::{
    MULTI_QUEUE, NO_PACKET_INFORMATION, TAP, TUN, VIRTIO_HEADER, attach, set_header_length,
    set_offloads,
};
use crate::virtio::{self, FRAME};
use crate::wait::Readiness;
use arrival::{AT_ONCE, Arrival};
use linerate_stack::{
    Capabilities, FrameSink, FrameSource, LentFrame, Link, LinkError, Medium, RxFrame, TxFrame,
};
use linerate_units::{Bytes, Clock, Instant};
use rustix::io::{Errno, ioctl_fionbio, read, retry_on_intr, write, writev};
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Where the kernel hands out such devices.
const DEVICE: &str = "/dev/net/tun";
/// Queues that an interface of the kernel's can have (`MAX_TAP_QUEUES`).
const MOST_QUEUES: usize = 256;

/// Which interface is to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapConfig {
    /// Its name. `%d` in it is replaced by a number that is free.
    pub name: String,
    /// `Ethernet` makes it TAP, `Ip` makes it TUN.
    pub medium: Medium,
    /// Bytes of the largest IP packet. An interface that exists and has another MTU is changed.
    pub mtu: usize,
    /// Whether the kernel and we leave to each other what they would leave to a network card: super-frames of
    /// several segments of TCP over IPv4 go whole both ways (`IFF_VNET_HDR`), and checksums are not computed.
    /// Each frame that is seen on the device without offloads is one that a wire could carry.
    pub offloads: bool,
}

/// A TAP device `lr0`, or the next number that is free, of 1,500 bytes, with offloads.
impl Default for TapConfig {
    fn default() -> Self {
        Self { name: "lr%d".to_owned(), medium: Medium::Ethernet, mtu: 1_500, offloads: true }
    }
}

/// A link to the kernel of this machine.
#[derive(Debug)]
pub struct Tap {
    device: OwnedFd,
    interface: KernelInterface,
    capabilities: Capabilities,
    /// Bytes of the header that the kernel has in front of each frame: a virtio-net header's, or none.
    header: usize,
    /// The frames that arrived last.
    arrival: Arrival,
    /// The frame that is offered, or waits for the system to have room for it, behind its header.
    departure: Box<[u8]>,
    /// Bytes of the waiting frame; 0 if none does.
    waiting: usize,
    refused: u64,
    malformed: u64,
}

impl Tap {
    /// Opens the interface, which is made if there is none. It begins down: give
    /// [`interface`](Self::interface) its addresses and bring it up. What the kernel sends faster than
    /// it is received waits in the interface's [queue](KernelInterface::set_queue_length).
    ///
    /// # Errors
    /// [`TapError`], which says what is missing on this machine and how to get it.
    pub fn open(config: &TapConfig) -> Result<Self, TapError> {
        Self::attach(config, 0)
    }

    /// Opens the interface with `count` queues, one for each shard of a host. The kernel sends a flow to the
    /// queue on which it last came from us, and a new one to any of them: [`crate::shard::share`] sees to it
    /// that it finds its shard. An interface that exists must have been made for several queues.
    ///
    /// # Errors
    /// As for [`open`](Self::open); [`TapError::Queues`] for none at all, or for more than the kernel has.
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

    fn over(device: OwnedFd, interface: KernelInterface, config: &TapConfig) -> Self {
        let offloads = virtio::offloads(config.offloads);
        let capabilities =
            Capabilities { offloads, ..Capabilities::new(config.medium, config.mtu) };
        Self {
            device,
            interface,
            capabilities,
            header: if config.offloads { virtio::LENGTH } else { 0 },
            arrival: Arrival::new(config.offloads),
            departure: vec![0; FRAME + capabilities.room() + 4].into(),
            waiting: 0,
            refused: 0,
            malformed: 0,
        }
    }

    /// The kernel's end.
    #[must_use]
    pub const fn interface(&self) -> &KernelInterface {
        &self.interface
    }

    /// Frames that were lost because the system had no memory for them.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Frames that were dropped because the kernel has said of them what cannot be.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Reads as many frames as there are `lengths` to be told, or fewer: how many, and why no more.
    ///
    /// This and both ways to depart are drawn into the loop that calls them: a function that returns behind a call of the
    /// system costs far more than its return (docs/numbers.md, *Calls of the system in the loop itself*).
    #[inline(always)]
    fn read(&mut self, lengths: &mut [usize]) -> (usize, Option<Errno>) {
        for (place, length) in lengths.iter_mut().enumerate() {
            match retry_on_intr(|| read(&self.device, self.arrival.place(place))) {
                Ok(bytes) => *length = bytes,
                Err(errno) => return (place, Some(errno)),
            }
        }
        (lengths.len(), None)
    }

    /// Writes the waiting frame, if there is one. False if it has to wait longer.
    #[inline(always)]
    fn depart(&mut self) -> Result<bool, LinkError> {
        if self.waiting > 0 {
            let frame = &self.departure[FRAME - self.header..FRAME + self.waiting];
            let departure = leave(|| write(&self.device, frame));
            if departure == Departure::Again {
                return Ok(false);
            }
            self.waiting = 0;
            self.note(departure)?;
        }
        Ok(true)
    }

    /// Has the frame in memory, of which `rest` is to follow, leave at once, or wait whole.
    #[inline(always)]
    fn depart_with(&mut self, length: usize, rest: [&[u8]; 2]) -> Result<(), LinkError> {
        let frame = &self.departure[FRAME - self.header..FRAME + length];
        let parts = [frame, rest[0], rest[1]].map(IoSlice::new);
        let parts = if rest[1].is_empty() { &parts[..2] } else { &parts[..] };
        let departure = leave(|| writev(&self.device, parts));
        if departure == Departure::Again {
            self.waiting = length;
            for part in rest {
                let end = self.waiting + part.len();
                self.departure[FRAME + self.waiting..FRAME + end].copy_from_slice(part);
                self.waiting = end;
            }
        }
        self.note(departure)
    }

    /// Counts a frame that is lost.
    fn note(&mut self, departure: Departure) -> Result<(), LinkError> {
        match departure {
            Departure::Left(_) | Departure::Again => Ok(()),
            Departure::Refused => {
                self.refused += 1;
                Ok(())
            }
            Departure::Failed(errno) => Err(explain("write a frame", errno)),
        }
    }

    /// Puts the virtio-net header before the frame in memory, if it is to have one.
    fn write_header(&mut self, frame: &TxFrame) {
        if self.header > 0 {
            virtio::write_header(frame, &mut self.departure);
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

    /// Frames that are dropped because they cannot be are counted among those received: they were work.
    fn receive_into(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        let mut received = 0;
        let mut arrived = Instant::ZERO;
        while received < budget {
            let mut lengths = [0; AT_ONCE];
            let wanted = self.arrival.at_once().min(budget - received);
            let (came, refusal) = self.read(&mut lengths[..wanted]);
            if came > 0 {
                if received.is_multiple_of(AT_ONCE) {
                    arrived = MonotonicClock.now();
                }
                self.malformed += self.arrival.hand_over(&lengths[..came], arrived, sink);
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
        while self.depart()? && sent < budget {
            let Some(frame) = fill(&mut self.departure[FRAME..]) else { break };
            self.waiting = frame.length.min(self.departure.len() - FRAME);
            self.write_header(&frame);
            sent += 1;
        }
        Ok(sent)
    }

    /// What is lent goes to the kernel from where it is (`writev`). Without offloads nothing can be lent.
    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        if self.header == 0 {
            return self.transmit(budget, |frame| source.fill(frame));
        }
        let mut sent = 0;
        while self.depart()? && sent < budget {
            let Some(LentFrame { frame, rest }) = source.lend(&mut self.departure[FRAME..]) else {
                break;
            };
            sent += 1;
            self.write_header(&frame);
            if rest[0].is_empty() {
                // What is whole goes by `write`: of a frame of 1,514 bytes `writev` is a twentieth.
                self.waiting = frame.length;
            } else {
                self.depart_with(frame.length, rest)?;
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
}

/// What the kernel's refusal means: EIO is an interface that was taken down, EBADFD one that was
/// removed.
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

/// The name as the kernel takes it, zeros behind it.
fn padded(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    // One zero at least has to follow.
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
