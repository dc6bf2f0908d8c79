//! Translates between the numbers in a script and those on the wire: sequence numbers, timestamps,
//! Fast Open cookies and ports of each connection.

mod datagrams;
mod marks;
mod messages;

use crate::ip_packet::{Ends, ParsedPacket, ip_packet};
use crate::packet::{Captured, acknowledges, options_of_bytes, tcp_segment};
use crate::syntax::{IpMarks, Packet, Segment, SegmentOption, SegmentOptions, Settings};
use linerate_wire::{Protocol, SeqNum, TcpFlags, TcpHeader};
use marks::LearntMarks;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Initial sequence number of the script's peers on the wire. It is 2,000 below the largest number,
/// so that sequence numbers wrap around in every script that sends more data.
const PEER_BEGIN: u32 = u32::MAX - 2_000;
/// Port of the first peer, if the script does not give one.
const FIRST_PEER_PORT: u16 = 40_001;

/// Maximum number of packets to the host that are stored. The most recent ones are stored, because
/// an ICMP error from the host may quote them.
const QUOTABLE: usize = 64;

/// All connections of a script, and its datagrams and messages.
#[derive(Debug)]
pub(crate) struct Flows {
    settings: Settings,
    /// Number of bytes by which IP headers on the wire are longer than those that the script
    /// assumes: 20 if a script for IPv4 runs over IPv6, otherwise 0.
    longer: u16,
    /// The most recent packets to the host, at most [`QUOTABLE`].
    received: VecDeque<Vec<u8>>,
    /// The flow labels and identifications of the host's packets.
    marks: LearntMarks,
    /// The ports of the host and of its peer, for datagrams whose ports the script does not give.
    datagram_ports: (u16, u16),
    list: Vec<Flow>,
    /// Index of the connection to which a segment belongs if the script gives it no ports; `None`
    /// before the first connection.
    current: Option<usize>,
    /// Whether a socket listens, so that the next SYN of the script opens a connection.
    is_awaited: bool,
    /// Number of `connect` calls whose SYN has not been seen yet.
    connecting: usize,
    /// Fast Open cookies on the wire. The key of each is the value by which the script refers to
    /// it. A script can write any value for a cookie that the host has generated. A cookie of the
    /// peer is not translated: its value on the wire is that in the script.
    cookies: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Returns the MSS of a peer that does not send the MSS option (RFC 9293 §3.7.1).
const fn default_mss(address: IpAddr) -> u16 {
    match address {
        IpAddr::V4(_) => 536,
        IpAddr::V6(_) => 1_220,
    }
}

/// A connection between the host and a peer of the script.
#[derive(Debug)]
struct Flow {
    local_port: u16,
    remote_port: u16,
    local: Option<Origin>,
    remote: Option<Origin>,
    /// Initial sequence number of a SYN that the peer sent on this connection after it was
    /// established. It replaces `remote` when the host answers with a SYN of its own. `None` if no
    /// such SYN is unanswered.
    offered: Option<Origin>,
    /// TSvals that the host has sent. The key of each is the value by which the script refers to
    /// it.
    timestamps: BTreeMap<u32, u32>,
    /// The MSS that the peer announced.
    mss: u16,
    first_timestamp: Option<(u32, u32)>,
}

/// Initial sequence number of one direction of a connection: on the wire (`live`) and in the script
/// (`script`).
#[derive(Clone, Copy, Debug, Default)]
struct Origin {
    live: u32,
    script: u32,
}

/// Assumed origin of the sequence numbers of a peer that has not sent a SYN.
const DEFAULT_ORIGIN: Origin = Origin { live: PEER_BEGIN, script: 0 };

impl Origin {
    /// Converts a sequence number of the script to that on the wire. In a SYN, the script writes
    /// absolute numbers. In all other segments, it writes numbers relative to the SYN of this
    /// direction.
    const fn to_live(self, number: u32, is_syn: bool) -> u32 {
        number.wrapping_add(self.live).wrapping_sub(if is_syn { self.script } else { 0 })
    }

