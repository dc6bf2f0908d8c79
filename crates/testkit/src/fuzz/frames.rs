//! Frames into a host: a neighbour that is partly honest, with listeners, connections and UDP sockets
//! open, and an application that does anything at any time.

use super::choices::Choices;
use crate::hostile::mend_checksums;
use crate::pair::Side;
use crate::test_link::TestLink;
use linerate_stack::{
    Capabilities, ConnectOptions, Host, ListenHandle, ListenOptions, Medium, Stack, TcpHandle, UdpHandle,
    UdpOptions,
};
use linerate_units::{Duration, Instant};
use linerate_wire::{
    ArpPacket, EtherType, EthernetFrame, EthernetHeader, Ipv4Header, Ipv4Packet, MacAddress, Protocol,
    Segment, SeqNum, TcpFlags, TcpHeader, TcpOptions, VlanTags,
};
use std::net::{Ipv4Addr, SocketAddrV4};

const MTU: usize = 1_500;
const HOST: Side = Side::Right;
const PEER: Side = Side::Left;
/// Sockets that the story's application holds of each kind.
const MOST_SOCKETS: usize = 4;

/// Tells the story that `bytes` choose.
///
/// # Panics
/// If an invariant is broken, or what the host sends is malformed.
pub fn frames_into_a_host(bytes: &[u8]) {
    let mut story = Story::begin(Choices::new(bytes));
    while !story.choices.is_empty() {
        story.step();
    }
}

/// A conversation as the wire shows it, from the host's side.
#[derive(Clone, Copy, Debug)]
struct Flow {
    port: u16,
    peer: SocketAddrV4,
    end: SeqNum,
    ack: SeqNum,
}

struct Story<'a> {
    choices: Choices<'a>,
    now: Instant,
    host: Host<TestLink>,
    listeners: Vec<ListenHandle>,
    connections: Vec<TcpHandle>,
    datagrams: Vec<UdpHandle>,
    flows: Vec<Flow>,
}

