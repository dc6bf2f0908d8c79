//! A packet socket: an interface of the kernel's as it is, beside the kernel's own use of it.
//!
//! We have a station's address there, the interface's own or another one, and see what is for it and for all
//! stations. The kernel sees it too: if the interface has an IP address that we have as well, both answer. With
//! the interface's own station the kernel drops what is for IP addresses that it does not have, unless it
//! forwards packets.
//!
//! Each frame has a header that says what is still to be done about it (`PACKET_VNET_HDR`). Interfaces join what
//! arrives, and virtual cables leave out checksums, so super-frames of up to 64 KiB come whether we want them or
//! not. With offloads we send such ones, too; what the interface cannot cut the kernel cuts for it.

use crate::MonotonicClock;
use crate::arrivals::Arrivals;
use crate::departure::{Departure, leave};
use crate::kernel_interface::{InterfaceError, KernelInterface, explain};
use crate::sys::packet::{BATCH, Instruction, attach_filter, bind, join_station, receive, send};
use crate::sys::socket_option;
use crate::virtio::{self, FRAME, HEADER, LARGEST_FRAME, LARGEST_PACKET};
use crate::wait::Readiness;
use linerate_stack::{
    Capabilities, FrameSource, LentFrame, Link, LinkError, Medium, RxFrame, TxFrame,
};
use linerate_units::Clock;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, sendmsg, socket_with,
};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use thiserror::Error;

/// `PACKET_IGNORE_OUTGOING`: what this machine sends out there is not shown to us.
const IGNORE_OUTGOING: i32 = 23;
/// Bytes of frames that wait to be received; as the kernel counts, a small frame is a page.
const QUEUE_BYTES: i32 = 8 << 20;

/// Which interface is to be shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketConfig {
    /// Its name.
    pub interface: String,
    /// The station that we are there; `None` for the interface's own.
    pub mac: Option<[u8; 6]>,
    /// Whether we send super-frames, and leave checksums to the interface. Without, each frame that we send is one
    /// that a wire could carry.
    pub offloads: bool,
    /// Whether frames go past the interface's queueing discipline, to the driver itself. A driver that has no room
    /// then loses them.
    pub bypass_queue: bool,
}

impl PacketConfig {
    /// The interface called `name`, as its own station, with offloads.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { interface: name.into(), mac: None, offloads: true, bypass_queue: true }
    }
}

/// A link over an interface that the kernel has as well.
#[derive(Debug)]
pub struct PacketLink {
    socket: OwnedFd,
    interface: KernelInterface,
    mac: [u8; 6],
    capabilities: Capabilities,
    /// What arrived last, behind its header; what a host has kept.
    arrivals: Arrivals,
    departures: Vec<Leaving>,
    /// Frames of `departures` that were filled and not sent: from the first of these to before the second.
    waiting: (usize, usize),
    dropped: u64,
    refused: u64,
    malformed: u64,
}

/// A frame that leaves.
#[derive(Debug)]
struct Leaving {
    memory: Box<[u8]>,
    length: usize,
}

impl PacketLink {
    /// Opens the interface, which must be there. Whether it is up is for its owner to decide: until then nothing
    /// passes.
    ///
    /// # Errors
    /// [`PacketError`], which says what is missing and how to get it.
    pub fn open(config: &PacketConfig) -> Result<Self, PacketError> {
        let interface = KernelInterface::named(&config.interface)?;
        let state = interface.state()?;
        let own = interface.station()?;
        let mac = config.mac.unwrap_or(own);
        let socket = open_socket()?;
        let system = |what| {
            move |error: io::Error| PacketError::System {
                what,
                errno: error.raw_os_error().unwrap_or(0),
            }
        };
        set(&socket, IGNORE_OUTGOING, 1).map_err(system("leave out what leaves"))?;
        set(&socket, libc::PACKET_QDISC_BYPASS, i32::from(config.bypass_queue))
            .map_err(system("go past the queue"))?;
        set(&socket, libc::PACKET_VNET_HDR, 1).map_err(system("be told of checksums"))?;
        widen_queue(&socket);
        attach_filter(&socket, &filter(mac)).map_err(system("filter what arrives"))?;
        bind(&socket, interface.index()).map_err(system("bind to the interface"))?;
        if mac != own {
            join_station(&socket, interface.index(), mac).map_err(system("be another station"))?;
        }
        let mtu = usize::try_from(state.mtu.count()).unwrap_or(usize::MAX).min(LARGEST_PACKET);
        Ok(Self::over(socket, interface, mac, mtu, config.offloads))
    }

