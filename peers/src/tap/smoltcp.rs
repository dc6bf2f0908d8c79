//! smoltcp on a TAP device, with a driver that is part of this program.
//!
//! The driver replaces smoltcp's own, which has no offloads and allocates memory for each frame. As
//! linerate's link does, it makes one system call for each frame, into or out of fixed memory.
//!
//! On a device with offloads, smoltcp must send and receive GSO frames. The driver therefore tells
//! smoltcp that the MTU is 65,535 bytes and that the device computes checksums. It also raises the
//! MSS in the peer's SYN to fit this MTU. The virtio-net header asks the kernel to segment the GSO
//! frames.

use super::ends::sentence;
use super::{Device, Hands, OnTap, take_up};
use crate::pattern::Pattern;
use crate::work::{BATCH, BUFFER, SEGMENT};
use linerate_link::{Readiness, Tap, TapConfig};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{
    self, Checksum, ChecksumCapabilities, DeviceCapabilities, Medium, RxToken, TxToken,
};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;

/// Length of the virtio-net header in bytes.
const HEADER: usize = 10;
/// Length of the Ethernet, IP and TCP headers together in bytes, without options.
const HEADERS: usize = 14 + 20 + 20;
/// Length of the largest IP packet in bytes.
const LARGEST_PACKET: usize = 65_535;
/// The port before the first port that smoltcp uses. Each new connection has the next port.
const FIRST_PORT: u16 = 49_152;

/// A device for smoltcp: a TAP device with memory for one frame in each direction, and counters.
struct Driver {
    tap: Tap,
    /// Length in bytes of the virtio-net header in front of each frame; zero without offloads.
    header: usize,
    /// Largest IP packet in bytes that smoltcp may send.
    mtu: usize,
    /// Memory for the received frame, with its virtio-net header.
    arrived: Box<[u8]>,
    /// Memory for the frame to send, with its virtio-net header.
    leaving: Box<[u8]>,
    /// Number of frames sent, and number of frames received.
    frames: [u64; 2],
    /// Number of frames that may still be received in this turn.
    budget: usize,
}

/// A received frame without its virtio-net header.
struct Arrived<'a>(&'a [u8]);

/// A frame that smoltcp is about to send: the device, memory for the frame, and the counter of sent
/// frames.
struct Leaving<'a> {
    device: BorrowedFd<'a>,
    header: usize,
    memory: &'a mut [u8],
    sent: &'a mut u64,
}

impl phy::Device for Driver {
    type RxToken<'a> = Arrived<'a>;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived<'_>, Leaving<'_>)> {
        if self.budget == 0 {
            return None;
        }
        let length = rustix::io::read(self.tap.fd(), &mut *self.arrived).ok()?;
        self.budget -= 1;
        self.frames[1] += 1;
        let frame = self.arrived.get_mut(self.header..length)?;
        if self.header > 0 {
            allow_large_segments(frame);
        }
        let [sent, _] = &mut self.frames;
        let leaving =
            Leaving { device: self.tap.fd(), header: self.header, memory: &mut self.leaving, sent };
        Some((Arrived(frame), leaving))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaving<'_>> {
        let [sent, _] = &mut self.frames;
        Some(Leaving {
            device: self.tap.fd(),
            header: self.header,
            memory: &mut self.leaving,
            sent,
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.mtu + 14;
        if self.header > 0 {
            let mut checksums = ChecksumCapabilities::default();
            checksums.tcp = Checksum::None;
            capabilities.checksum = checksums;
        }
        capabilities
    }
}

impl RxToken for Arrived<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

impl TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let Self { device, header, memory, sent } = self;
        let result = write(&mut memory[header..header + length]);
        if header > 0 {
            let (before, frame) = memory.split_at_mut(HEADER);
            leave_to_the_kernel(before, &mut frame[..length]);
        }
        // The write fails if the device has no room. The error is ignored: the frame is lost, as on
        // a wire, and TCP retransmits its data.
        let _ = rustix::io::write(device, &memory[..header + length]);
        *sent += 1;
        result
    }
}

/// Returns whether a frame carries TCP over IPv4 without IP options.
fn is_tcp(frame: &[u8]) -> bool {
    frame.get(12..15) == Some(&[8, 0, 0x45]) && frame.get(23) == Some(&6) && frame.len() >= HEADERS
}

/// Prepares a frame for the kernel: writes its virtio-net header, and the sum over the
/// pseudo-header into the checksum field. The kernel completes the checksum, and segments frames of
/// more than 1,514 bytes.
fn leave_to_the_kernel(header: &mut [u8], frame: &mut [u8]) {
    header.fill(0);
    if !is_tcp(frame) {
        return;
    }
    let tcp = frame.len() - 34;
    let words =
        frame[26..34].chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum = words.sum::<u32>() + 6 + tcp as u32;
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    frame[50..52].copy_from_slice(&(folded as u16).to_be_bytes());
    header[0] = 1;
    header[6..8].copy_from_slice(&34_u16.to_ne_bytes());
    header[8..10].copy_from_slice(&16_u16.to_ne_bytes());
    if frame.len() > 1_514 {
        let headers = 34 + u16::from(frame[46] >> 4) * 4;
        header[1] = 1;
        header[2..4].copy_from_slice(&headers.to_ne_bytes());
        header[4..6].copy_from_slice(&(SEGMENT as u16).to_ne_bytes());
    }
}

