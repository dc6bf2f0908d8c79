//! The sweep's end of a control connection.

use super::error::ControlError;
use super::greeting::{self, Answer};
use super::lines::{LineError, Lines, send};
use super::message::{Description, Opened, Ready, Reply, Report, Request, RunSpec};
use crate::peer::Peer;
use crate::socket::{Network, Options, Stream, max_segment};
use linerate_evidence::{EndCounters, FastPath};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long a peer may take for something it can answer at once.
const PATIENCE: Duration = Duration::from_secs(5);
/// Questions for the time, of which the fastest answer counts.
const TIME_QUESTIONS: u32 = 9;
/// What is shown of a stranger's words.
const SHOWN: usize = 200;

/// A sink on another machine, over its control connection.
#[derive(Debug)]
pub struct Remote {
    stream: Stream,
    lines: Lines,
    address: SocketAddr,
    local: SocketAddr,
    description: Description,
    round_trip: Duration,
}

impl Remote {
    /// Connects by `network` to the sink at `peer`, trying each of its addresses in turn. The
    /// control connection sends packets of `mtu` bytes at most, so that [`Remote::segment_payload`]
    /// can tell what fits one.
    ///
    /// # Errors
    /// The peer cannot be reached, is no linerate, or takes nobody more.
    pub fn connect(network: &Network, peer: &Peer, mtu: u16) -> Result<Self, ControlError> {
        let options = |address| {
            let max_segment = Some(max_segment(address, mtu));
            Options { max_segment, no_delay: true, ..Options::default() }
        };
        let stream = network.dial(peer, options, PATIENCE).map_err(ControlError::Unreachable)?;
        let address = stream.peer_addr()?;
        let local = stream.local_addr()?;
        stream.set_write_timeout(Some(PATIENCE))?;
        (&stream).write_all(greeting::CONTROL.as_bytes())?;
        let mut lines = Lines::new(stream.try_clone()?, b"");
        expect_sink(&mut lines)?;
        send(&stream, &Request::Describe {})?;
        match lines.next_message(PATIENCE)? {
            Reply::Description(said) => {
                let (program, kernel) = (printable(&said.program), printable(&said.kernel));
                let description = Description { program, kernel, ..said };
                let round_trip = Duration::MAX;
                let mut remote = Self { stream, lines, address, local, description, round_trip };
                remote.measure_round_trip(TIME_QUESTIONS)?;
                Ok(remote)
            }
            other => Err(out_of_turn(other)),
        }
    }

    /// The address that answered.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Our address on the way to it.
    #[must_use]
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Bytes of data that a full segment on the way there carries, the TCP options taken off.
    ///
    /// # Errors
    /// The kernel's word.
    pub fn segment_payload(&self) -> io::Result<u32> {
        self.stream.segment_payload()
    }

    /// Who the sink says it is.
    #[must_use]
    pub const fn description(&self) -> &Description {
        &self.description
    }

    /// The receive buffer that the sink's kernel would grant for `receive_buffer` bytes, in bytes
    /// as it counts them.
    ///
    /// # Errors
    /// The conversation broke off.
    pub fn grant(&mut self, receive_buffer: u64) -> Result<u64, ControlError> {
        match self.ask(&Request::Grant { receive_buffer })? {
            Reply::Granted { granted_bytes } => Ok(granted_bytes),
            other => Err(out_of_turn(other)),
        }
    }

    /// The shortest round trip of a question and its answer so far: what the sink says is about
    /// half of it old when it is heard.
    #[must_use]
    pub const fn shortest_round_trip(&self) -> Duration {
        self.round_trip
    }

    /// Asks the sink to get ready for a run. The data connection is the caller's business: it must
    /// begin with [`Opened::greeting`].
    ///
    /// # Errors
    /// The sink refuses, or the conversation broke off.
    pub fn open(&mut self, spec: &RunSpec) -> Result<Opened, ControlError> {
        self.measure_round_trip(1)?;
        match self.ask(&Request::Open(*spec))? {
            Reply::Opened(opened) => Ok(opened),
            other => Err(out_of_turn(other)),
        }
    }

    /// Waits until the sink has the data connection.
    ///
    /// # Errors
    /// The sink refuses, or the conversation broke off.
    pub fn await_ready(&mut self) -> Result<Ready, ControlError> {
        match self.lines.next_message(PATIENCE)? {
            Reply::Ready(ready) => Ok(ready),
            other => Err(out_of_turn(other)),
        }
    }

