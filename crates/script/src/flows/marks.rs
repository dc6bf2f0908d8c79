//! Flow labels and identifications of the host's packets. Hosts choose these numbers at random, so
//! a script cannot know them. The script writes a number of its own in place of each, called the
//! name of the host's number.

use crate::ip_packet::ParsedPacket;
use crate::syntax::{IpMarks, LineMark, Marks, Piece};
use std::collections::BTreeMap;

/// The numbers that the host has chosen for one header field. The key of each entry is the number
/// by which the script refers to the host's number.
#[derive(Debug, Default)]
struct Names(BTreeMap<u32, u32>);

impl Names {
    /// Returns the script's name for `live`, a number in a packet of the host. A number that occurs
    /// for the first time gets the name `expected`, which the script uses for this packet. If
    /// another number already has that name, the result is `live` itself.
    fn of(&mut self, live: u32, expected: Option<u32>) -> u32 {
        if let Some((&name, _)) = self.0.iter().find(|(_, known)| **known == live) {
            return name;
        }
        match expected.filter(|name| !self.0.contains_key(name)) {
            Some(name) => {
                self.0.insert(name, live);
                name
            }
            None => live,
        }
    }
}

/// Flow labels and identifications of the host's packets, with their names in the script.
#[derive(Debug, Default)]
pub(super) struct LearntMarks {
    flow_labels: Names,
    identifications: Names,
}

impl LearntMarks {
    /// Returns the IP header fields of a packet from the host, limited to the fields that a script
    /// can specify, and its encoding `line` on a serial line. The flow label and the identification
    /// are replaced by their names in the script.
    pub(super) fn of_packet(
        &mut self,
        packet: &ParsedPacket<'_>,
        expected: &IpMarks,
        line: Option<LineMark>,
    ) -> IpMarks {
        let piece = packet.fragment.map(|(id, first, _)| Piece {
            id: self.identifications.of(id, expected.piece.map(|piece| piece.id)),
            first,
            last: first + u32::try_from(packet.payload.len()).unwrap_or(u32::MAX),
            position: 0,
        });
        let flow_label = packet.flow_label.map(|live| match live {
            // A label of zero is not replaced by a name: it means that the packet has no flow
            // label.
            0 => 0,
            live => self.flow_labels.of(live, expected.flow_label.filter(|&name| name != 0)),
        });
        IpMarks {
            marks: Marks::Byte(packet.type_of_service.byte()),
            ttl: Some(packet.hops),
            flow_label,
            dont_fragment: packet.dont_fragment,
            piece,
            line,
            ..IpMarks::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_belongs_to_one_number() {
        let mut names = Names::default();
        assert_eq!(names.of(77, Some(1)), 1);
        assert_eq!(names.of(77, Some(2)), 1, "it has a name");
        assert_eq!(names.of(78, Some(1)), 78, "the name is taken");
        assert_eq!(names.of(78, Some(2)), 2);
        assert_eq!(names.of(79, None), 79);
    }
}
