//! A task that reads a transfer from a socket. It counts the data, compares it with a pattern if
//! requested, and ends at a time limit.

use super::counters::Sampler;
use super::pause::{SLICE, is_pause};
use super::stream::Stream;
use crate::ended::Ended;
use crate::observe::CallClock;
use crate::workload::Pattern;
use rustix::net::RecvFlags;
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// The parameters for reading a transfer.
#[derive(Clone, Copy, Debug)]
pub struct ReadTask {
    /// Number of bytes to read.
    pub bytes: u64,
    /// Maximum size of each `read` call, in bytes.
    pub read_size: usize,
    /// The expected data; `None` if the data is not compared.
    pub pattern: Option<Pattern>,
    /// Maximum duration, counted from the first byte.
    pub max_time: Duration,
    /// Maximum time without data, after which the transfer ends.
    pub idle_time: Duration,
    /// Time to wait after each read, which makes the program a slow reader.
    pub pause: Duration,
    /// Does the kernel discard the data without copying it (`MSG_TRUNC`)? The option has no effect
    /// on connections of linerate hosts, and no effect if `pattern` is set.
    pub discard: bool,
}

/// The result of a transfer at its receiving end.
#[derive(Debug)]
pub struct ReadResult {
    /// Number of bytes read.
    pub bytes: u64,
    /// Time when the first read that returned data had ended; `None` if no data was read.
    pub first: Option<Instant>,
    /// Time when the most recent read that returned data had ended; `None` if no data was read.
    pub last: Option<Instant>,
    /// Time when the final call of `read` returned. It is later than [`ReadResult::last`] if that
    /// call returned no data.
    pub finished: Instant,
    /// The reason why the transfer ended.
    pub ended: Ended,
    /// The error of the connection; `None` if the connection did not fail.
    pub error: Option<io::Error>,
    /// Position of the first wrong byte in the transfer; `None` if the data was intact or was not
    /// compared.
    pub wrong_at: Option<u64>,
    /// Maximum lengths of the connection's queues, from samples.
    pub peaks: Sampler,
}

impl ReadResult {
    /// Returns the time from reading the first byte to reading the last byte; zero if no data was
    /// read.
    pub fn span(&self) -> Duration {
        match (self.first, self.last) {
            (Some(first), Some(last)) => last.saturating_duration_since(first),
            _ => Duration::ZERO,
        }
    }
}

impl ReadTask {
    /// Reads from `stream` until all bytes are read, the stream ends, a time limit expires, or
    /// `stop` returns true. `already` is data that was read from `stream` before this call. It
    /// counts as the beginning of the transfer.
    pub fn run(&self, stream: &Stream, already: &[u8], stop: impl Fn() -> bool) -> ReadResult {
        self.run_timed(stream, &CallClock::new(), already, stop)
    }

    /// Reads like [`ReadTask::run`]. In addition, `clock` measures the time that the thread spends
    /// in calls of `read`.
    pub fn run_timed(
        &self,
        stream: &Stream,
        clock: &CallClock,
        already: &[u8],
        stop: impl Fn() -> bool,
    ) -> ReadResult {
        // The buffer is written once before the run, so that its memory pages exist and cause no
        // page faults during the run.
        let mut buffer = vec![u8::MAX; self.read_size.max(1)];
        let opened = Instant::now();
        let mut result = ReadResult::nothing(opened);
        let discard = self.discard && self.pattern.is_none();
        let mut sources = already.chain(Source { stream, discard });
        if let Err(error) = stream.set_read_timeout(Some(SLICE.min(self.max_time).max(MIN_TIMEOUT)))
        {
            return result.end(Ended::Broken, Some(error));
        }
        loop {
            let wanted = usize::try_from(self.bytes - result.bytes).unwrap_or(usize::MAX);
            let room = buffer.len().min(wanted);
            clock.enter();
            let got = sources.read(&mut buffer[..room]);
            clock.leave(*got.as_ref().unwrap_or(&0));
            let now = Instant::now();
            result.finished = now;
            match got {
                Ok(0) if room == 0 => return result.end(Ended::Complete, None),
                Ok(0) => return result.end(Ended::EndOfStream, None),
                Ok(count) => self.account(&mut result, now, &buffer[..count]),
                Err(error) if is_pause(&error) => {}
                Err(error) => return result.end(Ended::Broken, Some(error)),
            }
            if result.bytes == self.bytes {
                return result.end(Ended::Complete, None);
            }
            if stop() {
                return result.end(Ended::Stopped, None);
            }
            if self.is_late(&result, opened, now) {
                return result.end(Ended::TimeUp, None);
            }
            result.peaks.look(now, stream);
            if !self.pause.is_zero() {
                std::thread::sleep(self.pause);
            }
        }
    }

