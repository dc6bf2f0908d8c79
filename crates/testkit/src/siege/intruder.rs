//! Who does what it likes: frames of any making, and ears.

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

/// A segment that the host has sent to the intruder, or to somebody behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The host's end.
    pub from: SocketAddrV4,
    /// Whom it was for.
    pub to: SocketAddrV4,
    /// SEG.SEQ.
    pub seq: SeqNum,
    /// SEG.ACK.
    pub ack: SeqNum,
    /// The control bits.
    pub flags: TcpFlags,
    /// SEG.WND.
    pub window: u16,
    /// The options.
    pub options: TcpOptions,
    /// The data.
    pub payload: Vec<u8>,
}

/// A station, and the router to everywhere else.
#[derive(Debug)]
pub struct Intruder {
    inbox: Rc<RefCell<VecDeque<Vec<u8>>>>,
    outbox: VecDeque<Vec<u8>>,
    /// What it does by chance.
    pub random: Rand64,
}

impl Intruder {
    pub(super) fn new(seed: u64, inbox: Rc<RefCell<VecDeque<Vec<u8>>>>) -> Self {
        Self { inbox, outbox: VecDeque::new(), random: Rand64::new(u128::from(seed) << 8 | 0x66) }
    }

    /// A number below `end`.
    ///
    /// # Panics
    /// If `end` is 0.
    pub fn below(&mut self, end: u32) -> u32 {
        u32::try_from(self.random.rand_range(0..u64::from(end))).unwrap_or(0)
    }

    /// Sends a segment; the ports of `header` are those of `from` and `to`.
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

    pub(super) fn introduce(&mut self) {
        let question = ArpPacket::request(INTRUDER_MAC, INTRUDER, Side::Right.address());
        self.arp(&question, MacAddress::BROADCAST);
    }

    /// What the host has sent since; questions for the station are answered on the way.
    pub(super) fn listen(&mut self) -> Vec<Heard> {
        let frames: Vec<_> = self.inbox.borrow_mut().drain(..).collect();
        frames.iter().filter_map(|frame| self.hear(frame)).collect()
    }

    /// What is to be sent, in order.
    pub(super) fn frames(&mut self) -> impl Iterator<Item = Vec<u8>> {
        std::mem::take(&mut self.outbox).into_iter()
    }

    fn hear(&mut self, frame: &[u8]) -> Option<Heard> {
        let frame = EthernetFrame::parse(frame).ok()?;
        if frame.header.ether_type == EtherType::ARP {
            let question = ArpPacket::parse(frame.payload).ok()?;
            if question.operation == ArpOperation::Request && question.target_ip == INTRUDER {
                self.arp(&question.reply(INTRUDER_MAC), frame.header.source);
            }
            return None;
        }
        let packet = Ipv4Packet::parse(frame.payload).ok()?;
        let segment = Segment::parse(packet.payload)
            .ok()
            .filter(|_| packet.header.protocol == Protocol::TCP)?;
        Some(Heard {
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
