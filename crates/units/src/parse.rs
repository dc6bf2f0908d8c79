//! Reading a number with a unit's suffix, as people type it.

use alloc::format;
use alloc::string::{String, ToString};
use thiserror::Error;

/// The text is not an amount of the unit that was asked for. The person who typed it can mend it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseUnitError {
    /// It is no number, or its suffix is none of the unit's.
    #[error("`{text}` is no amount of {unit}: write a number with one of the suffixes {suffixes}")]
    NoAmount {
        /// What was written.
        text: String,
        /// What was to be.
        unit: &'static str,
        /// The unit's suffixes.
        suffixes: String,
    },
    /// It is beyond 64 bits of the unit's smallest step.
    #[error("`{text}` is too large an amount of {unit}: the most is {most}")]
    TooLarge {
        /// What was written.
        text: String,
        /// What it is an amount of.
        unit: &'static str,
        /// The largest whole number with the same suffix that is not.
        most: String,
    },
}

/// The suffixes of a unit and what each multiplies by.
#[derive(Debug)]
pub(crate) struct Scale {
    pub(crate) unit: &'static str,
    pub(crate) suffixes: &'static [(&'static str, u64)],
}

/// The amount that `text` names, in the unit's smallest step; `bare` is what a number without a
/// suffix counts in. Fractions are cut, amounts beyond 64 bits refused.
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

/// Is `suffix` another way to write `name`? Large and small letters are taken for the same, but nobody writes a large
/// B who means bits: it would be an eighth of what was meant.
fn is_meant(name: &str, suffix: &str) -> bool {
    name.eq_ignore_ascii_case(suffix) && (name.contains('B') || !suffix.contains('B'))
}

/// The digits in front of a number's point, and those behind it; none if it is no number, or a finer one than anybody
/// means.
fn number(digits: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_empty = whole.is_empty() && fraction.is_empty();
    (!is_empty && !fraction.contains('.') && fraction.len() <= 12).then_some((whole, fraction))
}

/// A number times `factor`, exactly; none if that is beyond 64 bits.
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
    fn what_is_no_amount_is_refused_with_the_suffixes_that_exist() {
        for text in ["", ".", "-1", "1.2.3", "1 furlong", "1e3", "0.0000000000001"] {
            let error = parse_scaled(text, &BYTES, 1).unwrap_err().to_string();
            assert!(error.contains("B KiB"), "{error}");
        }
    }

    #[test]
    fn what_is_too_large_is_refused_with_the_most_that_there_is_in_the_same_suffix() {
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
