//! The source's half of a transfer over a socket: write against a deadline.

use super::counters::Sampler;
use super::pause::{SLICE, is_pause};
use super::stream::Stream;
use crate::workload::{Pattern, chargen};
use std::io::{self, Write};
use std::time::Instant;

/// What a source is to write.
#[derive(Clone, Copy, Debug)]
pub struct Outflow {
    /// So many bytes.
    pub bytes: u64,
    /// Bytes that a write offers.
    pub write_size: usize,
    /// The bytes.
    pub contents: Contents,
}

/// The bytes that a source writes.
#[derive(Clone, Copy, Debug)]
pub enum Contents {
    /// Those of the pattern, each where it belongs, as a comparison at the other end needs it.
    Pattern(Pattern),
    /// Any: the first write's are written over and over, and cost no time.
    Any,
    /// Those of RFC 864.
    Characters,
}

impl Contents {
    /// Makes the bytes from `position` on, if `into` does not hold them.
    pub fn renew(self, position: u64, into: &mut [u8]) {
        match self {
            Self::Pattern(pattern) => pattern.fill(position, into),
            Self::Any => {}
            Self::Characters => chargen::fill(position, into),
        }
    }
}

/// What a source has written.
#[derive(Debug)]
pub struct Given {
    /// Bytes that the socket took.
    pub bytes: u64,
    /// When the first write was called.
    pub began: Instant,
    /// What broke, if that ended it.
    pub error: Option<io::Error>,
    /// What the queues held.
    pub peaks: Sampler,
}

impl Outflow {
    /// Writes to `stream` until the bytes are through or `stop` says so; `stop` is told when the
    /// first write was, and what time it is.
    pub fn give(&self, stream: &Stream, stop: impl Fn(Instant, Instant) -> bool) -> Given {
        let mut buffer = vec![0; self.write_size.max(1)];
        // Memory that was never written is one page of zeros, and faster to read than any data.
        Pattern::new(0).fill(0, &mut buffer);
        let prepared = stream.set_write_timeout(Some(SLICE));
        let began = Instant::now();
        let mut given =
            Given { bytes: 0, began, error: prepared.err(), peaks: Sampler::new(began) };
        while given.error.is_none() && given.bytes < self.bytes {
            let left = usize::try_from(self.bytes - given.bytes).unwrap_or(usize::MAX);
            let length = buffer.len().min(left);
            self.contents.renew(given.bytes, &mut buffer[..length]);
            if !write_whole(stream, &buffer[..length], &mut given, &stop) {
                break;
            }
        }
        given
    }
}

/// Writes all of `bytes`; false if that ended before.
fn write_whole(
    mut stream: &Stream,
    mut bytes: &[u8],
    given: &mut Given,
    stop: &impl Fn(Instant, Instant) -> bool,
) -> bool {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => {
                bytes = &bytes[count..];
                given.bytes += count as u64;
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => {
                given.error = Some(error);
                return false;
            }
        }
        let now = Instant::now();
        given.peaks.look(now, stream);
        if stop(given.began, now) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (Stream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near.into(), listener.accept().unwrap().0)
    }

    fn outflow(bytes: u64) -> Outflow {
        Outflow { bytes, write_size: 1_000, contents: Contents::Pattern(Pattern::new(3)) }
    }

    #[test]
    fn every_byte_knows_its_place() {
        let (near, mut far) = pair();
        let given = outflow(3_456).give(&near, |_, _| false);
        assert_eq!(given.bytes, 3_456);
        drop(near);
        let mut arrived = Vec::new();
        far.read_to_end(&mut arrived).unwrap();
        assert_eq!(arrived.len(), 3_456);
        assert_eq!(Pattern::new(3).verify(0, &arrived), Ok(()));
    }

    #[test]
    fn a_sink_that_does_not_read_does_not_hold_the_source_for_ever() {
        let (near, _far) = pair();
        let given = outflow(u64::MAX).give(&near, |began, now| now - began > 2 * SLICE);
        assert!(given.bytes > 0 && given.error.is_none());
    }

    #[test]
    fn a_sink_that_is_gone_is_an_error() {
        let (near, far) = pair();
        drop(far);
        assert!(outflow(u64::MAX).give(&near, |_, _| false).error.is_some());
    }
}
