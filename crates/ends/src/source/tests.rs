//! Tests of sources that connect and of sources that listen. The other end is a sink, or a peer
//! without linerate's protocol.

use super::*;
use crate::control::{Report, fake_sink};
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::peer::Peer;
use crate::serve::ListenAt;
use crate::sink::{self, Limits, Sink};
use crate::socket::Network;
use crate::workload::chargen;
use linerate_evidence::EndCounters;
use linerate_units::Duration;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::mpsc;
use std::thread;

fn supply(bytes: Option<u64>) -> Supply {
    Supply {
        bytes: bytes.and_then(NonZeroU64::new),
        max_time: None,
        write_size: NonZeroU32::new(5_000).unwrap(),
        send_buffer: None,
        congestion: None,
    }
}

fn peer(address: SocketAddr) -> Peer {
    Peer { host: address.ip().to_string(), port: address.port() }
}

fn any_port() -> ListenAt {
    ListenAt::Address("127.0.0.1:0".parse().unwrap())
}

/// Starts a listening source, connects to it, and calls `guest` with the connection. Returns the
/// source's event about this connection.
fn against_listening_source(supply: Supply, guest: impl FnOnce(TcpStream)) -> Event {
    let listening_source = ListeningSource::bind(&Network::Kernel, any_port(), supply).unwrap();
    let address = listening_source.local_addr().unwrap();
    let interrupt = Interrupt::default();
    let (sender, events) = mpsc::channel();
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            listening_source.serve(&interrupt, &|event| sender.send(*event).unwrap_or(()))
        });
        guest(TcpStream::connect(address).unwrap());
        let event = events.recv().unwrap();
        interrupt.raise();
        serving.join().unwrap().unwrap();
        event
    })
}

fn characters(count: usize) -> Vec<u8> {
    let mut expected = vec![0; count];
    chargen::fill(0, &mut expected);
    expected
}

#[test]
fn a_plain_peer_gets_exactly_the_characters() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let delivered =
        send(&Network::Kernel, &peer(address), &supply(Some(12_345)), &Interrupt::default())
            .unwrap();
    assert_eq!((delivered.bytes, delivered.confirmed, delivered.verified), (12_345, true, None));
    assert_eq!(reader.join().unwrap(), characters(12_345));
}

#[test]
fn a_linerate_sink_compares_the_data() {
    let sink = Sink::bind(&Network::Kernel, any_port(), Limits::default()).unwrap();
    let address = sink.local_addr().unwrap();
    let interrupt = Interrupt::default();
    let tell = |_: &sink::Event| ();
    thread::scope(|scope| {
        let serving = scope.spawn(|| sink.serve(&interrupt, &tell));
        let delivered = send_verified(
            &Network::Kernel,
            &peer(address),
            &supply(Some(54_321)),
            3,
            &Interrupt::default(),
        )
        .unwrap();
        assert_eq!(
            (delivered.bytes, delivered.confirmed, delivered.verified),
            (54_321, true, Some(true))
        );
        let stopped = Interrupt::default();
        stopped.raise();
        let delivered =
            send_verified(&Network::Kernel, &peer(address), &supply(None), 3, &stopped).unwrap();
        assert_eq!(delivered.verified, Some(true), "cut short, but intact as far as it went");
        interrupt.raise();
        assert_eq!(serving.join().unwrap().unwrap().sessions, 2);
    });
}

#[test]
fn an_impossible_report_of_a_sink_is_refused() {
    for (ended, bytes) in
        [(Ended::Complete, 999), (Ended::EndOfStream, 1_001), (Ended::TimeUp, u64::MAX)]
    {
        let counters = EndCounters::default();
        let report =
            Report { ended, bytes, span_nanos: 1, wrong_at: None, counters, evidence: None };
        let (peer, sink) = fake_sink(report);
        let never = Interrupt::default();
        let error =
            send_verified(&Network::Kernel, &peer, &supply(Some(1_000)), 3, &never).unwrap_err();
        assert!(
            error.to_string().contains(&format!("it has read {bytes} bytes, which is impossible")),
            "{error}"
        );
        sink.join().unwrap();
    }
}

