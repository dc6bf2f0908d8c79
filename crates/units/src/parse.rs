//! A parser for numbers with a unit suffix.

use alloc::format;
use alloc::string::{String, ToString};
use thiserror::Error;

/// The error for text that is not an amount of the requested unit. The person who typed the text
/// can correct it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseUnitError {
    /// The text is not a number, or its suffix does not belong to the unit.
    #[error(
        "`{text}` is not an amount of {unit}: write a number with one of the suffixes {suffixes}"
    )]
    NoAmount {
        /// The rejected text.
        text: String,
        /// The name of the requested unit.
        unit: &'static str,
        /// All suffixes that the requested unit accepts.
        suffixes: String,
    },
    /// The amount does not fit into 64 bits when it is counted in the smallest step of the unit,
    /// such as nanoseconds.
    #[error("`{text}` is too large an amount of {unit}: the most is {most}")]
    TooLarge {
        /// The rejected text.
        text: String,
        /// The name of the requested unit.
        unit: &'static str,
        /// The largest whole number that is accepted with the suffix in `text`.
        most: String,
    },
}

/// A unit that can be parsed: its name and its suffixes. Each suffix stands for a number of the
/// unit's smallest steps, such as `us` for 1,000 nanoseconds.
#[derive(Debug)]
pub(crate) struct Scale {
    pub(crate) unit: &'static str,
    pub(crate) suffixes: &'static [(&'static str, u64)],
}

/// Parses `text` to an amount, counted in the smallest step of the unit, such as nanoseconds. In a
/// number without a suffix, each 1 stands for `bare` of these steps. Fractions of a step are cut
/// off.
pub(crate) fn parse_scaled(text: &str, scale: &Scale, bare: u64) -> Result<u64, ParseUnitError> {
    let trimmed = text.trim();
    let digits_end =
        trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (digits, suffix) = trimmed.split_at(digits_end);
    let suffix = suffix.trim();
    let factor = if suffix.is_empty() {
        Some(bare)
    } else {
        scale.suffixes.iter().find(|(name, _)| is_meant(name, suffix)).map(|&(_, factor)| factor)
    };
    let Some((factor, (whole, fraction))) = factor.zip(number(digits)) else {
        return Err(ParseUnitError::NoAmount {
            text: text.to_string(),
            unit: scale.unit,
            suffixes: scale
                .suffixes
                .iter()
                .map(|&(name, _)| name)
                .collect::<alloc::vec::Vec<_>>()
                .join(" "),
        });
    };
    scaled(whole, fraction, factor).ok_or_else(|| ParseUnitError::TooLarge {
        text: text.to_string(),
        unit: scale.unit,
        most: format!("{}{suffix}", u64::MAX / factor),
    })
}

/// Is the typed text `suffix` a spelling of the unit's suffix `name`? Case is ignored, with one
/// exception: a typed `B` (bytes) never matches a `b` (bits) in `name`. The result would be wrong
/// by a factor of eight.
fn is_meant(name: &str, suffix: &str) -> bool {
    name.eq_ignore_ascii_case(suffix) && (name.contains('B') || !suffix.contains('B'))
}

/// Splits a number at its decimal point into whole part and fraction. Returns `None` if the text is
/// not a number, or has more than twelve decimals.
fn number(digits: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_empty = whole.is_empty() && fraction.is_empty();
    (!is_empty && !fraction.contains('.') && fraction.len() <= 12).then_some((whole, fraction))
}

/// Multiplies the number `whole.fraction` by `factor` in integer arithmetic, rounded down. Returns
/// `None` if `whole` or `fraction` is not a number, or if one of them or the product exceeds 64
/// bits.
fn scaled(whole: &str, fraction: &str, factor: u64) -> Option<u64> {
    let parse = |part: &str| if part.is_empty() { Some(0) } else { part.parse::<u64>().ok() };
    let denominator = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let numerator = u128::from(parse(whole)?) * denominator + u128::from(parse(fraction)?);
    u64::try_from(numerator.checked_mul(factor.into())? / denominator).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: Scale = Scale { unit: "bytes", suffixes: &[("B", 1), ("KiB", 1024)] };

    #[test]
    fn a_number_is_scaled_by_its_suffix_exactly() {
        assert_eq!(parse_scaled("1.5KiB", &BYTES, 1), Ok(1_536));
        assert_eq!(parse_scaled(" 7 ", &BYTES, 1), Ok(7));
        assert_eq!(parse_scaled("18446744073709551615", &BYTES, 1), Ok(u64::MAX));
    }

    #[test]
    fn rejects_malformed_amounts_and_lists_the_suffixes() {
        for text in ["", ".", "-1", "1.2.3", "1 furlong", "1e3", "0.0000000000001"] {
            let error = parse_scaled(text, &BYTES, 1).unwrap_err().to_string();
            assert!(error.contains("B KiB"), "{error}");
        }
    }

    #[test]
    fn rejects_too_large_amounts_and_prints_the_largest_one_with_that_suffix() {
        const TIME: Scale = Scale { unit: "time", suffixes: &[("h", 3_600_000_000_000)] };
        for (text, scale, bare, most) in [
            ("18446744073709551616", &BYTES, 1, "18446744073709551615"),
            ("99999999999", &TIME, 1_000_000_000, "18446744073"),
            ("18014398509481984 KiB", &BYTES, 1, "18014398509481983KiB"),
            ("18446744073709551615.999999999999h", &TIME, 1, "5124095h"),
            ("99999999999999999999999999999999", &BYTES, 1, "18446744073709551615"),
        ] {
            let error = parse_scaled(text, scale, bare).unwrap_err().to_string();
            let says =
                format!("`{text}` is too large an amount of {}: the most is {most}", scale.unit);
            assert_eq!(error, says);
            assert!(parse_scaled(most, scale, bare).is_ok(), "{most}");
        }
    }
}
