//! Cookies, states and texts: the elements of an iperf3 control connection.

use crate::socket::{Stream, is_pause};
use linerate_link::random_bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Length of a cookie in bytes: 36 characters and a zero byte.
const COOKIE: usize = 37;
/// The characters of which random cookies consist.
const CHARACTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Maximum length of a JSON text in bytes. It is ample: the results of a test with the maximum of
/// 128 streams have about 30 KB.
const LONGEST: usize = 256 * 1_024;

/// The reason why an iperf3 test failed.
#[derive(Debug, Error)]
pub enum Iperf3Error {
    /// The peer does not accept connections.
    #[error("it cannot be reached ({0})")]
    Unreachable(#[source] io::Error),
    /// The data of the peer does not follow iperf3's protocol.
    #[error("it is not iperf3")]
    NotIperf3,
    /// The server is serving another client.
    #[error("its iperf3 server is busy with another test")]
    Busy,
    /// The server refused the test with this error number.
    #[error("its iperf3 server refused the test with error {0}")]
    Refused(u32),
    /// The peer sent a state that the protocol does not allow at this point.
    #[error("it sent state {got} of iperf3's protocol instead of {wanted}")]
    Unexpected {
        /// The state that was received.
        got: u8,
        /// The state that was expected.
        wanted: u8,
    },
    /// The peer did not send the expected data before the timeout.
    #[error("it did not answer in time")]
    TimedOut,
    /// The peer closed the connection or terminated the test, or this server is ending.
    #[error("it closed the connection")]
    Closed,
    /// The peer announced a text of this many bytes, which exceeds the limit.
    #[error("it announced a text of {0} bytes, of at most {LONGEST}")]
    TooLong(u32),
    /// The peer's text is not the expected JSON message, with the parser's error.
    #[error("its text is not JSON of iperf3's protocol ({0})")]
    NotJson(String),
    /// The client requested this option, which the server does not support.
    #[error("it requested {0}, which is not supported")]
    Unsupported(&'static str),
    /// The connection failed.
    #[error("the connection failed ({0})")]
    Io(#[from] io::Error),
}

/// A random text with which a client begins all its connections, so that the server knows to which
/// test a connection belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cookie([u8; COOKIE]);

impl Cookie {
    /// Creates a random cookie.
    pub(super) fn random() -> io::Result<Self> {
        let mut bytes: [u8; COOKIE] = random_bytes()?;
        for byte in &mut bytes {
            *byte = CHARACTERS[usize::from(*byte) % CHARACTERS.len()];
        }
        bytes[COOKIE - 1] = 0;
        Ok(Self(bytes))
    }

    /// Receives the cookie, which is the first data on a connection.
    pub(super) fn receive(stream: &Stream, timeout: Duration) -> Result<Self, Iperf3Error> {
        let mut bytes = [0; COOKIE];
        receive(stream, &mut bytes, Instant::now() + timeout)?;
        let (last, characters) = (bytes[COOKIE - 1], &bytes[..COOKIE - 1]);
        let is_cookie = last == 0 && characters.iter().all(u8::is_ascii_alphanumeric);
        is_cookie.then_some(Self(bytes)).ok_or(Iperf3Error::NotIperf3)
    }

    /// Sends the cookie, which must be the first data on a connection.
    pub(super) fn send(&self, mut stream: &Stream) -> Result<(), Iperf3Error> {
        Ok(stream.write_all(&self.0)?)
    }
}

/// The states of a test, with their numbers in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    TestStart = 1,
    TestRunning = 2,
    TestEnd = 4,
    ParamExchange = 9,
    CreateStreams = 10,
    ServerTerminate = 11,
    ClientTerminate = 12,
    ExchangeResults = 13,
    DisplayResults = 14,
    IperfDone = 16,
    /// The server cannot serve the test. After this state it sends two error numbers, each of four
    /// bytes.
    ServerError = 254,
    /// The server is serving another test.
    AccessDenied = 255,
}

/// Sends a state to the peer.
pub(super) fn send_state(mut stream: &Stream, state: State) -> Result<(), Iperf3Error> {
    Ok(stream.write_all(&[state as u8])?)
}

/// Receives a state from the server. Returns an error if the state is not `wanted`.
pub(super) fn expect_state(
    stream: &Stream,
    wanted: State,
    timeout: Duration,
) -> Result<(), Iperf3Error> {
    let deadline = Instant::now() + timeout;
    let mut state = [0];
    receive(stream, &mut state, deadline)?;
    let [got] = state;
    if got == wanted as u8 {
        Ok(())
    } else if got == State::AccessDenied as u8 {
        Err(Iperf3Error::Busy)
    } else if got == State::ServerError as u8 {
        let mut number = [0; 4];
        receive(stream, &mut number, deadline)?;
        Err(Iperf3Error::Refused(u32::from_be_bytes(number)))
    } else if got == State::ServerTerminate as u8 {
        Err(Iperf3Error::Closed)
    } else {
        Err(Iperf3Error::Unexpected { got, wanted: wanted as u8 })
    }
}

/// Sends the length of a message's JSON text, and then the text.
pub(super) fn send_text(mut stream: &Stream, message: &impl Serialize) -> Result<(), Iperf3Error> {
    let text =
        serde_json::to_vec(message).map_err(|error| Iperf3Error::NotJson(error.to_string()))?;
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(&text);
    Ok(stream.write_all(&bytes)?)
}

/// Receives the length of a message's JSON text and then the text, and parses the text.
pub(super) fn receive_text<M: DeserializeOwned>(
    stream: &Stream,
    timeout: Duration,
) -> Result<M, Iperf3Error> {
    let deadline = Instant::now() + timeout;
    let mut length = [0; 4];
    receive(stream, &mut length, deadline)?;
    let length = u32::from_be_bytes(length);
    let size = usize::try_from(length).unwrap_or(usize::MAX);
    if size > LONGEST {
        return Err(Iperf3Error::TooLong(length));
    }
    let mut text = vec![0; size];
    receive(stream, &mut text, deadline)?;
    serde_json::from_slice(&text).map_err(|error| Iperf3Error::NotJson(error.to_string()))
}

/// Fills `into` with received bytes until `deadline`. The deadline is for all bytes together, so a
/// peer cannot extend it by sending single bytes.
pub(super) fn receive(
    mut stream: &Stream,
    into: &mut [u8],
    deadline: Instant,
) -> Result<(), Iperf3Error> {
    let mut filled = 0;
    while filled < into.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Iperf3Error::TimedOut);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut into[filled..]) {
            Ok(0) => return Err(Iperf3Error::Closed),
            Ok(count) => filled += count,
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Shutdown, TcpListener, TcpStream};

