//! ICMP messages in the script's notation: `icmp unreachable frag_needed mtu 1200 [1:1001(1000)]`,
//! `icmp echo_request id 7 seq 1 (100)`. The notation is that of packetdrill, for both IP versions.

use super::SyntaxError;
use super::cursor::Cursor;
use super::ip::IpMarks;
use super::packet::{check_length, sequence};
use core::fmt;
use linerate_wire::UdpHeader;
use std::net::IpAddr;

/// An ICMP message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// The fields of the IP header that the script specifies.
    pub ip: IpMarks,
    /// The type and code, by their names.
    pub kind: IcmpKind,
    /// The part of the message after its type and code.
    pub body: IcmpBody,
}

/// A type and code of ICMP, with their numbers in both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpKind {
    /// The name of the type.
    pub name: &'static str,
    /// The name of the code; empty if the type has no code.
    pub code: &'static str,
    /// Type and code of ICMP for IPv4; `None` if it has no such message.
    pub v4: Option<(u8, u8)>,
    /// Type and code of ICMPv6; `None` if it has no such message.
    pub v6: Option<(u8, u8)>,
}

/// The part of an ICMP message that depends on its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IcmpBody {
    /// An error about a packet.
    Error {
        /// The MTU of the next hop, or the offset of the byte that the error reports (the pointer);
        /// `None` if the script gives neither.
        field: Option<u32>,
        /// The quoted packet; `None` if no packet is given.
        quoted: Option<Quoted>,
    },
    /// An echo request or reply.
    Echo {
        /// The identifier of the echo.
        id: u16,
        /// The sequence number of the echo.
        seq: u16,
        /// Number of data bytes.
        length: u16,
    },
}

/// The packet of the host that an error quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoted {
    /// A segment: its first sequence number, and its length in bytes.
    Segment(u32, u16),
    /// A datagram with this number of data bytes.
    Datagram(u16),
}

const fn row(
    name: &'static str,
    code: &'static str,
    v4: Option<(u8, u8)>,
    v6: Option<(u8, u8)>,
) -> IcmpKind {
    IcmpKind { name, code, v4, v6 }
}

/// ICMP messages by their names (RFC 792, RFC 1812 §5.2.7.1, RFC 4443), with type and code for ICMP
/// and for ICMPv6. An error that only ICMP has is replaced by the ICMPv6 error with the closest
/// meaning, because scripts for IPv4 can run over IPv6. `None` means that a version has no such
/// message.
const KINDS: [IcmpKind; 28] = [
    row("unreachable", "net_unreachable", Some((3, 0)), Some((1, 0))),
    row("unreachable", "host_unreachable", Some((3, 1)), Some((1, 3))),
    row("unreachable", "protocol_unreachable", Some((3, 2)), Some((4, 1))),
    row("unreachable", "port_unreachable", Some((3, 3)), Some((1, 4))),
    row("unreachable", "frag_needed", Some((3, 4)), Some((2, 0))),
    row("unreachable", "source_route_failed", Some((3, 5)), Some((1, 3))),
    row("unreachable", "net_unknown", Some((3, 6)), Some((1, 0))),
    row("unreachable", "host_unknown", Some((3, 7)), Some((1, 3))),
    row("unreachable", "net_prohibited", Some((3, 9)), Some((1, 1))),
    row("unreachable", "host_prohibited", Some((3, 10)), Some((1, 1))),
    row("unreachable", "communication_prohibited", Some((3, 13)), Some((1, 1))),
    row("unreachable", "no_route", None, Some((1, 0))),
    row("unreachable", "admin_prohibited", None, Some((1, 1))),
    row("unreachable", "not_neighbour", None, Some((1, 2))),
    row("unreachable", "address_unreachable", None, Some((1, 3))),
    row("packet_too_big", "", None, Some((2, 0))),
    row("source_quench", "", Some((4, 0)), None),
    row("time_exceeded", "ttl_exceeded", Some((11, 0)), Some((3, 0))),
    row("time_exceeded", "reassembly_exceeded", Some((11, 1)), Some((3, 1))),
    row("time_exceeded", "exceeded_hop_limit", None, Some((3, 0))),
    row("time_exceeded", "exceeded_frag_time", None, Some((3, 1))),
    row("parameter_problem", "", Some((12, 0)), Some((4, 0))),
    row("parameter_problem", "header_field", None, Some((4, 0))),
    row("parameter_problem", "unknown_next_header", None, Some((4, 1))),
    row("parameter_problem", "unknown_option", None, Some((4, 2))),
    row("parameter_problem", "incomplete_header_chain", None, Some((4, 3))),
    row("echo_request", "", Some((8, 0)), Some((128, 0))),
    row("echo_reply", "", Some((0, 0)), Some((129, 0))),
];

