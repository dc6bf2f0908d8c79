//! Tests of forwarders. A forwarder accepts flows to any address and port, and calls a function of
//! the application, the hook, which decides about each flow.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{
    Capabilities, ConnectOptions, DeferredHandle, Destinations, EchoPolicy, Error, Event,
    ForwardEvent, ForwardOptions, Limits, Medium, Opening, Rejection, Route, RxFrame, Stack,
    StackConfig, TcpHandle, Transport, UdpEvent, UdpHandle, UdpOptions, Verdict,
};
use linerate_tcp::Event as TcpEvent;
use linerate_units::{Duration, Instant};
use linerate_wire::{
    Ipv4Header, Ipv4Packet, MacAddress, Protocol, Segment, Sum, TcpFlags, TcpHeader, Unreachable,
};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FAR: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 9), 8_080);

/// A client and a gateway, connected by a link without MAC addresses.
struct Net {
    client: Stack,
    gateway: Stack,
    now: Instant,
}

fn host(address: &str, limits: Limits) -> Stack {
    let mut config = StackConfig::new(MacAddress::ZERO, address.parse().unwrap());
    config.routes = vec![Route::direct("0.0.0.0/0".parse().unwrap())];
    config.limits = limits;
    let mut stack = Stack::new(config, [7; 32]);
    stack.attach(Capabilities::new(Medium::Ip, 1_500));
    stack
}

impl Net {
    fn new(verdict: Verdict) -> Self {
        Self::with(Limits::default(), &ForwardOptions::default(), move |_| verdict)
    }

    fn with(
        limits: Limits,
        options: &ForwardOptions,
        hook: impl FnMut(&Opening) -> Verdict + Send + 'static,
    ) -> Self {
        let (client, mut gateway) =
            (host("10.0.0.1/24", Limits::default()), host("10.0.0.2/24", limits));
        gateway.forward(Destinations::EVERYTHING, options, hook).unwrap();
        Self { client, gateway, now: Instant::ZERO + Duration::from_secs(1) }
    }

    /// Carries packets until both hosts are idle, and checks the invariants of both hosts.
    fn carry(&mut self) {
        self.carry_unchecked();
        self.client.check();
        self.gateway.check();
    }

    /// Carries packets until both hosts are idle. Does not check invariants: these checks visit
    /// every socket, which takes long in tests with many connections.
    fn carry_unchecked(&mut self) {
        let mut packet = [0; 1_500];
        let mut is_busy = true;
        while is_busy {
            is_busy = false;
            while let Some(sent) = self.client.poll_transmit(self.now, &mut packet) {
                let frame = RxFrame::plain(&packet[..sent.length], self.now);
                self.gateway.handle_frame(self.now, frame);
                is_busy = true;
            }
            self.gateway.handle_local(self.now, 100);
            while let Some(sent) = self.gateway.poll_transmit(self.now, &mut packet) {
                let frame = RxFrame::plain(&packet[..sent.length], self.now);
                self.client.handle_frame(self.now, frame);
                is_busy = true;
            }
        }
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
        self.client.handle_timeout(self.now, 100_000);
        self.gateway.handle_timeout(self.now, 100_000);
        self.carry();
    }

    fn connect(&mut self) -> TcpHandle {
        let connection =
            self.client.tcp_connect(self.now, FAR, &ConnectOptions::default()).unwrap();
        self.carry();
        connection
    }

    /// Returns the next handshake that waits for a decision of the application. Skips events about
    /// handshakes that were cancelled.
    fn deferred(&mut self) -> DeferredHandle {
        let mut next = self.gateway.poll_forward();
        while let Some(ForwardEvent::Cancelled(_)) = next {
            next = self.gateway.poll_forward();
        }
        match next {
            Some(ForwardEvent::Deferred(handle, opening)) => {
                assert_eq!(opening.destination, SocketAddr::V4(FAR));
                assert_eq!(opening.source.ip(), CLIENT);
                assert_eq!((opening.transport, opening.options.mss), (Transport::Tcp, Some(1_460)));
                handle
            }
            other => panic!("{other:?} is no deferred handshake"),
        }
    }

