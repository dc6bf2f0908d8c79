//! Property tests: every implementation of the sum agrees with the definition in RFC 1071.

use super::*;
use proptest::prelude::*;
extern crate std;
use std::vec::Vec;

/// Returns the folded sum in network order, added word by word as in RFC 1071 §4.1.
fn naive(bytes: &[u8]) -> u16 {
    let mut sum: u16 = 0;
    for pair in bytes.chunks(2) {
        let word = u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
        let (wrapped, carry) = sum.overflowing_add(word);
        sum = wrapped + u16::from(carry);
    }
    sum
}

/// Generates byte strings of three kinds of length: fewer than 200 bytes, about that of a
/// full-sized packet, and at least 65,000 bytes. Often all bytes are 0xff, which cause the most
/// carries.
fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
    let length =
        prop_oneof![4 => 0..200_usize, 2 => 1_400..1_600_usize, 1 => 65_000..200_000_usize];
    let byte = prop_oneof![3 => Just(None), 1 => Just(Some(0xff)), 1 => any::<u8>().prop_map(Some)];
    (length, byte, any::<u64>()).prop_map(|(length, byte, seed)| {
        let mut state = seed | 1;
        core::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let [random, ..] = state.to_be_bytes();
            byte.unwrap_or(random)
        })
        .take(length)
        .collect()
    })
}

fn in_network_order(sum: u16) -> u16 {
    u16::from_be(sum)
}

/// Words of all ones give the largest possible sums. With them, the lanes in which an
/// implementation adds must not overflow.
#[test]
fn all_ones_of_any_length_carry_correctly() {
    for length in (65_536..65_536 + 64).chain(0..200) {
        let bytes = std::vec![0xff; length];
        assert_eq!(Sum::of(&bytes).finish(), !naive(&bytes), "{length} bytes");
    }
}

