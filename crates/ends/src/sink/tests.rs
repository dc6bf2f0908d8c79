//! Tests of a sink with sweeps, with peers without a greeting, and with hostile peers.

use super::*;
use crate::control::{ControlError, Remote, Request, RunSpec};
use crate::ended::Ended;
use crate::peer::Peer;
use crate::workload::Pattern;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;

/// A sink that serves connections in its own thread.
struct Running {
    address: SocketAddr,
    interrupt: Interrupt,
    events: Receiver<Event>,
    thread: JoinHandle<Summary>,
}

impl Running {
    fn start(limits: Limits) -> Self {
        let sink = Sink::bind(&Network::Kernel, "127.0.0.1:0".parse().unwrap(), limits).unwrap();
        let address = sink.local_addr().unwrap();
        let interrupt = Interrupt::default();
        let (sender, events) = mpsc::channel();
        let stop = interrupt.clone();
        let tell = move |event: &Event| sender.send(event.clone()).unwrap_or(());
        let thread = thread::spawn(move || sink.serve(&stop, &tell).unwrap());
        Self { address, interrupt, events, thread }
    }

    fn dial(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    fn sweep(&self) -> Result<Remote, ControlError> {
        let peer = Peer { host: self.address.ip().to_string(), port: self.address.port() };
        Remote::connect(&Network::Kernel, &peer, 1_500)
    }

    fn served(&self) -> Served {
        match self.events.recv().unwrap() {
            Event::Served(served) => served,
            event @ Event::Rejected { .. } => panic!("{event:?}"),
        }
    }

    fn end(self) -> Summary {
        self.interrupt.raise();
        self.thread.join().unwrap()
    }
}

/// Returns the parameters of a run of `bytes` bytes, whose data is compared with the pattern of
/// seed 5.
fn spec(bytes: u64) -> RunSpec {
    RunSpec {
        receive_buffer: Some(20_000),
        bytes,
        read_size: 4_096,
        verify: Some(5),
        max_milliseconds: 60_000,
        max_segment: Some(1_460),
        observe_after: None,
        discard: false,
    }
}

/// Requests a run on the control connection `sweep`, and opens the data connection of the run.
fn open(sink: &Running, sweep: &mut Remote, spec: &RunSpec) -> TcpStream {
    let opened = sweep.open(spec).unwrap();
    let mut data = sink.dial();
    data.write_all(opened.greeting().as_bytes()).unwrap();
    let ready = sweep.await_ready().unwrap();
    assert_eq!(ready.granted_bytes, opened.granted_bytes);
    data
}

fn pattern(bytes: usize) -> Vec<u8> {
    let mut buffer = vec![0; bytes];
    Pattern::new(5).fill(0, &mut buffer);
    buffer
}

fn in_a_minute() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

#[test]
fn data_of_a_plain_peer_is_counted_and_discarded() {
    let sink = Running::start(Limits::default());
    for text in ["", "L", "LINERATE", "GET / HTTP/1.1\r\n\r\n", "LINERATES"] {
        let mut peer = sink.dial();
        peer.write_all(text.as_bytes()).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        let served = sink.served();
        assert_eq!((served.service, served.bytes), (Service::Plain, text.len() as u64), "{text}");
        assert_eq!(peer.read(&mut [0; 16]).unwrap(), 0, "a discard service sends nothing");
    }
    let summary = sink.end();
    assert_eq!((summary.connections, summary.bytes), (5, 36));
}

#[test]
fn a_sweep_gets_the_requested_buffer_and_a_report() {
    let sink = Running::start(Limits::default());
    let mut sweep = sink.sweep().unwrap();
    assert!(sweep.description().program.starts_with("linerate "));
    assert_eq!(sweep.grant(30_000).unwrap(), 60_000);
    assert_ne!(sweep.shortest_round_trip(), Duration::MAX, "the round trip was measured");
    for _ in 0..2 {
        let mut data = open(&sink, &mut sweep, &spec(100_000));
        data.write_all(&pattern(100_000)).unwrap();
        let report = sweep.await_done(in_a_minute()).unwrap().unwrap();
        assert_eq!((report.ended, report.bytes, report.wrong_at), (Ended::Complete, 100_000, None));
        assert!(report.counters.get("bytes_received").unwrap() >= 100_000);
        let ended =
            Service::Run { receive_granted: 40_000, ended: Ended::Complete, verified: Some(true) };
        assert_eq!(sink.served().service, ended);
    }
    drop(sweep);
    let Service::Control { runs: 2, totals } = sink.served().service else { panic!("two runs") };
    assert_eq!((totals.ended, totals.bytes, totals.intact), (2, 200_000, 2));
    assert_eq!((totals.incomplete, totals.wrong), (0, 0));
    let summary = sink.end();
    assert_eq!((summary.connections, summary.sessions, summary.bytes), (2, 1, 200_000));
}

#[test]
fn a_wrong_byte_is_found() {
    let sink = Running::start(Limits::default());
    let mut sweep = sink.sweep().unwrap();
    let mut data = open(&sink, &mut sweep, &spec(9_000));
    let mut bytes = pattern(9_000);
    bytes[8_000] ^= 0x80;
    data.write_all(&bytes).unwrap();
    let report = sweep.await_done(in_a_minute()).unwrap().unwrap();
    assert_eq!((report.bytes, report.wrong_at), (9_000, Some(8_000)));
}

/// Opens a control connection and requests `opens` runs on it, one after the other. Opens no data
/// connection, so the sink must cancel each run before it accepts the next one. Returns the sink's
/// replies.
fn replies_without_data_connection(limits: Limits, opens: usize) -> Vec<String> {
    let sink = Running::start(limits);
    let mut control = sink.dial();
    control.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut lines = BufReader::new(control.try_clone().unwrap()).lines().map(Result::unwrap);
    control.write_all(greeting::CONTROL.as_bytes()).unwrap();
    let mut replies = vec![lines.next().unwrap()];
    for open in 1..=opens {
        writeln!(control, "{}", serde_json::to_string(&Request::Open(spec(1_000))).unwrap())
            .unwrap();
        replies.push(lines.next().unwrap());
        if open < opens {
            replies.push(lines.next().unwrap());
        }
    }
    control.shutdown(Shutdown::Write).unwrap();
    replies.extend(lines);
    replies
}

#[test]
fn a_run_without_a_data_connection_is_cancelled_and_the_next_one_starts() {
    let lines = replies_without_data_connection(
        Limits { arrival: Duration::from_millis(1), ..Limits::default() },
        3,
    );
    assert!([1, 3, 5].iter().all(|&place| lines[place].starts_with("{\"opened\":")), "{lines:?}");
    assert!([2, 4].iter().all(|&place| lines[place].contains("did not come in time")), "{lines:?}");
}

/// The sweep closes its sending direction while a run waits for its data connection. If the sink
/// did not remove the run, the control connection would stay open, and the test would time out
/// while it reads the replies.
#[test]
fn a_run_is_removed_when_its_sweep_disconnects() {
    let lines = replies_without_data_connection(Limits::default(), 1);
    assert!(lines.len() == 2 && lines[1].starts_with("{\"opened\":"), "{lines:?}");
}

#[test]
fn a_sweep_has_one_run_at_a_time() {
    let sink = Running::start(Limits::default());
    let mut sweep = sink.sweep().unwrap();
    let mut data = open(&sink, &mut sweep, &spec(1_000));
    let error = sweep.open(&spec(1_000)).unwrap_err();
    assert!(
        matches!(&error, ControlError::Refused(why) if why == "the previous run has not ended"),
        "{error}"
    );
    data.write_all(&pattern(1_000)).unwrap();
    assert_eq!(sweep.await_done(in_a_minute()).unwrap().unwrap().ended, Ended::Complete);
    open(&sink, &mut sweep, &spec(1_000));
}

#[test]
fn a_stopped_run_reports_the_data_received() {
    let sink = Running::start(Limits::default());
    let mut sweep = sink.sweep().unwrap();
    let mut data = open(&sink, &mut sweep, &spec(100_000));
    data.write_all(&pattern(1_000)).unwrap();
    assert!(sweep.await_done(Instant::now()).unwrap().is_none());
    let report = sweep.stop().unwrap();
    assert_eq!(report.ended, Ended::Stopped);
    assert!(report.bytes <= 1_000);
    // The request to stop applies only to the run that was open then. The next run must therefore
    // end for another reason: its data connection is closed.
    drop(open(&sink, &mut sweep, &spec(100_000)));
    let report = sweep.await_done(in_a_minute()).unwrap().unwrap();
    assert_eq!((report.ended, report.bytes), (Ended::EndOfStream, 0));
}

#[test]
fn requests_beyond_the_limits_are_refused_with_the_reason() {
    let sink = Running::start(Limits::default());
    let mut sweep = sink.sweep().unwrap();
    let mut refused = |spec: RunSpec| match sweep.open(&spec) {
        Err(ControlError::Refused(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert!(refused(RunSpec { bytes: 0, ..spec(1) }).contains("zero bytes"));
    assert!(refused(RunSpec { read_size: u64::MAX, ..spec(1) }).contains("read size"));
    assert!(refused(RunSpec { max_milliseconds: 0, ..spec(1) }).contains("milliseconds"));
    assert!(refused(RunSpec { max_segment: Some(1), ..spec(1) }).contains("options"));
    sweep.open(&spec(1)).unwrap();
    assert!(matches!(sweep.open(&spec(1)), Err(ControlError::Refused(_))), "one run at a time");
}

#[test]
fn a_sweep_that_disconnects_unlocks_the_receive_buffer() {
    let sink = Running::start(Limits::default());
    let mut gone = sink.sweep().unwrap();
    let opened = gone.open(&spec(1)).unwrap();
    drop(gone);
    assert!(matches!(sink.served().service, Service::Control { runs: 1, .. }));
    let mut sweep = sink.sweep().unwrap();
    drop(open(&sink, &mut sweep, &spec(1)));
    assert_eq!(sweep.await_done(in_a_minute()).unwrap().unwrap().bytes, 0);
    // The sweep `gone` opened a run and disconnected, so the token of that run is no longer valid.
    // A data connection with this token must be rejected.
    assert!(matches!(sink.served().service, Service::Run { .. }));
    let mut late = sink.dial();
    late.write_all(opened.greeting().as_bytes()).unwrap();
    assert!(matches!(sink.events.recv().unwrap(), Event::Rejected { .. }));
}

#[test]
fn connections_beyond_the_limit_are_rejected_and_counted() {
    let sink = Running::start(Limits { connections: 1, ..Limits::default() });
    let first = sink.dial();
    let mut said = String::new();
    sink.dial().read_to_string(&mut said).unwrap();
    assert_eq!(said, "LINERATE/1 BUSY this sink serves at most 1 connections\n");
    assert!(matches!(sink.events.recv().unwrap(), Event::Rejected { .. }));
    drop(first);
    assert_eq!(sink.end().rejected, 1);
}

#[test]
fn a_sweep_beyond_the_limit_is_told_that_the_sink_is_busy() {
    let sink = Running::start(Limits { sessions: 1, ..Limits::default() });
    let first = sink.sweep().unwrap();
    let busy = sink.sweep().unwrap_err();
    assert!(matches!(&busy, ControlError::Busy(reason) if reason.contains("1 sweeps")), "{busy:?}");
    assert!(matches!(sink.events.recv().unwrap(), Event::Rejected { .. }));
    drop(first);
    assert!(matches!(sink.served().service, Service::Control { runs: 0, .. }));
    assert!(sink.sweep().is_ok());
}

#[test]
fn invalid_lines_end_a_control_connection_and_nothing_else() {
    let sink = Running::start(Limits::default());
    let long = vec![b'x'; 100_000];
    let nonsense: [&[u8]; 5] = [
        b"{}\n",
        b"\xff\xfe\n",
        b"{\"open\":{\"bytes\":-1}}\n",
        &long,
        b"{\"stop\":{}}\n{\"stop\":{}}\n",
    ];
    for words in nonsense {
        let mut peer = sink.dial();
        peer.write_all(greeting::CONTROL.as_bytes()).unwrap();
        // The words are invalid, so the sink may close the connection before it has received all of
        // them. The write then fails, which is allowed.
        let _ = peer.write_all(words);
        let _ = peer.shutdown(Shutdown::Write);
        assert!(matches!(sink.served().service, Service::Control { runs: 0, .. }));
    }
    let mut foreign = sink.dial();
    foreign.write_all(b"LINERATE/7 CONTROL\n").unwrap();
    assert!(matches!(sink.events.recv().unwrap(), Event::Rejected { .. }));
    assert!(sink.sweep().is_ok());
}

#[test]
fn the_end_does_not_wait_for_silent_peers() {
    let sink = Running::start(Limits::default());
    let silent = sink.dial();
    let mut begun = sink.dial();
    begun.write_all(b"LINERATE/1 CON").unwrap();
    let mut sweep = sink.sweep().unwrap();
    let data = open(&sink, &mut sweep, &spec(1_000));
    sink.end();
    drop((silent, begun, data));
}

#[test]
fn the_listening_socket_of_a_sink_gets_its_options() {
    let unknown = Options { congestion: Some("no-such".to_owned()), ..Options::default() };
    let anywhere = "127.0.0.1:0".parse().unwrap();
    assert!(Sink::bind_with(&Network::Kernel, anywhere, &unknown, Limits::default()).is_err());
    let reno = Options { congestion: Some("reno".to_owned()), ..unknown };
    assert!(Sink::bind_with(&Network::Kernel, anywhere, &reno, Limits::default()).is_ok());
}