    /// Waits until `deadline` at the latest for the run to be over; `None` if it is not.
    ///
    /// # Errors
    /// The sink refuses, or the conversation broke off.
    pub fn await_done(&mut self, deadline: Instant) -> Result<Option<Report>, ControlError> {
        match self.lines.next_message(deadline.saturating_duration_since(Instant::now())) {
            Ok(Reply::Done(report)) => {
                Ok(Some(Report { counters: named(report.counters), ..report }))
            }
            Ok(other) => Err(out_of_turn(other)),
            Err(LineError::TimedOut) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Asks the sink to end the run now, and waits for what came of it.
    ///
    /// # Errors
    /// The sink refuses, or the conversation broke off.
    pub fn stop(&mut self) -> Result<Report, ControlError> {
        send(&self.stream, &Request::Stop {})?;
        self.await_done(Instant::now() + PATIENCE)?.ok_or_else(|| LineError::TimedOut.into())
    }

    fn measure_round_trip(&mut self, questions: u32) -> Result<(), ControlError> {
        for _ in 0..questions {
            let asked = Instant::now();
            match self.ask(&Request::Time {})? {
                Reply::Time { .. } => self.round_trip = self.round_trip.min(asked.elapsed()),
                other => return Err(out_of_turn(other)),
            }
        }
        Ok(())
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, ControlError> {
        send(&self.stream, request)?;
        Ok(self.lines.next_message(PATIENCE)?)
    }
}

/// Reads what the peer answers to our greeting: only a sink of our version will do.
fn expect_sink(lines: &mut Lines) -> Result<(), ControlError> {
    let line = match lines.next(PATIENCE) {
        Ok(line) => line,
        Err(LineError::TimedOut | LineError::Closed | LineError::TooLong | LineError::Io(_)) => {
            return Err(ControlError::Stranger { said: None });
        }
        Err(error) => return Err(error.into()),
    };
    match greeting::judge_answer(&line) {
        Answer::Sink => Ok(()),
        Answer::Busy(reason) => Err(ControlError::Busy(printable(&reason))),
        Answer::OtherVersion(version) => Err(ControlError::OtherVersion(printable(&version))),
        Answer::Stranger => Err(ControlError::Stranger { said: Some(printable(&line)) }),
    }
}

/// A stranger's words, short and harmless to a terminal.
fn printable(words: &str) -> String {
    words.chars().take(SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The same counters under names that can be printed.
fn named(counters: EndCounters) -> EndCounters {
    let names = |counts: BTreeMap<String, u64>| {
        counts.into_iter().map(|(name, count)| (printable(&name), count)).collect()
    };
    let fast_path =
        counters.fast_path.map(|path| FastPath { misses: names(path.misses), hits: path.hits });
    EndCounters { counts: names(counters.counts), fast_path }
}

/// An answer that does not belong to the question: a refusal, or nonsense.
fn out_of_turn(reply: Reply) -> ControlError {
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

    /// A line that says much.
    const LONG: [u8; 1_001] = {
        let mut line = [b'x'; 1_001];
        line[1_000] = b'\n';
        line
    };

    /// What a sweep makes of a listener that answers its greeting with `words`.
    fn answered(words: &'static [u8]) -> ControlError {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stranger = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; greeting::CONTROL.len()]).unwrap();
            stream.write_all(words).unwrap();
        });
        let error =
            Remote::connect(&Network::Kernel, &Peer { host: "127.0.0.1".into(), port }, 1_500)
                .unwrap_err();
        stranger.join().unwrap();
        error
    }

    #[test]
    fn a_stranger_is_no_linerate() {
        let said = |error| match error {
            ControlError::Stranger { said } => said,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            said(answered(b"SSH-2.0-OpenSSH_9.6\r\n")).as_deref(),
            Some("SSH-2.0-OpenSSH_9.6")
        );
        assert_eq!(said(answered(b"\x1b[31m\n")).as_deref(), Some("\u{fffd}[31m"));
        assert_eq!(said(answered(b"")), None);
        assert_eq!(said(answered(&LONG)).unwrap().len(), SHOWN);
        assert_eq!(said(answered(&[b'x'; 20_000])), None);
    }

    #[test]
    fn another_release_and_a_busy_sink_are_named() {
        assert!(
            matches!(answered(b"LINERATE/2 SINK\n"), ControlError::OtherVersion(version) if version == "2")
        );
        assert!(
            matches!(answered(b"LINERATE/1 BUSY no\n"), ControlError::Busy(reason) if reason == "no")
        );
        let raw = answered(b"LINERATE/1 BUSY \x1b[2J\n");
        assert!(matches!(raw, ControlError::Busy(reason) if reason == "\u{fffd}[2J"));
        let lies = answered(b"LINERATE/1 SINK\n{\"granted\":{\"granted_bytes\":1}}\n");
        assert!(matches!(lies, ControlError::OutOfTurn));
    }

    #[test]
    fn who_is_not_there_cannot_be_reached() {
        let (_socket, address) = crate::socket::deaf_port();
        let port = address.port();
        for host in ["127.0.0.1", "no-such-host.invalid"] {
            let error = Remote::connect(&Network::Kernel, &Peer { host: host.into(), port }, 1_500)
                .unwrap_err();
            assert!(matches!(error, ControlError::Unreachable(_)), "{host}: {error:?}");
        }
    }
}
