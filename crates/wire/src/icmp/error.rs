//! The problems that ICMP errors report.

use core::fmt;
use core::net::Ipv4Addr;

/// The problem that an ICMP error reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IcmpError {
    /// The packet could not be delivered.
    Unreachable(Unreachable),
    /// The packet exceeds the MTU of the next hop, and has DF set (RFC 1191).
    FragmentationNeeded {
        /// The MTU of the next hop in bytes; zero from routers older than RFC 1191.
        next_hop_mtu: u16,
    },
    /// A time limit was exceeded: the TTL of the packet became zero, or its fragments did not
    /// arrive in time.
    TimeExceeded(TimeExceeded),
    /// A byte of the packet's IP header has an invalid value.
    ParameterProblem {
        /// The offset of the invalid byte in the IP header.
        pointer: u8,
    },
    /// A required IP option is missing (RFC 1122 §3.2.2.5).
    OptionMissing,
    /// A length in the IP header is invalid.
    BadLength,
    /// Another router is a better first hop for the packets that `scope` describes.
    Redirect {
        /// The packets that should use the better router.
        scope: Redirect,
        /// The address of the better router.
        gateway: Ipv4Addr,
    },
    /// A request to send more slowly. Deprecated: transport protocols ignore it (RFC 6633).
    SourceQuench,
}

/// The reason why a packet could not be delivered (RFC 792, RFC 1122 §3.2.2.1, RFC 1812 §5.2.7.1).
/// The discriminants are the codes on the wire; code 4 is [`IcmpError::FragmentationNeeded`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unreachable {
    /// The router has no route to the network.
    Net = 0,
    /// No host answered the ARP requests for the destination.
    Host = 1,
    /// The host does not support the transport protocol.
    Protocol = 2,
    /// No socket is bound to the port.
    Port = 3,
    /// A router of the source route cannot be reached.
    SourceRouteFailed = 5,
    /// The destination network does not exist, according to the router.
    NetUnknown = 6,
    /// The destination host does not exist, according to the router.
    HostUnknown = 7,
    /// The source host is isolated from the network, according to the router. Routers no longer
    /// send this code.
    SourceHostIsolated = 8,
    /// Communication with the network is prohibited.
    NetProhibited = 9,
    /// Communication with the host is prohibited.
    HostProhibited = 10,
    /// The network cannot be reached with the type of service of the packet.
    NetForService = 11,
    /// The host cannot be reached with the type of service of the packet.
    HostForService = 12,
    /// A filter prohibits this communication.
    Prohibited = 13,
    /// The precedence is not allowed for this traffic.
    PrecedenceViolation = 14,
    /// The precedence is below the minimum of the network.
    PrecedenceCutoff = 15,
}

/// The reason of a Time Exceeded message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeExceeded {
    /// The TTL became zero on the path.
    Transit = 0,
    /// The fragments of the datagram did not arrive in time.
    Reassembly = 1,
}

/// The scope of a Redirect message: the packets that should use another router. "The destination"
/// and "the type of service" are those of the packet that caused the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Redirect {
    /// Packets to the destination network.
    Net = 0,
    /// Packets to the destination host.
    Host = 1,
    /// Packets to the destination network with the same type of service.
    ServiceAndNet = 2,
    /// Packets to the destination host with the same type of service.
    ServiceAndHost = 3,
}

const UNREACHABLE: u8 = 3;
const FRAGMENTATION_NEEDED: u8 = 4;
const SOURCE_QUENCH: u8 = 4;
const REDIRECT: u8 = 5;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;

impl IcmpError {
    /// Parses an error from the type, the code, and the second word of the ICMP header. Returns
    /// `None` if no error has this type and code.
    pub(super) fn read(kind: u8, code: u8, field: [u8; 4]) -> Option<Self> {
        let [pointer, _, mtu_high, mtu_low] = field;
        Some(match (kind, code) {
            (UNREACHABLE, FRAGMENTATION_NEEDED) => {
                Self::FragmentationNeeded { next_hop_mtu: u16::from_be_bytes([mtu_high, mtu_low]) }
            }
            (UNREACHABLE, code) => Self::Unreachable(Unreachable::read(code)?),
            (SOURCE_QUENCH, 0) => Self::SourceQuench,
            (REDIRECT, code) => Self::Redirect {
                scope: Redirect::read(code)?,
                gateway: Ipv4Addr::from_octets(field),
            },
            (TIME_EXCEEDED, 0) => Self::TimeExceeded(TimeExceeded::Transit),
            (TIME_EXCEEDED, 1) => Self::TimeExceeded(TimeExceeded::Reassembly),
            (PARAMETER_PROBLEM, 0) => Self::ParameterProblem { pointer },
            (PARAMETER_PROBLEM, 1) => Self::OptionMissing,
            (PARAMETER_PROBLEM, 2) => Self::BadLength,
            _ => return None,
        })
    }