    /// Whether this process may open packet sockets at all.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn probe() -> Result<(), PacketError> {
        open_socket().map(drop)
    }

    fn over(
        socket: OwnedFd,
        interface: KernelInterface,
        mac: [u8; 6],
        mtu: usize,
        offloads: bool,
    ) -> Self {
        let offloads = virtio::offloads(offloads);
        let capabilities = Capabilities { offloads, ..Capabilities::new(Medium::Ethernet, mtu) };
        let room = FRAME + capabilities.room() + 4;
        let leaving = || Leaving { memory: vec![0; room].into(), length: 0 };
        Self {
            socket,
            interface,
            mac,
            capabilities,
            arrivals: Arrivals::new(FRAME + LARGEST_FRAME, BATCH),
            departures: (0..BATCH).map(|_| leaving()).collect(),
            waiting: (0, 0),
            dropped: 0,
            refused: 0,
            malformed: 0,
        }
    }

    /// The interface.
    #[must_use]
    pub const fn interface(&self) -> &KernelInterface {
        &self.interface
    }

    /// The station that we are there.
    #[must_use]
    pub const fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Frames that arrived faster than they were received, and were lost (`PACKET_STATISTICS`).
    pub fn dropped(&mut self) -> u64 {
        // struct tpacket_stats: packets and drops since it was last read.
        let mut counted = [0; 8];
        let read = socket_option::get(
            &self.socket,
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            &mut counted,
        );
        if read.is_ok() {
            let [.., a, b, c, d] = counted;
            self.dropped += u64::from(u32::from_ne_bytes([a, b, c, d]));
        }
        self.dropped
    }

    /// Frames that were lost because the driver or the system had no room for them.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Frames that were dropped because the kernel has said of them what cannot be, or what we do not know.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Sends what waits. False if some of it has to wait longer.
    fn depart(&mut self) -> Result<bool, LinkError> {
        while self.waiting.0 < self.waiting.1 {
            let frames = self.departures[self.waiting.0..self.waiting.1].iter();
            let frames = frames.map(|frame| &frame.memory[HEADER..FRAME + frame.length]);
            match leave(|| send(&self.socket, frames.clone())) {
                Departure::Left(sent) => self.waiting.0 += sent,
                Departure::Again => return Ok(false),
                Departure::Refused => {
                    self.waiting.0 += 1;
                    self.refused += 1;
                }
                Departure::Failed(errno) => {
                    self.waiting = (0, 0);
                    return Err(explain("send a frame", errno.raw_os_error()));
                }
            }
        }
        self.waiting = (0, 0);
        Ok(true)
    }

    /// Has the frame at the end of those that wait, of which `rest` is to follow, leave from where it is, behind the
    /// others. If there is no room for all, what is left waits whole.
    fn depart_with(&mut self, rest: [&[u8]; 2]) -> Result<(), LinkError> {
        let place = self.waiting.1 - 1;
        self.waiting.1 = place;
        let is_first = self.depart()?;
        let last = &mut self.departures[place];
        if is_first {
            let parts =
                [&last.memory[HEADER..FRAME + last.length], rest[0], rest[1]].map(IoSlice::new);
            let mut nothing_else = SendAncillaryBuffer::default();
            match leave(|| sendmsg(&self.socket, &parts, &mut nothing_else, SendFlags::DONTWAIT)) {
                Departure::Left(_) => return Ok(()),
                Departure::Again => self.waiting = (place, place),
                Departure::Refused => {
                    self.refused += 1;
                    return Ok(());
                }
                Departure::Failed(errno) => {
                    return Err(explain("send a frame", errno.raw_os_error()));
                }
            }
        }
        for part in rest {
            let end = last.length + part.len();
            last.memory[FRAME + last.length..FRAME + end].copy_from_slice(part);
            last.length = end;
        }
        self.waiting.1 = place + 1;
        Ok(())
    }
}

