//! UDP datagrams (RFC 768).

use crate::layout::{half, room, split_fixed};
use crate::{Malformed, Sum};

/// The ports in the header of a UDP datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpHeader {
    /// The sender's port; zero if no reply is wanted.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
}

impl UdpHeader {
    /// The length of the header in bytes.
    pub const LENGTH: usize = 8;
    /// The offset of the checksum in the header.
    pub const CHECKSUM_OFFSET: usize = 6;

    /// Writes the header of a datagram with `payload_length` bytes of data to the start of `bytes`,
    /// and returns its length. The checksum is zero, which means that the datagram has none.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`UdpHeader::LENGTH`], or the datagram longer than 65,535 bytes.
    pub fn emit(&self, payload_length: usize, bytes: &mut [u8]) -> usize {
        let Ok(length) = u16::try_from(Self::LENGTH + payload_length) else {
            panic!("a datagram of 8 + {payload_length} bytes exceeds 65,535");
        };
        let fixed = room::<{ Self::LENGTH }>(bytes);
        fixed[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        fixed[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        fixed[4..6].copy_from_slice(&length.to_be_bytes());
        fixed[6..8].fill(0);
        Self::LENGTH
    }

    /// Writes the checksum into the datagram at the start of `bytes`. `pseudo` is the sum over the
    /// pseudo-header, and `sum` the sum over the datagram with a checksum field of zero. If the
    /// computed checksum is zero, all ones are written instead, because zero means that there is no
    /// checksum. In ones' complement, the two are equal.
    ///
    /// # Panics
    /// If `bytes` is shorter than the header.
    pub fn fill_checksum(bytes: &mut [u8], pseudo: Sum, sum: Sum) {
        let checksum = match (pseudo + sum).finish() {
            0 => u16::MAX,
            checksum => checksum,
        };
        let at = Self::CHECKSUM_OFFSET;
        room::<{ Self::LENGTH }>(bytes)[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// A received UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpDatagram<'a> {
    /// The source and destination ports.
    pub header: UdpHeader,
    /// The data of the datagram, without its header.
    pub payload: &'a [u8],
    /// The header and the data as bytes.
    bytes: &'a [u8],
}

impl<'a> UdpDatagram<'a> {
    /// Parses the datagram at the start of `bytes`, and ignores bytes after its length. Does not
    /// verify the checksum, because that requires the IP addresses, and the link may have verified
    /// it already.
    ///
    /// # Errors
    /// [`Malformed`] if `bytes` is shorter than the header, or than the length field says. Also if
    /// the length field is less than the length of the header.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (fixed, _) = split_fixed::<{ UdpHeader::LENGTH }>("UDP header", bytes)?;
        let length = half(fixed, 4);
        let Some(bytes) = bytes.get(..usize::from(length)) else {
            return Err(Malformed::Truncated {
                what: "UDP datagram",
                needed: usize::from(length),
                had: bytes.len(),
            });
        };
        let Some(payload) = bytes.get(UdpHeader::LENGTH..) else {
            return Err(Malformed::Field {
                what: "UDP header",
                field: "length",
                value: length.into(),
            });
        };
        let header = UdpHeader { source_port: half(fixed, 0), destination_port: half(fixed, 2) };
        Ok(Self { header, payload, bytes })
    }

    /// Returns the length of the header and the data in bytes, as the pseudo-header counts it.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Is the checksum field zero, which means that the sender computed no checksum? IPv6 forbids
    /// that (RFC 8200 §8.1).
    #[must_use]
    #[inline]
    pub fn has_no_checksum(&self) -> bool {
        let at = UdpHeader::CHECKSUM_OFFSET;
        self.bytes[at..at + 2] == [0, 0]
    }

    /// Verifies the checksum, if there is one. `pseudo` is the sum over a pseudo-header with the
    /// length [`UdpDatagram::length`].
    ///
    /// # Errors
    /// [`Malformed::Checksum`] if the checksum is wrong: the datagram must be discarded (RFC 1122
    /// §4.1.3.4).
    pub fn verify_checksum(&self, pseudo: Sum) -> Result<(), Malformed> {
        if self.has_no_checksum() || (pseudo + Sum::of(self.bytes)).is_valid() {
            return Ok(());
        }
        Err(Malformed::Checksum { what: "UDP datagram" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: UdpHeader = UdpHeader { source_port: 19, destination_port: 9 };

    fn pseudo() -> Sum {
        Sum::of(&[192, 0, 2, 1, 192, 0, 2, 2, 0, 17, 0, 10])
    }

    #[test]
    fn the_length_field_ends_the_payload() {
        let mut bytes = [0xee; 18];
        assert_eq!(HEADER.emit(2, &mut bytes), 8);
        assert_eq!(bytes[..9], [0, 19, 0, 9, 0, 10, 0, 0, 0xee]);
        let datagram = UdpDatagram::parse(&bytes).unwrap();
        assert_eq!(
            (datagram.header, datagram.payload, datagram.length()),
            (HEADER, &[0xee; 2][..], 10)
        );
    }

    #[test]
    fn a_length_within_the_header_or_beyond_the_bytes_is_malformed() {
        let mut bytes = [0; 10];
        HEADER.emit(0, &mut bytes);
        bytes[5] = 7;
        assert!(matches!(UdpDatagram::parse(&bytes), Err(Malformed::Field { value: 7, .. })));
        bytes[5] = 11;
        assert!(matches!(
            UdpDatagram::parse(&bytes),
            Err(Malformed::Truncated { needed: 11, had: 10, .. })
        ));
        assert!(UdpDatagram::parse(&bytes[..7]).is_err());
    }

    #[test]
    fn a_missing_checksum_is_accepted_and_a_sent_checksum_is_never_zero() {
        let mut bytes = [0; 10];
        HEADER.emit(2, &mut bytes);
        assert_eq!(UdpDatagram::parse(&bytes).unwrap().verify_checksum(pseudo()), Ok(()));
        // This payload makes the computed checksum zero, which must be sent as all ones.
        let rest = (pseudo() + Sum::of(&bytes)).finish();
        bytes[8..].copy_from_slice(&rest.to_be_bytes());
        let sum = Sum::of(&bytes);
        UdpHeader::fill_checksum(&mut bytes, pseudo(), sum);
        assert_eq!(bytes[6..8], [0xff, 0xff]);
        assert_eq!(UdpDatagram::parse(&bytes).unwrap().verify_checksum(pseudo()), Ok(()));
        bytes[8] ^= 1;
        assert!(UdpDatagram::parse(&bytes).unwrap().verify_checksum(pseudo()).is_err());
    }
}
