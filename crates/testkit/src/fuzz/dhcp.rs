//! Fuzz target: a host with a DHCP client receives messages of DHCP servers, and ARP packets about
//! its address, at any time.

use super::choices::Choices;
use linerate_stack::{Capabilities, DhcpConfig, Medium, RxFrame, Stack, StackConfig};
use linerate_units::{Duration, Instant};
use linerate_wire::dhcp::{
    CLIENT_PORT, DhcpHeader, DhcpMessage, DhcpMessageType, DhcpWriter, SERVER_PORT, option,
};
use linerate_wire::{
    ArpPacket, EtherType, EthernetFrame, EthernetHeader, IpHeader, Ipv4Packet, MacAddress,
    Protocol, Sum, UdpDatagram, UdpHeader, VlanTags,
};
use std::net::Ipv4Addr;

const MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);
const SERVER_MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 9]);
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 254);
const OFFERED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
/// Offsets of the fields `sname` and `file` in a DHCP message. Options that do not fit into the
/// options field may continue there.
const FIELDS: [usize; 2] = [44, 108];

/// Runs the test case that `bytes` encode.
///
/// # Panics
/// If an invariant is violated, or the client sends a malformed message.
pub fn dhcp_into_a_client(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let mut config = DhcpConfig::new();
    config.probe = choices.yes();
    config.desynchronize = choices.yes();
    config.previous = choices.yes().then_some(OFFERED);
    let config = StackConfig::unconfigured(MAC).dhcp(config);
    let mut stack = Stack::new(config, [7; 32]);
    stack.attach(Capabilities::new(Medium::Ethernet, 1_500));
    let mut case = TestCase { choices, now: Instant::ZERO, stack, xid: 0 };
    while !case.choices.is_empty() {
        case.step();
    }
}

struct TestCase<'a> {
    choices: Choices<'a>,
    now: Instant,
    stack: Stack,
    /// Transaction ID of the client's most recent message.
    xid: u32,
}

impl TestCase<'_> {
    fn step(&mut self) {
        match self.choices.byte() % 8 {
            0 => self.now += self.choices.span(),
            1 => {
                let next = self.stack.poll_timeout();
                // The clock advances to the next timer, but by at most 100,000 s.
                let limit = self.now + Duration::from_secs(100_000);
                self.now = self.now.max(next.min(limit));
            }
            2 => self.receive_arp(),
            3 => {
                let payload = self.choices.bytes().to_vec();
                self.receive_datagram(&payload);
            }
            4 if self.choices.byte() == 0 => self.stack.dhcp_release(self.now),
            _ => self.receive_message(),
        }
        self.stack.handle_timeout(self.now, 100);
        self.transmit();
        self.stack.check();
        let lease = self.stack.dhcp_lease();
        if let Some(lease) = lease {
            assert!(lease.renew_at <= lease.rebind_at && lease.rebind_at <= lease.expires_at);
            assert!(lease.dns_servers.len() <= 8 && lease.routers.len() <= 8);
        }
    }

    fn receive_message(&mut self) {
        let kind = self.choices.of(&[
            DhcpMessageType::Offer,
            DhcpMessageType::Ack,
            DhcpMessageType::Nak,
            DhcpMessageType::Discover,
        ]);
        let header = DhcpHeader {
            is_reply: true,
            xid: self.choices.near(self.xid),
            secs: 0,
            broadcast: false,
            client: Ipv4Addr::UNSPECIFIED,
            yours: Ipv4Addr::from_bits(self.choices.near(OFFERED.to_bits())),
            mac: MAC,
        };
        let mut bytes = vec![0; 4_096];
        let mut writer = DhcpWriter::new(&header, kind, &mut bytes);
        writer.option(option::SERVER_ID, &SERVER.octets());
        writer.option(option::LEASE_TIME, &self.choices.near(60).to_be_bytes());
        for _ in 0..self.choices.byte() % 8 {
            let code = self.choices.byte();
            writer.option(code, self.choices.bytes());
        }
        let length = writer.finish();
        let field = self.choices.of(&FIELDS);
        let part = self.choices.bytes();
        let count = part.len().min(64);
        bytes[field..field + count].copy_from_slice(&part[..count]);
        let cut = usize::from(self.choices.byte() >> 4);
        self.receive_datagram(&bytes[..length - cut]);
    }

    fn receive_datagram(&mut self, payload: &[u8]) {
        let to = self.choices.of(&[Ipv4Addr::BROADCAST, OFFERED]);
        let Some(header) = IpHeader::new(SERVER.into(), to.into(), Protocol::UDP) else { return };
        let length = UdpHeader::LENGTH + payload.len();
        let mut frame = frame(EtherType::IPV4, MAC, 20 + length);
        header.emit(length, &mut frame[14..]);
        let datagram = &mut frame[34..];
        let ports = UdpHeader { source_port: SERVER_PORT, destination_port: CLIENT_PORT };
        ports.emit(payload.len(), datagram);
        datagram[UdpHeader::LENGTH..].copy_from_slice(payload);
        UdpHeader::fill_checksum(datagram, header.pseudo_header(length), Sum::of(datagram));
        self.stack.handle_frame(self.now, RxFrame::plain(&frame, self.now));
    }

    fn receive_arp(&mut self) {
        let sender = self.choices.of(&[OFFERED, SERVER, Ipv4Addr::UNSPECIFIED]);
        let packet = ArpPacket::request(SERVER_MAC, sender, OFFERED);
        let mut frame = frame(EtherType::ARP, MacAddress::BROADCAST, ArpPacket::LENGTH);
        packet.emit(&mut frame[14..]);
        self.stack.handle_frame(self.now, RxFrame::plain(&frame, self.now));
    }

    /// Fetches all frames that the host has to send, and records the transaction ID of the client's
    /// messages.
    fn transmit(&mut self) {
        let mut buffer = [0; 1_514];
        while let Some(sent) = self.stack.poll_transmit(self.now, &mut buffer) {
            let frame = EthernetFrame::parse(&buffer[..sent.length]).expect("a frame");
            if frame.header.ether_type != EtherType::IPV4 {
                continue;
            }
            let packet = Ipv4Packet::parse(frame.payload).expect("a packet");
            if packet.header.protocol != Protocol::UDP {
                continue;
            }
            let datagram = UdpDatagram::parse(packet.payload).expect("a datagram");
            let message = DhcpMessage::parse(datagram.payload).expect("a message");
            assert!(!message.header.is_reply);
            self.xid = message.header.xid;
        }
    }
}

/// Returns a frame with an Ethernet header from the server's MAC address, followed by `length` zero
/// bytes.
fn frame(ether_type: EtherType, destination: MacAddress, length: usize) -> Vec<u8> {
    let mut frame = vec![0; 14 + length];
    EthernetHeader { destination, source: SERVER_MAC, tags: VlanTags::NONE, ether_type }
        .emit(&mut frame);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test case is an exchange of a DISCOVER, an offer, a grant, a renewal, and a NAK that
    /// refuses the renewal.
    #[test]
    fn a_test_case_of_an_exchange_runs() {
        let mut bytes = vec![0, 0, 0];
        let message = |kind: u8| [5, kind, 0, 0, 0, 0, 0, 0, 0, 0];
        for kind in [0, 1] {
            bytes.extend(message(kind));
            bytes.extend([1]);
        }
        bytes.extend(message(2));
        for seed in 0..200_u8 {
            let mut bytes = bytes.clone();
            bytes.extend((0..200_u8).map(|at| at.wrapping_mul(seed | 1).rotate_left(3) ^ seed));
            dhcp_into_a_client(&bytes);
        }
    }
}