    fn ask(&mut self, socket: UdpHandle, to: SocketAddrV4) {
        self.client.udp_send_to(self.now, socket, to, b"ask").unwrap();
        self.carry();
    }

    fn udp_flow(&mut self) -> UdpHandle {
        match self.gateway.poll_forward() {
            Some(ForwardEvent::Datagrams(handle, _)) => handle,
            other => panic!("{other:?} is no flow"),
        }
    }
}

fn udp_client(net: &mut Net, port: u16) -> UdpHandle {
    net.client.udp_bind(SocketAddrV4::new(CLIENT, port), &UdpOptions::default()).unwrap()
}

fn events(stack: &mut Stack) -> Vec<Event> {
    std::iter::from_fn(|| stack.poll_event()).collect()
}

#[test]
fn an_accepted_flow_is_a_socket_with_the_original_destination() {
    let mut net = Net::new(Verdict::Accept);
    let client = net.connect();
    assert_eq!(net.gateway.poll_forward(), None);
    let Some(Event::Incoming(listener)) = net.gateway.poll_event() else { panic!() };
    let (server, peer) = net.gateway.tcp_accept(listener).unwrap();
    assert_eq!(peer.ip(), CLIENT);
    assert_eq!(net.gateway.tcp_local_addr(server), Ok(FAR.into()));
    net.client.tcp_write(net.now, client, b"to any address").unwrap();
    net.carry();
    let mut data = [0; 32];
    assert_eq!(net.gateway.tcp_read(net.now, server, &mut data), Ok(14));
}

#[test]
fn a_deferred_handshake_is_answered_when_the_application_decides() {
    let mut net = Net::new(Verdict::Defer);
    let client = net.connect();
    let handle = net.deferred();
    net.advance(Duration::from_millis(1_500));
    assert_eq!(net.client.tcp(client).unwrap().state(), linerate_tcp::State::SynSent);
    let statistics = net.gateway.forward_statistics();
    assert_eq!((statistics.deferred, statistics.syns, statistics.repeated), (1, 1, 1));

    let server = net.gateway.forward_accept(net.now, handle).unwrap();
    net.carry();
    assert!(events(&mut net.gateway).contains(&Event::Tcp(server, TcpEvent::Connected)));
    assert!(events(&mut net.client).contains(&Event::Tcp(client, TcpEvent::Connected)));
    assert_eq!(net.gateway.tcp_local_addr(server), Ok(FAR.into()));
    assert_eq!(net.gateway.forward_accept(net.now, handle), Err(Error::Closed));
    assert_eq!(net.gateway.forward_statistics().deferred, 0);
    net.gateway.tcp_write(net.now, server, b"hello").unwrap();
    net.carry();
    let mut data = [0; 8];
    assert_eq!(net.client.tcp_read(net.now, client, &mut data), Ok(5));
}

#[test]
fn a_rejected_client_sees_the_error_of_the_far_end() {
    for (rejection, error) in [
        (Rejection::Reset, linerate_tcp::Error::Refused),
        (Rejection::Unreachable(Unreachable::Port), linerate_tcp::Error::Refused),
    ] {
        let mut net = Net::new(Verdict::Defer);
        let client = net.connect();
        let handle = net.deferred();
        net.gateway.forward_reject(net.now, handle, rejection).unwrap();
        net.carry();
        let read = net.client.tcp_read(net.now, client, &mut [0]);
        assert_eq!(read, Err(Error::Tcp(error)), "{rejection:?}");
        assert_eq!(net.gateway.forward_drop(handle), Err(Error::Closed));
    }
}

#[test]
fn a_soft_error_reaches_the_client_as_one() {
    let mut net = Net::new(Verdict::Defer);
    let client = net.connect();
    let handle = net.deferred();
    let rejection = Rejection::Unreachable(Unreachable::Host);
    net.gateway.forward_reject(net.now, handle, rejection).unwrap();
    net.carry();
    assert!(events(&mut net.client).contains(&Event::Tcp(client, TcpEvent::SoftError)));
}