/// Parses the ICMP message that follows the word `icmp`.
pub(super) fn icmp(cursor: &mut Cursor<'_>, ip: IpMarks) -> Result<Icmp, SyntaxError> {
    let kind = kind(cursor)?;
    let body =
        if kind.name.starts_with("echo_") { echo_body(cursor)? } else { error_body(cursor)? };
    Ok(Icmp { ip, kind, body })
}

/// Parses the names of a type and its code.
fn kind(cursor: &mut Cursor<'_>) -> Result<IcmpKind, SyntaxError> {
    let name = cursor.word("an ICMP message")?;
    let rows = || KINDS.iter().filter(|row| row.name == name);
    if rows().next().is_none() {
        let mut names: Vec<_> = KINDS.iter().map(|row| row.name).collect();
        names.dedup();
        return Err(cursor.error(format!("`{name}` is not an ICMP message: {}", names.join(", "))));
    }
    let code = match cursor.peek_word() {
        Some(word) if ["mtu", "pointer", "id", "seq"].contains(&word) => "",
        word => word.unwrap_or(""),
    };
    // The code is optional. A word that begins with a digit is no code, but already the time at the
    // start of the script's next line.
    let code = if code.starts_with(|first: char| first.is_ascii_digit()) { "" } else { code };
    let found = rows().find(|row| row.code == code);
    let found = found.or_else(|| rows().next().filter(|_| code.is_empty())).copied();
    let Some(found) = found else {
        let codes: Vec<_> = rows().map(|row| row.code).filter(|code| !code.is_empty()).collect();
        return Err(cursor.error(format!("`{code}` is not a code of {name}: {}", codes.join(", "))));
    };
    if !code.is_empty() {
        cursor.take_word(code);
    }
    Ok(found)
}

fn error_body(cursor: &mut Cursor<'_>) -> Result<IcmpBody, SyntaxError> {
    let field = if cursor.take_word("mtu") {
        Some(cursor.number("an MTU")?)
    } else if cursor.take_word("pointer") {
        Some(cursor.number("the offset of a byte")?)
    } else {
        None
    };
    let quoted = if cursor.take("[") {
        let quoted = if cursor.take_word("udp") {
            Quoted::Datagram(data_length(cursor)?)
        } else {
            let (first, length) = sequence(cursor)?;
            check_length(cursor, &[], length)?;
            Quoted::Segment(first, length)
        };
        cursor.want("]")?;
        Some(quoted)
    } else {
        None
    };
    Ok(IcmpBody::Error { field, quoted })
}

/// Parses `id 7 seq 1 (100)`; the numbers are zero if they are left out.
fn echo_body(cursor: &mut Cursor<'_>) -> Result<IcmpBody, SyntaxError> {
    let id = if cursor.take_word("id") { cursor.number("an identifier")? } else { 0 };
    let seq = if cursor.take_word("seq") { cursor.number("a sequence number")? } else { 0 };
    let length = if cursor.sees("(") { data_length(cursor)? } else { 0 };
    Ok(IcmpBody::Echo { id, seq, length })
}

