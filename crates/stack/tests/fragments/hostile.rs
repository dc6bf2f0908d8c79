//! Tests with fragments of a hostile peer: overlapping, tiny and incomplete fragments, and floods
//! of fragments.

use crate::{
    Part, RIGHT, VERSIONS, answers, bind, data, datagram, deliver, pair, pair_on, receive,
};
use linerate_stack::{Error, ReassemblyLimits};
use linerate_testkit::{Network, Side};
use linerate_units::Duration;
use linerate_wire::{
    IcmpError, IcmpMessage, Icmpv6Error, Icmpv6Message, Icmpv6Problem, Ipv4Packet, Ipv6Packet,
    Protocol, Quote, TimeExceeded,
};
use std::net::IpAddr;

/// RFC 5722 §4, which this host applies to both IP versions: if two fragments overlap, the host
/// discards the whole datagram, including fragments of it that arrive later.
#[test]
fn overlapping_fragments_discard_their_datagram() {
    for hosts in VERSIONS {
        let mut pair = pair();
        let left = bind(&mut pair, Side::Left, hosts[0], 9);
        let whole = datagram(hosts, &data(56));
        deliver(&mut pair, hosts, Part::udp(0, &whole[..32], true));
        deliver(&mut pair, hosts, Part::udp(24, &whole[24..40], true));
        deliver(&mut pair, hosts, Part::udp(32, &whole[32..], false));
        deliver(&mut pair, hosts, Part::udp(0, &whole[..32], true));
        assert_eq!(receive(&mut pair, Side::Left, left), Err(Error::WouldBlock));
        let counted = pair.stack(Side::Left).counters().ip;
        assert_eq!((counted.reassembly_overlaps, counted.reassembly_failures), (1, 1));
        assert_eq!((counted.in_discards, counted.reassembly_ok), (2, 0));
        // A datagram with another identification is delivered, because the discarded datagram does
        // not affect it. The host sends no "time exceeded" error about the discarded datagram, even
        // after the reassembly time of its fragments has passed.
        let other = Part { identification: 8, ..Part::udp(0, &whole[..32], true) };
        deliver(&mut pair, hosts, other);
        deliver(&mut pair, hosts, Part { offset: 32, more: false, payload: &whole[32..], ..other });
        assert_eq!(receive(&mut pair, Side::Left, left), Ok(data(56)));
        pair.run_for(Duration::from_secs(100));
        assert_eq!(pair.stack(Side::Left).counters().icmp.out_messages, 0);
    }
}

#[test]
fn exact_duplicates_are_tolerated() {
    for hosts in VERSIONS {
        let mut pair = pair();
        let left = bind(&mut pair, Side::Left, hosts[0], 9);
        let whole = datagram(hosts, &data(56));
        for _ in 0..3 {
            deliver(&mut pair, hosts, Part::udp(32, &whole[32..], false));
        }
        deliver(&mut pair, hosts, Part::udp(0, &whole[..32], true));
        assert_eq!(receive(&mut pair, Side::Left, left), Ok(data(56)));
    }
}

/// RFC 1858 §3: if the first fragment is tiny, the TCP flags are in the second one, where a packet
/// filter does not see them. RFC 3128: a second fragment can overwrite the flags that a filter has
/// accepted. The host drops both kinds of fragments.
#[test]
fn tiny_fragments_of_segments_are_dropped() {
    let hosts = VERSIONS[0];
    let mut pair = pair();
    let segment = Part { protocol: Protocol::TCP, ..Part::udp(0, &[0; 16], true) };
    assert_eq!(deliver(&mut pair, hosts, segment).len(), 0);
    deliver(&mut pair, hosts, Part { offset: 8, payload: &[0; 40], ..segment });
    let counted = pair.stack(Side::Left).counters().ip;
    assert_eq!((counted.reassembly_required, counted.reassembly_failures), (2, 2));
    pair.run_for(Duration::from_secs(100));
    assert_eq!(pair.stack(Side::Left).counters().ip.reassembly_timeouts, 0, "nothing was kept");
}

