//! A connection at rest: nothing has happened for a while, nothing is in flight, no buffer holds memory. Its
//! fields, of which there are a few hundred, are packed into about as many bytes, and unpacked when
//! something happens to it.
//!
//! It comes back equal to what it was, whatever it has learnt of its path: each part names its fields beside
//! their declaration, and what cannot be packed keeps a connection from resting.

pub(crate) mod pack;
mod waiting;

use crate::timers::Timer;
use crate::{Connection, SharedConfig};
use alloc::boxed::Box;
use linerate_units::Instant;
use pack::{Pack, Packer, Unpacker};

pub use waiting::TimeWaitRecord;

/// What may be waited for at rest: these timers are seldom, and expire after long.
const LONG: [Timer; 4] = [Timer::KeepAlive, Timer::TimeWait, Timer::Orphan, Timer::UserTimeout];

/// A connection at rest.
#[derive(Clone, Debug)]
pub struct CompactConnection {
    config: SharedConfig,
    packed: Box<[u8]>,
}

impl Connection {
    /// The same connection in a tenth of the memory, if it has been quiet for so long that it is worth
    /// it: a second, as [`Connection::poll_timeout`] makes sure that somebody asks.
    #[must_use]
    pub fn rest(&self) -> Option<CompactConnection> {
        if !self.is_quiet() {
            return None;
        }
        let mut packer = Packer::new(&self.config);
        self.pack(&mut packer);
        Some(CompactConnection { config: self.config.clone(), packed: packer.finish()? })
    }

    /// Holds it no memory, has it nothing to say, and waits for nothing that could be soon?
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        !self.timers.is_set(Timer::IdleBuffers) && self.is_quiet_for_now()
    }

    /// One that is quiet for now shall not be looked at again before it rests: [`Connection::rest`] has
    /// something at once.
    pub fn hasten_rest(&mut self) {
        if self.is_quiet_for_now() {
            self.timers.clear(Timer::IdleBuffers);
        }
    }

    /// Is it quiet, but perhaps not for long enough?
    fn is_quiet_for_now(&self) -> bool {
        let is_soon = |timer: Timer| timer != Timer::IdleBuffers && !LONG.contains(&timer);
        let waits = |&timer: &Timer| self.timers.is_set(timer) && is_soon(timer);
        let has_news = self.output_due || !self.events.is_empty();
        self.buffer_memory() == 0 && !has_news && !Timer::ALL.iter().any(waits)
    }
}

impl CompactConnection {
    /// The connection as it was, to be looked at.
    #[must_use]
    pub fn look(&self) -> Connection {
        let mut connection = Connection::unpack(&mut Unpacker::new(&self.config, &self.packed));
        connection.slow(|connection| connection.timers.find_floor());
        connection
    }

    /// The connection as it was: something happens to it. If nothing more does, it will rest again after a
    /// while.
    #[must_use]
    pub fn wake(&self, now: Instant) -> Connection {
        let mut connection = self.look();
        connection.watch_idle_buffers(now);
        connection
    }

    /// Bytes of memory that it takes beside itself.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.packed.len()
    }
}
