//! Variable-length encoding of the numbers in a connection. A byte of flags precedes each group of
//! eight numbers, and marks the numbers that are not zero. Only the marked numbers follow, with
//! seven bits in each byte. A sequence number or instant is encoded as the difference from the
//! previous one, because the sequence numbers and instants of a connection are close together.

use crate::SharedConfig;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use linerate_units::{Duration, Instant, Rate};
use linerate_wire::{Ecn, FastOpenCookie, SackBlock, SeqNum, TcpFlags};

/// The number of encoded values that share a byte of flags.
const GROUP: u32 = 8;

/// The state of packing and unpacking: the configuration, and the previous sequence number and
/// instant, from which the next ones are encoded as differences.
#[derive(Debug)]
struct Context<'a> {
    config: &'a SharedConfig,
    seq: SeqNum,
    instant: Instant,
}

impl<'a> Context<'a> {
    const fn new(config: &'a SharedConfig) -> Self {
        Self { config, seq: SeqNum::new(0), instant: Instant::ZERO }
    }
}

/// An encoder, which packs the numbers of a connection.
#[derive(Debug)]
pub(crate) struct Packer<'a> {
    context: Context<'a>,
    bytes: Vec<u8>,
    /// The position of the current group's flags in `bytes`. `count` is the number of values in the
    /// group.
    marks: usize,
    count: u32,
    /// Whether packing has failed, because unpacking would restore at least one value wrongly.
    is_refused: bool,
}

impl<'a> Packer<'a> {
    pub(crate) fn new(config: &'a SharedConfig) -> Self {
        let bytes = Vec::with_capacity(256);
        Self { context: Context::new(config), bytes, marks: 0, count: GROUP, is_refused: false }
    }

    /// Returns the packed bytes, or `None` if unpacking would not restore all values.
    ///
    /// The bytes are copied to a new allocation of their length. Shrinking the packer's buffer in
    /// place would leave a gap in memory behind it, too short for the buffer of the next packer.
    pub(crate) fn finish(self) -> Option<Box<[u8]>> {
        (!self.is_refused).then(|| self.bytes.as_slice().into())
    }

    /// Returns the configuration of the connection, which is not packed.
    pub(crate) const fn config(&self) -> &'a SharedConfig {
        self.context.config
    }

    /// Notes that a field of the connection is not packed. `is_known` is true if unpacking will
    /// restore the value that the field has now. If it is false, the connection cannot be packed.
    pub(crate) const fn expect(&mut self, is_known: bool) {
        self.is_refused |= !is_known;
    }

    fn put(&mut self, mut number: u64) {
        if self.count == GROUP {
            (self.marks, self.count) = (self.bytes.len(), 0);
            self.bytes.push(0);
        }
        if number > 0 {
            self.bytes[self.marks] |= 1 << self.count;
            while number > 0x7f {
                self.bytes.push(number.to_le_bytes()[0] | 0x80);
                number >>= 7;
            }
            self.bytes.push(number.to_le_bytes()[0]);
        }
        self.count += 1;
    }
}

/// A decoder, which unpacks the numbers in the order in which they were packed.
#[derive(Debug)]
pub(crate) struct Unpacker<'a> {
    context: Context<'a>,
    bytes: core::slice::Iter<'a, u8>,
    marks: u8,
    count: u32,
}

impl<'a> Unpacker<'a> {
    pub(crate) fn new(config: &'a SharedConfig, bytes: &'a [u8]) -> Self {
        Self { context: Context::new(config), bytes: bytes.iter(), marks: 0, count: GROUP }
    }

    /// Returns the configuration of the connection.
    pub(crate) const fn config(&self) -> &'a SharedConfig {
        self.context.config
    }

    fn take(&mut self) -> u64 {
        if self.count == GROUP {
            (self.marks, self.count) = (self.bytes.next().copied().unwrap_or(0), 0);
        }
        self.count += 1;
        let is_zero = self.marks & 1 == 0;
        self.marks >>= 1;
        if is_zero {
            return 0;
        }
        let (mut number, mut shift) = (0, 0);
        for &byte in self.bytes.by_ref() {
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }
}

