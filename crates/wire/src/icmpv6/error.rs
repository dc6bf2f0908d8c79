//! The problems that ICMPv6 errors report (RFC 4443 §3).

use core::fmt;

/// The problem that an ICMPv6 error reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Icmpv6Error {
    /// The packet could not be delivered.
    Unreachable(Icmpv6Unreachable),
    /// The packet exceeds the MTU of the next hop.
    PacketTooBig {
        /// The MTU of the next hop in bytes. A hostile sender may report any value.
        mtu: u32,
    },
    /// The hop limit became zero on the path.
    HopLimitExceeded,
    /// The fragments of the packet did not arrive in time.
    ReassemblyTimeExceeded,
    /// A byte of the packet has an invalid value.
    ParameterProblem {
        /// The reason why the value is invalid.
        problem: Icmpv6Problem,
        /// The offset of the invalid byte in the packet, which may lie beyond the quote.
        pointer: u32,
    },
    /// An error of an unknown type or code. Hosts must pass it to the transport protocol (RFC 4443
    /// §2.4 a).
    Unknown {
        /// The ICMPv6 type of the message, less than 128.
        kind: u8,
        /// The ICMPv6 code of the message.
        code: u8,
        /// The second word of the ICMPv6 header, whose meaning depends on the type.
        field: [u8; 4],
    },
}

/// The reason why a packet could not be delivered (RFC 4443 §3.1). The discriminants are the codes
/// on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Icmpv6Unreachable {
    /// The router has no route to the destination.
    NoRoute = 0,
    /// Communication with the destination is prohibited.
    Prohibited = 1,
    /// The scope of the source address does not include the destination.
    BeyondScope = 2,
    /// The address cannot be reached, for example because the neighbour does not answer.
    Address = 3,
    /// No socket is bound to the port.
    Port = 4,
    /// A policy for source addresses forbids the packet.
    SourcePolicy = 5,
    /// The route to the destination is a reject route, whose packets are dropped.
    RejectRoute = 6,
}

/// The reason of a parameter problem (RFC 4443 §3.4). The discriminants are the codes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Icmpv6Problem {
    /// A header field has a wrong value.
    HeaderField = 0,
    /// A Next Header field contains an unknown type.
    NextHeader = 1,
    /// An IPv6 option is of an unknown type.
    Option = 2,
    /// The first fragment does not contain all headers (RFC 7112 §5).
    IncompleteHeaderChain = 3,
}

const UNREACHABLE: u8 = 1;
const PACKET_TOO_BIG: u8 = 2;
const TIME_EXCEEDED: u8 = 3;
const PARAMETER_PROBLEM: u8 = 4;

impl Icmpv6Error {
    /// Parses an error from its type (less than 128), its code, and the second word of the ICMPv6
    /// header.
    pub(super) fn read(kind: u8, code: u8, field: [u8; 4]) -> Self {
        let word = u32::from_be_bytes(field);
        let unknown = Self::Unknown { kind, code, field };
        match (kind, code) {
            (UNREACHABLE, code) => Icmpv6Unreachable::read(code).map_or(unknown, Self::Unreachable),
            // A receiver must ignore the code of Packet Too Big (RFC 4443 §3.2).
            (PACKET_TOO_BIG, _) => Self::PacketTooBig { mtu: word },
            (TIME_EXCEEDED, 0) => Self::HopLimitExceeded,
            (TIME_EXCEEDED, 1) => Self::ReassemblyTimeExceeded,
            (PARAMETER_PROBLEM, code) => Icmpv6Problem::read(code)
                .map_or(unknown, |problem| Self::ParameterProblem { problem, pointer: word }),
            _ => unknown,
        }
    }

    /// Returns the type, the code, and the second word of the ICMPv6 header that encode this error.
    pub(super) const fn fields(self) -> (u8, u8, [u8; 4]) {
        const NONE: [u8; 4] = [0; 4];
        match self {
            Self::Unreachable(reason) => (UNREACHABLE, reason as u8, NONE),
            Self::PacketTooBig { mtu } => (PACKET_TOO_BIG, 0, mtu.to_be_bytes()),
            Self::HopLimitExceeded => (TIME_EXCEEDED, 0, NONE),
            Self::ReassemblyTimeExceeded => (TIME_EXCEEDED, 1, NONE),
            Self::ParameterProblem { problem, pointer } => {
                (PARAMETER_PROBLEM, problem as u8, pointer.to_be_bytes())
            }
            Self::Unknown { kind, code, field } => (kind, code, field),
        }
    }
}

