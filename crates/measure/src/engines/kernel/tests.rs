//! Tests of transfers with the kernel's sockets, over loopback and to a sink in this process.

use super::*;
use crate::bench::BufferRequest;
use crate::plan::{BenchKind, Draft};
use linerate_ends::control::{Report, fake_sink};
use linerate_ends::serve::ListenAt;
use linerate_ends::sink::{Event, Limits, Service, Sink, Summary};
use linerate_ends::socket::CongestionError;
use linerate_ends::{Ended, Peer};
use linerate_evidence::{EndCounters, FastPath, names};
use linerate_units::Duration;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

fn plan(change: impl FnOnce(&mut Draft)) -> Plan {
    let mut draft = Draft::of_1988(BenchKind::Kernel);
    draft.verify = true;
    change(&mut draft);
    Plan::new(draft).unwrap()
}

fn request(send_packets: u32, receive_packets: u32, bytes: u64) -> RunRequest {
    let buffer =
        |packets: u32| BufferRequest { packets: Some(packets), bytes: u64::from(packets) * 1_448 };
    RunRequest {
        send_buffer: buffer(send_packets),
        receive_buffer: buffer(receive_packets),
        bytes,
        max_time: Duration::from_secs(60),
        write_size: 64 << 10,
        read_size: 64 << 10,
        verify: true,
        seed: 7,
        congestion: Some("reno".to_owned()),
    }
}

#[test]
fn data_crosses_the_loopback_in_segments_of_the_planned_size() {
    let mut bench = KernelBench::new(&plan(|_| ())).unwrap();
    assert!(bench.facts().segment_payload <= 1_460);
    for (send, receive) in [(1, 1), (1, 17), (17, 1), (8, 8)] {
        let outcome = bench.run(&request(send, receive, 500_000), &Interrupt::default()).unwrap();
        assert_eq!(
            (outcome.bytes, outcome.complete, outcome.verified),
            (500_000, true, Some(true))
        );
        assert!(outcome.time > Duration::ZERO);
        assert!(outcome.send_granted >= 2 * u64::from(send) * 1_448);
        assert!(outcome.receive_granted >= 2 * u64::from(receive) * 1_448);
        let sent = outcome.counters.sender.get(names::DATA_SEGMENTS_SENT).unwrap();
        assert!(sent > 500_000 / 1_461, "{sent} segments exceed the planned size");
    }
}

#[test]
fn a_run_ends_after_its_maximum_time_with_a_partial_result() {
    let mut bench = KernelBench::new(&plan(|_| ())).unwrap();
    let hurried = RunRequest { max_time: Duration::from_millis(1), ..request(2, 2, u64::MAX) };
    let outcome = bench.run(&hurried, &Interrupt::default()).unwrap();
    assert!(!outcome.complete && outcome.time >= Duration::from_millis(1));
    assert_eq!(outcome.verified, Some(true));
}

#[test]
fn an_interrupted_run_has_no_result() {
    let mut bench = KernelBench::new(&plan(|_| ())).unwrap();
    let interrupt = Interrupt::default();
    interrupt.raise();
    let error = bench.run(&request(2, 2, u64::MAX), &interrupt).unwrap_err();
    assert!(matches!(error, BenchError::Interrupted), "{error}");
}

#[test]
fn the_floor_carries_the_same_bytes_without_tcp() {
    let mut bench = KernelBench::new(&plan(|_| ())).unwrap();
    let floor = bench.floor(&request(17, 17, 1 << 20), &Interrupt::default()).unwrap().unwrap();
    assert_eq!(floor.bytes, 1 << 20);
    assert!(floor.how.contains("two copies"));
}

#[test]
fn requests_that_the_kernel_refuses_fail_before_the_first_run() {
    let refused = |change: fn(&mut Draft)| KernelBench::new(&plan(change)).unwrap_err();
    let error = refused(|draft| draft.congestion = Some("no-such".to_owned()));
    assert!(matches!(error, BenchError::Congestion(CongestionError::Unknown { .. })), "{error}");
    let error = refused(|draft| draft.mtu = 100);
    assert!(matches!(error, BenchError::Mtu { .. }), "{error}");
    let error = refused(|draft| draft.send_buffers = "64GiB".parse().unwrap());
    assert!(matches!(error, BenchError::BufferTooLarge { which: "send", .. }), "{error}");
}

/// Returns the outcome of a run of 100,000 bytes to a fake sink. The fake sink answers every run
/// with a report that has the given values.
fn outcome_of_report(
    ended: Ended,
    bytes: u64,
    wrong_at: Option<u64>,
) -> Result<RunOutcome, BenchError> {
    let mut counters = EndCounters::default();
    counters.set("\x1b[2J", 5);
    counters.fast_path = Some(FastPath { hits: 1, misses: [("\x07".to_owned(), 1)].into() });
    let (evidence, span_nanos) = (None, u64::MAX);
    let report = Report { ended, bytes, span_nanos, wrong_at, counters, evidence };
    let (peer, sink) = fake_sink(report);
    let mut bench = KernelBench::new(&plan(|draft| draft.peer = Some(peer))).unwrap();
    let outcome = bench.run(&request(17, 17, 100_000), &Interrupt::default());
    drop(bench);
    sink.join().unwrap();
    outcome
}

