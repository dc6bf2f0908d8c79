//! The headers of a connection's previous packet, which both endpoints of a serial line keep.

use crate::{Ipv4Header, Sum, TcpFlags, TcpHeader};

/// The length of the longest IP and TCP headers together, in bytes.
const ROOM: usize = Ipv4Header::MAX_LENGTH + TcpHeader::MAX_LENGTH;

/// The lengths of a packet's headers in bytes: `ip` for the IP header, `headers` for IP and TCP
/// headers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) ip: usize,
    pub(super) headers: usize,
}

impl Shape {
    /// Returns the lengths of the headers of `packet`. Returns `None` if the packet is a fragment,
    /// if its total length is wrong, or if its protocol field is not `protocol`.
    pub(super) fn of(packet: &[u8], protocol: u8) -> Option<Self> {
        let fixed: &[u8; Ipv4Header::LENGTH] = packet.first_chunk()?;
        let ip = usize::from(fixed[0] & 0x0f) * 4;
        let length = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        let is_fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0;
        let right = fixed[0] >> 4 == 4 && ip >= Ipv4Header::LENGTH && fixed[9] == protocol;
        if !right || is_fragment || length != packet.len() {
            return None;
        }
        let tcp = usize::from(*packet.get(ip + 12)? >> 4) * 4;
        let headers = ip + tcp;
        (tcp >= TcpHeader::LENGTH && headers <= length).then_some(Self { ip, headers })
    }
}

/// The IP and TCP headers of the previous packet of a connection.
#[derive(Clone, Debug)]
pub(super) struct Saved {
    bytes: [u8; ROOM],
    shape: Shape,
}

impl Saved {
    /// Copies the headers of `packet`, whose lengths are `shape`.
    pub(super) fn new(packet: &[u8], shape: Shape) -> Self {
        let mut bytes = [0; ROOM];
        bytes[..shape.headers].copy_from_slice(&packet[..shape.headers]);
        Self { bytes, shape }
    }

    pub(super) const fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the IP and TCP headers as bytes.
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.shape.headers]
    }

    /// Returns the 16-bit field at offset `at` of the IP header.
    pub(super) fn ip_half(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    pub(super) fn set_ip_half(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

    /// Returns the 16-bit field at offset `at` of the TCP header.
    pub(super) fn tcp_half(&self, at: usize) -> u16 {
        self.ip_half(self.shape.ip + at)
    }

    pub(super) fn set_tcp_half(&mut self, at: usize, value: u16) {
        self.set_ip_half(self.shape.ip + at, value);
    }

    pub(super) fn tcp_word(&self, at: usize) -> u32 {
        u32::from(self.tcp_half(at)) << 16 | u32::from(self.tcp_half(at + 2))
    }

    /// Adds `change` to the 32-bit field at offset `at` of the TCP header.
    pub(super) fn add_to_tcp_word(&mut self, at: usize, change: u16) {
        let sum = self.tcp_word(at).wrapping_add(u32::from(change));
        let at = self.shape.ip + at;
        self.bytes[at..at + 4].copy_from_slice(&sum.to_be_bytes());
    }

    /// Returns the number of data bytes in the packet.
    pub(super) fn data(&self) -> u16 {
        // The total length cannot be less than the length of the headers, because `Shape::of` has
        // checked it.
        self.ip_half(2).saturating_sub(u16::try_from(self.shape.headers).unwrap_or(u16::MAX))
    }

    pub(super) fn has_flag(&self, flag: TcpFlags) -> bool {
        self.tcp_half(12) & flag.bits() != 0
    }

    pub(super) fn set_flag(&mut self, flag: TcpFlags, on: bool) {
        let flags = self.tcp_half(12) & !flag.bits();
        self.set_tcp_half(12, if on { flags | flag.bits() } else { flags });
    }

    /// Sets the total length of a packet with `data` bytes of data, and updates the IP checksum.
    /// Returns false if the packet would be longer than 65,535 bytes.
    pub(super) fn set_data(&mut self, data: usize) -> bool {
        let Ok(length) = u16::try_from(self.shape.headers + data) else { return false };
        self.set_ip_half(2, length);
        self.set_ip_half(10, 0);
        let sum = Sum::of(&self.bytes[..self.shape.ip]).finish();
        self.set_ip_half(10, sum);
        true
    }
}
