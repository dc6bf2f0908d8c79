//! The line of text for an ICMP message.

use super::parts::{Carried, write_quoted};
use crate::{IcmpMessage, Quote};
use core::fmt;

/// Writes the addresses, and the type and the most important fields of an ICMP message.
pub(super) fn write(f: &mut fmt::Formatter<'_>, carried: &Carried<'_>) -> fmt::Result {
    carried.write_hosts(f)?;
    match IcmpMessage::parse(carried.payload) {
        Ok(IcmpMessage::EchoRequest(echo)) => {
            write!(f, "ICMP echo request, id {}, seq {}", echo.identifier, echo.sequence)?;
        }
        Ok(IcmpMessage::EchoReply(echo)) => {
            write!(f, "ICMP echo reply, id {}, seq {}", echo.identifier, echo.sequence)?;
        }
        Ok(IcmpMessage::Error { error, quote }) => {
            write!(f, "ICMP {error}")?;
            write_quote(f, &quote)?;
        }
        Ok(IcmpMessage::Other { kind, code, .. }) => write!(f, "ICMP type {kind}, code {code}")?,
        Err(error) => return write!(f, "{error}"),
    }
    write!(f, ", length {}", carried.payload.len())
}

fn write_quote(f: &mut fmt::Formatter<'_>, quote: &Quote<'_>) -> fmt::Result {
    let quoted = Carried {
        source: quote.header.source.into(),
        destination: quote.header.destination.into(),
        protocol: quote.header.protocol,
        payload: &[],
    };
    write_quoted(f, &quoted, quote.ports(), quote.tcp_seq())
}
