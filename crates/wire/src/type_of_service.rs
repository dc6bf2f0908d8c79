//! The type-of-service byte: differentiated services and congestion marks (RFC 2474, RFC 3168).

/// The second byte of an IPv4 header, or the traffic class of IPv6: the differentiated services
/// code point (DSCP) and the ECN field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct TypeOfService(u8);

/// The ECN field of a packet (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not ECN-capable: congested routers drop the packet.
    #[default]
    NotEct,
    /// ECN-capable transport, ECT(1).
    Ect1,
    /// ECN-capable transport, ECT(0): the usual codepoint.
    Ect0,
    /// Congestion experienced: a router was congested.
    Ce,
}

impl TypeOfService {
    /// Creates the type of service that is `byte` on the wire.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    /// Returns the byte on the wire.
    #[must_use]
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// Replaces the DSCP. Returns `None` if `dscp` exceeds six bits.
    #[must_use]
    pub const fn with_dscp(self, dscp: u8) -> Option<Self> {
        if dscp > 63 { None } else { Some(Self(dscp << 2 | self.0 & 3)) }
    }

    /// Replaces the ECN field.
    #[must_use]
    pub const fn with_ecn(self, ecn: Ecn) -> Self {
        Self(self.0 & !3 | ecn as u8)
    }

    /// Returns the differentiated services code point, six bits.
    #[must_use]
    pub const fn dscp(self) -> u8 {
        self.0 >> 2
    }

    /// Returns the ECN field.
    #[must_use]
    pub const fn ecn(self) -> Ecn {
        match self.0 & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_point_and_ecn_field_are_independent() {
        let expedited = TypeOfService::default().with_ecn(Ecn::Ect0).with_dscp(46).unwrap();
        assert_eq!((expedited.byte(), expedited.dscp(), expedited.ecn()), (0xba, 46, Ecn::Ect0));
        assert_eq!(expedited.with_ecn(Ecn::Ce).byte(), 0xbb);
        assert!(expedited.with_dscp(64).is_none());
        for byte in 0..=255 {
            let service = TypeOfService::from_byte(byte);
            assert_eq!(service.with_ecn(service.ecn()).with_dscp(service.dscp()), Some(service));
        }
    }
}
