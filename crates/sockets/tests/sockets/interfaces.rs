//! A network with two interfaces, and a peer network on each link.

use crate::networks::{cable, config};
use linerate_link::MemoryLink;
use linerate_sockets::{Builder, InterfaceConfig, Net};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

const INNER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const BULK: usize = 4 << 20;

fn outer() -> InterfaceConfig {
    InterfaceConfig::new("02:00:00:00:01:01".parse().unwrap(), "10.0.1.1/24".parse().unwrap())
}

fn builder() -> (Builder<MemoryLink>, MemoryLink, MemoryLink) {
    let ((inner, inner_peer), (further, outer_peer)) = (cable(), cable());
    let builder = Net::builder(inner, config(INNER)).interface(outer(), further);
    (builder, inner_peer, outer_peer)
}

/// Returns a network with two interfaces, and the two peer networks: one on the link of each
/// interface.
fn networks() -> (Net, [Net; 2]) {
    let (builder, inner_peer, outer_peer) = builder();
    let peers = [(inner_peer, [10, 0, 0, 2]), (outer_peer, [10, 0, 1, 2])];
    let peers = peers.map(|(link, own)| Net::builder(link, config(own.into())).start().unwrap());
    (builder.start().unwrap(), peers)
}

#[test]
fn connections_over_both_interfaces_transfer_data_at_once() {
    let (net, peers) = networks();
    let listener = net.bind("[::]:80").unwrap();
    thread::scope(|scope| {
        for (peer, to) in peers.iter().zip([INNER, OUTER]) {
            scope.spawn(move || {
                let mut stream = peer.connect((to, 80)).unwrap();
                let mut sending = stream.try_clone().unwrap();
                let sender = thread::spawn(move || sending.write_all(&vec![7; BULK]).unwrap());
                let mut echo = vec![0; BULK];
                stream.read_exact(&mut echo).unwrap();
                sender.join().unwrap();
                assert!(echo.iter().all(|&byte| byte == 7));
            });
        }
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            scope.spawn(move || {
                let mut bytes = vec![0; BULK];
                stream.read_exact(&mut bytes).unwrap();
                stream.write_all(&bytes).unwrap();
            });
        }
    });
    net.finish(Duration::from_secs(10)).unwrap();
}

#[test]
fn calls_about_an_interface_name_it() {
    let (net, _peers) = networks();
    assert_eq!(net.interfaces().unwrap(), [1, 2]);
    let second = net.on(2).unwrap();
    let own = |net: &Net| net.addresses().unwrap()[0].cidr.address();
    assert_eq!([own(&net), own(&second)], [INNER, OUTER]);
    second.add_address("10.0.1.9/24".parse().unwrap(), &Default::default()).unwrap();
    assert_eq!([&net, &second].map(|net| net.addresses().unwrap().len()), [1, 2]);
    assert!(net.remove_address([10, 0, 1, 9].into()).unwrap().is_none());
    assert!(second.remove_address([10, 0, 1, 9].into()).unwrap().is_some());
    assert_eq!(net.on(3).unwrap_err().kind(), ErrorKind::AddrNotAvailable);
    // `second` is a handle of the network `net`, for its second interface. Sockets belong to the
    // network, so the port that `second` has bound is also in use for `net`.
    let taken = second.bind_udp((INNER, 7)).unwrap();
    assert_eq!(net.bind_udp((INNER, 7)).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(taken);
}

#[test]
fn a_socket_chooses_the_interface_of_its_groups() {
    let (net, peers) = networks();
    let group = Ipv4Addr::new(239, 1, 2, 3);
    let to = SocketAddr::new(group.into(), 9);
    let second = Some(Duration::from_secs(5));
    let receivers = peers.each_ref().map(|peer| {
        let receiver = peer.bind_udp("0.0.0.0:9").unwrap();
        receiver.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED).unwrap();
        receiver.set_read_timeout(second).unwrap();
        receiver
    });
    let socket = net.bind_udp("0.0.0.0:9").unwrap();
    for (interface, own, receiver) in [(2, OUTER, &receivers[1]), (1, INNER, &receivers[0])] {
        socket.set_multicast_if_v4(&own).unwrap();
        assert_eq!(socket.multicast_if_v6().unwrap(), interface);
        socket.send_to(b"to all", to).unwrap();
        assert_eq!(receiver.recv_from(&mut [0; 9]).unwrap().1, SocketAddr::new(own.into(), 9));
    }
    socket.join_multicast_v4(&group, &OUTER).unwrap();
    socket.set_read_timeout(second).unwrap();
    receivers[0].send_to(b"not joined there", to).unwrap();
    receivers[1].send_to(b"joined", to).unwrap();
    let mut bytes = [0; 32];
    let (length, from) = socket.recv_from(&mut bytes).unwrap();
    assert_eq!(&bytes[..length], b"joined");
    assert_eq!(from, SocketAddr::from(([10, 0, 1, 2], 9)));
    let unknown = [
        socket.join_multicast_v6(&"ff02::9".parse().unwrap(), 3),
        socket.set_multicast_if_v4(&Ipv4Addr::new(10, 0, 1, 2)),
        socket.set_multicast_if_v6(3),
    ];
    for refused in unknown {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
    }
    socket.set_multicast_if_v6(0).unwrap();
    assert_eq!(socket.multicast_if_v6().unwrap(), 0);
}

#[test]
fn several_queues_and_several_interfaces_exclude_each_other() {
    let (builder, ..) = builder();
    let (queue, _peer) = cable();
    let error = builder.queues([queue]).start().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("one queue of each link"), "{error}");
}

#[test]
fn the_links_of_all_interfaces_are_handed_back() {
    let (builder, _inner_peer, _outer_peer) = builder();
    let (sender, ended) = std::sync::mpsc::channel();
    let net = builder.when_ended(move |_| sender.send(()).unwrap()).start().unwrap();
    net.shutdown();
    assert_eq!(ended.iter().count(), 2);
}
