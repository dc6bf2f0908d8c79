//! Tests of addresses that are added and removed at run time.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{
    AddressOptions, AddressOrigin, AddressState, ConnectOptions, Error, Event, ListenOptions,
    TcpHandle, UdpOptions,
};
use linerate_testkit::{Pair, Setup, Side};
use linerate_units::Duration;
use linerate_wire::IpCidr;
use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

const SECOND: Duration = Duration::from_secs(1);

fn pair() -> Pair {
    Pair::new(&Setup::default(), |_, _| {})
}

fn cidr(text: &str) -> IpCidr {
    text.parse().unwrap()
}

fn add(pair: &mut Pair, side: Side, address: &str, options: &AddressOptions) {
    let now = pair.now;
    pair.stack(side).add_address(now, cidr(address), options).unwrap();
}

fn remove(pair: &mut Pair, side: Side, address: &str) -> bool {
    let now = pair.now;
    pair.stack(side).remove_address(now, address.parse().unwrap()).is_some()
}

/// Opens a connection from the left to the right host. Returns its handles on the left and on the
/// right host.
fn connect(pair: &mut Pair, to: &str) -> (TcpHandle, TcpHandle) {
    let to: SocketAddr = to.parse().unwrap();
    let listener = pair.stack(Side::Right).tcp_listen(to, &ListenOptions::default()).unwrap();
    let now = pair.now;
    let client = pair.stack(Side::Left).tcp_connect(now, to, &ConnectOptions::default()).unwrap();
    pair.run_for(SECOND);
    let (server, _) = pair.stack(Side::Right).tcp_accept(listener).unwrap();
    (client, server)
}

fn has_echo_reply(pair: &mut Pair, destination: &str) -> bool {
    let destination: IpAddr = destination.parse().unwrap();
    let now = pair.now;
    pair.stack(Side::Left).echo_send(now, destination, 7, 1, b"").unwrap();
    pair.run_for(SECOND);
    let events = core::iter::from_fn(|| pair.stack(Side::Left).poll_event());
    events.into_iter().any(|event| matches!(event, Event::EchoReply(_)))
}

fn is_changed(pair: &mut Pair, side: Side) -> bool {
    pair.stack(side).poll_event() == Some(Event::Addresses)
}

#[test]
fn an_added_address_of_either_version_is_usable_at_once_in_both_directions() {
    for (left, right) in [("10.0.0.1", "10.0.0.2"), ("2001:db8::1", "2001:db8::2")] {
        let mut pair = pair();
        for (side, own) in [(Side::Left, left), (Side::Right, right)] {
            add(&mut pair, side, &format!("{own}/24"), &AddressOptions::default());
            assert!(is_changed(&mut pair, side));
            assert!(!is_changed(&mut pair, side), "several changes are one event");
        }
        let end = SocketAddr::new(right.parse().unwrap(), 80).to_string();
        let (client, server) = connect(&mut pair, &end);
        let local = pair.stack(Side::Left).tcp_local_addr(client).unwrap();
        assert_eq!(local.ip().to_string(), left);
        let now = pair.now;
        pair.stack(Side::Right).tcp_write(now, server, b"data").unwrap();
        pair.run_for(SECOND);
        let now = pair.now;
        assert_eq!(pair.stack(Side::Left).tcp_read(now, client, &mut [0; 9]), Ok(4));
    }
}

#[test]
fn the_first_ipv6_address_brings_the_link_local_one() {
    let mut pair = pair();
    add(&mut pair, Side::Right, "2001:db8::2/64", &AddressOptions::default());
    let own = pair.stack(Side::Right).addresses();
    let texts: Vec<_> = own.iter().map(ToString::to_string).collect();
    let expected = [
        "192.0.2.2/24 static preferred",
        "fe80::ff:fe00:2/64 link-local preferred",
        "2001:db8::2/64 static preferred",
    ];
    assert_eq!(texts, expected);
}

/// RFC 4862 §5.5.4: a host must neither send from a removed address nor accept packets for it. A
/// connection with this address can therefore send no FIN or RST when it ends.
#[test]
fn connections_of_a_removed_address_end_without_a_segment() {
    let mut pair = pair();
    let (client, server) = connect(&mut pair, "192.0.2.2:80");
    let now = pair.now;
    pair.stack(Side::Right).tcp_write(now, server, b"unsent").unwrap();
    let sent = Rc::new(Cell::new(0));
    let count = Rc::clone(&sent);
    pair.observe(move |_, side, _| count.set(count.get() + u32::from(side == Side::Right)));
    assert!(remove(&mut pair, Side::Right, "192.0.2.2"));
    let ended = pair.stack(Side::Right).tcp(server).unwrap().error();
    assert_eq!(ended, Some(linerate_tcp::Error::AddressRemoved));
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, client, b"data").unwrap();
    pair.run_for(SECOND * 5);
    assert_eq!(sent.get(), 0, "the host must not send from an address that is not its own");
    let now = pair.now;
    pair.stack(Side::Right).tcp_close(now, server).unwrap();
    pair.run_for(SECOND);
}

#[test]
fn other_connections_survive_the_removal_of_an_address() {
    let mut pair = pair();
    add(&mut pair, Side::Right, "192.0.2.7/24", &AddressOptions::default());
    let (client, server) = connect(&mut pair, "192.0.2.2:80");
    assert!(remove(&mut pair, Side::Right, "192.0.2.7"));
    assert!(!remove(&mut pair, Side::Right, "192.0.2.7"));
    let now = pair.now;
    pair.stack(Side::Left).tcp_write(now, client, b"data").unwrap();
    pair.run_for(SECOND);
    let now = pair.now;
    assert_eq!(pair.stack(Side::Right).tcp_read(now, server, &mut [0; 9]), Ok(4));
    assert!(has_echo_reply(&mut pair, "192.0.2.2"), "the route of the network remains");
}