    const fn to_script(self, number: u32, is_syn: bool) -> u32 {
        number.wrapping_sub(self.live).wrapping_add(if is_syn { self.script } else { 0 })
    }
}

impl Flows {
    pub(crate) fn new(settings: Settings, longer: u16) -> Self {
        Self {
            datagram_ports: (settings.bind_port, settings.connect_port),
            settings,
            longer,
            received: VecDeque::new(),
            marks: LearntMarks::default(),
            list: Vec::new(),
            current: None,
            is_awaited: false,
            connecting: 0,
            cookies: BTreeMap::new(),
        }
    }

    /// Notes that a socket listens: the next SYN opens a connection.
    pub(crate) const fn listen(&mut self) {
        self.is_awaited = true;
    }

    /// Notes that the application opens a connection. The connection is added when its SYN is seen,
    /// because only the SYN shows its local port.
    pub(crate) const fn connect(&mut self) {
        self.connecting += 1;
    }

    /// Returns whether a packet from the host belongs to the same connection as the packet
    /// `expected` by the script. As in packetdrill, packets of other connections are skipped. An
    /// invalid packet counts as belonging to every connection, so that it is not skipped but
    /// reported.
    pub(crate) fn belongs_to(&self, packet: &[u8], expected: &Packet) -> bool {
        let Ok(packet) = ParsedPacket::parse(packet) else { return true };
        match expected {
            Packet::Segment(expected) => {
                packet.protocol == Protocol::TCP && self.is_segment_of(&packet, expected)
            }
            Packet::Datagram(expected) => {
                packet.protocol == Protocol::UDP && datagrams::has_ports_of(&packet, expected)
            }
            Packet::Icmp(_) => matches!(packet.protocol, Protocol::ICMP | Protocol::ICMPV6),
        }
    }

    fn is_segment_of(&self, packet: &ParsedPacket<'_>, expected: &Segment) -> bool {
        let Ok(live) = linerate_wire::Segment::parse(packet.payload) else { return true };
        let ports = (live.source_port, live.destination_port);
        let is_known = |flow: &Flow| (flow.local_port, flow.remote_port) == ports;
        let opens = self.connecting > 0
            && live.flags() & (TcpFlags::SYN | TcpFlags::ACK) == TcpFlags::SYN
            && !self.list.iter().any(is_known);
        match (expected.ports, self.current) {
            (Some(wanted), _) => wanted == ports || opens,
            (None, Some(current)) => opens || is_known(&self.list[current]),
            (None, None) => opens,
        }
    }

    /// Builds the bytes of a packet to the host.
    ///
    /// # Errors
    /// The reason why the packet cannot be built.
    pub(crate) fn inbound(&mut self, packet: &Packet) -> Result<Vec<u8>, String> {
        let source = packet.ip().from.unwrap_or(self.settings.remote);
        let ends = (source, self.settings.local);
        if source.is_ipv4() != self.settings.local.is_ipv4() {
            return Err(format!("{source} is of another IP version than the host"));
        }
        let (protocol, payload) = match packet {
            Packet::Segment(segment) => (Protocol::TCP, self.inbound_segment(ends, segment)),
            Packet::Datagram(datagram) => (Protocol::UDP, self.inbound_datagram(ends, datagram)),
            Packet::Icmp(icmp) => self.inbound_icmp(ends, icmp)?,
        };
        let bytes = ip_packet(ends, packet.ip(), protocol, payload)?;
        if self.received.len() == QUOTABLE {
            self.received.pop_front();
        }
        self.received.push_back(bytes.clone());
        Ok(bytes)
    }

