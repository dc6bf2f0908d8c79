//! A task that writes a transfer to a socket, until all bytes are accepted or a condition stops it.

use super::counters::Sampler;
use super::pause::{SLICE, is_pause};
use super::stream::Stream;
use crate::observe::CallClock;
use crate::workload::{Pattern, chargen};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// The parameters for writing a transfer.
#[derive(Clone, Copy, Debug)]
pub struct WriteTask {
    /// Number of bytes to write.
    pub bytes: u64,
    /// Maximum size of each `write` call, in bytes.
    pub write_size: usize,
    /// The data to write.
    pub contents: Contents,
    /// Time to wait after each write.
    pub pause: Duration,
    /// Maximum mean rate at which the program itself writes, in bytes per second; `None` for no
    /// maximum. Unlike pacing, the maximum does not change how TCP divides the data into segments.
    /// It delays only a transfer that would be faster than the maximum.
    pub max_rate: Option<u64>,
}

/// Time by which the written data may be ahead of the maximum rate. The first writes are fast,
/// because they only fill the send buffer. Without this allowance, the task would wait after them,
/// even if the connection is slower than the maximum rate.
const AHEAD: Duration = Duration::from_millis(250);

/// The kind of data that a source writes.
#[derive(Clone, Copy, Debug)]
pub enum Contents {
    /// A pattern in which each byte depends on its position, so that the receiver can compare the
    /// data.
    Pattern(Pattern),
    /// Arbitrary data, for a receiver that does not compare it. The same buffer is written
    /// repeatedly, so producing the data costs no time.
    Any,
    /// The characters of the character generator (RFC 864).
    Characters,
}

impl Contents {
    /// Fills `into` with the data from `position` on. [`Contents::Any`] leaves the buffer
    /// unchanged.
    pub fn renew(self, position: u64, into: &mut [u8]) {
        match self {
            Self::Pattern(pattern) => pattern.fill(position, into),
            Self::Any => {}
            Self::Characters => chargen::fill(position, into),
        }
    }
}

/// The result of a transfer at its sending end.
#[derive(Debug)]
pub struct WriteResult {
    /// Number of bytes that the socket accepted.
    pub bytes: u64,
    /// Time of the first write.
    pub began: Instant,
    /// The error of the connection; `None` if the connection did not fail.
    pub error: Option<io::Error>,
    /// Maximum lengths of the connection's queues, from samples.
    pub peaks: Sampler,
}

impl WriteTask {
    /// Writes to `stream` until all bytes are accepted or `stop` returns true. `stop` is called
    /// after each write, and repeatedly while a task with a maximum rate waits. Its arguments are
    /// the time of the first write and the current time.
    pub fn run(&self, stream: &Stream, stop: impl Fn(Instant, Instant) -> bool) -> WriteResult {
        self.run_timed(stream, &CallClock::new(), stop)
    }

    /// Writes like [`WriteTask::run`]. In addition, `clock` measures the time that the thread
    /// spends in calls of `write`.
    pub fn run_timed(
        &self,
        stream: &Stream,
        clock: &CallClock,
        stop: impl Fn(Instant, Instant) -> bool,
    ) -> WriteResult {
        let mut buffer = vec![0; self.write_size.max(1)];
        // The buffer is filled once, even for arbitrary data. All pages of a buffer that was never
        // written are one page of zeros, which the kernel would copy faster than real data.
        Pattern::new(0).fill(0, &mut buffer);
        let prepared = stream.set_write_timeout(Some(SLICE));
        let began = Instant::now();
        let mut given =
            WriteResult { bytes: 0, began, error: prepared.err(), peaks: Sampler::new(began) };
        while given.error.is_none() && given.bytes < self.bytes {
            let left = usize::try_from(self.bytes - given.bytes).unwrap_or(usize::MAX);
            let length = buffer.len().min(left);
            self.contents.renew(given.bytes, &mut buffer[..length]);
            if !write_whole((stream, clock), &buffer[..length], &mut given, &stop) {
                break;
            }
            if !self.pause.is_zero() {
                std::thread::sleep(self.pause);
            }
            if self.max_rate.is_some_and(|rate| !await_next_write(rate, &given, &stop)) {
                break;
            }
        }
        given
    }
}

