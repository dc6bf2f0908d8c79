//! The time during which a connection had unacknowledged data: the total, and the part of it during
//! which each factor limited the sender.

use crate::Connection;
use crate::compact::pack::{packed, packed_enum};
use alloc::boxed::Box;
use linerate_units::{Duration, Instant};

/// The factor that limits the sender at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occupation {
    /// All written data is acknowledged.
    Idle,
    /// The path limits the sender: by the congestion window, by pacing, or because acknowledgements
    /// take a round trip.
    Path,
    /// The peer's window is closed, or too small for the next segment.
    PeerWindow,
    /// The send buffer is full. All data in it was sent, except for a rest of less than a segment
    /// that Nagle's algorithm may hold back.
    SendBuffer,
}

packed_enum!(Occupation { Idle, Path, PeerWindow, SendBuffer });

impl Occupation {
    const COUNT: usize = 4;
}

/// The time during which a connection had unacknowledged data. During parts of this time, the
/// peer's window or the connection's send buffer limited the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BusyTime {
    now: Occupation,
    since: Instant,
    /// The time for which each factor has limited the sender. Idle time is not counted.
    spent: [Duration; Occupation::COUNT],
}

packed!(BusyTime { now, since, spent });

impl BusyTime {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { now: Occupation::Idle, since: now, spent: [Duration::ZERO; Occupation::COUNT] }
    }

    /// Records that the factor `occupation` limits the sender from `now` on.
    #[inline]
    fn note(&mut self, now: Instant, occupation: Occupation) {
        if occupation != self.now {
            self.count(now);
            (self.now, self.since) = (occupation, now);
        }
    }

    /// Adds the time since the present factor began to limit the sender to the total of this
    /// factor.
    #[inline]
    fn count(&mut self, now: Instant) {
        if self.now != Occupation::Idle {
            self.spent[self.now as usize] += now.since(self.since);
        }
    }

    /// Returns a copy in which the present period, up to `now`, is added to the time of its factor.
    fn until(mut self, now: Instant) -> Self {
        self.count(now);
        self
    }

    /// Returns the total time up to `now` during which data was unacknowledged.
    #[must_use]
    pub fn total(&self, now: Instant) -> Duration {
        self.until(now).spent.into_iter().fold(Duration::ZERO, |total, spent| total + spent)
    }

    /// Returns the time up to `now` during which the peer's window limited the sender.
    #[must_use]
    pub fn for_peer_window(&self, now: Instant) -> Duration {
        self.until(now).spent[Occupation::PeerWindow as usize]
    }

    /// Returns the time up to `now` during which the send buffer limited the sender. During this
    /// time, the buffer was full, and all data in it was sent, except for a rest of less than a
    /// segment.
    #[must_use]
    pub fn for_send_buffer(&self, now: Instant) -> Duration {
        self.until(now).spent[Occupation::SendBuffer as usize]
    }
}

impl Connection {
    /// Records the factor that limits the sender. Called when no more segments can be sent.
    #[inline]
    pub(crate) fn note_occupation(&mut self, now: Instant) {
        let occupation = self.occupation();
        if let Some(busy) = &mut self.sender.busy {
            busy.note(now, occupation);
        }
    }

    /// Records that all data was sent and is not yet acknowledged.
    #[inline]
    pub(crate) fn note_all_sent(&mut self, now: Instant) {
        let occupation = self.wait_for_acknowledgement();
        if let Some(busy) = &mut self.sender.busy {
            busy.note(now, occupation);
        }
    }

    /// Records that all data is acknowledged.
    #[inline]
    pub(crate) fn note_all_acknowledged(&mut self, now: Instant) {
        if let Some(busy) = &mut self.sender.busy {
            busy.note(now, Occupation::Idle);
        }
    }

    /// Starts a busy period, because data was written while no data was unacknowledged. The
    /// limiting factor is known only when output ends; until then, the path counts as the limit.
    #[inline]
    pub(crate) fn start_busy_time(&mut self, now: Instant) {
        let busy = self.sender.busy.get_or_insert_with(|| Box::new(BusyTime::new(now)));
        busy.note(now, Occupation::Path);
    }

    /// Returns the busy time, in total and for each limiting factor.
    pub(crate) fn busy_time(&self) -> BusyTime {
        self.sender.busy.as_deref().copied().unwrap_or_else(|| BusyTime::new(Instant::ZERO))
    }

    /// Returns the limiting factor when all data that can be sent was sent: the send buffer if the
    /// most recent write did not fit completely, otherwise the path.
    #[inline]
    const fn wait_for_acknowledgement(&self) -> Occupation {
        if self.sender.write_refused { Occupation::SendBuffer } else { Occupation::Path }
    }

    /// Returns the factor that limits the sender at present.
    #[inline]
    fn occupation(&self) -> Occupation {
        if self.sender.buffer.len() == 0 {
            return Occupation::Idle;
        }
        let end = self.sender.buffer.end();
        let unsent = end - self.snd.nxt.earlier(end);
        if unsent == 0 {
            return self.wait_for_acknowledgement();
        }
        if self.sender.held_back {
            return Occupation::Path;
        }
        let allowed = self.snd.wnd.saturating_sub(self.snd.nxt - self.snd.una);
        let full = self.full_segment();
        if allowed < unsent.min(full) {
            Occupation::PeerWindow
        } else if unsent < full {
            // Nagle's algorithm holds back less than a segment until more data is written. If the
            // send buffer is full, nothing can be written, so the buffer is the limiting factor.
            self.wait_for_acknowledgement()
        } else {
            Occupation::Path
        }
    }
}
