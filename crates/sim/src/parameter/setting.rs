//! An entry of a scenario: a number with unit, range and source, or a word.

use super::{ParameterError, Place};
use serde::Deserialize;
use std::fmt;

/// A number with its unit, range and source.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    /// Value of the number, in `unit`.
    pub value: f64,
    /// Unit of the value, such as `ns`, `ms`, `ns/B`, `%`, `Mb/s`, `B`, `bit` or `m`; `switch` for
    /// 0 or 1; or the name of the counted items, such as `frames`.
    pub unit: String,
    /// Physical lower and upper limit, in `unit`.
    pub range: [f64; 2],
    /// Document or measurement from which the value comes.
    pub source: String,
    /// Whether the value does not come from a source, but was fitted to the eight calibration cells
    /// of the throughput table of 1988.
    #[serde(default)]
    pub tuned: bool,
    /// File that contains the number. A machine file can be based on another machine file; a number
    /// that it does not change is in that base file.
    #[serde(skip)]
    pub file: String,
}

/// The value of an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// A number with unit, range and source.
    Number(Number),
    /// A word, such as the name of a file or of a host.
    Word(String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{} {}", number.value, number.unit),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl Number {
    /// Returns a copy of the number with the value given by `text`.
    ///
    /// # Errors
    /// If `text` is not a number, or the number is outside the range.
    pub(super) fn with_value(&self, key: &str, text: &str) -> Result<Self, ParameterError> {
        let text = text.trim();
        let bare = text.strip_suffix(self.unit.as_str()).unwrap_or(text).trim();
        let value = match bare {
            "on" | "true" if self.unit == "switch" => 1.0,
            "off" | "false" if self.unit == "switch" => 0.0,
            bare => bare.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(|| {
                ParameterError::NotANumber {
                    key: key.to_owned(),
                    value: text.to_owned(),
                    unit: self.unit.clone(),
                }
            })?,
        };
        let changed = Self { value, ..self.clone() };
        changed.check(key, None)?;
        Ok(changed)
    }

    /// Checks that the value is in its range.
    pub(super) fn check(&self, key: &str, place: Option<&Place>) -> Result<(), ParameterError> {
        let [low, high] = self.range;
        if self.value.is_finite() && (low..=high).contains(&self.value) {
            return Ok(());
        }
        Err(ParameterError::OutOfRange {
            key: key.to_owned(),
            place: place.cloned(),
            value: self.value.to_string(),
            unit: self.unit.clone(),
            range: format!("{low} and {high}"),
        })
    }

    /// Returns the factor that converts `unit` to the base unit, or `None` for an unknown unit.
    pub(crate) fn base_factor(&self) -> Option<f64> {
        let (_, one) = Self { value: 1.0, ..self.clone() }.in_base()?;
        Some(one)
    }

    /// Returns the physical quantity that the number measures, and its value in the base unit of
    /// this quantity: picoseconds, picoseconds per byte, bit/s or Hz. A percentage is converted to
    /// a fraction; other numbers have no base unit and are not converted. Returns `None` for an
    /// unknown unit.
    pub(super) fn in_base(&self) -> Option<(Dimension, f64)> {
        let (dimension, factor) = match self.unit.as_str() {
            "ps" => (Dimension::Time, 1.0),
            "ns" => (Dimension::Time, 1e3),
            "us" => (Dimension::Time, 1e6),
            "ms" => (Dimension::Time, 1e9),
            "s" => (Dimension::Time, 1e12),
            "min" => (Dimension::Time, 60e12),
            "ns/B" => (Dimension::TimePerByte, 1e3),
            "%" => (Dimension::Share, 0.01),
            "kb/s" => (Dimension::Rate, 1e3),
            "KB/s" => (Dimension::Rate, 8_192.0),
            "Mb/s" => (Dimension::Rate, 1e6),
            "Gb/s" => (Dimension::Rate, 1e9),
            "MHz" => (Dimension::Frequency, 1e6),
            "switch" => (Dimension::Switch, 1.0),
            "times" => (Dimension::Factor, 1.0),
            "B" | "bit" | "m" | "frames" | "words" | "segments" | "clocks" | "hosts"
            | "packets" | "processors" | "queues" | "connections" => (Dimension::Count, 1.0),
            _ => return None,
        };
        Some((dimension, self.value * factor))
    }
}

/// A physical quantity that a unit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dimension {
    Time,
    TimePerByte,
    Share,
    Rate,
    Frequency,
    Switch,
    Factor,
    Count,
}
