//! Segments without data that come when they are waited for: what acknowledges our SYN or FIN, and the peer's FIN.
//!
//! An opening and a closing are made of these. The steps of RFC 9293 §3.10.7.4 ask each of them for data, holes,
//! marks, blocks and urgent bytes, two dozen questions in all. As header prediction does, this asks whether every
//! answer is the usual one, touches nothing before it is sure, and does then what the steps would do, in their order;
//! a twin without prediction, which takes the steps, must agree.

use crate::options::before;
use crate::{Connection, State};
use linerate_units::Instant;
use linerate_wire::{Segment, TcpFlags, Timestamps};

/// What may be there or not: the first says nothing of how to treat a segment, the other is looked at.
const OPEN: u16 = TcpFlags::PSH.bits() | TcpFlags::FIN.bits();

/// What there is to do for one of these segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    /// It acknowledges something new.
    advances: bool,
    /// The peer says no more.
    has_fin: bool,
    /// Its timestamps, where both ends use them.
    stamp: Option<Timestamps>,
}

impl Connection {
    /// What there is to do for `segment`, if it is one of these, in order and with nothing else to be said of it; `None`
    /// if the steps must look at it.
    #[inline(always)]
    pub(super) fn find_control(&self, segment: &Segment<'_>) -> Option<Control> {
        if !self.is_plain(segment) || !self.has_no_questions() {
            return None;
        }
        let has_fin = segment.flags().contains(TcpFlags::FIN);
        let advances = segment.ack != self.snd.una;
        let waits = match self.state {
            State::SynReceived => advances,
            State::SynSent | State::TimeWait | State::Closed => false,
            State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck => true,
        };
        // A duplicate, or part of what is in flight; or a FIN beyond a hole.
        let is_odd =
            if advances { segment.ack != self.snd.max } else { !has_fin && self.snd.flight() > 0 };
        let is_beyond =
            has_fin && (self.receiver.fin.is_some() || !self.receiver.assembler.is_empty());
        if !waits || is_odd || is_beyond {
            return None;
        }
        let mut stamp = None;
        if self.timestamps.on {
            stamp = Some(Timestamps::alone(segment.options)?);
            if stamp.is_some_and(|stamp| before(stamp.value, self.timestamps.recent)) {
                return None;
            }
        }
        Some(Control { advances, has_fin, stamp })
    }

    /// Takes `segment`, for which [`find_control`](Self::find_control) has found that.
    #[inline(always)]
    pub(super) fn take_control(&mut self, now: Instant, segment: &Segment<'_>, control: Control) {
        if let Some(stamp) = control.stamp {
            self.timestamps.note(stamp, segment.seq, self.rcv.acked, now);
        }
        self.end_burst();
        self.heard = now;
        if self.state == State::SynReceived {
            if self.fast_open.is_some() {
                self.settle_data_of_syn(segment.ack);
            }
            self.establish(now, segment.ack);
        }
        if control.advances && !self.acknowledge_control_alone(now, segment) {
            self.acknowledge_selectively(now, segment, true);
        }
        self.update_window(segment);
        if self.sender.is_fin_acknowledged(self.snd.una) {
            self.on_fin_acknowledged(now);
        }
        if control.has_fin && self.state.takes_data() {
            self.receiver.fin = Some(self.rcv.nxt);
            self.on_fin(now);
        }
    }

    /// The same, not drawn in.
    #[inline(never)]
    pub(super) fn take_control_apart(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        control: Control,
    ) {
        self.take_control(now, segment, control);
    }

    /// Is it an acknowledgement or a FIN, of the size that is agreed on, without data and the next in order?
    #[inline(always)]
    fn is_plain(&self, segment: &Segment<'_>) -> bool {
        segment.offset_and_flags & !OPEN == self.plain_header()
            && segment.payload.is_empty()
            && segment.seq == self.rcv.nxt
    }

    /// Is nothing missing, measured or tried that an acknowledgement could bring news of?
    #[inline(always)]
    pub(super) fn has_no_questions(&self) -> bool {
        self.preferences.header_prediction
            && self.agreement.selective_acks
            && !self.ecn.is_accurate()
            && !self.config.user_timeout_option
            && !self.sender.path.is_asking()
            && self.is_untroubled()
    }
}