#[test]
fn a_plain_peer_cannot_compare() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let other = thread::spawn(move || drop(listener.accept().unwrap()));
    let error =
        send_verified(&Network::Kernel, &peer(address), &supply(Some(1)), 3, &Interrupt::default())
            .unwrap_err();
    assert!(matches!(error, SourceError::NoVerifier { .. }), "{error}");
    other.join().unwrap();
}

#[test]
fn a_busy_sink_is_reported_without_the_advice_to_start_it() {
    let no_sweeps = Limits { sessions: 0, ..Limits::default() };
    let sink = Sink::bind(&Network::Kernel, any_port(), no_sweeps).unwrap();
    let peer = peer(sink.local_addr().unwrap());
    let interrupt = Interrupt::default();
    let error = thread::scope(|scope| {
        let serving = scope.spawn(|| sink.serve(&interrupt, &|_: &sink::Event| ()));
        let never = Interrupt::default();
        let result = send_verified(&Network::Kernel, &peer, &supply(Some(1)), 3, &never);
        interrupt.raise();
        serving.join().unwrap().unwrap();
        result.unwrap_err()
    });
    assert!(matches!(error, SourceError::SinkFailed { .. }), "{error}");
    assert!(!error.to_string().contains("start"), "{error}");
}

#[test]
fn a_listening_source_sends_the_requested_amount() {
    let mut bytes = Vec::new();
    let event = against_listening_source(supply(Some(100_001)), |mut guest| {
        guest.write_all(b"data that is ignored").unwrap();
        guest.shutdown(Shutdown::Write).unwrap();
        guest.read_to_end(&mut bytes).unwrap();
    });
    assert_eq!(bytes, characters(100_001));
    assert!(matches!(event, Event::Served(Served { bytes: 100_001, .. })), "{event:?}");
}

#[test]
fn a_listening_source_stops_after_the_maximum_time() {
    const ENOUGH: u64 = 4 << 30;
    let mut poured = 0;
    let hurried = Supply { max_time: Some(Duration::from_millis(1)), ..supply(None) };
    let event = against_listening_source(hurried, |guest| {
        poured = std::io::copy(&mut guest.take(ENOUGH), &mut std::io::sink()).unwrap();
    });
    assert!(poured < ENOUGH, "it does not stop");
    assert!(matches!(event, Event::Served(Served { bytes, .. }) if bytes == poured), "{event:?}");
}

#[test]
fn a_peer_can_close_the_connection_early() {
    let event = against_listening_source(supply(None), |mut guest| {
        let mut first = vec![0; 30_000];
        guest.read_exact(&mut first).unwrap();
        assert_eq!(first, characters(30_000));
    });
    assert!(matches!(event, Event::Served(Served { bytes: 30_000.., .. })), "{event:?}");
}

#[test]
fn a_buffer_above_the_limit_is_refused() {
    let greedy = Supply { send_buffer: NonZeroU64::new(1 << 40), ..supply(Some(1)) };
    let error = ListeningSource::bind(&Network::Kernel, any_port(), greedy).unwrap_err();
    assert!(matches!(error, SourceError::BufferTooLarge { requested, .. } if requested == 1 << 40));
    let modest = Supply { send_buffer: NonZeroU64::new(10_000), ..supply(Some(1)) };
    ListeningSource::bind(&Network::Kernel, any_port(), modest).unwrap();
}

/// The system refuses an unknown congestion control. An error with such a name therefore shows that
/// the source sets the congestion control of its socket.
#[test]
fn every_socket_of_a_source_gets_its_congestion_control() {
    let unknown = Supply { congestion: Some("no-such".to_owned()), ..supply(Some(1)) };
    let refused = ListeningSource::bind(&Network::Kernel, any_port(), unknown.clone()).unwrap_err();
    assert!(matches!(refused, SourceError::Listen(_)), "{refused}");
    let sink = Sink::bind(&Network::Kernel, any_port(), Limits::default()).unwrap();
    let peer = peer(sink.local_addr().unwrap());
    let refused = send(&Network::Kernel, &peer, &unknown, &Interrupt::default()).unwrap_err();
    assert!(matches!(refused, SourceError::Unreachable { .. }), "{refused}");
    let reno = Supply { congestion: Some("reno".to_owned()), ..supply(Some(1)) };
    assert!(ListeningSource::bind(&Network::Kernel, any_port(), reno).is_ok());
}
