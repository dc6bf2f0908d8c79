//! Comparison of the packets that the host sends with those that the script expects.

use super::{GRACE, Run, Stop, UNTIMED_GRACE};
use crate::compare::{differences, without_unspecified};
use crate::machine::Machine;
use crate::packet::Captured;
use crate::report::{Deviation, Traced};
use crate::syntax::{Event, Packet, Segment, When, seconds};
use linerate_units::Duration;

impl<M: Machine> Run<'_, M> {
    /// Checks that the host sends the packet `expected`, not before the time `first` and not after
    /// the time `last`.
    pub(super) fn expect(
        &mut self,
        event: &Event,
        expected: &Packet,
        (base, first, last): (Duration, Duration, Duration),
    ) -> Result<(), Stop> {
        let tolerance = self.tolerance(base, last);
        let grace = if self.options.untimed { UNTIMED_GRACE } else { GRACE };
        let limit = last + tolerance + if event.when == When::Any { Duration::ZERO } else { grace };
        let written = format!("{} > {expected}", event.when);
        let deviation = |what: String, actual: String| {
            Stop::Deviation(Deviation { line: event.line, what, expected: written.clone(), actual })
        };
        let (sent, skipped) = self.next_of_flow(expected, limit)?;
        let Some(sent) = sent else {
            let until = seconds(self.machine.now());
            let others = match skipped {
                0 => String::new(),
                count => format!(", but {count} others"),
            };
            return Err(deviation(
                "a packet was not sent".to_owned(),
                format!("nothing until {until}{others}"),
            ));
        };
        let at = sent.at;
        let mut actual = match self.flows.outbound(&sent, expected) {
            Ok(actual) => actual,
            Err(wrong) => {
                let length = sent.bytes.len();
                return Err(deviation(wrong, format!("{} > {length} bytes", seconds(at))));
            }
        };
        while self.flows.is_burst(expected, &actual) {
            let (Some(next), _) = self.next_of_flow(expected, limit)? else { break };
            let Ok(next) = self.flows.outbound(&next, expected) else { break };
            let (Packet::Segment(first), Packet::Segment(next)) = (&actual, next) else { break };
            if next.seq != first.seq.wrapping_add(u32::from(first.length)) {
                break;
            }
            actual = Packet::Segment(Segment {
                seq: first.seq,
                length: first.length.saturating_add(next.length),
                ..next
            });
        }
        let parts = differences(expected, &actual, &self.script.settings);
        let actual = format!("{} > {}", seconds(at), without_unspecified(actual, expected));
        if !parts.is_empty() {
            return Err(deviation(
                format!("another packet was sent: {} differ", parts.join(", ")),
                actual,
            ));
        }
        let early = at + tolerance < first;
        let late = at > last + tolerance;
        if !self.options.untimed && event.when != When::Any && (early || late) {
            let span = if early { first.abs_diff(at) } else { last.abs_diff(at) };
            let word = if early { "early" } else { "late" };
            return Err(deviation(
                format!("the packet was sent {} s {word}", seconds(span)),
                actual,
            ));
        }
        let now = self.machine.now();
        self.check_call(now)
    }

    /// Waits until `limit` for the next packet of the same connection as `expected`. Packets of
    /// other connections are skipped. Returns the packet, if one was sent, and the number of
    /// skipped packets.
    fn next_of_flow(
        &mut self,
        expected: &Packet,
        limit: Duration,
    ) -> Result<(Option<Captured>, usize), Stop> {
        let mut skipped = 0;
        while let Some(sent) = self.machine.next_packet(limit)? {
            self.trace_packet(Traced { at: sent.at, sent: true, bytes: sent.bytes.clone() });
            if self.flows.belongs_to(&sent.bytes, expected) {
                return Ok((Some(sent), skipped));
            }
            skipped += 1;
        }
        Ok((None, skipped))
    }
}
