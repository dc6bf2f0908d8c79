//! The host's neighbour in the fuzz target `frames_into_a_host`. It follows the protocols in most
//! cases.

use super::{HOST, Metadata, PEER, TestCase};
use crate::hostile::mend_checksums;
use linerate_wire::{
    ArpPacket, EtherType, EthernetHeader, Ipv4Header, MacAddress, Protocol, SeqNum, TcpFlags,
    TcpHeader, TcpOptions, VlanTags,
};
use std::net::{Ipv4Addr, SocketAddrV4};

impl TestCase<'_> {
    /// Sends a segment on one of the connections on which the host has already sent a segment.
    pub(super) fn tcp(&mut self) {
        let index = usize::from(self.choices.byte());
        let Some(&flow) = self.flows.get(index % self.flows.len().max(1)) else { return };
        let flags = match self.choices.byte() {
            0..=159 => TcpFlags::ACK,
            160..=199 => TcpFlags::ACK | TcpFlags::FIN,
            200..=229 => TcpFlags::ACK | TcpFlags::SYN,
            _ => TcpFlags::from_bits_retain(self.choices.byte().into()),
        };
        let seq = SeqNum::new(self.choices.near(flow.ack.number()));
        let ack = SeqNum::new(self.choices.near(flow.end.number()));
        self.segment(flow.peer, flow.port, flags, seq, ack);
    }

    /// Sends a SYN to a listening port or to a closed one.
    pub(super) fn open(&mut self) {
        let port = self.choices.of(&[9, 9, 9, 10]);
        let source = SocketAddrV4::new(PEER.address(), 2_000 + u16::from(self.choices.byte() % 8));
        let seq = SeqNum::new(self.choices.near(u32::MAX - 100));
        self.segment(source, port, TcpFlags::SYN, seq, SeqNum::new(0));
    }

    fn segment(
        &mut self,
        source: SocketAddrV4,
        port: u16,
        flags: TcpFlags,
        seq: SeqNum,
        ack: SeqNum,
    ) {
        let header = TcpHeader {
            source_port: source.port(),
            destination_port: port,
            seq,
            ack,
            flags,
            window: self.choices.of(&[u16::MAX, 10_000, 1, 0]),
            urgent: 3,
        };
        let options = if flags.contains(TcpFlags::SYN) {
            TcpOptions { mss: Some(1_460), window_scale: Some(1), ..TcpOptions::default() }
        } else {
            TcpOptions::default()
        };
        let most = if self.metadata.segment.is_some() { 40 * 1_400 } else { 1_400 };
        let mut bytes = vec![0x5a; TcpHeader::MAX_LENGTH + most];
        let options_length = options.emit(&mut bytes[TcpHeader::LENGTH..]);
        header.emit(options_length, &mut bytes);
        let data = self.choices.of(&[0, 0, 1, 100, 1_400]) * (most / 1_400);
        bytes.truncate(TcpHeader::LENGTH + options_length + data);
        self.packet(*source.ip(), Protocol::TCP, &bytes);
    }

    pub(super) fn arp(&mut self) {
        let sender = self.neighbor();
        let target = if self.choices.byte() < 200 { HOST.address() } else { self.neighbor() };
        let request = ArpPacket::request(PEER.mac(), sender, target);
        let arp = if self.choices.yes() {
            request
        } else {
            ArpPacket::request(HOST.mac(), target, sender).reply(PEER.mac())
        };
        let mut frame = vec![0; EthernetHeader::LENGTH + ArpPacket::LENGTH];
        let header = EthernetHeader {
            destination: HOST.mac(),
            source: PEER.mac(),
            tags: VlanTags::NONE,
            ether_type: EtherType::ARP,
        };
        let at = header.emit(&mut frame);
        arp.emit(&mut frame[at..]);
        self.spoil(&mut frame);
        self.put(frame);
    }

    /// Sends an ARP request for the host's address, so that the host learns the peer's MAC address.
    pub(super) fn introduce(&mut self) {
        let mut frame = vec![0; EthernetHeader::LENGTH + ArpPacket::LENGTH];
        let header = EthernetHeader {
            destination: MacAddress::BROADCAST,
            source: PEER.mac(),
            tags: VlanTags::NONE,
            ether_type: EtherType::ARP,
        };
        let at = header.emit(&mut frame);
        ArpPacket::request(PEER.mac(), PEER.address(), HOST.address()).emit(&mut frame[at..]);
        self.put(frame);
    }

    pub(super) fn datagram(&mut self) {
        let source = self.neighbor();
        let data = self.choices.bytes();
        let length = u16::try_from(8 + data.len()).expect("short");
        let mut bytes = vec![0; 8];
        bytes[..2].copy_from_slice(&self.choices.of(&[7_u16, 53, 9]).to_be_bytes());
        bytes[2..4].copy_from_slice(&self.choices.of(&[5_u16, 5, 6]).to_be_bytes());
        bytes[4..6].copy_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(data);
        self.packet(source, Protocol::UDP, &bytes);
    }

    /// Sends an ICMP message: arbitrary bytes, or an ICMP error that quotes a packet of one of the
    /// host's connections.
    pub(super) fn icmp(&mut self) {
        let source = self.neighbor();
        let mut bytes =
            vec![self.choices.of(&[8, 3, 11, 0, 5, 12, 4]), self.choices.byte() % 20, 0, 0];
        let value = self.choices.word();
        bytes.extend_from_slice(&value.to_be_bytes());
        let index = usize::from(self.choices.byte());
        match self.flows.get(index) {
            Some(flow) => {
                let mut quote = [0; Ipv4Header::LENGTH + 8];
                let ip = Ipv4Header::new(HOST.address(), *flow.peer.ip(), Protocol::TCP);
                ip.emit(1_000, &mut quote);
                quote[20..22].copy_from_slice(&flow.port.to_be_bytes());
                quote[22..24].copy_from_slice(&flow.peer.port().to_be_bytes());
                let seq = self.choices.near((flow.end - 1).number());
                quote[24..].copy_from_slice(&seq.to_be_bytes());
                bytes.extend_from_slice(&quote);
            }
            None => bytes.extend_from_slice(self.choices.bytes()),
        }
        self.packet(source, Protocol::ICMP, &bytes);
    }

    /// Sends an IP packet whose payload consists of arbitrary bytes, and whose protocol and source
    /// address vary.
    pub(super) fn nearly_ip(&mut self) {
        let source = Ipv4Addr::from(self.choices.near(u32::from(PEER.address())));
        let protocol =
            self.choices.of(&[Protocol::TCP, Protocol::UDP, Protocol::ICMP, Protocol::new(2)]);
        let payload = self.choices.bytes();
        self.packet(source, protocol, payload);
    }

    pub(super) fn garbage(&mut self) {
        let frame = self.choices.bytes().to_vec();
        self.put(frame);
    }

    /// Chooses the source address of a packet: in most cases the peer's address, otherwise an
    /// address of the peer's network.
    pub(super) fn neighbor(&mut self) -> Ipv4Addr {
        match self.choices.byte() {
            0..=199 => PEER.address(),
            last => Ipv4Addr::new(192, 0, 2, last),
        }
    }

    /// Sends an IP packet, in most cases with correct checksums.
    fn packet(&mut self, source: Ipv4Addr, protocol: Protocol, payload: &[u8]) {
        let destination = match self.choices.byte() {
            0..=239 => HOST.address(),
            240..=247 => Ipv4Addr::new(192, 0, 2, 255),
            _ => Ipv4Addr::from(self.choices.word()),
        };
        let mut frame = vec![0; EthernetHeader::LENGTH + Ipv4Header::LENGTH + payload.len()];
        let header = EthernetHeader {
            destination: if self.choices.byte() < 250 { HOST.mac() } else { MacAddress::BROADCAST },
            source: PEER.mac(),
            tags: VlanTags::NONE,
            ether_type: EtherType::IPV4,
        };
        let at = header.emit(&mut frame);
        let mut ip = Ipv4Header::new(source, destination, protocol);
        if self.choices.byte() > 250 {
            ip.ttl = self.choices.byte();
            ip.more_fragments = self.choices.yes();
        }
        let at = at + ip.emit(payload.len(), &mut frame[at..]);
        frame[at..].copy_from_slice(payload);
        self.spoil(&mut frame);
        self.put(frame);
    }

    /// Recomputes the checksums of a frame, in some cases after overwriting a byte or cutting off
    /// the end. In a few cases, leaves the frame as it is, even if its checksums are wrong.
    fn spoil(&mut self, frame: &mut Vec<u8>) {
        match self.choices.byte() {
            0..=199 => mend_checksums(frame),
            200..=227 => {
                let place = usize::from(self.choices.half()) % frame.len();
                frame[place] = self.choices.byte();
                mend_checksums(frame);
            }
            228..=241 => {
                frame.truncate(usize::from(self.choices.half()) % frame.len() + 1);
                mend_checksums(frame);
            }
            242..=255 => {}
        }
    }

    fn put(&mut self, frame: Vec<u8>) {
        let Metadata { checksum, segment } =
            std::mem::replace(&mut self.metadata, Metadata::NOTHING);
        self.host.link_mut().put_as(self.now, frame, checksum, segment);
    }
}
