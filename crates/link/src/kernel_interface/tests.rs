use super::*;
use crate::namespace::{Isolation, enter, isolated_test};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;

const LEFT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

#[test]
fn an_interface_is_as_it_was_set() {
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

/// One end of the cable stays here, the other goes into the network of a thread; the thread's own
/// loopback address is reached over it, by a route.
#[test]
fn two_networks_are_connected_by_a_virtual_cable() {
    isolated_test(|| {
        let (left, right) = KernelInterface::create_veth("left", "right").unwrap();
        let (tell, told) = channel();
        let (go, gone) = channel();
        let other = thread::spawn(move || {
            enter(Isolation::Network).unwrap();
            tell.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
            gone.recv().unwrap();
            let right = KernelInterface::named("right").unwrap();
            right.add_address(RIGHT, 24).unwrap();
            right.set_up().unwrap();
            let loopback = KernelInterface::loopback().unwrap();
            loopback.add_address(Ipv4Addr::new(10, 9, 9, 9), 32).unwrap();
            loopback.set_up().unwrap();
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            tell.send(listener.local_addr().unwrap().port().into()).unwrap();
            let mut text = String::new();
            listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
            text
        });
        right.move_to_process(told.recv().unwrap()).unwrap();
        assert!(KernelInterface::named("right").is_err());
        left.add_address(LEFT, 24).unwrap();
        left.set_up().unwrap();
        left.add_route(Ipv4Addr::new(10, 9, 0, 0), 16, Some(RIGHT)).unwrap();
        left.add_route(Ipv4Addr::new(10, 8, 0, 0), 16, None).unwrap();
        go.send(()).unwrap();
        let port = u16::try_from(told.recv().unwrap()).unwrap();
        TcpStream::connect((Ipv4Addr::new(10, 9, 9, 9), port)).unwrap().write_all(b"hello").unwrap();
        assert_eq!(other.join().unwrap(), "hello");
    });
}

#[test]
fn what_the_kernel_refuses_is_told_in_words() {
    isolated_test(|| {
        let loopback = KernelInterface::loopback().unwrap();
        loopback.add_address(LEFT, 8).unwrap();
        let twice = loopback.add_address(LEFT, 8).unwrap_err();
        assert_eq!(twice.to_string(), "could not give an address to `lo`: it exists already");
        let missing = KernelInterface::named("nowhere").unwrap_err();
        assert_eq!(missing, InterfaceError::Missing("nowhere".to_owned()));
        let gateway = loopback.add_route(RIGHT, 32, Some(Ipv4Addr::new(192, 0, 2, 1))).unwrap_err();
        assert!(matches!(gateway, InterfaceError::System { what: "route over", .. }), "{gateway}");
        let refused = KernelInterface::create_veth("lo", "other").unwrap_err();
        assert!(matches!(refused, InterfaceError::Exists { .. }), "{refused}");
    });
}

#[test]
fn names_that_no_interface_can_have_are_refused_before_the_kernel_is_asked() {
    for name in ["", "sixteen-letters-", "a/b", "a b", "a:1", "lr%d", "..", "é"] {
        assert_eq!(KernelInterface::named(name), Err(InterfaceError::Name(name.to_owned())));
    }
    check_name("fifteen-letters").unwrap();
}
