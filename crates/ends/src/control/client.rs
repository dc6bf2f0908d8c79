//! The client of a control connection, by which a sweep uses a sink on another machine.

use super::error::ControlError;
use super::greeting::{self, Answer};
use super::lines::{LineError, Lines, send};
use super::message::{Description, Opened, Ready, Reply, Report, Request, RunSpec};
use crate::peer::Peer;
use crate::socket::{Network, Options, Stream, max_segment};
use linerate_evidence::{EndCounters, EndEvidence, FastPath};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Timeout for connecting, and for replies that a sink can send at once.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Number of requests for the sink's time after the connection is opened. Each of them measures a
/// round trip, and the shortest time of all counts.
const TIME_REQUESTS: u32 = 9;
/// Maximum number of characters of a text from the peer. The rest of a longer text is dropped,
/// because the peer is not trusted.
const SHOWN: usize = 200;

/// A sink on another machine, with the control connection to it.
#[derive(Debug)]
pub struct Remote {
    stream: Stream,
    /// The receiver of the sink's replies.
    lines: Lines,
    address: SocketAddr,
    /// The local address of the control connection.
    local: SocketAddr,
    description: Description,
    /// The shortest round-trip time of the control connection so far.
    round_trip: Duration,
}

impl Remote {
    /// Connects through `network` to the sink at `peer`, whose addresses are tried in turn. Packets
    /// of the control connection have at most `mtu` bytes, as in a run. [`Remote::segment_payload`]
    /// can therefore report the size of a full segment in a run.
    ///
    /// # Errors
    /// The peer cannot be reached, is not a linerate sink, or serves its maximum number of sweeps.
    pub fn connect(network: &Network, peer: &Peer, mtu: u16) -> Result<Self, ControlError> {
        let options = |address| {
            let max_segment = Some(max_segment(address, mtu));
            Options { max_segment, no_delay: true, ..Options::default() }
        };
        let stream = network.dial(peer, options, TIMEOUT).map_err(ControlError::Unreachable)?;
        let address = stream.peer_addr()?;
        let local = stream.local_addr()?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        (&stream).write_all(greeting::CONTROL.as_bytes())?;
        let mut lines = Lines::new(stream.try_clone()?, b"");
        expect_sink(&mut lines)?;
        send(&stream, &Request::Describe {})?;
        match lines.next_message(TIMEOUT)? {
            Reply::Description(said) => {
                let (program, kernel) = (printable(&said.program), printable(&said.kernel));
                let description = Description { program, kernel, ..said };
                let round_trip = Duration::MAX;
                let mut remote = Self { stream, lines, address, local, description, round_trip };
                remote.measure_round_trip(TIME_REQUESTS)?;
                Ok(remote)
            }
            other => Err(unexpected(other)),
        }
    }

    /// Returns the address of the sink that answered.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the local address of the control connection.
    #[must_use]
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Returns the number of data bytes in a full segment to the sink, excluding TCP options.
    ///
    /// # Errors
    /// The error of the system.
    pub fn segment_payload(&self) -> io::Result<u32> {
        self.stream.segment_payload()
    }

    /// Returns the sink's description of itself.
    #[must_use]
    pub const fn description(&self) -> &Description {
        &self.description
    }

    /// Returns the receive buffer that the sink would grant for a request of `receive_buffer`
    /// bytes, in bytes as `getsockopt` reports it at the sink.
    ///
    /// # Errors
    /// The control connection failed.
    pub fn grant(&mut self, receive_buffer: u64) -> Result<u64, ControlError> {
        match self.ask(&Request::Grant { receive_buffer })? {
            Reply::Granted { granted_bytes } => Ok(granted_bytes),
            other => Err(unexpected(other)),
        }
    }

    /// Returns the shortest round-trip time of the control connection so far. The sink's report on
    /// a run takes about half of this time to arrive here.
    #[must_use]
    pub const fn shortest_round_trip(&self) -> Duration {
        self.round_trip
    }