/// Removing an address also ends the half-open connections of this address and its connections in
/// TIME-WAIT.
#[test]
fn connections_in_every_state_end_with_their_address() {
    let mut pair = pair();
    let (client, server) = connect(&mut pair, "192.0.2.2:80");
    let now = pair.now;
    pair.stack(Side::Left).tcp_close(now, client).unwrap();
    pair.run_for(SECOND);
    let now = pair.now;
    pair.stack(Side::Right).tcp_close(now, server).unwrap();
    pair.run_for(SECOND);
    let absent: SocketAddr = "192.0.2.99:80".parse().unwrap();
    let now = pair.now;
    let opening = pair.stack(Side::Left).tcp_connect(now, absent, &ConnectOptions::default());
    assert!(remove(&mut pair, Side::Left, "192.0.2.1"));
    pair.stack(Side::Left).check();
    let ended = pair.stack(Side::Left).tcp(opening.unwrap()).unwrap().error();
    assert_eq!(ended, Some(linerate_tcp::Error::AddressRemoved));
    let now = pair.now;
    let refused = pair.stack(Side::Left).tcp_connect(now, absent, &ConnectOptions::default());
    assert_eq!(refused, Err(Error::NoRoute(absent.ip())), "its network is gone, too");
}

#[test]
fn sockets_that_are_bound_to_a_removed_address_receive_again_when_it_returns() {
    let mut pair = pair();
    let here: SocketAddr = "192.0.2.2:9".parse().unwrap();
    let socket = pair.stack(Side::Right).udp_bind(here, &UdpOptions::default()).unwrap();
    assert!(has_echo_reply(&mut pair, "192.0.2.2"), "the flow cache knows the hosts");
    remove(&mut pair, Side::Right, "192.0.2.2");
    assert!(!has_echo_reply(&mut pair, "192.0.2.2"));
    let now = pair.now;
    let sent = pair.stack(Side::Right).udp_send_to(
        now,
        socket,
        "192.0.2.1:9".parse::<SocketAddr>().unwrap(),
        b"",
    );
    assert_eq!(sent, Err(Error::NoRoute(Side::Left.address().into())));
    add(&mut pair, Side::Right, "192.0.2.2/24", &AddressOptions::default());
    assert!(has_echo_reply(&mut pair, "192.0.2.2"));
    let there: SocketAddr = "192.0.2.1:9".parse().unwrap();
    let other = pair.stack(Side::Left).udp_bind(there, &UdpOptions::default()).unwrap();
    let now = pair.now;
    pair.stack(Side::Left).udp_send_to(now, other, here, b"again").unwrap();
    pair.run_for(SECOND);
    assert_eq!(pair.stack(Side::Right).udp_receive_from(socket, &mut [0; 9]), Ok((5, there)));
}

#[test]
fn a_lease_is_renewed_or_ends() {
    let mut pair = pair();
    let lease = AddressOptions::lease(SECOND * 10);
    add(&mut pair, Side::Right, "192.0.2.9/24", &lease);
    pair.run_for(SECOND * 9);
    add(&mut pair, Side::Right, "192.0.2.9/24", &lease);
    pair.run_for(SECOND * 8);
    assert!(has_echo_reply(&mut pair, "192.0.2.9"));
    while pair.stack(Side::Right).poll_event().is_some() {}
    pair.run_for(SECOND * 3);
    assert!(is_changed(&mut pair, Side::Right));
    assert!(!has_echo_reply(&mut pair, "192.0.2.9"));
}

#[test]
fn a_deprecated_address_still_receives() {
    let mut pair = pair();
    let options = AddressOptions {
        origin: AddressOrigin::Dhcp,
        preferred_lifetime: Some(SECOND * 2),
        valid_lifetime: Some(SECOND * 100),
    };
    add(&mut pair, Side::Right, "2001:db8::2/64", &options);
    add(&mut pair, Side::Left, "2001:db8::1/64", &AddressOptions::default());
    while pair.stack(Side::Right).poll_event().is_some() {}
    pair.run_for(SECOND * 3);
    assert!(is_changed(&mut pair, Side::Right));
    let own = pair.stack(Side::Right).addresses().last().copied().unwrap();
    assert_eq!((own.state, own.origin), (AddressState::Deprecated, AddressOrigin::Dhcp));
    while pair.stack(Side::Left).poll_event().is_some() {}
    assert!(has_echo_reply(&mut pair, "2001:db8::2"));
}

#[test]
fn unusable_addresses_and_too_many_are_refused() {
    let mut pair = pair();
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    let options = AddressOptions::default();
    let unusable =
        ["224.0.0.1/4", "0.0.0.0/0", "127.0.0.1/8", "255.255.255.255/32", "::1/128", "::/0"];
    for text in unusable {
        let address = cidr(text);
        let refused = stack.add_address(now, address, &options);
        assert_eq!(refused, Err(Error::UnusableAddress(address.address())));
    }
    for number in 0..64 {
        let address = cidr(&format!("10.0.0.{}/24", number + 1));
        let added = stack.add_address(now, address, &options);
        let limit = 64;
        let expected = if number < 63 { Ok(()) } else { Err(Error::TooManyAddresses { limit }) };
        assert_eq!(added, expected, "the host has one address already");
    }
    assert_eq!(stack.add_address(now, cidr("10.0.0.1/24"), &options), Ok(()), "a known one");
}
