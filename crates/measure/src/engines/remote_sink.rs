//! A `linerate sink` on another machine, and transfers to that sink.
//!
//! The clocks of the two machines differ, so the source measures the time of a run. This time
//! starts with the source's first write and ends when the sink's report on the last byte arrives.
//! Half of the shortest round trip is subtracted, as an estimate of the delay of the report. The
//! estimate is wrong if the two directions have different delays, but by at most half a round trip.
//!
//! Two bounds of the duration do not depend on this estimate. They are recorded with the run. The
//! lower bound is the time from the first to the last byte at the sink. The upper bound is the time
//! until the report arrives at the source.

use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::stream_transfer::{granted, write_task};
use linerate_ends::Interrupt;
use linerate_ends::control::{Opened, Remote, Report, RunSpec, SinkTcp};
use linerate_ends::socket::{Network, Options, Stream, WriteResult, counters};
use linerate_ends::{Ended, Peer};
use linerate_evidence::{Counters, RunOutcome};
use std::io::Write;
use std::time::{Duration, Instant};

/// Timeout of the handshake of a data connection.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Additional time for the sink's report to arrive. It starts one round trip after the end of the
/// run's maximum duration.
const GRACE: Duration = Duration::from_millis(500);
/// Maximum time of a single wait, after which the thread checks for an interrupt.
const SLICE: Duration = Duration::from_millis(100);

/// A sink on another machine, and the network through which it is reached.
#[derive(Debug)]
pub(crate) struct RemoteSink {
    /// The control connection to the sink.
    pub(crate) remote: Remote,
    /// Name and port of the sink, as the user gave them.
    pub(crate) peer: Peer,
    network: Network,
}

impl RemoteSink {
    /// Connects to the sink at `peer` through `network`. Packets of the control connection have at
    /// most `mtu` bytes.
    pub(crate) fn connect(network: Network, peer: &Peer, mtu: u16) -> Result<Self, BenchError> {
        let remote = Remote::connect(&network, peer, mtu)
            .map_err(|error| BenchError::of_control(error, peer))?;
        Ok(Self { remote, peer: peer.clone(), network })
    }

    /// Returns a description of the sink's program, kernel and TCP, for the facts of a sweep.
    pub(crate) fn describe(&self) -> String {
        let there = self.remote.description();
        let tcp = match there.tcp {
            SinkTcp::Kernel => "",
            SinkTcp::Linerate => ", by linerate's TCP",
        };
        format!("{} on {}{tcp}", there.program, there.kernel)
    }

