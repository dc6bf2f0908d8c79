//! A packet socket: a link over an interface that the kernel continues to use.
//!
//! The host has its own MAC address, or uses that of the interface. It receives the frames to this
//! address and to group addresses. The kernel receives copies of them. If the kernel also has the
//! host's IP address, both reply. If it does not have this address, it drops the packets, unless it
//! forwards packets.
//!
//! Each frame has a virtio-net header, which describes its offloads (`PACKET_VNET_HDR`). Received
//! frames can be GRO frames of up to 64 KiB or have partial checksums, because NICs coalesce frames
//! and veth pairs omit checksums. [`PacketConfig::offloads`] does not change that. If it is true,
//! the host also sends GSO frames, which the kernel segments if the interface cannot.

use crate::MonotonicClock;
use crate::kernel_interface::{InterfaceError, KernelInterface, explain};
use crate::send_outcome::{SendOutcome, send_uninterrupted};
use crate::shared_buffers::SharedBuffers;
use crate::sys::packet::{
    BATCH, Instruction, add_unicast_address, attach_filter, bind, receive, send,
};
use crate::sys::socket_option;
use crate::virtio::{self, FRAME_OFFSET, HEADER_OFFSET, LARGEST_FRAME, LARGEST_PACKET};
use crate::vlan::Vlan;
use crate::wait::Readiness;
use linerate_stack::{
    Capabilities, FrameSource, Link, LinkError, Medium, RxFrame, TxFrame, ZeroCopyFrame,
};
use linerate_units::{Clock, Instant};
use linerate_wire::VlanTag;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, sendmsg, socket_with,
};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use thiserror::Error;

/// Socket option `PACKET_IGNORE_OUTGOING`: the socket does not receive the frames that this machine
/// itself sends on the interface.
const IGNORE_OUTGOING: i32 = 23;
/// Requested size of the socket's receive queue and of its send queue, in bytes. For each frame,
/// even a short one, the kernel counts at least a page. So the size must be much larger than the
/// sum of the frame lengths.
const QUEUE_BYTES: i32 = 8 << 20;

/// The configuration of a packet socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketConfig {
    /// The name of the interface.
    pub interface: String,
    /// The MAC address of the host, or `None` for the MAC address of the interface.
    pub mac: Option<[u8; 6]>,
    /// Whether the host sends GSO frames, and leaves the computation of checksums to the interface.
    /// If it does not, every sent frame is complete, so a NIC without offloads could send it
    /// unchanged.
    pub offloads: bool,
    /// The VLAN in which the host is. The host receives only frames of this VLAN, without their
    /// tags. With `None`, it receives only untagged frames.
    pub vlan: Option<VlanTag>,
    /// Whether sent frames bypass the queue discipline of the interface. If they do, the driver
    /// drops frames for which it has no room.
    pub bypass_queue: bool,
}

impl PacketConfig {
    /// Creates a configuration for the interface `name` and for its MAC address. Offloads are
    /// enabled, and frames bypass the queue discipline.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { interface: name.into(), mac: None, offloads: true, vlan: None, bypass_queue: true }
    }
}

/// A link over an interface that the kernel continues to use.
#[derive(Debug)]
pub struct PacketLink {
    socket: OwnedFd,
    interface: KernelInterface,
    mac: [u8; 6],
    capabilities: Capabilities,
    /// Buffers of received frames, each with its virtio-net header in front.
    receive_buffers: SharedBuffers,
    outgoing: Vec<OutgoingFrame>,
    /// The frames that wait to be sent, as a range of indices into `outgoing`: first index, and
    /// end.
    waiting: (usize, usize),
    dropped: u64,
    refused: u64,
    malformed: u64,
}

/// A buffer with a frame to be sent, and the length of that frame.
#[derive(Debug)]
struct OutgoingFrame {
    memory: Box<[u8]>,
    length: usize,
}