/// Parses `(1000)`: the number of data bytes of a datagram or an echo. Refuses more data than a
/// packet has room for.
pub(super) fn data_length(cursor: &mut Cursor<'_>) -> Result<u16, SyntaxError> {
    cursor.want("(")?;
    let length: u16 = cursor.number("a length of data")?;
    cursor.want(")")?;
    let most = usize::from(u16::MAX) - 20 - UdpHeader::LENGTH;
    if usize::from(length) <= most {
        return Ok(length);
    }
    Err(cursor.error(format!("{length} bytes of data are too many: a packet has room for {most}")))
}

impl IcmpKind {
    /// Returns the type and code of this message in the IP version of `address`, or `None` if this
    /// version has no such message.
    pub(crate) const fn number(&self, address: IpAddr) -> Option<(u8, u8)> {
        match address {
            IpAddr::V4(_) => self.v4,
            IpAddr::V6(_) => self.v6,
        }
    }

    /// Returns the message kind with this type and code; `None` if there is none. Several kinds may
    /// have these numbers. In that case, the result is `expected`, the kind that the script names,
    /// if it is among them.
    pub(crate) fn of_number(number: (u8, u8), address: IpAddr, expected: &Self) -> Option<Self> {
        let is_it = |kind: &&Self| kind.number(address) == Some(number);
        Some(expected).filter(is_it).or_else(|| KINDS.iter().find(is_it)).copied()
    }

    /// Does the second 32-bit word of the message contain an MTU?
    pub(crate) fn has_mtu(&self) -> bool {
        self.code == "frag_needed" || self.name == "packet_too_big"
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Segment(first, length) => {
                write!(f, " [{first}:{}({length})]", first.wrapping_add(length.into()))
            }
            Self::Datagram(length) => write!(f, " [udp ({length})]"),
        }
    }
}

impl fmt::Display for Icmp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IcmpKind { name, code, .. } = self.kind;
        write!(f, "{}icmp {name}", self.ip)?;
        if !code.is_empty() {
            write!(f, " {code}")?;
        }
        match &self.body {
            IcmpBody::Error { field, quoted } => {
                if let Some(field) = field {
                    let word = if self.kind.has_mtu() { "mtu" } else { "pointer" };
                    write!(f, " {word} {field}")?;
                }
                quoted.map_or(Ok(()), |quoted| quoted.fmt(f))
            }
            IcmpBody::Echo { id, seq, length } => write!(f, " id {id} seq {seq} ({length})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Icmp, SyntaxError> {
        let mut cursor = Cursor::new(text.strip_prefix("icmp ").unwrap(), 1);
        icmp(&mut cursor, IpMarks::default())
    }

    #[test]
    fn messages_are_formatted_as_they_were_parsed() {
        for text in [
            "icmp unreachable frag_needed mtu 1200 [1:1001(1000)]",
            "icmp packet_too_big mtu 1280 [udp (2000)]",
            "icmp parameter_problem unknown_option pointer 42",
            "icmp source_quench [1:1(0)]",
            "icmp echo_request id 7 seq 1 (100)",
            "icmp time_exceeded exceeded_frag_time",
        ] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_message_has_the_number_of_its_ip_version() {
        let kind = read("icmp unreachable frag_needed").unwrap().kind;
        let (v4, v6) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([0; 16]));
        assert_eq!((kind.number(v4), kind.number(v6)), (Some((3, 4)), Some((2, 0))));
        assert_eq!(read("icmp source_quench").unwrap().kind.number(v6), None);
        let found = IcmpKind::of_number((1, 3), v6, &kind).unwrap();
        assert_eq!(found.code, "host_unreachable");
    }

    #[test]
    fn invalid_messages_are_refused() {
        for (text, says) in [
            ("icmp nonsense", "not an ICMP message: unreachable, packet_too_big"),
            ("icmp unreachable nonsense", "not a code of unreachable"),
            ("icmp unreachable port_unreachable [1:65497(65496)]", "room for 65495"),
            ("icmp echo_request (65508)", "room for 65507"),
            ("icmp echo_request id 65536", "out of range"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.what.contains(says), "{text}: {error}");
        }
    }
}
