//! Listeners behave like those of `std::net`.

use crate::networks::{ABSENT, LEFT, RIGHT, networks};
use linerate_sockets::{BufferSize, Config, ListenOptions, SynCookies};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

#[test]
fn a_port_without_a_listener_refuses_connections() {
    let (_left, right) = networks();
    let error = right.connect((LEFT, 9)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(error.to_string(), "the peer refused the connection: nothing listens on that port");
}

#[test]
fn an_address_can_be_bound_once_and_must_be_local() {
    let (left, _right) = networks();
    let listener = left.bind((LEFT, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    assert_ne!(address.port(), 0);
    assert_eq!(left.bind(address).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(listener);
    let again = left.bind(address).unwrap();
    drop(left.bind((LEFT, 0)).unwrap());
    assert_eq!(again.local_addr().unwrap(), address);
    assert_eq!(left.bind((ABSENT, 80)).unwrap_err().kind(), ErrorKind::AddrNotAvailable);
    let absent = left.bind("[2001:db8::1]:80").unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::AddrNotAvailable);
    let unreachable = left.connect("[2001:db8::1]:80").unwrap_err();
    assert_eq!(unreachable.kind(), ErrorKind::NetworkUnreachable);
}

#[test]
fn the_first_of_several_addresses_that_answers_is_used() {
    let (left, right) = networks();
    let listener = left.bind((LEFT, 80)).unwrap();
    let addresses = [SocketAddr::from((LEFT, 79)), SocketAddr::from((LEFT, 80))];
    let far = right.connect(&addresses[..]).unwrap();
    assert_eq!(far.peer_addr().unwrap(), listener.local_addr().unwrap());
}

#[test]
fn connecting_without_a_route_fails() {
    let (left, _right) = networks();
    let error = left.connect("192.0.2.1:80").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NetworkUnreachable);
}

#[test]
fn a_host_can_connect_to_itself() {
    let (left, _right) = networks();
    let listener = left.bind("0.0.0.0:80").unwrap();
    for address in ["10.0.0.1:80", "127.0.0.1:80"] {
        let mut far = left.connect(address).unwrap();
        let (mut near, _) = listener.accept().unwrap();
        far.write_all(b"me").unwrap();
        drop(far);
        let mut received = String::new();
        near.read_to_string(&mut received).unwrap();
        assert_eq!(received, "me");
    }
}

#[test]
fn connections_beyond_the_backlog_wait_until_there_is_room() {
    let (left, right) = networks();
    let options = ListenOptions { backlog: 2, ..ListenOptions::default() };
    let listener = left.bind_with((LEFT, 0), &options).unwrap();
    let address = listener.local_addr().unwrap();
    let waiting = [(); 2].map(|()| right.connect(address).unwrap());
    let error = loop {
        // Connects until the listener's queue is full, so that a connection attempt times out. More
        // attempts than `backlog` may succeed: a full listener drops the final ACK of a handshake,
        // and the client then considers the connection open. So their number is not checked.
        match right.connect_timeout(&address, Duration::from_millis(20)) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    thread::scope(|scope| {
        let late = scope.spawn(|| right.connect(address).unwrap());
        let accepted = [(); 3].map(|()| listener.accept().unwrap().1);
        assert_eq!(accepted[..2], waiting.map(|stream| stream.local_addr().unwrap()));
        assert_eq!(accepted[2], late.join().unwrap().local_addr().unwrap());
    });
}

#[test]
fn a_listener_with_syn_cookies_accepts_and_counts_them() {
    let (left, right) = networks();
    let options = ListenOptions { syn_cookies: SynCookies::Always, ..ListenOptions::default() };
    let listener = left.bind_with((LEFT, 0), &options).unwrap();
    let mut far = right.connect(listener.local_addr().unwrap()).unwrap();
    far.write_all(b"cookie").unwrap();
    far.shutdown(Shutdown::Write).unwrap();
    let mut received = String::new();
    listener.accept().unwrap().0.read_to_string(&mut received).unwrap();
    assert_eq!(received, "cookie");
    let counted = listener.statistics().unwrap();
    assert_eq!((counted.syns_kept, counted.cookies_taken, counted.acceptable), (0, 1, 0));
}

#[test]
fn a_listener_with_deferred_accept_waits_for_data() {
    let (left, right) = networks();
    let defer_accept = Some(Duration::from_secs(100).into());
    let options = ListenOptions { defer_accept, ..ListenOptions::default() };
    let listener = left.bind_with((LEFT, 0), &options).unwrap();
    let mut far = right.connect(listener.local_addr().unwrap()).unwrap();
    while listener.statistics().unwrap().deferred == 0 {
        thread::yield_now();
    }
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    listener.set_nonblocking(false).unwrap();
    far.write_all(b"question").unwrap();
    let mut received = [0; 8];
    listener.accept().unwrap().0.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"question");
}

#[test]
fn shutting_a_listener_down_wakes_waiting_threads() {
    let (left, right) = networks();
    let listener = left.bind((LEFT, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let waiting = [(); 3].map(|()| scope.spawn(|| listener.accept().unwrap_err().kind()));
        listener.shutdown().unwrap();
        assert_eq!(waiting.map(|thread| thread.join().unwrap()), [ErrorKind::InvalidInput; 3]);
    });
    assert!(listener.incoming().next().unwrap().is_err());
    assert_eq!(listener.shutdown().unwrap_err().kind(), ErrorKind::NotConnected);
    assert_eq!(right.connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn connections_not_yet_accepted_are_reset_when_the_listener_is_dropped() {
    let (left, right) = networks();
    let listener = left.bind((LEFT, 0)).unwrap();
    let mut far = right.connect(listener.local_addr().unwrap()).unwrap();
    drop(listener);
    assert_eq!(far.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn two_hundred_simultaneous_clients_each_get_their_answer() {
    const CLIENTS: u32 = 200;
    let (left, right) = networks();
    let listener = left.bind((LEFT, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let start = Barrier::new(CLIENTS as usize);
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (right, start) = (&right, &start);
            scope.spawn(move || {
                start.wait();
                let mut stream = right.connect(address).unwrap();
                assert_eq!(stream.local_addr().unwrap().ip(), RIGHT);
                stream.write_all(&number.to_be_bytes()).unwrap();
                let mut answer = [0; 4];
                stream.read_exact(&mut answer).unwrap();
                assert_eq!(u32::from_be_bytes(answer), number + 1);
            });
        }
        for stream in listener.incoming().take(CLIENTS as usize) {
            let mut stream = stream.unwrap();
            scope.spawn(move || {
                let mut request = [0; 4];
                stream.read_exact(&mut request).unwrap();
                let answer = u32::from_be_bytes(request) + 1;
                stream.write_all(&answer.to_be_bytes()).unwrap();
                assert_eq!(stream.read(&mut request).unwrap(), 0);
            });
        }
    });
}

#[test]
fn accept_fails_after_its_timeout() {
    let (left, right) = networks();
    let listener = left.bind((LEFT, 80)).unwrap();
    assert_eq!(
        listener.set_timeout(Some(Duration::ZERO)).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    listener.set_timeout(Some(Duration::from_millis(1))).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    listener.set_timeout(Some(Duration::MAX)).unwrap();
    let _far = right.connect((LEFT, 80)).unwrap();
    listener.accept().unwrap();
}

#[test]
fn a_changed_configuration_applies_to_later_connections() {
    let (left, right) = networks();
    let listener = left.bind((LEFT, 80)).unwrap();
    let next = || {
        let far = right.connect((LEFT, 80)).unwrap();
        let (near, _) = listener.accept().unwrap();
        (far.tcp_info().unwrap().send_window, near.receive_buffer().unwrap())
    };
    let usual = next();
    let small = Config { receive_buffer: BufferSize::Fixed(4_344), ..Config::default() };
    listener.set_config(Some(small)).unwrap();
    assert_eq!(next(), (4_344, 4_344), "the first window and the buffer");
    listener.set_config(None).unwrap();
    assert_eq!(next(), usual);
    listener.shutdown().unwrap();
    assert_eq!(listener.set_config(None).unwrap_err().kind(), ErrorKind::NotConnected);
}