/// RFC 7112 §5: a first fragment that does not contain all headers is discarded, and reported to
/// its source.
#[test]
fn a_first_fragment_without_all_headers_is_reported() {
    let hosts = VERSIONS[1];
    let mut pair = pair();
    let segment = Part { protocol: Protocol::TCP, ..Part::udp(0, &[0; 16], true) };
    let answer = deliver(&mut pair, hosts, segment).pop().unwrap();
    let packet = Ipv6Packet::parse(&answer).unwrap();
    let Ok(Icmpv6Message::Error { error, quote }) =
        Icmpv6Message::parse(&packet.header, packet.payload)
    else {
        panic!("an error")
    };
    let problem = Icmpv6Problem::IncompleteHeaderChain;
    assert_eq!(error, Icmpv6Error::ParameterProblem { problem, pointer: 0 });
    assert_eq!(quote.bytes(), segment.packet(hosts));
}

/// RFC 8200 §4.5, RFC 1122 §3.3.2: if the reassembly of a datagram times out after its first
/// fragment has arrived, the source gets an ICMP "time exceeded" error.
#[test]
fn the_source_is_told_after_a_minute_if_the_first_fragment_is_there() {
    for hosts in VERSIONS {
        let mut pair = pair();
        let first = Part::udp(0, &[7; 800], true);
        let later = Part { identification: 8, ..Part::udp(800, &[7; 800], true) };
        deliver(&mut pair, hosts, first);
        deliver(&mut pair, hosts, later);
        let now = pair.now + Duration::from_secs(59);
        let host = pair.host(Side::Left);
        host.turn(now).unwrap();
        assert_eq!(host.link_mut().fetch(), None);
        host.turn(now + Duration::from_secs(1)).unwrap();
        let answer = host.link_mut().fetch().expect("an error about the first datagram");
        assert_eq!(host.link_mut().fetch(), None);
        let sent = first.packet(hosts);
        if hosts[0].is_ipv4() {
            let packet = Ipv4Packet::parse(&answer).unwrap();
            let error = IcmpError::TimeExceeded(TimeExceeded::Reassembly);
            let quote = Quote::of(&sent).unwrap();
            let expected = IcmpMessage::Error { error, quote };
            assert_eq!(IcmpMessage::parse(packet.payload), Ok(expected));
        } else {
            let packet = Ipv6Packet::parse(&answer).unwrap();
            let Ok(Icmpv6Message::Error { error, quote }) =
                Icmpv6Message::parse(&packet.header, packet.payload)
            else {
                panic!("an error")
            };
            assert_eq!((error, quote.bytes()), (Icmpv6Error::ReassemblyTimeExceeded, &sent[..]));
        }
        let counters = host.stack().counters();
        assert_eq!((counters.ip.reassembly_timeouts, counters.ip.reassembly_failures), (2, 2));
        assert_eq!(counters.icmp.out_time_exceeded, 1);
    }
}

#[test]
fn broadcasts_and_icmp_errors_cause_no_error() {
    let mut pair = pair();
    let to_all = [IpAddr::from([192, 0, 2, 255]), RIGHT.into()];
    deliver(&mut pair, to_all, Part::udp(0, &[7; 800], true));
    let quoted = Part::udp(0, &[7; 800], false).packet(VERSIONS[0]);
    let error = IcmpMessage::Error {
        error: IcmpError::TimeExceeded(TimeExceeded::Transit),
        quote: Quote::of(&quoted).unwrap(),
    };
    let mut payload = vec![0; error.length()];
    error.emit(&mut payload);
    payload.truncate(payload.len() & !7);
    let part = Part { protocol: Protocol::ICMP, ..Part::udp(0, &payload, true) };
    deliver(&mut pair, VERSIONS[0], part);
    pair.run_for(Duration::from_secs(100));
    let counters = pair.stack(Side::Left).counters();
    assert_eq!((counters.ip.reassembly_timeouts, counters.icmp.out_messages), (2, 0));
}

