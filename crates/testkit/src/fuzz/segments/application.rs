//! The application in the fuzz target `segments_into_a_connection`, which makes random calls.

use super::TestCase;
use crate::script::pattern;
use linerate_tcp::KeepAlive;
use linerate_units::{Duration, Rate};

impl TestCase<'_> {
    pub(super) fn write(&mut self) {
        let count = usize::from(self.choices.half()) >> self.choices.of(&[0, 2, 4, 8, 12]);
        let data: Vec<u8> = (self.written..self.written + count).map(pattern).collect();
        let urgent = self.choices.byte() == 7;
        let taken = self.both(|connection, now| {
            if urgent { connection.write_urgent(now, &data) } else { connection.write(now, &data) }
        });
        self.written += taken.unwrap_or(0);
    }

    pub(super) fn read(&mut self) {
        let count = usize::from(self.choices.half()) >> self.choices.of(&[0, 2, 4, 8, 12]);
        let mut into = vec![0; count];
        let peeked = self.both(|connection, _| connection.peek(&mut vec![0; count]));
        let answer = self.connection.read(self.now, &mut into);
        assert_eq!(answer, self.twin.read(self.now, &mut vec![0; count]));
        assert_eq!(answer, peeked);
        for (index, &byte) in into[..answer.unwrap_or(0)].iter().enumerate() {
            assert_eq!(byte, pattern(self.read + index), "byte {} is wrong", self.read + index);
        }
        self.read += answer.unwrap_or(0);
    }

    pub(super) fn application(&mut self) {
        let (kind, span) = (self.choices.byte() % 16, self.choices.span());
        let patient = KeepAlive { idle: span.max(Duration::from_secs(10)), ..KeepAlive::default() };
        self.both(|connection, now| match kind {
            0..=3 => connection.shutdown_write(now),
            4 | 5 => connection.close(now),
            6 => connection.abort(now),
            7 => connection.shutdown_read(now),
            8 => connection.set_no_delay(true),
            9 => connection.set_no_delay(false),
            10 => connection.set_linger(Some(span)),
            11 => connection.set_linger(Some(Duration::ZERO)),
            12 => connection.set_linger(None),
            13 => connection.set_keep_alive(now, Some(patient)),
            14 => connection.set_keep_alive(now, None),
            _ => {
                let rate = Rate::from_bits_per_second(span.as_micros());
                connection.set_max_pacing_rate(Some(rate));
            }
        });
    }

    pub(super) fn poll_events(&mut self) {
        for count in 0.. {
            assert!(count < 100, "events without end");
            if self.both(|connection, _| connection.driver().poll_event()).is_none() {
                break;
            }
        }
    }
}
