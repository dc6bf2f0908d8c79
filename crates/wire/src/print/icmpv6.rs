//! The line of text for an ICMPv6 message, including those of Neighbour Discovery and MLD.

use super::parts::{Carried, write_quoted};
use crate::{
    GroupMessage, Icmpv6Message, Ipv6Header, Ipv6Quote, NdMessage, NdOption, RouterAdvertisement,
    mld,
};
use core::fmt;

/// Writes the addresses, and the type and the most important fields of the ICMPv6 message in a
/// packet with `header`.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    header: &Ipv6Header,
    carried: &Carried<'_>,
) -> fmt::Result {
    carried.write_hosts(f)?;
    let message = match Icmpv6Message::parse(header, carried.payload) {
        Ok(message) => message,
        Err(error) => return write!(f, "{error}"),
    };
    f.write_str("ICMPv6 ")?;
    match message {
        Icmpv6Message::EchoRequest(echo) => {
            write!(f, "echo request, id {}, seq {}", echo.identifier, echo.sequence)?;
        }
        Icmpv6Message::EchoReply(echo) => {
            write!(f, "echo reply, id {}, seq {}", echo.identifier, echo.sequence)?;
        }
        Icmpv6Message::Error { error, quote } => {
            write!(f, "{error}")?;
            write_quote(f, &quote)?;
        }
        Icmpv6Message::NeighborDiscovery(message) => write_discovery(f, &message)?,
        Icmpv6Message::Other { kind, code, .. } => match mld::parse(carried.payload) {
            Ok(Some(message)) => write_group_message(f, &message)?,
            Ok(None) => write!(f, "type {kind}, code {code}")?,
            Err(error) => return write!(f, "{error}"),
        },
    }
    write!(f, ", length {}", carried.payload.len())
}

fn write_quote(f: &mut fmt::Formatter<'_>, quote: &Ipv6Quote<'_>) -> fmt::Result {
    let quoted = Carried {
        source: quote.header.source.into(),
        destination: quote.header.destination.into(),
        protocol: quote.transport.map_or(quote.header.next_header, |(protocol, _)| protocol),
        payload: &[],
    };
    write_quoted(f, &quoted, quote.ports(), quote.tcp_seq())
}

fn write_discovery(f: &mut fmt::Formatter<'_>, message: &NdMessage<'_>) -> fmt::Result {
    match message {
        NdMessage::RouterSolicitation { .. } => f.write_str("router solicitation"),
        NdMessage::RouterAdvertisement(advertisement) => write_advertisement(f, advertisement),
        NdMessage::NeighborSolicitation { target, .. } => {
            write!(f, "neighbor solicitation, who has {target}")
        }
        NdMessage::NeighborAdvertisement { target, target_mac, .. } => {
            write!(f, "neighbor advertisement, {target}")?;
            target_mac.map_or(Ok(()), |mac| write!(f, " is at {mac}"))
        }
        NdMessage::Redirect { target, destination, .. } => {
            write!(f, "redirect, {destination} via {target}")
        }
    }
}

fn write_advertisement(
    f: &mut fmt::Formatter<'_>,
    advertisement: &RouterAdvertisement<'_>,
) -> fmt::Result {
    write!(f, "router advertisement, lifetime {} s", advertisement.lifetime)?;
    for option in advertisement.options.iter() {
        match option {
            NdOption::Prefix(prefix) => write!(f, ", prefix {}/{}", prefix.prefix, prefix.length)?,
            NdOption::Mtu(mtu) => write!(f, ", mtu {mtu}")?,
            _ => {}
        }
    }
    Ok(())
}

fn write_group_message(f: &mut fmt::Formatter<'_>, message: &GroupMessage<'_>) -> fmt::Result {
    match message {
        GroupMessage::Query(_) => f.write_str("multicast listener query"),
        GroupMessage::Report(_) => f.write_str("multicast listener report v2"),
        GroupMessage::OldReport { group, .. } => {
            write!(f, "multicast listener report, group {group}")
        }
        GroupMessage::Leave { group } => write!(f, "multicast listener done, group {group}"),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use crate::{
        Echo, Icmpv6Error, Icmpv6Message, Ipv6Header, Ipv6Quote, MacAddress, NdMessage, PacketLine,
        Protocol, TcpHeader,
    };
    use core::net::Ipv6Addr;
    use std::string::{String, ToString};
    use std::vec;

    const A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

    fn line(header: &Ipv6Header, message: &Icmpv6Message<'_>) -> String {
        let mut bytes = vec![0; Ipv6Header::LENGTH + message.length()];
        let at = header.emit(message.length(), &mut bytes);
        message.emit(header, &mut bytes[at..]);
        PacketLine(&bytes).to_string()
    }

    #[test]
    fn echoes_and_errors_print_their_contents() {
        let header = Ipv6Header::new(A, B, Protocol::ICMPV6);
        let echo = Echo { identifier: 5, sequence: 6, data: &[0; 4] };
        assert_eq!(
            line(&header, &Icmpv6Message::EchoRequest(echo)),
            "IP6 2001:db8::1 > 2001:db8::2: ICMPv6 echo request, id 5, seq 6, length 12"
        );
        let mut quoted = vec![0; 60];
        Ipv6Header::new(B, A, Protocol::TCP).emit(20, &mut quoted);
        TcpHeader { source_port: 9, destination_port: 19, ..TcpHeader::default() }
            .emit(0, &mut quoted[40..]);
        let error = Icmpv6Error::PacketTooBig { mtu: 1_300 };
        let message = Icmpv6Message::Error { error, quote: Ipv6Quote::of(&quoted).unwrap() };
        assert_eq!(
            line(&header, &message),
            "IP6 2001:db8::1 > 2001:db8::2: ICMPv6 packet too big, mtu 1300, \
             for TCP 2001:db8::2.9 > 2001:db8::1.19 seq 0, length 68"
        );
    }

    #[test]
    fn neighbor_discovery_prints_targets_and_mac_addresses() {
        let header = NdMessage::header(A, B);
        let mac = MacAddress::new([2, 0, 0, 0, 0, 1]);
        let solicitation = NdMessage::NeighborSolicitation { target: B, source_mac: Some(mac) };
        assert_eq!(
            line(&header, &Icmpv6Message::NeighborDiscovery(solicitation)),
            "IP6 2001:db8::1 > 2001:db8::2: ICMPv6 neighbor solicitation, who has 2001:db8::2, \
             length 32"
        );
        let advertisement = NdMessage::NeighborAdvertisement {
            is_router: false,
            is_solicited: true,
            is_override: true,
            target: A,
            target_mac: Some(mac),
        };
        assert_eq!(
            line(&header, &Icmpv6Message::NeighborDiscovery(advertisement)),
            "IP6 2001:db8::1 > 2001:db8::2: ICMPv6 neighbor advertisement, 2001:db8::1 is at \
             02:00:00:00:00:01, length 32"
        );
    }
}
