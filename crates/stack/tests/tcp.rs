//! Tests of TCP connections between two hosts.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{ConnectOptions, Error, Event, ListenOptions, Medium, Route, TcpHandle};
use linerate_tcp::{Config, EcnRule, Error as TcpError, Event as TcpEvent, State};
use linerate_testkit::transfer::{established, listen};
use linerate_testkit::{Fate, Network, Pair, Setup, Side, Transfer};
use linerate_units::Duration;
use linerate_wire::{Ecn, Ipv4Packet, Segment, TypeOfService};
use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::{NonZeroU8, NonZeroU32};
use std::rc::Rc;

fn pair() -> Pair {
    Pair::new(&Setup::default(), |_, _| {})
}

fn at(side: Side, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(side.address(), port)
}

fn connect(pair: &mut Pair, remote: SocketAddrV4) -> TcpHandle {
    let now = pair.now;
    pair.stack(Side::Left).tcp_connect(now, remote, &ConnectOptions::default()).unwrap()
}

/// Closes a connection on both hosts. The right host closes first, so its end of the connection
/// enters TIME-WAIT.
fn close(pair: &mut Pair, left: TcpHandle, right: TcpHandle) {
    for (side, end) in [(Side::Right, right), (Side::Left, left)] {
        let now = pair.now;
        pair.stack(side).tcp_close(now, end).unwrap();
        pair.run_for(Duration::from_millis(10));
    }
}

fn events(pair: &mut Pair, side: Side) -> Vec<Event> {
    std::iter::from_fn(|| pair.stack(side).poll_event()).collect()
}

#[test]
fn a_read_from_a_compact_connection_keeps_the_invariants() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let (left, _) = established(&mut pair, listener);
    pair.run_for(Duration::from_secs(10));
    let now = pair.now;
    assert_eq!(pair.stack(Side::Left).tcp_read(now, left, &mut [0]), Err(Error::WouldBlock));
    pair.stack(Side::Left).check();
}

#[test]
fn an_unpacked_connection_keeps_its_header_options() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let (left, _) = established(&mut pair, listener);
    pair.stack(Side::Left).tcp_set_ttl(left, NonZeroU8::new(9).unwrap()).unwrap();
    pair.stack(Side::Left).tcp_set_type_of_service(left, TypeOfService::from_byte(0xb8)).unwrap();
    pair.run_for(Duration::from_secs(10));
    let last = Rc::new(RefCell::new(None));
    let noted = Rc::clone(&last);
    pair.observe(move |_, side, frame| {
        if let (Side::Left, Ok(packet)) = (side, Ipv4Packet::parse(&frame[14..])) {
            *noted.borrow_mut() = Some((packet.header.ttl, packet.header.type_of_service.byte()));
        }
    });
    let now = pair.now;
    assert_eq!(pair.stack(Side::Left).tcp_write(now, left, b"awake"), Ok(5));
    pair.run_for(Duration::from_millis(10));
    assert_eq!(last.take(), Some((9, 0xb8)));
}

#[test]
fn a_connection_opens_transfers_in_both_directions_and_closes() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let (left, right) = established(&mut pair, listener);
    let opened = events(&mut pair, Side::Left);
    assert_eq!(opened[0], Event::Tcp(left, TcpEvent::Connected));
    assert_eq!(events(&mut pair, Side::Right), [Event::Incoming(listener)]);
    assert_eq!(pair.stack(Side::Right).tcp_local_addr(right), Ok(at(Side::Right, 9).into()));
    assert_eq!(pair.stack(Side::Left).tcp_peer_addr(left), Ok(at(Side::Right, 9).into()));

    let mut there = Transfer::new((Side::Left, left), (Side::Right, right), 100_000);
    let mut back = Transfer::new((Side::Right, right), (Side::Left, left), 50_000);
    let done = |pair: &mut Pair| {
        let there = there.advance(pair);
        back.advance(pair) && there
    };
    assert!(pair.run_until(Duration::from_secs(10), done));
    let now = pair.now;
    pair.stack(Side::Left).tcp_close(now, left).unwrap();
    pair.stack(Side::Right).tcp_close(now, right).unwrap();
    assert_eq!(pair.stack(Side::Left).tcp_close(now, left), Err(Error::Closed));
    pair.run_for(Duration::from_secs(120));
    for side in Side::BOTH {
        let counters = pair.stack(side).counters();
        assert_eq!(counters.tcp.currently_established, 0);
        assert_eq!((counters.tcp.retransmitted_segments, counters.tcp.established_resets), (0, 0));
        assert_eq!(
            pair.stack(side).poll_timeout(),
            linerate_units::Instant::NEVER,
            "no timer is left"
        );
    }
    let counters = pair.stack(Side::Right).counters().tcp_extra;
    assert!(
        counters.flow_repeats * 10 > counters.flow_lookups * 9,
        "runs of one flow are hashed once: {counters}"
    );
}

