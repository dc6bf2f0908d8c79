//! What a connection in TIME-WAIT is for: to answer the peer if it repeats its FIN, and to tell old segments from
//! a new incarnation (RFC 9293 §3.10.7.4, RFC 1337, RFC 6191). Numbers and timestamps, and the time at which all
//! is over; nobody will read, write or ask any more.
//!
//! No rule of TIME-WAIT is here: whatever arrives is judged by a connection that is made anew of this.

use crate::opening::Seeds;
use crate::options::{Agreement, TimestampState};
use crate::send::Writes;
use crate::timers::Timer;
use crate::{Connection, Open, Path, SharedConfig, State};
use linerate_units::Instant;
use linerate_wire::SeqNum;

/// What is left of a connection that no application holds, in TIME-WAIT.
#[derive(Clone, Debug)]
pub struct TimeWaitRecord {
    config: SharedConfig,
    numbers: Numbers,
}

/// What is left but for the rules. All that either end has sent was acknowledged.
#[derive(Clone, Debug)]
struct Numbers {
    /// RCV.NXT, and RCV.NXT + RCV.WND.
    rcv_nxt: SeqNum,
    rcv_edge: SeqNum,
    /// SND.UNA and SND.NXT, and Max(SND.WND), which says how old an acknowledgement may be.
    snd_nxt: SeqNum,
    snd_max_wnd: u32,
    timestamps: TimestampState,
    agreement: Agreement,
    next_challenge: Instant,
    deadline: Instant,
}

impl Connection {
    /// When all is over, if nothing else can come to be due of it: it is in TIME-WAIT, and the application has let go.
    #[must_use]
    pub fn waits_until(&self) -> Option<Instant> {
        let is_waiting =
            self.state == State::TimeWait && self.released && self.buffer_memory() == 0;
        is_waiting.then(|| self.timers.deadline(Timer::TimeWait))
    }

    /// What there is to keep of it in TIME-WAIT, once it has said all and the application has let go.
    #[must_use]
    pub fn wait_out(&self) -> Option<TimeWaitRecord> {
        Some(TimeWaitRecord { config: self.config.clone(), numbers: self.numbers()? })
    }

    /// The same in the place of another record, which is over. False if there is more to keep; then nothing has changed.
    #[inline(always)]
    pub fn wait_out_in(&self, record: &mut TimeWaitRecord) -> bool {
        let Some(numbers) = self.numbers() else { return false };
        if !record.config.is_the_same(&self.config) {
            record.config = self.config.clone();
        }
        record.numbers = numbers;
        true
    }

    #[inline(always)]
    fn numbers(&self) -> Option<Numbers> {
        let deadline = self.waits_until().filter(|_| !self.output_due)?;
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
    /// When TIME-WAIT is over.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.numbers.deadline
    }

    /// A connection that answers as the one in TIME-WAIT would.
    #[must_use]
    pub fn look(&self) -> Connection {
        let kept = &self.numbers;
        // The last number of ours is the FIN's, and nothing lies before it any more.
        let initial_sequence = kept.snd_nxt - 2;
        // Its timestamps are kept whole.
        let seeds = Seeds { initial_sequence, timestamp_offset: 0 };
        // No data leaves, so any way will do, and nobody asks for when it was opened.
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

    /// The same, to which something happens. If nothing more does, it will be looked at after a while.
    #[must_use]
    pub fn wake(&self, now: Instant) -> Connection {
        let mut connection = self.look();
        connection.watch_idle_buffers(now);
        connection
    }
}