impl PacketLink {
    /// Opens the interface, which must exist. Frames pass only while it is up.
    ///
    /// # Errors
    /// [`PacketError`], which names what is missing, and the remedy.
    pub fn open(config: &PacketConfig) -> Result<Self, PacketError> {
        let interface = KernelInterface::named(&config.interface)?;
        let state = interface.state()?;
        let own = interface.mac_address()?;
        let mac = config.mac.unwrap_or(own);
        let socket = open_socket()?;
        let system = |what| {
            move |error: io::Error| PacketError::System {
                what,
                errno: error.raw_os_error().unwrap_or(0),
            }
        };
        set(&socket, IGNORE_OUTGOING, 1).map_err(system("ignore outgoing frames"))?;
        set(&socket, libc::PACKET_QDISC_BYPASS, i32::from(config.bypass_queue))
            .map_err(system("bypass the queue"))?;
        set(&socket, libc::PACKET_VNET_HDR, 1).map_err(system("enable virtio-net headers"))?;
        widen_queue(&socket);
        attach_filter(&socket, &filter(mac, config.vlan))
            .map_err(system("filter received frames"))?;
        bind(&socket, interface.index()).map_err(system("bind to the interface"))?;
        if mac != own {
            add_unicast_address(&socket, interface.index(), mac)
                .map_err(system("receive for another MAC address"))?;
        }
        let mtu = usize::try_from(state.mtu.count()).unwrap_or(usize::MAX).min(LARGEST_PACKET);
        Ok(Self::over(socket, interface, mac, mtu, config.offloads))
    }

    /// Opens the interface for a host in the VLAN of `tag`. The link adds this tag to the frames
    /// that the host sends. It receives only frames of this VLAN, and removes their tags.
    ///
    /// # Errors
    /// [`PacketError`], which names what is missing, and the remedy.
    pub fn open_vlan(config: &PacketConfig, tag: VlanTag) -> Result<Vlan<Self>, PacketError> {
        let link = Self::open(&PacketConfig { vlan: Some(tag), ..config.clone() })?;
        Ok(Vlan::over_filter(link, tag))
    }

