//! Tests of a host's DHCP client (RFC 2131) in virtual time. Each test plays the DHCP server: it
//! delivers the messages of the server, and checks those of the client.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{
    AddressOrigin, Capabilities, DhcpConfig, Event, Medium, RxFrame, Stack, StackConfig, UdpOptions,
};
use linerate_units::{Duration, Instant};
use linerate_wire::dhcp::{
    CLIENT_PORT, DhcpHeader, DhcpMessage, DhcpMessageType, DhcpWriter, SERVER_PORT, option,
};
use linerate_wire::{
    ArpOperation, ArpPacket, EtherType, EthernetFrame, EthernetHeader, IpHeader, Ipv4Header,
    Ipv4Packet, MacAddress, Protocol, Sum, UdpDatagram, UdpHeader, VlanTags,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);
const SERVER_MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 9]);
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 254);
const OFFERED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

/// A DHCP message that the client has sent.
#[derive(Clone, Debug)]
struct Sent {
    kind: DhcpMessageType,
    header: DhcpHeader,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    requested: Option<Ipv4Addr>,
    server: Option<Ipv4Addr>,
    has_parameter_list: bool,
    max_size: Option<u16>,
}

/// A DHCP message or an ARP packet in a frame that the host has sent.
#[derive(Clone, Debug)]
enum Frame {
    Dhcp(Sent),
    Arp(ArpPacket),
}

/// A host with a DHCP client, and the current virtual time.
struct Client {
    stack: Stack,
    now: Instant,
}

impl Client {
    fn new(config: DhcpConfig, medium: Medium) -> Self {
        let mut stack = Stack::new(StackConfig::unconfigured(MAC).dhcp(config), [7; 32]);
        stack.attach(Capabilities::new(medium, 1_500));
        Self { stack, now: Instant::ZERO }
    }

    /// Runs the timers that are due, and returns all frames that the host sends now.
    fn frames(&mut self) -> Vec<Frame> {
        self.stack.handle_timeout(self.now, 100);
        let mut buffer = [0; 1_514];
        let mut frames = Vec::new();
        while let Some(sent) = self.stack.poll_transmit(self.now, &mut buffer) {
            frames.extend(parse(&buffer[..sent.length]));
        }
        self.stack.check();
        frames
    }