    /// Compares and counts the data that a read has returned.
    fn account(&self, result: &mut ReadResult, now: Instant, arrived: &[u8]) {
        if let (Some(pattern), None) = (self.pattern, result.wrong_at) {
            result.wrong_at = pattern.verify(result.bytes, arrived).err();
        }
        result.first.get_or_insert(now);
        result.last = Some(now);
        result.bytes += arrived.len() as u64;
    }

    /// Has the maximum duration or the maximum time without data passed?
    fn is_late(&self, result: &ReadResult, opened: Instant, now: Instant) -> bool {
        let since = |then: Instant| now.saturating_duration_since(then);
        result.first.is_some_and(|first| since(first) >= self.max_time)
            || since(result.last.unwrap_or(opened)) >= self.idle_time
    }
}

/// A stream whose data is either copied to the program or discarded by the kernel.
struct Source<'a> {
    stream: &'a Stream,
    discard: bool,
}

impl Read for Source<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.stream {
            // With MSG_TRUNC, the kernel's TCP discards the data and returns its length.
            Stream::Kernel(stream) if self.discard => {
                let room = into.len();
                Ok(rustix::net::recv(stream, into, RecvFlags::TRUNC)?.1.min(room))
            }
            mut stream => stream.read(into),
        }
    }
}

/// Minimum timeout of a read. A shorter one could become zero, by which the kernel means no
/// timeout.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);

impl ReadResult {
    const fn nothing(now: Instant) -> Self {
        Self {
            bytes: 0,
            first: None,
            last: None,
            finished: now,
            ended: Ended::Complete,
            error: None,
            wrong_at: None,
            peaks: Sampler::new(now),
        }
    }

    fn end(self, ended: Ended, error: Option<io::Error>) -> Self {
        Self { ended, error, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (TcpStream, Stream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0.into())
    }

    fn read_task(bytes: u64) -> ReadTask {
        let (pattern, minute) = (Some(Pattern::new(7)), Duration::from_secs(60));
        ReadTask {
            bytes,
            read_size: 1_000,
            pattern,
            max_time: minute,
            idle_time: minute,
            pause: Duration::ZERO,
            discard: false,
        }
    }

    #[test]
    fn a_read_task_ends_at_its_last_byte_and_reads_no_more() {
        let (mut near, far) = pair();
        let mut bytes = vec![0; 5_000];
        Pattern::new(7).fill(0, &mut bytes);
        near.write_all(&bytes).unwrap();
        let result = read_task(4_500).run(&far, b"", || false);
        assert_eq!((result.bytes, result.ended, result.wrong_at), (4_500, Ended::Complete, None));
        assert_eq!((&far).read(&mut [0; 1_000]).unwrap(), 500);
    }

    #[test]
    fn data_received_with_the_greeting_counts() {
        let (mut near, far) = pair();
        let mut bytes = vec![0; 3_000];
        Pattern::new(7).fill(0, &mut bytes);
        bytes[2_999] ^= 1;
        near.write_all(&bytes[1_234..]).unwrap();
        drop(near);
        let result = read_task(9_000).run(&far, &bytes[..1_234], || false);
        assert_eq!(
            (result.bytes, result.ended, result.wrong_at),
            (3_000, Ended::EndOfStream, Some(2_999))
        );
    }

    #[test]
    fn discarded_data_is_counted() {
        let (mut near, far) = pair();
        near.write_all(&[7; 5_000]).unwrap();
        let task = ReadTask { discard: true, pattern: None, ..read_task(4_500) };
        let result = task.run(&far, b"", || false);
        assert_eq!((result.bytes, result.ended), (4_500, Ended::Complete));
        assert_eq!((&far).read(&mut [0; 1_000]).unwrap(), 500);
    }

    #[test]
    fn a_stalled_source_ends_the_transfer_after_the_maximum_time() {
        let (mut near, far) = pair();
        near.write_all(b"x").unwrap();
        let hurried =
            ReadTask { max_time: Duration::from_millis(1), pattern: None, ..read_task(10) };
        let result = hurried.run(&far, b"", || false);
        assert_eq!((result.bytes, result.ended), (1, Ended::TimeUp));
        let looks = Cell::new(0);
        let enough = || looks.replace(looks.get() + 1) > 20;
        let silent = ReadTask { idle_time: Duration::from_millis(1), ..read_task(10) };
        assert_eq!(silent.run(&far, b"", enough).ended, Ended::TimeUp);
        let stopped = read_task(10).run(&far, b"", || true);
        assert_eq!(stopped.ended, Ended::Stopped);
    }
}
