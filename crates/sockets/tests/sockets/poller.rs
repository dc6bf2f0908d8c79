//! Tests of [`Poller`]: in an event loop of its own, and in an event loop of mio.

use crate::networks::{LEFT, RIGHT, connection, networks};
use linerate_sockets::{Event, Interest, Net, Poller, TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Events, Poll, Token};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::thread;

const CLIENTS: u8 = 5;
const LENGTH: usize = 300_000;

/// An echo server that handles all its connections on one thread, with non-blocking sockets.
struct Server {
    listener: TcpListener,
    connections: BTreeMap<usize, Connection>,
    served: usize,
}

struct Connection {
    stream: TcpStream,
    unsent: Vec<u8>,
    has_ended: bool,
}

/// Repeats `call` until it returns false or would block.
fn until_blocked(mut call: impl FnMut() -> io::Result<bool>) {
    loop {
        match call() {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => panic!("{error}"),
        }
    }
}

impl Server {
    fn new(net: &Net, poller: &Poller) -> Self {
        let listener = net.bind((LEFT, 7)).unwrap();
        listener.set_nonblocking(true).unwrap();
        poller.register(&listener, 0, Interest::Read).unwrap();
        Self { listener, connections: BTreeMap::new(), served: 0 }
    }

    fn handle(&mut self, poller: &Poller, event: Event) {
        let Self { listener, connections, served } = self;
        if event.token == 0 {
            until_blocked(|| {
                let stream = listener.accept()?.0;
                stream.set_nonblocking(true)?;
                let token = connections.len() + *served + 1;
                poller.register(&stream, token, Interest::Both)?;
                let connection = Connection { stream, unsent: Vec::new(), has_ended: false };
                connections.insert(token, connection);
                Ok(true)
            });
            return;
        }
        let Some(connection) = connections.get_mut(&event.token) else { return };
        let Connection { stream, unsent, has_ended } = connection;
        if event.readable {
            let mut piece = [0; 5_000];
            until_blocked(|| {
                let count = stream.read(&mut piece)?;
                unsent.extend_from_slice(&piece[..count]);
                *has_ended = count == 0;
                Ok(count > 0)
            });
        }
        until_blocked(|| {
            let count = stream.write(unsent)?;
            unsent.drain(..count);
            Ok(!unsent.is_empty())
        });
        if *has_ended && unsent.is_empty() {
            connections.remove(&event.token);
            *served += 1;
        }
    }
}

/// Runs an echo server with several clients, each on a thread. `serve` runs on the thread of the
/// test. It must pass the poller's events to the server until all clients have been served.
fn echo(serve: impl FnOnce(&Poller, &mut Server)) {
    let (left, right) = networks();
    let poller = Poller::new().unwrap();
    let mut server = Server::new(&left, &poller);
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let right = &right;
            scope.spawn(move || {
                let stream = right.connect((LEFT, 7)).unwrap();
                thread::scope(|scope| {
                    scope.spawn(|| {
                        (&stream).write_all(&vec![number; LENGTH]).unwrap();
                        stream.shutdown(Shutdown::Write).unwrap();
                    });
                    let mut received = Vec::new();
                    (&stream).read_to_end(&mut received).unwrap();
                    assert!(received == vec![number; LENGTH], "{} bytes", received.len());
                });
            });
        }
        serve(&poller, &mut server);
    });
}

#[test]
fn a_poll_loop_serves_many_connections_on_one_thread() {
    echo(|poller, server| {
        let mut events = Vec::new();
        while server.served < CLIENTS.into() {
            poller.wait(&mut events, None).unwrap();
            events.iter().for_each(|&event| server.handle(poller, event));
        }
    });
}

#[test]
fn the_descriptor_works_with_mio() {
    echo(|poller, server| {
        let mut poll = Poll::new().unwrap();
        let descriptor = poller.as_raw_fd();
        let readable = mio::Interest::READABLE;
        poll.registry().register(&mut SourceFd(&descriptor), Token(0), readable).unwrap();
        let (mut woken, mut events) = (Events::with_capacity(8), Vec::new());
        while server.served < CLIENTS.into() {
            poll.poll(&mut woken, None).unwrap();
            poller.take(&mut events);
            events.iter().for_each(|&event| server.handle(poller, event));
        }
    });
}

#[test]
fn a_socket_is_reported_when_it_is_registered_and_not_after_its_end() {
    let (left, right) = networks();
    let (near, far) = connection(&left, &right);
    let poller = Poller::new().unwrap();
    let mut events = Vec::new();
    let now = Some(std::time::Duration::from_nanos(1));

    poller.register(&near, 3, Interest::Both).unwrap();
    poller.wait(&mut events, None).unwrap();
    assert_eq!(events, [Event { token: 3, readable: false, writable: true }]);
    let twice = poller.register(&near, 4, Interest::Read).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::AlreadyExists);
    poller.wait(&mut events, now).unwrap();
    assert_eq!(events, []);

    (&far).write_all(b"x").unwrap();
    poller.wait(&mut events, None).unwrap();
    assert_eq!(events, [Event { token: 3, readable: true, writable: false }]);

    // When a socket is deregistered or dropped, its event is discarded, even if it is already
    // queued.
    poller.register(&far, 5, Interest::Write).unwrap();
    poller.deregister(&far).unwrap();
    poller.wait(&mut events, now).unwrap();
    assert_eq!(events, []);
    poller.register(&far, 6, Interest::Write).unwrap();
    drop(far);
    let socket = left.bind_udp((LEFT, 53)).unwrap();
    poller.register(&socket, 8, Interest::Read).unwrap();
    right.bind_udp((RIGHT, 53)).unwrap().send_to(b"query", (LEFT, 53)).unwrap();
    let mut tokens = Vec::new();
    while !tokens.contains(&8) {
        poller.wait(&mut events, None).unwrap();
        tokens.extend(events.iter().map(|event| event.token));
    }
    assert!(!tokens.contains(&6), "{tokens:?}");

    // Shutting the network down must cause an event of each registered socket. The socket with
    // token 3 is checked.
    poller.take(&mut events);
    left.shutdown();
    poller.wait(&mut events, None).unwrap();
    assert!(events.iter().any(|event| event.token == 3), "{events:?}");
}
