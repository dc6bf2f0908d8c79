//! A task that writes a transfer to a socket, until all bytes are accepted or a condition stops it.

use super::counters::Sampler;
use super::pause::{SLICE, is_pause};
use super::stream::Stream;
use crate::observe::CallClock;
use crate::workload::{Pattern, chargen};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// The parameters of a transfer that is to be written.
#[derive(Clone, Copy, Debug)]
pub struct WriteTask {
    /// Number of bytes to write.
    pub bytes: u64,
    /// Maximum number of bytes in a write.
    pub write_size: usize,
    /// The data to write.
    pub contents: Contents,
    /// Time to wait after each write.
    pub pause: Duration,
    /// Maximum rate at which the program itself writes; `None` for no maximum.
    pub pace: Option<Pace>,
}

/// A maximum rate at which a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The rate in bytes per second.
    pub bytes_per_second: u64,
    /// Is the data written in small pieces, so that the path gets no bursts? This is for a TCP that
    /// cannot limit its pacing rate, such as linerate's. Otherwise only the mean rate is limited: a
    /// slower transfer is written as without a maximum, so that its segments stay as they are.
    pub is_smooth: bool,
}

/// Interval between the pieces of a paced transfer. The interval is longer at low rates, because a
/// piece has at least [`MIN_PIECE`] bytes.
const PIECE_INTERVAL: Duration = Duration::from_millis(1);
/// Time by which a task that is not smooth may be ahead of its rate. The first writes of a transfer
/// fill the send buffer at once. A wait after them would change the segments of a slow transfer.
const AHEAD: Duration = Duration::from_millis(250);
/// Minimum number of bytes in a piece of a paced transfer: about one segment.
const MIN_PIECE: u64 = 1_448;

/// The kind of data that a source writes.
#[derive(Clone, Copy, Debug)]
pub enum Contents {
    /// A pattern in which each byte depends on its position, so that the receiver can compare the
    /// data.
    Pattern(Pattern),
    /// Arbitrary data. The same buffer is written repeatedly, so producing the data costs no time.
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

/// The result of writing a transfer.
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
    /// Writes to `stream` until all bytes are accepted or `stop` returns true. Each call of `stop`,
    /// after a write and while a paced task waits, gets the time of the first write and the current
    /// time.
    pub fn run(&self, stream: &Stream, stop: impl Fn(Instant, Instant) -> bool) -> WriteResult {
        self.run_timed(stream, &CallClock::new(), stop)
    }

    /// Writes like [`WriteTask::run`], and records with `clock` the time in calls of `write`.
    pub fn run_timed(
        &self,
        stream: &Stream,
        clock: &CallClock,
        stop: impl Fn(Instant, Instant) -> bool,
    ) -> WriteResult {
        let mut buffer = vec![0; self.piece()];
        // The buffer is filled once, because memory that was never written maps to a single page of
        // zeros. Reading that page is faster than reading real data.
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
            if self.pace.is_some_and(|pace| !await_next_write(pace, &given, &stop)) {
                break;
            }
        }
        given
    }

    /// Returns the maximum number of bytes in a write, which smooth pacing may reduce.
    fn piece(&self) -> usize {
        let size = self.write_size.max(1);
        let Some(pace) = self.pace.filter(|pace| pace.is_smooth) else { return size };
        let piece =
            pace.bytes_per_second / u64::try_from(1_000 / PIECE_INTERVAL.as_millis()).unwrap_or(1);
        usize::try_from(piece.max(MIN_PIECE)).map_or(size, |piece| piece.min(size))
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

/// Waits until the pace allows the next write. Returns false if `stop` returned true. The wait is
/// divided into slices, because at 1 B/s it lasts for 24 minutes.
fn await_next_write(
    pace: Pace,
    given: &WriteResult,
    stop: &impl Fn(Instant, Instant) -> bool,
) -> bool {
    #[allow(clippy::cast_precision_loss, reason = "a time of seconds")]
    let due = Duration::from_secs_f64(given.bytes as f64 / pace.bytes_per_second.max(1) as f64);
    let due = if pace.is_smooth { due } else { due.saturating_sub(AHEAD) };
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
            pace: None,
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

    #[test]
    fn a_paced_task_writes_small_pieces() {
        let smooth = |rate| Pace { bytes_per_second: rate, is_smooth: true };
        let piece = |rate: Option<u64>| {
            WriteTask { write_size: 1 << 17, pace: rate.map(smooth), ..write_task(1) }.piece()
        };
        assert_eq!(piece(None), 1 << 17);
        assert_eq!(piece(Some(1_000)), 1_448);
        assert_eq!(piece(Some(5_000_000)), 5_000);
        assert_eq!(piece(Some(u64::MAX)), 1 << 17);
    }

    /// Without a check in the wait for the second piece, the test would last for 1,000 s.
    #[test]
    fn a_paced_task_can_be_stopped_between_two_pieces() {
        let (near, _far) = pair();
        let looks = Cell::new(0);
        let after_first_write = |_, _| looks.replace(looks.get() + 1) > 0;
        let pace = Some(Pace { bytes_per_second: 1, is_smooth: true });
        let task = WriteTask { pace, ..write_task(2_000) };
        let given = task.run(&near, after_first_write);
        assert_eq!((given.bytes, looks.get()), (1_000, 2));
    }

    #[test]
    fn only_a_smooth_task_waits_after_its_first_writes() {
        let checks = |is_smooth| {
            let (near, _far) = pair();
            let checks = Cell::new(0);
            let pace = Some(Pace { bytes_per_second: 8_000, is_smooth });
            WriteTask { pace, ..write_task(1_000) }.run(&near, |_, _| {
                checks.set(checks.get() + 1);
                false
            });
            checks.get()
        };
        // One check after the write, and one before each slice of the wait.
        assert_eq!(checks(false), 2);
        assert!(checks(true) > 2, "the next byte is due after 125 ms");
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