#[test]
fn the_hook_rejects_and_drops_at_once() {
    let mut net = Net::with(Limits::default(), &ForwardOptions::default(), |opening| match opening
        .destination
        .port()
    {
        8_080 => Verdict::Reject(Rejection::Reset),
        _ => Verdict::Drop,
    });
    let client = net.connect();
    let refused = Err(Error::Tcp(linerate_tcp::Error::Refused));
    assert_eq!(net.client.tcp_read(net.now, client, &mut [0]), refused);
    let silent = SocketAddrV4::new(*FAR.ip(), 9);
    let client = net.client.tcp_connect(net.now, silent, &ConnectOptions::default()).unwrap();
    net.carry();
    assert_eq!(net.client.tcp_read(net.now, client, &mut [0]), Err(Error::WouldBlock));
    let statistics = net.gateway.forward_statistics();
    assert_eq!((statistics.rejected, statistics.dropped, statistics.deferred), (1, 1, 0));
}

#[test]
fn only_matching_destinations_are_forwarded() {
    let mut net = Net::new(Verdict::Accept);
    net.gateway = host("10.0.0.2/24", Limits::default());
    let inside = Destinations::network("203.0.113.0/24".parse().unwrap());
    let inside = inside.with_ports(8_000..=8_999);
    net.gateway.forward(inside, &ForwardOptions::default(), |_| Verdict::Accept).unwrap();
    let client = net.connect();
    assert!(events(&mut net.client).contains(&Event::Tcp(client, TcpEvent::Connected)));
    let other_port = SocketAddrV4::new(*FAR.ip(), 80);
    let client = net.client.tcp_connect(net.now, other_port, &ConnectOptions::default()).unwrap();
    net.carry();
    let refused = Err(Error::Tcp(linerate_tcp::Error::Refused));
    assert_eq!(net.client.tcp_read(net.now, client, &mut [0]), refused);
    let other_host = SocketAddrV4::new([198, 51, 100, 1].into(), 8_080);
    net.client.tcp_connect(net.now, other_host, &ConnectOptions::default()).unwrap();
    net.carry();
    assert_eq!(net.gateway.counters().ip.in_address_errors, 1);
}

#[test]
fn a_closed_forwarder_takes_no_packets_and_keeps_its_connections() {
    let mut net = Net::new(Verdict::Accept);
    net.gateway = host("10.0.0.2/24", Limits::default());
    let options = ForwardOptions::default();
    let listener =
        net.gateway.forward(Destinations::EVERYTHING, &options, |_| Verdict::Defer).unwrap();
    let client = net.connect();
    let handle = net.deferred();
    let server = net.gateway.forward_accept(net.now, handle).unwrap();
    net.carry();
    net.connect();
    net.gateway.tcp_listen_close(net.now, listener).unwrap();
    net.gateway.check();
    assert_eq!(net.gateway.forward_statistics().deferred, 0);
    net.client.tcp_write(net.now, client, b"still").unwrap();
    net.carry();
    // The forwarder is closed, so the gateway accepts no packets for addresses of other hosts. The
    // destination of this connection is such an address, so its packets are counted as address
    // errors.
    assert_eq!(net.gateway.tcp_read(net.now, server, &mut [0; 8]), Err(Error::WouldBlock));
    assert!(net.gateway.counters().ip.in_address_errors > 0);
}

/// Returns a reset that comes from the sender of `syn`. The sequence number of the reset is larger
/// than that of the SYN by `ahead`.
fn reset_after(syn: &[u8], ahead: u32) -> Vec<u8> {
    let packet = Ipv4Packet::parse(syn).unwrap();
    let segment = Segment::parse(packet.payload).unwrap();
    let header = TcpHeader {
        source_port: segment.source_port,
        destination_port: segment.destination_port,
        seq: segment.seq + ahead,
        flags: TcpFlags::RST,
        ..TcpHeader::default()
    };
    let mut reset = vec![0; Ipv4Header::LENGTH + TcpHeader::LENGTH];
    let (head, tail) = reset.split_at_mut(Ipv4Header::LENGTH);
    packet.header.emit(TcpHeader::LENGTH, head);
    header.emit(0, tail);
    let sum = Sum::of(tail);
    TcpHeader::fill_checksum(tail, packet.header.pseudo_header(TcpHeader::LENGTH), sum);
    reset
}

