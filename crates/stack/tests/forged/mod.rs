//! Segments to a listener from forged source addresses.

use linerate_testkit::{Pair, Side};
use linerate_wire::{Ipv4Header, Protocol, SeqNum, Sum, TcpFlags, TcpHeader};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Address of the listener.
pub(crate) const SERVER: SocketAddrV4 = SocketAddrV4::new(Side::Right.address(), 9);

/// Returns a packet with a segment from a forged source address.
pub(crate) fn forged(source: SocketAddrV4, flags: TcpFlags, seq: u32, ack: u32) -> Vec<u8> {
    let mut packet = vec![0; 40];
    let header = Ipv4Header::new(*source.ip(), *SERVER.ip(), Protocol::TCP);
    header.emit(20, &mut packet);
    let segment = TcpHeader {
        source_port: source.port(),
        destination_port: SERVER.port(),
        seq: SeqNum::new(seq),
        ack: SeqNum::new(ack),
        flags,
        window: 1_000,
        urgent: 0,
    };
    segment.emit(0, &mut packet[20..]);
    let sum = Sum::of(&packet[20..]);
    TcpHeader::fill_checksum(&mut packet[20..], header.pseudo_header(20), sum);
    packet
}

/// Delivers a packet to the server.
pub(crate) fn put(pair: &mut Pair, packet: Vec<u8>) {
    let now = pair.now;
    pair.host(Side::Right).link_mut().put(now, packet);
}

/// Returns socket address `number` from a series of addresses that no host of the test has.
pub(crate) fn invented(number: u16) -> SocketAddrV4 {
    let [high, low] = number.to_be_bytes();
    SocketAddrV4::new(Ipv4Addr::new(198, 51, high, low), 1_000)
}