#[test]
fn a_port_without_a_listener_refuses() {
    let mut pair = pair();
    let left = connect(&mut pair, at(Side::Right, 9));
    pair.run_for(Duration::from_millis(10));
    assert_eq!(events(&mut pair, Side::Left), [Event::Tcp(left, TcpEvent::Closed)]);
    let now = pair.now;
    let read = pair.stack(Side::Left).tcp_read(now, left, &mut [0; 9]);
    assert_eq!(read, Err(Error::Tcp(TcpError::Refused)));
    assert_eq!(pair.stack(Side::Left).counters().tcp.attempt_failures, 1);
    assert_eq!(pair.stack(Side::Right).counters().tcp.out_resets, 1);
    pair.stack(Side::Left).tcp_close(now, left).unwrap();
    assert!(pair.stack(Side::Left).tcp(left).is_none());
}

#[test]
fn a_transfer_survives_loss_duplication_and_reordering() {
    for seed in 1..=4 {
        let network = Network {
            loss: 20,
            duplication: 20,
            reordering: 20,
            corruption: 10,
            lateness: Duration::from_micros(300),
            ..Setup::default().network
        };
        let mut pair = Pair::new(&Setup { network, seed, ..Setup::default() }, |_, _| {});
        let listener = listen(&mut pair);
        let (left, right) = established(&mut pair, listener);
        let mut transfer = Transfer::new((Side::Left, left), (Side::Right, right), 1 << 20);
        let done = pair.run_until(Duration::from_secs(600), |pair| transfer.advance(pair));
        assert!(done, "seed {seed}: {} bytes", transfer.read());
        assert!(pair.stack(Side::Left).counters().tcp.retransmitted_segments > 0);
    }
}

/// RFC 3168 §6.1: a sender sends new data in ECN-capable packets. The receiver reports their
/// congestion marks to the sender, which must then slow down.
#[test]
fn ecn_marks_slow_a_transfer_down_without_loss() {
    for medium in [Medium::Ethernet, Medium::Ip] {
        let setup = Setup { medium, ..Setup::default() };
        let mut pair = Pair::new(&setup, |side, config| {
            config.tcp.ecn = if side == Side::Left { EcnRule::Request } else { EcnRule::Accept };
        });
        let listener = listen(&mut pair);
        let (left, right) = established(&mut pair, listener);
        let treatment = TypeOfService::from_byte(0xbb);
        pair.stack(Side::Left).tcp_set_type_of_service(left, treatment).unwrap();
        // The network marks 2 % of the packets with data. It drops 2 % of the acknowledgements,
        // because they are not ECN-capable. A later acknowledgement covers the data of a dropped
        // one, so no fast retransmission follows.
        pair.wire.network.marking = 20;
        let seen = Rc::new(RefCell::new(Vec::new()));
        let log = Rc::clone(&seen);
        pair.observe(move |_, side, frame| {
            let packet = Ipv4Packet::parse(&frame[medium.header_length()..]).ok();
            log.borrow_mut().extend(packet.map(|packet| {
                let segment = Segment::parse(packet.payload).unwrap();
                (side, segment.payload.len(), packet.header.type_of_service)
            }));
        });
        let mut transfer = Transfer::new((Side::Left, left), (Side::Right, right), 1 << 20);
        assert!(pair.run_until(Duration::from_secs(600), |pair| transfer.advance(pair)));
        let sent = pair.stack(Side::Left).tcp(left).unwrap().statistics().clone();
        let marked = pair.stack(Side::Right).counters().tcp_extra.marked_segments;
        assert!(marked > 5 && sent.mark_reductions > 3, "{marked} marks, {sent:?}");
        assert_eq!(sent.fast_retransmissions, 0, "{medium:?}");
        for (side, length, treatment) in seen.borrow().iter() {
            let may_be_marked = treatment.ecn() == Ecn::Ect0;
            assert!(!may_be_marked || (*side == Side::Left && *length > 0), "{side:?} {length}");
            assert_eq!(treatment.dscp(), if *side == Side::Left { 0x2e } else { 0 });
        }
        let data = seen.borrow().iter().filter(|(_, length, _)| *length > 0).count();
        let markable =
            seen.borrow().iter().filter(|(_, _, treatment)| treatment.ecn() == Ecn::Ect0).count();
        assert_eq!(data as u64, markable as u64 + sent.retransmitted_segments);
    }
}

