//! The one thread that turns a host, or a shard of one: frames in, timers, frames out, and sleep until there is more.

use crate::error::End;
use crate::freed_memory::FreedMemory;
use crate::shared::{Shared, State};
use crate::waiters::SocketId;
use linerate_link::{Readiness, Waiter, return_free_memory};
use linerate_stack::{Budget, Link};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::thread;

/// Turns in which the resets of an ending network may leave.
const LAST_TURNS: usize = 64;

/// What a network's threads have done so far: how much of it was work, and how much waking each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Turns of the host.
    pub turns: u64,
    /// Times that the reactor had nothing to do and waited for its link.
    pub sleeps: u64,
    /// Times that a thread of the application had work for the reactor.
    pub rings: u64,
    /// Times that a thread of the application waited for a socket.
    pub waits: u64,
    /// Bytes of buffers that were freed, and that the allocator was asked to return to the operating
    /// system.
    pub returned_bytes: u64,
}

/// The thread's own part.
pub(crate) struct Reactor<L> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) link: L,
    pub(crate) waiter: Waiter,
    pub(crate) budget: Budget,
    /// All shards of the host. What ends one of them ends all: what comes for it finds nobody.
    pub(crate) shards: Arc<[Arc<Shared>]>,
}

impl Activity {
    /// What two threads have done together.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            turns: self.turns + other.turns,
            sleeps: self.sleeps + other.sleeps,
            rings: self.rings + other.rings,
            waits: self.waits + other.waits,
            returned_bytes: self.returned_bytes + other.returned_bytes,
        }
    }
}

impl<L: Link + Readiness> Reactor<L> {
    /// Turns the host until the application ends it or the link fails; returns the link.
    pub(crate) fn run(mut self) -> L {
        let obituary = Obituary { shared: &self.shared, shards: &self.shards };
        let end =
            Self::turn_to_the_end(&self.shared, &mut self.link, &mut self.waiter, self.budget);
        drop(obituary);
        leave_together(&self.shared, &self.shards, end);
        self.link
    }

    fn turn_to_the_end(shared: &Shared, link: &mut L, waiter: &mut Waiter, budget: Budget) -> End {
        let mut freed_memory = FreedMemory::new();
        loop {
            let mut state = shared.lock();
            if let Some(end) = state.end {
                return end;
            }
            if let Some(why) = state.leaving {
                Self::take_leave(&mut state, link, budget);
                // Before anybody else has the lock, who would find a connection that was aborted and not hear why.
                state.finish(why, shared.turned());
                return why;
            }
            let now = state.now();
            let turn = match state.stack.turn(link, budget, now) {
                Ok(turn) => turn,
                Err(error) => {
                    state.leaving = Some(End::Link(error));
                    continue;
                }
            };
            state.activity.turns += 1;
            state.last = turn;
            freed_memory.note(now, state.stack.buffer_memory());
            state.hand_out_events();
            shared.turned().notify_all();
            if turn.more {
                // Whoever waits for the lock gets it now, and not when the host runs out of work.
                MutexGuard::unlock_fair(state);
                continue;
            }
            state.activity.sleeps += 1;
            drop(state);
            if let Some(freed) = freed_memory.take_due(now) {
                // Without the lock: it takes milliseconds.
                return_free_memory();
                shared.lock().activity.returned_bytes += freed as u64;
            }
            if let Err(error) = waiter.wait(link, turn.next.min(freed_memory.deadline())) {
                shared.lock().leaving.get_or_insert(End::Wait(error));
            }
        }
    }

    /// Ends all sockets, and tells the peers as far as the link has room for it.
    fn take_leave(state: &mut State, link: &mut L, budget: Budget) {
        let now = state.now();
        let sockets: Vec<_> = state.registry.sockets().collect();
        for socket in sockets {
            // What has arrived stays, to be read. One that was closed before needs no end.
            let _ = match socket {
                SocketId::Tcp(handle) => {
                    state.stack.tcp_configure(now, handle, |connection| connection.abort(now))
                }
                SocketId::Listen(handle) => state.stack.tcp_listen_close(now, handle),
                SocketId::Udp(_) => Ok(()),
            };
        }
        state.stack.tcp_abort_orphans(now);
        for _ in 0..LAST_TURNS {
            match state.stack.turn(link, budget, now) {
                Ok(turn) if turn.more => {}
                _ => break,
            }
        }
    }
}

/// Has the other shards end, too.
fn leave_together(own: &Arc<Shared>, shards: &[Arc<Shared>], why: End) {
    shards.iter().filter(|shard| !Arc::ptr_eq(shard, own)).for_each(|shard| shard.leave(why));
}

/// Tells everybody who waits if the thread ends by a panic; they would wait for ever.
struct Obituary<'a> {
    shared: &'a Arc<Shared>,
    shards: &'a [Arc<Shared>],
}

impl Drop for Obituary<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.shared.finish(End::Panicked);
            leave_together(self.shared, self.shards, End::Panicked);
        }
    }
}