#[test]
fn floods_of_first_fragments_stay_within_the_limits() {
    let limits = ReassemblyLimits { bytes: 64 << 10, datagrams: 16, fragments: 8 };
    for hosts in VERSIONS {
        let network = Network::clean(Duration::from_micros(50));
        let mut pair = pair_on(network, |config| config.limits.reassembly = limits);
        let left = bind(&mut pair, Side::Left, hosts[0], 9);
        let payload = data(1_400);
        for identification in 0..2_000 {
            let part = Part { identification, ..Part::udp(0, &payload, true) };
            // After each fragment, `deliver` checks all invariants of the host. One of them is that
            // fragments take no more memory than the limits permit.
            assert_eq!(deliver(&mut pair, hosts, part).len(), 0);
        }
        let counted = pair.stack(Side::Left).counters().ip;
        assert_eq!(counted.reassembly_evictions, 2_000 - 16);
        // In spite of the flood, a datagram is reassembled if its fragments arrive together.
        let whole = datagram(hosts, &data(4_000));
        for (index, payload) in whole.chunks(1_400).enumerate() {
            let (offset, more) = (u16::try_from(index * 1_400).unwrap(), index < 2);
            let part = Part { identification: 9_999, ..Part::udp(offset, payload, more) };
            deliver(&mut pair, hosts, part);
        }
        assert_eq!(receive(&mut pair, Side::Left, left), Ok(data(4_000)));
        pair.run_for(Duration::from_secs(61));
        let counted = pair.stack(Side::Left).counters().ip;
        assert_eq!(counted.reassembly_timeouts + counted.reassembly_evictions, 2_000);
    }
}

#[test]
fn a_datagram_in_too_many_fragments_is_discarded() {
    let limits = ReassemblyLimits { fragments: 8, ..ReassemblyLimits::default() };
    let network = Network::clean(Duration::from_micros(50));
    for hosts in VERSIONS {
        let mut pair = pair_on(network, |config| config.limits.reassembly = limits);
        let left = bind(&mut pair, Side::Left, hosts[0], 9);
        let whole = datagram(hosts, &data(64));
        for (index, payload) in whole.chunks(8).enumerate() {
            let offset = u16::try_from(index * 8).unwrap();
            deliver(&mut pair, hosts, Part::udp(offset, payload, index < 8));
        }
        assert_eq!(receive(&mut pair, Side::Left, left), Err(Error::WouldBlock));
        assert_eq!(pair.stack(Side::Left).counters().ip.reassembly_evictions, 1);
    }
}

/// RFC 791 §3.2, RFC 8200 §4.5: fragments are reassembled only if their addresses and
/// identifications are equal. With IPv4, their protocols must be equal too.
#[test]
fn fragments_of_different_datagrams_are_not_mixed() {
    for hosts in VERSIONS {
        let mut pair = pair();
        let left = bind(&mut pair, Side::Left, hosts[0], 9);
        let whole = datagram(hosts, &data(56));
        let other = [
            hosts[0],
            if hosts[0].is_ipv4() { [192, 0, 2, 3].into() } else { "2001:db8::3".parse().unwrap() },
        ];
        deliver(&mut pair, hosts, Part::udp(0, &whole[..32], true));
        let last = Part::udp(32, &whole[32..], false);
        deliver(&mut pair, other, last);
        deliver(&mut pair, hosts, Part { identification: 8, ..last });
        assert_eq!(receive(&mut pair, Side::Left, left), Err(Error::WouldBlock));
        let is_protocol_ignored = hosts[0].is_ipv6();
        deliver(&mut pair, hosts, Part { protocol: Protocol::TCP, ..last });
        let received = receive(&mut pair, Side::Left, left);
        assert_eq!(received.is_ok(), is_protocol_ignored);
    }
}

/// RFC 6980 §5: a node silently ignores Neighbour Discovery messages that arrive in fragments.
#[test]
fn neighbour_discovery_in_fragments_is_ignored() {
    let mut pair = pair();
    let message = [135, 0, 0, 0, 0, 0, 0, 0];
    let part = Part { protocol: Protocol::ICMPV6, ..Part::udp(0, &message, false) };
    let mut packet = part.packet(VERSIONS[1]);
    packet[7] = 255;
    assert_eq!(answers(&mut pair, packet).len(), 0);
    let counters = pair.stack(Side::Left).counters();
    assert_eq!((counters.icmp.in_errors, counters.neighbor.in_packets), (1, 0));
}
