//! For how long there was something to send, and what kept it back meanwhile.

use crate::Connection;
use crate::rest::pack::{packed, packed_enum};
use alloc::boxed::Box;
use linerate_units::{Duration, Instant};

/// What the sender is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occupation {
    /// Everything that was written is acknowledged.
    Idle,
    /// Something is not, and the path decides how soon that changes.
    Path,
    /// The peer's window keeps back what could leave.
    PeerWindow,
    /// Everything has left, and the application would write more if the buffer had room.
    SendBuffer,
}

packed_enum!(Occupation { Idle, Path, PeerWindow, SendBuffer });

impl Occupation {
    const COUNT: usize = 4;
}

/// For how long a connection has had data that was not acknowledged, and for how much of that time it waited
/// for the peer's window or for room in its own buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyTime {
    now: Occupation,
    since: Instant,
    /// For how long it was about each; idleness is not counted.
    spent: [Duration; Occupation::COUNT],
}

packed!(BusyTime { now, since, spent });

impl BusyTime {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { now: Occupation::Idle, since: now, spent: [Duration::ZERO; Occupation::COUNT] }
    }

    /// From `now` on the sender is about `occupation`.
    #[inline]
    fn note(&mut self, now: Instant, occupation: Occupation) {
        if occupation != self.now {
            self.count(now);
            (self.now, self.since) = (occupation, now);
        }
    }

    /// Counts what has passed since the last change.
    #[inline]
    fn count(&mut self, now: Instant) {
        if self.now != Occupation::Idle {
            self.spent[self.now as usize] += now.since(self.since);
        }
    }

    /// With what has passed since the last change.
    fn until(mut self, now: Instant) -> Self {
        self.count(now);
        self
    }

    /// How long until `now` something was written and not acknowledged.
    #[must_use]
    pub fn total(&self, now: Instant) -> Duration {
        self.until(now).spent.into_iter().fold(Duration::ZERO, |total, spent| total + spent)
    }

    /// For how much of it, until `now`, the peer's window kept back what could have left.
    #[must_use]
    pub fn for_peer_window(&self, now: Instant) -> Duration {
        self.until(now).spent[Occupation::PeerWindow as usize]
    }

    /// For how much of it, until `now`, everything had left, and the application had more to write than the
    /// send buffer took.
    #[must_use]
    pub fn for_send_buffer(&self, now: Instant) -> Duration {
        self.until(now).spent[Occupation::SendBuffer as usize]
    }
}

impl Connection {
    /// Nothing more can leave now.
    #[inline]
    pub(crate) fn note_occupation(&mut self, now: Instant) {
        let occupation = self.occupation();
        if let Some(busy) = &mut self.sender.busy {
            busy.note(now, occupation);
        }
    }

    /// Everything that was written has left, and is not acknowledged.
    #[inline]
    pub(crate) fn note_all_sent(&mut self, now: Instant) {
        let occupation = self.wait_for_acknowledgement();
        if let Some(busy) = &mut self.sender.busy {
            busy.note(now, occupation);
        }
    }

    /// Everything has been acknowledged.
    #[inline]
    pub(crate) fn end_business(&mut self, now: Instant) {
        if let Some(busy) = &mut self.sender.busy {
            busy.note(now, Occupation::Idle);
        }
    }

    /// Something was written where nothing waited for its acknowledgement. What keeps it back is known when
    /// nothing more can leave.
    #[inline]
    pub(crate) fn start_business(&mut self, now: Instant) {
        let busy = self.sender.busy.get_or_insert_with(|| Box::new(BusyTime::new(now)));
        busy.note(now, Occupation::Path);
    }

    /// How long it was busy, and with what.
    pub(crate) fn busy_time(&self) -> BusyTime {
        self.sender.busy.as_deref().copied().unwrap_or_else(|| BusyTime::new(Instant::ZERO))
    }

    /// What is waited for once everything has left.
    #[inline]
    const fn wait_for_acknowledgement(&self) -> Occupation {
        if self.sender.write_refused { Occupation::SendBuffer } else { Occupation::Path }
    }

    /// What is the sender waiting for?
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
        let allowed = self.snd.wnd.saturating_sub(self.snd.nxt - self.snd.una);
        if !self.sender.held_back && allowed < unsent.min(self.full_segment()) {
            Occupation::PeerWindow
        } else {
            Occupation::Path
        }
    }
}
