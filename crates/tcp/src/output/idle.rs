//! The end of output: when no more segments can be sent until another event,
//! [`Connection::end_output`] records this and the reason.

use super::choose::Choice;
use crate::Connection;
use crate::send::Writes;
use crate::timers::Timer;
use linerate_units::Instant;

/// The reason why no more segments can be sent at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Unsent or lost data is held back by the windows, by pacing, by Nagle's algorithm, or by a
    /// path MTU probe. Also used if all data was sent while a search for the path MTU is in
    /// progress.
    HeldBack,
    /// All data was sent, and none of it is marked lost.
    AllSent,
    /// A predicted segment has just carried the rest of the written data. Now `in_flight` bytes are
    /// in flight, including this segment. `is_alone` is true if no other data is in flight.
    RestSent { in_flight: u32, is_alone: bool },
}

impl Connection {
    /// Records that no segment can be sent until another event.
    #[inline(never)]
    pub(super) fn end_output(&mut self, now: Instant) {
        let sender = &self.sender;
        if sender.writes == Writes::Limited {
            self.report_low_water();
        }
        let sender = &self.sender;
        if !sender.has_unsent(self.snd.nxt)
            && sender.scoreboard.lost() == 0
            && !sender.path.is_awake()
        {
            self.end_output_all_sent(now);
        } else {
            self.end_output_for(now, Reason::HeldBack);
        }
    }

    /// Ends output, because all data was sent.
    pub(super) fn end_output_all_sent(&mut self, now: Instant) {
        self.end_output_for(now, Reason::AllSent);
    }

    /// Ends output after a predicted ACK. If all data is acknowledged and this was already recorded
    /// at an earlier end of output, most steps are skipped. A connection that only receives data
    /// thus takes them a single time.
    #[inline(always)]
    pub(super) fn end_output_after_ack(&mut self, now: Instant) {
        if self.snd.una == self.snd.nxt && self.sender.usage.is_nothing_until(self.snd.nxt) {
            self.output_due = false;
            self.sender.held_back = false;
        } else {
            self.end_output_all_sent(now);
        }
    }

    // This method is inlined, so that for each constant `reason` the compiler removes the steps
    // that are unnecessary for it.
    #[inline(always)]
    pub(super) fn end_output_for(&mut self, now: Instant, reason: Reason) {
        let is_held_back = reason == Reason::HeldBack;
        self.output_due = false;
        self.sender.probe_due = false;
        self.sender.held_back = is_held_back && self.is_limited_by_congestion_control();
        self.sender.usage.note(self.snd.una, self.snd.nxt, self.snd.flight());
        match reason {
            Reason::RestSent { .. } => self.note_all_sent(now),
            Reason::HeldBack | Reason::AllSent => self.note_occupation(now),
        }
        self.note_application_limit(reason);
        if is_held_back {
            self.watch_small_window(now);
            self.watch_pacer(now);
            if self.sender.path.is_awake() {
                self.watch_path(now);
            }
        }
        // If only the segment that was just sent is in flight, its commit has set the
        // retransmission timer. So `watch_tail` has nothing to change.
        if !matches!(reason, Reason::RestSent { is_alone: true, .. }) {
            self.watch_tail(now);
        }
    }

    /// Records whether the sender is application-limited (draft-ietf-ccwg-bbr §4.1.2.4): it is if
    /// all data was sent, and the data in flight does not fill the congestion window.
    #[inline(always)]
    fn note_application_limit(&mut self, reason: Reason) {
        let sender = &mut self.sender;
        let (in_flight, is_below_window) = match reason {
            Reason::RestSent { in_flight, is_alone } => (in_flight, is_alone),
            Reason::AllSent => (sender.scoreboard.in_flight(), false),
            Reason::HeldBack if sender.has_unsent(self.snd.nxt) || sender.scoreboard.lost() > 0 => {
                return;
            }
            // Here all data was sent. Output ended as `HeldBack` only because a search for the path
            // MTU is in progress, so this case is treated like `AllSent`.
            Reason::HeldBack => (sender.scoreboard.in_flight(), false),
        };
        // `is_below_window` is true for a segment that is shorter than a full segment and alone in
        // flight. Such a segment never fills the congestion window.
        if is_below_window || in_flight < sender.congestion.window().cwnd() {
            sender.account.note_application_limited(in_flight);
        }
    }

    /// Whether no other segment can follow `choice`. After an ACK without data, no data can follow,
    /// since such an ACK is chosen only if no data can be sent.
    pub(super) fn is_last_segment(&self, choice: Choice) -> bool {
        let asks = self.is_asked_besides();
        match choice {
            Choice::Ack { .. } => !asks && self.sender.path.ready().is_none(),
            Choice::Data(_) => {
                let waits = self.sender.has_unsent(self.snd.nxt) || self.sender.loss.retransmit_due;
                !asks && !waits && self.is_outside_recovery()
            }
            Choice::Syn { .. } => !asks && !self.may_send(),
            Choice::BareAck | Choice::KeepAlive | Choice::Nothing => false,
        }
    }

    /// Whether a segment other than a data segment is due.
    pub(super) fn is_asked_besides(&self) -> bool {
        self.ack_due || self.keep_alive_due || self.first_due
    }

    /// Whether unsent data waits for the congestion window, for pacing or for a path MTU probe.
    /// Data that waits for the peer's window or because of the maximum pacing rate does not count.
    fn is_limited_by_congestion_control(&self) -> bool {
        let is_full = self.sender.has_unsent(self.snd.nxt)
            && self.is_window_full()
            && self.sender.congestion.window().cwnd() < self.snd.wnd;
        is_full
            || (self.waits_for_pacer() && !self.is_paced_at_maximum())
            || self.waits_for_path_probe()
    }

    /// Whether a full segment waits for the congestion window, so that data written after it cannot
    /// be sent now.
    #[inline]
    pub(crate) fn waits_for_window(&self) -> bool {
        let waits = self.sender.buffer.end() - self.snd.nxt;
        waits >= self.full_segment() && self.is_window_full() && self.sender.path.ready().is_none()
    }

    /// Starts the persist timer if data waits and nothing is in flight. Without the timer, nothing
    /// would trigger output again, because no acknowledgement will arrive (RFC 9293 §3.8.6.1).
    fn watch_small_window(&mut self, now: Instant) {
        let stuck = self.state.sends_data()
            && self.snd.nxt == self.snd.una
            && self.sender.has_unsent(self.snd.nxt)
            && !self.timers.is_set(Timer::Retransmit)
            && !self.waits_for_pacer();
        if stuck && !self.timers.is_set(Timer::Persist) {
            let interval = self.persist_interval();
            self.timers.set(Timer::Persist, now, interval);
        }
    }
}
