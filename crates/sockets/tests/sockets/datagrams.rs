//! UDP sockets carry datagrams as those of `std::net` do.

use crate::networks::{LEFT, RIGHT, networks};
use linerate_sockets::{Net, UdpOptions, UdpSocket};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

fn sockets(left: &Net, right: &Net) -> (UdpSocket, UdpSocket) {
    (left.bind_udp((LEFT, 0)).unwrap(), right.bind_udp((RIGHT, 0)).unwrap())
}

#[test]
fn a_datagram_arrives_with_its_sender_and_can_be_answered() {
    let (left, right) = networks();
    let (near, far) = sockets(&left, &right);
    let mut heard = [0; 64];
    for number in 0..100_u8 {
        assert_eq!(far.send_to(&[number; 9], near.local_addr().unwrap()).unwrap(), 9);
        let (length, from) = near.recv_from(&mut heard).unwrap();
        assert_eq!((&heard[..length], from), (&[number; 9][..], far.local_addr().unwrap()));
        near.send_to(&heard[..length], from).unwrap();
        assert_eq!(far.recv_from(&mut heard).unwrap(), (9, near.local_addr().unwrap()));
    }
}

#[test]
fn a_peek_leaves_the_datagram_and_a_small_buffer_loses_its_rest() {
    let (left, right) = networks();
    let (near, far) = sockets(&left, &right);
    far.send_to(b"datagram", near.local_addr().unwrap()).unwrap();
    let mut heard = [0; 4];
    assert_eq!(near.peek_from(&mut heard).unwrap().0, 4);
    // Sent now and not before: the first one may have had to wait for the neighbour's address.
    far.send_to(b"next", near.local_addr().unwrap()).unwrap();
    assert_eq!(near.peek(&mut heard).unwrap(), 4);
    assert_eq!(near.recv(&mut heard).unwrap(), 4);
    assert_eq!(&heard, b"data");
    assert_eq!(near.recv(&mut heard).unwrap(), 4);
    assert_eq!(&heard, b"next");
}

#[test]
fn a_socket_with_a_peer_hears_of_its_refusal() {
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
    far.send(b"anybody?").unwrap();
    assert_eq!(far.recv(&mut [0; 9]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert!(far.take_error().unwrap().is_none(), "it was told");
}

#[test]
fn a_socket_with_a_peer_hears_nobody_else() {
    let (left, right) = networks();
    let (near, far) = sockets(&left, &right);
    let other = left.bind_udp((LEFT, 0)).unwrap();
    far.connect(near.local_addr().unwrap()).unwrap();
    other.send_to(b"other", far.local_addr().unwrap()).unwrap();
    near.send_to(b"peer", far.local_addr().unwrap()).unwrap();
    let mut heard = [0; 9];
    assert_eq!(far.recv(&mut heard).unwrap(), 4);
    assert_eq!(&heard[..4], b"peer");
}

#[test]
fn nothing_in_time_would_block() {
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
fn what_cannot_be_sent_is_refused() {
    let (left, right) = networks();
    let (near, far) = sockets(&left, &right);
    let to = near.local_addr().unwrap();
    let kind = |result: std::io::Result<usize>| result.unwrap_err().kind();
    assert_eq!(kind(far.send_to(&[0; 1_473], to)), ErrorKind::InvalidInput);
    assert_eq!(far.send_to(&[0; 1_472], to).unwrap(), 1_472);
    let within = right.bind_udp((Ipv4Addr::LOCALHOST, 0)).unwrap();
    assert_eq!(kind(within.send_to(b"?", to)), ErrorKind::InvalidInput);
    let options = UdpOptions { send_bytes: 1_000, ..UdpOptions::default() };
    let narrow = right.bind_udp_with((RIGHT, 0), &options).unwrap();
    assert_eq!(kind(narrow.send_to(&[0; 1_000], to)), ErrorKind::InvalidInput);
    assert_eq!(kind(far.send_to(b"?", (LEFT, 0))), ErrorKind::InvalidInput);
    assert_eq!(kind(far.send_to(b"?", "192.0.2.1:9")), ErrorKind::NetworkUnreachable);
    assert_eq!(kind(far.send_to(b"?", "[::1]:9")), ErrorKind::Unsupported);
    let everybody = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 255), 9));
    assert_eq!(kind(far.send_to(b"?", everybody)), ErrorKind::PermissionDenied);
    far.set_broadcast(true).unwrap();
    assert!(far.broadcast().unwrap());
    assert_eq!(far.send_to(b"all", everybody).unwrap(), 3);
}

#[test]
fn a_sender_that_is_faster_than_the_link_waits_for_it() {
    const DATAGRAMS: usize = 5_000;
    let (left, right) = networks();
    let near = left.bind_udp((LEFT, 0)).unwrap();
    // Room for two at a time, so that waiting is the rule.
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
fn a_sender_to_its_own_host_never_waits_and_what_is_too_much_is_lost() {
    const DATAGRAMS: usize = 3_000;
    let (left, _right) = networks();
    let [from, to] = [(); 2].map(|()| left.bind_udp((LEFT, 0)).unwrap());
    from.set_nonblocking(true).unwrap();
    let address = to.local_addr().unwrap();
    // Thrice what the host holds of packets to itself.
    for _ in 0..DATAGRAMS {
        from.send_to(&[1; 1_000], address).unwrap();
    }
    assert_eq!(to.recv(&mut [0; 1_000]).unwrap(), 1_000);
}

#[test]
fn what_was_sent_leaves_although_its_socket_is_dropped() {
    let (left, right) = networks();
    let near = left.bind_udp((LEFT, 0)).unwrap();
    let mut heard = [0; 9];
    // To a neighbour that has to be asked for first, and to one that is known.
    for word in [b"one", b"two"] {
        let far = right.bind_udp((RIGHT, 0)).unwrap();
        let from = far.local_addr().unwrap();
        far.send_to(word, near.local_addr().unwrap()).unwrap();
        drop(far);
        assert_eq!(near.recv_from(&mut heard).unwrap(), (3, from));
        assert_eq!(&heard[..3], word);
    }
}

#[test]
fn a_patient_end_lets_a_datagram_leave_whose_way_has_to_be_found() {
    let (left, right) = networks();
    let near = left.bind_udp((LEFT, 0)).unwrap();
    right.bind_udp((RIGHT, 0)).unwrap().send_to(b"word", near.local_addr().unwrap()).unwrap();
    right.finish(Duration::from_secs(600)).unwrap();
    assert_eq!(near.recv(&mut [0; 9]).unwrap(), 4);
}
