//! The parameters of impairments, and the text that specifies them.

use linerate_units::{Bytes, Duration, ParseUnitError, Rate};
use std::str::FromStr;
use thiserror::Error;

/// The impairments of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impairment {
    /// The proportion of frames that are dropped.
    pub loss: Probability,
    /// The number of consecutive frames that are lost in each burst. The proportion of dropped
    /// frames remains [`loss`](Self::loss): bursts of five frames are a fifth as frequent as losses
    /// of one frame.
    pub loss_burst: u32,
    /// The proportion of frames that are selected for an ECN mark, as from a congested router (RFC
    /// 3168). A selected frame whose sender does not support ECN passes unmarked.
    pub mark: Probability,
    /// The proportion of frames that arrive twice. The duplicate directly follows the original.
    pub duplicate: Probability,
    /// The proportion of frames in which one bit, at a random position, is inverted. The link has
    /// no frame check sequence by which it could detect the error, so the damaged frame reaches the
    /// host.
    pub corrupt: Probability,
    /// The proportion of frames that are held until other frames have overtaken them.
    pub reorder: Probability,
    /// The number of frames that must overtake a frame held for reordering before it is released.
    pub reorder_by: u32,
    /// The maximum time for which a frame is held for reordering. It is then released, even if
    /// fewer than `reorder_by` frames have overtaken it.
    pub reorder_within: Duration,
    /// The delay of every frame, which [`jitter`](Self::jitter) can lengthen or shorten.
    pub delay: Duration,
    /// The maximum by which a frame's delay is longer or shorter than [`delay`](Self::delay). The
    /// deviations are uniformly distributed. Frames stay in order: a frame with a short delay waits
    /// for the frames before it.
    pub jitter: Duration,
    /// The bit rate of the bottleneck, or `None` for a path without one.
    pub rate: Option<Rate>,
    /// The limit of the queue in front of the bottleneck, in bytes. A frame is dropped if, when it
    /// arrives, the bottleneck still has to send more bytes than this.
    pub queue: Bytes,
    /// The maximum number of frames that the link holds: frames that are delayed, or held for
    /// reordering, or ready but not received yet. A frame that would exceed this number is dropped.
    pub limit: usize,
    /// The length of the longest frame that passes, in bytes; `None` for no limit. Longer frames
    /// are dropped silently, like on a path with a black hole for path MTU discovery.
    pub longest: Option<Bytes>,
    /// The number of frames, counted from the first, to which the limit `longest` does not apply
    /// yet.
    pub longest_after: u64,
}

