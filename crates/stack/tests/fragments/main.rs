//! Tests of fragmented datagrams of both IP versions, and of options and extension headers in
//! received packets (RFC 791 §3.2, RFC 815, RFC 8200 §4).

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod delivery;
mod extensions;
mod hostile;
mod path_mtu;
mod splitting;

use linerate_stack::{Error, Medium, StackConfig, UdpHandle, UdpOptions};
use linerate_testkit::{Network, Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::{IpHeader, Ipv4Header, Ipv6Fragment, Ipv6Header, Protocol, Sum, UdpHeader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const LEFT: Ipv4Addr = Side::Left.address();
const RIGHT: Ipv4Addr = Side::Right.address();
const LEFT_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const RIGHT_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// The addresses of the left and of the right host, for each IP version.
const VERSIONS: [[IpAddr; 2]; 2] =
    [[IpAddr::V4(LEFT), IpAddr::V4(RIGHT)], [IpAddr::V6(LEFT_IPV6), IpAddr::V6(RIGHT_IPV6)]];

fn add_ipv6(side: Side, config: &mut StackConfig) {
    let address = [LEFT_IPV6, RIGHT_IPV6][side as usize];
    config.addresses.push(format!("{address}/64").parse().unwrap());
}

/// Creates two hosts with addresses of both IP versions. Their link carries IP packets instead of
/// Ethernet frames, so that tests can write packets without an Ethernet header.
fn pair() -> Pair {
    pair_on(Network::clean(Duration::from_micros(50)), |_| {})
}

fn pair_on(network: Network, configure: impl Fn(&mut StackConfig)) -> Pair {
    let setup = Setup { medium: Medium::Ip, network, ..Setup::default() };
    Pair::new(&setup, |side, config| {
        add_ipv6(side, config);
        configure(config);
    })
}

fn bind(pair: &mut Pair, side: Side, address: IpAddr, port: u16) -> UdpHandle {
    let options = UdpOptions { receive_bytes: 4 << 20, ..UdpOptions::default() };
    pair.stack(side).udp_bind(SocketAddr::new(address, port), &options).unwrap()
}

fn receive(pair: &mut Pair, side: Side, socket: UdpHandle) -> Result<Vec<u8>, Error> {
    let mut into = vec![0; 65_536];
    let (length, _) = pair.stack(side).udp_receive_from(socket, &mut into)?;
    into.truncate(length);
    Ok(into)
}

/// Returns `length` bytes of test data. The pattern does not repeat within a datagram of the tests,
/// so that misplaced fragments are detected.
fn data(length: usize) -> Vec<u8> {
    (0..length).map(|index: usize| ((index % 251) ^ (index / 251)).to_le_bytes()[0]).collect()
}

/// Delivers a packet to the left host, and returns its answers.
fn answers(pair: &mut Pair, packet: Vec<u8>) -> Vec<Vec<u8>> {
    pair.answers(Side::Left, packet)
}

/// Returns the bytes of a UDP datagram from port 5 of the right host to port 9 of the left host.
fn datagram([left, right]: [IpAddr; 2], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; UdpHeader::LENGTH + data.len()];
    UdpHeader { source_port: 5, destination_port: 9 }.emit(data.len(), &mut bytes);
    bytes[UdpHeader::LENGTH..].copy_from_slice(data);
    let header = IpHeader::new(right, left, Protocol::UDP).unwrap();
    let (pseudo, sum) = (header.pseudo_header(bytes.len()), Sum::of(&bytes));
    UdpHeader::fill_checksum(&mut bytes, pseudo, sum);
    bytes
}

/// A fragment of a datagram from the right to the left host.
#[derive(Clone, Copy, Debug)]
struct Part<'a> {
    offset: u16,
    more: bool,
    identification: u16,
    protocol: Protocol,
    payload: &'a [u8],
}

impl<'a> Part<'a> {
    const fn udp(offset: u16, payload: &'a [u8], more: bool) -> Self {
        Self { offset, more, identification: 7, protocol: Protocol::UDP, payload }
    }

    /// Returns the IP packet with this fragment.
    fn packet(&self, [left, right]: [IpAddr; 2]) -> Vec<u8> {
        let mut bytes = vec![0; 60];
        match (left, right) {
            (IpAddr::V4(left), IpAddr::V4(right)) => {
                let header = Ipv4Header {
                    dont_fragment: false,
                    more_fragments: self.more,
                    fragment_offset: self.offset,
                    identification: self.identification,
                    ..Ipv4Header::new(right, left, self.protocol)
                };
                let length = header.emit(self.payload.len(), &mut bytes);
                bytes.truncate(length);
            }
            (IpAddr::V6(left), IpAddr::V6(right)) => {
                let header = Ipv6Header::new(right, left, Protocol::FRAGMENT);
                let at = header.emit(8 + self.payload.len(), &mut bytes);
                let fragment = Ipv6Fragment {
                    offset: self.offset,
                    more: self.more,
                    identification: self.identification.into(),
                };
                let length = at + fragment.emit(self.protocol, &mut bytes[at..]);
                bytes.truncate(length);
            }
            _ => panic!("the hosts have addresses of one version"),
        }
        bytes.extend_from_slice(self.payload);
        bytes
    }
}

/// Delivers a fragment to the left host, and returns the answers of the host.
fn deliver(pair: &mut Pair, hosts: [IpAddr; 2], part: Part<'_>) -> Vec<Vec<u8>> {
    answers(pair, part.packet(hosts))
}
