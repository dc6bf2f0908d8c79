//! Fuzz target: a host with low limits receives fragments, IP options and extension headers. If all
//! fragments of a datagram that the host has received are genuine, the host must deliver the
//! datagram undamaged or not at all.

use super::choices::Choices;
use super::finish_turns;
use crate::pair::Side;
use crate::test_link::TestLink;
use linerate_stack::{Capabilities, Host, Medium, ReassemblyLimits, Stack, UdpHandle, UdpOptions};
use linerate_units::{Duration, Instant};
use linerate_wire::{
    IpHeader, Ipv4Header, Ipv4Packet, Ipv6Fragment, Ipv6Header, Ipv6Packet, Protocol, Sum,
    UdpHeader,
};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const MTU: usize = 1_500;
const HOST: Side = Side::Right;
const OWN_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const PEER_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// Number of datagrams per IP version from which the fragments of a test case are taken.
const DATAGRAMS: usize = 8;

/// Runs the test case that `bytes` encode.
///
/// # Panics
/// If an invariant is violated, the host sends a malformed packet, or it delivers a damaged
/// datagram.
pub fn fragments_into_a_host(bytes: &[u8]) {
    let mut case = TestCase::begin(Choices::new(bytes));
    while !case.choices.is_empty() {
        case.step();
    }
}

struct TestCase<'a> {
    choices: Choices<'a>,
    now: Instant,
    host: Host<TestLink>,
    sockets: [UdpHandle; 2],
    /// For each IP version and datagram, whether a forged fragment of it was sent.
    is_forged: [[bool; DATAGRAMS]; 2],
}

/// Returns the IP addresses of the host and of its peer.
fn ends(is_ipv6: bool) -> (IpAddr, IpAddr) {
    if is_ipv6 {
        (OWN_IPV6.into(), PEER_IPV6.into())
    } else {
        (HOST.address().into(), HOST.other().address().into())
    }
}

/// Returns the data of datagram `number`. Its first byte is this number.
fn data(number: usize) -> Vec<u8> {
    (0..100 + number * 397)
        .map(|at| if at == 0 { number } else { at * (number + 3) }.to_le_bytes()[0])
        .collect()
}

/// Returns datagram `number`, from the UDP header on, as the peer would send it.
fn datagram(is_ipv6: bool, number: usize) -> Vec<u8> {
    let (own, peer) = ends(is_ipv6);
    let data = data(number);
    let mut bytes = vec![0; UdpHeader::LENGTH + data.len()];
    UdpHeader { source_port: 5, destination_port: 9 }.emit(data.len(), &mut bytes);
    bytes[UdpHeader::LENGTH..].copy_from_slice(&data);
    let header = IpHeader::new(peer, own, Protocol::UDP).expect("addresses of one version");
    let (pseudo, sum) = (header.pseudo_header(bytes.len()), Sum::of(&bytes));
    UdpHeader::fill_checksum(&mut bytes, pseudo, sum);
    bytes
}

impl<'a> TestCase<'a> {
    fn begin(choices: Choices<'a>) -> Self {
        let mut config = HOST.config();
        config.addresses.push(format!("{OWN_IPV6}/64").parse().expect("an address"));
        config.limits.reassembly = ReassemblyLimits { bytes: 12_000, datagrams: 4, fragments: 16 };
        let link = TestLink::new(Capabilities::new(Medium::Ip, MTU), 64);
        let mut host = Host::new(Stack::new(config, [7; 32]), link);
        let sockets = [false, true].map(|is_ipv6| {
            let local = SocketAddr::new(ends(is_ipv6).0, 9);
            host.stack_mut().udp_bind(local, &UdpOptions::default()).expect("the port is free")
        });
        let now = Instant::ZERO + Duration::from_secs(1_000);
        Self { choices, now, host, sockets, is_forged: [[false; DATAGRAMS]; 2] }
    }

    fn step(&mut self) {
        let choice = self.choices.byte();
        let is_ipv6 = choice & 1 == 1;
        match choice >> 1 & 7 {
            0..=3 => self.fragment(is_ipv6),
            4 => self.extended(is_ipv6),
            5 => self.send(is_ipv6),
            6 => self.now += self.choices.span(),
            _ => {
                let next = self.host.stack().poll_timeout();
                if next != Instant::NEVER {
                    self.now = self.now.max(next);
                }
            }
        }
        self.turn();
        self.receive();
    }

    /// Delivers a fragment of one of the datagrams to the host. In some cases, the fragment is
    /// forged: its payload, its length or its More Fragments flag is changed.
    fn fragment(&mut self, is_ipv6: bool) {
        let number = usize::from(self.choices.byte()) % DATAGRAMS;
        let whole = datagram(is_ipv6, number);
        let offset = usize::from(self.choices.byte()) * 8 % whole.len().next_multiple_of(8);
        let length = (usize::from(self.choices.byte()) + 1) * 8;
        let end = (offset + length).min(whole.len());
        let mut payload = whole[offset..end].to_vec();
        let mut more = end < whole.len();
        let fault = self.choices.byte();
        if fault >= 0xf0 {
            self.is_forged[usize::from(is_ipv6)][number] = true;
            match fault & 3 {
                0 => payload.iter_mut().for_each(|byte| *byte ^= 1),
                1 if payload.len().is_multiple_of(8) => more = !more,
                2 => payload.extend(self.choices.bytes()),
                _ => payload.truncate(payload.len() / 16 * 8),
            }
        }
        self.deliver_fragment(is_ipv6, number, offset, more, &payload);
    }