impl Impairment {
    /// A link without impairments.
    pub const NONE: Self = Self {
        loss: Probability::NEVER,
        loss_burst: 1,
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

    /// Returns whether frames must pass the delay stage, because the impairment has a delay, jitter
    /// or a bottleneck.
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
        let frames = || value.parse().ok().filter(|&count| count > 0).ok_or_else(wrong_number);
        match key {
            "loss" => self.loss = percentage()?,
            "loss-burst" => self.loss_burst = frames()?,
            "mark" => self.mark = percentage()?,
            "duplicate" => self.duplicate = percentage()?,
            "corrupt" => self.corrupt = percentage()?,
            "reorder" => self.reorder = percentage()?,
            "reorder-by" => self.reorder_by = frames()?,
            "reorder-within" => self.reorder_within = value.parse().map_err(wrong_unit)?,
            "delay" => self.delay = value.parse().map_err(wrong_unit)?,
            "jitter" => self.jitter = value.parse().map_err(wrong_unit)?,
            "rate" => {
                let rate: Rate = value.parse().map_err(wrong_unit)?;
                self.rate = Some(rate).filter(|rate| rate.bits_per_second() > 0);
                self.rate.ok_or_else(|| ImpairmentError::LetsNothingThrough {
                    key: key.to_owned(),
                    value: value.to_owned(),
                })?;
            }
            "queue" => self.queue = value.parse().map_err(wrong_unit)?,
            "longest" => {
                let longest: Bytes = value.parse().map_err(wrong_unit)?;
                self.longest = Some(longest).filter(|longest| longest.count() > 0);
                self.longest.ok_or_else(|| ImpairmentError::LetsNothingThrough {
                    key: key.to_owned(),
                    value: value.to_owned(),
                })?;
            }
            "longest-after" => self.longest_after = value.parse().map_err(|_| wrong_number())?,
            "limit" => {
                self.limit =
                    value.parse().ok().filter(|&limit| limit > 0).ok_or_else(wrong_number)?;
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

/// The impairments of both directions, seen from the host of the link.
///
/// As text: `loss=1%,loss-burst=5,mark=1%,duplicate=0.5%,reorder=1%,reorder-by=3,
/// reorder-within=10ms,delay=10ms,jitter=2ms,rate=100Mb/s,queue=256KiB,corrupt=0.1%,longest=1300B,
/// longest-after=1000,limit=10000`, each item at most once, in any order. A prefix
/// `rx.` or `tx.` restricts an item to received or sent frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairments {
    /// The impairments of received frames.
    pub receive: Impairment,
    /// The impairments of sent frames.
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

/// The probability of an impairment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probability {
    /// The impairment applies to a frame if a random 64-bit number is below this threshold.
    /// `u64::MAX` means that it applies to every frame.
    threshold: u64,
}

impl Probability {
    /// The probability zero.
    pub const NEVER: Self = Self { threshold: 0 };
    /// The probability one.
    pub const ALWAYS: Self = Self { threshold: u64::MAX };

    /// Creates a probability from a percentage. Returns `None` unless it is between 0 and 100.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is between zero and 2^64, and the cast saturates"
    )]
    pub fn from_percent(percent: f64) -> Option<Self> {
        let two_to_the_64th = 2.0_f64.powi(64);
        (0.0..=100.0)
            .contains(&percent)
            .then_some(Self { threshold: (percent / 100.0 * two_to_the_64th) as u64 })
    }

    /// Returns whether the probability is above zero.
    pub(super) const fn is_possible(self) -> bool {
        self.threshold > 0
    }

    /// Returns the probability with which a frame outside a burst must begin a burst of `length`
    /// losses. The proportion of lost frames is then `self`. For that, on average `length * (1 /
    /// self - 1)` frames must lie between two bursts.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a probability of 53 bits, and the cast saturates"
    )]
    pub(super) fn of_burst(self, length: u32) -> Self {
        if length == 1 || self.threshold == u64::MAX {
            return self;
        }
        let two_to_the_64th = 2.0_f64.powi(64);
        let inside = self.threshold as f64 / two_to_the_64th;
        let begins = inside / (inside + f64::from(length) * (1.0 - inside));
        Self { threshold: (begins * two_to_the_64th) as u64 }
    }

    /// Returns whether the impairment applies to a frame, for which the uniformly distributed
    /// random number `draw` was drawn.
    pub(super) const fn hits(self, draw: u64) -> bool {
        draw < self.threshold || self.threshold == u64::MAX
    }
}

impl Default for Probability {
    fn default() -> Self {
        Self::NEVER
    }
}

/// Parses a percentage such as `1%` or `0.05%`.
impl FromStr for Probability {
    type Err = ImpairmentError;

    fn from_str(text: &str) -> Result<Self, ImpairmentError> {
        let number = text.strip_suffix('%').and_then(|number| number.trim().parse().ok());
        number
            .and_then(Self::from_percent)
            .ok_or_else(|| ImpairmentError::Percentage { text: text.to_owned() })
    }
}

