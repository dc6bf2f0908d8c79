//! Background traffic: frames at random times that occupy the wire and have no receiver.

use crate::rng::Stream;
use linerate_units::{Span, Tick};

/// A source of background frames, which represents all other traffic on a cable.
#[derive(Debug)]
pub(crate) struct Noise {
    random: Stream,
    mean: Span,
    length: usize,
    /// Number of generated frames that have not been sent yet, because an earlier one is still
    /// being sent.
    waiting: u64,
    is_sending: bool,
}

impl Noise {
    /// Creates a source of frames of `length` bytes. The intervals between their generation are
    /// random with the mean `mean`.
    pub(crate) const fn new(random: Stream, mean: Span, length: usize) -> Self {
        Self { random, mean, length, waiting: 0, is_sending: false }
    }

    /// Returns the length of a background frame in bytes, without its check sequence.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// Draws the time at which the next background frame is generated.
    pub(crate) fn next(&mut self, now: Tick) -> Tick {
        now + self.random.exponential(self.mean)
    }

    /// Generates a frame. Returns true if the caller must send it now. If an earlier frame is still
    /// being sent, queues the new frame and returns false.
    pub(crate) const fn handle_frame(&mut self) -> bool {
        if self.is_sending {
            self.waiting += 1;
        }
        !std::mem::replace(&mut self.is_sending, true)
    }

    /// Notes that a frame has been sent. Returns whether a queued frame must be sent now.
    pub(crate) const fn handle_sent(&mut self) -> bool {
        self.is_sending = self.waiting > 0;
        if self.is_sending {
            self.waiting -= 1;
        }
        self.is_sending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_generated_while_one_is_being_sent_are_queued() {
        let mut noise = Noise::new(Stream::new(1, 1), Span::from_picos(1), 60);
        assert_eq!([(); 3].map(|()| noise.handle_frame()), [true, false, false]);
        assert_eq!([(); 3].map(|()| noise.handle_sent()), [true, true, false]);
        assert!(noise.handle_frame(), "nothing leaves any more");
    }
}