#[test]
fn an_impossible_report_is_an_error() {
    for (ended, bytes) in
        [(Ended::Complete, 99_999), (Ended::Complete, u64::MAX), (Ended::TimeUp, 100_001)]
    {
        let error = outcome_of_report(ended, bytes, None).unwrap_err();
        assert!(matches!(error, BenchError::PeerFailed { .. }), "{error}");
    }
}

#[test]
fn a_run_is_complete_and_verified_if_the_sink_reports_both() {
    for (ended, bytes, wrong_at, expected) in [
        (Ended::Complete, 100_000, None, (true, Some(true))),
        (Ended::Complete, 100_000, Some(99_999), (true, Some(false))),
        (Ended::TimeUp, 5_000, None, (false, Some(true))),
    ] {
        let outcome = outcome_of_report(ended, bytes, wrong_at).unwrap();
        assert_eq!((outcome.bytes, (outcome.complete, outcome.verified)), (bytes, expected));
    }
}

#[test]
fn counters_of_a_sink_have_printable_names() {
    let outcome = outcome_of_report(Ended::Complete, 100_000, None).unwrap();
    assert!(outcome.complete && outcome.time < Duration::from_secs(60), "{:?}", outcome.time);
    let receiver = outcome.counters.receiver;
    assert_eq!(receiver.get("\u{fffd}[2J"), Some(5));
    assert_eq!(receiver.fast_path.unwrap().misses, [("\u{fffd}".to_owned(), 1)].into());
}

/// A sink that the bench uses as if it were on another machine, but that runs in a thread of this
/// process.
struct RemoteSink {
    peer: Peer,
    interrupt: Interrupt,
    events: Receiver<Event>,
    thread: JoinHandle<Summary>,
}

impl RemoteSink {
    fn start() -> Self {
        let sink =
            Sink::bind(&Network::Kernel, ListenAt::Address(loopback::ANYWHERE), Limits::default())
                .unwrap();
        let address = sink.local_addr().unwrap();
        let peer = Peer { host: address.ip().to_string(), port: address.port() };
        let interrupt = Interrupt::default();
        let (sender, events) = mpsc::channel();
        let stop = interrupt.clone();
        let tell = move |event: &Event| sender.send(event.clone()).unwrap_or(());
        let thread = thread::spawn(move || sink.serve(&stop, &tell).unwrap());
        Self { peer, interrupt, events, thread }
    }
}

#[test]
fn data_reaches_a_sink_that_sets_the_planned_buffer() {
    let far = RemoteSink::start();
    let peer = far.peer.clone();
    let mut bench = KernelBench::new(&plan(|draft| draft.peer = Some(peer))).unwrap();
    assert!(bench.facts().settings["sink"].starts_with("linerate "));
    assert_eq!(bench.floor(&request(1, 1, 1), &Interrupt::default()).unwrap(), None);
    for (send, receive) in [(17, 3), (3, 17)] {
        let outcome = bench.run(&request(send, receive, 300_000), &Interrupt::default()).unwrap();
        assert_eq!(
            (outcome.bytes, outcome.complete, outcome.verified),
            (300_000, true, Some(true))
        );
        assert_eq!(outcome.receive_granted, u64::from(receive) * 2 * 1_448);
        let at_most = outcome.counters.sender.get("time_at_most_nanos").unwrap();
        let at_least = outcome.counters.receiver.get("time_at_least_nanos").unwrap();
        assert!((at_least..=at_most).contains(&outcome.time.as_nanos()));
        let service = match far.events.recv().unwrap() {
            Event::Served(served) => served.service,
            event @ Event::Rejected { .. } => panic!("{event:?}"),
        };
        assert!(matches!(service, Service::Run { verified: Some(true), .. }), "{service:?}");
    }
    let hurried = RunRequest { max_time: Duration::from_millis(1), ..request(2, 2, u64::MAX) };
    assert!(!bench.run(&hurried, &Interrupt::default()).unwrap().complete);
    drop(bench);
    far.interrupt.raise();
    assert_eq!(far.thread.join().unwrap().sessions, 1);
}

#[test]
fn a_sink_that_ends_during_a_run_is_reported() {
    let far = RemoteSink::start();
    let peer = far.peer.clone();
    let mut bench = KernelBench::new(&plan(|draft| draft.peer = Some(peer))).unwrap();
    far.interrupt.raise();
    far.thread.join().unwrap();
    let error = bench.run(&request(2, 2, 1_000), &Interrupt::default()).unwrap_err();
    assert!(matches!(error, BenchError::PeerFailed { .. }), "{error}");
}
