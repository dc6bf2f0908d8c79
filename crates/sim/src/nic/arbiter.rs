//! Bus arbitration: determines when a NIC gets the bus of its machine.
//!
//! At most one other bus master, such as a disk controller or a frame buffer, competes with the
//! NIC. Time is divided into equal periods. In each of them, the other bus master takes the bus
//! once, at a random time. The random numbers of a period come from a stream of their own, so the
//! result does not depend on the order in which times are queried.

use crate::parameter::{ParameterError, Section};
use crate::rng::Stream;
use linerate_units::{Span, Tick};

/// Parameters of a machine's bus, from its file. Besides the NIC, one other bus master may use the
/// bus, such as a disk controller.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BusParameters {
    /// Time from the NIC's request until it gets an idle bus.
    grant: Span,
    /// Fraction of the time in which the other bus master has the bus, from 0 to 1.
    others: f64,
    /// Time for which the other bus master has the bus each time that it takes it.
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

    /// Returns the fraction of the bus that the other bus master uses, in 65,536ths.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share between 0 and 1, whose range was checked"
    )]
    pub(crate) fn taken(&self) -> u64 {
        (self.others * 65_536.0).round() as u64
    }

    /// Returns the length of the periods, in each of which the other bus master takes the bus once.
    /// Returns `None` if there is no other bus master.
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

/// The arbiter of a machine's bus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arbiter {
    grant: Span,
    hold: Span,
    period: Option<Span>,
    seed: u64,
    /// Number of the random stream for the first period. Each later period uses the next number.
    stream: u64,
}

impl Arbiter {
    /// Creates an arbiter. It uses the random streams of `seed` from number `stream` on.
    pub(crate) fn new(parameters: BusParameters, seed: u64, stream: u64) -> Self {
        let BusParameters { grant, hold, .. } = parameters;
        Self { grant, hold, period: parameters.period(), seed, stream }
    }

    /// Returns whether the NIC is the only bus master.
    pub(super) const fn is_unshared(&self) -> bool {
        self.period.is_none()
    }

    /// Returns the time at which a NIC gets the bus that it requests at `asked`. It gets an idle
    /// bus after the grant time. If the other bus master has the bus then, the NIC waits until that
    /// master releases it, and gets it immediately.
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
    fn a_request_waits_until_the_other_master_releases_the_bus() {
        let parameters = BusParameters { grant: Span::ZERO, others: 0.25, hold: micros(30) };
        let arbiter = Arbiter::new(parameters, 1, 0);
        let waits: Vec<u64> = (0..120_000)
            .map(|number| Tick::ZERO + Span::from_picos(number * 100_000))
            .map(|asked| arbiter.granted(asked).since(asked).as_picos())
            .collect();
        let waited = waits.iter().filter(|&&wait| wait > 0).count();
        let longest = waits.iter().max().copied().unwrap_or(0);
        assert_eq!(waited, 30_000, "the other master has the bus for a quarter of the time");
        assert!((29_900_000..=30_000_000).contains(&longest), "{longest} ps");
    }

    #[test]
    fn a_bus_without_another_master_is_granted_after_the_grant_time() {
        let parameters = BusParameters { grant: micros(2), ..BusParameters::default() };
        let arbiter = Arbiter::new(parameters, 1, 0);
        assert!(arbiter.is_unshared());
        assert_eq!(arbiter.granted(Tick::ZERO), Tick::ZERO + micros(2));
    }
}
