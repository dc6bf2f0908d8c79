use super::*;
use crate::namespace::{Network, isolated_test};
use crate::tap::{Tap, TapConfig};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

const LEFT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

#[test]
fn an_interface_has_the_state_that_was_set() {
    isolated_test(|| {
        let (left, right) = KernelInterface::create_veth("left", "right").unwrap();
        assert_ne!(left.index(), right.index());
        assert_eq!((left.name(), right.name()), ("left", "right"));
        assert!(!left.state().unwrap().up);
        left.set_mtu(Bytes::new(1_400)).unwrap();
        left.set_mac([2, 0, 0, 0, 0, 7]).unwrap();
        left.disable_ipv6().unwrap();
        left.set_up().unwrap();
        let state = left.state().unwrap();
        assert_eq!((state.up, state.running), (true, false), "the other end of the cable is down");
        assert_eq!((state.mtu, state.mac), (Bytes::new(1_400), Some([2, 0, 0, 0, 0, 7])));
        right.set_up().unwrap();
        assert!(left.state().unwrap().running);
        left.set_down().unwrap();
        assert!(!left.state().unwrap().up);
        right.delete().unwrap();
        assert_eq!(left.state(), Err(InterfaceError::Missing("left".to_owned())));
    });
}

#[test]
fn drivers_and_queue_disciplines_that_count_have_counters() {
    isolated_test(|| {
        let (left, right) = KernelInterface::create_veth("left", "right").unwrap();
        let counters = left.driver_counters().unwrap();
        assert_eq!(counters.get("peer_ifindex"), Some(&u64::from(right.index())), "{counters:?}");
        assert_eq!(left.queue_counters(), Ok(None), "a cable has no queue");
        assert!(KernelInterface::loopback().unwrap().driver_counters().unwrap().is_empty());
        let tap = Tap::open(&TapConfig::default()).unwrap();
        tap.interface().set_up().unwrap();
        assert_eq!(tap.interface().queue_counters(), Ok(Some(QueueCounters::default())));
    });
}

#[test]
fn queue_counters_are_those_of_the_root_of_the_interface() {
    let mut reply = vec![0; QUEUE_PART];
    reply[4..8].copy_from_slice(&7_u32.to_ne_bytes());
    reply[12..16].copy_from_slice(&ROOT.to_ne_bytes());
    let queue: Vec<u8> =
        [1_u32, 2, 30, 40, 50].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let attribute = |kind: u16, value: &[u8]| {
        let length = u16::try_from(4 + value.len()).unwrap();
        [&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat()
    };
    reply.extend(attribute(TCA_STATS2, &attribute(TCA_STATS_QUEUE, &queue)));
    let expected = QueueCounters { dropped: 30, requeued: 40, overlimits: 50 };
    assert_eq!(queue_counters(&reply, 7), Some(expected));
    assert_eq!(queue_counters(&reply, 8), None, "another interface");
    assert_eq!(queue_counters(&reply[..40], 7), None, "cut short");
    reply[12] = 1;
    assert_eq!(queue_counters(&reply, 7), None, "a queue below the root");
}

/// One interface of a veth pair stays in this network namespace, and the other moves to a second
/// namespace. The test contacts an address of the second namespace's loopback interface. This
/// address is outside of the veth pair's prefix, so it needs a route.
#[test]
fn two_networks_are_connected_by_a_veth_pair() {
    isolated_test(|| {
        let other_network = Network::new().unwrap();
        let (left, right) = KernelInterface::create_veth("left", "right").unwrap();
        right.move_to_process(other_network.id()).unwrap();
        assert!(KernelInterface::named("right").is_err());
        let far = Ipv4Addr::new(10, 9, 9, 9);
        let listener = other_network.run(move || {
            let right = KernelInterface::named("right").unwrap();
            right.add_address(RIGHT, 24).unwrap();
            right.set_up().unwrap();
            let loopback = KernelInterface::loopback().unwrap();
            loopback.add_address(far, 32).unwrap();
            loopback.set_up().unwrap();
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap()
        });
        left.add_address(LEFT, 24).unwrap();
        left.set_up().unwrap();
        left.add_route(Ipv4Addr::new(10, 9, 0, 0), 16, Some(RIGHT.into())).unwrap();
        left.add_route(Ipv4Addr::new(10, 8, 0, 0), 16, None).unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((far, port)).unwrap().write_all(b"hello").unwrap();
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    });
}

/// The kernel accepts packets to a new IPv6 address only once it has added a local route, some time
/// after the request. So `add_address` must wait for that route before it returns.
#[test]
fn packets_reach_an_ipv6_address_as_soon_as_it_was_added() {
    isolated_test(|| {
        let loopback = KernelInterface::loopback().unwrap();
        for host in 1..=500 {
            let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host);
            loopback.add_address(address, 128).unwrap();
            let receiver = UdpSocket::bind((address, 0)).unwrap();
            // The timeout makes a lost datagram fail the test instead of blocking it.
            receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let sender = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
            sender.send_to(b"hello", receiver.local_addr().unwrap()).unwrap();
            assert_eq!(receiver.recv(&mut [0; 5]).unwrap(), 5);
        }
    });
}

