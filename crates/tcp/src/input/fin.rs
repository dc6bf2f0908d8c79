//! The eighth step of segment processing: the peer's FIN. This file also contains the state change
//! when the peer acknowledges our FIN (RFC 9293 §3.10.7.4).

use super::validate::sequence::Text;
use crate::event::Events;
use crate::timers::Timer;
use crate::{Connection, State};
use linerate_units::Instant;

impl Connection {
    /// Stores the sequence number of the peer's FIN, if `text` has one. If all data before a stored
    /// FIN has arrived, processes the FIN.
    pub(super) fn take_fin(&mut self, now: Instant, text: &Text<'_>) {
        if text.fin && self.receiver.fin.is_none() && self.state.takes_data() {
            self.note_fin(text);
        }
        if self.receiver.fin == Some(self.rcv.nxt) && self.state.takes_data() {
            self.on_fin(now);
        }
    }

    /// Stores the sequence number of the FIN. If data with higher sequence numbers has already
    /// arrived, the peer contradicts itself. In that case, the data is kept and the FIN is ignored.
    fn note_fin(&mut self, text: &Text<'_>) {
        let end = text.end();
        if self.receiver.assembler.reaches_beyond(end) {
            return;
        }
        self.receiver.fin = Some(end);
        if end != self.rcv.nxt {
            self.owe_ack();
        }
    }

    pub(super) fn on_fin(&mut self, now: Instant) {
        self.rcv.nxt += 1;
        self.rcv.edge = self.rcv.edge.later(self.rcv.nxt);
        self.timers.clear(Timer::DelayedAck);
        self.owe_ack();
        self.state = self.state.after_fin();
        self.events |= Events::END_OF_STREAM;
        if self.state == State::TimeWait {
            self.enter_time_wait(now);
        }
    }

    /// Handles the peer's acknowledgement of our FIN.
    pub(super) fn on_fin_acknowledged(&mut self, now: Instant) {
        let after = self.state.after_fin_acknowledged();
        if after == self.state {
            return;
        }
        if after == State::Closed {
            self.end(None);
            return;
        }
        self.state = after;
        if after == State::TimeWait {
            self.enter_time_wait(now);
        } else if self.released {
            self.start_orphan_timer(now);
        }
    }
}
