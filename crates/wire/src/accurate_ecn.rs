//! The AccECN option (RFC 9768 §3.2.3): byte counters for each ECN codepoint.

const ORDER_0: u8 = 172;
const ORDER_1: u8 = 174;

/// The largest number of counters in an AccECN option.
const MOST: usize = 3;

/// The length of a counter in an AccECN option, in bytes.
const FIELD: usize = 3;

/// The order of the byte counters in an AccECN option. An option with fewer than three counters
/// contains the first ones in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EcnOrder {
    /// ECT(0), CE, ECT(1): kind 172.
    Zero,
    /// ECT(1), CE, ECT(0): kind 174.
    One,
}

/// The content of an AccECN option: the low 24 bits of up to three byte counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcnCounts {
    order: EcnOrder,
    /// The number of counters in the option. Invariant: at most three.
    count: u8,
    /// The counters in the order of the option. Invariant: each is less than 2^24, and unused ones,
    /// from index `count` on, are zero.
    fields: [u32; MOST],
}

impl EcnCounts {
    /// The mask for the low 24 bits of a byte counter. An AccECN option carries only these bits.
    pub const MASK: u32 = 0x00ff_ffff;

    /// Creates an option with all three counters: bytes received as ECT(0), CE and ECT(1). Only the
    /// low 24 bits of each counter are used.
    #[must_use]
    pub const fn new(order: EcnOrder, e0b: u32, ceb: u32, e1b: u32) -> Self {
        let (first, last) = match order {
            EcnOrder::Zero => (e0b, e1b),
            EcnOrder::One => (e1b, e0b),
        };
        Self { order, count: 3, fields: [first & Self::MASK, ceb & Self::MASK, last & Self::MASK] }
    }

    /// Keeps only the first `count` counters of the option. If it has no more than `count`, all are
    /// kept.
    #[must_use]
    pub fn cut_to(mut self, count: u8) -> Self {
        self.count = self.count.min(count);
        self.fields[usize::from(self.count)..].fill(0);
        self
    }

    /// Parses the AccECN option whose data is `data`. Bytes after the last whole counter are
    /// padding (RFC 9768 §3.2.3). Returns `None` if `kind` is not that of an AccECN option.
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

    /// Returns the order of the counters.
    #[must_use]
    pub const fn order(self) -> EcnOrder {
        self.order
    }

    /// Returns the number of counters in the option.
    #[must_use]
    pub const fn count(self) -> u8 {
        self.count
    }

    /// Returns the counter of bytes received as ECT(0) (EE0B), if present.
    #[must_use]
    pub fn e0b(self) -> Option<u32> {
        self.field(if self.order == EcnOrder::Zero { 0 } else { 2 })
    }

    /// Returns the counter of bytes received as CE (ECEB), if present.
    #[must_use]
    pub fn ceb(self) -> Option<u32> {
        self.field(1)
    }

    /// Returns the counter of bytes received as ECT(1) (EE1B), if present.
    #[must_use]
    pub fn e1b(self) -> Option<u32> {
        self.field(if self.order == EcnOrder::Zero { 2 } else { 0 })
    }

    fn field(self, index: usize) -> Option<u32> {
        (index < usize::from(self.count)).then(|| self.fields[index])
    }

    /// Returns the length of the option and its NOPs in bytes, a multiple of four.
    #[must_use]
    pub fn option_length(self) -> usize {
        self.length().next_multiple_of(4)
    }

    fn length(self) -> usize {
        2 + FIELD * usize::from(self.count)
    }

    /// Returns an array that begins with NOPs for alignment and the encoded option. Their length is
    /// [`option_length`](Self::option_length); the rest of the array is not sent.
    pub(crate) fn emit(self) -> [u8; 12] {
        let mut bytes = [1; 12];
        let at = self.option_length() - self.length();
        bytes[at] = if self.order == EcnOrder::Zero { ORDER_0 } else { ORDER_1 };
        #[allow(clippy::cast_possible_truncation, reason = "at most eleven")]
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

    /// Table 5 of RFC 9768 §3.2.3: the order and the length of an option determine which counters
    /// it contains.
    #[test]
    fn the_length_and_the_order_determine_the_counters() {
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
            "24 bits of each counter"
        );
    }

    /// RFC 9768 §3.2.3: options of a length that the RFC does not define are read up to the last
    /// whole counter, and the rest is padding.
    #[test]
    fn whole_fields_are_read_from_options_of_undefined_length() {
        assert_eq!(read(&[172, 4, 9, 9]), EcnCounts::new(EcnOrder::Zero, 0, 0, 0).cut_to(0));
        assert_eq!(
            read(&[172, 7, 0, 0, 5, 9, 9]),
            EcnCounts::new(EcnOrder::Zero, 5, 0, 0).cut_to(1)
        );
        let long = [174, 14, 0, 0, 1, 0, 0, 2, 1, 0, 3, 9, 9, 9];
        assert_eq!(read(&long), EcnCounts::new(EcnOrder::One, 0x01_0003, 2, 1));
    }
}
