//! UDP sockets behave like those of `std::net`.

use crate::networks::{LEFT, RIGHT, networks};
use linerate_sockets::{Fragmentation, Net, UdpOptions, UdpSocket};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

fn sockets(left: &Net, right: &Net) -> (UdpSocket, UdpSocket) {
    (left.bind_udp((LEFT, 0)).unwrap(), right.bind_udp((RIGHT, 0)).unwrap())
}

#[test]
fn a_datagram_arrives_with_the_address_of_its_sender() {
    let (left, right) = networks();
    let (near, far) = sockets(&left, &right);
    let mut received = [0; 64];
    for number in 0..100_u8 {
        assert_eq!(far.send_to(&[number; 9], near.local_addr().unwrap()).unwrap(), 9);
        let (length, from) = near.recv_from(&mut received).unwrap();
        assert_eq!((&received[..length], from), (&[number; 9][..], far.local_addr().unwrap()));
        near.send_to(&received[..length], from).unwrap();
        assert_eq!(far.recv_from(&mut received).unwrap(), (9, near.local_addr().unwrap()));
    }
}

#[test]
fn a_peek_leaves_the_datagram_and_a_small_buffer_truncates_it() {
    let (left, right) = networks();
    let (near, far) = sockets(&left, &right);
    far.send_to(b"datagram", near.local_addr().unwrap()).unwrap();
    let mut received = [0; 4];
    assert_eq!(near.peek_from(&mut received).unwrap().0, 4);
    // The second datagram is sent only after the first has arrived. If the first was waiting for
    // ARP, a datagram sent at once could overtake it.
    far.send_to(b"next", near.local_addr().unwrap()).unwrap();
    assert_eq!(near.peek(&mut received).unwrap(), 4);
    assert_eq!(near.recv(&mut received).unwrap(), 4);
    assert_eq!(&received, b"data");
    assert_eq!(near.recv(&mut received).unwrap(), 4);
    assert_eq!(&received, b"next");
}

#[test]
fn a_connected_socket_reports_that_its_peer_refused_a_datagram() {
    let (left, right) = networks();
    let (near, far) = sockets(&left, &right);
    let address = near.local_addr().unwrap();
    assert_eq!(far.send(b"?").unwrap_err().kind(), ErrorKind::NotConnected);
    assert_eq!(far.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
    far.connect(address).unwrap();
    assert_eq!(far.peer_addr().unwrap(), address);
    far.send(b"hello").unwrap();
    assert_eq!(near.recv(&mut [0; 9]).unwrap(), 5);
    drop(near);
    far.send(b"anyone?").unwrap();
    assert_eq!(far.recv(&mut [0; 9]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert!(far.take_error().unwrap().is_none(), "the error was reported");
}

#[test]
fn a_connected_socket_receives_only_from_its_peer() {
    let (left, right) = networks();
    let (near, far) = sockets(&left, &right);
    let other = left.bind_udp((LEFT, 0)).unwrap();
    far.connect(near.local_addr().unwrap()).unwrap();
    other.send_to(b"other", far.local_addr().unwrap()).unwrap();
    near.send_to(b"peer", far.local_addr().unwrap()).unwrap();
    let mut received = [0; 9];
    assert_eq!(far.recv(&mut received).unwrap(), 4);
    assert_eq!(&received[..4], b"peer");
}

#[test]
fn receiving_would_block_after_the_timeout() {
    let (left, right) = networks();
    let (near, _far) = sockets(&left, &right);
    near.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    assert_eq!(near.recv(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    near.set_nonblocking(true).unwrap();
    assert_eq!(near.recv_from(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(near.read_timeout().unwrap(), Some(Duration::from_millis(1)));
    assert_eq!(near.write_timeout().unwrap(), None);
}

#[test]
fn invalid_datagrams_and_destinations_are_refused() {
    let (left, right) = networks();
    let (near, far) = sockets(&left, &right);
    let to = near.local_addr().unwrap();
    let kind = |result: std::io::Result<usize>| result.unwrap_err().kind();
    assert_eq!(kind(far.send_to(&[0; 65_508], to)), ErrorKind::InvalidInput);
    assert_eq!(far.send_to(&[0; 65_507], to).unwrap(), 65_507);
    far.set_fragmentation(Fragmentation::Never).unwrap();
    assert_eq!(kind(far.send_to(&[0; 1_473], to)), ErrorKind::InvalidInput);
    assert_eq!(far.send_to(&[0; 1_472], to).unwrap(), 1_472);
    let within = right.bind_udp((Ipv4Addr::LOCALHOST, 0)).unwrap();
    assert_eq!(kind(within.send_to(b"?", to)), ErrorKind::InvalidInput);
    let options = UdpOptions { send_bytes: 1_000, ..UdpOptions::default() };
    let narrow = right.bind_udp_with((RIGHT, 0), &options).unwrap();
    assert_eq!(kind(narrow.send_to(&[0; 1_000], to)), ErrorKind::InvalidInput);
    assert_eq!(kind(far.send_to(b"?", (LEFT, 0))), ErrorKind::InvalidInput);
    assert_eq!(kind(far.send_to(b"?", "192.0.2.1:9")), ErrorKind::NetworkUnreachable);
    assert_eq!(kind(far.send_to(b"?", "[::1]:9")), ErrorKind::InvalidInput);
    let broadcast = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 255), 9));
    assert_eq!(kind(far.send_to(b"?", broadcast)), ErrorKind::PermissionDenied);
    far.set_broadcast(true).unwrap();
    assert!(far.broadcast().unwrap());
    assert_eq!(far.send_to(b"all", broadcast).unwrap(), 3);
}

#[test]
fn a_sender_waits_while_the_link_is_busy() {
    const DATAGRAMS: usize = 5_000;
    let (left, right) = networks();
    let near = left.bind_udp((LEFT, 0)).unwrap();
    // The send queue has room for two datagrams of 1,000 bytes with their headers, and two threads
    // send 5,000 of them. So most of the sends have to wait for room.
    let options = UdpOptions { send_bytes: 3_000, ..UdpOptions::default() };
    let far = right.bind_udp_with((RIGHT, 0), &options).unwrap();
    let to = near.local_addr().unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..DATAGRAMS / 2 {
                    assert_eq!(far.send_to(&[1; 1_000], to).unwrap(), 1_000);
                }
            });
        }
    });
    assert_eq!(right.counters().unwrap().udp.out_datagrams, DATAGRAMS as u64);
}