#[test]
fn links_without_ethernet_and_with_little_room_carry_connections() {
    let setup = Setup { medium: Medium::Ip, mtu: 576, capacity: 2, ..Setup::default() };
    let mut pair = Pair::new(&setup, |_, _| {});
    let listener = listen(&mut pair);
    let (left, right) = established(&mut pair, listener);
    let mut transfer = Transfer::new((Side::Left, left), (Side::Right, right), 100_000);
    assert!(pair.run_until(Duration::from_secs(60), |pair| transfer.advance(pair)));
}

#[test]
fn a_host_connects_to_itself() {
    let mut pair = pair();
    for address in [Side::Left.address(), Ipv4Addr::LOCALHOST] {
        let (now, here) = (pair.now, SocketAddrV4::new(address, 9));
        let stack = pair.stack(Side::Left);
        let listener = stack.tcp_listen(here, &ListenOptions::default()).unwrap();
        let client = stack.tcp_connect(now, here, &ConnectOptions::default()).unwrap();
        pair.run_for(Duration::from_millis(1));
        let (server, _) = pair.stack(Side::Left).tcp_accept(listener).unwrap();
        // After a time without activity, both ends of the connection are in their compact form.
        pair.run_for(Duration::from_secs(5));
        pair.stack(Side::Left).check();
        let mut transfer = Transfer::new((Side::Left, client), (Side::Left, server), 1 << 20);
        assert!(pair.run_until(Duration::from_secs(10), |pair| transfer.advance(pair)));
    }
    let counters = pair.stack(Side::Left).counters();
    assert_eq!((counters.transmit.packets, counters.tcp.retransmitted_segments), (0, 0));
}

#[test]
fn eight_senders_share_the_link_fairly() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let mut transfers: Vec<_> = (0..8)
        .map(|_| {
            let (left, right) = established(&mut pair, listener);
            Transfer::new((Side::Left, left), (Side::Right, right), 64 << 20)
        })
        .collect();
    pair.run_until(Duration::from_millis(200), |pair| {
        for transfer in &mut transfers {
            transfer.advance(pair);
        }
        false
    });
    let mut shares: Vec<_> = transfers.iter().map(|transfer| transfer.read()).collect();
    shares.sort_unstable();
    assert!(shares[0] > 1 << 20, "{shares:?}");
    assert!(shares[7] * 4 < shares[0] * 5, "{shares:?}");
}

#[test]
fn a_route_clamps_window_and_segments() {
    let mut pair = Pair::new(&Setup::default(), |side, config| {
        if side == Side::Right {
            let direct = Route::direct("192.0.2.0/24".parse().unwrap());
            config.routes.push(Route { window_clamp: Some(4_096), mtu: Some(1_000), ..direct });
        }
    });
    let listener = listen(&mut pair);
    let (left, right) = established(&mut pair, listener);
    let now = pair.now;
    for _ in 0..4 {
        pair.stack(Side::Left).tcp_write(now, left, &[7; 4_000]).unwrap();
    }
    pair.run_for(Duration::from_millis(100));
    let waiting = pair.stack(Side::Right).tcp(right).unwrap().readable_bytes();
    assert!(waiting <= 4_096, "{waiting} bytes were sent into a window of 4096");
    assert_eq!(pair.stack(Side::Left).tcp(left).unwrap().effective_mss(), 1_000 - 40 - 12);
}

#[test]
fn a_route_determines_the_initial_windows_of_both_opens() {
    let mut pair = Pair::new(&Setup::default(), |_, config| {
        let initial_window = NonZeroU32::new(3);
        let initial_receive_window = NonZeroU32::new(4);
        let direct = Route::direct("192.0.2.0/24".parse().unwrap());
        config.routes.push(Route { initial_window, initial_receive_window, ..direct });
    });
    let listener = listen(&mut pair);
    let (left, right) = established(&mut pair, listener);
    for (side, handle) in [(Side::Left, left), (Side::Right, right)] {
        let connection = pair.stack(side).tcp(handle).unwrap();
        let segment = u32::try_from(connection.effective_mss()).unwrap();
        assert_eq!(connection.information().congestion_window, 3 * segment, "{side:?}");
        assert_eq!(connection.receive_buffer(), 4 * 1_460, "{side:?}");
    }
}