    /// Returns the type, the code, and the second word of the ICMP header that encode this error.
    pub(super) const fn fields(self) -> (u8, u8, [u8; 4]) {
        const NONE: [u8; 4] = [0; 4];
        match self {
            Self::Unreachable(reason) => (UNREACHABLE, reason as u8, NONE),
            Self::FragmentationNeeded { next_hop_mtu } => {
                let [high, low] = next_hop_mtu.to_be_bytes();
                (UNREACHABLE, FRAGMENTATION_NEEDED, [0, 0, high, low])
            }
            Self::TimeExceeded(time) => (TIME_EXCEEDED, time as u8, NONE),
            Self::ParameterProblem { pointer } => (PARAMETER_PROBLEM, 0, [pointer, 0, 0, 0]),
            Self::OptionMissing => (PARAMETER_PROBLEM, 1, NONE),
            Self::BadLength => (PARAMETER_PROBLEM, 2, NONE),
            Self::Redirect { scope, gateway } => (REDIRECT, scope as u8, gateway.octets()),
            Self::SourceQuench => (SOURCE_QUENCH, 0, NONE),
        }
    }
}

impl fmt::Display for IcmpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(reason) => f.write_str(reason.name()),
            Self::FragmentationNeeded { next_hop_mtu: 0 } => f.write_str("fragmentation needed"),
            Self::FragmentationNeeded { next_hop_mtu } => {
                write!(f, "fragmentation needed, mtu {next_hop_mtu}")
            }
            Self::TimeExceeded(TimeExceeded::Transit) => f.write_str("time exceeded in transit"),
            Self::TimeExceeded(TimeExceeded::Reassembly) => {
                f.write_str("time exceeded in reassembly")
            }
            Self::ParameterProblem { pointer } => write!(f, "parameter problem at byte {pointer}"),
            Self::OptionMissing => f.write_str("parameter problem, option missing"),
            Self::BadLength => f.write_str("parameter problem, bad length"),
            Self::Redirect { scope, gateway } => {
                write!(f, "redirect {} to {gateway}", scope.name())
            }
            Self::SourceQuench => f.write_str("source quench"),
        }
    }
}

impl Unreachable {
    const ALL: [Self; 15] = [
        Self::Net,
        Self::Host,
        Self::Protocol,
        Self::Port,
        Self::SourceRouteFailed,
        Self::NetUnknown,
        Self::HostUnknown,
        Self::SourceHostIsolated,
        Self::NetProhibited,
        Self::HostProhibited,
        Self::NetForService,
        Self::HostForService,
        Self::Prohibited,
        Self::PrecedenceViolation,
        Self::PrecedenceCutoff,
    ];

    fn read(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&reason| reason as u8 == code)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Net => "net unreachable",
            Self::Host => "host unreachable",
            Self::Protocol => "protocol unreachable",
            Self::Port => "port unreachable",
            Self::SourceRouteFailed => "source route failed",
            Self::NetUnknown => "net unknown",
            Self::HostUnknown => "host unknown",
            Self::SourceHostIsolated => "source host isolated",
            Self::NetProhibited => "net prohibited",
            Self::HostProhibited => "host prohibited",
            Self::NetForService => "net unreachable for this service",
            Self::HostForService => "host unreachable for this service",
            Self::Prohibited => "prohibited by a filter",
            Self::PrecedenceViolation => "precedence violation",
            Self::PrecedenceCutoff => "precedence cutoff",
        }
    }
}

impl Redirect {
    const ALL: [Self; 4] = [Self::Net, Self::Host, Self::ServiceAndNet, Self::ServiceAndHost];

    fn read(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Net => "net",
            Self::Host => "host",
            Self::ServiceAndNet => "service and net",
            Self::ServiceAndHost => "service and host",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_emitting_and_parsing() {
        let mut known = 0;
        for kind in 0..=255 {
            for code in 0..=255 {
                if let Some(error) = IcmpError::read(kind, code, [0; 4]) {
                    assert_eq!(error.fields(), (kind, code, [0; 4]));
                    known += 1;
                }
            }
        }
        assert_eq!(known, 16 + 1 + 4 + 2 + 3);
    }

    #[test]
    fn the_second_word_is_parsed_as_mtu_pointer_or_gateway() {
        let mtu = IcmpError::FragmentationNeeded { next_hop_mtu: 0x0578 };
        assert_eq!(IcmpError::read(3, 4, [9, 9, 5, 0x78]), Some(mtu));
        assert_eq!(
            IcmpError::read(12, 0, [8, 0, 0, 0]),
            Some(IcmpError::ParameterProblem { pointer: 8 })
        );
        let gateway = Ipv4Addr::new(192, 0, 2, 9);
        let redirect = IcmpError::Redirect { scope: Redirect::Host, gateway };
        assert_eq!(IcmpError::read(5, 1, [192, 0, 2, 9]), Some(redirect));
    }
}
