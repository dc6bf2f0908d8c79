//! Compact connections. A connection that has been idle for a while, with nothing in flight and no
//! buffer memory, is packed into a few hundred bytes. It is restored when it is needed: by a
//! segment, a timer or a call.
//!
//! The restored connection equals the original, including its measurements of the path. Each struct
//! lists its packed fields in a `packed!` macro, with the values to which the other fields are
//! restored. If a field that is not packed has another value than that, the connection is not
//! compacted.

pub(crate) mod pack;
mod time_wait;

use crate::timers::Timer;
use crate::{Connection, SharedConfig};
use alloc::boxed::Box;
use linerate_units::Instant;
use pack::{Pack, Packer, Unpacker};

pub use time_wait::TimeWaitRecord;

/// The timers that may run while a connection is compact. They expire rarely and after a long time,
/// so they seldom force the connection to be restored.
const LONG: [Timer; 4] = [Timer::KeepAlive, Timer::TimeWait, Timer::Orphan, Timer::UserTimeout];

/// An idle connection in its compact form: the packed values, and the configuration, which is
/// shared with other connections.
#[derive(Clone, Debug)]
pub struct CompactConnection {
    config: SharedConfig,
    packed: Box<[u8]>,
}

impl Connection {
    /// Returns the connection in its compact form, which takes a few hundred bytes. `None` unless
    /// the connection has been idle for a second. Until then, [`Connection::poll_timeout`] returns
    /// the end of that second.
    #[must_use]
    pub fn compact(&self) -> Option<CompactConnection> {
        if !self.can_compact() {
            return None;
        }
        let mut packer = Packer::new(&self.config);
        self.pack(&mut packer);
        Some(CompactConnection { config: self.config.clone(), packed: packer.finish()? })
    }

    /// Whether the connection can be compacted now: its idle period is over, it holds no buffer
    /// memory, has no output, and waits only for long-running timers.
    #[must_use]
    pub fn can_compact(&self) -> bool {
        !self.timers.is_set(Timer::IdleBuffers) && self.is_quiet()
    }

    pub(crate) fn end_idle_period(&mut self) {
        if self.is_quiet() {
            self.timers.clear(Timer::IdleBuffers);
        }
    }

    /// Whether the connection has no memory in its buffers, no output, no event to report, and no
    /// timer that expires soon. When its idle period is over, it can then be compacted.
    fn is_quiet(&self) -> bool {
        let is_soon = |timer: Timer| timer != Timer::IdleBuffers && !LONG.contains(&timer);
        let waits = |&timer: &Timer| self.timers.is_set(timer) && is_soon(timer);
        let has_news = self.output_due || !self.events.is_empty();
        self.buffer_memory() == 0 && !has_news && !Timer::ALL.iter().any(waits)
    }
}

impl CompactConnection {
    /// Returns an unpacked copy of the connection for inspection. The compact connection does not
    /// change.
    #[must_use]
    pub fn look(&self) -> Connection {
        let mut connection = Connection::unpack(&mut Unpacker::new(&self.config, &self.packed));
        connection.slow(|connection| connection.timers.find_floor());
        connection
    }

    /// Returns the unpacked connection, which will handle an event at `now`. The result can be
    /// compacted again after another idle period.
    #[must_use]
    pub fn wake(&self, now: Instant) -> Connection {
        let mut connection = self.look();
        connection.watch_idle_buffers(now);
        connection
    }

    /// Returns the number of bytes allocated in addition to the size of this value.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.packed.len()
    }
}