    const SHORT: Duration = Duration::from_secs(5);

    /// Returns one end of a connection. The other end has sent `bytes` and closed its sending
    /// direction.
    fn peer_sends(bytes: &[u8]) -> Stream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        peer.write_all(bytes).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        listener.accept().unwrap().0.into()
    }

    #[test]
    fn a_cookie_is_36_characters_and_a_zero() {
        let cookie = Cookie::random().unwrap();
        assert_ne!(cookie, Cookie::random().unwrap());
        assert_eq!(Cookie::receive(&peer_sends(&cookie.0), SHORT).unwrap(), cookie);
        let mail = *b"EHLO mail.example, 37 bytes of text!\n";
        let error = Cookie::receive(&peer_sends(&mail), SHORT).unwrap_err();
        assert!(matches!(error, Iperf3Error::NotIperf3), "{error}");
        let error = Cookie::receive(&peer_sends(b"short"), SHORT).unwrap_err();
        assert!(matches!(error, Iperf3Error::Closed), "{error}");
    }

    #[test]
    fn refusals_of_a_server_are_recognised() {
        let wanted = State::ParamExchange;
        let received = |bytes: &[u8]| expect_state(&peer_sends(bytes), wanted, SHORT);
        assert!(received(&[9]).is_ok());
        assert!(matches!(received(&[255]), Err(Iperf3Error::Busy)));
        let refused = received(&[254, 0, 0, 0, 13, 0, 0, 0, 0]);
        assert!(matches!(refused, Err(Iperf3Error::Refused(13))));
        assert!(matches!(received(&[11]), Err(Iperf3Error::Closed)));
        assert!(matches!(received(b"2"), Err(Iperf3Error::Unexpected { got: 50, wanted: 9 })));
    }

    #[test]
    fn texts_are_limited_in_length_and_checked() {
        let received = |bytes: &[u8]| receive_text::<Vec<u8>>(&peer_sends(bytes), SHORT);
        assert_eq!(received(b"\0\0\0\x05[1,2]").unwrap(), [1, 2]);
        assert!(matches!(received(b"\xff\xff\xff\xff["), Err(Iperf3Error::TooLong(u32::MAX))));
        assert!(matches!(received(b"\0\0\0\x05{}"), Err(Iperf3Error::Closed)));
        assert!(matches!(received(b"\0\0\0\x02{}"), Err(Iperf3Error::NotJson(_))));
        assert!(matches!(received(b"\0\0\0\0"), Err(Iperf3Error::NotJson(_))));
    }
}
