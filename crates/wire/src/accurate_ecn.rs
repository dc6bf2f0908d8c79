//! The option of accurate ECN (RFC 9768 §3.2.3): how many bytes have arrived under each codepoint.

const ORDER_0: u8 = 172;
const ORDER_1: u8 = 174;

/// Fields of an option that has them all.
const MOST: usize = 3;

/// Bytes of a field.
const FIELD: usize = 3;

/// Which count comes first; what is cut off is cut off at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EcnOrder {
    /// ECT(0), CE, ECT(1): kind 172.
    Zero,
    /// ECT(1), CE, ECT(0): kind 174.
    One,
}

/// The low 24 bits of up to three counts of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcnCounts {
    order: EcnOrder,
    /// Invariant: at most three.
    count: u8,
    /// Invariant: each has 24 bits, and those beyond `count` are zero.
    fields: [u32; MOST],
}

impl EcnCounts {
    /// What a field can say of a count.
    pub const MASK: u32 = 0x00ff_ffff;

    /// All three counts, of bytes that came as ECT(0), CE and ECT(1); of each the low 24 bits.
    #[must_use]
    pub const fn new(order: EcnOrder, e0b: u32, ceb: u32, e1b: u32) -> Self {
        let (first, last) = match order {
            EcnOrder::Zero => (e0b, e1b),
            EcnOrder::One => (e1b, e0b),
        };
        Self { order, count: 3, fields: [first & Self::MASK, ceb & Self::MASK, last & Self::MASK] }
    }

    /// The same with the first `count` fields only, none to three.
    #[must_use]
    pub fn cut_to(mut self, count: u8) -> Self {
        self.count = self.count.min(count);
        self.fields[usize::from(self.count)..].fill(0);
        self
    }

    /// Of the option `kind` with `data`, the whole fields: what follows them is padding (RFC 9768 §3.2.3).
    /// `None` for another option.
    pub(crate) fn parse(kind: u8, data: &[u8]) -> Option<Self> {
        let order = match kind {
            ORDER_0 => EcnOrder::Zero,
            ORDER_1 => EcnOrder::One,
            _ => return None,
        };
        let mut counts = Self { order, count: 0, fields: [0; MOST] };
        for (field, &[high, middle, low]) in
            counts.fields.iter_mut().zip(data.as_chunks::<FIELD>().0)
        {
            *field = u32::from_be_bytes([0, high, middle, low]);
            counts.count += 1;
        }
        Some(counts)
    }

    /// Which count comes first.
    #[must_use]
    pub const fn order(self) -> EcnOrder {
        self.order
    }

    /// How many fields there are.
    #[must_use]
    pub const fn count(self) -> u8 {
        self.count
    }

    /// Bytes that came as ECT(0), if that is told (EE0B).
    #[must_use]
    pub fn e0b(self) -> Option<u32> {
        self.field(if self.order == EcnOrder::Zero { 0 } else { 2 })
    }

    /// Bytes that came marked, if that is told (ECEB).
    #[must_use]
    pub fn ceb(self) -> Option<u32> {
        self.field(1)
    }

    /// Bytes that came as ECT(1), if that is told (EE1B).
    #[must_use]
    pub fn e1b(self) -> Option<u32> {
        self.field(if self.order == EcnOrder::Zero { 2 } else { 0 })
    }

    fn field(self, index: usize) -> Option<u32> {
        (index < usize::from(self.count)).then(|| self.fields[index])
    }

    /// Bytes of the option with the NOPs that fill its words.
    #[must_use]
    pub fn option_length(self) -> usize {
        self.length().next_multiple_of(4)
    }

    fn length(self) -> usize {
        2 + FIELD * usize::from(self.count)
    }

    /// The option behind its NOPs; the first [`option_length`](Self::option_length) bytes count.
    pub(crate) fn emit(self) -> [u8; 12] {
        let mut bytes = [1; 12];
        let at = self.option_length() - self.length();
        bytes[at] = if self.order == EcnOrder::Zero { ORDER_0 } else { ORDER_1 };
        #[allow(clippy::cast_possible_truncation, reason = "eleven at the most")]
        let length = self.length() as u8;
        bytes[at + 1] = length;
        for (place, field) in bytes[at + 2..].chunks_exact_mut(FIELD).zip(&self.fields) {
            place.copy_from_slice(&field.to_be_bytes()[1..]);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TcpOptions;

    fn read(field: &[u8]) -> EcnCounts {
        TcpOptions::parse(field).ecn.unwrap()
    }

    /// RFC 9768 §3.2.3, table 5.
    #[test]
    fn each_length_of_each_order_says_which_counts_are_there() {
        for (order, kind) in [(EcnOrder::Zero, 172), (EcnOrder::One, 174)] {
            for count in 0..=3 {
                let counts = EcnCounts::new(order, 0x0100_0001, 2, 3).cut_to(count);
                let options = TcpOptions { ecn: Some(counts), ..TcpOptions::default() };
                let mut field = [0xee; 12];
                let length = options.emit(&mut field);
                assert_eq!((length, length % 4), (counts.option_length(), 0));
                let at = field.iter().position(|&byte| byte != 1).unwrap();
                assert_eq!(field[at..at + 2], [kind, 2 + 3 * count]);
                assert_eq!(read(&field[..length]), counts);
                let [first, last] = if order == EcnOrder::Zero {
                    [counts.e0b(), counts.e1b()]
                } else {
                    [counts.e1b(), counts.e0b()]
                };
                let told = [first, counts.ceb(), last].map(|field| field.is_some());
                assert_eq!(told, [count > 0, count > 1, count > 2]);
            }
        }
        let all = EcnCounts::new(EcnOrder::One, 0x0100_0001, 2, 3);
        assert_eq!(
            (all.e0b(), all.ceb(), all.e1b()),
            (Some(1), Some(2), Some(3)),
            "24 bits of each"
        );
    }

    /// RFC 9768 §3.2.3: whole fields of other lengths count, and the rest is padding.
    #[test]
    fn of_a_length_that_has_no_meaning_yet_the_whole_fields_are_read() {
        assert_eq!(read(&[172, 4, 9, 9]), EcnCounts::new(EcnOrder::Zero, 0, 0, 0).cut_to(0));
        assert_eq!(
            read(&[172, 7, 0, 0, 5, 9, 9]),
            EcnCounts::new(EcnOrder::Zero, 5, 0, 0).cut_to(1)
        );
        let long = [174, 14, 0, 0, 1, 0, 0, 2, 1, 0, 3, 9, 9, 9];
        assert_eq!(read(&long), EcnCounts::new(EcnOrder::One, 0x01_0003, 2, 1));
    }
}
