//! The Address Resolution Protocol (RFC 826), which maps IPv4 addresses to MAC addresses.

use crate::layout::{half, octets, room, split_fixed};
use crate::{EtherType, MacAddress, Malformed};
use core::net::Ipv4Addr;

/// The operation of an ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArpOperation {
    /// A request for the MAC address of the target.
    Request,
    /// A reply to a request, or an announcement of the sender's addresses that no request preceded.
    Reply,
}

/// An ARP packet for IPv4 on Ethernet. Requests and replies both contain the sender's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpPacket {
    /// The operation: request or reply.
    pub operation: ArpOperation,
    /// The MAC address of the sender.
    pub sender_mac: MacAddress,
    /// The IPv4 address of the sender. It is [unspecified](Ipv4Addr::UNSPECIFIED) in a probe (RFC
    /// 5227), which receivers must not add to their caches.
    pub sender_ip: Ipv4Addr,
    /// In a reply, the MAC address of the host that sent the request; unused in a request.
    pub target_mac: MacAddress,
    /// In a request, the IPv4 address to be resolved; in a reply, the address of the host that sent
    /// the request.
    pub target_ip: Ipv4Addr,
}

const ETHERNET: u16 = 1;
const REQUEST: u16 = 1;
const REPLY: u16 = 2;

impl ArpPacket {
    /// The length of an ARP packet in bytes.
    pub const LENGTH: usize = 28;

    /// Creates a request for the MAC address of `target_ip`.
    #[must_use]
    pub const fn request(sender_mac: MacAddress, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Self {
        let operation = ArpOperation::Request;
        Self { operation, sender_mac, sender_ip, target_mac: MacAddress::ZERO, target_ip }
    }

    /// Creates the reply to this request, saying that `mac` has the requested address.
    #[must_use]
    pub const fn reply(&self, mac: MacAddress) -> Self {
        Self {
            operation: ArpOperation::Reply,
            sender_mac: mac,
            sender_ip: self.target_ip,
            target_mac: self.sender_mac,
            target_ip: self.sender_ip,
        }
    }

    /// Parses the packet at the start of `bytes`, and ignores padding after it.
    ///
    /// # Errors
    /// [`Malformed`] if `bytes` is too short, or the packet is neither a request nor a reply for
    /// IPv4 on Ethernet.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let (fixed, _) = split_fixed::<{ Self::LENGTH }>("ARP packet", bytes)?;
        expect("hardware type", half(fixed, 0), ETHERNET)?;
        expect("protocol type", half(fixed, 2), EtherType::IPV4.number())?;
        expect("address lengths", half(fixed, 4), 0x0604)?;
        let operation = match half(fixed, 6) {
            REQUEST => ArpOperation::Request,
            REPLY => ArpOperation::Reply,
            other => return Err(field("operation", other)),
        };
        Ok(Self {
            operation,
            sender_mac: MacAddress::new(octets(fixed, 8)),
            sender_ip: Ipv4Addr::from_octets(octets(fixed, 14)),
            target_mac: MacAddress::new(octets(fixed, 18)),
            target_ip: Ipv4Addr::from_octets(octets(fixed, 24)),
        })
    }

    /// Writes the packet to the start of `bytes` and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`ArpPacket::LENGTH`].
    pub fn emit(&self, bytes: &mut [u8]) -> usize {
        let fixed = room::<{ Self::LENGTH }>(bytes);
        let operation = match self.operation {
            ArpOperation::Request => REQUEST,
            ArpOperation::Reply => REPLY,
        };
        fixed[0..2].copy_from_slice(&ETHERNET.to_be_bytes());
        fixed[2..4].copy_from_slice(&EtherType::IPV4.number().to_be_bytes());
        fixed[4..6].copy_from_slice(&[6, 4]);
        fixed[6..8].copy_from_slice(&operation.to_be_bytes());
        fixed[8..14].copy_from_slice(&self.sender_mac.octets());
        fixed[14..18].copy_from_slice(&self.sender_ip.octets());
        fixed[18..24].copy_from_slice(&self.target_mac.octets());
        fixed[24..28].copy_from_slice(&self.target_ip.octets());
        Self::LENGTH
    }
}

fn expect(name: &'static str, value: u16, expected: u16) -> Result<(), Malformed> {
    if value == expected { Ok(()) } else { Err(field(name, value)) }
}

fn field(field: &'static str, value: u16) -> Malformed {
    Malformed::Field { what: "ARP packet", field, value: value.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);
    const OTHER_MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 2]);
    const IP: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const OTHER_IP: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

    #[test]
    fn a_request_has_the_layout_of_rfc_826() {
        let mut bytes = [0xff; 46];
        assert_eq!(ArpPacket::request(MAC, IP, OTHER_IP).emit(&mut bytes), 28);
        let expected: [u8; 28] = [
            0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2,
        ];
        assert_eq!(bytes[..28], expected);
        assert_eq!(ArpPacket::parse(&bytes), Ok(ArpPacket::request(MAC, IP, OTHER_IP)));
    }

    #[test]
    fn a_reply_swaps_sender_and_target() {
        let reply = ArpPacket::request(MAC, IP, OTHER_IP).reply(OTHER_MAC);
        assert_eq!((reply.sender_mac, reply.sender_ip), (OTHER_MAC, OTHER_IP));
        assert_eq!((reply.target_mac, reply.target_ip), (MAC, IP));
    }

    #[test]
    fn other_hardware_protocols_lengths_and_operations_are_refused() {
        for at in [1, 2, 4, 5, 7] {
            let mut bytes = [0; 28];
            ArpPacket::request(MAC, IP, OTHER_IP).emit(&mut bytes);
            bytes[at] = 0x33;
            assert!(matches!(ArpPacket::parse(&bytes), Err(Malformed::Field { .. })), "{at}");
        }
    }
}
