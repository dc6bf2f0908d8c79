//! Ones'-complement arithmetic for checksums.

/// The length in bytes below which inputs are summed without vector instructions. For such short
/// inputs, the setup of vector instructions would take longer than the sum.
pub(crate) const SHORT: usize = 64;

/// Adds two numbers in ones' complement: a carry out of the highest bit is added to the lowest.
pub(super) const fn add(left: u16, right: u16) -> u16 {
    let (sum, carry) = left.overflowing_add(right);
    // Adding the carry cannot overflow: if there is a carry, `sum` is less than either summand, and
    // so less than the maximum.
    sum + carry as u16
}

/// Reduces a number modulo 65,535. Multiples of 65,535 become 65,535, except zero, which stays
/// zero. A sum is thus zero only if every summand is zero.
#[allow(clippy::cast_possible_truncation, reason = "the upper halves are wanted")]
pub(super) const fn fold(number: u64) -> u16 {
    // The rotation exchanges the halves, so each half of this sum is the upper plus the lower half
    // of `number`. The carry out of the lower half is added to the upper half, as ones' complement
    // requires.
    let word = (number.wrapping_add(number.rotate_left(32)) >> 32) as u32;
    (word.wrapping_add(word.rotate_left(16)) >> 16) as u16
}
