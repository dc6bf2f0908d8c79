//! Compares a packet of the host with the segment that the script expects.

use crate::syntax::{IpMarks, Marks, Segment, SegmentOption, SegmentOptions, Settings};
use linerate_wire::{Ecn, EcnOrder, TcpFlags, TypeOfService};

/// Returns a description of each field in which `actual` differs from `expected`.
pub(crate) fn differences(
    expected: &Segment,
    actual: &Segment,
    settings: &Settings,
) -> Vec<&'static str> {
    let mut parts = Vec::new();
    let mut compare = |part, is_right: bool| {
        if !is_right {
            parts.push(part);
        }
    };
    compare("ports", expected.ports == actual.ports);
    compare("marks", marks_match(expected.ip, actual.ip));
    compare("TTL", expected.ip.ttl.is_none() || expected.ip.ttl == actual.ip.ttl);
    let judged = if settings.ignore_push { !TcpFlags::PSH } else { TcpFlags::all() };
    compare("flags", expected.flags & judged == actual.flags & judged);
    compare("sequence number", expected.seq == actual.seq);
    compare("length", expected.length == actual.length);
    let ack = expected.flags.contains(TcpFlags::ACK).then(|| expected.ack.unwrap_or(0));
    compare("acknowledgement", ack == actual.ack);
    compare("window", expected.window.is_none() || expected.window == actual.window);
    compare("urgent pointer", expected.urgent.is_none() || expected.urgent == actual.urgent);
    compare("options", options_match(&expected.options, &actual.options, settings));
    parts
}

fn marks_match(expected: IpMarks, actual: IpMarks) -> bool {
    let Marks::Byte(byte) = actual.marks else { return true };
    let ecn = TypeOfService::from_byte(byte).ecn();
    match expected.marks {
        Marks::Any => true,
        Marks::Ecn(wanted) => ecn == wanted,
        Marks::Capable => matches!(ecn, Ecn::Ect0 | Ecn::Ect1),
        Marks::Byte(wanted) => byte == wanted,
    }
}

/// Returns whether options agree, regardless of their order and padding. Stacks differ in both, and
/// every receiver must accept any (RFC 9293 §3.2).
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

/// Returns `actual` as the script would write it: ECN bits and TTL only if `expected` has them.
pub(crate) fn without_unspecified(mut actual: Segment, expected: &Segment) -> Segment {
    if let Marks::Byte(byte) = actual.ip.marks {
        actual.ip.marks = match expected.ip.marks {
            Marks::Any => Marks::Any,
            Marks::Byte(_) => Marks::Byte(byte),
            Marks::Ecn(_) | Marks::Capable => Marks::Ecn(TypeOfService::from_byte(byte).ecn()),
        };
    }
    if expected.ip.ttl.is_none() {
        actual.ip.ttl = None;
    }
    actual
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::tests::segment;

    #[test]
    fn unspecified_parts_are_not_compared() {
        let actual = segment("P. 1:11(10) ack 1 win 500 <nop,nop,TS val 5 ecr 9>");
        for (text, expected) in [
            ("P. 1:11(10) ack 1 <...>", &[][..]),
            ("P. 1:11(10) ack 1 win 500 <TS val 9 ecr 9>", &[]),
            (". 1:11(10) ack 2 <...>", &["flags", "acknowledgement"]),
            ("P. 2:12(10) ack 1 win 501", &["sequence number", "window", "options"]),
            ("P. 1:11(10) ack 1 <nop,nop,TS val 5 ecr 8>", &["options"]),
        ] {
            assert_eq!(
                differences(&segment(text), &actual, &Settings::default()),
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
            (segment("P 1:1(0) <TS val 5 ecr 0>"), segment("P 1:1(0) <TS val 9 ecr 0>"));
        assert!(differences(&expected, &near, &settings).is_empty());
        assert_eq!(
            differences(&expected, &segment("P 1:1(0) <TS val 10 ecr 0>"), &settings),
            ["options"]
        );
    }
}
