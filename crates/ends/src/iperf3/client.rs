//! A client that runs a test against an iperf3 server.

use super::messages::{Parameters, Results, StreamResults, stream_number};
use super::wire::{Cookie, Iperf3Error, State, expect_state, receive_text, send_state, send_text};
use crate::peer::Peer;
use crate::socket::{Network, Options, Stream};
use std::net::SocketAddr;
use std::time::Duration;

/// Timeout for each reply of the server.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The parameters of an iperf3 test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// Number of streams, each of which is a TCP connection.
    pub streams: usize,
    /// Does the server send the data, instead of the client?
    pub is_reverse: bool,
    /// Size of each `read` or `write` call of the server, in bytes.
    pub write_size: usize,
    /// Maximum duration of the test, which is announced to the server in whole seconds, rounded up.
    pub time: Duration,
}

/// A running test with an iperf3 server, whose streams are open.
#[derive(Debug)]
pub struct Client {
    control: Stream,
    streams: Vec<Stream>,
    is_reverse: bool,
}

impl Client {
    /// Starts a test with the iperf3 server at `peer`. The sockets of the streams get `options`.
    ///
    /// # Errors
    /// The peer cannot be reached, is not iperf3, is busy or refuses the test.
    pub fn start(
        network: &Network,
        peer: &Peer,
        options: &Options,
        test: &Test,
    ) -> Result<Self, Iperf3Error> {
        let plain = |_| Options { no_delay: true, ..Options::default() };
        let control = network.dial(peer, plain, TIMEOUT).map_err(Iperf3Error::Unreachable)?;
        control.set_write_timeout(Some(TIMEOUT))?;
        let cookie = Cookie::random()?;
        // An iperf3 server answers the cookie with the state `ParamExchange`. Another kind of peer
        // sends other bytes, sends nothing, or closes the connection.
        let greeted = cookie
            .send(&control)
            .and_then(|()| expect_state(&control, State::ParamExchange, TIMEOUT));
        greeted.map_err(|error| match error {
            Iperf3Error::Unexpected { .. }
            | Iperf3Error::TimedOut
            | Iperf3Error::Closed
            | Iperf3Error::Io(_) => Iperf3Error::NotIperf3,
            other => other,
        })?;
        send_text(&control, &parameters(test))?;
        expect_state(&control, State::CreateStreams, TIMEOUT)?;
        let address = control.peer_addr()?;
        let mut streams = Vec::new();
        for _ in 0..test.streams {
            let stream =
                network.connect(address, options, TIMEOUT).map_err(Iperf3Error::Unreachable)?;
            cookie.send(&stream)?;
            streams.push(stream);
        }
        expect_state(&control, State::TestStart, TIMEOUT)?;
        expect_state(&control, State::TestRunning, TIMEOUT)?;
        Ok(Self { control, streams, is_reverse: test.is_reverse })
    }

    /// Returns the streams of the test.
    #[must_use]
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Returns the address of the iperf3 server.
    ///
    /// # Errors
    /// The error of the system.
    pub fn address(&self) -> Result<SocketAddr, Iperf3Error> {
        Ok(self.control.peer_addr()?)
    }

    /// Returns the local address of the control connection.
    ///
    /// # Errors
    /// The error of the system.
    pub fn local_address(&self) -> Result<SocketAddr, Iperf3Error> {
        Ok(self.control.local_addr()?)
    }

    /// Ends the test, sends the client's results, and returns the server's results. `bytes` has the
    /// number of bytes of each stream, and `time` is the duration of the test.
    ///
    /// # Errors
    /// The server violates the protocol, or the connection failed.
    pub fn end(self, bytes: &[u64], time: Duration) -> Result<Results, Iperf3Error> {
        send_state(&self.control, State::TestEnd)?;
        // A server that sends the data reads `TestEnd` only after its final write, so this answer
        // to `TestEnd` may come late.
        expect_state(&self.control, State::ExchangeResults, TIMEOUT)?;
        #[allow(clippy::cast_precision_loss, reason = "a number of JSON")]
        let stream = |(index, &bytes): (usize, &u64)| StreamResults {
            id: stream_number(index),
            bytes: bytes as f64,
            retransmits: -1.0,
            end_time: time.as_secs_f64(),
            ..StreamResults::default()
        };
        let ours = Results {
            sender_has_retransmits: if self.is_reverse { -1.0 } else { 0.0 },
            streams: bytes.iter().enumerate().map(stream).collect(),
            ..Results::default()
        };
        send_text(&self.control, &ours)?;
        let theirs = receive_text(&self.control, TIMEOUT)?;
        expect_state(&self.control, State::DisplayResults, TIMEOUT)?;
        send_state(&self.control, State::IperfDone)?;
        Ok(theirs)
    }
}

/// Returns the parameters of `test` as the client sends them to the server.
#[allow(clippy::cast_precision_loss, reason = "numbers of JSON")]
fn parameters(test: &Test) -> Parameters {
    Parameters {
        tcp: true,
        reverse: test.is_reverse,
        time: test.time.as_secs_f64().ceil(),
        parallel: test.streams as f64,
        len: test.write_size as f64,
        client_version: concat!("linerate ", env!("CARGO_PKG_VERSION")).to_owned(),
        ..Parameters::default()
    }
}