    /// Builds a segment to the host.
    fn inbound_segment(&mut self, ends: Ends, segment: &Segment) -> Vec<u8> {
        let index = self.flow_of_inbound(segment);
        self.current = Some(index);
        let flow = &mut self.list[index];
        let is_syn = segment.flags.contains(TcpFlags::SYN);
        let seq = if is_syn {
            let origin = Origin { live: segment.seq.wrapping_add(PEER_BEGIN), script: segment.seq };
            if flow.remote.is_none() || acknowledges(segment.flags) {
                flow.remote = Some(origin);
            } else {
                flow.offered = Some(origin);
            }
            origin.live
        } else {
            flow.remote.unwrap_or(DEFAULT_ORIGIN).to_live(segment.seq, false)
        };
        let local = flow.local.unwrap_or_default();
        let ack = if acknowledges(segment.flags) {
            local.to_live(segment.ack.unwrap_or(0), is_syn)
        } else {
            0
        };
        let header = TcpHeader {
            source_port: flow.remote_port,
            destination_port: flow.local_port,
            seq: SeqNum::new(seq),
            ack: SeqNum::new(ack),
            flags: segment.flags,
            window: segment.window.unwrap_or(u16::MAX),
            urgent: segment.urgent.unwrap_or(0),
        };
        let SegmentOptions::List(options) = &segment.options else { return Vec::new() };
        for option in options {
            match option {
                SegmentOption::Mss(mss) => flow.mss = *mss,
                SegmentOption::FastOpen(cookie) | SegmentOption::FastOpenExperiment(cookie)
                    if !cookie.is_empty() =>
                {
                    self.cookies.entry(cookie.clone()).or_insert_with(|| cookie.clone());
                }
                _ => {}
            }
        }
        let options: Vec<_> =
            options.iter().map(|option| flow.option_to_live(option, &self.cookies)).collect();
        tcp_segment(ends, &header, &options, usize::from(segment.length))
    }

    fn flow_of_inbound(&mut self, segment: &Segment) -> usize {
        if let Some((remote, local)) = segment.ports {
            return self.find_or_add(local, remote);
        }
        let begins =
            segment.flags & (TcpFlags::SYN | TcpFlags::ACK) == TcpFlags::SYN && self.is_awaited;
        match self.current {
            Some(current) if !begins => current,
            _ => {
                let port =
                    FIRST_PEER_PORT.wrapping_add(u16::try_from(self.list.len()).unwrap_or(0));
                self.find_or_add(self.settings.bind_port, port)
            }
        }
    }

    fn find_or_add(&mut self, local_port: u16, remote_port: u16) -> usize {
        let ports = (local_port, remote_port);
        if let Some(known) =
            self.list.iter().position(|flow| (flow.local_port, flow.remote_port) == ports)
        {
            return known;
        }
        self.is_awaited = false;
        self.list.push(Flow {
            local_port,
            remote_port,
            local: None,
            remote: None,
            offered: None,
            timestamps: BTreeMap::new(),
            mss: default_mss(self.settings.local),
            first_timestamp: None,
        });
        self.list.len() - 1
    }

    /// Returns whether `actual` is the first of several segments that the script writes as the one
    /// segment `expected`. A script may do so if `expected` is larger than the peer's MSS.
    pub(crate) fn is_burst(&self, expected: &Packet, actual: &Packet) -> bool {
        let (Packet::Segment(expected), Packet::Segment(actual)) = (expected, actual) else {
            return false;
        };
        let default = default_mss(self.settings.local);
        let mss = self.current.map_or(default, |current| self.list[current].mss);
        !self.settings.strict_segments
            && expected.length > mss
            && actual.seq == expected.seq
            && 0 < actual.length
            && actual.length < expected.length
    }

    /// Translates a packet from the host to the script's numbers. A timestamp or cookie that the
    /// host sends for the first time gets the value that the script writes in `expected`.
    ///
    /// # Errors
    /// The reason why the packet is invalid.
    pub(crate) fn outbound(
        &mut self,
        sent: &Captured,
        expected: &Packet,
    ) -> Result<Packet, String> {
        let packet = ParsedPacket::parse(&sent.bytes)?;
        let ip = self.marks.of_packet(&packet, expected.ip(), sent.line);
        let mut actual = match expected {
            Packet::Segment(expected) => Packet::Segment(self.outbound_segment(&packet, expected)?),
            Packet::Datagram(expected) => {
                Packet::Datagram(self.outbound_datagram(&packet, expected)?)
            }
            Packet::Icmp(expected) => Packet::Icmp(self.outbound_icmp(&packet, expected)?),
        };
        *actual.ip_mut() = ip;
        Ok(actual)
    }

