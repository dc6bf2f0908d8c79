//! The end of a connection: ABORT (RFC 9293 §3.10.5), TIME-WAIT, and the time limits after the
//! application has released the connection.

use crate::event::Events;
use crate::output::reset::Reset;
use crate::send::Writes;
use crate::timers::Timer;
use crate::{Connection, Error, State};
use alloc::boxed::Box;
use linerate_units::Instant;
use linerate_wire::Timestamps;

/// # Application calls: abort
impl Connection {
    /// Starts the timer of a connection that the application has released. In FIN-WAIT-2 it limits
    /// the wait for the peer's FIN, and in other states the linger time.
    pub(crate) fn start_orphan_timer(&mut self, now: Instant) {
        let limit = match (self.state, self.linger()) {
            (State::FinWait2, _) => self.orphan_timeout(),
            (State::Closed, _) | (_, None) => return,
            (_, Some(linger)) => linger,
        };
        self.timers.set(Timer::Orphan, now, limit);
    }

    /// Resets the connection (ABORT, RFC 9293 §3.10.5). In TIME-WAIT it is closed without a reset,
    /// since both endpoints have closed normally.
    pub fn abort(&mut self, now: Instant) {
        self.slow(|connection| {
            if connection.state == State::TimeWait {
                connection.end(None);
            } else {
                connection.abort_by_ourselves(now, Error::Aborted);
            }
        });
    }

    /// Resets the connection because of `error`, which no segment of the peer has caused. The reset
    /// therefore carries the current timestamp, and not one that answers a segment.
    pub(crate) fn abort_by_ourselves(&mut self, now: Instant, error: Error) {
        let timestamps = self.timestamps.on.then(|| self.timestamps.stamp(now));
        self.abort_with(error, timestamps);
    }

    /// Resets the connection because of `error`. The reset carries `timestamps`, if given.
    #[cold]
    pub(crate) fn abort_with(&mut self, error: Error, timestamps: Option<Timestamps>) {
        let tells_peer = match self.state {
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait => true,
            // In CLOSING and LAST-ACK, both endpoints have closed, so the peer usually needs no
            // reset. It needs one only if some data was not sent or not read (RFC 2525 §2.17).
            State::Closing | State::LastAck => {
                self.sender.has_unsent(self.snd.max) || !self.receiver.buffer.is_empty()
            }
            State::SynSent | State::TimeWait | State::Closed => false,
        };
        if tells_peer {
            self.owe_reset(Reset::of(self.empty_seq(), self.rcv.nxt, timestamps));
        }
        self.end(Some(error));
    }

    /// Schedules `reset`, which is sent before all other output.
    pub(crate) fn owe_reset(&mut self, reset: Reset) {
        self.reset_due = Some(Box::new(reset));
        self.output_due = true;
    }

    /// Ends the connection. `error` is the reason; `None` if the connection was closed normally.
    /// Received data in the receive buffer can still be read.
    pub(crate) fn end(&mut self, error: Option<Error>) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.error = error;
        self.events |= Events::CLOSED;
        self.timers.clear_all();
        self.sender.buffer.clear(self.snd.max);
        self.sender.scoreboard.clear(self.snd.max);
        self.sender.undo = None;
        self.sender.writes = Writes::Taken;
        self.snd.una = self.snd.max;
        self.snd.nxt = self.snd.max;
        self.ack_due = false;
        self.first_due = false;
        self.keep_alive_due = false;
    }

    /// Enters TIME-WAIT. The connection remains in this state until its old segments can no longer
    /// arrive (RFC 9293 §3.6.1).
    pub(crate) fn enter_time_wait(&mut self, now: Instant) {
        self.ecn.forget();
        self.timers.clear_all();
        self.timers.set(Timer::TimeWait, now, self.config.msl * 2);
        if self.released {
            self.receiver.buffer.give_back();
            self.sender.buffer.give_back();
        } else {
            self.watch_idle_buffers(now);
        }
    }
}
