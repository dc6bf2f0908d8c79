//! The FIFO between the wire and the machine's bus. If the NIC gets the bus too late, the FIFO
//! overflows (while a frame is received) or underruns (while a frame is sent).

use super::arbiter::Arbiter;
use super::parameters::DmaParameters;
use crate::medium::PREAMBLE_BITS;
use linerate_units::{Span, Tick};

/// Length in bytes of the frame for which the constructor checks whether the FIFO can overflow or
/// underrun at all.
const LONGEST: u64 = 65_536;

/// The FIFO of the transmit or the receive half, and its DMA path to memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fifo {
    bytes: u64,
    /// Number of bytes that the NIC moves each time that it gets the bus. It moves them in words of
    /// `word` bytes, each of which takes the time `cycle` on the bus.
    burst: u64,
    word: u64,
    cycle: Span,
    /// Time of one byte on the wire.
    byte: Span,
    arbiter: Arbiter,
}

impl Fifo {
    /// Creates a FIFO with room for `bytes` bytes. Returns `None` if the bus is always fast enough,
    /// so that the FIFO can neither overflow nor underrun.
    pub(super) fn new(
        bytes: u64,
        dma: &DmaParameters,
        byte: Span,
        arbiter: Arbiter,
    ) -> Option<Self> {
        let word = dma.word;
        let fifo = Self { bytes, burst: dma.burst * word, word, cycle: dma.cycle, byte, arbiter };
        let (overflows, underruns) =
            (fifo.overflows(Tick::ZERO, LONGEST), fifo.underruns(Tick::ZERO, LONGEST));
        (!arbiter.is_unshared() || overflows || underruns.is_some()).then_some(fifo)
    }

    /// Returns the duration of the preamble, which precedes the first byte of a frame.
    pub(super) fn preamble(&self) -> Span {
        self.byte * (PREAMBLE_BITS / 8)
    }

    /// Returns the time in which the bus moves this many bytes.
    fn moved(&self, bytes: u64) -> Span {
        self.cycle * bytes.div_ceil(self.word)
    }

    /// Returns the number of bytes that the wire carries between `since` and `now`.
    fn carried(&self, since: Tick, now: Tick) -> u64 {
        now.since(since).as_picos() / self.byte.as_picos()
    }

    /// Returns whether a received frame of `length` bytes overflows the FIFO. Its first byte
    /// arrives at `begin`. The NIC requests the bus as soon as a whole burst has arrived, or the
    /// rest of the frame if that is less.
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

    /// Returns the number of bytes of a frame that leave before the FIFO underruns, or `None` if it
    /// does not underrun. The frame has `length` bytes. Its first byte leaves at `begin`, when the
    /// FIFO is full or contains the whole frame. The NIC requests the bus as soon as the FIFO has
    /// room for a burst.
    pub(super) fn underruns(&self, begin: Tick, length: u64) -> Option<u64> {
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
    fn the_preamble_lasts_sixty_four_bits() {
        assert_eq!(lance(2_000).unwrap().preamble(), Span::from_picos(6_400_000));
    }

    #[test]
    fn an_unshared_bus_faster_than_the_wire_never_fails() {
        assert!(lance(600).is_none() && lance(0).is_none());
    }

    #[test]
    fn a_bus_slower_than_the_wire_fails_when_the_fifo_is_used_up() {
        let fifo = lance(2_000).unwrap();
        // A word of two bytes takes 2 us on the bus and 1.6 us on the wire. While the wire delivers
        // five bytes, the bus removes four, so one of five bytes stays in the FIFO. The FIFO of 48
        // bytes is thus full after about 240 bytes of a frame.
        assert!(!fifo.overflows(Tick::ZERO, 120) && fifo.overflows(Tick::ZERO, 1_518));
        assert!(fifo.underruns(Tick::ZERO, 120).is_none());
        assert!(fifo.underruns(Tick::ZERO, 1_518).is_some_and(|left| (120..1_000).contains(&left)));
    }
}