    /// Checks whether this process may open packet sockets.
    ///
    /// # Errors
    /// [`PacketError`] if it may not, or if the kernel has no packet sockets.
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
        let tag_room = VlanTag::LENGTH;
        let capabilities =
            Capabilities { offloads, tag_room, ..Capabilities::new(Medium::Ethernet, mtu) };
        let room = FRAME_OFFSET + capabilities.room() + tag_room;
        let outgoing_frame = || OutgoingFrame { memory: vec![0; room].into(), length: 0 };
        Self {
            socket,
            interface,
            mac,
            capabilities,
            receive_buffers: SharedBuffers::new(FRAME_OFFSET + LARGEST_FRAME, BATCH),
            outgoing: (0..BATCH).map(|_| outgoing_frame()).collect(),
            waiting: (0, 0),
            dropped: 0,
            refused: 0,
            malformed: 0,
        }
    }

    /// Returns the kernel's interface that the link uses.
    #[must_use]
    pub const fn interface(&self) -> &KernelInterface {
        &self.interface
    }

    /// Returns the MAC address of the host.
    #[must_use]
    pub const fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Returns the number of received frames that were lost because the queue was full
    /// (`PACKET_STATISTICS`).
    pub fn dropped(&mut self) -> u64 {
        // The fields of `struct tpacket_stats`: packets and drops since the last query.
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

    /// Returns the number of sent frames that were lost, because the driver or the kernel had no
    /// room for them, or because the kernel rejected their length.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the number of received frames that were dropped because of an invalid or unknown
    /// virtio-net header.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Sends the frames that wait in `outgoing`. Returns false if some of them still wait, because
    /// the kernel has no room for them.
    fn flush(&mut self) -> Result<bool, LinkError> {
        while self.waiting.0 < self.waiting.1 {
            let frames = self.outgoing[self.waiting.0..self.waiting.1].iter();
            let frames =
                frames.map(|frame| &frame.memory[HEADER_OFFSET..FRAME_OFFSET + frame.length]);
            match send_uninterrupted(|| send(&self.socket, frames.clone())) {
                SendOutcome::Sent(sent) => self.waiting.0 += sent,
                SendOutcome::WouldBlock => return Ok(false),
                SendOutcome::Dropped => {
                    self.waiting.0 += 1;
                    self.refused += 1;
                }
                SendOutcome::Failed(errno) => {
                    self.waiting = (0, 0);
                    return Err(explain("send a frame", errno.raw_os_error()));
                }
            }
        }
        self.waiting = (0, 0);
        Ok(true)
    }

    /// Sends the waiting frames. The final one is only the start of a frame: the borrowed data
    /// `rest` follows it. So a separate system call sends this frame together with `rest`. If the
    /// kernel has no room, `rest` is copied behind the start of the frame, and the frame continues
    /// to wait.
    fn send_gathered(&mut self, rest: [&[u8]; 2]) -> Result<(), LinkError> {
        let place = self.waiting.1 - 1;
        self.waiting.1 = place;
        let is_first = self.flush()?;
        let last = &mut self.outgoing[place];
        if is_first {
            let parts = [&last.memory[HEADER_OFFSET..FRAME_OFFSET + last.length], rest[0], rest[1]]
                .map(IoSlice::new);
            let mut nothing_else = SendAncillaryBuffer::default();
            match send_uninterrupted(|| {
                sendmsg(&self.socket, &parts, &mut nothing_else, SendFlags::DONTWAIT)
            }) {
                SendOutcome::Sent(_) => return Ok(()),
                SendOutcome::WouldBlock => self.waiting = (place, place),
                SendOutcome::Dropped => {
                    self.refused += 1;
                    return Ok(());
                }
                SendOutcome::Failed(errno) => {
                    return Err(explain("send a frame", errno.raw_os_error()));
                }
            }
        }
        for part in rest {
            let end = last.length + part.len();
            last.memory[FRAME_OFFSET + last.length..FRAME_OFFSET + end].copy_from_slice(part);
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
            // The kernel writes from the offset of the virtio-net header on. The frame follows the
            // header without a gap, and so begins at the offset of the frame.
            let came = match receive(
                &self.socket,
                self.receive_buffers.next(wanted),
                HEADER_OFFSET,
                &mut lengths,
            ) {
                Ok(came) => came,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(explain("receive a frame", errno.raw_os_error())),
            };
            let now = MonotonicClock.now();
            for (place, &length) in lengths.iter().enumerate().take(came) {
                let memory = self.receive_buffers.memory(place);
                match virtio::arrived(memory, length) {
                    Some(frame) => {
                        on_frame(RxFrame { arrived: now, memory: Some(memory), ..frame });
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
        while self.flush()? && more && sent < budget {
            while self.waiting.1 < BATCH.min(budget - sent) {
                let OutgoingFrame { memory, length } = &mut self.outgoing[self.waiting.1];
                let Some(frame) = fill(&mut memory[FRAME_OFFSET..]) else {
                    more = false;
                    break;
                };
                *length = frame.length.min(memory.len() - FRAME_OFFSET);
                virtio::write_header(&frame, memory);
                self.waiting.1 += 1;
            }
            sent += self.waiting.1;
        }
        Ok(sent)
    }

    /// Sends the frames of `source`. A frame with borrowed data is sent by a separate system call,
    /// which reads the data where it is, so nothing is copied. Frames without borrowed data are
    /// sent in batches. Without offloads, the source copies all data into the frames.
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
        while self.flush()? && more && sent < budget {
            while self.waiting.1 < BATCH && sent < budget {
                let OutgoingFrame { memory, length } = &mut self.outgoing[self.waiting.1];
                let Some(ZeroCopyFrame { frame, rest }) =
                    source.fill_zero_copy(&mut memory[FRAME_OFFSET..])
                else {
                    more = false;
                    break;
                };
                *length = frame.length.min(memory.len() - FRAME_OFFSET);
                virtio::write_header(&frame, memory);
                self.waiting.1 += 1;
                sent += 1;
                if !rest[0].is_empty() {
                    self.send_gathered(rest)?;
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

fn open_socket() -> Result<OwnedFd, PacketError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // `None` selects protocol 0, for which the socket receives no frames. Frames arrive only after
    // `bind` has set the interface and a protocol.
    socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None).map_err(|errno| match errno {
        Errno::PERM | Errno::ACCESS => PacketError::Forbidden,
        Errno::AFNOSUPPORT => PacketError::NoPacketSockets,
        _ => PacketError::System { what: "open a packet socket", errno: errno.raw_os_error() },
    })
}

fn set(socket: &OwnedFd, name: i32, value: i32) -> io::Result<()> {
    socket_option::set_integer(socket, libc::SOL_PACKET, name, value)
}

/// Requests larger queues for the socket. If the system grants less or refuses, the link still
/// works, but loses more of the frames that arrive in bursts. Lost frames are counted.
fn widen_queue(socket: &OwnedFd) {
    let set = |name| socket_option::set_integer(socket, libc::SOL_SOCKET, name, QUEUE_BYTES);
    let _ = set(libc::SO_RCVBUFFORCE).or_else(|_| set(libc::SO_RCVBUF));
    let _ = set(libc::SO_SNDBUFFORCE).or_else(|_| set(libc::SO_SNDBUF));
}

// Opcodes of a classic BPF socket filter (linux/filter.h).
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const AND: u16 = 0x54;
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
const ANSWER: u16 = 0x06;
/// Load address `SKF_AD_OFF + SKF_AD_VLAN_TAG`: priority and ID of the VLAN tag.
const TAG: u32 = 0xffff_f000 + 44;
/// Load address `SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT`: whether the frame had a VLAN tag, which the
/// kernel has removed from the frame.
const TAG_PRESENT: u32 = 0xffff_f000 + 48;

/// Returns a filter that accepts IPv4, IPv6 and ARP frames to this MAC address or to any group
/// address. With a `vlan`, it accepts only frames of this VLAN, otherwise only untagged frames.
fn filter([a, b, c, d, e, f]: [u8; 6], vlan: Option<VlanTag>) -> [Instruction; 17] {
    let (first, last) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([0, 0, e, f]));
    let (present, mask, id) = match vlan {
        None => (0, 0, 0),
        Some(tag) => (1, u32::from(VlanTag::MAX_ID), tag.id().into()),
    };
    [
        (LOAD_WORD, 0, 0, TAG_PRESENT),
        (IF_EQUAL, 0, 14, present),
        (LOAD_WORD, 0, 0, TAG),
        (AND, 0, 0, mask),
        (IF_EQUAL, 0, 11, id),
        (LOAD_HALF, 0, 0, 12),
        (IF_EQUAL, 2, 0, 0x0800),
        (IF_EQUAL, 1, 0, 0x86dd),
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

/// The reason why a packet socket cannot be opened, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The process lacks the permission.
    #[error(
        "no permission to open a packet socket: run as root, or grant it (`setcap cap_net_raw+ep` \
         to the program)"
    )]
    Forbidden,
    /// The kernel has no support for packet sockets.
    #[error("this kernel has no packet sockets: load the module (`modprobe af_packet`)")]
    NoPacketSockets,
    /// The interface does not exist, is not Ethernet, or cannot be queried.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// Another error of the system.
    #[error(
        "the packet socket could not {what} (error {errno}: {})",
        io::Error::from_raw_os_error(*errno)
    )]
    System {
        /// The failed operation.
        what: &'static str,
        /// The error number of the system.
        errno: i32,
    },
}

#[cfg(test)]
mod tests;
