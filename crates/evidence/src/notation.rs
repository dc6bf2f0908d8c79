//! Functions that format figures, so that all reports use uniform notation.

use crate::buffers::BufferSize;
use crate::cell::Cell;
use crate::stats::as_f64;

/// Number of bytes in a KB: 1,024, as in Van Jacobson's table of 1988.
pub const KILOBYTE: f64 = 1_024.0;

/// Formats a rate as a number of KB/s, with thousands separators and without the unit: `1,104`.
#[must_use]
pub fn kilobytes(bytes_per_second: f64) -> String {
    thousands(bytes_per_second / KILOBYTE)
}

/// Formats a bit rate as a number of Mb/s, without the unit: `8.85`, `1,234`.
#[must_use]
pub fn megabits(bits_per_second: f64) -> String {
    let megabits = bits_per_second / 1e6;
    if megabits < 99.95 { format!("{megabits:.2}") } else { thousands(megabits) }
}

/// Formats a share from 0 to 1 as a percentage: `91 %`. Below 10 %, it has one decimal: `9.1 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// Formats a share from 0 to 1 as a percentage with two decimals: `99.97 %`. With fewer decimals, a
/// share slightly below 100 % would be rounded to 100 %.
#[must_use]
pub fn fine_percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// Formats a relative change as a signed percentage: `−3.1 %`, `+12.0 %`. `logarithm` is the
/// natural logarithm of the ratio of the new value to the old one.
#[must_use]
pub fn change(logarithm: f64) -> String {
    let percent = logarithm.exp_m1() * 100.0;
    let digits = if percent.abs() < 99.95 { 1 } else { 0 };
    let text = format!("{:.digits$}", percent.abs());
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = match (is_zero, percent < 0.0) {
        (true, _) => "±",
        (false, true) => "−",
        (false, false) => "+",
    };
    format!("{sign}{text} %")
}

/// Rounds a value to a whole number, and formats it with thousands separators: `1,104`. A negative
/// value is formatted as `0`.
#[must_use]
pub fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with thousands separators: `1,156`.
#[must_use]
pub fn count(value: u64) -> String {
    thousands(as_f64(value))
}

/// Formats a count with a noun, to which an `s` is appended unless the count is 1: `1 run`, `4
/// runs`.
#[must_use]
pub fn plural(value: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(value), if value == 1 { "" } else { "s" })
}

/// Formats a buffer size: `1 packet`, `12 packets`, `16 KiB`.
#[must_use]
pub fn buffer(size: BufferSize) -> String {
    match size {
        BufferSize::Packets(packets) => plural(packets.get().into(), "packet"),
        BufferSize::Bytes(_) => size.to_string(),
    }
}

/// Formats a cell as its send buffer and its receive buffer: `8 × 12 packets`, `16 KiB × 4
/// packets`.
#[must_use]
pub fn cell(cell: Cell) -> String {
    match (cell.send.packets(), cell.receive.packets()) {
        (Some(send), Some(receive)) => format!("{send} × {receive} packets"),
        _ => format!("{} × {}", buffer(cell.send), buffer(cell.receive)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_thousands_separators() {
        assert_eq!(thousands(999.4), "999");
        assert_eq!(thousands(1_000.0), "1,000");
        assert_eq!(thousands(12_345_678.0), "12,345,678");
        assert_eq!(kilobytes(1_104.0 * 1_024.0), "1,104");
        assert_eq!(plural(0, "run"), "0 runs");
        assert_eq!(plural(1, "run"), "1 run");
        assert_eq!(plural(1_156, "run"), "1,156 runs");
    }

    #[test]
    fn a_change_has_a_sign_unless_it_is_zero() {
        assert_eq!(change(0.969_f64.ln()), "−3.1 %");
        assert_eq!(change(1.12_f64.ln()), "+12.0 %");
        assert_eq!(change(0.0), "±0.0 %");
        assert_eq!(change(-0.000_1), "±0.0 %");
    }

    #[test]
    fn rates_on_the_wire_are_in_megabits() {
        assert_eq!(megabits(8.85e6), "8.85");
        assert_eq!(megabits(99.94e6), "99.94");
        assert_eq!(megabits(99.96e6), "100");
        assert_eq!(megabits(1.234e10), "12,340");
    }
}
