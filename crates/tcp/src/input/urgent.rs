//! The sixth step of segment processing: urgent data. The application is told the position of its
//! end, and reads it in order with other data (RFC 9293 §3.10.7.4, RFC 6093).

use super::validate::Valid;
use crate::Connection;
use crate::event::Events;
use linerate_wire::TcpFlags;

impl Connection {
    /// Processes the urgent pointer. It points to the sequence number after the urgent data (RFC
    /// 9293 §3.1).
    pub(super) fn check_urgent(&mut self, segment: Valid<'_>) {
        if !segment.flags().contains(TcpFlags::URG)
            || !self.state.takes_data()
            || self.receiver.shut
        {
            return;
        }
        let mark = segment.seq + u32::from(segment.urgent);
        let consumed = self.rcv.nxt - crate::receive::saturated(self.receiver.buffer.len());
        let known = self.receiver.urgent.unwrap_or(consumed);
        if mark.after(known) && mark.after(consumed) {
            self.receiver.urgent = Some(mark);
            self.events |= Events::URGENT;
        }
    }
}
