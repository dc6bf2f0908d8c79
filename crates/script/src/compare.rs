//! Is what came what the script expects?

use crate::syntax::{IpMarks, Marks, Segment, SegmentOption, SegmentOptions, Settings};
use linerate_wire::{Ecn, EcnOrder, TcpFlags, TypeOfService};

/// The parts of a segment in which `came` is not what `expected` says; none if it is.
pub(crate) fn differences(
    expected: &Segment,
    came: &Segment,
    settings: &Settings,
) -> Vec<&'static str> {
    let mut parts = Vec::new();
    let mut judge = |part, is_right: bool| {
        if !is_right {
            parts.push(part);
        }
    };
    judge("ports", expected.ports == came.ports);
    judge("marks", marks_match(expected.ip, came.ip));
    judge("TTL", expected.ip.ttl.is_none() || expected.ip.ttl == came.ip.ttl);
    let judged = if settings.ignore_push { !TcpFlags::PSH } else { TcpFlags::all() };
    judge("flags", expected.flags & judged == came.flags & judged);
    judge("sequence number", expected.seq == came.seq);
    judge("length", expected.length == came.length);
    let ack = expected.flags.contains(TcpFlags::ACK).then(|| expected.ack.unwrap_or(0));
    judge("acknowledgement", ack == came.ack);
    judge("window", expected.window.is_none() || expected.window == came.window);
    judge("urgent pointer", expected.urgent.is_none() || expected.urgent == came.urgent);
    judge("options", options_match(&expected.options, &came.options, settings));
    parts
}

fn marks_match(expected: IpMarks, came: IpMarks) -> bool {
    let Marks::Byte(byte) = came.marks else { return true };
    let ecn = TypeOfService::from_byte(byte).ecn();
    match expected.marks {
        Marks::Any => true,
        Marks::Ecn(wanted) => ecn == wanted,
        Marks::Capable => matches!(ecn, Ecn::Ect0 | Ecn::Ect1),
        Marks::Byte(wanted) => byte == wanted,
    }
}

/// The same options, in whatever order and however filled up: stacks differ in that, and no peer
/// may mind (RFC 9293 §3.2).
fn options_match(expected: &SegmentOptions, came: &SegmentOptions, settings: &Settings) -> bool {
    let (SegmentOptions::List(expected), SegmentOptions::List(came)) = (expected, came) else {
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
    let (expected, came) = (telling(expected), telling(came));
    expected.len() == came.len()
        && expected
            .iter()
            .zip(&came)
            .all(|(expected, came)| option_matches(expected, came, settings))
}

fn option_matches(expected: &SegmentOption, came: &SegmentOption, settings: &Settings) -> bool {
    use SegmentOption::Timestamps;
    match (expected, came) {
        (Timestamps { value: said, echo: wanted }, Timestamps { value, echo }) => {
            let off = u64::from(said.wrapping_sub(*value).min(value.wrapping_sub(*said)));
            let allowed =
                settings.stamp_tick.map(|tick| settings.tolerance.as_nanos() / tick.as_nanos());
            wanted == echo && allowed.is_none_or(|allowed| off <= allowed)
        }
        _ => expected == came,
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

/// What came, as far as the script would have to say it: marks and TTL only where it does.
pub(crate) fn told(mut came: Segment, expected: &Segment) -> Segment {
    if let Marks::Byte(byte) = came.ip.marks {
        came.ip.marks = match expected.ip.marks {
            Marks::Any => Marks::Any,
            Marks::Byte(_) => Marks::Byte(byte),
            Marks::Ecn(_) | Marks::Capable => Marks::Ecn(TypeOfService::from_byte(byte).ecn()),
        };
    }
    if expected.ip.ttl.is_none() {
        came.ip.ttl = None;
    }
    came
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::tests::segment;

    #[test]
    fn what_the_script_does_not_say_is_not_judged() {
        let came = segment("P. 1:11(10) ack 1 win 500 <nop,nop,TS val 5 ecr 9>");
        for (text, expected) in [
            ("P. 1:11(10) ack 1 <...>", &[][..]),
            ("P. 1:11(10) ack 1 win 500 <TS val 9 ecr 9>", &[]),
            (". 1:11(10) ack 2 <...>", &["flags", "acknowledgement"]),
            ("P. 2:12(10) ack 1 win 501", &["sequence number", "window", "options"]),
            ("P. 1:11(10) ack 1 <nop,nop,TS val 5 ecr 8>", &["options"]),
        ] {
            assert_eq!(
                differences(&segment(text), &came, &Settings::default()),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn the_values_of_stamps_are_judged_where_the_script_has_a_tick() {
        let tick = linerate_units::Duration::from_millis(1);
        let settings = Settings { stamp_tick: Some(tick), ..Settings::default() };
        let (expected, near) =
            (segment("P 1:1(0) <TS val 5 ecr 0>"), segment("P 1:1(0) <TS val 9 ecr 0>"));
        assert!(differences(&expected, &near, &settings).is_empty());
        assert_eq!(
            differences(&expected, &segment("P 1:1(0) <TS val 10 ecr 0>"), &settings),
            ["options"]
        );
    }
}
