//! ICMP messages to and from the host.

use super::Flows;
use super::datagrams::data_of_fragment;
use crate::ip_packet::{Ends, ParsedPacket};
use crate::packet::{icmp_message, icmp_protocol, pattern, quote};
use crate::syntax::{Icmp, IcmpBody, IcmpKind, IpMarks, Quoted};
use linerate_wire::{Ipv6Quote, Protocol, Sum, TcpHeader, UdpHeader};
use std::net::IpAddr;

impl Flows {
    /// Builds an ICMP message to the host.
    ///
    /// # Errors
    /// The reason why the message cannot be built.
    pub(super) fn inbound_icmp(
        &self,
        ends: Ends,
        icmp: &Icmp,
    ) -> Result<(Protocol, Vec<u8>), String> {
        let (_, host) = ends;
        let number = self.number(&icmp.kind)?;
        let message = match icmp.body {
            IcmpBody::Echo { id, seq, length } => {
                let ([a, b], [c, d]) = (id.to_be_bytes(), seq.to_be_bytes());
                let data: Vec<u8> = pattern(usize::from(length)).collect();
                icmp_message(ends, number, [a, b, c, d], &data)
            }
            IcmpBody::Error { field, quoted } => {
                let mut field = field.unwrap_or_else(|| match icmp.kind.code {
                    // ICMPv6 reports an unknown protocol with the offset of the field that names
                    // it. Without extension headers, this is the Next Header field of the IPv6
                    // header, at offset 6.
                    "protocol_unreachable" if host.is_ipv6() => 6,
                    _ => 0,
                });
                if icmp.kind.code == "frag_needed" && field > 0 {
                    field = field.saturating_add(self.longer.into());
                }
                let quote = self.quote(quoted.unwrap_or(Quoted::Segment(0, 0)))?;
                icmp_message(ends, number, field_bytes(&icmp.kind, field, host), &quote)
            }
        };
        Ok((icmp_protocol(host), message))
    }

    fn number(&self, kind: &IcmpKind) -> Result<(u8, u8), String> {
        let local = self.settings.local;
        kind.number(local).ok_or_else(|| {
            let version = if local.is_ipv6() { "ICMPv6" } else { "ICMP for IPv4" };
            format!("{} {} does not exist in {version}", kind.name, kind.code)
        })
    }

    /// Returns the quoted packet inside an ICMP error that is sent to the host: the beginning of a
    /// packet that the host could have sent.
    fn quote(&self, quoted: Quoted) -> Result<Vec<u8>, String> {
        let mut first = [0; 8];
        let (protocol, (local, remote), length) = match quoted {
            Quoted::Segment(seq, length) => {
                let current = self.current.ok_or_else(|| {
                    "there is no connection yet whose segment could be quoted".to_owned()
                })?;
                let flow = &self.list[current];
                let seq = flow.local.unwrap_or_default().to_live(seq, false);
                first[4..].copy_from_slice(&seq.to_be_bytes());
                let length = TcpHeader::LENGTH + usize::from(length);
                (Protocol::TCP, (flow.local_port, flow.remote_port), length)
            }
            Quoted::Datagram(length) => {
                let whole = UdpHeader::LENGTH + usize::from(length);
                let field = u16::try_from(whole).unwrap_or(u16::MAX);
                first[4..6].copy_from_slice(&field.to_be_bytes());
                (Protocol::UDP, self.datagram_ports, whole)
            }
        };
        first[..2].copy_from_slice(&local.to_be_bytes());
        first[2..4].copy_from_slice(&remote.to_be_bytes());
        Ok(quote((self.settings.local, self.settings.remote), protocol, first, length))
    }

    /// Translates an ICMP message from the host to the script's notation. The message is invalid if
    /// it is an error that quotes no packet the host received. It is also invalid if it is an echo
    /// reply whose data differ from those in the script's echo requests.
    ///
    /// # Errors
    /// The reason why the message is invalid.
    pub(super) fn outbound_icmp(
        &self,
        packet: &ParsedPacket<'_>,
        expected: &Icmp,
    ) -> Result<Icmp, String> {
        let ip = IpMarks::default();
        if let (Some((_, 1.., _)), IcmpBody::Echo { id, seq, length }) =
            (packet.fragment, &expected.body)
        {
            let length = data_of_fragment(packet, *length);
            let body = IcmpBody::Echo { id: *id, seq: *seq, length };
            return Ok(Icmp { ip, kind: expected.kind, body });
        }
        let Some((&[kind, code, _, _, a, b, c, d], rest)) = packet.payload.split_first_chunk()
        else {
            return Err("the ICMP message is cut short".to_owned());
        };
        if packet.fragment.is_none() && !is_checksum_right(packet) {
            return Err("the ICMP message has a wrong checksum".to_owned());
        }
        let local = self.settings.local;
        let kind = IcmpKind::of_number((kind, code), local, &expected.kind)
            .ok_or_else(|| format!("an ICMP message of type {kind} and code {code} was sent"))?;
        let body = if kind.name.starts_with("echo_") {
            if !pattern(rest.len()).eq(rest.iter().copied()) {
                return Err("the data of the echo is not that of the request".to_owned());
            }
            let length = match (&expected.body, packet.fragment) {
                (IcmpBody::Echo { length, .. }, Some(_)) => data_of_fragment(packet, *length),
                _ => u16::try_from(rest.len()).unwrap_or(u16::MAX),
            };
            let (id, seq) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            IcmpBody::Echo { id, seq, length }
        } else {
            if !self.received.iter().any(|received| is_quote(received, rest, local)) {
                return Err("the error does not quote a packet to the host".to_owned());
            }
            let field = field_of_bytes(&kind, [a, b, c, d], local);
            IcmpBody::Error { field: Some(field), quoted: None }
        };
        Ok(Icmp { ip, kind, body })
    }
}

fn is_checksum_right(packet: &ParsedPacket<'_>) -> bool {
    let sum = Sum::of(packet.payload);
    match packet.ends.0 {
        IpAddr::V4(_) => sum.is_valid(),
        IpAddr::V6(_) => (sum + packet.pseudo_header()).is_valid(),
    }
}

/// Returns whether an ICMP error may quote `packet` by `quote`. The quote must be the beginning of
/// the packet, and long enough. ICMP quotes at least eight bytes of the payload (RFC 1122 §3.2.2).
/// ICMPv6 quotes as much as fits the minimum MTU (RFC 4443 §2.4 c).
fn is_quote(packet: &[u8], quote: &[u8], address: IpAddr) -> bool {
    let least = match address {
        IpAddr::V4(_) => packet.len().min(28),
        IpAddr::V6(_) => packet.len().min(Ipv6Quote::MOST),
    };
    quote.len() >= least && packet.starts_with(quote)
}

/// Returns the second 32-bit word of an ICMP error, which contains `field`: an MTU or a pointer.
fn field_bytes(kind: &IcmpKind, field: u32, address: IpAddr) -> [u8; 4] {
    let [a, b, c, d] = field.to_be_bytes();
    match address {
        IpAddr::V4(_) if kind.has_mtu() => [0, 0, c, d],
        IpAddr::V4(_) => [d, 0, 0, 0],
        IpAddr::V6(_) => [a, b, c, d],
    }
}

fn field_of_bytes(kind: &IcmpKind, [a, b, c, d]: [u8; 4], address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) if kind.has_mtu() => u16::from_be_bytes([c, d]).into(),
        IpAddr::V4(_) => a.into(),
        IpAddr::V6(_) => u32::from_be_bytes([a, b, c, d]),
    }
}