#[test]
fn a_sender_to_its_own_host_never_waits_and_excess_datagrams_are_dropped() {
    const DATAGRAMS: usize = 3_000;
    let (left, _right) = networks();
    let [from, to] = [(); 2].map(|()| left.bind_udp((LEFT, 0)).unwrap());
    from.set_nonblocking(true).unwrap();
    let address = to.local_addr().unwrap();
    // The host's loopback queue has room for a third of these datagrams, so some of them are
    // dropped. Nevertheless no send may fail with `WouldBlock`.
    for _ in 0..DATAGRAMS {
        from.send_to(&[1; 1_000], address).unwrap();
    }
    assert_eq!(to.recv(&mut [0; 1_000]).unwrap(), 1_000);
}

#[test]
fn queued_datagrams_are_sent_although_the_socket_is_dropped() {
    let (left, right) = networks();
    let near = left.bind_udp((LEFT, 0)).unwrap();
    let mut received = [0; 9];
    // The socket of the first datagram is closed while the datagram waits for an ARP reply. The
    // datagram must be sent nevertheless. The second datagram does not wait, because the first has
    // made the MAC address known.
    for word in [b"one", b"two"] {
        let far = right.bind_udp((RIGHT, 0)).unwrap();
        let from = far.local_addr().unwrap();
        far.send_to(word, near.local_addr().unwrap()).unwrap();
        drop(far);
        assert_eq!(near.recv_from(&mut received).unwrap(), (3, from));
        assert_eq!(&received[..3], word);
    }
}

#[test]
fn finish_sends_a_datagram_that_waits_for_arp() {
    let (left, right) = networks();
    let near = left.bind_udp((LEFT, 0)).unwrap();
    right.bind_udp((RIGHT, 0)).unwrap().send_to(b"word", near.local_addr().unwrap()).unwrap();
    right.finish(Duration::from_secs(600)).unwrap();
    assert_eq!(near.recv(&mut [0; 9]).unwrap(), 4);
}
