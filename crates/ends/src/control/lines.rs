//! Lines from an untrusted peer, with limits on their length and on the time to receive a line.

use crate::socket::Stream;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Maximum length of a line in bytes, including its line end.
const LONGEST: usize = 16 * 1_024;

/// The reason why no line or message was received.
#[derive(Debug, Error)]
pub enum LineError {
    /// The peer did not send a whole line before the timeout.
    #[error("the peer did not finish a line in time")]
    TimedOut,
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// The peer's line exceeds the maximum length.
    #[error("the peer's line is longer than {LONGEST} bytes")]
    TooLong,
    /// The peer's line, which is quoted here, is not a valid message.
    #[error("the peer sent a line that is not a message of the protocol")]
    NoMessage(String),
    /// The connection failed.
    #[error("the connection to the peer failed: {0}")]
    Io(#[from] io::Error),
}

/// A receiver of lines from a connection.
#[derive(Debug)]
pub(crate) struct Lines {
    stream: Stream,
    /// Data that was received after the end of the most recently returned line. It has at most
    /// [`LONGEST`] bytes.
    held: Vec<u8>,
    /// Length of the prefix of `held` that was already searched, and contains no line end. The next
    /// search begins after it.
    searched: usize,
}

impl Lines {
    /// Creates a receiver. `already` is data that has been read from `stream` before.
    pub(crate) fn new(stream: Stream, already: &[u8]) -> Self {
        Self { stream, held: already[..already.len().min(LONGEST)].to_vec(), searched: 0 }
    }

    /// Returns the next line without its line end. The timeout is for the whole line, so a peer
    /// cannot extend it by sending single bytes.
    pub(crate) fn next(&mut self, timeout: Duration) -> Result<String, LineError> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(line) = self.take_line() {
                return Ok(line);
            }
            if self.held.len() >= LONGEST {
                return Err(LineError::TooLong);
            }
            self.receive(deadline)?;
        }
    }

    /// Receives the next line, and parses it as a JSON message.
    pub(crate) fn next_message<M: DeserializeOwned>(
        &mut self,
        timeout: Duration,
    ) -> Result<M, LineError> {
        let line = self.next(timeout)?;
        serde_json::from_str(&line).map_err(|_| LineError::NoMessage(line))
    }

    /// Returns what has been received of a line whose end has not arrived; `None` if nothing has
    /// been received of it.
    pub(crate) fn unfinished(&self) -> Option<String> {
        (!self.held.is_empty()).then(|| String::from_utf8_lossy(&self.held).into_owned())
    }

    /// Removes the next line from `held`; returns `None` if no whole line has been received.
    fn take_line(&mut self) -> Option<String> {
        let Some(end) = self.held[self.searched..].iter().position(|&byte| byte == b'\n') else {
            self.searched = self.held.len();
            return None;
        };
        let rest = self.held.split_off(self.searched + end + 1);
        let line = std::mem::replace(&mut self.held, rest);
        self.searched = 0;
        let text = String::from_utf8_lossy(&line);
        Some(text.trim_end_matches(['\n', '\r']).to_owned())
    }

    /// Waits for data until `deadline`, and appends the data to `held`.
    fn receive(&mut self, deadline: Instant) -> Result<(), LineError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(LineError::TimedOut);
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut piece = [0; 2_048];
        let room = piece.len().min(LONGEST - self.held.len());
        match (&self.stream).read(&mut piece[..room]) {
            Ok(0) => Err(LineError::Closed),
            Ok(count) => {
                self.held.extend_from_slice(&piece[..count]);
                Ok(())
            }
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => Ok(()),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Err(LineError::TimedOut),
                _ => Err(LineError::Io(error)),
            },
        }
    }
}

/// Writes `message` as a line of JSON. A peer that does not read blocks the caller until the write
/// timeout of the stream expires.
pub(crate) fn send(mut stream: &Stream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    const SOON: Duration = Duration::from_secs(20);

    fn pair() -> (TcpStream, Lines) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, Lines::new(listener.accept().unwrap().0.into(), b""))
    }

    #[test]
    fn lines_do_not_depend_on_segment_boundaries() {
        let (mut near, mut lines) = pair();
        near.write_all(b"one\r\ntw").unwrap();
        assert_eq!(lines.next(SOON).unwrap(), "one");
        near.write_all(b"o\n\nthree\n").unwrap();
        assert_eq!(lines.next(SOON).unwrap(), "two");
        assert_eq!(lines.next(SOON).unwrap(), "");
        drop(near);
        assert_eq!(lines.next(SOON).unwrap(), "three");
        assert!(matches!(lines.next(SOON), Err(LineError::Closed)));
    }

    #[test]
    fn a_line_without_an_end_is_refused_at_the_limit() {
        let (mut near, mut lines) = pair();
        near.write_all(&[b'x'; LONGEST]).unwrap();
        assert!(matches!(lines.next(SOON), Err(LineError::TooLong)));
        assert!(lines.held.capacity() <= 2 * LONGEST);
    }

    #[test]
    fn a_silent_peer_times_out() {
        let (_near, mut lines) = pair();
        assert!(matches!(lines.next(Duration::from_millis(1)), Err(LineError::TimedOut)));
        assert!(matches!(lines.next(Duration::ZERO), Err(LineError::TimedOut)));
    }

    #[test]
    fn an_invalid_message_is_kept_for_the_error() {
        let (mut near, mut lines) = pair();
        near.write_all(b"220 mail.example ESMTP\n").unwrap();
        let error = lines.next_message::<u64>(SOON).unwrap_err();
        assert!(matches!(error, LineError::NoMessage(line) if line.starts_with("220")));
    }
}
