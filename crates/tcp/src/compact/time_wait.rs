//! TIME-WAIT records. A connection in TIME-WAIT must answer a repeated FIN, and distinguish old
//! segments from a new incarnation (RFC 9293 §3.10.7.4, RFC 1337, RFC 6191). The record stores what
//! is needed for this: sequence numbers, timestamps and the deadline.
//!
//! Records have no code of their own for the rules of TIME-WAIT. For each segment, a connection is
//! restored from the record and processes the segment.

use crate::opening::Seeds;
use crate::options::{Agreement, TimestampState};
use crate::send::Writes;
use crate::timers::Timer;
use crate::{Connection, Open, Path, SharedConfig, State};
use linerate_units::Instant;
use linerate_wire::SeqNum;

/// The record that replaces a connection in TIME-WAIT, once the application has released it.
#[derive(Clone, Debug)]
pub struct TimeWaitRecord {
    config: SharedConfig,
    numbers: Numbers,
}

/// The numbers of a TIME-WAIT record. Each endpoint has acknowledged all data and the FIN of the
/// other, so the record needs no buffers.
#[derive(Clone, Debug)]
struct Numbers {
    /// RCV.NXT. `rcv_edge` is the right edge of the window, RCV.NXT + RCV.WND.
    rcv_nxt: SeqNum,
    rcv_edge: SeqNum,
    /// SND.UNA and SND.NXT, which are equal. `snd_max_wnd` is MAX.SND.WND, which limits how old an
    /// acknowledgement may be (RFC 5961 §5).
    snd_nxt: SeqNum,
    snd_max_wnd: u32,
    timestamps: TimestampState,
    agreement: Agreement,
    next_challenge: Instant,
    deadline: Instant,
}

impl Connection {
    /// Returns the end of TIME-WAIT. `None` if the connection is not in TIME-WAIT, the application
    /// has not released it, or a buffer still holds memory.
    #[must_use]
    pub fn time_wait_deadline(&self) -> Option<Instant> {
        let is_waiting =
            self.state == State::TimeWait && self.released && self.buffer_memory() == 0;
        is_waiting.then(|| self.timers.deadline(Timer::TimeWait))
    }

    /// Returns the TIME-WAIT record of the connection. `None` if [`Connection::time_wait_deadline`]
    /// returns `None`, or if a segment must still be sent.
    #[must_use]
    pub fn time_wait_record(&self) -> Option<TimeWaitRecord> {
        Some(TimeWaitRecord { config: self.config.clone(), numbers: self.numbers()? })
    }

    /// Overwrites `record`, which has expired, with the TIME-WAIT record of this connection.
    /// Returns false, without any effect, if this connection cannot be replaced by a record yet.
    #[inline(always)]
    pub fn write_time_wait_record(&self, record: &mut TimeWaitRecord) -> bool {
        let Some(numbers) = self.numbers() else { return false };
        if !record.config.is_same_allocation(&self.config) {
            record.config = self.config.clone();
        }
        record.numbers = numbers;
        true
    }

    #[inline(always)]
    fn numbers(&self) -> Option<Numbers> {
        let deadline = self.time_wait_deadline().filter(|_| !self.output_due)?;
        debug_assert!(
            self.snd.flight() == 0 && self.rcv.pending() == 0,
            "something is not acknowledged"
        );
        Some(Numbers {
            rcv_nxt: self.rcv.nxt,
            rcv_edge: self.rcv.edge,
            snd_nxt: self.snd.nxt,
            snd_max_wnd: self.snd.max_wnd,
            timestamps: self.timestamps.clone(),
            agreement: self.agreement.clone(),
            next_challenge: self.next_challenge,
            deadline,
        })
    }
}

impl TimeWaitRecord {
    /// Returns the end of TIME-WAIT.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.numbers.deadline
    }

    /// Returns a connection that answers segments as the original connection in TIME-WAIT would.
    #[must_use]
    pub fn look(&self) -> Connection {
        let kept = &self.numbers;
        // Our FIN has the sequence number SND.NXT − 1, and our SYN had an earlier one. TIME-WAIT
        // does not use the initial sequence number, so any number before the FIN will do.
        let initial_sequence = kept.snd_nxt - 2;
        // The timestamp state is replaced below by the stored one, so this offset has no effect.
        let seeds = Seeds { initial_sequence, timestamp_offset: 0 };
        // The restored connection sends no data and its opening time is not reported. The path and
        // the time given here therefore have no effect.
        let mut connection = Connection::open(
            self.config.clone(),
            Path::ipv4(576),
            seeds,
            Open::Passive,
            Instant::ZERO,
        );
        connection.state = State::TimeWait;
        let (rcv, snd) = (&mut connection.rcv, &mut connection.snd);
        (rcv.nxt, rcv.acked, rcv.edge) = (kept.rcv_nxt, kept.rcv_nxt, kept.rcv_edge);
        (snd.una, snd.nxt, snd.max) = (kept.snd_nxt, kept.snd_nxt, kept.snd_nxt);
        snd.max_wnd = kept.snd_max_wnd;
        connection.timestamps = kept.timestamps.clone();
        connection.agreement = kept.agreement.clone();
        connection.receiver.note_agreement(&kept.agreement);
        connection.next_challenge = kept.next_challenge;
        connection.sender.writes = Writes::Closed;
        connection.user_timeouts.due = false;
        connection.first_due = false;
        connection.output_due = false;
        connection.released = true;
        connection.slow(|connection| {
            connection.timers.set_deadline(Timer::TimeWait, kept.deadline);
        });
        connection
    }

    /// Returns a connection that will handle an event at `now`, and answers segments as the
    /// original connection in TIME-WAIT would.
    #[must_use]
    pub fn wake(&self, now: Instant) -> Connection {
        let mut connection = self.look();
        connection.watch_idle_buffers(now);
        connection
    }
}