impl<'a> Story<'a> {
    fn begin(mut choices: Choices<'a>) -> Self {
        let mut config = HOST.config();
        config.limits.sockets = 12;
        config.limits.time_wait = 2;
        config.limits.orphans = 2;
        config.limits.neighbors.entries = 4;
        config.limits.neighbors.unresolved = 2;
        config.limits.path_mtus = 2;
        config.answer_broadcast_echo = choices.yes();
        config.tcp.send_buffer = choices.of(&[1_000, 20_000]);
        config.tcp.receive_buffer = choices.of(&[1_000, 20_000]);
        let capabilities = Capabilities { medium: Medium::Ethernet, mtu: MTU, rate: None };
        let link = TestLink::new(capabilities, choices.of(&[256, 1]));
        let mut host = Host::new(Stack::new(config, [7; 32]), link);
        let options = ListenOptions { backlog: 2, syn_backlog: 3, config: None };
        let listener = host.stack_mut().tcp_listen(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 9), &options);
        let now = Instant::ZERO + Duration::from_secs(1_000);
        let mut story = Self {
            choices,
            now,
            host,
            listeners: listener.into_iter().collect(),
            connections: Vec::new(),
            datagrams: Vec::new(),
            flows: Vec::new(),
        };
        story.bind();
        story.connect();
        story.turn();
        story
    }

    fn step(&mut self) {
        match self.choices.byte() & 15 {
            0..=3 => self.tcp(),
            4 => self.open(),
            5 => self.arp(),
            6 => self.datagram(),
            7 => self.icmp(),
            8 => self.garbage(),
            9 => self.nearly_ip(),
            10 | 11 => self.use_connection(),
            12 => self.use_others(),
            13 => self.pass_time(),
            14 => self.next_timer(),
            _ => self.connect(),
        }
        self.turn();
    }

    /// The host does what there is to do, and everything that it sends is looked at.
    fn turn(&mut self) {
        for count in 0.. {
            assert!(count < 5_000, "never done");
            let turn = self.host.turn(self.now).expect("the link is up");
            self.host.stack().check();
            let mut sent = false;
            while let Some(frame) = self.host.link_mut().fetch() {
                self.hear(&frame);
                sent = true;
            }
            let again = turn.more || turn.blocked && sent || self.host.link().has_arrived();
            if !again {
                break;
            }
        }
        while self.host.stack_mut().poll_event().is_some() {}
        self.host.stack().check();
    }

    /// What the host sends has right checksums, and lengths that fit.
    fn hear(&mut self, frame: &[u8]) {
        let ethernet = EthernetFrame::parse(frame).expect("Ethernet");
        assert_eq!(ethernet.header.source, HOST.mac());
        if ethernet.header.ether_type != EtherType::IPV4 {
            ArpPacket::parse(ethernet.payload).expect("ARP, if it is not IPv4");
            return;
        }
        let packet = Ipv4Packet::parse(ethernet.payload).expect("IPv4");
        assert!(ethernet.payload.len() <= MTU, "longer than the link's MTU");
        if packet.header.protocol != Protocol::TCP {
            return;
        }
        let pseudo = packet.header.pseudo_header(packet.payload.len());
        TcpHeader::verify_checksum(packet.payload, pseudo).expect("a right checksum");
        let segment = Segment::parse(packet.payload).expect("TCP");
        let peer = SocketAddrV4::new(packet.header.destination, segment.destination_port);
        let flow = Flow {
            port: segment.source_port,
            peer,
            end: segment.seq + segment.sequence_length(),
            ack: segment.ack,
        };
        self.flows.retain(|known| (known.port, known.peer) != (flow.port, flow.peer));
        self.flows.insert(0, flow);
        self.flows.truncate(8);
    }

    fn put(&mut self, frame: Vec<u8>) {
        self.host.link_mut().put(self.now, frame);
    }

    /// An IP packet of the peer's, its checksums right as a rule.
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

    /// Sometimes a byte becomes another, and then the checksums fit or not.
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

    /// A segment of a conversation that the wire has shown.
    fn tcp(&mut self) {
        let index = usize::from(self.choices.byte());
        let Some(&flow) = self.flows.get(index % self.flows.len().max(1)) else { return };
        let flags = match self.choices.byte() {
            0..=159 => TcpFlags::ACK,
            160..=199 => TcpFlags::ACK | TcpFlags::FIN,
            200..=229 => TcpFlags::ACK | TcpFlags::SYN,
            _ => TcpFlags::from_bits_retain(self.choices.byte()),
        };
        let seq = SeqNum::new(self.choices.near(flow.ack.number()));
        let ack = SeqNum::new(self.choices.near(flow.end.number()));
        self.segment(flow.peer, flow.port, flags, seq, ack);
    }

    /// A SYN to a listener, or to nobody.
    fn open(&mut self) {
        let port = self.choices.of(&[9, 9, 9, 10]);
        let source = SocketAddrV4::new(PEER.address(), 2_000 + u16::from(self.choices.byte() % 8));
        let seq = SeqNum::new(self.choices.near(u32::MAX - 100));
        self.segment(source, port, TcpFlags::SYN, seq, SeqNum::new(0));
    }

    fn segment(&mut self, source: SocketAddrV4, port: u16, flags: TcpFlags, seq: SeqNum, ack: SeqNum) {
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
        let mut bytes = vec![0x5a; TcpHeader::MAX_LENGTH + 1_400];
        let options_length = options.emit(&mut bytes[TcpHeader::LENGTH..]);
        header.emit(options_length, &mut bytes);
        let data = self.choices.of(&[0, 0, 1, 100, 1_400]);
        bytes.truncate(TcpHeader::LENGTH + options_length + data);
        self.packet(*source.ip(), Protocol::TCP, &bytes);
    }

    fn arp(&mut self) {
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

    /// The peer, as a rule, or some other address of the network.
    fn neighbor(&mut self) -> Ipv4Addr {
        match self.choices.byte() {
            0..=199 => PEER.address(),
            last => Ipv4Addr::new(192, 0, 2, last),
        }
    }

    fn datagram(&mut self) {
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

    /// An ICMP message: any bytes, or an error that quotes a conversation.
    fn icmp(&mut self) {
        let source = self.neighbor();
        let mut bytes = vec![self.choices.of(&[8, 3, 11, 0, 5, 12, 4]), self.choices.byte() % 20, 0, 0];
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

    fn garbage(&mut self) {
        let frame = self.choices.bytes().to_vec();
        self.put(frame);
    }

    /// Any bytes as a packet, with any protocol.
    fn nearly_ip(&mut self) {
        let source = Ipv4Addr::from(self.choices.near(u32::from(PEER.address())));
        let protocol = self.choices.of(&[Protocol::TCP, Protocol::UDP, Protocol::ICMP, Protocol::new(2)]);
        let payload = self.choices.bytes();
        self.packet(source, protocol, payload);
    }

    fn connect(&mut self) {
        let remote = SocketAddrV4::new(self.neighbor(), 7);
        if self.connections.len() >= MOST_SOCKETS {
            return;
        }
        let local = self.choices.of(&[0, 0, 3_000]);
        let local = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, local);
        let options = ConnectOptions { local: Some(local), config: None };
        self.connections.extend(self.host.stack_mut().tcp_connect(self.now, remote, &options));
    }

    fn bind(&mut self) {
        if self.datagrams.len() < MOST_SOCKETS {
            let local = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, self.choices.of(&[5, 0]));
            self.datagrams.extend(self.host.stack_mut().udp_bind(local, &UdpOptions::default()));
        }
    }

    fn use_connection(&mut self) {
        let (kind, index, count) = (self.choices.byte(), self.choices.byte(), self.choices.half() >> 2);
        let (now, stack) = (self.now, self.host.stack_mut());
        if kind.is_multiple_of(8) {
            let Some(&listener) = self.listeners.first() else { return };
            let Some((handle, _)) = stack.tcp_accept(listener) else { return };
            if self.connections.len() < MOST_SOCKETS {
                self.connections.push(handle);
            } else {
                stack.tcp_close(now, handle).expect("it was just accepted");
            }
            return;
        }
        if self.connections.is_empty() {
            return;
        }
        let index = usize::from(index) % self.connections.len();
        let handle = self.connections[index];
        match kind % 8 {
            1 | 2 => drop(stack.tcp_write(now, handle, &vec![1; usize::from(count)])),
            3 | 4 => drop(stack.tcp_read(now, handle, &mut vec![0; usize::from(count)])),
            5 => drop(stack.tcp_shutdown_write(now, handle)),
            6 => {
                let _ = stack.tcp_close(now, handle);
                self.connections.swap_remove(index);
            }
            _ if count > 1_000 => {
                let _ = stack.tcp_abort(now, handle);
                self.connections.swap_remove(index);
            }
            _ => drop(stack.tcp_write_urgent(now, handle, &[1])),
        }
    }

    fn use_others(&mut self) {
        let (kind, count) = (self.choices.byte(), usize::from(self.choices.half() >> 4));
        let remote = SocketAddrV4::new(self.neighbor(), 7);
        let (now, stack) = (self.now, self.host.stack_mut());
        match (kind % 8, self.datagrams.last().copied()) {
            (0, _) => self.bind(),
            (1, Some(handle)) => drop(stack.udp_send_to(now, handle, remote, &vec![2; count])),
            (2, Some(handle)) => drop(stack.udp_receive_from(handle, &mut vec![0; count])),
            (3, Some(handle)) => drop(stack.udp_connect(now, handle, remote)),
            (4, Some(handle)) => drop(stack.udp_send(now, handle, &vec![2; count])),
            (5, Some(handle)) => {
                let _ = stack.udp_close(handle);
                self.datagrams.pop();
            }
            (6, _) => drop(stack.echo_send(now, *remote.ip(), 1, 1, &vec![3; count])),
            (7, _) if count > 4_000 => {
                for listener in self.listeners.drain(..) {
                    let _ = stack.tcp_listen_close(now, listener);
                }
            }
            _ => {}
        }
    }

    fn pass_time(&mut self) {
        let until = self.now + self.choices.span();
        for _ in 0..64 {
            let next = self.host.stack().poll_timeout();
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            self.turn();
        }
        self.now = self.now.max(until);
    }

    fn next_timer(&mut self) {
        let next = self.host.stack().poll_timeout();
        if next != Instant::NEVER {
            self.now = self.now.max(next);
        }
    }
}
