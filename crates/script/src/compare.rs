//! Comparison of a packet that the host sent with the packet that the script expects.

use crate::syntax::{
    Datagram, Icmp, IcmpBody, IpMarks, LineMark, Marks, Packet, Piece, Segment, SegmentOption,
    SegmentOptions, Settings,
};
use linerate_wire::{Ecn, EcnOrder, TcpFlags, TypeOfService};

/// Names of the parts in which two packets differ, such as `TTL` or `DF`.
#[derive(Default)]
struct Differences(Vec<&'static str>);

impl Differences {
    fn compare(&mut self, part: &'static str, is_right: bool) {
        if !is_right {
            self.0.push(part);
        }
    }

    /// Compares one part of the two packets. The part counts as equal if the script leaves it
    /// unspecified (`expected` is `None`).
    fn compare_specified<T: Copy + PartialEq>(
        &mut self,
        part: &'static str,
        expected: Option<T>,
        actual: Option<T>,
    ) {
        self.compare(part, expected.is_none() || expected == actual);
    }
}

/// Returns the names of the parts in which `actual` differs from `expected`, such as `TTL`.
pub(crate) fn differences(
    expected: &Packet,
    actual: &Packet,
    settings: &Settings,
) -> Vec<&'static str> {
    let mut parts = Differences::default();
    compare_ip(&mut parts, expected.ip(), actual.ip());
    match (expected, actual) {
        (Packet::Segment(expected), Packet::Segment(actual)) => {
            compare_segments(&mut parts, expected, actual, settings);
        }
        (Packet::Datagram(expected), Packet::Datagram(actual)) => {
            compare_datagrams(&mut parts, expected, actual);
        }
        (Packet::Icmp(expected), Packet::Icmp(actual)) => {
            compare_messages(&mut parts, expected, actual);
        }
        _ => parts.compare("protocols", false),
    }
    parts.0
}

fn compare_ip(parts: &mut Differences, expected: &IpMarks, actual: &IpMarks) {
    parts.compare("marks", marks_match(expected, actual));
    parts.compare_specified("TTL", expected.ttl, actual.ttl);
    parts.compare_specified("flow label", expected.flow_label, actual.flow_label);
    parts.compare_specified("DF", expected.dont_fragment, actual.dont_fragment);
    let range = |piece: &Piece| (piece.id, piece.first, piece.last);
    let is_right = expected.piece.as_ref().map(range) == actual.piece.as_ref().map(range);
    parts.compare("fragments", is_right);
    parts.compare("headers on the line", line_matches(expected.line, actual.line));
}

fn line_matches(expected: Option<LineMark>, actual: Option<LineMark>) -> bool {
    match (expected, actual) {
        (None, _) | (Some(LineMark::Compressed(None)), Some(LineMark::Compressed(_))) => true,
        (expected, actual) => expected == actual,
    }
}

fn compare_segments(
    parts: &mut Differences,
    expected: &Segment,
    actual: &Segment,
    settings: &Settings,
) {
    parts.compare("ports", expected.ports == actual.ports);
    let judged = if settings.ignore_push { !TcpFlags::PSH } else { TcpFlags::all() };
    parts.compare("flags", expected.flags & judged == actual.flags & judged);
    parts.compare("sequence number", expected.seq == actual.seq);
    parts.compare("length", expected.length == actual.length);
    let ack = expected.flags.contains(TcpFlags::ACK).then(|| expected.ack.unwrap_or(0));
    parts.compare("acknowledgement", ack == actual.ack);
    parts.compare_specified("window", expected.window, actual.window);
    parts.compare_specified("urgent pointer", expected.urgent, actual.urgent);
    let is_right = options_match(&expected.options, &actual.options, settings);
    parts.compare("options", is_right);
}

fn compare_datagrams(parts: &mut Differences, expected: &Datagram, actual: &Datagram) {
    parts.compare("ports", expected.ports == actual.ports);
    parts.compare("length", expected.length == actual.length);
}

fn compare_messages(parts: &mut Differences, expected: &Icmp, actual: &Icmp) {
    parts.compare("messages", expected.kind == actual.kind);
    match (&expected.body, &actual.body) {
        (IcmpBody::Error { field: expected, .. }, IcmpBody::Error { field: actual, .. }) => {
            parts.compare_specified("MTU or pointer", *expected, *actual);
        }
        (IcmpBody::Echo { .. }, IcmpBody::Echo { .. }) => {
            parts.compare("echoes", expected.body == actual.body);
        }
        _ => {}
    }
}

fn marks_match(expected: &IpMarks, actual: &IpMarks) -> bool {
    let Marks::Byte(byte) = actual.marks else { return true };
    let ecn = TypeOfService::from_byte(byte).ecn();
    match expected.marks {
        Marks::Any => true,
        Marks::Ecn(wanted) => ecn == wanted,
        Marks::Capable => matches!(ecn, Ecn::Ect0 | Ecn::Ect1),
        Marks::Byte(wanted) => byte == wanted,
    }
}

/// Returns whether both segments have equal TCP options. Their order and padding may differ,
/// because stacks choose both freely and a receiver must accept any (RFC 9293 §3.2).
fn options_match(expected: &SegmentOptions, actual: &SegmentOptions, settings: &Settings) -> bool {
    let (SegmentOptions::List(expected), SegmentOptions::List(actual)) = (expected, actual) else {
        return true;
    };
    let telling = |list: &[SegmentOption]| {
        let mut list: Vec<_> = list
            .iter()
            .filter(|option| !matches!(option, SegmentOption::Nop | SegmentOption::End))
            .cloned()
            .collect();
        list.sort_by_key(kind);
        list
    };
    let (expected, actual) = (telling(expected), telling(actual));
    expected.len() == actual.len()
        && expected
            .iter()
            .zip(&actual)
            .all(|(expected, actual)| option_matches(expected, actual, settings))
}