#[test]
fn a_changed_mac_address_is_followed_within_a_transfer() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let (left, right) = established(&mut pair, listener);
    let moved = linerate_wire::MacAddress::new([2, 0, 0, 0, 0, 99]);
    let announcement =
        linerate_wire::ArpPacket::request(moved, Side::Right.address(), Side::Right.address());
    let mut frame = vec![0; 42];
    let header = linerate_wire::EthernetHeader {
        destination: linerate_wire::MacAddress::BROADCAST,
        source: moved,
        tags: linerate_wire::VlanTags::NONE,
        ether_type: linerate_wire::EtherType::ARP,
    };
    let begin = header.emit(&mut frame);
    announcement.emit(&mut frame[begin..]);
    let now = pair.now;
    pair.host(Side::Left).link_mut().put(now, frame);
    let destinations = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&destinations);
    pair.observe(move |_, side, bytes| {
        if side == Side::Left {
            let header = linerate_wire::EthernetFrame::parse(bytes).unwrap().header;
            log.borrow_mut().push(header.destination);
        }
    });
    pair.run_for(Duration::from_millis(1));
    pair.stack(Side::Left).tcp_write(now, left, b"to your new address").unwrap();
    // No host has the MAC address that was announced for the right host, so the segment and its
    // first retransmissions are lost. The neighbour entry then becomes stale, and its unicast
    // probes fail. Finally, a broadcast request finds the right MAC address.
    let mut into = [0; 64];
    let mut read = 0;
    assert!(pair.run_until(Duration::from_secs(200), |pair| {
        let now = pair.now;
        read = pair.stack(Side::Right).tcp_read(now, right, &mut into).unwrap_or(0);
        read > 0
    }));
    assert_eq!(&into[..read], b"to your new address");
    assert_eq!(destinations.borrow()[0], moved);
}

#[test]
fn an_unresolved_neighbour_is_a_soft_error_and_a_missing_route_a_hard_one() {
    let mut pair = pair();
    let now = pair.now;
    let far = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 9);
    let refused = pair.stack(Side::Left).tcp_connect(now, far, &ConnectOptions::default());
    assert_eq!(refused, Err(Error::NoRoute((*far.ip()).into())));
    let left = connect(&mut pair, SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 77), 9));
    pair.run_for(Duration::from_secs(5));
    assert!(pair.stack(Side::Left).tcp(left).is_some());
    assert!(pair.stack(Side::Left).counters().neighbor.failures > 0);
}

#[test]
fn a_connection_in_time_wait_is_reopened_by_a_syn() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let local = at(Side::Left, 5_000);
    let options = ConnectOptions { local: Some(local.into()), ..ConnectOptions::default() };
    for round in 0..5 {
        let now = pair.now;
        let left = pair.stack(Side::Left).tcp_connect(now, at(Side::Right, 9), &options).unwrap();
        pair.run_for(Duration::from_millis(10));
        let (right, peer) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
        assert_eq!(peer, local.into(), "round {round}");
        close(&mut pair, left, right);
    }
    assert_eq!(pair.stack(Side::Right).counters().tcp_extra.time_wait_recycled, 4);
}

/// When a connection ends, its timer stays in the timer wheel. The next connection in the slot of
/// the ended one must ignore this timer, and keep its own deadlines.
#[test]
fn a_reused_slot_does_not_change_the_timers() {
    let syns = |follows: bool| {
        let mut pair = pair();
        if follows {
            let listener = listen(&mut pair);
            let (left, right) = established(&mut pair, listener);
            close(&mut pair, left, right);
            assert!(
                pair.stack(Side::Left).poll_timeout() < pair.now + Duration::from_secs(1),
                "the timer was left"
            );
        }
        let left = Rc::new(RefCell::new(Vec::new()));
        let (noted, start) = (Rc::clone(&left), pair.now);
        pair.set_filter(move |at, side, frame| {
            let is_packet = Ipv4Packet::parse(&frame[14..]).is_ok();
            if side == Side::Left && is_packet {
                noted.borrow_mut().push(at.since(start).as_millis());
            }
            is_packet.then_some(Fate::Lose)
        });
        connect(&mut pair, at(Side::Right, 9));
        pair.run_for(Duration::from_secs(30));
        left.take()
    };
    let (after, fresh) = (syns(true), syns(false));
    assert_eq!(fresh.len(), 5);
    assert_eq!(after, fresh);
}