impl Link for PacketLink {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        let mut received = 0;
        let mut lengths = [0; BATCH];
        while received < budget {
            let wanted = (budget - received).min(BATCH);
            // The kernel writes from the header's place on.
            let came = match receive(&self.socket, self.arrivals.next(wanted), HEADER, &mut lengths)
            {
                Ok(came) => came,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(explain("receive a frame", errno.raw_os_error())),
            };
            let now = MonotonicClock.now();
            for (place, &length) in lengths.iter().enumerate().take(came) {
                let memory = self.arrivals.memory(place);
                match virtio::arrived(memory, length) {
                    Some(frame) => {
                        on_frame(RxFrame { arrived: now, memory: Some(memory), ..frame })
                    }
                    None => self.malformed += 1,
                }
            }
            received += came;
            if came < wanted {
                break;
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
        let mut more = true;
        while self.depart()? && more && sent < budget {
            while self.waiting.1 < BATCH.min(budget - sent) {
                let Leaving { memory, length } = &mut self.departures[self.waiting.1];
                let Some(frame) = fill(&mut memory[FRAME..]) else {
                    more = false;
                    break;
                };
                *length = frame.length.min(memory.len() - FRAME);
                virtio::write_header(&frame, memory);
                self.waiting.1 += 1;
            }
            sent += self.waiting.1;
        }
        Ok(sent)
    }

    /// What is lent goes to the kernel from where it is, alone; whole frames go in batches. Without offloads nothing can
    /// be lent.
    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        if !self.capabilities.offloads.checksums {
            return self.transmit(budget, |frame| source.fill(frame));
        }
        let mut sent = 0;
        let mut more = true;
        while self.depart()? && more && sent < budget {
            while self.waiting.1 < BATCH && sent < budget {
                let Leaving { memory, length } = &mut self.departures[self.waiting.1];
                let Some(LentFrame { frame, rest }) = source.lend(&mut memory[FRAME..]) else {
                    more = false;
                    break;
                };
                *length = frame.length.min(memory.len() - FRAME);
                virtio::write_header(&frame, memory);
                self.waiting.1 += 1;
                sent += 1;
                if !rest[0].is_empty() {
                    self.depart_with(rest)?;
                    break;
                }
            }
        }
        Ok(sent)
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
}

impl Readiness for PacketLink {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn wants_room(&self) -> bool {
        self.waiting.1 > 0
    }
}

fn open_socket() -> Result<OwnedFd, PacketError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Without a protocol nothing arrives before the socket is bound.
    socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None).map_err(|errno| match errno {
        Errno::PERM | Errno::ACCESS => PacketError::Forbidden,
        Errno::AFNOSUPPORT => PacketError::NoPacketSockets,
        _ => PacketError::System { what: "open a packet socket", errno: errno.raw_os_error() },
    })
}

fn set(socket: &OwnedFd, name: i32, value: i32) -> io::Result<()> {
    socket_option::set_integer(socket, libc::SOL_PACKET, name, value)
}

/// As wide as the system allows: what finds no room is counted, and is no reason to give up.
fn widen_queue(socket: &OwnedFd) {
    let set = |name| socket_option::set_integer(socket, libc::SOL_SOCKET, name, QUEUE_BYTES);
    let _ = set(libc::SO_RCVBUFFORCE).or_else(|_| set(libc::SO_RCVBUF));
    let _ = set(libc::SO_SNDBUFFORCE).or_else(|_| set(libc::SO_SNDBUF));
}

// Instructions of a socket filter (linux/filter.h).
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
const ANSWER: u16 = 0x06;
/// `SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT`: a tag that the kernel has taken out of the frame.
const TAG_PRESENT: u32 = 0xffff_f000 + 48;

/// IPv4 and ARP without a tag, for our station or for a group: all else is the kernel's alone.
fn filter([a, b, c, d, e, f]: [u8; 6]) -> [Instruction; 13] {
    let (first, last) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([0, 0, e, f]));
    [
        (LOAD_WORD, 0, 0, TAG_PRESENT),
        (IF_EQUAL, 0, 10, 0),
        (LOAD_HALF, 0, 0, 12),
        (IF_EQUAL, 1, 0, 0x0800),
        (IF_EQUAL, 0, 7, 0x0806),
        (LOAD_BYTE, 0, 0, 0),
        (IF_ANY_BIT, 4, 0, 1),
        (LOAD_WORD, 0, 0, 0),
        (IF_EQUAL, 0, 3, first),
        (LOAD_HALF, 0, 0, 4),
        (IF_EQUAL, 0, 1, last),
        (ANSWER, 0, 0, u32::MAX),
        (ANSWER, 0, 0, 0),
    ]
}

/// Why there is no link over a packet socket. The machine or the person who runs it can mend it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PacketError {
    /// The process may not.
    #[error(
        "no permission to open a packet socket: run as root, or grant it (`setcap cap_net_raw+ep` to the program)"
    )]
    Forbidden,
    /// The kernel was built without them.
    #[error("this kernel has no packet sockets: load the module (`modprobe af_packet`)")]
    NoPacketSockets,
    /// There is no such interface, it is no Ethernet, or it cannot be asked.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The system refused for another reason.
    #[error("the packet socket could not {what} (error {errno}: {})", io::Error::from_raw_os_error(*errno))]
    System {
        /// What was to be done.
        what: &'static str,
        /// The error number of the system.
        errno: i32,
    },
}

#[cfg(test)]
mod tests;
