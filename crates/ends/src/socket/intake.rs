//! The sink's half of a transfer over a socket: read, count, compare, against a deadline.

use super::counters::Sampler;
use super::pause::{SLICE, is_pause};
use super::stream::Stream;
use crate::ended::Ended;
use crate::workload::Pattern;
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// What a sink is to read.
#[derive(Clone, Copy, Debug)]
pub struct Intake {
    /// It is over after so many bytes.
    pub bytes: u64,
    /// Bytes that a read may take.
    pub read_size: usize,
    /// What the bytes should be, if they are to be compared.
    pub pattern: Option<Pattern>,
    /// It is over this long after its first byte.
    pub max_time: Duration,
    /// It is over when nothing has come for so long.
    pub idle_time: Duration,
}

/// What a sink has read.
#[derive(Debug)]
pub struct Taken {
    /// Bytes.
    pub bytes: u64,
    /// When the first of them had been read.
    pub first: Option<Instant>,
    /// When the last of them had been read.
    pub last: Option<Instant>,
    /// When reading ended: [`Taken::last`], or later if it ended for want of bytes.
    pub finished: Instant,
    /// Why it ended.
    pub ended: Ended,
    /// What broke, if it ended for that.
    pub error: Option<io::Error>,
    /// The position of the first wrong byte.
    pub wrong_at: Option<u64>,
    /// What the queues held.
    pub peaks: Sampler,
}

impl Taken {
    /// From having read the first byte to having read the last one.
    pub fn span(&self) -> Duration {
        match (self.first, self.last) {
            (Some(first), Some(last)) => last.saturating_duration_since(first),
            _ => Duration::ZERO,
        }
    }
}

impl Intake {
    /// Reads from `stream`, of which `already` has arrived, until the bytes are complete, the peer
    /// ends, the time is up or `stop` says so.
    pub fn take(&self, stream: &Stream, already: &[u8], stop: impl Fn() -> bool) -> Taken {
        // Written to here, so that no read of the run has to find memory first.
        let mut buffer = vec![u8::MAX; self.read_size.max(1)];
        let opened = Instant::now();
        let mut taken = Taken::nothing(opened);
        let mut sources = already.chain(stream);
        if let Err(error) = stream.set_read_timeout(Some(SLICE.min(self.max_time).max(LEAST_WAIT)))
        {
            return taken.end(Ended::Broken, Some(error));
        }
        loop {
            let wanted = usize::try_from(self.bytes - taken.bytes).unwrap_or(usize::MAX);
            let room = buffer.len().min(wanted);
            let got = sources.read(&mut buffer[..room]);
            let now = Instant::now();
            taken.finished = now;
            match got {
                Ok(0) if room == 0 => return taken.end(Ended::Complete, None),
                Ok(0) => return taken.end(Ended::EndOfStream, None),
                Ok(count) => self.account(&mut taken, now, &buffer[..count]),
                Err(error) if is_pause(&error) => {}
                Err(error) => return taken.end(Ended::Broken, Some(error)),
            }
            if taken.bytes == self.bytes {
                return taken.end(Ended::Complete, None);
            }
            if stop() {
                return taken.end(Ended::Stopped, None);
            }
            if self.is_late(&taken, opened, now) {
                return taken.end(Ended::TimeUp, None);
            }
            taken.peaks.look(now, stream);
        }
    }

    fn account(&self, taken: &mut Taken, now: Instant, arrived: &[u8]) {
        if let (Some(pattern), None) = (self.pattern, taken.wrong_at) {
            taken.wrong_at = pattern.verify(taken.bytes, arrived).err();
        }
        taken.first.get_or_insert(now);
        taken.last = Some(now);
        taken.bytes += arrived.len() as u64;
    }

    fn is_late(&self, taken: &Taken, opened: Instant, now: Instant) -> bool {
        let since = |then: Instant| now.saturating_duration_since(then);
        taken.first.is_some_and(|first| since(first) >= self.max_time)
            || since(taken.last.unwrap_or(opened)) >= self.idle_time
    }
}

/// The kernel takes a time-out of zero for none at all.
const LEAST_WAIT: Duration = Duration::from_millis(1);

impl Taken {
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

    fn intake(bytes: u64) -> Intake {
        let (pattern, minute) = (Some(Pattern::new(7)), Duration::from_secs(60));
        Intake { bytes, read_size: 1_000, pattern, max_time: minute, idle_time: minute }
    }

    #[test]
    fn it_is_complete_at_its_last_byte_and_takes_no_byte_beyond() {
        let (mut near, far) = pair();
        let mut bytes = vec![0; 5_000];
        Pattern::new(7).fill(0, &mut bytes);
        near.write_all(&bytes).unwrap();
        let taken = intake(4_500).take(&far, b"", || false);
        assert_eq!((taken.bytes, taken.ended, taken.wrong_at), (4_500, Ended::Complete, None));
        assert_eq!((&far).read(&mut [0; 1_000]).unwrap(), 500);
    }

    #[test]
    fn bytes_that_came_with_the_greeting_are_the_first() {
        let (mut near, far) = pair();
        let mut bytes = vec![0; 3_000];
        Pattern::new(7).fill(0, &mut bytes);
        bytes[2_999] ^= 1;
        near.write_all(&bytes[1_234..]).unwrap();
        drop(near);
        let taken = intake(9_000).take(&far, &bytes[..1_234], || false);
        assert_eq!(
            (taken.bytes, taken.ended, taken.wrong_at),
            (3_000, Ended::EndOfStream, Some(2_999))
        );
    }

    #[test]
    fn a_source_that_stalls_is_left_when_the_time_is_up() {
        let (mut near, far) = pair();
        near.write_all(b"x").unwrap();
        let hurried = Intake { max_time: Duration::from_millis(1), pattern: None, ..intake(10) };
        let taken = hurried.take(&far, b"", || false);
        assert_eq!((taken.bytes, taken.ended), (1, Ended::TimeUp));
        let looks = Cell::new(0);
        let enough = || looks.replace(looks.get() + 1) > 20;
        let silent = Intake { idle_time: Duration::from_millis(1), ..intake(10) };
        assert_eq!(silent.take(&far, b"", enough).ended, Ended::TimeUp);
        let stopped = intake(10).take(&far, b"", || true);
        assert_eq!(stopped.ended, Ended::Stopped);
    }
}