    fn outbound_segment(
        &mut self,
        packet: &ParsedPacket<'_>,
        expected: &Segment,
    ) -> Result<Segment, String> {
        let pseudo = packet.pseudo_header();
        TcpHeader::verify_checksum(packet.payload, pseudo).map_err(|error| error.to_string())?;
        let live =
            linerate_wire::Segment::parse(packet.payload).map_err(|error| error.to_string())?;
        let known = self.list.len();
        let index = self.find_or_add(live.source_port, live.destination_port);
        let others = self.current.is_some_and(|current| current != index);
        if index == known {
            self.connecting = self.connecting.saturating_sub(1);
        }
        if index == known || expected.ports.is_some() || self.current.is_none() {
            self.current = Some(index);
        }
        let flow = &mut self.list[index];
        let flags = live.flags();
        let is_syn = flags.contains(TcpFlags::SYN);
        if is_syn && (flow.local.is_none() || flow.offered.is_some()) {
            let script = if expected.flags.contains(TcpFlags::SYN) { expected.seq } else { 0 };
            flow.local = Some(Origin { live: live.seq.number(), script });
            flow.remote = flow.offered.take().or(flow.remote);
        }
        let (local, remote) =
            (flow.local.unwrap_or_default(), flow.remote.unwrap_or(DEFAULT_ORIGIN));
        let options = options_of_bytes(live.options);
        let options = options
            .into_iter()
            .map(|option| flow.option_to_script(option, expected, &mut self.cookies));
        Ok(Segment {
            ip: IpMarks::default(),
            ports: (expected.ports.is_some() || others && index != known)
                .then_some((live.source_port, live.destination_port)),
            flags,
            seq: local.to_script(live.seq.number(), is_syn),
            length: u16::try_from(live.payload.len()).unwrap_or(u16::MAX),
            ack: acknowledges(flags).then(|| remote.to_script(live.ack.number(), is_syn)),
            window: Some(live.window),
            urgent: flags.contains(TcpFlags::URG).then_some(live.urgent),
            options: SegmentOptions::List(options.collect()),
        })
    }
}

impl Flow {
    fn option_to_live(
        &self,
        option: &SegmentOption,
        cookies: &BTreeMap<Vec<u8>, Vec<u8>>,
    ) -> SegmentOption {
        match option {
            SegmentOption::Sack(blocks) => {
                let local = self.local.unwrap_or_default();
                let live =
                    |&(left, right)| (local.to_live(left, false), local.to_live(right, false));
                SegmentOption::Sack(blocks.iter().map(live).collect())
            }
            SegmentOption::Timestamps { value, echo } => {
                SegmentOption::Timestamps { value: *value, echo: self.echo_to_live(*echo) }
            }
            SegmentOption::FastOpen(cookie) => {
                SegmentOption::FastOpen(cookies.get(cookie).unwrap_or(cookie).clone())
            }
            SegmentOption::FastOpenExperiment(cookie) => {
                SegmentOption::FastOpenExperiment(cookies.get(cookie).unwrap_or(cookie).clone())
            }
            option => option.clone(),
        }
    }

    /// Converts a TSecr of the script to the TSecr on the wire: the host's TSval that the script
    /// calls `echo`. If no TSval of the host has this name, it is extrapolated from the first TSval
    /// that has a name.
    fn echo_to_live(&self, echo: u32) -> u32 {
        match (self.timestamps.get(&echo), self.first_timestamp) {
            (Some(live), _) => *live,
            (None, Some((script, live))) if echo != 0 => {
                live.wrapping_add(echo.wrapping_sub(script))
            }
            _ => echo,
        }
    }

