//! Ones'-complement arithmetic on sums.

/// The minimum number of bytes for which the setup of vector instructions pays off.
pub(crate) const SHORT: usize = 64;

/// Adds two numbers in ones' complement: the carry is added to the lowest bit.
pub(super) const fn add(left: u16, right: u16) -> u16 {
    let (sum, carry) = left.overflowing_add(right);
    // This cannot overflow: if there is a carry, the sum is less than either summand.
    sum + carry as u16
}

/// Reduces a number modulo 65,535. Only zero becomes zero; other multiples of 65,535 become 65,535.
#[allow(clippy::cast_possible_truncation, reason = "the upper halves are wanted")]
pub(super) const fn fold(number: u64) -> u16 {
    // Adding the number to itself with its halves swapped carries the lower half into the upper.
    let word = (number.wrapping_add(number.rotate_left(32)) >> 32) as u32;
    (word.wrapping_add(word.rotate_left(16)) >> 16) as u16
}