/// A value that can be packed into bytes and restored from them.
pub(crate) trait Pack: Sized {
    fn pack(&self, into: &mut Packer<'_>);
    fn unpack(from: &mut Unpacker<'_>) -> Self;
}

/// Implements [`Pack`] for a struct by packing its fields in the given order. A field after `known`
/// is not packed. Unpacking gives it the value in the macro call, so a struct whose field has
/// another value cannot be packed.
macro_rules! packed {
    ($part:ident(0)) => {
        impl $crate::compact::pack::Pack for $part {
            fn pack(&self, into: &mut $crate::compact::pack::Packer<'_>) {
                self.0.pack(into);
            }

            fn unpack(from: &mut $crate::compact::pack::Unpacker<'_>) -> Self {
                Self($crate::compact::pack::Pack::unpack(from))
            }
        }
    };
    (
        $part:ty { $($field:ident),* $(,)? }
        $(known { $($known:ident: |$config:ident| $value:expr),* $(,)? })?
    ) => {
        impl $crate::compact::pack::Pack for $part {
            fn pack(&self, into: &mut $crate::compact::pack::Packer<'_>) {
                let Self { $($field,)* $($($known,)*)? } = self;
                $($crate::compact::pack::Pack::pack($field, into);)*
                $($({
                    let $config = into.config();
                    let _ = $config;
                    into.expect(*$known == $value);
                })*)?
            }

            fn unpack(from: &mut $crate::compact::pack::Unpacker<'_>) -> Self {
                $(let $field = $crate::compact::pack::Pack::unpack(from);)*
                $($(let $known = {
                    let $config = from.config();
                    let _ = $config;
                    $value
                };)*)?
                Self { $($field,)* $($($known,)*)? }
            }
        }
    };
}

/// Implements [`Pack`] for an enum without data. The most frequent variant should be listed first,
/// because it is encoded as zero, which takes only its flag bit.
macro_rules! packed_enum {
    ($part:ty { $first:ident $(, $variant:ident)* $(,)? }) => {
        impl $crate::compact::pack::Pack for $part {
            fn pack(&self, into: &mut $crate::compact::pack::Packer<'_>) {
                match self { Self::$first $(| Self::$variant)* => {} }
                let others: &[Self] = &[$(Self::$variant),*];
                let number = others.iter().position(|other| other == self).map_or(0, |at| at + 1);
                $crate::compact::pack::Pack::pack(&number, into);
            }

            fn unpack(from: &mut $crate::compact::pack::Unpacker<'_>) -> Self {
                let others: &[Self] = &[$(Self::$variant),*];
                let number: usize = $crate::compact::pack::Pack::unpack(from);
                number.checked_sub(1).and_then(|at| others.get(at).copied()).unwrap_or(Self::$first)
            }
        }
    };
}

pub(crate) use {packed, packed_enum};

impl Pack for u64 {
    fn pack(&self, into: &mut Packer<'_>) {
        into.put(*self);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        from.take()
    }
}

/// Implements [`Pack`] for integer types of at most 64 bits.
macro_rules! packed_number {
    ($($number:ty),*) => {$(
        impl Pack for $number {
            fn pack(&self, into: &mut Packer<'_>) {
                into.put(u64::from(*self));
            }

            fn unpack(from: &mut Unpacker<'_>) -> Self {
                Self::try_from(from.take()).unwrap_or(Self::MAX)
            }
        }
    )*};
}

packed_number!(u8, u16, u32);

impl Pack for usize {
    fn pack(&self, into: &mut Packer<'_>) {
        into.put(*self as u64);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Self::try_from(from.take()).unwrap_or(Self::MAX)
    }
}

impl Pack for NonZeroU32 {
    fn pack(&self, into: &mut Packer<'_>) {
        self.get().pack(into);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Self::new(u32::unpack(from)).unwrap_or(Self::MIN)
    }
}

impl Pack for bool {
    fn pack(&self, into: &mut Packer<'_>) {
        into.put(u64::from(*self));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        from.take() != 0
    }
}

impl Pack for SeqNum {
    fn pack(&self, into: &mut Packer<'_>) {
        let step = (*self - into.context.seq).cast_signed();
        into.context.seq = *self;
        into.put(u64::from(((step << 1) ^ (step >> 31)).cast_unsigned()));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let folded = u32::unpack(from);
        from.context.seq += (folded >> 1) ^ (folded & 1).wrapping_neg();
        from.context.seq
    }
}

/// Packs an instant as the difference from the previous instant. Zero means an equal instant, and
/// one means [`Instant::NEVER`].
impl Pack for Instant {
    fn pack(&self, into: &mut Packer<'_>) {
        if *self == Self::NEVER {
            into.put(1);
            return;
        }
        let step = self.as_nanos().wrapping_sub(into.context.instant.as_nanos()).cast_signed();
        let folded = ((step << 1) ^ (step >> 63)).cast_unsigned();
        into.expect(folded < u64::MAX);
        into.put(if folded == 0 { 0 } else { folded.saturating_add(1) });
        into.context.instant = *self;
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let folded = match from.take() {
            1 => return Self::NEVER,
            number => number.saturating_sub(1),
        };
        let step = (folded >> 1) ^ (folded & 1).wrapping_neg();
        from.context.instant = Self::from_nanos(from.context.instant.as_nanos().wrapping_add(step));
        from.context.instant
    }
}

impl Pack for Duration {
    fn pack(&self, into: &mut Packer<'_>) {
        into.put(self.as_nanos());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Self::from_nanos(from.take())
    }
}

impl Pack for Rate {
    fn pack(&self, into: &mut Packer<'_>) {
        into.put(self.bits_per_second());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Self::from_bits_per_second(from.take())
    }
}

impl Pack for TcpFlags {
    fn pack(&self, into: &mut Packer<'_>) {
        self.bits().pack(into);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Self::from_bits_retain(Pack::unpack(from))
    }
}

packed_enum!(Ecn { NotEct, Ect1, Ect0, Ce });
packed!(SackBlock { left, right });

impl Pack for FastOpenCookie {
    fn pack(&self, into: &mut Packer<'_>) {
        self.is_experimental().pack(into);
        self.as_bytes().to_vec().pack(into);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let experimental = bool::unpack(from);
        Self::new(&Vec::unpack(from)).unwrap_or(Self::REQUEST).carried(experimental)
    }
}

impl<T: Pack> Pack for Option<T> {
    fn pack(&self, into: &mut Packer<'_>) {
        self.is_some().pack(into);
        if let Some(content) = self {
            content.pack(into);
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        bool::unpack(from).then(|| T::unpack(from))
    }
}

impl<T: Pack> Pack for Box<T> {
    fn pack(&self, into: &mut Packer<'_>) {
        self.as_ref().pack(into);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Self::new(T::unpack(from))
    }
}

impl<T: Pack> Pack for Vec<T> {
    fn pack(&self, into: &mut Packer<'_>) {
        self.len().pack(into);
        self.iter().for_each(|item| item.pack(into));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        (0..usize::unpack(from)).map(|_| T::unpack(from)).collect()
    }
}

impl<A: Pack, B: Pack> Pack for (A, B) {
    fn pack(&self, into: &mut Packer<'_>) {
        self.0.pack(into);
        self.1.pack(into);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        (A::unpack(from), B::unpack(from))
    }
}

impl<T: Pack, const N: usize> Pack for [T; N] {
    fn pack(&self, into: &mut Packer<'_>) {
        self.iter().for_each(|item| item.pack(into));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        core::array::from_fn(|_| T::unpack(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use core::fmt::Debug;
    use proptest::prelude::*;

    fn pack_and_restore<T: Pack + PartialEq + Debug>(value: &T) -> usize {
        let config = Config::modern().into();
        let mut packer = Packer::new(&config);
        value.pack(&mut packer);
        let bytes = packer.finish().expect("no value is omitted here");
        assert_eq!(T::unpack(&mut Unpacker::new(&config, &bytes)), *value);
        bytes.len()
    }

    #[test]
    fn zero_takes_a_bit_and_a_small_number_a_byte() {
        assert_eq!(pack_and_restore(&[0_u64; 16]), 2);
        assert_eq!(pack_and_restore(&[127_u32; 8]), 9);
        assert_eq!(pack_and_restore(&[Some(3_u8), None, Some(200)]), 1 + 2 + 3);
        assert_eq!(pack_and_restore(&alloc::vec![5_u8, 0, 6]), 1 + 3);
    }

    #[test]
    fn close_numbers_take_few_bytes() {
        let now = Instant::from_nanos(1 << 60);
        let times = [now, now, Instant::NEVER, now - Duration::from_nanos(60), now];
        assert_eq!(pack_and_restore(&times), 1 + 9 + 1 + 1 + 1);
        let seqs = [0xffff_fff0, 0x10, 0xffff_fff0].map(SeqNum::new);
        assert_eq!(pack_and_restore(&seqs), 1 + 1 + 1 + 1);
    }

    #[derive(Debug, PartialEq)]
    struct Part {
        learnt: u32,
        agreed: bool,
    }

    packed!(Part { learnt } known { agreed: |config| config.timestamps });

    #[test]
    fn a_value_that_would_be_restored_differently_is_not_packed() {
        pack_and_restore(&Part { learnt: 7, agreed: true });
        let config = Config::modern().into();
        let is_packed = |pack: &dyn Fn(&mut Packer<'_>)| {
            let mut packer = Packer::new(&config);
            pack(&mut packer);
            packer.finish().is_some()
        };
        assert!(!is_packed(&|packer| Part { learnt: 7, agreed: false }.pack(packer)));
        // The difference from the previous instant is half of the range of 64 bits. It could be
        // forward or backward, so the instant cannot be packed.
        assert!(!is_packed(&|packer| Instant::from_nanos(1 << 63).pack(packer)));
    }

    proptest! {
        #[test]
        fn every_number_is_restored(
            numbers in prop::collection::vec((any::<u64>(), 0_u32..64), 24),
        ) {
            let numbers: [u64; 24] = core::array::from_fn(|at| numbers[at].0 >> numbers[at].1);
            pack_and_restore(&numbers);
            pack_and_restore(&numbers.map(Duration::from_nanos));
            pack_and_restore(&numbers.map(|number| {
                SeqNum::new(number.to_le_bytes()[0].into()) - (number >> 40) as u32
            }));
            pack_and_restore(&numbers.map(|number| Instant::from_nanos(number >> 1)));
        }
    }
}
