//! When a card that asks for the bus of its machine gets it: at once, or when somebody else has let go of it.
//!
//! The other master (a disk, a frame buffer) takes the bus once in each of its periods, at a time that is drawn for that
//! period alone: whoever asks gets the same answer, in whatever order times are asked for.

use crate::parameter::{ParameterError, Section};
use crate::rng::Stream;
use linerate_units::{Span, Tick};

/// What a machine's file says of its bus and its other master.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BusParameters {
    /// From the card's word until it has a free bus.
    grant: Span,
    /// The part of the time that the other master has the bus.
    others: f64,
    /// For how long it has it each time.
    hold: Span,
}

impl BusParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        if !section.has("others") {
            return Ok(Self::default());
        }
        Ok(Self {
            grant: section.span("grant")?,
            others: section.share("others")?,
            hold: section.span("hold")?,
        })
    }

    /// The part of the time that is the other master's, in 65,536ths.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share between 0 and 1, whose range was checked"
    )]
    pub(crate) fn taken(&self) -> u64 {
        (self.others * 65_536.0).round() as u64
    }

    /// The time from one tenure of the other master to the next, on average; none if it never wants the bus.
    fn period(&self) -> Option<Span> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a time, of numbers whose ranges were checked"
        )]
        let picos = (self.hold.as_picos() as f64 / self.others) as u64;
        (self.others > 0.0 && self.hold > Span::ZERO).then(|| Span::from_picos(picos))
    }
}

/// Who gets the bus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arbiter {
    grant: Span,
    hold: Span,
    period: Option<Span>,
    seed: u64,
    /// The first of the random streams of its periods.
    stream: u64,
}

impl Arbiter {
    /// The arbiter of a bus, which draws from its own random streams.
    pub(crate) fn new(parameters: BusParameters, seed: u64, stream: u64) -> Self {
        let BusParameters { grant, hold, .. } = parameters;
        Self { grant, hold, period: parameters.period(), seed, stream }
    }

    /// Does nobody but the card want the bus?
    pub(super) const fn is_quiet(&self) -> bool {
        self.period.is_none()
    }

    /// When a card has the bus that asks for it now. Who has asked goes next, even if the other master wants it again.
    pub(super) fn granted(&self, asked: Tick) -> Tick {
        let wanted = asked + self.grant;
        let Some(period) = self.period else { return wanted };
        let number = wanted.as_picos() / period.as_picos();
        let mut random = Stream::new(self.seed, self.stream.wrapping_add(number));
        let begins = Tick::ZERO
            + period * number
            + Span::from_picos(random.below((period - self.hold).as_picos()));
        let ends = begins + self.hold;
        if wanted < begins || wanted >= ends { wanted } else { ends }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(count: u64) -> Span {
        Span::from_picos(count * 1_000_000)
    }

    #[test]
    fn whoever_asks_waits_until_the_other_master_lets_go_and_no_longer() {
        let parameters = BusParameters { grant: Span::ZERO, others: 0.25, hold: micros(30) };
        let arbiter = Arbiter::new(parameters, 1, 0);
        let waits: Vec<u64> = (0..120_000)
            .map(|number| Tick::ZERO + Span::from_picos(number * 100_000))
            .map(|asked| arbiter.granted(asked).since(asked).as_picos())
            .collect();
        let waited = waits.iter().filter(|&&wait| wait > 0).count();
        let longest = waits.iter().max().copied().unwrap_or(0);
        assert_eq!(waited, 30_000, "a quarter of the time");
        assert!((29_900_000..=30_000_000).contains(&longest), "{longest} ps");
    }

    #[test]
    fn a_bus_without_another_master_is_granted_after_its_own_time() {
        let parameters = BusParameters { grant: micros(2), ..BusParameters::default() };
        let arbiter = Arbiter::new(parameters, 1, 0);
        assert!(arbiter.is_quiet());
        assert_eq!(arbiter.granted(Tick::ZERO), Tick::ZERO + micros(2));
    }
}
