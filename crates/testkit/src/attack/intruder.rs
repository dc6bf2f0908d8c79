//! The attacker. It sends frames of any kind, and captures the frames that the attacked host sends
//! to its MAC address.

use super::{INTRUDER, INTRUDER_MAC};
use crate::Side;
use linerate_wire::{
    ArpOperation, ArpPacket, EtherType, EthernetFrame, EthernetHeader, Ipv4Header, Ipv4Packet,
    MacAddress, Protocol, Segment, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions, VlanTags,
};
use oorandom::Rand64;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::rc::Rc;

/// A segment that the attacked host has sent, and that the intruder has received. The intruder is
/// its destination, or its next hop as the default router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Address and port of the attacked host, which sent the segment.
    pub from: SocketAddrV4,
    /// Destination address and port.
    pub to: SocketAddrV4,
    /// Sequence number (SEG.SEQ).
    pub seq: SeqNum,
    /// Acknowledgement number (SEG.ACK).
    pub ack: SeqNum,
    /// Control bits, such as SYN and ACK.
    pub flags: TcpFlags,
    /// Window field (SEG.WND).
    pub window: u16,
    /// TCP options.
    pub options: TcpOptions,
    /// Data of the segment.
    pub payload: Vec<u8>,
}

/// The attacker: a neighbour of the host with its own MAC address, and the host's default router.
#[derive(Debug)]
pub struct Intruder {
    inbox: Rc<RefCell<VecDeque<Vec<u8>>>>,
    outbox: VecDeque<Vec<u8>>,
    /// Source of the random numbers that attacks use.
    pub random: Rand64,
}

impl Intruder {
    pub(super) fn new(seed: u64, inbox: Rc<RefCell<VecDeque<Vec<u8>>>>) -> Self {
        Self { inbox, outbox: VecDeque::new(), random: Rand64::new(u128::from(seed) << 8 | 0x66) }
    }

    /// Returns a random number from 0 up to but excluding `end`.
    ///
    /// # Panics
    /// If `end` is 0.
    pub fn below(&mut self, end: u32) -> u32 {
        u32::try_from(self.random.rand_range(0..u64::from(end))).unwrap_or(0)
    }

    /// Sends a segment from `from` to `to`.
    pub fn segment(
        &mut self,
        from: SocketAddrV4,
        to: SocketAddrV4,
        header: TcpHeader,
        options: &TcpOptions,
        payload: &[u8],
    ) {
        let mut bytes = vec![0; TcpHeader::MAX_LENGTH];
        let options_length = options.emit(&mut bytes[TcpHeader::LENGTH..]);
        let header = TcpHeader { source_port: from.port(), destination_port: to.port(), ..header };
        header.emit(options_length, &mut bytes);
        bytes.truncate(TcpHeader::LENGTH + options_length);
        bytes.extend_from_slice(payload);
        let ip = Ipv4Header::new(*from.ip(), *to.ip(), Protocol::TCP);
        let (pseudo, sum) = (ip.pseudo_header(bytes.len()), Sum::of(&bytes));
        TcpHeader::fill_checksum(&mut bytes, pseudo, sum);
        self.packet(ip, &bytes);
    }

    /// Sends an IP packet.
    pub fn packet(&mut self, ip: Ipv4Header, payload: &[u8]) {
        let mut bytes = vec![0; Ipv4Header::LENGTH];
        ip.emit(payload.len(), &mut bytes);
        bytes.extend_from_slice(payload);
        self.frame(EtherType::IPV4, Side::Right.mac(), &bytes);
    }

    pub(super) fn announce(&mut self) {
        let request = ArpPacket::request(INTRUDER_MAC, INTRUDER, Side::Right.address());
        self.arp(&request, MacAddress::BROADCAST);
    }

    /// Returns the segments that the host has sent since the previous call. Also answers the host's
    /// ARP requests for the intruder's address.
    pub(super) fn take_captured(&mut self) -> Vec<Captured> {
        let frames: Vec<_> = self.inbox.borrow_mut().drain(..).collect();
        frames.iter().filter_map(|frame| self.parse(frame)).collect()
    }

    /// Removes and returns the frames that the intruder has queued for sending, in order.
    pub(super) fn frames(&mut self) -> impl Iterator<Item = Vec<u8>> {
        std::mem::take(&mut self.outbox).into_iter()
    }

    fn parse(&mut self, frame: &[u8]) -> Option<Captured> {
        let frame = EthernetFrame::parse(frame).ok()?;
        if frame.header.ether_type == EtherType::ARP {
            let request = ArpPacket::parse(frame.payload).ok()?;
            if request.operation == ArpOperation::Request && request.target_ip == INTRUDER {
                self.arp(&request.reply(INTRUDER_MAC), frame.header.source);
            }
            return None;
        }
        let packet = Ipv4Packet::parse(frame.payload).ok()?;
        let segment = Segment::parse(packet.payload)
            .ok()
            .filter(|_| packet.header.protocol == Protocol::TCP)?;
        Some(Captured {
            from: SocketAddrV4::new(packet.header.source, segment.source_port),
            to: SocketAddrV4::new(packet.header.destination, segment.destination_port),
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags(),
            window: segment.window,
            options: segment.options(),
            payload: segment.payload.to_vec(),
        })
    }

    fn arp(&mut self, packet: &ArpPacket, to: MacAddress) {
        let mut bytes = vec![0; ArpPacket::LENGTH];
        packet.emit(&mut bytes);
        self.frame(EtherType::ARP, to, &bytes);
    }

    fn frame(&mut self, ether_type: EtherType, destination: MacAddress, payload: &[u8]) {
        let header =
            EthernetHeader { destination, source: INTRUDER_MAC, tags: VlanTags::NONE, ether_type };
        let mut frame = vec![0; EthernetHeader::LENGTH];
        header.emit(&mut frame);
        frame.extend_from_slice(payload);
        self.outbox.push_back(frame);
    }
}