#[test]
fn the_route_of_an_own_address_is_local_and_of_the_whole_address() {
    let (address, other) = ([7; 16], [8; 16]);
    let route = |length: u8, kind: u8, destination: &[u8; 16]| {
        let mut route = vec![0; ROUTE_PART];
        (route[1], route[7]) = (length, kind);
        route.extend([20_u16.to_ne_bytes(), RTA_DST.to_ne_bytes()].concat());
        route.extend(destination);
        route
    };
    assert!(is_route_of_own_address(&route(128, LOCAL, &address), &address));
    assert!(!is_route_of_own_address(&route(64, LOCAL, &address), &address));
    assert!(!is_route_of_own_address(&route(128, 1, &address), &address), "a unicast route");
    assert!(!is_route_of_own_address(&route(128, LOCAL, &other), &address));
    assert!(!is_route_of_own_address(&[], &address));
}

#[test]
fn errors_of_the_kernel_are_explained() {
    isolated_test(|| {
        let loopback = KernelInterface::loopback().unwrap();
        loopback.add_address(LEFT, 8).unwrap();
        let twice = loopback.add_address(LEFT, 8).unwrap_err();
        assert_eq!(twice.to_string(), "could not give an address to `lo`: it exists already");
        let missing = KernelInterface::named("nowhere").unwrap_err();
        assert_eq!(missing, InterfaceError::Missing("nowhere".to_owned()));
        let gateway =
            loopback.add_route(RIGHT, 32, Some(Ipv4Addr::new(192, 0, 2, 1).into())).unwrap_err();
        assert!(matches!(gateway, InterfaceError::System { what: "route over", .. }), "{gateway}");
        let refused = KernelInterface::create_veth("lo", "other").unwrap_err();
        assert!(matches!(refused, InterfaceError::Exists { .. }), "{refused}");
    });
}

#[test]
fn a_veth_pair_with_an_invalid_name_is_refused() {
    isolated_test(|| {
        for (name, peer) in [("a b", "right"), ("left", "sixteen-letters-")] {
            let refused = KernelInterface::create_veth(name, peer).unwrap_err();
            assert!(matches!(refused, InterfaceError::Name(_)), "{refused}");
        }
    });
}

#[test]
fn invalid_names_are_refused_before_the_kernel_is_called() {
    for name in ["", "sixteen-letters-", "a/b", "a b", "a:1", "lr%d", "..", "é"] {
        assert_eq!(KernelInterface::named(name), Err(InterfaceError::Name(name.to_owned())));
    }
    check_name("fifteen-letters").unwrap();
}