    /// Runs the timers that are due, and returns the DHCP message that the host sends now. Panics
    /// unless this message is the only frame.
    fn message(&mut self) -> Sent {
        match &self.frames()[..] {
            [Frame::Dhcp(message)] => message.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// Advances the virtual time to the next timer. Returns the time that has passed.
    fn wait(&mut self) -> Duration {
        let next = self.stack.poll_timeout();
        assert_ne!(next, Instant::NEVER, "nothing is due");
        let passed = next.since(self.now);
        self.now = self.now.max(next);
        passed
    }

    /// Advances the virtual time until the host sends its next DHCP message. Returns the message
    /// and the time that has passed.
    fn next_message(&mut self) -> (Sent, Duration) {
        let begun = self.now;
        loop {
            self.wait();
            if let Some(Frame::Dhcp(message)) = self.frames().first() {
                return (message.clone(), self.now.since(begun));
            }
        }
    }

    /// Advances the virtual time until the host sends its next DHCP message, and returns the
    /// message. Until then, answers the host's ARP requests for `server`.
    fn next_message_of(&mut self, server: Ipv4Addr) -> Sent {
        loop {
            self.wait();
            let mut frames = self.frames();
            if matches!(&frames[..], [Frame::Arp(arp)] if arp.target_ip == server) {
                self.arp(ArpOperation::Reply, server, OFFERED);
                frames = self.frames();
            }
            if let Some(Frame::Dhcp(message)) = frames.first() {
                return message.clone();
            }
        }
    }

    /// Delivers to the host a UDP datagram from the DHCP server port to the DHCP client port.
    fn receive(&mut self, destination: Ipv4Addr, payload: &[u8]) {
        let header = IpHeader::new(SERVER.into(), destination.into(), Protocol::UDP).unwrap();
        let mac = if destination.is_broadcast() { MacAddress::BROADCAST } else { MAC };
        let (source, tags, ether_type) = (SERVER_MAC, VlanTags::NONE, EtherType::IPV4);
        let length = UdpHeader::LENGTH + payload.len();
        let mut frame = vec![0; 14 + 20 + length];
        EthernetHeader { destination: mac, source, tags, ether_type }.emit(&mut frame);
        header.emit(length, &mut frame[14..]);
        let datagram = &mut frame[34..];
        let ports = UdpHeader { source_port: SERVER_PORT, destination_port: CLIENT_PORT };
        ports.emit(payload.len(), datagram);
        datagram[8..].copy_from_slice(payload);
        UdpHeader::fill_checksum(datagram, header.pseudo_header(length), Sum::of(datagram));
        self.stack.handle_frame(self.now, RxFrame::plain(&frame, self.now));
        self.stack.check();
    }

    fn arp(&mut self, operation: ArpOperation, sender: Ipv4Addr, target: Ipv4Addr) {
        let request = ArpPacket::request(SERVER_MAC, sender, target);
        let packet = ArpPacket { operation, ..request };
        let (source, tags, ether_type) = (SERVER_MAC, VlanTags::NONE, EtherType::ARP);
        let mut frame = [0; 42];
        EthernetHeader { destination: MacAddress::BROADCAST, source, tags, ether_type }
            .emit(&mut frame);
        packet.emit(&mut frame[14..]);
        self.stack.handle_frame(self.now, RxFrame::plain(&frame, self.now));
    }

    /// Gives the client a lease of `seconds` seconds. The replies of the server do not contain the
    /// times T1 and T2, so the client chooses them. Returns the client's request.
    fn bind(&mut self, seconds: u32) -> Sent {
        let discover = self.message();
        self.receive(Ipv4Addr::BROADCAST, &reply(&discover, DhcpMessageType::Offer, seconds));
        let request = self.message();
        self.receive(Ipv4Addr::BROADCAST, &reply(&request, DhcpMessageType::Ack, seconds));
        request
    }

    fn address(&self) -> Option<IpAddr> {
        self.stack.addresses().first().map(|own| own.cidr.address())
    }
}

fn unprobed() -> Client {
    Client::new(config(|config| config.probe = false), Medium::Ethernet)
}

fn config(change: impl FnOnce(&mut DhcpConfig)) -> DhcpConfig {
    let mut config = DhcpConfig::new();
    change(&mut config);
    config
}

fn parse(frame: &[u8]) -> Option<Frame> {
    let frame = EthernetFrame::parse(frame).unwrap();
    if frame.header.ether_type == EtherType::ARP {
        return Some(Frame::Arp(ArpPacket::parse(frame.payload).unwrap()));
    }
    let packet = Ipv4Packet::parse(frame.payload).unwrap();
    let Ipv4Header { source, destination, .. } = packet.header;
    let datagram = UdpDatagram::parse(packet.payload).unwrap();
    assert_eq!(datagram.verify_checksum(packet.header.pseudo_header(datagram.length())), Ok(()));
    assert_eq!((datagram.header.source_port, datagram.header.destination_port), (68, 67));
    let message = DhcpMessage::parse(datagram.payload).unwrap();
    let mut list = [0; 16];
    assert_eq!(message.options.get(option::CLIENT_ID, &mut list).unwrap()[1..], MAC.octets());
    Some(Frame::Dhcp(Sent {
        kind: message.message_type,
        header: message.header,
        source,
        destination,
        requested: message.options.address(option::REQUESTED_ADDRESS),
        server: message.options.address(option::SERVER_ID),
        has_parameter_list: message.options.get(option::PARAMETER_LIST, &mut list).is_some(),
        max_size: message
            .options
            .get(option::MAX_MESSAGE_SIZE, &mut list)
            .and_then(|size| Some(u16::from_be_bytes(size.try_into().ok()?))),
    }))
}

/// Returns the server's reply to the client's message `to`. `further` are options that are added to
/// the usual ones of a reply.
fn reply_with(to: &Sent, kind: DhcpMessageType, seconds: u32, further: &[(u8, &[u8])]) -> Vec<u8> {
    let yours = if kind == DhcpMessageType::Nak { Ipv4Addr::UNSPECIFIED } else { OFFERED };
    let header = DhcpHeader { is_reply: true, yours, ..to.header };
    let mut bytes = vec![0; 1_000];
    let mut writer = DhcpWriter::new(&header, kind, &mut bytes);
    writer.option(option::SERVER_ID, &SERVER.octets());
    writer.option(option::LEASE_TIME, &seconds.to_be_bytes());
    writer.option(option::SUBNET_MASK, &[255, 255, 255, 0]);
    further.iter().for_each(|(code, data)| writer.option(*code, data));
    let length = writer.finish();
    bytes.truncate(length);
    bytes
}

fn reply(to: &Sent, kind: DhcpMessageType, seconds: u32) -> Vec<u8> {
    reply_with(to, kind, seconds, &[])
}

/// RFC 2131 §4.4.1: the client probes the granted address by ARP before the host uses it, and
/// announces it afterwards.
#[test]
fn an_address_is_requested_probed_announced_and_used() {
    let mut client = Client::new(DhcpConfig::new(), Medium::Ethernet);
    let discover = client.message();
    assert_eq!(
        (discover.kind, discover.source),
        (DhcpMessageType::Discover, Ipv4Addr::UNSPECIFIED)
    );
    assert_eq!(discover.destination, Ipv4Addr::BROADCAST);
    assert!(discover.header.broadcast && discover.has_parameter_list);
    client.receive(Ipv4Addr::BROADCAST, &reply(&discover, DhcpMessageType::Offer, 600));
    let request = client.message();
    assert_eq!((request.kind, request.header.xid), (DhcpMessageType::Request, discover.header.xid));
    assert_eq!((request.requested, request.server), (Some(OFFERED), Some(SERVER)));
    assert!(request.has_parameter_list);
    let further: &[(u8, &[u8])] = &[
        (option::ROUTER, &SERVER.octets()),
        (option::DNS, &[192, 0, 2, 53, 198, 51, 100, 53]),
        (option::DOMAIN_NAME, b"example.org"),
        (option::INTERFACE_MTU, &1_400_u16.to_be_bytes()),
    ];
    let ack = reply_with(&request, DhcpMessageType::Ack, 600, further);
    client.receive(Ipv4Addr::BROADCAST, &ack);
    let probe = client.frames();
    assert!(matches!(&probe[..], [Frame::Arp(arp)]
        if arp.sender_ip.is_unspecified() && arp.target_ip == OFFERED));
    assert_eq!((client.address(), client.stack.dhcp_lease()), (None, None));
    client.wait();
    let announcement = client.frames();
    assert!(matches!(&announcement[..], [Frame::Arp(arp)]
        if arp.sender_ip == OFFERED && arp.target_ip == OFFERED));
    let lease = client.stack.dhcp_lease().unwrap().clone();
    assert_eq!((lease.address.to_string(), lease.server), ("192.0.2.7/24".to_owned(), SERVER));
    assert_eq!((&lease.routers[..], lease.mtu), (&[SERVER][..], Some(1_400)));
    let dns: [Ipv4Addr; 2] = [[192, 0, 2, 53].into(), [198, 51, 100, 53].into()];
    assert_eq!((&lease.dns_servers[..], lease.domain.as_deref()), (&dns[..], Some("example.org")));
    assert_eq!(client.stack.addresses()[0].origin, AddressOrigin::Dhcp);
    let events: Vec<_> = std::iter::from_fn(|| client.stack.poll_event()).collect();
    assert!(events.contains(&Event::Dhcp) && events.contains(&Event::Addresses), "{events:?}");
    let far = Ipv4Addr::new(203, 0, 113, 1);
    let anywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let socket = client.stack.udp_bind(anywhere, &UdpOptions::default()).unwrap();
    client.stack.udp_connect(client.now, socket, SocketAddr::from((far, 9))).unwrap();
    assert_eq!(client.stack.udp_path_mtu(client.now, socket), Ok(1_400));
}

/// RFC 2131 §4.1: the delays are 4, 8, 16, 32 and 64 seconds, each randomised by up to one second.
#[test]
fn messages_are_repeated_with_a_randomised_exponential_backoff() {
    let mut client = unprobed();
    let first = client.message();
    for seconds in [4, 8, 16, 32, 64, 64, 64] {
        let waited = client.wait();
        let middle = Duration::from_secs(seconds);
        assert!(waited.abs_diff(middle) <= Duration::from_secs(1), "{waited:?}, not {seconds} s");
        assert_ne!(waited, middle, "the delay is randomised");
        let again = client.message();
        assert_eq!((again.kind, again.header.xid), (first.kind, first.header.xid));
    }
    // After four unanswered requests for the offered address, the client broadcasts a DHCPDISCOVER
    // again.
    let discover = first;
    client.receive(Ipv4Addr::BROADCAST, &reply(&discover, DhcpMessageType::Offer, 600));
    for _ in 0..4 {
        assert_eq!(client.message().kind, DhcpMessageType::Request);
        client.wait();
    }
    let again = client.message();
    assert_eq!(again.kind, DhcpMessageType::Discover);
    assert_ne!(again.header.xid, discover.header.xid);
}

/// RFC 2131 §3.1, step 3: relay agents must forward a DHCPREQUEST to the servers that got the
/// DHCPDISCOVER. The client therefore copies the `secs` field and the destination from its
/// DHCPDISCOVER into the request.
#[test]
fn a_request_repeats_the_seconds_and_the_destination_of_the_discovery() {
    let mut client = unprobed();
    client.message();
    client.wait();
    let discover = client.message();
    assert!(discover.header.secs >= 3, "{discover:?}");
    client.receive(Ipv4Addr::BROADCAST, &reply(&discover, DhcpMessageType::Offer, 600));
    for _ in 0..3 {
        let request = client.message();
        assert_eq!(request.kind, DhcpMessageType::Request);
        assert_eq!(request.header.secs, discover.header.secs);
        assert_eq!(request.destination, discover.destination);
        assert_eq!(request.header.xid, discover.header.xid);
        assert_eq!(request.has_parameter_list, discover.has_parameter_list);
        client.wait();
    }
}

/// RFC 2131 §4.4.5: from T1 on, the client asks the server of the lease to extend it, and from T2
/// on, any server.
#[test]
fn a_lease_is_renewed_at_its_server_and_then_rebound_at_any() {
    let mut client = unprobed();
    client.bind(1_000);
    client.frames();
    assert_eq!(client.wait(), Duration::from_secs(500));
    // The client first resolves the server's MAC address, and then sends the request to the server.
    assert!(matches!(&client.frames()[..], [Frame::Arp(arp)] if arp.target_ip == SERVER));
    client.arp(ArpOperation::Reply, SERVER, OFFERED);
    let renewal = client.message();
    assert_eq!((renewal.kind, renewal.destination), (DhcpMessageType::Request, SERVER));
    assert_eq!((renewal.source, renewal.header.client), (OFFERED, OFFERED));
    assert_eq!((renewal.requested, renewal.server), (None, None));
    assert_eq!(renewal.header.secs, 0, "seconds since the renewal began");
    client.receive(OFFERED, &reply(&renewal, DhcpMessageType::Ack, 1_000));
    let lease = client.stack.dhcp_lease().unwrap();
    assert_eq!(lease.expires_at, client.now + Duration::from_secs(1_000));
    // The server is silent from now on. Until T2, the client waits before each further request for
    // half of the time that is left until T2, but at least a minute. After T2, it broadcasts its
    // requests.
    let mut kinds = Vec::new();
    let end = client.stack.dhcp_lease().unwrap().expires_at;
    while client.now < end {
        client.wait();
        for frame in client.frames() {
            match frame {
                Frame::Dhcp(sent) if client.now == end => {
                    assert_eq!(sent.kind, DhcpMessageType::Discover, "the search begins again");
                }
                Frame::Dhcp(sent) => {
                    assert_eq!(sent.kind, DhcpMessageType::Request);
                    kinds.push((client.now.as_millis() / 1_000, sent.destination == SERVER));
                }
                Frame::Arp(arp) if arp.target_ip == SERVER => {
                    client.arp(ArpOperation::Reply, SERVER, OFFERED);
                    for frame in client.frames() {
                        let Frame::Dhcp(sent) = frame else { continue };
                        kinds.push((client.now.as_millis() / 1_000, sent.destination == SERVER));
                    }
                }
                Frame::Arp(_) => {}
            }
        }
    }
    let expected = [
        (1_000, true),
        (1_187, true),
        (1_281, true),
        (1_341, true),
        (1_375, false),
        (1_437, false),
        (1_497, false),
    ];
    assert_eq!(kinds, expected, "seconds, and whether to the server");
    assert_eq!((client.address(), client.stack.dhcp_lease()), (None, None));
}

#[test]
fn a_refusal_ends_the_lease_and_further_ones_slow_the_client_down() {
    let mut client = unprobed();
    client.bind(1_000);
    client.frames();
    client.wait();
    client.frames();
    client.arp(ArpOperation::Reply, SERVER, OFFERED);
    let renewal = client.message();
    client.receive(Ipv4Addr::BROADCAST, &reply(&renewal, DhcpMessageType::Nak, 0));
    assert_eq!((client.address(), client.stack.dhcp_lease()), (None, None));
    let mut delays = Vec::new();
    for _ in 0..8 {
        let (discover, waited) = client.next_message();
        delays.push(waited.as_millis() / 1_000);
        client.receive(Ipv4Addr::BROADCAST, &reply(&discover, DhcpMessageType::Offer, 60));
        let request = client.message();
        client.receive(Ipv4Addr::BROADCAST, &reply(&request, DhcpMessageType::Nak, 0));
    }
    assert_eq!(delays, [0, 4, 8, 16, 32, 64, 64, 64]);
    assert_eq!(client.stack.counters().dhcp.in_naks, 9);
}

/// RFC 2131 §4.4.1, RFC 5227 §2.1.1: while the client probes an address, two kinds of ARP packets
/// show that it is in use. Either the packet comes from this address, or another host also probes
/// for it.
#[test]
fn an_address_in_use_is_declined_and_another_one_sought_after_ten_seconds() {
    for (operation, sender, target) in [
        (ArpOperation::Reply, OFFERED, Ipv4Addr::UNSPECIFIED),
        (ArpOperation::Request, OFFERED, SERVER),
        (ArpOperation::Request, Ipv4Addr::UNSPECIFIED, OFFERED),
    ] {
        let mut client = Client::new(DhcpConfig::new(), Medium::Ethernet);
        client.bind(600);
        client.frames();
        client.arp(operation, sender, target);
        let decline = client.message();
        assert_eq!(
            (decline.kind, decline.destination),
            (DhcpMessageType::Decline, Ipv4Addr::BROADCAST)
        );
        assert_eq!((decline.requested, decline.server), (Some(OFFERED), Some(SERVER)));
        assert_eq!((decline.header.client, decline.header.secs), (Ipv4Addr::UNSPECIFIED, 0));
        assert!(!decline.has_parameter_list);
        assert_eq!(client.wait(), Duration::from_secs(10));
        assert_eq!(client.message().kind, DhcpMessageType::Discover);
        assert_eq!((client.address(), client.stack.dhcp_lease()), (None, None));
    }
}

#[test]
fn a_packet_about_another_address_does_not_end_the_probe() {
    let mut client = Client::new(DhcpConfig::new(), Medium::Ethernet);
    client.bind(600);
    client.frames();
    client.arp(ArpOperation::Request, SERVER, OFFERED);
    client.wait();
    client.frames();
    assert!(client.stack.dhcp_lease().is_some());
}

/// RFC 2131 §4.4.6: a client that no longer needs its address sends a DHCPRELEASE to the server.
#[test]
fn a_released_address_is_given_back_to_its_server_and_removed() {
    let mut client = unprobed();
    client.bind(1_000);
    client.frames();
    client.arp(ArpOperation::Request, SERVER, OFFERED);
    client.frames();
    client.stack.dhcp_release(client.now);
    let release = client.message();
    assert_eq!((release.kind, release.destination), (DhcpMessageType::Release, SERVER));
    assert_eq!((release.header.client, release.server), (OFFERED, Some(SERVER)));
    assert!(!release.has_parameter_list && release.requested.is_none());
    assert_eq!(client.stack.dhcp_lease(), None);
    client.wait();
    client.frames();
    assert_eq!(client.address(), None);
    client.now += Duration::from_secs(10_000);
    assert!(client.frames().iter().all(|frame| !matches!(frame, Frame::Dhcp(_))));
}

/// RFC 2131 §4.4.2: a client that knows its previous address requests this address without a
/// DHCPDISCOVER.
#[test]
fn a_previous_address_is_asked_for_first() {
    let mut client = Client::new(
        config(|config| (config.previous, config.probe) = (Some(OFFERED), false)),
        Medium::Ethernet,
    );
    let request = client.message();
    assert_eq!((request.kind, request.requested), (DhcpMessageType::Request, Some(OFFERED)));
    assert_eq!((request.server, request.header.client), (None, Ipv4Addr::UNSPECIFIED));
    client.receive(Ipv4Addr::BROADCAST, &reply(&request, DhcpMessageType::Ack, 600));
    assert_eq!(client.address(), Some(OFFERED.into()));

    let mut refused = Client::new(config(|config| config.previous = Some(OFFERED)), Medium::Ip);
    let mut silent =
        Client::new(config(|config| config.previous = Some(OFFERED)), Medium::Ethernet);
    silent.message();
    silent.wait();
    assert_eq!(silent.message().kind, DhcpMessageType::Request);
    silent.wait();
    assert_eq!(silent.message().kind, DhcpMessageType::Discover, "no server confirms it");
    refused.stack.attach(Capabilities::new(Medium::Ethernet, 1_500));
    let request = refused.message();
    refused.receive(Ipv4Addr::BROADCAST, &reply(&request, DhcpMessageType::Nak, 0));
    assert_eq!(refused.message().kind, DhcpMessageType::Discover);
}

#[test]
fn a_lease_without_an_end_is_never_renewed() {
    let mut client = unprobed();
    client.bind(u32::MAX);
    client.frames();
    let lease = client.stack.dhcp_lease().unwrap();
    assert_eq!((lease.renew_at, lease.expires_at), (Instant::NEVER, Instant::NEVER));
    assert_eq!(client.stack.addresses()[0].valid_until, Instant::NEVER);
}

#[test]
fn times_of_the_server_that_are_out_of_order_are_replaced_by_the_defaults() {
    for (first, second, expected) in [(10, 20, 10), (20, 10, 50), (0, 20, 50), (50, 100, 50)] {
        let mut client = unprobed();
        let discover = client.message();
        client.receive(Ipv4Addr::BROADCAST, &reply(&discover, DhcpMessageType::Offer, 100));
        let request = client.message();
        let (first, second) = (u32::to_be_bytes(first), u32::to_be_bytes(second));
        let further: &[(u8, &[u8])] =
            &[(option::RENEWAL_TIME, &first), (option::REBINDING_TIME, &second)];
        let ack = reply_with(&request, DhcpMessageType::Ack, 100, further);
        client.receive(Ipv4Addr::BROADCAST, &ack);
        let lease = client.stack.dhcp_lease().unwrap();
        assert_eq!(lease.renew_at, client.now + Duration::from_secs(expected));
        assert!(lease.renew_at < lease.rebind_at && lease.rebind_at < lease.expires_at);
    }
}

#[test]
fn messages_that_the_client_does_not_wait_for_change_nothing() {
    let mut client = unprobed();
    let discover = client.message();
    let good = reply(&discover, DhcpMessageType::Offer, 600);
    let spoilt = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    let hostile = [
        spoilt(&|bytes| bytes[4] ^= 1),
        spoilt(&|bytes| bytes[28] ^= 2),
        spoilt(&|bytes| bytes[0] = 1),
        spoilt(&|bytes| bytes.truncate(250)),
        spoilt(&|bytes| bytes.truncate(20)),
        spoilt(&|bytes| bytes[236] = 0),
        // In these three replies, the offered address (`yiaddr`) is one that no host can have.
        spoilt(&|bytes| bytes[16..20].fill(0)),
        spoilt(&|bytes| bytes[16..20].fill(255)),
        spoilt(&|bytes| bytes[16] = 224),
        // In this reply, the `file` field holds options. One of them (52) claims that the `sname`
        // field holds options too.
        spoilt(&|bytes| {
            bytes[108..114].copy_from_slice(&[52, 1, 2, 51, 200, 0]);
            let end = bytes.iter().rposition(|&byte| byte == 255).unwrap();
            bytes[end..end + 4].copy_from_slice(&[52, 1, 1, 255]);
        }),
        reply(&discover, DhcpMessageType::Ack, 600),
        reply(&discover, DhcpMessageType::Nak, 600),
        reply(&discover, DhcpMessageType::Discover, 600),
    ];
    for bytes in &hostile {
        client.receive(Ipv4Addr::BROADCAST, bytes);
        assert!(client.frames().is_empty(), "{bytes:?}");
    }
    let counters = client.stack.counters().dhcp;
    assert_eq!(counters.in_messages, hostile.len() as u64);
    assert_eq!(counters.in_errors + counters.in_ignored, hostile.len() as u64);
    client.receive(Ipv4Addr::BROADCAST, &good);
    let request = client.message();
    // The client ignores two acknowledgements. The first comes from another server than the request
    // was sent to, and the second grants another address than was offered.
    let mut other = reply(&request, DhcpMessageType::Ack, 600);
    other[246..250].copy_from_slice(&[192, 0, 2, 253]);
    client.receive(Ipv4Addr::BROADCAST, &other);
    let mut other = reply(&request, DhcpMessageType::Ack, 600);
    other[19] = 8;
    client.receive(Ipv4Addr::BROADCAST, &other);
    assert_eq!((client.address(), client.stack.dhcp_lease()), (None, None));
    client.receive(Ipv4Addr::BROADCAST, &reply(&request, DhcpMessageType::Ack, 600));
    assert_eq!(client.address(), Some(OFFERED.into()));
}

#[test]
fn hosts_that_start_together_can_wait_for_different_times() {
    let mut client = Client::new(config(|config| config.desynchronize = true), Medium::Ethernet);
    assert!(client.frames().is_empty());
    let waited = client.wait();
    assert!(Duration::from_secs(1) <= waited && waited < Duration::from_secs(10), "{waited:?}");
    assert_eq!(client.message().kind, DhcpMessageType::Discover);
}

/// RFC 2131 §3.2, step 4: if a client finds that the granted address is in use, it sends a
/// DHCPDECLINE, and begins again with a DHCPDISCOVER.
#[test]
fn a_previous_address_in_use_is_declined() {
    let mut client =
        Client::new(config(|config| config.previous = Some(OFFERED)), Medium::Ethernet);
    let request = client.message();
    client.receive(Ipv4Addr::BROADCAST, &reply(&request, DhcpMessageType::Ack, 600));
    client.frames();
    client.arp(ArpOperation::Reply, OFFERED, Ipv4Addr::UNSPECIFIED);
    let decline = client.message();
    assert_eq!((decline.kind, decline.requested), (DhcpMessageType::Decline, Some(OFFERED)));
    assert_eq!(decline.server, Some(SERVER));
    client.wait();
    assert_eq!(client.message().kind, DhcpMessageType::Discover);
}

/// RFC 2131 §3.5, RFC 2132 §9.10: the client tells the server how large a DHCP message may be.
#[test]
fn requests_announce_the_largest_message() {
    let mut client = unprobed();
    let discover = client.message();
    client.receive(Ipv4Addr::BROADCAST, &reply(&discover, DhcpMessageType::Offer, 600));
    let request = client.message();
    assert_eq!([discover.max_size, request.max_size], [Some(1_500); 2]);
}

/// RFC 2131 §4.1: a client recognises the replies to its own messages by the transaction ID. Hosts
/// must therefore choose different transaction IDs.
#[test]
fn exchanges_of_other_hosts_have_other_numbers() {
    let first_xid = |seed| {
        let config = StackConfig::unconfigured(MAC).dhcp(DhcpConfig::new());
        let mut stack = Stack::new(config, [seed; 32]);
        stack.attach(Capabilities::new(Medium::Ethernet, 1_500));
        Client { stack, now: Instant::ZERO }.message().header.xid
    };
    assert_eq!(first_xid(1), first_xid(1));
    assert_ne!(first_xid(1), first_xid(2));
}

/// RFC 2131 §4.1: the client sets the BROADCAST flag to request replies in broadcast frames. No
/// host has the offered address yet, so a switch might not deliver a unicast frame for it.
#[test]
fn discoveries_ask_for_broadcast_replies() {
    let mut client = unprobed();
    let discover = client.message();
    assert!(discover.header.broadcast);
    client.receive(Ipv4Addr::BROADCAST, &reply(&discover, DhcpMessageType::Offer, 600));
    assert!(client.message().header.broadcast);
}

/// RFC 2131 §4.3.2, §4.4.5: a request to extend a lease has the leased address in `ciaddr`, and
/// neither a requested address nor a server identifier.
#[test]
fn a_rebinding_request_has_its_address_in_ciaddr_only() {
    let mut client = unprobed();
    client.bind(1_000);
    client.frames();
    let rebind_at = client.stack.dhcp_lease().unwrap().rebind_at;
    let request = loop {
        let message = client.next_message_of(SERVER);
        if client.now >= rebind_at {
            break message;
        }
    };
    assert_eq!(
        (request.kind, request.destination),
        (DhcpMessageType::Request, Ipv4Addr::BROADCAST)
    );
    assert_eq!((request.header.client, request.source), (OFFERED, OFFERED));
    assert_eq!((request.requested, request.server), (None, None));
}