    /// Transfers the requested bytes over a new data connection, whose socket has `options`.
    pub(crate) fn run(
        &mut self,
        options: &Options,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<RunOutcome, BenchError> {
        let Self { remote, peer, network } = self;
        let opened = remote
            .open(&spec(options, request))
            .map_err(|error| BenchError::of_control(error, peer))?;
        let stream = open_data(network, remote, &opened, options)?;
        let ready = remote.await_ready().map_err(|error| BenchError::of_control(error, peer))?;
        let max_time = Duration::from(request.max_time);
        let late = |began, now: Instant| now.saturating_duration_since(began) >= max_time;
        let given = write_task(request)
            .run(&stream, |began, now| interrupt.is_raised() || late(began, now));
        let (report, received) = await_report(remote, peer, given.began + max_time, interrupt)?;
        check_end(&report, &given)?;
        let report = report
            .checked(given.bytes, request.bytes)
            .map_err(|error| BenchError::of_control(error, peer))?;
        let timing = Timing::of(given.began, received, &report, remote.shortest_round_trip());
        let mut counters =
            Counters { sender: counters(&stream, &given.peaks), receiver: report.counters.clone() };
        timing.note(&mut counters);
        Ok(RunOutcome {
            bytes: report.bytes,
            time: timing.best().into(),
            complete: report.ended == Ended::Complete,
            verified: request.verify.then_some(report.wrong_at.is_none()),
            send_granted: granted(stream.send_buffer())?,
            receive_granted: ready.granted_bytes,
            counters,
        })
    }
}

/// Returns the parameters of the run that the source requests from the sink.
fn spec(options: &Options, request: &RunRequest) -> RunSpec {
    RunSpec {
        receive_buffer: Some(request.receive_buffer.bytes),
        bytes: request.bytes,
        read_size: request.read_size as u64,
        verify: request.verify.then_some(request.seed),
        max_milliseconds: request.max_time.as_millis().max(1),
        max_segment: options.max_segment,
        observe_after: None,
        discard: false,
    }
}

/// Opens the data connection, and sends the greeting that identifies its run.
fn open_data(
    network: &Network,
    remote: &Remote,
    opened: &Opened,
    options: &Options,
) -> Result<Stream, BenchError> {
    let stream = network
        .connect(remote.address(), options, TIMEOUT)
        .map_err(|error| BenchError::io("opening the data connection", error))?;
    (&stream)
        .write_all(opened.greeting().as_bytes())
        .map_err(|error| BenchError::io("greeting on the data connection", error))?;
    Ok(stream)
}

/// Waits for the sink's report, and returns it with the time of its arrival. `time_up` is the end
/// of the run's maximum duration. If the report is late, the sink is asked to stop.
fn await_report(
    remote: &mut Remote,
    peer: &Peer,
    time_up: Instant,
    interrupt: &Interrupt,
) -> Result<(Report, Instant), BenchError> {
    let latest = latest_report(time_up, remote.shortest_round_trip());
    loop {
        let slice = latest.min(Instant::now() + SLICE);
        if let Some(report) =
            remote.await_done(slice).map_err(|error| BenchError::of_control(error, peer))?
        {
            return Ok((report, Instant::now()));
        }
        if interrupt.is_raised() {
            return Err(BenchError::Interrupted);
        }
        if Instant::now() >= latest {
            let report = remote.stop().map_err(|error| BenchError::of_control(error, peer))?;
            return Ok((report, Instant::now()));
        }
    }
}

/// Returns the time at which the source asks the sink to end the run. Usually the sink has ended
/// the run before, by its own clock. But that clock starts with the first byte, so without any byte
/// only this request ends the run.
fn latest_report(time_up: Instant, round_trip: Duration) -> Instant {
    time_up + round_trip + GRACE
}

/// Returns an error unless the run ended for one of three reasons. All bytes had been read, the
/// maximum duration had passed, or the source requested the end.
fn check_end(report: &Report, given: &WriteResult) -> Result<(), BenchError> {
    let what = match report.ended {
        Ended::Complete | Ended::TimeUp | Ended::Stopped => return Ok(()),
        Ended::EndOfStream => "the sink received the end of the stream",
        Ended::Broken => "it failed at the sink",
    };
    let what = given.error.as_ref().map_or_else(|| what.to_owned(), ToString::to_string);
    Err(BenchError::ConnectionLost { bytes: report.bytes, what })
}

/// The duration of a run between two machines, with its bounds.
#[derive(Clone, Copy, Debug)]
struct Timing {
    /// Lower bound of the duration: the time from the first to the last byte, by the sink's clock.
    at_least: Duration,
    /// Upper bound of the duration: the time from the first write to the arrival of the report, by
    /// the source's clock.
    at_most: Duration,
    /// Shortest round-trip time of the control connection.
    round_trip: Duration,
}

impl Timing {
    fn of(began: Instant, received: Instant, report: &Report, round_trip: Duration) -> Self {
        let at_most = received.saturating_duration_since(began);
        let span = Duration::from_nanos(report.span_nanos);
        Self { at_least: span.min(at_most), at_most, round_trip }
    }

    /// Returns the estimated duration, which is never less than the lower bound.
    fn best(self) -> Duration {
        self.at_most.saturating_sub(self.round_trip / 2).max(self.at_least)
    }

    /// Adds the bounds and the round-trip time to the counters, in nanoseconds.
    fn note(self, counters: &mut Counters) {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        counters.sender.set("time_at_most_nanos", nanos(self.at_most));
        counters.sender.set("control_round_trip_nanos", nanos(self.round_trip));
        counters.receiver.set("time_at_least_nanos", nanos(self.at_least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_evidence::EndCounters;

    fn timing(source_ms: u64, sink_ms: u64, round_trip_ms: u64) -> Timing {
        let began = Instant::now();
        let report = Report {
            ended: Ended::Complete,
            bytes: 1,
            span_nanos: sink_ms * 1_000_000,
            wrong_at: None,
            counters: EndCounters::default(),
            evidence: None,
        };
        let received = began + Duration::from_millis(source_ms);
        Timing::of(began, received, &report, Duration::from_millis(round_trip_ms))
    }

    #[test]
    fn the_delay_of_the_report_is_not_part_of_the_run() {
        assert_eq!(timing(110, 95, 10).best(), Duration::from_millis(105));
    }

    #[test]
    fn a_run_without_a_byte_ends_soon_after_its_maximum_time() {
        let (time_up, round_trip) = (Instant::now(), Duration::from_millis(100));
        assert!(latest_report(time_up, round_trip) <= time_up + Duration::from_secs(1));
    }

    #[test]
    fn the_estimate_is_between_the_bounds() {
        assert_eq!(timing(110, 108, 10).best(), Duration::from_millis(108));
        assert_eq!(timing(3, 0, 10).best(), Duration::ZERO);
        assert_eq!(timing(100, 120, 10).best(), Duration::from_millis(100), "an impossible report");
    }
}