/// The error for text that does not specify impairments. The user who typed it can correct it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ImpairmentError {
    /// The text names an impairment that does not exist.
    #[error(
        "there is no impairment `{key}`: choose loss, loss-burst, mark, duplicate, corrupt, \
         reorder, reorder-by, reorder-within, delay, jitter, rate, queue, longest, \
         longest-after, limit"
    )]
    Unknown {
        /// The unknown name that was given.
        key: String,
    },
    /// The text gives an impairment twice.
    #[error("`{key}` is given twice: give it once")]
    Twice {
        /// The name of the impairment.
        key: String,
    },
    /// The text gives an impairment without a value.
    #[error("`{item}` does not say how much: write `name=value`, such as `loss=1%`")]
    NoValue {
        /// The text of the item without a value.
        item: String,
    },
    /// The value of a proportion is not a percentage.
    #[error("`{text}` is not a percentage: write 0% to 100%")]
    Percentage {
        /// The text of the value.
        text: String,
    },
    /// The value is so small that no frame would pass, such as a rate of zero.
    #[error(
        "`{key}={value}` lets nothing through: write a rate such as 100Mb/s, a length such as 1400B"
    )]
    LetsNothingThrough {
        /// The name of the impairment.
        key: String,
        /// The value that was given.
        value: String,
    },
    /// The value of a time, a rate or a number of bytes cannot be parsed.
    #[error("`{key}` is wrong: {error}")]
    Unit {
        /// The name of the impairment.
        key: String,
        /// The reason why the value cannot be parsed.
        error: ParseUnitError,
    },
    /// The value of a number of frames is not a number, or is zero.
    #[error("`{key}={value}` is not a number of frames: write a whole number from 1 on")]
    Number {
        /// The name of the impairment.
        key: String,
        /// The value that was given.
        value: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_apply_to_both_directions_or_to_one() {
        let text = "loss=1%, mark=3%,duplicate=0.5%,reorder=2%,delay=10ms,jitter=200us,\
                    corrupt=0.1%,loss-burst=4,tx.reorder-by=5,rx.limit=7,";
        let read: Impairments = text.parse().unwrap();
        let percent = |percent| Probability::from_percent(percent).unwrap();
        let both = Impairment {
            loss: percent(1.0),
            loss_burst: 4,
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
    fn invalid_impairments_are_explained() {
        let complaint = |text: &str| text.parse::<Impairments>().unwrap_err().to_string();
        assert!(complaint("lost=1%").starts_with("there is no impairment `lost`: choose loss, "));
        assert_eq!(
            complaint("loss"),
            "`loss` does not say how much: write `name=value`, such as `loss=1%`"
        );
        for text in ["loss=1", "loss=-1%", "loss=101%", "loss=NaN%", "loss=%", "tx.corrupt=much"] {
            assert!(complaint(text).ends_with("is not a percentage: write 0% to 100%"), "{text}");
        }
        assert!(complaint("loss=1%,delay=1ms,loss=2%").starts_with("`loss` is given twice"));
        assert!(complaint("rx.loss=1%,rx.loss=2%").starts_with("`rx.loss` is given twice"));
        assert!(complaint("rx.loss=1").starts_with("`loss=1` is not a percentage"));
        assert!(
            complaint("delay=soon")
                .starts_with("`delay` is wrong: `soon` is not an amount of time")
        );
        assert!(complaint("rate=fast").starts_with("`rate` is wrong: "));
        assert!(complaint("rate=0Mb/s").starts_with("`rate=0Mb/s` lets nothing through"));
        assert!(complaint("longest=0B").starts_with("`longest=0B` lets nothing through"));
        assert!(complaint("longest-after=soon").contains("not a number of frames"));
        assert!(complaint("limit=0").contains("from 1 on"));
        assert!(complaint("rx.reorder-by=x").contains("from 1 on"));
        assert!(complaint("loss-burst=0").contains("from 1 on"));
    }

    #[test]
    fn never_and_always_are_exact() {
        assert!(!Probability::NEVER.hits(0));
        assert!(Probability::from_percent(100.0).unwrap().hits(u64::MAX));
        assert_eq!("100%".parse(), Ok(Probability::ALWAYS));
        assert_eq!("0%".parse(), Ok(Probability::NEVER));
    }
}
