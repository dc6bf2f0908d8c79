//! Tests of the end of a network: all waiting calls and all peers must be informed, and all
//! resources be freed.

use crate::networks::{ByHand, LEFT, RIGHT, cable, config, connection, networks, until_waits};
use linerate_link::Readiness;
use linerate_link::memory::MemoryLink;
use linerate_sockets::{End, Error, Net, State};
use linerate_stack::{Capabilities, Link, LinkError, RxFrame, TxFrame};
use linerate_tcp::Error as TcpError;
use linerate_units::Instant;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// Starts four threads whose calls wait: a read, an accept, a receive of a datagram, and a write.
/// Then ends the network with `end`. Returns the errors of the calls in this order.
fn errors_of_waiting_threads(net: &Net, other: &Net, end: impl FnOnce()) -> Vec<ErrorKind> {
    let (near, far) = connection(net, other);
    let listener = net.bind((LEFT, 0)).unwrap();
    let datagrams = net.bind_udp((LEFT, 0)).unwrap();
    let (stuffed, unread) = connection(net, other);
    let before = net.activity().waits;
    let received = thread::scope(|scope| {
        let threads = [
            scope.spawn(|| (&near).read(&mut [0]).unwrap_err().kind()),
            scope.spawn(|| listener.accept().unwrap_err().kind()),
            scope.spawn(|| datagrams.recv(&mut [0]).unwrap_err().kind()),
            scope.spawn(|| {
                loop {
                    if let Err(error) = (&stuffed).write(&[0; 100_000]) {
                        break error.kind();
                    }
                }
            }),
        ];
        // The network ends after four waits have begun, usually one in each thread. Three threads
        // wait because nothing arrives. The fourth waits because the peer does not read, so the
        // buffers are full.
        until_waits(net, before + 4);
        end();
        threads.map(|thread| thread.join().unwrap()).to_vec()
    });
    drop((far, unread));
    received
}

#[test]
fn shutdown_wakes_all_waiting_threads() {
    let (left, right) = networks();
    let errors = errors_of_waiting_threads(&left, &right, || left.shutdown());
    assert_eq!(errors, [ErrorKind::NetworkDown; 4]);
    assert_eq!(left.end(), Some(End::ShutDown));
    left.shutdown();
    let error = left.bind((LEFT, 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NetworkDown);
    assert_eq!(
        error.to_string(),
        "the application has shut this network down: create a new one to go on"
    );
    assert!(left.connect((RIGHT, 1)).is_err() && left.bind_udp((LEFT, 0)).is_err());
}

#[test]
fn shutdown_resets_connections() {
    let (left, right) = networks();
    let (_near, mut far) = connection(&left, &right);
    let listener = left.bind((LEFT, 0)).unwrap();
    let mut pending = right.connect(listener.local_addr().unwrap()).unwrap();
    left.shutdown();
    assert_eq!(far.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(pending.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_failing_link_wakes_all_waiting_threads() {
    let (left, right) = networks();
    let mut right = Some(right);
    let other = right.clone().unwrap();
    let errors = errors_of_waiting_threads(&left, &other.clone(), || {
        right.take();
        other.shutdown();
    });
    // The reader (0) and the writer (3) use connections to the peer. When the peer shuts down, its
    // resets may arrive before the link fails. So either error is valid for them. The other two
    // threads have no peer, and must see the failing link.
    for kind in [errors[0], errors[3]] {
        assert!(matches!(kind, ErrorKind::NetworkDown | ErrorKind::ConnectionReset), "{kind}");
    }
    assert_eq!(errors[1..3], [ErrorKind::NetworkDown; 2]);
    let error = left.connect((RIGHT, 1)).unwrap_err();
    assert!(error.to_string().starts_with("the machine took the link away"), "{error}");
    assert_eq!(left.end(), Some(End::Link(LinkError::Down)));
}

#[test]
fn dropping_the_last_net_ends_the_network_and_returns_the_link() {
    let (link, other) = cable();
    let (sender, ended) = mpsc::channel();
    let net = Net::builder(link, config(LEFT));
    let net = net.when_ended(move |link: MemoryLink| sender.send(link).unwrap()).start().unwrap();
    let clone = net.clone();
    let listener = clone.bind((LEFT, 0)).unwrap();
    drop(net);
    assert_eq!(clone.end(), None);
    drop(clone);
    // `drop` has waited for the network's thread, which sends its link to the channel before it
    // ends. So `try_recv` finds the link without waiting.
    assert_eq!(ended.try_recv().unwrap().capabilities().mtu, 1_500);
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::NetworkDown);
    drop(other);
}

#[test]
fn finish_waits_until_closed_sockets_have_sent_their_data() {
    const BYTES: usize = 200_000;
    let (left, right) = networks();
    let (mut near, mut far) = connection(&left, &right);
    far.write_all(&[3; BYTES]).unwrap();
    drop(far);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut received = Vec::new();
            near.read_to_end(&mut received).unwrap();
            drop(near);
            received.len()
        });
        right.finish(Duration::from_secs(600)).unwrap();
        assert_eq!(reader.join().unwrap(), BYTES);
    });
    assert_eq!(right.end(), Some(End::ShutDown));
}