    fn option_to_script(
        &mut self,
        option: SegmentOption,
        expected: &Segment,
        cookies: &mut BTreeMap<Vec<u8>, Vec<u8>>,
    ) -> SegmentOption {
        let list: &[SegmentOption] = match &expected.options {
            SegmentOptions::List(list) => list,
            SegmentOptions::Any => &[],
        };
        match option {
            SegmentOption::Sack(blocks) => {
                let remote = self.remote.unwrap_or(DEFAULT_ORIGIN);
                let script =
                    |(left, right)| (remote.to_script(left, false), remote.to_script(right, false));
                SegmentOption::Sack(blocks.into_iter().map(script).collect())
            }
            SegmentOption::Timestamps { value, echo } => {
                let said = list.iter().find_map(|option| match option {
                    SegmentOption::Timestamps { value, .. } => Some(*value),
                    _ => None,
                });
                if let Some(said) = said {
                    self.timestamps.insert(said, value);
                    self.first_timestamp.get_or_insert((said, value));
                }
                let (script, live) = self.first_timestamp.unwrap_or_default();
                SegmentOption::Timestamps {
                    value: script.wrapping_add(value.wrapping_sub(live)),
                    echo,
                }
            }
            SegmentOption::FastOpen(cookie) if !cookie.is_empty() => {
                SegmentOption::FastOpen(cookie_to_script(cookie, list, cookies))
            }
            SegmentOption::FastOpenExperiment(cookie) if !cookie.is_empty() => {
                SegmentOption::FastOpenExperiment(cookie_to_script(cookie, list, cookies))
            }
            option => option,
        }
    }
}

/// Returns the value by which the script refers to a cookie that the host has sent. A cookie that
/// occurs for the first time gets the value in `expected`, the options that the script expects.
fn cookie_to_script(
    cookie: Vec<u8>,
    expected: &[SegmentOption],
    cookies: &mut BTreeMap<Vec<u8>, Vec<u8>>,
) -> Vec<u8> {
    if let Some((said, _)) = cookies.iter().find(|(_, live)| **live == cookie) {
        return said.clone();
    }
    let said = expected.iter().find_map(|option| match option {
        SegmentOption::FastOpen(said) | SegmentOption::FastOpenExperiment(said)
            if !said.is_empty() =>
        {
            Some(said.clone())
        }
        _ => None,
    });
    match said.filter(|said| !cookies.contains_key(said)) {
        Some(said) => {
            cookies.insert(said.clone(), cookie);
            said
        }
        None => cookie,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::tests::packet;
    use linerate_units::Duration;

    /// Returns the TCP segment of an IP packet.
    fn segment_of(packet: &[u8]) -> linerate_wire::Segment<'_> {
        linerate_wire::Segment::parse(ParsedPacket::parse(packet).unwrap().payload).unwrap()
    }

    fn options_of(packet: &Packet) -> String {
        let Packet::Segment(segment) = packet else { panic!("{packet:?}") };
        segment.options.to_string()
    }

    fn numbers(packet: &Packet) -> (u32, Option<u32>) {
        let Packet::Segment(segment) = packet else { panic!("{packet:?}") };
        (segment.seq, segment.ack)
    }

    fn flows() -> Flows {
        Flows::new(Settings::default(), 0)
    }

    /// Builds the host's answer to `packet`, with an initial sequence number of 1,000.
    fn answer(packet: &[u8], flags: TcpFlags, seq: u32, options: &[SegmentOption]) -> Captured {
        let (source, destination) = ParsedPacket::parse(packet).unwrap().ends;
        let inbound = segment_of(packet);
        let header = TcpHeader {
            source_port: inbound.destination_port,
            destination_port: inbound.source_port,
            seq: SeqNum::new(seq),
            ack: inbound.seq + inbound.sequence_length(),
            flags,
            window: 100,
            urgent: 0,
        };
        let ends = (destination, source);
        let segment = tcp_segment(ends, &header, options, 0);
        let bytes = ip_packet(ends, &IpMarks::default(), Protocol::TCP, segment).unwrap();
        Captured { at: Duration::ZERO, bytes, line: None }
    }

    #[test]
    fn numbers_are_relative_to_the_syns_and_timestamps_are_learnt() {
        let mut flows = flows();
        let syn = flows.inbound(&packet("S 5:5(0) win 100 <TS val 7 ecr 0>")).unwrap();
        let expected = packet("S. 0:0(0) ack 6 <TS val 100 ecr 7>");
        let timestamps = [SegmentOption::Timestamps { value: 90_000, echo: 7 }];
        let syn_ack = answer(&syn, TcpFlags::SYN | TcpFlags::ACK, 1_000, &timestamps);
        let actual = flows.outbound(&syn_ack, &expected).unwrap();
        assert_eq!((numbers(&actual), options_of(&actual)), ((0, Some(6)), options_of(&expected)));

        let data = flows.inbound(&packet(". 1:11(10) ack 1 win 100 <TS val 8 ecr 100>")).unwrap();
        let live = segment_of(&data);
        assert_eq!((live.ack.number(), live.options().timestamps.unwrap().echo), (1_001, 90_000));
        let timestamps = [SegmentOption::Timestamps { value: 90_020, echo: 8 }];
        let ack = answer(&data, TcpFlags::ACK, 1_001, &timestamps);
        let actual = flows.outbound(&ack, &packet(". 1:1(0) ack 11 <...>")).unwrap();
        assert_eq!(numbers(&actual), (1, Some(11)));
        assert_eq!(options_of(&actual), " <TS val 120 ecr 8>");
    }

    #[test]
    fn cookies_of_the_host_can_have_any_name_and_cookies_of_the_peer_are_literal() {
        let mut flows = flows();
        let cookie = |byte| [SegmentOption::FastOpen(vec![byte; 4])];
        let ask = flows.inbound(&packet("S 0:0(0) win 100 <FO>")).unwrap();
        let gives = answer(&ask, TcpFlags::SYN | TcpFlags::ACK, 1_000, &cookie(7));
        let actual = flows.outbound(&gives, &packet("S. 0:0(0) ack 1 <FO aaaaaaaa>")).unwrap();
        assert_eq!(options_of(&actual), " <FO aaaaaaaa>");
        let with_request =
            flows.inbound(&packet("50001 > 8080 S 0:0(0) win 100 <FO aaaaaaaa>")).unwrap();
        assert!(with_request.ends_with(&[34, 6, 7, 7, 7, 7, 0, 0]), "{with_request:?}");

        let with_cookie = flows.inbound(&packet("S. 0:0(0) ack 1 win 100 <FO bbbbbbbb>")).unwrap();
        let other = answer(&with_cookie, TcpFlags::SYN, 1_000, &cookie(8));
        let actual = flows.outbound(&other, &packet("S 0:0(0) <FO bbbbbbbb>")).unwrap();
        assert_eq!(options_of(&actual), " <FO 08080808>");
        let answer_packet = answer(&with_cookie, TcpFlags::SYN, 1_000, &cookie(0xbb));
        let actual = flows.outbound(&answer_packet, &packet("S 0:0(0) <FO abababab>")).unwrap();
        assert_eq!(options_of(&actual), " <FO bbbbbbbb>");
    }

    #[test]
    fn ports_distinguish_connections() {
        let mut flows = flows();
        let ports = |packet: &[u8]| {
            let segment = segment_of(packet);
            (segment.source_port, segment.destination_port)
        };
        flows.listen();
        let first = flows.inbound(&packet("S 0:0(0) win 1")).unwrap();
        assert_eq!(ports(&first), (FIRST_PEER_PORT, 8_080));
        assert_eq!(
            ports(&flows.inbound(&packet("S 0:0(0) win 1")).unwrap()),
            ports(&first),
            "the ports are unchanged"
        );
        assert_eq!(ports(&flows.inbound(&packet("7 > 8080 S 0:0(0) win 1")).unwrap()), (7, 8_080));
        assert_eq!(ports(&flows.inbound(&packet(". 1:1(0) ack 1 win 1")).unwrap()), (7, 8_080));
        flows.listen();
        assert_ne!(ports(&flows.inbound(&packet("S 0:0(0) win 1")).unwrap()).0, 7);
    }
}