proptest! {
    #[test]
    fn the_portable_sum_is_the_naive_sum(bytes in some_bytes(), skip in 0..40_usize) {
        let bytes = bytes.get(skip..).unwrap_or(&[]);
        prop_assert_eq!(in_network_order(portable::sum(bytes)), naive(bytes));
    }

    #[test]
    fn the_dispatched_sum_is_the_naive_sum(bytes in some_bytes(), skip in 0..40_usize) {
        let bytes = bytes.get(skip..).unwrap_or(&[]);
        prop_assert_eq!(Sum::of(bytes).finish(), !naive(bytes));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_avx2_sum_is_the_naive_sum(bytes in some_bytes(), skip in 0..40_usize) {
        let bytes = bytes.get(skip..).unwrap_or(&[]);
        if let Some(avx2) = avx2::Avx2::detect() {
            prop_assert_eq!(in_network_order(avx2.sum(bytes)), naive(bytes));
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_avx2_copy_is_a_copy_and_its_sum_the_naive_sum(
        bytes in some_bytes(), skip in 0..40_usize, shift in 0..40_usize
    ) {
        let bytes = bytes.get(skip..).unwrap_or(&[]);
        let mut copy = std::vec![0xa5; shift + bytes.len()];
        if let Some(avx2) = avx2::Avx2::detect() {
            let sum = avx2.copy_and_sum(bytes, &mut copy[shift..]);
            prop_assert_eq!(in_network_order(sum), naive(bytes));
            prop_assert_eq!(&copy[shift..], bytes);
            prop_assert!(copy[..shift].iter().all(|&byte| byte == 0xa5));
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_avx512_sum_is_the_naive_sum(bytes in some_bytes(), skip in 0..40_usize) {
        let bytes = bytes.get(skip..).unwrap_or(&[]);
        if let Some(avx512) = avx512::Avx512::detect() {
            prop_assert_eq!(in_network_order(avx512.sum(bytes)), naive(bytes));
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_avx512_copy_is_a_copy_and_its_sum_the_naive_sum(
        bytes in some_bytes(), skip in 0..40_usize, shift in 0..40_usize
    ) {
        let bytes = bytes.get(skip..).unwrap_or(&[]);
        let mut copy = std::vec![0xa5; shift + bytes.len() + 70];
        if let Some(avx512) = avx512::Avx512::detect() {
            let (place, after) = copy[shift..].split_at_mut(bytes.len());
            prop_assert_eq!(in_network_order(avx512.copy_and_sum(bytes, place)), naive(bytes));
            prop_assert_eq!(place, bytes);
            prop_assert!(after.iter().all(|&byte| byte == 0xa5));
            prop_assert!(copy[..shift].iter().all(|&byte| byte == 0xa5));
        }
    }

    #[test]
    fn the_dispatched_copy_is_a_copy_and_its_sum_the_naive_sum(bytes in some_bytes()) {
        let mut copy = std::vec![0; bytes.len()];
        prop_assert_eq!(copy_and_sum(&bytes, &mut copy).finish(), !naive(&bytes));
        prop_assert_eq!(copy, bytes);
    }

    #[test]
    fn sums_of_parts_combine_to_the_sum_of_the_whole(
        bytes in some_bytes(), at in any::<prop::sample::Index>()
    ) {
        let at = at.index(bytes.len() + 1);
        let (head, tail) = bytes.split_at(at);
        prop_assert_eq!(Sum::of(head).append(Sum::of(tail), at), Sum::of(&bytes));
        if at.is_multiple_of(2) {
            prop_assert_eq!(Sum::of(tail) + Sum::of(head), Sum::of(&bytes));
        }
    }

    /// The AVX2 code loads the last 32 bytes of an input as a block, which may overlap the previous
    /// block. An input that is shorter than a block has too few bytes for this, so it is summed by
    /// other code.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx2_sums_inputs_shorter_than_its_block(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Some(avx2) = avx2::Avx2::detect() {
            let mut copy = std::vec![0; bytes.len()];
            prop_assert_eq!(in_network_order(avx2.sum(&bytes)), naive(&bytes));
            prop_assert_eq!(in_network_order(avx2.copy_and_sum(&bytes, &mut copy)), naive(&bytes));
            prop_assert_eq!(copy, bytes);
        }
    }

    #[test]
    fn adding_a_16_bit_field_equals_summing_its_bytes(bytes in some_bytes(), field: u16) {
        let appended = Sum::of(&bytes) + Sum::of(&field.to_be_bytes());
        prop_assert_eq!(Sum::of(&bytes).add_u16(field), appended);
    }

    #[test]
    fn adding_a_32_bit_field_equals_summing_its_bytes(bytes in some_bytes(), field: u32) {
        let appended = Sum::of(&bytes) + Sum::of(&field.to_be_bytes());
        prop_assert_eq!(Sum::of(&bytes).add_u32(field), appended);
    }

    #[test]
    fn the_pseudo_header_is_the_sum_over_its_twelve_bytes(
        source: [u8; 4], destination: [u8; 4], protocol: u8, length: u16
    ) {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&source);
        bytes[4..8].copy_from_slice(&destination);
        bytes[9] = protocol;
        bytes[10..].copy_from_slice(&length.to_be_bytes());
        let protocol = Protocol::new(protocol);
        let sum = pseudo_header_v4(source.into(), destination.into(), protocol, length.into());
        prop_assert_eq!(sum, Sum::of(&bytes));
    }

    #[test]
    fn bytes_with_their_checksum_are_valid_and_with_a_wrong_one_are_not(
        mut bytes in prop::collection::vec(any::<u8>(), 2..100), wrong in 1..0xffff_u16
    ) {
        bytes[..2].fill(0);
        let checksum = Sum::of(&bytes).finish();
        bytes[..2].copy_from_slice(&checksum.to_be_bytes());
        prop_assert!(Sum::of(&bytes).is_valid());
        bytes[..2].copy_from_slice(&checksum.wrapping_add(wrong).to_be_bytes());
        // In ones' complement, zero and all ones represent the same number. If `wrong` changes the
        // checksum from one of these values to the other, the changed checksum is therefore valid
        // as well.
        let zeros = [checksum, checksum.wrapping_add(wrong)] == [0, 0xffff]
            || [checksum, checksum.wrapping_add(wrong)] == [0xffff, 0];
        prop_assert_eq!(Sum::of(&bytes).is_valid(), zeros && Sum::of(&bytes) != Sum::default());
    }

    #[test]
    fn an_updated_checksum_equals_a_recomputed_one(
        words: [BoundaryWord; 6], new: [BoundaryWord; 2]
    ) {
        let words = words.map(|word| word.0);
        let checksum = checksum_of(&words);
        let mut changed = words;
        changed[2] = new[0].0;
        prop_assume!(changed != [0; 6]);
        prop_assert_eq!(update(checksum, words[2], changed[2]), checksum_of(&changed));
        changed[3] = new[1].0;
        prop_assume!(changed != [0; 6]);
        let long = |words: &[u16; 6]| u32::from(words[2]) << 16 | u32::from(words[3]);
        prop_assert_eq!(update_u32(checksum, long(&words), long(&changed)), checksum_of(&changed));
    }
}

/// A 16-bit word that often has a boundary value, such as zero, all ones, or a neighbour of these.
#[derive(Clone, Copy, Debug)]
struct BoundaryWord(u16);

impl Arbitrary for BoundaryWord {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;
    fn arbitrary_with((): ()) -> Self::Strategy {
        let boundary = prop::sample::select(&[0, 0xffff, 1, 0xfffe, 0x5555, 0xaaaa][..]);
        prop_oneof![boundary, any::<u16>()].prop_map(Self).boxed()
    }
}

fn checksum_of(words: &[u16]) -> u16 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    !naive(&bytes)
}

#[test]
fn the_example_of_rfc_1624_gives_plus_zero() {
    assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0);
}

#[test]
fn the_example_of_rfc_1071_sums_to_ddf2() {
    assert_eq!(Sum::of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]).finish(), !0xddf2);
}

#[test]
fn zeros_with_a_zero_checksum_are_not_valid() {
    assert!(!Sum::of(&[0; 8]).is_valid());
    assert_eq!(Sum::of(&[0; 6]).finish(), 0xffff);
    assert!(Sum::of(&[0, 0, 0xff, 0xff, 0, 0]).is_valid());
}

/// The AVX2 copy sums words by averaging pairs of words, and then pairs of averages. An average is
/// rounded up if the sum of its pair is odd. The test data make all these sums odd.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_avx2_copy_sums_correctly_if_all_averages_are_rounded_up() {
    let Some(avx2) = avx2::Avx2::detect() else { return };
    let step = [1, 0, 3, 0, 3, 0, 5, 0].map(|word: u16| word.to_ne_bytes().repeat(16)).concat();
    let mut copy = std::vec![0; 64 << 10];
    for steps in 0..=256 {
        let bytes = step.repeat(steps);
        assert_eq!(in_network_order(avx2.copy_and_sum(&bytes, &mut copy)), naive(&bytes));
    }
}

#[test]
#[should_panic(expected = "a copy has the length of the original")]
fn a_copy_into_less_room_panics_before_it_copies() {
    copy_and_sum(&[1, 2, 3], &mut [0; 2]);
}