    fn deliver_fragment(
        &mut self,
        is_ipv6: bool,
        number: usize,
        offset: usize,
        more: bool,
        payload: &[u8],
    ) {
        let (offset, number) =
            (u16::try_from(offset).unwrap_or(0) & !7, u16::try_from(number).unwrap_or(0));
        let mut bytes = vec![0; 60];
        let length = if is_ipv6 {
            let header = Ipv6Header::new(PEER_IPV6, OWN_IPV6, Protocol::FRAGMENT);
            let at = header.emit(8 + payload.len(), &mut bytes);
            let fragment = Ipv6Fragment { offset, more, identification: number.into() };
            at + fragment.emit(Protocol::UDP, &mut bytes[at..])
        } else {
            let peer = HOST.other().address();
            let header = Ipv4Header {
                dont_fragment: false,
                more_fragments: more,
                fragment_offset: offset,
                identification: number,
                ..Ipv4Header::new(peer, HOST.address(), Protocol::UDP)
            };
            header.emit(payload.len(), &mut bytes)
        };
        bytes.truncate(length);
        bytes.extend_from_slice(payload);
        self.host.link_mut().put(self.now, bytes);
    }

    /// Delivers a packet with arbitrary IP options or extension headers.
    fn extended(&mut self, is_ipv6: bool) {
        let mut bytes = vec![0; 60];
        if is_ipv6 {
            let next = self.choices.of(&[0, 43, 44, 60, 51, 59, 17, 6]);
            let destination =
                self.choices.of(&[OWN_IPV6, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)]);
            let body = self.choices.bytes();
            // The arbitrary bytes may be a fragment of any of the IPv6 datagrams, so all of them
            // count as forged.
            self.is_forged[1].fill(true);
            let header = Ipv6Header::new(PEER_IPV6, destination, Protocol::new(next));
            let at = header.emit(body.len(), &mut bytes);
            bytes.truncate(at);
            bytes.extend_from_slice(body);
        } else {
            let options = self.choices.bytes();
            let options = &options[..options.len().min(40) / 4 * 4];
            let peer = HOST.other().address();
            let header = Ipv4Header::new(peer, HOST.address(), Protocol::UDP);
            let whole = datagram(false, 0);
            let at = header.emit_with_options(options, whole.len(), &mut bytes);
            bytes.truncate(at);
            bytes.extend_from_slice(&whole);
        }
        self.host.link_mut().put(self.now, bytes);
    }

    /// Makes the host send a datagram or an echo request, which may need fragments.
    fn send(&mut self, is_ipv6: bool) {
        let (_, peer) = ends(is_ipv6);
        let data = vec![7; usize::from(self.choices.half())];
        let now = self.now;
        let socket = self.sockets[usize::from(is_ipv6)];
        let stack = self.host.stack_mut();
        if self.choices.yes() {
            let _ = stack.udp_send_to(now, socket, SocketAddr::new(peer, 7), &data);
        } else {
            let _ = stack.echo_send(now, peer, 1, 1, &data);
        }
    }

    /// Runs the host until it has nothing more to do, and checks every packet that it sends.
    fn turn(&mut self) {
        for packet in finish_turns(&mut self.host, self.now) {
            assert!(packet.len() <= MTU, "longer than the link's MTU");
            if packet[0] >> 4 == 6 {
                Ipv6Packet::parse(&packet).expect("IPv6");
            } else {
                Ipv4Packet::parse(&packet).expect("IPv4");
            }
        }
    }

    fn receive(&mut self) {
        let mut bytes = vec![0; 65_536];
        for (version, socket) in self.sockets.into_iter().enumerate() {
            while let Ok((length, _)) = self.host.stack_mut().udp_receive_from(socket, &mut bytes) {
                let received = &bytes[..length];
                let number = received.first().map_or(0, |&first| usize::from(first) % DATAGRAMS);
                if self.is_forged[version].iter().all(|&is_forged| !is_forged) {
                    assert!(received == data(number), "datagram {number} is damaged");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oorandom::Rand64;

    #[test]
    fn random_fragments_break_no_invariant() {
        let mut random = Rand64::new(26);
        for _ in 0..300 {
            let bytes: Vec<u8> = (0..400).map(|_| random.rand_u64().to_le_bytes()[0]).collect();
            fragments_into_a_host(&bytes);
        }
    }

    #[test]
    fn genuine_fragments_are_delivered() {
        let mut case = TestCase::begin(Choices::new(&[]));
        for is_ipv6 in [false, true] {
            let whole = datagram(is_ipv6, 5);
            for (index, payload) in whole.chunks(512).enumerate() {
                let more = (index + 1) * 512 < whole.len();
                case.deliver_fragment(is_ipv6, 5, index * 512, more, payload);
            }
        }
        case.turn();
        let counted = case.host.stack().counters();
        assert_eq!((counted.ip.reassembly_ok, counted.udp.in_datagrams), (2, 2));
    }
}
