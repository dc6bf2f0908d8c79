//! Tests of forwarders over IPv6: flows, errors and echo requests, and addresses that are not
//! forwarded.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{
    Capabilities, ConnectOptions, Destinations, EchoPolicy, Error, Event, ForwardEvent,
    ForwardOptions, Medium, Opening, Rejection, Route, RxFrame, Stack, StackConfig, Transport,
    UdpOptions, Verdict,
};
use linerate_tcp::Event as TcpEvent;
use linerate_units::{Duration, Instant};
use linerate_wire::{
    IpCidr, Ipv6Header, MacAddress, Protocol, Sum, TcpFlags, TcpHeader, Unreachable,
};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

const CLIENT: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 15);
const FAR: SocketAddrV6 =
    SocketAddrV6::new(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9), 8_080, 0, 0);

/// A client and a gateway, connected by a link without MAC addresses.
struct Net {
    client: Stack,
    gateway: Stack,
    now: Instant,
}

fn host(address: &str) -> Stack {
    let mut config = StackConfig::new(MacAddress::ZERO, address.parse().unwrap());
    config.routes = vec![Route::direct("::/0".parse().unwrap())];
    let mut stack = Stack::new(config, [7; 32]);
    stack.attach(Capabilities::new(Medium::Ip, 1_500));
    stack
}

impl Net {
    fn new(options: &ForwardOptions, verdict: Verdict) -> Self {
        let (client, mut gateway) = (host("fd00::f/64"), host("fd00::2/64"));
        let everywhere = Destinations::network(IpCidr::ALL_IPV6);
        gateway.forward(everywhere, options, move |_: &Opening| verdict).unwrap();
        Self { client, gateway, now: Instant::ZERO + Duration::from_secs(1) }
    }

    fn carry(&mut self) {
        let mut packet = [0; 1_500];
        let mut is_busy = true;
        while is_busy {
            is_busy = false;
            for is_up in [true, false] {
                let (from, to) = if is_up {
                    (&mut self.client, &mut self.gateway)
                } else {
                    (&mut self.gateway, &mut self.client)
                };
                while let Some(sent) = from.poll_transmit(self.now, &mut packet) {
                    to.handle_frame(self.now, RxFrame::plain(&packet[..sent.length], self.now));
                    is_busy = true;
                }
                to.handle_local(self.now, 100);
                to.check();
            }
        }
    }
}

fn events(stack: &mut Stack) -> Vec<Event> {
    std::iter::from_fn(|| stack.poll_event()).collect()
}

#[test]
fn a_deferred_connection_is_accepted_or_rejected() {
    for rejection in [None, Some(Rejection::Reset), Some(Rejection::Unreachable(Unreachable::Net))]
    {
        let mut net = Net::new(&ForwardOptions::default(), Verdict::Defer);
        let client = net.client.tcp_connect(net.now, FAR, &ConnectOptions::default()).unwrap();
        net.carry();
        let Some(ForwardEvent::Deferred(handle, opening)) = net.gateway.poll_forward() else {
            panic!("the SYN was not reported")
        };
        assert_eq!((opening.transport, opening.destination), (Transport::Tcp, FAR.into()));
        assert_eq!((opening.source.ip(), opening.options.mss), (CLIENT.into(), Some(1_440)));
        let Some(rejection) = rejection else {
            let server = net.gateway.forward_accept(net.now, handle).unwrap();
            net.carry();
            net.client.tcp_write(net.now, client, b"to any address").unwrap();
            net.carry();
            assert_eq!(net.gateway.tcp_read(net.now, server, &mut [0; 32]), Ok(14));
            assert_eq!(net.gateway.tcp_local_addr(server), Ok(FAR.into()));
            continue;
        };
        net.gateway.forward_reject(net.now, handle, rejection).unwrap();
        net.carry();
        let expected =
            if rejection == Rejection::Reset { TcpEvent::Closed } else { TcpEvent::SoftError };
        assert!(events(&mut net.client).contains(&Event::Tcp(client, expected)), "{rejection:?}");
    }
}

#[test]
fn datagrams_are_forwarded_and_their_errors_reported() {
    let mut net = Net::new(&ForwardOptions::default(), Verdict::Accept);
    let source = SocketAddr::new(CLIENT.into(), 5);
    let client = net.client.udp_bind(source, &UdpOptions::default()).unwrap();
    net.client.udp_connect(net.now, client, FAR).unwrap();
    net.client.udp_send(net.now, client, b"ask").unwrap();
    net.carry();
    let Some(ForwardEvent::Datagrams(flow, opening)) = net.gateway.poll_forward() else { panic!() };
    assert_eq!((opening.source, opening.destination), (source, FAR.into()));
    assert_eq!(net.gateway.udp_receive_from(flow, &mut [0; 8]), Ok((3, source)));
    net.gateway.udp_send(net.now, flow, b"answer").unwrap();
    net.carry();
    assert_eq!(net.client.udp_receive_from(client, &mut [0; 8]), Ok((6, FAR.into())));
    net.gateway.forward_unreachable(net.now, flow, Unreachable::Port).unwrap();
    net.carry();
    assert_eq!(net.client.udp_send(net.now, client, b"more"), Err(Error::Refused));
}

#[test]
fn echo_requests_for_others_follow_the_policy() {
    for (echo, replies, errors) in
        [(EchoPolicy::Drop, 0, 0), (EchoPolicy::Answer, 1, 0), (EchoPolicy::Reject, 0, 1)]
    {
        let options = ForwardOptions { echo, ..ForwardOptions::default() };
        let mut net = Net::new(&options, Verdict::Drop);
        net.client.echo_send(net.now, *FAR.ip(), 1, 1, b"there?").unwrap();
        net.carry();
        let events = events(&mut net.client);
        let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
        assert_eq!(count(|event| matches!(event, Event::EchoReply(_))), replies, "{echo:?}");
        assert_eq!(count(|event| matches!(event, Event::EchoError(_))), errors, "{echo:?}");
    }
}

/// Returns an IPv6 packet with a SYN from the client to `destination`.
fn syn(destination: Ipv6Addr) -> Vec<u8> {
    let header = Ipv6Header::new(CLIENT, destination, Protocol::TCP);
    let mut packet = vec![0; Ipv6Header::LENGTH + TcpHeader::LENGTH];
    let at = header.emit(TcpHeader::LENGTH, &mut packet);
    let segment = &mut packet[at..];
    let fields = TcpHeader {
        source_port: 5,
        destination_port: 80,
        flags: TcpFlags::SYN,
        window: 1_000,
        ..TcpHeader::default()
    };
    fields.emit(0, segment);
    let sum = Sum::of(segment);
    let pseudo_header = header.pseudo_header(Protocol::TCP, TcpHeader::LENGTH);
    TcpHeader::fill_checksum(segment, pseudo_header, sum);
    packet
}

#[test]
fn addresses_that_no_router_may_forward_are_not_forwarded() {
    for (destination, is_forwarded) in [
        ("2001:db8::9", true),
        ("fd00::9", true),
        ("fe80::9", false),
        ("::ffff:127.0.0.1", false),
        ("::ffff:192.0.2.1", false),
        ("ff02::9", false),
        ("::1", false),
        ("::", false),
    ] {
        let mut net = Net::new(&ForwardOptions::default(), Verdict::Defer);
        let packet = syn(destination.parse().unwrap());
        net.gateway.handle_frame(net.now, RxFrame::plain(&packet, net.now));
        net.carry();
        assert_eq!(net.gateway.poll_forward().is_some(), is_forwarded, "{destination}");
    }
}
