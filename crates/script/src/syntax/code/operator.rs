//! Arithmetic and comparison operators of assertions.

use super::CodeError;

/// Applies an arithmetic operator to two numbers.
pub(super) fn sum(operator: &str, left: f64, right: f64) -> Result<f64, CodeError> {
    #[allow(clippy::cast_possible_truncation, reason = "a conversion of a float saturates")]
    let bits = |value: f64| value as i64;
    #[allow(clippy::cast_precision_loss, reason = "flags are small")]
    Ok(match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "&" => (bits(left) & bits(right)) as f64,
        "|" => (bits(left) | bits(right)) as f64,
        _ if right == 0.0 => return Err(CodeError::Undefined("a division by zero")),
        "/" => left / right,
        "//" => (left / right).floor(),
        _ => left - right * (left / right).floor(),
    })
}

/// Applies a comparison operator to two numbers.
#[allow(clippy::float_cmp, reason = "the numbers are whole, and Python compares them so")]
pub(super) fn compare(operator: &str, left: f64, right: f64) -> bool {
    match operator {
        "==" => left == right,
        "!=" => left != right,
        "<=" => left <= right,
        ">=" => left >= right,
        "<" => left < right,
        _ => left > right,
    }
}
