//! What is done to frames, and the text in which people ask for it.

use linerate_units::{Bytes, Duration, ParseUnitError, Rate};
use std::str::FromStr;
use thiserror::Error;

/// What is done to the frames of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impairment {
    /// How many frames are thrown away.
    pub loss: Probability,
    /// How many frames are marked by a congested router, where their senders have agreed to that (RFC
    /// 3168). The others pass: a handshake does not depend on chance, and what is lost is
    /// [`loss`](Self::loss).
    pub mark: Probability,
    /// How many frames arrive twice, the copy right behind the original.
    pub duplicate: Probability,
    /// How many frames arrive with one bit turned over, anywhere in them. What a frame check sequence
    /// would catch is caught by nothing here.
    pub corrupt: Probability,
    /// How many frames are held back until others have passed them.
    pub reorder: Probability,
    /// Frames that pass one that is held back.
    pub reorder_by: u32,
    /// The longest time that a frame is held back, should not that many follow.
    pub reorder_within: Duration,
    /// How long every frame is under way.
    pub delay: Duration,
    /// How far the delay of a frame may differ from that, in either direction, each difference being as
    /// likely as the next. Frames do not overtake each other by it.
    pub jitter: Duration,
    /// How fast frames leave the narrowest part of the way; `None` for a way of any width.
    pub rate: Option<Rate>,
    /// Frames of so many bytes may wait in front of that; those that come while as many do are thrown
    /// away.
    pub queue: Bytes,
    /// Frames that are under way or held back at most; more are thrown away.
    pub limit: usize,
    /// Bytes of the longest frame that passes; longer ones vanish, and nobody says so: a path whose routers
    /// keep silent.
    pub longest: Option<Bytes>,
    /// Frames that pass, however long, before that begins.
    pub longest_after: u64,
}

impl Impairment {
    /// Nothing is done.
    pub const NONE: Self = Self {
        loss: Probability::NEVER,
        mark: Probability::NEVER,
        duplicate: Probability::NEVER,
        corrupt: Probability::NEVER,
        reorder: Probability::NEVER,
        reorder_by: 3,
        reorder_within: Duration::from_millis(10),
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        rate: None,
        queue: Bytes::new(256 << 10),
        limit: 10_000,
        longest: None,
        longest_after: 0,
    };

    /// Are frames under way for a time?
    pub(super) fn takes_time(&self) -> bool {
        self.delay > Duration::ZERO || self.jitter > Duration::ZERO || self.rate.is_some()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ImpairmentError> {
        let percentage = || {
            value
                .parse()
                .map_err(|_| ImpairmentError::Percentage { text: format!("{key}={value}") })
        };
        let wrong_unit = |error| ImpairmentError::Unit { key: key.to_owned(), error };
        let wrong_number =
            || ImpairmentError::Number { key: key.to_owned(), value: value.to_owned() };
        match key {
            "loss" => self.loss = percentage()?,
            "mark" => self.mark = percentage()?,
            "duplicate" => self.duplicate = percentage()?,
            "corrupt" => self.corrupt = percentage()?,
            "reorder" => self.reorder = percentage()?,
            "reorder-by" => {
                self.reorder_by =
                    value.parse().ok().filter(|&by| by > 0).ok_or_else(wrong_number)?;
            }
            "reorder-within" => self.reorder_within = value.parse().map_err(wrong_unit)?,
            "delay" => self.delay = value.parse().map_err(wrong_unit)?,
            "jitter" => self.jitter = value.parse().map_err(wrong_unit)?,
            "rate" => {
                let rate: Rate = value.parse().map_err(wrong_unit)?;
                self.rate = Some(rate).filter(|rate| rate.bits_per_second() > 0);
                self.rate.ok_or_else(|| ImpairmentError::NoRate {
                    key: key.to_owned(),
                    value: value.to_owned(),
                })?;
            }
            "queue" => self.queue = value.parse().map_err(wrong_unit)?,
            "longest" => {
                let longest: Bytes = value.parse().map_err(wrong_unit)?;
                self.longest = Some(longest).filter(|longest| longest.count() > 0);
                self.longest.ok_or_else(|| ImpairmentError::NoRate {
                    key: key.to_owned(),
                    value: value.to_owned(),
                })?;
            }
            "longest-after" => self.longest_after = value.parse().map_err(|_| wrong_number())?,
            "limit" => {
                self.limit =
                    value.parse().ok().filter(|&limit| limit > 0).ok_or_else(wrong_number)?
            }
            _ => return Err(ImpairmentError::Unknown { key: key.to_owned() }),
        }
        Ok(())
    }
}

impl Default for Impairment {
    fn default() -> Self {
        Self::NONE
    }
}

/// What is done to the frames of both directions, seen from the host that has the link.
///
/// As text: `loss=1%,mark=1%,duplicate=0.5%,reorder=1%,reorder-by=3,reorder-within=10ms,delay=10ms,
/// jitter=2ms,rate=100Mb/s,queue=256KiB,corrupt=0.1%,longest=1300B,longest-after=1000,limit=10000`, each
/// item once, in any order; `rx.` or `tx.` in front of a name makes it one for received or for sent frames
/// only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairments {
    /// What is done to frames that the host receives.
    pub receive: Impairment,
    /// What is done to frames that the host sends.
    pub transmit: Impairment,
}

