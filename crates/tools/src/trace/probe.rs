//! The format of probes, and the recognition of their replies.

use super::report::Note;
use super::{Method, TraceParameters};
use linerate_stack::RawPacket;
use linerate_units::Instant;
use linerate_wire::{
    Echo, IcmpError, IcmpMessage, Icmpv6Error, Icmpv6Message, Icmpv6Unreachable, Ipv6Header,
    Protocol, TimeExceeded, Unreachable,
};
use std::net::IpAddr;

/// A reply to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// The number of the answered probe, counted from zero.
    pub(super) probe: u16,
    pub(super) from: IpAddr,
    pub(super) arrived: Instant,
    pub(super) is_destination: bool,
    pub(super) note: Option<Note>,
}

/// Returns the bytes of an echo request that serves as probe number `probe`. Over IPv6 they have no
/// checksum, because the host computes that.
pub(super) fn echo_request(parameters: &TraceParameters, probe: u16) -> Vec<u8> {
    let data = vec![0x40; parameters.size];
    let echo = Echo { identifier: parameters.identifier, sequence: probe, data: &data };
    match parameters.destination {
        IpAddr::V4(_) => {
            let message = IcmpMessage::EchoRequest(echo);
            let mut bytes = vec![0; message.length()];
            message.emit(&mut bytes);
            bytes
        }
        IpAddr::V6(to) => {
            let message = Icmpv6Message::EchoRequest(echo);
            let mut bytes = vec![0; message.length()];
            message.emit(&Ipv6Header::new(to, to, Protocol::ICMPV6), &mut bytes);
            bytes
        }
    }
}

/// The probe that an ICMP message answers or quotes.
enum Subject {
    /// An echo request with this identifier and this sequence number.
    Echo(u16, u16),
    /// A UDP datagram with this source port and this destination port.
    Datagram(u16, u16),
}

impl Subject {
    /// Identifies the probe that an ICMP error quotes. `echo` is the identifier and sequence number
    /// of a quoted echo request; `ports` are the ports of a quoted datagram. Returns `None` if the
    /// error quotes neither.
    const fn of_quote(echo: Option<(u16, u16)>, ports: Option<(u16, u16)>) -> Option<Self> {
        match (echo, ports) {
            (Some((identifier, sequence)), _) => Some(Self::Echo(identifier, sequence)),
            (None, Some((from, to))) => Some(Self::Datagram(from, to)),
            (None, None) => None,
        }
    }
}

/// The content of an ICMP message that may answer a probe.
struct Finding {
    destination: IpAddr,
    subject: Subject,
    /// Whether a message of this kind is sent only by a destination, and not by the routers on the
    /// way to it.
    is_arrival: bool,
    note: Option<Note>,
}

/// Parses a received ICMP message; returns `None` if it is not a reply to a probe.
pub(super) fn read_reply(
    parameters: &TraceParameters,
    source_port: Option<u16>,
    packet: &RawPacket,
    bytes: &[u8],
) -> Option<Reply> {
    let finding = match (packet.source, packet.destination) {
        (IpAddr::V4(source), _) => read_icmp(source.into(), bytes)?,
        (IpAddr::V6(source), IpAddr::V6(own)) => {
            let header = Ipv6Header {
                hop_limit: packet.hops,
                ..Ipv6Header::new(source, own, Protocol::ICMPV6)
            };
            read_icmpv6(&header, bytes)?
        }
        _ => return None,
    };
    let probe = match (finding.subject, parameters.method) {
        (Subject::Echo(identifier, sequence), Method::Icmp) => {
            (identifier == parameters.identifier).then_some(sequence)
        }
        (Subject::Datagram(from, to), Method::Udp) => {
            (Some(from) == source_port).then(|| to.wrapping_sub(parameters.port))
        }
        _ => None,
    }?;
    let is_destination = finding.is_arrival && packet.source == parameters.destination;
    (finding.destination == parameters.destination).then_some(Reply {
        probe,
        from: packet.source,
        arrived: packet.arrived,
        is_destination,
        note: finding.note.filter(|_| !is_destination),
    })
}

fn read_icmp(source: IpAddr, bytes: &[u8]) -> Option<Finding> {
    let (error, quote) = match IcmpMessage::parse(bytes).ok()? {
        IcmpMessage::EchoReply(echo) => {
            let subject = Subject::Echo(echo.identifier, echo.sequence);
            return Some(Finding { destination: source, subject, is_arrival: true, note: None });
        }
        IcmpMessage::Error { error, quote } => (error, quote),
        _ => return None,
    };
    let subject = Subject::of_quote(quote.echo_request(), quote.ports())?;
    let note = match error {
        IcmpError::TimeExceeded(TimeExceeded::Transit) => None,
        IcmpError::TimeExceeded(TimeExceeded::Reassembly) => Some(Note::Other),
        IcmpError::FragmentationNeeded { next_hop_mtu } => Some(Note::TooBig(next_hop_mtu.into())),
        IcmpError::Unreachable(reason) => Some(match reason {
            Unreachable::Net | Unreachable::NetUnknown | Unreachable::NetForService => {
                Note::Network
            }
            Unreachable::Host | Unreachable::HostUnknown | Unreachable::HostForService => {
                Note::Host
            }
            Unreachable::Protocol => Note::Protocol,
            Unreachable::Port => Note::Port,
            Unreachable::NetProhibited | Unreachable::HostProhibited | Unreachable::Prohibited => {
                Note::Prohibited
            }
            _ => Note::Other,
        }),
        _ => return None,
    };
    let destination = quote.header.destination.into();
    Some(Finding { destination, subject, is_arrival: note == Some(Note::Port), note })
}

fn read_icmpv6(header: &Ipv6Header, bytes: &[u8]) -> Option<Finding> {
    let (error, quote) = match Icmpv6Message::parse(header, bytes).ok()? {
        Icmpv6Message::EchoReply(echo) => {
            let subject = Subject::Echo(echo.identifier, echo.sequence);
            let destination = header.source.into();
            return Some(Finding { destination, subject, is_arrival: true, note: None });
        }
        Icmpv6Message::Error { error, quote } => (error, quote),
        _ => return None,
    };
    let subject = Subject::of_quote(quote.echo_request(), quote.ports())?;
    let note = match error {
        Icmpv6Error::HopLimitExceeded => None,
        Icmpv6Error::PacketTooBig { mtu } => Some(Note::TooBig(mtu)),
        Icmpv6Error::Unreachable(reason) => Some(match reason {
            Icmpv6Unreachable::NoRoute | Icmpv6Unreachable::RejectRoute => Note::Network,
            Icmpv6Unreachable::Address | Icmpv6Unreachable::BeyondScope => Note::Host,
            Icmpv6Unreachable::Prohibited | Icmpv6Unreachable::SourcePolicy => Note::Prohibited,
            Icmpv6Unreachable::Port => Note::Port,
        }),
        Icmpv6Error::ParameterProblem { .. } => Some(Note::Protocol),
        _ => Some(Note::Other),
    };
    let destination = quote.header.destination.into();
    Some(Finding { destination, subject, is_arrival: note == Some(Note::Port), note })
}