#[test]
fn a_reset_of_the_client_cancels_its_deferred_handshake() {
    let mut net = Net::new(Verdict::Defer);
    net.client.tcp_connect(net.now, FAR, &ConnectOptions::default()).unwrap();
    let mut syn = [0; 1_500];
    let sent = net.client.poll_transmit(net.now, &mut syn).unwrap();
    let syn = &syn[..sent.length];
    net.gateway.handle_frame(net.now, RxFrame::plain(syn, net.now));
    let handle = net.deferred();
    let other = reset_after(syn, 1_000);
    net.gateway.handle_frame(net.now, RxFrame::plain(&other, net.now));
    assert_eq!(net.gateway.poll_forward(), None, "a reset of another attempt is ignored");
    let reset = reset_after(syn, 1);
    net.gateway.handle_frame(net.now, RxFrame::plain(&reset, net.now));
    net.gateway.check();
    assert_eq!(net.gateway.poll_forward(), Some(ForwardEvent::Cancelled(handle)));
    assert_eq!(net.gateway.forward_accept(net.now, handle), Err(Error::Closed));
    assert_eq!(net.gateway.forward_statistics().cancelled, 1);
}

#[test]
fn deferred_handshakes_are_limited_and_the_oldest_is_cancelled() {
    let limits = Limits { deferred: 100, ..Limits::default() };
    let mut net = Net::with(limits, &ForwardOptions::default(), |_| Verdict::Defer);
    let first = net.connect();
    let handle = net.deferred();
    for _ in 0..1_000 {
        net.connect();
    }
    let statistics = net.gateway.forward_statistics();
    assert_eq!((statistics.deferred, statistics.recycled), (100, 901));
    assert_eq!(net.gateway.poll_forward(), Some(ForwardEvent::Cancelled(handle)));
    assert_eq!(net.gateway.forward_accept(net.now, handle), Err(Error::Closed));
    // All 100 records of deferred handshakes are in use when a further SYN arrives. The gateway
    // then discards the oldest record to make room for the new one.
    let later = net.connect();
    let (mut newest, mut polled) = (None, 0);
    while let Some(event) = net.gateway.poll_forward() {
        let ForwardEvent::Deferred(handle, _) = event else { panic!("{event:?}") };
        (newest, polled) = (Some(handle), polled + 1);
    }
    assert_eq!(polled, 100);
    net.gateway.forward_accept(net.now, newest.unwrap()).unwrap();
    net.carry();
    assert_eq!(net.client.tcp(later).unwrap().state(), linerate_tcp::State::Established);
    assert_eq!(net.client.tcp(first).unwrap().state(), linerate_tcp::State::SynSent);
}

#[test]
fn udp_flows_are_sockets_and_answers_come_from_the_destination() {
    let mut net = Net::new(Verdict::Accept);
    let client = udp_client(&mut net, 5);
    net.ask(client, FAR);
    net.ask(client, FAR);
    let flow = net.udp_flow();
    assert_eq!(net.gateway.poll_forward(), None, "the second datagram belongs to the flow");
    assert_eq!(net.gateway.poll_event(), Some(Event::Udp(flow, UdpEvent::Readable)));
    assert_eq!(net.gateway.udp_local_addr(flow), Ok(FAR.into()));
    let mut data = [0; 8];
    let source = SocketAddrV4::new(CLIENT, 5);
    for _ in 0..2 {
        assert_eq!(net.gateway.udp_receive_from(flow, &mut data), Ok((3, source.into())));
    }
    net.gateway.udp_send(net.now, flow, b"answer").unwrap();
    net.carry();
    assert_eq!(net.client.udp_receive_from(client, &mut data), Ok((6, FAR.into())));
    assert!(net.gateway.udp_connect(net.now, flow, source).is_err());
}