impl FromStr for Impairments {
    type Err = ImpairmentError;

    fn from_str(text: &str) -> Result<Self, ImpairmentError> {
        let mut impairments = Self::default();
        let mut given = Vec::new();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let Some((key, value)) = item.split_once('=') else {
                return Err(ImpairmentError::NoValue { item: item.to_owned() });
            };
            let (key, value) = (key.trim(), value.trim());
            if given.contains(&key) {
                return Err(ImpairmentError::Twice { key: key.to_owned() });
            }
            given.push(key);
            if let Some(key) = key.strip_prefix("rx.") {
                impairments.receive.set(key, value)?;
            } else if let Some(key) = key.strip_prefix("tx.") {
                impairments.transmit.set(key, value)?;
            } else {
                impairments.receive.set(key, value)?;
                impairments.transmit.set(key, value)?;
            }
        }
        Ok(impairments)
    }
}

/// How often something happens to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probability {
    /// It happens if a number drawn from all 64-bit numbers is less than this; the largest is "always".
    threshold: u64,
}

impl Probability {
    /// To no frame.
    pub const NEVER: Self = Self { threshold: 0 };
    /// To every frame.
    pub const ALWAYS: Self = Self { threshold: u64::MAX };

    /// To so many frames of a hundred; `None` if it is not 0 to 100.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number between zero and two to the 64th; the cast saturates"
    )]
    pub fn from_percent(percent: f64) -> Option<Self> {
        let two_to_the_64th = 2.0_f64.powi(64);
        (0.0..=100.0)
            .contains(&percent)
            .then_some(Self { threshold: (percent / 100.0 * two_to_the_64th) as u64 })
    }

    /// Whether it happens to any frame.
    pub(super) const fn is_possible(self) -> bool {
        self.threshold > 0
    }

    /// Whether it happens to the frame for which `draw` was drawn.
    pub(super) const fn hits(self, draw: u64) -> bool {
        draw < self.threshold || self.threshold == u64::MAX
    }
}

impl Default for Probability {
    fn default() -> Self {
        Self::NEVER
    }
}

/// A percentage: `1%`, `0.05%`.
impl FromStr for Probability {
    type Err = ImpairmentError;

    fn from_str(text: &str) -> Result<Self, ImpairmentError> {
        let number = text.strip_suffix('%').and_then(|number| number.trim().parse().ok());
        number
            .and_then(Self::from_percent)
            .ok_or_else(|| ImpairmentError::Percentage { text: text.to_owned() })
    }
}

