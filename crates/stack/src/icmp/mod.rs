//! The errors that ICMP and ICMPv6 messages report, and the recent echo requests of this host. The
//! host drops echo replies that answer none of these requests, so that no peer can fill the event
//! queue of the application.

use crate::demux::flow::{Flow, Hosts};
use crate::event::ReportedError;
use crate::ip::path_mtu::{plausible, plausible_ipv6};
use alloc::collections::VecDeque;
use core::net::IpAddr;
use linerate_wire::{
    IcmpError, Icmpv6Error, Icmpv6Problem, Icmpv6Unreachable, Ipv6Header, Ipv6Quote, Protocol,
    Quote, SeqNum, Unreachable,
};

/// Maximum number of pairs of destination and identifier in [`EchoFlows`].
const FLOWS: usize = 64;

/// The destinations and identifiers of recent echo requests, or of recent echo replies. At the
/// limit, the oldest pair is forgotten.
#[derive(Debug, Default)]
pub(crate) struct EchoFlows {
    flows: VecDeque<(IpAddr, u16)>,
}

impl EchoFlows {
    pub(crate) fn insert(&mut self, destination: IpAddr, identifier: u16) {
        if !self.contains(destination, identifier) {
            if self.flows.len() == FLOWS {
                self.flows.pop_front();
            }
            self.flows.push_back((destination, identifier));
        }
    }

    pub(crate) fn contains(&self, destination: IpAddr, identifier: u16) -> bool {
        self.flows.contains(&(destination, identifier))
    }
}

/// The kind of problem that an ICMP or ICMPv6 error reports. Problems that sockets treat alike are
/// not distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// No socket of the destination host is bound to the port.
    NoPort,
    /// The destination host does not support the protocol.
    NoProtocol,
    /// The packet exceeds the MTU of a link on the path, which is `mtu` bytes. Old IPv4 routers
    /// report an MTU of zero (RFC 1191 §5).
    TooBig { mtu: usize },
    /// Any other problem.
    Other,
}

impl Problem {
    const fn of_ipv4(error: IcmpError) -> Self {
        match error {
            IcmpError::FragmentationNeeded { next_hop_mtu } => {
                Self::TooBig { mtu: next_hop_mtu as usize }
            }
            IcmpError::Unreachable(Unreachable::Port) => Self::NoPort,
            IcmpError::Unreachable(Unreachable::Protocol) => Self::NoProtocol,
            _ => Self::Other,
        }
    }

    const fn of_ipv6(error: Icmpv6Error) -> Self {
        match error {
            Icmpv6Error::PacketTooBig { mtu } => Self::TooBig { mtu: mtu as usize },
            Icmpv6Error::Unreachable(Icmpv6Unreachable::Port) => Self::NoPort,
            Icmpv6Error::ParameterProblem { problem: Icmpv6Problem::NextHeader, .. } => {
                Self::NoProtocol
            }
            _ => Self::Other,
        }
    }
}

/// A received ICMP or ICMPv6 error about a packet of this host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report<'a> {
    pub(crate) problem: Problem,
    pub(crate) error: ReportedError,
    quote: ReportedQuote<'a>,
}

