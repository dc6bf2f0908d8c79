//! Reading a number with a unit's suffix, as people type it.

use alloc::string::{String, ToString};
use thiserror::Error;

/// The text is not an amount of the unit that was asked for. The person who typed it can mend it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is no amount of {unit}: write a number with one of the suffixes {suffixes}")]
pub struct ParseUnitError {
    text: String,
    unit: &'static str,
    suffixes: String,
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
    let digits_end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (digits, suffix) = trimmed.split_at(digits_end);
    let suffix = suffix.trim();
    let factor = if suffix.is_empty() {
        Some(bare)
    } else {
        scale.suffixes.iter().find(|(name, _)| is_meant(name, suffix)).map(|&(_, factor)| factor)
    };
    factor.and_then(|factor| scaled(digits, factor)).ok_or_else(|| ParseUnitError {
        text: text.to_string(),
        unit: scale.unit,
        suffixes: scale.suffixes.iter().map(|&(name, _)| name).collect::<alloc::vec::Vec<_>>().join(" "),
    })
}

/// Is `suffix` another way to write `name`? Large and small letters are taken for the same, but nobody writes a large
/// B who means bits: it would be an eighth of what was meant.
fn is_meant(name: &str, suffix: &str) -> bool {
    name.eq_ignore_ascii_case(suffix) && (name.contains('B') || !suffix.contains('B'))
}

/// `digits` (with at most one point) times `factor`, exactly.
fn scaled(digits: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 12 {
        return None;
    }
    let parse = |part: &str| if part.is_empty() { Some(0) } else { part.parse::<u64>().ok() };
    let denominator = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let numerator = u128::from(parse(whole)?) * denominator + u128::from(parse(fraction)?);
    u64::try_from(numerator * u128::from(factor) / denominator).ok()
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
        for text in ["", ".", "-1", "1.2.3", "1 furlong", "18446744073709551615KiB", "1e3"] {
            let error = parse_scaled(text, &BYTES, 1).unwrap_err().to_string();
            assert!(error.contains("B KiB"), "{error}");
        }
    }
}
