//! The few bytes between a card's wire, which does not wait, and its bus, which may have to be waited for: does the
//! FIFO overflow while a frame comes in, or run empty while one leaves?

use super::arbiter::Arbiter;
use super::parameters::DmaParameters;
use crate::medium::PREAMBLE_BITS;
use linerate_units::{Span, Tick};

/// Bytes of the longest frame for which a FIFO is judged beforehand.
const LONGEST: u64 = 65_536;

/// One half's FIFO, and its way to memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fifo {
    bytes: u64,
    /// Bytes that the card moves when it has the bus, and how long it takes for one of its words.
    burst: u64,
    word: u64,
    cycle: Span,
    /// A byte on the wire.
    byte: Span,
    arbiter: Arbiter,
}

impl Fifo {
    /// A FIFO of so many bytes; none if it can never fail on this bus.
    pub(super) fn new(
        bytes: u64,
        dma: &DmaParameters,
        byte: Span,
        arbiter: Arbiter,
    ) -> Option<Self> {
        let word = dma.word;
        let fifo = Self { bytes, burst: dma.burst * word, word, cycle: dma.cycle, byte, arbiter };
        let (overflows, runs_empty) =
            (fifo.overflows(Tick::ZERO, LONGEST), fifo.runs_empty(Tick::ZERO, LONGEST));
        (!arbiter.is_quiet() || overflows || runs_empty.is_some()).then_some(fifo)
    }

    /// What leaves before the first byte of a frame.
    pub(super) fn preamble(&self) -> Span {
        self.byte * (PREAMBLE_BITS / 8)
    }

    /// How long so many bytes take on the bus.
    fn moved(&self, bytes: u64) -> Span {
        self.cycle * bytes.div_ceil(self.word)
    }

    /// Bytes that the wire has carried since `since`, at `now`.
    fn carried(&self, since: Tick, now: Tick) -> u64 {
        now.since(since).as_picos() / self.byte.as_picos()
    }

    /// Does it overflow under a frame of `length` bytes whose first one comes at `begin`? The card asks for the bus when
    /// a burst has come in, or the rest of the frame.
    pub(super) fn overflows(&self, begin: Tick, length: u64) -> bool {
        let (mut removed, mut free) = (0, begin);
        while removed < length {
            let burst = self.burst.min(length - removed);
            let granted = self.arbiter.granted(free.max(begin + self.byte * (removed + burst)));
            if self.carried(begin, granted).min(length) - removed > self.bytes {
                return true;
            }
            free = granted + self.moved(burst);
            removed += burst;
        }
        false
    }

    /// Does it run empty under a frame of `length` bytes whose first one leaves at `begin`, with the FIFO full? If so,
    /// how many have left. The card asks for the bus when there is room for a burst.
    pub(super) fn runs_empty(&self, begin: Tick, length: u64) -> Option<u64> {
        let (mut loaded, mut free) = (self.bytes.min(length), begin);
        while loaded < length {
            let burst = self.burst.min(length - loaded);
            let left = (loaded + burst).saturating_sub(self.bytes);
            let granted = self.arbiter.granted(free.max(begin + self.byte * left));
            if self.carried(begin, granted + self.cycle) > loaded {
                return Some(loaded);
            }
            free = granted + self.moved(burst);
            loaded += burst;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::arbiter::BusParameters;
    use super::*;

    const BYTE: Span = Span::from_picos(800_000);

    fn lance(cycle: u64) -> Option<Fifo> {
        let dma = DmaParameters { word: 2, cycle: Span::from_picos(cycle * 1_000), burst: 8 };
        Fifo::new(48, &dma, BYTE, Arbiter::new(BusParameters::default(), 1, 0))
    }

    #[test]
    fn a_bus_that_is_faster_than_the_wire_and_nobody_elses_never_fails() {
        assert!(lance(600).is_none() && lance(0).is_none());
    }

    #[test]
    fn a_bus_that_is_slower_than_the_wire_fails_when_the_fifo_cannot_make_up_for_it() {
        let fifo = lance(2_000).unwrap();
        // A word takes 2 us and comes in 1.6: of 20 bytes one is left over, and the FIFO holds 48.
        assert!(!fifo.overflows(Tick::ZERO, 120) && fifo.overflows(Tick::ZERO, 1_518));
        assert!(fifo.runs_empty(Tick::ZERO, 120).is_none());
        assert!(
            fifo.runs_empty(Tick::ZERO, 1_518).is_some_and(|left| (120..1_000).contains(&left))
        );
    }
}