    /// Requests a run. The caller then opens the data connection of the run, and must first send
    /// [`Opened::greeting`] on that connection.
    ///
    /// # Errors
    /// The sink refuses, or the control connection failed.
    pub fn open(&mut self, spec: &RunSpec) -> Result<Opened, ControlError> {
        self.measure_round_trip(1)?;
        match self.ask(&Request::Open(*spec))? {
            Reply::Opened(opened) => Ok(opened),
            other => Err(unexpected(other)),
        }
    }

    /// Waits until the sink has accepted the data connection.
    ///
    /// # Errors
    /// The sink refuses, or the control connection failed.
    pub fn await_ready(&mut self) -> Result<Ready, ControlError> {
        match self.lines.next_message(TIMEOUT)? {
            Reply::Ready(ready) => Ok(ready),
            other => Err(unexpected(other)),
        }
    }

    /// Waits for the sink's report on the run. Returns `None` if the report has not arrived by
    /// `deadline`.
    ///
    /// # Errors
    /// The sink refuses, or the control connection failed.
    pub fn await_done(&mut self, deadline: Instant) -> Result<Option<Report>, ControlError> {
        match self.lines.next_message(deadline.saturating_duration_since(Instant::now())) {
            Ok(Reply::Done(report)) => {
                let evidence =
                    report.evidence.map(|evidence| Box::new(printable_evidence(*evidence)));
                Ok(Some(Report { counters: named(report.counters), evidence, ..report }))
            }
            Ok(other) => Err(unexpected(other)),
            Err(LineError::TimedOut) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Stops the run, and waits for the sink's report. Without a data connection there is no
    /// report, so the wait times out.
    ///
    /// # Errors
    /// The sink refuses, or the control connection failed.
    pub fn stop(&mut self) -> Result<Report, ControlError> {
        send(&self.stream, &Request::Stop {})?;
        self.await_done(Instant::now() + TIMEOUT)?.ok_or_else(|| LineError::TimedOut.into())
    }

    /// Requests the sink's time `count` times. If one of the round trips is the shortest so far,
    /// its time replaces the previous shortest time.
    fn measure_round_trip(&mut self, count: u32) -> Result<(), ControlError> {
        for _ in 0..count {
            let asked = Instant::now();
            match self.ask(&Request::Time {})? {
                Reply::Time { .. } => self.round_trip = self.round_trip.min(asked.elapsed()),
                other => return Err(unexpected(other)),
            }
        }
        Ok(())
    }

    /// Sends a request, and returns the reply.
    fn ask(&mut self, request: &Request) -> Result<Reply, ControlError> {
        send(&self.stream, request)?;
        Ok(self.lines.next_message(TIMEOUT)?)
    }
}

/// Reads the reply to the greeting, which must come from a sink of this protocol version.
fn expect_sink(lines: &mut Lines) -> Result<(), ControlError> {
    let line = match lines.next(TIMEOUT) {
        Ok(line) => line,
        Err(LineError::TimedOut | LineError::Closed | LineError::TooLong | LineError::Io(_)) => {
            // The peer has not sent a whole line, but may have sent data without a line end, as in
            // a binary protocol. The error quotes this data.
            let said = lines.unfinished().map(|text| printable(&text));
            return Err(ControlError::NotLinerate { said });
        }
        Err(error) => return Err(error.into()),
    };
    match greeting::parse_answer(&line) {
        Answer::Sink => Ok(()),
        Answer::Busy(reason) => Err(ControlError::Busy(printable(&reason))),
        Answer::OtherVersion(version) => Err(ControlError::OtherVersion(printable(&version))),
        Answer::NotLinerate => Err(ControlError::NotLinerate { said: Some(printable(&line)) }),
    }
}

/// Makes a received text safe to print. The text is cut to `SHOWN` characters. Control characters,
/// which could affect a terminal, are replaced.
fn printable(words: &str) -> String {
    words.chars().take(SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Makes the names of received counters safe to print, with [`printable`].
fn named(counters: EndCounters) -> EndCounters {
    let names = |counts: BTreeMap<String, u64>| {
        counts.into_iter().map(|(name, count)| (printable(&name), count)).collect()
    };
    let fast_path =
        counters.fast_path.map(|path| FastPath { misses: names(path.misses), hits: path.hits });
    EndCounters { counts: names(counters.counts), fast_path }
}

/// Makes the names and settings in received evidence safe to print, with [`printable`].
fn printable_evidence(evidence: EndEvidence) -> EndEvidence {
    let system = evidence.system.into_iter().map(|(name, count)| (printable(&name), count));
    let settings = evidence.settings.into_iter();
    let settings = settings.map(|(name, value)| (printable(&name), printable(&value)));
    EndEvidence { system: system.collect(), settings: settings.collect(), ..evidence }
}

/// Converts a reply of the wrong kind to an error: a refusal, or a violation of the protocol.
fn unexpected(reply: Reply) -> ControlError {
    match reply {
        Reply::Refused { reason } => ControlError::Refused(printable(&reason)),
        _ => ControlError::OutOfTurn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;
    use std::thread;

    /// A line of 1,000 characters, of which an error message must quote only the first [`SHOWN`].
    const LONG: [u8; 1_001] = {
        let mut line = [b'x'; 1_001];
        line[1_000] = b'\n';
        line
    };

    /// Returns the error of [`Remote::connect`] with a peer that replies with `words`.
    fn answered(words: &'static [u8]) -> ControlError {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let other = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; greeting::CONTROL.len()]).unwrap();
            stream.write_all(words).unwrap();
        });
        let error =
            Remote::connect(&Network::Kernel, &Peer { host: "127.0.0.1".into(), port }, 1_500)
                .unwrap_err();
        other.join().unwrap();
        error
    }

    #[test]
    fn other_programs_are_reported_with_the_data_they_sent() {
        let said = |error| match error {
            ControlError::NotLinerate { said } => said,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            said(answered(b"SSH-2.0-OpenSSH_9.6\r\n")).as_deref(),
            Some("SSH-2.0-OpenSSH_9.6")
        );
        assert_eq!(said(answered(b"\x1b[31m\n")).as_deref(), Some("\u{fffd}[31m"));
        assert_eq!(said(answered(b"")), None);
        assert_eq!(said(answered(&LONG)).unwrap().len(), SHOWN);
        let endless = said(answered(&[b'x'; 20_000]));
        assert_eq!(endless.unwrap(), "x".repeat(SHOWN), "a line without an end");
        assert_eq!(said(answered(b"\0\x01mysql")).as_deref(), Some("\u{fffd}\u{fffd}mysql"));
    }

    #[test]
    fn another_version_and_a_busy_sink_are_reported() {
        let other = answered(b"LINERATE/2 SINK\n");
        assert!(matches!(other, ControlError::OtherVersion(version) if version == "2"));
        let busy = answered(b"LINERATE/1 BUSY no\n");
        assert!(matches!(busy, ControlError::Busy(reason) if reason == "no"));
        let raw = answered(b"LINERATE/1 BUSY \x1b[2J\n");
        assert!(matches!(raw, ControlError::Busy(reason) if reason == "\u{fffd}[2J"));
        let lies = answered(b"LINERATE/1 SINK\n{\"granted\":{\"granted_bytes\":1}}\n");
        assert!(matches!(lies, ControlError::OutOfTurn));
    }

    #[test]
    fn an_absent_sink_cannot_be_reached() {
        let (_socket, address) = crate::socket::closed_port();
        let port = address.port();
        for host in ["127.0.0.1", "no-such-host.invalid"] {
            let error = Remote::connect(&Network::Kernel, &Peer { host: host.into(), port }, 1_500)
                .unwrap_err();
            assert!(matches!(error, ControlError::Unreachable(_)), "{host}: {error:?}");
        }
    }
}