#[test]
fn udp_flows_end_when_they_are_idle() {
    let mut net = Net::new(Verdict::Accept);
    let client = udp_client(&mut net, 5);
    let name_server = SocketAddrV4::new(*FAR.ip(), 53);
    net.ask(client, FAR);
    let flow = net.udp_flow();
    net.ask(client, name_server);
    let query = net.udp_flow();
    net.advance(Duration::from_secs(29));
    assert_eq!(net.gateway.poll_forward(), None);
    net.advance(Duration::from_secs(2));
    assert_eq!(net.gateway.poll_forward(), Some(ForwardEvent::Expired(query)));
    net.advance(Duration::from_secs(80));
    net.ask(client, FAR);
    net.advance(Duration::from_secs(119));
    net.gateway.udp_send(net.now, flow, b"alive").unwrap();
    net.advance(Duration::from_secs(119));
    assert_eq!(net.gateway.poll_forward(), None, "each datagram prolongs the flow");
    net.advance(Duration::from_secs(2));
    assert_eq!(net.gateway.poll_forward(), Some(ForwardEvent::Expired(flow)));
    assert_eq!(net.gateway.udp_send(net.now, flow, b""), Err(Error::Closed));
    let statistics = net.gateway.forward_statistics();
    assert_eq!((statistics.udp_flows, statistics.udp_expired), (0, 2));
}

#[test]
fn a_scan_of_udp_ports_does_not_end_answered_flows() {
    let limits = Limits { udp_flows: 50, ..Limits::default() };
    let mut net = Net::with(limits, &ForwardOptions::default(), |_| Verdict::Accept);
    let client = udp_client(&mut net, 5);
    net.ask(client, FAR);
    let flow = net.udp_flow();
    net.gateway.udp_send(net.now, flow, b"answer").unwrap();
    for port in 1_000..5_000 {
        net.ask(client, SocketAddrV4::new([198, 51, 100, 7].into(), port));
        while net.gateway.poll_forward().is_some() {}
    }
    let statistics = net.gateway.forward_statistics();
    assert_eq!((statistics.udp_flows, statistics.udp_evicted), (50, 3_951));
    assert_eq!(net.gateway.udp_send(net.now, flow, b"answer"), Ok(()));
}

#[test]
fn unpolled_flows_are_limited() {
    let limits = Limits { udp_flows: 50, ..Limits::default() };
    let mut net = Net::with(limits, &ForwardOptions::default(), |_| Verdict::Accept);
    let client = udp_client(&mut net, 5);
    for port in 1_000..2_000 {
        net.ask(client, SocketAddrV4::new(*FAR.ip(), port));
    }
    let polled = std::iter::from_fn(|| net.gateway.poll_forward()).count();
    assert_eq!(polled, 50);
}

#[test]
fn an_unreachable_destination_is_reported_to_a_udp_client() {
    let mut net = Net::new(Verdict::Accept);
    let client = udp_client(&mut net, 5);
    net.client.udp_connect(net.now, client, FAR).unwrap();
    net.ask(client, FAR);
    let flow = net.udp_flow();
    net.gateway.forward_unreachable(net.now, flow, Unreachable::Port).unwrap();
    net.carry();
    assert_eq!(net.client.udp_send(net.now, client, b"more"), Err(Error::Refused));

    let mut net = Net::new(Verdict::Reject(Rejection::Reset));
    let client = udp_client(&mut net, 5);
    net.client.udp_connect(net.now, client, FAR).unwrap();
    net.ask(client, FAR);
    assert_eq!(net.client.udp_send(net.now, client, b"more"), Err(Error::Refused));
}

#[test]
fn echo_requests_for_others_follow_the_policy() {
    for (echo, replies, errors) in
        [(EchoPolicy::Drop, 0, 0), (EchoPolicy::Answer, 1, 0), (EchoPolicy::Reject, 0, 1)]
    {
        let options = ForwardOptions { echo, ..ForwardOptions::default() };
        let mut net = Net::with(Limits::default(), &options, |_| Verdict::Drop);
        net.client.echo_send(net.now, *FAR.ip(), 1, 1, b"there?").unwrap();
        net.carry();
        let events = events(&mut net.client);
        let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
        assert_eq!(count(|event| matches!(event, Event::EchoReply(_))), replies, "{echo:?}");
        assert_eq!(count(|event| matches!(event, Event::EchoError(_))), errors, "{echo:?}");
        net.client.echo_send(net.now, Ipv4Addr::new(10, 0, 0, 2), 2, 1, b"you?").unwrap();
        net.carry();
        assert!(matches!(net.client.poll_event(), Some(Event::EchoReply(_))), "own address");
    }
}