#[test]
fn finish_gives_up_after_its_timeout() {
    let (left, right) = networks();
    let (near, mut far) = connection(&left, &right);
    far.write_all(b"the peer does not close").unwrap();
    drop(far);
    let error = right.finish(Duration::from_millis(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(right.end(), Some(End::ShutDown));
    drop(near);
}

#[test]
fn a_panicking_application_thread_closes_its_sockets() {
    let (left, right) = networks();
    let (near, mut far) = connection(&left, &right);
    let panicked = thread::spawn(move || {
        (&near).write_all(b"oh").unwrap();
        panic!("this panic is part of a test");
    });
    assert!(panicked.join().is_err());
    let mut received = String::new();
    far.read_to_string(&mut received).unwrap();
    assert_eq!(received, "oh");
    assert_eq!(left.end(), None);
}

/// A memory link that works until a test sets `shows`. After that, its calls return the error that
/// `fault` creates.
struct Broken {
    link: MemoryLink,
    shows: Arc<AtomicBool>,
    fault: fn() -> LinkError,
}

impl Link for Broken {
    fn receive(
        &mut self,
        budget: usize,
        on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        if self.shows.load(Ordering::Relaxed) {
            Err((self.fault)())
        } else {
            self.link.receive(budget, on_frame)
        }
    }

    fn transmit(
        &mut self,
        budget: usize,
        fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        self.link.transmit(budget, fill)
    }

    fn capabilities(&self) -> Capabilities {
        self.link.capabilities()
    }
}

impl Readiness for Broken {
    fn fd(&self) -> BorrowedFd<'_> {
        self.link.fd()
    }

    fn is_ready(&mut self) -> bool {
        self.link.is_ready()
    }

    fn prepare_to_sleep(&mut self) -> bool {
        self.link.prepare_to_sleep()
    }

    fn awake(&mut self, signalled: bool) {
        self.link.awake(signalled);
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        self.link.wakeup_fd()
    }

    fn wants_room(&self) -> bool {
        self.link.wants_room()
    }

    fn next_deadline(&self) -> Instant {
        self.link.next_deadline()
    }
}

#[test]
fn a_panic_of_the_reactor_wakes_all_waiting_threads() {
    let (link, right) = cable();
    let shows = Arc::new(AtomicBool::new(false));
    let broken = Broken {
        link,
        shows: Arc::clone(&shows),
        fault: || panic!("this panic is part of a test"),
    };
    let left = Net::builder(broken, config(LEFT)).start().unwrap();
    let right = Net::builder(right, config(RIGHT)).start().unwrap();
    let errors = errors_of_waiting_threads(&left, &right, || {
        shows.store(true, Ordering::Relaxed);
        right.shutdown();
    });
    assert_eq!(errors[1..3], [ErrorKind::Other; 2]);
    assert_eq!(left.end(), Some(End::Panicked));
    let error = left.bind((LEFT, 0)).unwrap_err();
    assert!(error.to_string().contains("that is a bug of linerate"), "{error}");
}

#[test]
fn sockets_of_an_ended_network_accept_no_data() {
    let (link, right) = cable();
    let shows = Arc::new(AtomicBool::new(false));
    let broken = Broken { link, shows: Arc::clone(&shows), fault: || LinkError::Down };
    // When the left network ends, it passes its link to the test, which keeps it. Otherwise the
    // link would be dropped, and the link of the right network would fail, too.
    let (sender, kept) = mpsc::channel();
    let gone =
        Net::builder(broken, config(LEFT)).when_ended(move |link| sender.send(link).unwrap());
    let gone = gone.start().unwrap();
    let ended = Net::builder(right, config(RIGHT)).start().unwrap();
    let (near, far) = connection(&gone, &ended);
    let [at_left, at_right] =
        [(&gone, LEFT), (&ended, RIGHT)].map(|(net, address)| net.bind_udp((address, 0)).unwrap());
    at_left.connect(at_right.local_addr().unwrap()).unwrap();
    at_right.connect(at_left.local_addr().unwrap()).unwrap();
    shows.store(true, Ordering::Relaxed);
    // The left link is broken from now on. The reactor of the left network detects this only when
    // it uses the link. So a datagram is sent to it, which makes it receive.
    at_right.send(b"!").unwrap();
    while gone.end().is_none() {
        thread::yield_now();
    }
    ended.shutdown();
    for (mut stream, datagrams, why) in
        [(near, at_left, End::Link(LinkError::Down)), (far, at_right, End::ShutDown)]
    {
        let end =
            |error: std::io::Error| error.get_ref().and_then(|inner| inner.downcast_ref().cloned());
        let why = Some(Error::Ended(why));
        assert_eq!(end(stream.write(b"lost").unwrap_err()), why);
        assert_eq!(end(stream.read(&mut [0]).unwrap_err()), why);
        assert_eq!(end(datagrams.send(b"lost").unwrap_err()), why);
        assert_eq!(end(datagrams.recv(&mut [0]).unwrap_err()), why);
        assert_eq!(stream.state().unwrap(), State::Closed);
        assert_eq!(stream.shutdown(Shutdown::Both).unwrap_err().kind(), ErrorKind::NotConnected);
    }
    drop(kept);
}

#[test]
fn shutdown_resets_connections_that_are_still_closing() {
    let (left, right) = cable();
    let mut left = ByHand::new(left);
    // When the right network ends, it passes its link to the test, which keeps it. Otherwise the
    // link would be dropped, and the resets that are still in it would be lost.
    let (sender, kept) = mpsc::channel();
    let right =
        Net::builder(right, config(RIGHT)).when_ended(move |link| sender.send(link).unwrap());
    let right = right.start().unwrap();
    let (from_closed, closed) = left.accept(&right);
    let (from_lingering, lingering) = left.accept(&right);
    lingering.set_linger(Some(Duration::from_secs(600))).unwrap();
    // Both streams are dropped, `lingering` on a thread that waits. The left host makes no turn, so
    // it acknowledges no FIN. Both connections are therefore still closing when the right network
    // shuts down.
    drop(closed);
    thread::scope(|scope| {
        let before = right.activity().waits;
        let closing = scope.spawn(move || drop(lingering));
        until_waits(&right, before + 1);
        right.shutdown();
        closing.join().unwrap();
    });
    left.turn();
    for near in [from_closed, from_lingering] {
        assert_eq!(left.tcp(near).error(), Some(TcpError::Reset));
    }
    drop(kept);
}