/// Several connections enter TIME-WAIT one after the other, and each must end after its own
/// duration of TIME-WAIT. That of the third connection is shorter than those of the two before it.
/// The application releases the second connection only after all five have entered TIME-WAIT.
#[test]
fn each_connection_in_time_wait_ends_on_time() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let seconds = Duration::from_secs;
    let msl = [30, 30, 5, 30, 30];
    let locals = [5_000, 5_001, 5_002, 5_003, 5_004].map(|port| at(Side::Left, port));
    let options = |number: usize| ConnectOptions {
        local: Some(locals[number].into()),
        config: Some(Config { msl: seconds(msl[number]), ..Config::modern() }),
        ..ConnectOptions::default()
    };
    let mut ends = Vec::new();
    let mut held = None;
    for (number, msl) in msl.into_iter().enumerate() {
        let now = pair.now;
        let left =
            pair.stack(Side::Left).tcp_connect(now, at(Side::Right, 9), &options(number)).unwrap();
        pair.run_for(Duration::from_millis(10));
        let (right, _) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
        let now = pair.now;
        if number == 1 {
            pair.stack(Side::Left).tcp_shutdown_write(now, left).unwrap();
            held = Some(left);
        } else {
            pair.stack(Side::Left).tcp_close(now, left).unwrap();
        }
        pair.run_for(Duration::from_millis(10));
        let now = pair.now;
        pair.stack(Side::Right).tcp_close(now, right).unwrap();
        ends.push(pair.now + seconds(2 * msl));
        pair.run_for(seconds(2));
    }
    let now = pair.now;
    pair.stack(Side::Left).tcp_close(now, held.unwrap()).unwrap();
    let mut numbers: Vec<_> = (0..msl.len()).collect();
    numbers.sort_by_key(|&number| ends[number]);
    for number in numbers {
        pair.run_for(ends[number].since(pair.now));
        let now = pair.now;
        let again = pair.stack(Side::Left).tcp_connect(now, at(Side::Right, 9), &options(number));
        assert_eq!(
            again,
            Err(Error::AddressInUse(locals[number].into())),
            "{number} is in TIME-WAIT"
        );
        // Records of TIME-WAIT share a timer, so they may end late, by up to a sixteenth of their
        // duration. The third connection (number 2) must end before the records that precede it in
        // the queue. It therefore has its own timer, and ends on time.
        let longer = Duration::from_millis(if number == 2 { 10 } else { 1_900 });
        pair.run_for(longer);
        if number == 2 {
            let now = pair.now;
            pair.stack(Side::Left).tcp_connect(now, at(Side::Right, 9), &options(number)).unwrap();
        }
    }
    pair.run_for(seconds(2));
    for number in [0, 1, 3, 4] {
        let now = pair.now;
        pair.stack(Side::Left).tcp_connect(now, at(Side::Right, 9), &options(number)).unwrap();
    }
}

#[test]
fn the_limit_of_time_wait_ends_the_oldest() {
    let mut pair = Pair::new(&Setup::default(), |_, config| config.limits.time_wait = 3);
    let listener = listen(&mut pair);
    for _ in 0..5 {
        let (left, right) = established(&mut pair, listener);
        let now = pair.now;
        pair.stack(Side::Left).tcp_close(now, left).unwrap();
        pair.run_for(Duration::from_millis(10));
        pair.stack(Side::Right).tcp_close(now, right).unwrap();
        pair.run_for(Duration::from_millis(10));
    }
    assert_eq!(pair.stack(Side::Left).counters().tcp_extra.time_wait_overflows, 2);
}

