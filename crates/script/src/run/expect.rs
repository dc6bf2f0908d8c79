//! The segment that the host has to send next.

use super::{GRACE, Run, Stop, UNTIMED_GRACE};
use crate::compare::{differences, told};
use crate::machine::Machine;
use crate::packet::Captured;
use crate::report::{Deviation, Traced};
use crate::syntax::{Event, Segment, When, seconds};
use linerate_units::Duration;

impl<M: Machine> Run<'_, M> {
    /// The host must send `expected`, between two moments.
    pub(super) fn expect(
        &mut self,
        event: &Event,
        expected: &Segment,
        (base, first, last): (Duration, Duration, Duration),
    ) -> Result<(), Stop> {
        let tolerance = self.tolerance(base, last);
        let grace = if self.options.untimed { UNTIMED_GRACE } else { GRACE };
        let limit = last + tolerance + if event.when == When::Any { Duration::ZERO } else { grace };
        let written = format!("{} > {expected}", event.when);
        let deviation = |what: String, came: String| {
            Stop::Deviation(Deviation { line: event.line, what, expected: written.clone(), came })
        };
        let (sent, skipped) = self.next_of_flow(expected, limit)?;
        let Some(Captured { at, bytes }) = sent else {
            let until = seconds(self.machine.now());
            let others = match skipped {
                0 => String::new(),
                count => format!(", but {count} of other connections"),
            };
            return Err(deviation(
                "a segment was not sent".to_owned(),
                format!("nothing until {until}{others}"),
            ));
        };
        let mut came = match self.flows.outbound(&bytes, expected) {
            Ok(came) => came,
            Err(wrong) => {
                return Err(deviation(wrong, format!("{} > {} bytes", seconds(at), bytes.len())));
            }
        };
        while self.flows.is_burst(expected, &came) {
            let (Some(next), _) = self.next_of_flow(expected, limit)? else { break };
            let Ok(next) = self.flows.outbound(&next.bytes, expected) else { break };
            if next.seq != came.seq.wrapping_add(u32::from(came.length)) {
                break;
            }
            came =
                Segment { seq: came.seq, length: came.length.saturating_add(next.length), ..next };
        }
        let parts = differences(expected, &came, &self.script.settings);
        let came = format!("{} > {}", seconds(at), told(came, expected));
        if !parts.is_empty() {
            return Err(deviation(
                format!("another segment was sent: {} differ", parts.join(", ")),
                came,
            ));
        }
        let early = at + tolerance < first;
        let late = at > last + tolerance;
        if !self.options.untimed && event.when != When::Any && (early || late) {
            let span = if early { first.abs_diff(at) } else { last.abs_diff(at) };
            let word = if early { "early" } else { "late" };
            return Err(deviation(
                format!("the segment was sent {} s {word}", seconds(span)),
                came,
            ));
        }
        let now = self.machine.now();
        self.check_call(now)
    }

    /// The next segment of the connection that `expected` belongs to, and how many of others were
    /// skipped before it.
    fn next_of_flow(
        &mut self,
        expected: &Segment,
        limit: Duration,
    ) -> Result<(Option<Captured>, usize), Stop> {
        let mut skipped = 0;
        while let Some(sent) = self.machine.next_packet(limit)? {
            self.note(Traced { at: sent.at, sent: true, bytes: sent.bytes.clone() });
            if self.flows.concerns(&sent.bytes, expected) {
                return Ok((Some(sent), skipped));
            }
            skipped += 1;
        }
        Ok((None, skipped))
    }
}