/// Writes all of `bytes`. Returns false if the connection failed or `stop` returned true.
fn write_whole(
    (mut stream, clock): (&Stream, &CallClock),
    mut bytes: &[u8],
    given: &mut WriteResult,
    stop: &impl Fn(Instant, Instant) -> bool,
) -> bool {
    while !bytes.is_empty() {
        clock.enter();
        let written = stream.write(bytes);
        clock.leave(*written.as_ref().unwrap_or(&0));
        match written {
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

/// Waits until `max_rate`, in bytes per second, allows the next write. Returns false if `stop`
/// returned true. A wait can be long: at 1 B/s, 24 minutes after a write of 1,460 bytes. It is
/// therefore divided into slices, and `stop` is called before each of them.
fn await_next_write(
    max_rate: u64,
    given: &WriteResult,
    stop: &impl Fn(Instant, Instant) -> bool,
) -> bool {
    #[allow(clippy::cast_precision_loss, reason = "a time of seconds")]
    let due = Duration::from_secs_f64(given.bytes as f64 / max_rate.max(1) as f64);
    let due = due.saturating_sub(AHEAD);
    loop {
        let now = Instant::now();
        if stop(given.began, now) {
            return false;
        }
        let left = due.saturating_sub(now.saturating_duration_since(given.began));
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(SLICE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (Stream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near.into(), listener.accept().unwrap().0)
    }

    fn write_task(bytes: u64) -> WriteTask {
        WriteTask {
            bytes,
            write_size: 1_000,
            contents: Contents::Pattern(Pattern::new(3)),
            pause: Duration::ZERO,
            max_rate: None,
        }
    }

    #[test]
    fn the_pattern_depends_on_the_position() {
        let (near, mut far) = pair();
        let given = write_task(3_456).run(&near, |_, _| false);
        assert_eq!(given.bytes, 3_456);
        drop(near);
        let mut arrived = Vec::new();
        far.read_to_end(&mut arrived).unwrap();
        assert_eq!(arrived.len(), 3_456);
        assert_eq!(Pattern::new(3).verify(0, &arrived), Ok(()));
    }

    /// The second write is due after about 1,000 s. If the task did not call `stop` while it waits,
    /// the test would last as long.
    #[test]
    fn a_task_with_a_maximum_rate_can_be_stopped_between_two_writes() {
        let (near, _far) = pair();
        let looks = Cell::new(0);
        let after_first_write = |_, _| looks.replace(looks.get() + 1) > 0;
        let task = WriteTask { max_rate: Some(1), ..write_task(2_000) };
        let given = task.run(&near, after_first_write);
        assert_eq!((given.bytes, looks.get()), (1_000, 2));
    }

    #[test]
    fn a_task_waits_only_if_it_is_far_ahead_of_its_maximum_rate() {
        let checks = |rate| {
            let (near, _far) = pair();
            let checks = Cell::new(0);
            WriteTask { max_rate: Some(rate), ..write_task(1_000) }.run(&near, |_, _| {
                checks.set(checks.get() + 1);
                false
            });
            checks.get()
        };
        // `stop` is called once after the write, once before a wait, and once after each slice of
        // the wait. Two calls therefore mean that the task has not waited.
        assert_eq!(checks(8_000), 2, "the next byte is due after 125 ms");
        assert!(checks(2_000) > 2, "the next byte is due after 500 ms");
    }

    #[test]
    fn a_sink_that_does_not_read_does_not_block_the_source_for_ever() {
        let (near, _far) = pair();
        let given = write_task(u64::MAX).run(&near, |began, now| now - began > 2 * SLICE);
        assert!(given.bytes > 0 && given.error.is_none());
    }

    #[test]
    fn a_closed_sink_is_an_error() {
        let (near, far) = pair();
        drop(far);
        assert!(write_task(u64::MAX).run(&near, |_, _| false).error.is_some());
    }
}