/// The beginning of the packet that caused an ICMP error, as the error quotes it.
#[derive(Clone, Copy, Debug)]
enum ReportedQuote<'a> {
    V4(Quote<'a>),
    V6(Ipv6Quote<'a>),
}

impl<'a> Report<'a> {
    pub(crate) const fn of_ipv4(error: IcmpError, quote: Quote<'a>) -> Self {
        let problem = Problem::of_ipv4(error);
        Self { problem, error: ReportedError::V4(error), quote: ReportedQuote::V4(quote) }
    }

    pub(crate) const fn of_ipv6(error: Icmpv6Error, quote: Ipv6Quote<'a>) -> Self {
        let problem = Problem::of_ipv6(error);
        Self { problem, error: ReportedError::V6(error), quote: ReportedQuote::V6(quote) }
    }

    /// Returns the source address of the quoted packet: an address of this host, unless the error
    /// is forged.
    pub(crate) const fn source(&self) -> IpAddr {
        match &self.quote {
            ReportedQuote::V4(quote) => IpAddr::V4(quote.header.source),
            ReportedQuote::V6(quote) => IpAddr::V6(quote.header.source),
        }
    }

    /// Returns the destination address of the quoted packet.
    pub(crate) const fn destination(&self) -> IpAddr {
        match &self.quote {
            ReportedQuote::V4(quote) => IpAddr::V4(quote.header.destination),
            ReportedQuote::V6(quote) => IpAddr::V6(quote.header.destination),
        }
    }

    /// Returns the transport protocol of the quoted packet, or `None` if the quote is too short to
    /// tell.
    pub(crate) fn protocol(&self) -> Option<Protocol> {
        match &self.quote {
            ReportedQuote::V4(quote) => Some(quote.header.protocol),
            ReportedQuote::V6(quote) => quote.transport.map(|(protocol, _)| protocol),
        }
    }

    /// Returns the flow of the quoted packet, or `None` if the quote does not contain the ports.
    pub(crate) fn flow(&self) -> Option<Flow> {
        let (source_port, destination_port) = match &self.quote {
            ReportedQuote::V4(quote) => quote.ports(),
            ReportedQuote::V6(quote) => quote.ports(),
        }?;
        let hosts = Hosts::new(self.source(), self.destination());
        Some(Flow::between(hosts, source_port, destination_port))
    }

    /// Returns the sequence number (SEG.SEQ) of the quoted TCP segment, or `None` if the quote does
    /// not contain a sequence number.
    pub(crate) fn tcp_seq(&self) -> Option<SeqNum> {
        match &self.quote {
            ReportedQuote::V4(quote) => quote.tcp_seq(),
            ReportedQuote::V6(quote) => quote.tcp_seq(),
        }
    }

    /// Returns the identifier and sequence number of the quoted echo request, or `None` if the
    /// quoted packet is not an echo request.
    pub(crate) fn echo_request(&self) -> Option<(u16, u16)> {
        match &self.quote {
            ReportedQuote::V4(quote) => quote.echo_request(),
            ReportedQuote::V6(quote) => quote.echo_request(),
        }
    }

    /// Returns the identifier and sequence number of the quoted echo reply, or `None` if the quoted
    /// packet is not an echo reply.
    pub(crate) fn echo_reply(&self) -> Option<(u16, u16)> {
        match &self.quote {
            ReportedQuote::V4(quote) => quote.echo_reply(),
            ReportedQuote::V6(quote) => quote.echo_reply(),
        }
    }

    /// Returns the identification of the quoted packet if this packet is a fragment, otherwise
    /// `None`.
    pub(crate) fn identification(&self) -> Option<u32> {
        match &self.quote {
            ReportedQuote::V4(Quote { header, .. }) => {
                header.is_fragment().then_some(header.identification.into())
            }
            ReportedQuote::V6(quote) => quote.fragment().map(|fragment| fragment.identification),
        }
    }

    /// Returns the path MTU in bytes that follows from the error. Returns `None` if the error is
    /// not [`Problem::TooBig`], or if its MTU is implausible for the size of the quoted packet.
    pub(crate) fn mtu(&self) -> Option<usize> {
        let Problem::TooBig { mtu } = self.problem else { return None };
        let length_at = |bytes: &[u8], at: usize| {
            let length = bytes.get(at..).and_then(<[u8]>::first_chunk).copied();
            usize::from(u16::from_be_bytes(length.unwrap_or_default()))
        };
        match &self.quote {
            ReportedQuote::V4(quote) => plausible(mtu, length_at(quote.bytes(), 2)),
            ReportedQuote::V6(quote) => {
                plausible_ipv6(mtu, Ipv6Header::LENGTH + length_at(quote.bytes(), 4))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn the_oldest_flow_is_evicted_at_the_limit() {
        let mut flows = EchoFlows::default();
        for identifier in 0..=64 {
            flows.insert(LOCALHOST, identifier);
            flows.insert(LOCALHOST, identifier);
        }
        assert!(!flows.contains(LOCALHOST, 0) && flows.contains(LOCALHOST, 1));
        assert!(!flows.contains(IpAddr::from([0; 4]), 1));
    }
}
