//! The handling of expired timers.

use crate::timers::Timer;
use crate::{Connection, Error, State};
use linerate_units::Instant;

impl Connection {
    pub(crate) fn deadline_after(&mut self, now: Instant) -> Option<Instant> {
        self.timers.find_floor();
        let next = self.timers.floor();
        (next > now).then_some(next)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.timers.next() <= now {
            self.slow(|connection| connection.expire_timers(now));
        }
        self.timers.find_floor();
    }

    fn expire_timers(&mut self, now: Instant) {
        for timer in Timer::ALL {
            if self.timers.take_expired(timer, now) {
                self.on_expired(timer, now);
            }
        }
    }

    fn on_expired(&mut self, timer: Timer, now: Instant) {
        match timer {
            Timer::Pacing => self.output_due = true,
            Timer::Reorder => self.on_reorder_timer(now),
            Timer::Retransmit => self.on_retransmission_timer(now),
            Timer::Persist => self.on_persist(now),
            Timer::DelayedAck => {
                self.statistics.delayed_ack_timeouts += 1;
                self.owe_ack();
            }
            Timer::UserTimeout => self.on_user_timeout(now),
            Timer::KeepAlive => self.on_keep_alive(now),
            Timer::TimeWait => self.end(None),
            Timer::IdleBuffers => self.on_idle_buffers(now),
            Timer::Orphan => self.on_orphan(now),
        }
    }

    /// Handles the persist timer: probes a closed window (RFC 9293 §3.8.6.1), or sends a segment
    /// into a small window (§3.8.6.2.1).
    fn on_persist(&mut self, now: Instant) {
        if !self.sender.has_unsent(self.snd.nxt) {
            return;
        }
        if self.has_been_silent_too_long(now) {
            self.end(Some(self.reason_for_silence()));
            return;
        }
        // If the application has released the connection, a closed window is probed only for a
        // limited time. Without this limit, a peer that answers every probe would keep the
        // connection alive for ever.
        if self.released && now.since(self.sender.progressed) >= self.orphan_timeout() {
            self.abort_by_ourselves(now, Error::TimedOut);
            return;
        }
        self.cancel_more();
        self.sender.probe_due = true;
        self.sender.probes = self.sender.probes.saturating_add(1);
        self.output_due = true;
    }

    /// Handles the keep-alive timer (RFC 9293 §3.8.4). Received segments do not restart the timer.
    /// When the timer expires, this method checks when the most recent segment arrived, and if
    /// necessary sets the timer for the remaining idle time.
    fn on_keep_alive(&mut self, now: Instant) {
        let Some(keep_alive) = self.preferences.keep_alive else { return };
        if !self.state.is_synchronized() {
            return;
        }
        if self.last_received >= self.keep_alive_probed {
            self.keep_alive_probes = 0;
        }
        let silence = now.since(self.last_received);
        if silence < keep_alive.idle {
            self.timers.set(Timer::KeepAlive, now, keep_alive.idle - silence);
        } else if self.has_undelivered() {
            // Data is unacknowledged, so retransmissions or window probes already test whether the
            // peer exists. No keep-alive probe is sent.
            self.timers.set(Timer::KeepAlive, now, keep_alive.interval);
        } else if self.is_given_up_by_keep_alive(silence, keep_alive.probes) {
            self.abort_by_ourselves(now, self.reason_for_silence());
        } else {
            self.keep_alive_probes += 1;
            self.keep_alive_probed = now;
            self.keep_alive_due = true;
            self.output_due = true;
            self.timers.set(Timer::KeepAlive, now, keep_alive.interval);
        }
    }

    /// Ends a connection that the application has released, when its time limit has expired. In
    /// FIN-WAIT-2, only the peer's FIN is missing, and the connection ends without a reset. In
    /// other states, the linger time has ended, and the connection is reset.
    fn on_orphan(&mut self, now: Instant) {
        if self.state == State::FinWait2 {
            self.end(None);
        } else {
            self.abort_by_ourselves(now, Error::TimedOut);
        }
    }
}