#[test]
fn an_idle_forwarded_connection_is_compact() {
    let mut net = Net::new(Verdict::Defer);
    net.connect();
    let handle = net.deferred();
    net.gateway.forward_accept(net.now, handle).unwrap();
    net.carry();
    while net.gateway.poll_event().is_some() {}
    net.advance(Duration::from_secs(60));
    net.advance(Duration::from_secs(60));
    let debug = format!("{:?}", net.gateway);
    assert!(debug.contains("Compact("), "the idle connection is packed");
}

/// Returns an IPv4 packet with a SYN from `from` to `to`.
fn syn(from: SocketAddrV4, to: SocketAddrV4) -> Vec<u8> {
    let mut packet = vec![0; Ipv4Header::LENGTH + TcpHeader::LENGTH];
    let header = Ipv4Header::new(*from.ip(), *to.ip(), Protocol::TCP);
    let (head, segment) = packet.split_at_mut(Ipv4Header::LENGTH);
    header.emit(TcpHeader::LENGTH, head);
    let fields = TcpHeader {
        source_port: from.port(),
        destination_port: to.port(),
        flags: TcpFlags::SYN,
        window: 1_000,
        ..TcpHeader::default()
    };
    fields.emit(0, segment);
    let sum = Sum::of(segment);
    TcpHeader::fill_checksum(segment, header.pseudo_header(TcpHeader::LENGTH), sum);
    packet
}

#[test]
fn a_flood_of_handshakes_keeps_a_limited_number_and_lets_others_through() {
    let mut net = Net::new(Verdict::Defer);
    let client = net.connect();
    let handle = net.deferred();
    let server = net.gateway.forward_accept(net.now, handle).unwrap();
    net.carry();
    let limit = Limits::default().deferred;
    for number in 0..100_000_u32 {
        let source = Ipv4Addr::from_bits(0x0a00_0000 | (number + 256));
        let packet = syn(SocketAddrV4::new(source, 1_024), FAR);
        net.gateway.handle_frame(net.now, RxFrame::plain(&packet, net.now));
        if number % 64 == 0 {
            // The application polls all events, but decides about none of the handshakes yet.
            while net.gateway.poll_forward().is_some() {}
            net.gateway.handle_local(net.now, 64);
        }
    }
    net.carry();
    let statistics = net.gateway.forward_statistics();
    assert_eq!(statistics.deferred, limit);
    assert!(statistics.recycled > 0 && statistics.syns <= 100_002, "{statistics:?}");
    // The existing connection still works, and a new connection can be opened.
    net.client.tcp_write(net.now, client, b"undisturbed").unwrap();
    net.carry();
    let mut data = [0; 16];
    assert_eq!(net.gateway.tcp_read(net.now, server, &mut data), Ok(11));
    while net.gateway.poll_forward().is_some() {}
    let late = net.connect();
    let handle = net.deferred();
    net.gateway.forward_accept(net.now, handle).unwrap();
    net.carry();
    assert_eq!(net.client.tcp(late).unwrap().state(), linerate_tcp::State::Established);
}

#[test]
fn a_scan_of_all_udp_ports_keeps_a_limited_number_of_flows() {
    let mut net = Net::new(Verdict::Accept);
    let client = udp_client(&mut net, 5);
    for port in 1..=u16::MAX {
        net.client.udp_send_to(net.now, client, SocketAddrV4::new(*FAR.ip(), port), b"?").unwrap();
        if port % 16 == 0 {
            net.carry_unchecked();
            while net.gateway.poll_forward().is_some() {}
            while net.gateway.poll_event().is_some() {}
        }
    }
    net.carry();
    let statistics = net.gateway.forward_statistics();
    assert_eq!(statistics.udp_flows, Limits::default().udp_flows);
    assert_eq!(statistics.udp_opened, u64::from(u16::MAX));
    net.advance(Duration::from_secs(121));
    assert_eq!(net.gateway.forward_statistics().udp_flows, 0);
}