/// The text asks for nothing that can be done to frames. The person who typed it can mend it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImpairmentError {
    /// There is no such impairment.
    #[error(
        "there is no impairment `{key}`: choose loss, mark, duplicate, corrupt, reorder, reorder-by, reorder-within, delay, jitter, rate, queue, longest, longest-after, limit"
    )]
    Unknown {
        /// What was written.
        key: String,
    },
    /// It was said twice how much of it.
    #[error("`{key}` is given twice: give it once")]
    Twice {
        /// The impairment.
        key: String,
    },
    /// It was not said how much of it.
    #[error("`{item}` does not say how much: write `name=value`, such as `loss=1%`")]
    NoValue {
        /// What was written.
        item: String,
    },
    /// It is no percentage.
    #[error("`{text}` is no percentage: write 0% to 100%")]
    Percentage {
        /// What was written.
        text: String,
    },
    /// Nothing would ever arrive.
    #[error(
        "`{key}={value}` lets nothing through: write a rate such as 100Mb/s, a length such as 1400B"
    )]
    NoRate {
        /// The impairment.
        key: String,
        /// What was written.
        value: String,
    },
    /// It is no time, no rate, or no number of bytes.
    #[error("`{key}` is wrong: {error}")]
    Unit {
        /// The impairment.
        key: String,
        /// What is wrong.
        error: ParseUnitError,
    },
    /// It is no number of frames.
    #[error("`{key}={value}` is no number of frames: write a whole number from 1 on")]
    Number {
        /// The impairment.
        key: String,
        /// What was written.
        value: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_item_by_item_for_both_directions_or_one() {
        let text = "loss=1%, mark=3%,duplicate=0.5%,reorder=2%,delay=10ms,jitter=200us,corrupt=0.1%,tx.reorder-by=5,rx.limit=7,";
        let read: Impairments = text.parse().unwrap();
        let percent = |percent| Probability::from_percent(percent).unwrap();
        let both = Impairment {
            loss: percent(1.0),
            mark: percent(3.0),
            duplicate: percent(0.5),
            reorder: percent(2.0),
            corrupt: percent(0.1),
            delay: Duration::from_millis(10),
            jitter: Duration::from_micros(200),
            ..Impairment::NONE
        };
        assert_eq!(read.receive, Impairment { limit: 7, ..both });
        assert_eq!(read.transmit, Impairment { reorder_by: 5, ..both });
        assert_eq!("".parse(), Ok(Impairments::default()));
    }

    #[test]
    fn what_cannot_be_done_is_refused_in_words() {
        let complaint = |text: &str| text.parse::<Impairments>().unwrap_err().to_string();
        assert!(complaint("lost=1%").starts_with("there is no impairment `lost`: choose loss, "));
        assert_eq!(
            complaint("loss"),
            "`loss` does not say how much: write `name=value`, such as `loss=1%`"
        );
        for text in ["loss=1", "loss=-1%", "loss=101%", "loss=NaN%", "loss=%", "tx.corrupt=much"] {
            assert!(complaint(text).ends_with("is no percentage: write 0% to 100%"), "{text}");
        }
        assert!(complaint("loss=1%,delay=1ms,loss=2%").starts_with("`loss` is given twice"));
        assert!(complaint("rx.loss=1%,rx.loss=2%").starts_with("`rx.loss` is given twice"));
        assert!(complaint("rx.loss=1").starts_with("`loss=1` is no percentage"));
        assert!(
            complaint("delay=soon").starts_with("`delay` is wrong: `soon` is no amount of time")
        );
        assert!(complaint("rate=fast").starts_with("`rate` is wrong: "));
        assert!(complaint("rate=0Mb/s").starts_with("`rate=0Mb/s` lets nothing through"));
        assert!(complaint("longest=0B").starts_with("`longest=0B` lets nothing through"));
        assert!(complaint("longest-after=soon").contains("no number of frames"));
        assert!(complaint("limit=0").contains("from 1 on"));
        assert!(complaint("rx.reorder-by=x").contains("from 1 on"));
    }

    #[test]
    fn never_and_always_are_exact() {
        assert!(!Probability::NEVER.hits(0));
        assert!(Probability::from_percent(100.0).unwrap().hits(u64::MAX));
        assert_eq!("100%".parse(), Ok(Probability::ALWAYS));
        assert_eq!("0%".parse(), Ok(Probability::NEVER));
    }
}
