//! Other people's traffic: frames that come at random, are for nobody here, and take up the wire.

use crate::rng::Stream;
use linerate_units::{Span, Tick};

/// A station that stands for everybody else on a cable.
#[derive(Debug)]
pub(crate) struct Noise {
    random: Stream,
    mean: Span,
    length: usize,
    /// Frames that it would send, but its last one has not left.
    waiting: u64,
    sends: bool,
}

impl Noise {
    /// Frames of `length` bytes, `mean` apart.
    pub(crate) const fn new(random: Stream, mean: Span, length: usize) -> Self {
        Self { random, mean, length, waiting: 0, sends: false }
    }

    /// Bytes of its frames, without the check sequence.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// When it has the next one.
    pub(crate) fn next(&mut self, now: Tick) -> Tick {
        now + self.random.exponential(self.mean)
    }

    /// It has one more: does it want to send now?
    pub(crate) const fn handle_frame(&mut self) -> bool {
        if self.sends {
            self.waiting += 1;
        }
        !std::mem::replace(&mut self.sends, true)
    }

    /// One has left: does it want to send another?
    pub(crate) const fn handle_sent(&mut self) -> bool {
        self.sends = self.waiting > 0;
        if self.sends {
            self.waiting -= 1;
        }
        self.sends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_come_while_the_last_one_leaves_wait_for_their_turn() {
        let mut noise = Noise::new(Stream::new(1, 1), Span::from_picos(1), 60);
        assert_eq!([(); 3].map(|()| noise.handle_frame()), [true, false, false]);
        assert_eq!([(); 3].map(|()| noise.handle_sent()), [true, true, false]);
        assert!(noise.handle_frame(), "nothing leaves any more");
    }
}
