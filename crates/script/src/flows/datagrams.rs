//! UDP datagrams to and from the host.

use super::Flows;
use crate::ip_packet::{Ends, ParsedPacket};
use crate::packet::udp_datagram;
use crate::syntax::{Datagram, IpMarks};
use linerate_wire::{UdpDatagram, UdpHeader};

/// Returns whether a UDP packet has the ports that the script expects. Returns true if there is
/// nothing to compare: the script gives no ports, or the packet is a fragment after the first and
/// has no UDP header.
pub(super) fn has_ports_of(packet: &ParsedPacket<'_>, expected: &Datagram) -> bool {
    match (expected.ports, ports(packet)) {
        (Some(expected), Some(actual)) => expected == actual,
        _ => true,
    }
}

fn ports(packet: &ParsedPacket<'_>) -> Option<(u16, u16)> {
    let [a, b, c, d] = *packet.payload.first_chunk().filter(|_| packet.has_header())?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// Returns the number of data bytes of the datagram or echo to which a packet belongs. Of several
/// fragments, only the final one shows where the datagram ends. For an earlier fragment, the result
/// is the length `expected` by the script, if the fragment lies within a datagram of that length.
pub(super) fn data_of_fragment(packet: &ParsedPacket<'_>, expected: u16) -> u16 {
    let Some((_, first, more)) = packet.fragment else { return expected };
    let end = first + u32::try_from(packet.payload.len()).unwrap_or(u32::MAX);
    if more && u32::from(expected) + 8 > end {
        return expected;
    }
    let whole = if more { end } else { end.saturating_sub(8) };
    u16::try_from(whole).unwrap_or(u16::MAX)
}

impl Flows {
    pub(super) fn inbound_datagram(&mut self, ends: Ends, datagram: &Datagram) -> Vec<u8> {
        if let Some((remote, local)) = datagram.ports {
            self.datagram_ports = (local, remote);
        }
        let (local, remote) = self.datagram_ports;
        udp_datagram(ends, (remote, local), usize::from(datagram.length))
    }

    /// Translates a datagram from the host, or a fragment of a datagram, to the script's notation.
    ///
    /// # Errors
    /// The reason why the datagram is invalid.
    pub(super) fn outbound_datagram(
        &mut self,
        packet: &ParsedPacket<'_>,
        expected: &Datagram,
    ) -> Result<Datagram, String> {
        let length = match packet.fragment {
            None => {
                let datagram =
                    UdpDatagram::parse(packet.payload).map_err(|error| error.to_string())?;
                datagram
                    .verify_checksum(packet.pseudo_header())
                    .map_err(|error| error.to_string())?;
                u16::try_from(datagram.payload.len()).unwrap_or(u16::MAX)
            }
            Some((_, 0, _)) => {
                let length = packet.payload.get(4..6).ok_or("the datagram has no whole header")?;
                let length = u16::from_be_bytes([length[0], length[1]]);
                length.saturating_sub(u16::try_from(UdpHeader::LENGTH).unwrap_or(0))
            }
            Some(_) => data_of_fragment(packet, expected.length),
        };
        let live = ports(packet);
        if let Some((local, remote)) = live {
            self.datagram_ports = (local, remote);
        }
        let ports = if live.is_some() { live } else { expected.ports };
        Ok(Datagram {
            ip: IpMarks::default(),
            ports: ports.filter(|_| expected.ports.is_some()),
            length,
        })
    }
}
