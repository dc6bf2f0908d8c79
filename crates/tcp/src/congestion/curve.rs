//! CUBIC's curve, W_cubic(t) = C·(t − K)³ + W_max (RFC 9438 §4.2), in integers. Windows are in
//! bytes and times in units of 2⁻²⁰ s, so that only multiplications and shifts are needed.

use crate::compact::pack::packed;
use linerate_units::Duration;

/// The number of fractional bits of the factor C = 2/5 segments per cubic second (RFC 9438 §5.1),
/// as an integer.
const C_SHIFT: u32 = 16;
/// The number of fractional bits in a time in seconds: its unit is 2⁻²⁰ s.
const TIME_SHIFT: u32 = 20;
/// The number of time units per nanosecond, 2²⁰ / 10⁹, with 40 fractional bits.
const UNITS_PER_NANO: u128 = (1 << (TIME_SHIFT + 40)) / 1_000_000_000;
/// The upper limit of |t − K| in computations, in time units: 4,096 s. Within this time, the curve
/// reaches windows of 2³⁰ bytes, the largest possible.
const FURTHEST: u64 = 1 << 32;

/// A curve of CUBIC: the height of its plateau, and the time to reach it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Curve {
    w_max: u32,
    /// K, the time from the start of the curve to its plateau, in units of 2⁻²⁰ s.
    k: u64,
}

packed!(Curve { w_max, k });

impl Curve {
    /// Creates the curve that rises from `cwnd` to a plateau at `w_max`, both in bytes. If `cwnd`
    /// is not below `w_max`, the plateau is at `cwnd`, and K = 0.
    pub(super) fn from(cwnd: u32, w_max: u32, mss: u32) -> Self {
        let rise = u128::from(w_max.saturating_sub(cwnd));
        let k = cube_root(((rise * 5) << (3 * TIME_SHIFT)) / u128::from(2 * mss));
        Self { w_max: w_max.max(cwnd), k: k.min(FURTHEST) }
    }

    /// Returns W_max, the height of the plateau, in bytes.
    pub(super) const fn w_max(&self) -> u32 {
        self.w_max
    }

    /// Returns W_cubic(t), the height of the curve after the time `t`, in bytes. Segments have
    /// `mss` bytes.
    pub(super) fn at(&self, t: Duration, mss: u32) -> u32 {
        let t = units(t);
        let distance = u128::from(t.abs_diff(self.k).min(FURTHEST));
        let c = u128::from((u64::from(mss) << (C_SHIFT + 1)) / 5);
        let rise = (distance * distance * distance * c) >> (C_SHIFT + 3 * TIME_SHIFT);
        let rise = u32::try_from(rise).unwrap_or(u32::MAX);
        if t < self.k { self.w_max.saturating_sub(rise) } else { self.w_max.saturating_add(rise) }
    }
}

fn units(t: Duration) -> u64 {
    u64::try_from((u128::from(t.as_nanos()) * UNITS_PER_NANO) >> 40).unwrap_or(u64::MAX)
}

/// Returns the cube root of `n`, rounded down, by Newton's method from above.
fn cube_root(n: u128) -> u64 {
    if n == 0 {
        return 0;
    }
    let bits = u128::BITS - n.leading_zeros();
    let mut root: u128 = 1 << bits.div_ceil(3);
    loop {
        let next = (2 * root + n / (root * root)) / 3;
        if next >= root {
            return u64::try_from(root).unwrap_or(u64::MAX);
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Computes the cube root bit by bit.
    fn naive_cube_root(n: u128) -> u64 {
        (0..42).rev().map(|bit| 1 << bit).fold(0, |root: u64, bit| {
            let larger = u128::from(root | bit);
            if larger * larger * larger <= n { root | bit } else { root }
        })
    }

    #[test]
    fn small_cube_roots_are_right() {
        let roots = [0, 1, 7, 8, 26, 27, 63, 64, 999, 1_000].map(cube_root);
        assert_eq!(roots, [0, 1, 1, 2, 2, 3, 3, 4, 9, 10]);
    }

    #[test]
    fn the_largest_distance_does_not_overflow() {
        let curve = Curve::from(1, 1 << 30, 1);
        assert!(curve.k < FURTHEST);
        assert_eq!(Curve::from(1 << 30, 0, 65_535).at(Duration::MAX, 65_535), u32::MAX);
        assert_eq!(Curve { w_max: 1, k: FURTHEST }.at(Duration::ZERO, 65_535), 0);
    }

    proptest! {
        #[test]
        fn newtons_cube_root_equals_the_naive_one(n in 0u128..1 << 100, shift in 0u32..100) {
            let n = n >> shift;
            prop_assert_eq!(cube_root(n), naive_cube_root(n));
        }

        #[test]
        fn a_perfect_cube_and_its_neighbours_have_the_right_root(root in 1u64..1 << 40) {
            let cube = u128::from(root).pow(3);
            let roots = [cube - 1, cube, cube + 1].map(cube_root);
            prop_assert_eq!(roots, [root - 1, root, root]);
        }

        /// Compares the curve with the formulas of RFC 9438 (figures 1 and 2) in floating point.
        #[test]
        fn the_curve_equals_the_formula(
            cwnd in 2_896u32..1 << 28,
            rise in 0u32..1 << 28,
            mss in 256u32..9_000,
            millis in 0u64..100_000,
        ) {
            let w_max = cwnd + rise;
            let t = Duration::from_millis(millis);
            let c = 0.4 * f64::from(mss);
            let k = (f64::from(rise) / c).cbrt();
            let formula = c * (t.as_secs_f64() - k).powi(3) + f64::from(w_max);
            let found = f64::from(Curve::from(cwnd, w_max, mss).at(t, mss));
            let formula = formula.min(f64::from(u32::MAX));
            let off = (found - formula).abs();
            prop_assert!(off <= 2.0 + 1e-4 * formula, "{} for {}", found, formula);
        }
    }
}