#[test]
fn exhausted_ephemeral_ports_are_an_error_and_used_ports_are_skipped() {
    let mut pair =
        Pair::new(&Setup::default(), |_, config| config.ephemeral_ports = 40_000..=40_004);
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    stack.tcp_listen(at(Side::Left, 40_002), &ListenOptions::default()).unwrap();
    let remote = at(Side::Right, 9);
    let mut ports = Vec::new();
    let error = loop {
        match stack.tcp_connect(now, remote, &ConnectOptions::default()) {
            Ok(handle) => ports.push(stack.tcp_local_addr(handle).unwrap().port()),
            Err(error) => break error,
        }
    };
    ports.sort_unstable();
    assert_eq!(ports, [40_000, 40_001, 40_003, 40_004]);
    assert_eq!(error, Error::PortsExhausted(remote.into()));
    let local = at(Side::Left, 40_000);
    let again = stack.tcp_connect(
        now,
        remote,
        &ConnectOptions { local: Some(local.into()), ..ConnectOptions::default() },
    );
    assert_eq!(again, Err(Error::AddressInUse(local.into())));
    // The limit of ephemeral ports applies separately to each combination of two addresses and a
    // destination port. A connection to another destination port therefore succeeds.
    assert!(stack.tcp_connect(now, at(Side::Right, 10), &ConnectOptions::default()).is_ok());
}

#[test]
fn invalid_calls_are_refused_with_a_reason() {
    let mut pair = pair();
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    for invalid in ["192.0.2.255:9", "255.255.255.255:9", "224.0.0.1:9", "0.0.0.0:9", "192.0.2.2:0"]
    {
        let invalid: SocketAddrV4 = invalid.parse().unwrap();
        let refused = stack.tcp_connect(now, invalid, &ConnectOptions::default());
        assert_eq!(refused, Err(Error::InvalidDestination(invalid.into())));
    }
    let foreign =
        ConnectOptions { local: Some(at(Side::Right, 0).into()), ..ConnectOptions::default() };
    let refused = stack.tcp_connect(now, at(Side::Right, 9), &foreign);
    assert_eq!(refused, Err(Error::AddressNotOurs(Side::Right.address().into())));
    // RFC 1122 §3.2.1.3 (g): packets with a loopback address must not leave a host.
    let loopback = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let within = ConnectOptions { local: Some(loopback.into()), ..ConnectOptions::default() };
    let refused = stack.tcp_connect(now, at(Side::Right, 9), &within);
    assert_eq!(refused, Err(Error::Loopback(Ipv4Addr::LOCALHOST.into())));
    assert!(stack.tcp_connect(now, at(Side::Left, 9), &within).is_ok());
    let listener = stack.tcp_listen(at(Side::Left, 9), &ListenOptions::default()).unwrap();
    let again = stack.tcp_listen(at(Side::Left, 9), &ListenOptions::default());
    assert_eq!(again, Err(Error::AddressInUse(at(Side::Left, 9).into())));
    stack.tcp_listen_close(now, listener).unwrap();
    assert!(stack.tcp_listen(at(Side::Left, 9), &ListenOptions::default()).is_ok());
    assert_eq!(stack.tcp_listen_addr(listener), Err(Error::Closed));
}

#[test]
fn an_abort_resets_the_peer() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let (left, right) = established(&mut pair, listener);
    let now = pair.now;
    pair.stack(Side::Left).tcp_abort(now, left).unwrap();
    pair.run_for(Duration::from_millis(10));
    assert_eq!(pair.stack(Side::Right).tcp(right).unwrap().error(), Some(TcpError::Reset));
    let counters = pair.stack(Side::Left).counters().tcp;
    assert_eq!((counters.out_resets, counters.established_resets), (1, 1));
    // The connection has ended, so its port is free, although the application on the right host
    // still holds its handle.
    let options =
        ConnectOptions { local: Some(at(Side::Right, 9).into()), ..ConnectOptions::default() };
    assert!(pair.stack(Side::Right).tcp_connect(now, at(Side::Left, 7), &options).is_ok());
}

#[test]
fn a_socket_can_have_its_own_configuration() {
    let mut pair = pair();
    let listener = listen(&mut pair);
    let now = pair.now;
    let options = ConnectOptions { config: Some(Config::bsd_tahoe()), ..ConnectOptions::default() };
    let left = pair.stack(Side::Left).tcp_connect(now, at(Side::Right, 9), &options).unwrap();
    pair.run_for(Duration::from_millis(10));
    assert!(pair.stack(Side::Right).tcp_accept(listener).is_some());
    let connection = pair.stack(Side::Left).tcp(left).unwrap();
    assert_eq!((connection.state(), connection.effective_mss()), (State::Established, 1_460));
    assert_eq!(connection.writable_bytes(), 4_096);
    let set = pair.stack(Side::Left).tcp_configure(now, left, |connection| {
        connection.set_no_delay(true);
        connection.no_delay()
    });
    assert_eq!(set, Ok(true));
}