/// Replaces the MSS in a SYN of the peer by the largest value. smoltcp then sends segments that are
/// larger than the MTU of the path, which leave as GSO frames.
fn allow_large_segments(frame: &mut [u8]) {
    let is_syn = is_tcp(frame) && frame[47] & 2 != 0;
    // The kernel puts the MSS option first in its SYN, at these offsets.
    if is_syn && frame.get(54..56) == Some(&[2, 4]) {
        frame[56..58].copy_from_slice(&((LARGEST_PACKET - 40) as u16).to_be_bytes());
    }
}

/// smoltcp on a TAP device, with one socket.
pub struct Smoltcp {
    interface: Interface,
    hands: Hands,
    driver: Driver,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    kernel: Ipv4Addr,
    port: u16,
}

impl Smoltcp {
    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }
}

impl OnTap for Smoltcp {
    fn version() -> String {
        "0.14.0; as shipped: no timestamps, no congestion control; a driver of this program's"
            .to_owned()
    }

    fn new(device: Device, hands: Hands) -> Result<Self, String> {
        let offloads = device == Device::Offloads;
        let tap = Tap::open(&TapConfig { offloads, ..TapConfig::default() }).map_err(sentence)?;
        take_up(tap.interface(), device)?;
        let [kernel, own] = device.addresses();
        let (header, mtu) = if offloads { (HEADER, LARGEST_PACKET) } else { (0, 1_500) };
        let memory = || vec![0; HEADER + LARGEST_PACKET + 18].into_boxed_slice();
        let (arrived, leaving) = (memory(), memory());
        let mut driver = Driver { tap, header, mtu, arrived, leaving, frames: [0; 2], budget: 0 };
        let mac = EthernetAddress([2, 0, 0, 0, 0, 2]);
        let mut interface = Interface::new(Config::new(mac.into()), &mut driver, Instant::now());
        interface.update_ip_addrs(|addresses| {
            let address = IpCidr::new(IpAddress::Ipv4(own), 24);
            addresses.push(address).expect("room for one address");
        });
        let mut sockets = SocketSet::new(Vec::new());
        let buffer = || SocketBuffer::new(vec![0; BUFFER]);
        let handle = sockets.add(Socket::new(buffer(), buffer()));
        Ok(Self { interface, hands, driver, sockets, handle, kernel, port: FIRST_PORT })
    }

    fn link(&self) -> BorrowedFd<'_> {
        self.driver.tap.fd()
    }

    fn connect(&mut self, port: u16) -> Result<(), String> {
        self.port += 1;
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        let remote = (IpAddress::Ipv4(self.kernel), port);
        socket.connect(self.interface.context(), remote, self.port).map_err(sentence)
    }

    fn is_open(&mut self) -> bool {
        self.socket().state() == State::Established
    }

    fn turn(&mut self) -> Result<(), String> {
        self.driver.budget = BATCH;
        self.interface.poll(Instant::now(), &mut self.driver, &mut self.sockets);
        Ok(())
    }

    fn write(
        &mut self,
        pattern: &Pattern,
        place: u64,
        left: u64,
        verify: bool,
    ) -> Result<usize, String> {
        let piece = pattern.at(place, left);
        if self.hands == Hands::Copy {
            return self.socket().send_slice(piece).map_err(sentence);
        }
        let fill = |room: &mut [u8]| {
            let count = room.len().min(piece.len());
            if verify {
                room[..count].copy_from_slice(&piece[..count]);
            }
            (count, count)
        };
        self.socket().send(fill).map_err(sentence)
    }

    fn read(&mut self, into: &mut [u8], verify: bool) -> Result<usize, String> {
        let hands = self.hands;
        let socket = self.socket();
        if !socket.can_recv() {
            return Ok(0);
        }
        if hands == Hands::Copy {
            return socket.recv_slice(into).map_err(sentence);
        }
        let take = |bytes: &mut [u8]| {
            let count = bytes.len().min(into.len());
            if verify {
                into[..count].copy_from_slice(&bytes[..count]);
            }
            (count, count)
        };
        socket.recv(take).map_err(sentence)
    }

    fn close(&mut self) -> Result<(), String> {
        self.socket().close();
        Ok(())
    }

    fn drop_connection(&mut self) {
        self.socket().abort();
    }

    fn frames(&self) -> [u64; 2] {
        self.driver.frames
    }
}