fn option_matches(expected: &SegmentOption, actual: &SegmentOption, settings: &Settings) -> bool {
    use SegmentOption::Timestamps;
    match (expected, actual) {
        (Timestamps { value: said, echo: wanted }, Timestamps { value, echo }) => {
            let off = u64::from(said.wrapping_sub(*value).min(value.wrapping_sub(*said)));
            let allowed =
                settings.timestamp_tick.map(|tick| settings.tolerance.as_nanos() / tick.as_nanos());
            wanted == echo && allowed.is_none_or(|allowed| off <= allowed)
        }
        _ => expected == actual,
    }
}

fn kind(option: &SegmentOption) -> u8 {
    match option {
        SegmentOption::End => 0,
        SegmentOption::Nop => 1,
        SegmentOption::Mss(_) => 2,
        SegmentOption::WindowScale(_) => 3,
        SegmentOption::SackPermitted => 4,
        SegmentOption::Sack(_) => 5,
        SegmentOption::Timestamps { .. } => 8,
        SegmentOption::FastOpen(_) => 34,
        SegmentOption::FastOpenExperiment(_) => 254,
        SegmentOption::Ecn(counts) => {
            if counts.order() == EcnOrder::Zero {
                172
            } else {
                174
            }
        }
        SegmentOption::Other(kind, _) => *kind,
    }
}

/// Returns the host's packet `actual` for the report of a difference. IP header fields that the
/// script leaves unspecified in `expected` are left out.
pub(crate) fn without_unspecified(mut actual: Packet, expected: &Packet) -> Packet {
    let (ip, expected) = (actual.ip_mut(), expected.ip());
    if let Marks::Byte(byte) = ip.marks {
        ip.marks = match expected.marks {
            Marks::Any => Marks::Any,
            Marks::Byte(_) => Marks::Byte(byte),
            Marks::Ecn(_) | Marks::Capable => Marks::Ecn(TypeOfService::from_byte(byte).ecn()),
        };
    }
    ip.ttl = ip.ttl.filter(|_| expected.ttl.is_some());
    ip.flow_label = ip.flow_label.filter(|_| expected.flow_label.is_some());
    ip.dont_fragment = ip.dont_fragment.filter(|_| expected.dont_fragment.is_some());
    ip.line = ip.line.filter(|_| expected.line.is_some());
    actual
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::tests::packet;

    #[test]
    fn unspecified_parts_are_not_compared() {
        let actual = packet("P. 1:11(10) ack 1 win 500 <nop,nop,TS val 5 ecr 9>");
        for (text, expected) in [
            ("P. 1:11(10) ack 1 <...>", &[][..]),
            ("P. 1:11(10) ack 1 win 500 <TS val 9 ecr 9>", &[]),
            (". 1:11(10) ack 2 <...>", &["flags", "acknowledgement"]),
            ("P. 2:12(10) ack 1 win 501", &["sequence number", "window", "options"]),
            ("P. 1:11(10) ack 1 <nop,nop,TS val 5 ecr 8>", &["options"]),
        ] {
            assert_eq!(
                differences(&packet(text), &actual, &Settings::default()),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn timestamp_values_are_compared_if_the_script_defines_a_tick() {
        let tick = linerate_units::Duration::from_millis(1);
        let settings = Settings { timestamp_tick: Some(tick), ..Settings::default() };
        let (expected, near) =
            (packet("P 1:1(0) <TS val 5 ecr 0>"), packet("P 1:1(0) <TS val 9 ecr 0>"));
        assert!(differences(&expected, &near, &settings).is_empty());
        assert_eq!(
            differences(&expected, &packet("P 1:1(0) <TS val 10 ecr 0>"), &settings),
            ["options"]
        );
    }

    #[test]
    fn each_kind_of_packet_has_its_parts() {
        for (expected, actual, parts) in [
            ("udp (5)", "udp (6)", &["length"][..]),
            ("udp (5)", ". 1:1(0)", &["protocols"]),
            ("[df] udp (5)", "[nodf] udp (5)", &["DF"]),
            ("[frag 1 0:8] udp (5)", "udp (5)", &["fragments"]),
            ("[frag 1 0:8] udp (5)", "[frag 1 8:16] udp (5)", &["fragments"]),
            ("icmp echo_reply id 1", "icmp echo_reply id 2", &["echoes"]),
            ("icmp packet_too_big", "icmp packet_too_big mtu 1280", &[]),
            ("icmp packet_too_big mtu 1281", "icmp packet_too_big mtu 1280", &["MTU or pointer"]),
            ("icmp packet_too_big", "icmp unreachable", &["messages"]),
            ("[compressed] . 1:1(0) ack 1", "[compressed 4] . 1:1(0) ack 1", &[]),
            (
                "[compressed 3] . 1:1(0) ack 1",
                "[compressed 4] . 1:1(0) ack 1",
                &["headers on the line"],
            ),
            ("[flowlabel 1] udp (5)", "[flowlabel 2] udp (5)", &["flow label"]),
        ] {
            let found = differences(&packet(expected), &packet(actual), &Settings::default());
            assert_eq!(found, parts, "{expected}");
        }
    }
}
