//! Prediction of control segments: segments without data that acknowledge our SYN or FIN, or carry
//! the peer's FIN.
//!
//! Such a segment nearly always passes the two dozen checks of validation. Prediction makes fewer
//! comparisons, which are at least as strict as those checks. A predicted segment is therefore
//! valid.

use super::Valid;
use super::predict::is_header_predicted;
use crate::options::before;
use crate::{Connection, State};
use linerate_wire::{Segment, TcpFlags, Timestamps};

/// The flags in the word of data offset and flags that a control segment may have in addition to
/// those of an ACK without data.
const OPTIONAL: u16 = TcpFlags::PSH.bits() | TcpFlags::FIN.bits();

/// A run of one segment without data that is next in order. The segment completes the handshake or
/// closes a direction of the connection, and has no other effect.
#[derive(Clone, Copy, Debug)]
pub struct ControlRun {
    /// Whether the segment acknowledges everything in flight. If false, it acknowledges nothing
    /// new.
    pub(in crate::input) advances: bool,
    /// Whether the segment carries the peer's FIN for the first time.
    pub(in crate::input) has_fin: bool,
    /// The timestamps of the segment, if both endpoints use them.
    pub(in crate::input) timestamps: Option<Timestamps>,
}

impl ControlRun {
    /// Creates a run of `segment`, if it is predicted to open or close the connection.
    #[inline(always)]
    #[must_use]
    pub fn of(connection: &Connection, segment: &Segment<'_>) -> Option<Self> {
        connection.predict_control(segment)
    }
}

/// Returns `segment` as a valid segment, because [`ControlRun::of`] has returned `run` for it.
#[inline(always)]
pub(in crate::input) fn predicted_before<'a>(
    c: &Connection,
    _run: &ControlRun,
    segment: &'a Segment<'a>,
) -> Valid<'a> {
    debug_assert!(c.predict_control(segment).is_some(), "{segment:?} was never predicted");
    Valid(segment)
}

impl Connection {
    #[inline(always)]
    fn predict_control(&self, segment: &Segment<'_>) -> Option<ControlRun> {
        let is_plain = segment.offset_and_flags & !OPTIONAL == self.plain_header()
            && segment.payload.is_empty()
            && segment.joined.is_none()
            && segment.seq == self.rcv.nxt;
        // This method predicts only segments that header prediction does not expect. All others are
        // left to header prediction.
        let is_other = is_header_predicted(self, segment.offset_and_flags);
        if !is_plain || is_other || !self.expects_no_feedback() {
            return None;
        }
        let has_fin = segment.flags().contains(TcpFlags::FIN);
        let advances = segment.ack != self.snd.una;
        let is_expected = match self.state {
            State::SynReceived => advances,
            State::SynSent | State::TimeWait | State::Closed => false,
            _ => true,
        };
        // Some segments are left to the slow path: duplicate ACKs, ACKs of a part of the data in
        // flight, and a FIN while data before it is missing.
        let is_odd =
            if advances { segment.ack != self.snd.max } else { !has_fin && self.snd.flight() > 0 };
        let is_beyond =
            has_fin && (self.receiver.fin.is_some() || !self.receiver.assembler.is_empty());
        if !is_expected || is_odd || is_beyond {
            return None;
        }
        let mut timestamps = None;
        if self.timestamps.on {
            let alone = Timestamps::alone(segment.options)?;
            if before(alone.value, self.timestamps.recent) {
                return None;
            }
            timestamps = Some(alone);
        }
        Some(ControlRun { advances, has_fin, timestamps })
    }

    /// Whether an acknowledgement can have no other effect than to advance SND.UNA. This requires
    /// header prediction and SACK. In addition, nothing may wait for what the segment reports: no
    /// loss recovery, no path MTU probe, no AccECN and no user timeout option.
    #[inline(always)]
    fn expects_no_feedback(&self) -> bool {
        self.preferences.header_prediction
            && self.agreement.selective_acks
            && !self.ecn.is_accurate()
            && !self.config.user_timeout_option
            && !self.sender.path.is_asking()
            && self.is_outside_recovery()
    }
}