impl fmt::Display for Icmpv6Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(reason) => f.write_str(reason.name()),
            Self::PacketTooBig { mtu } => write!(f, "packet too big, mtu {mtu}"),
            Self::HopLimitExceeded => f.write_str("hop limit exceeded"),
            Self::ReassemblyTimeExceeded => f.write_str("time exceeded in reassembly"),
            Self::ParameterProblem { problem, pointer } => {
                write!(f, "parameter problem, {} at byte {pointer}", problem.name())
            }
            Self::Unknown { kind, code, .. } => write!(f, "error {kind} with code {code}"),
        }
    }
}

impl Icmpv6Unreachable {
    const ALL: [Self; 7] = [
        Self::NoRoute,
        Self::Prohibited,
        Self::BeyondScope,
        Self::Address,
        Self::Port,
        Self::SourcePolicy,
        Self::RejectRoute,
    ];

    fn read(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    const fn name(self) -> &'static str {
        match self {
            Self::NoRoute => "no route",
            Self::Prohibited => "communication prohibited",
            Self::BeyondScope => "beyond scope of the source address",
            Self::Address => "address unreachable",
            Self::Port => "port unreachable",
            Self::SourcePolicy => "source address failed policy",
            Self::RejectRoute => "rejected by route",
        }
    }
}

impl Icmpv6Problem {
    const ALL: [Self; 4] =
        [Self::HeaderField, Self::NextHeader, Self::Option, Self::IncompleteHeaderChain];

    fn read(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    const fn name(self) -> &'static str {
        match self {
            Self::HeaderField => "wrong header field",
            Self::NextHeader => "unknown next header",
            Self::Option => "unknown option",
            Self::IncompleteHeaderChain => "incomplete header chain",
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_type_and_code_is_read_as_it_is_written() {
        for kind in 0..128 {
            for code in [0, 1, 2, 3, 4, 5, 6, 7, 255] {
                let error = Icmpv6Error::read(kind, code, [1, 2, 3, 4]);
                let (written_kind, written_code, field) = error.fields();
                assert_eq!(written_kind, kind);
                assert_eq!(Icmpv6Error::read(written_kind, written_code, field), error);
                if !matches!(error, Icmpv6Error::PacketTooBig { .. }) {
                    assert_eq!(written_code, code);
                }
            }
        }
    }

    #[test]
    fn the_codes_are_those_of_rfc_4443() {
        let read = |kind, code| Icmpv6Error::read(kind, code, [0, 0, 5, 0]);
        assert_eq!(read(1, 4), Icmpv6Error::Unreachable(Icmpv6Unreachable::Port));
        assert_eq!(read(2, 9), Icmpv6Error::PacketTooBig { mtu: 1280 });
        assert_eq!(read(3, 0), Icmpv6Error::HopLimitExceeded);
        assert_eq!(read(3, 1), Icmpv6Error::ReassemblyTimeExceeded);
        let problem = Icmpv6Problem::NextHeader;
        assert_eq!(read(4, 1), Icmpv6Error::ParameterProblem { problem, pointer: 1280 });
        assert!(matches!(read(1, 7), Icmpv6Error::Unknown { kind: 1, code: 7, .. }));
        assert!(matches!(read(100, 0), Icmpv6Error::Unknown { kind: 100, .. }));
    }

    #[test]
    fn errors_are_printed_in_words() {
        for (error, text) in [
            (Icmpv6Error::PacketTooBig { mtu: 1_280 }, "packet too big, mtu 1280"),
            (Icmpv6Error::Unreachable(Icmpv6Unreachable::NoRoute), "no route"),
            (
                Icmpv6Error::ParameterProblem { problem: Icmpv6Problem::Option, pointer: 42 },
                "parameter problem, unknown option at byte 42",
            ),
            (Icmpv6Error::Unknown { kind: 100, code: 1, field: [0; 4] }, "error 100 with code 1"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
