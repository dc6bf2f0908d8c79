//! The thread that drives a host or a shard: receive frames, run timers, transmit frames, and sleep
//! until there is more to do.

use crate::error::End;
use crate::shared::{Shared, State};
use crate::waiters::SocketId;
use linerate_link::{FreedMemory, Readiness, Waiter, return_free_memory};
use linerate_stack::{Budget, InterfaceLink, Link};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::thread;

/// Maximum number of turns of a network that stops. In these turns it sends the resets of its
/// connections.
const FINAL_TURNS: usize = 64;

/// Counters of the threads of a network: turns, sleeps and wake-ups.
///
/// ```
/// use linerate_sockets::{Net, StackConfig};
///
/// # use linerate_link::memory::{MemoryConfig, pair};
/// # let (left, _peer) = pair(MemoryConfig::default())?;
/// # let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// let net = Net::builder(left, config).start()?;
/// let before = net.activity();
/// let listener = net.bind("127.0.0.1:80")?;
/// let _client = net.connect("127.0.0.1:80")?;
/// assert!(net.activity().turns > before.turns);
/// # drop(listener);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Activity {
    /// Number of turns: passes of the event loop of a host or shard.
    pub turns: u64,
    /// Number of times that the reactor had nothing to do and waited for its link.
    pub sleeps: u64,
    /// Number of times that an application thread woke the reactor because the host had new work.
    pub wake_ups: u64,
    /// Number of times that an application thread waited for an event of a socket, or for the end
    /// of a turn.
    pub waits: u64,
    /// Total size in bytes of the freed buffers that made the reactor ask the allocator to return
    /// free memory to the operating system.
    pub returned_bytes: u64,
}

/// The state of the reactor thread.
pub(crate) struct Reactor<L> {
    pub(crate) shared: Arc<Shared>,
    /// The links of the interfaces.
    pub(crate) links: Vec<InterfaceLink<L>>,
    pub(crate) waiter: Waiter,
    pub(crate) budget: Budget,
    /// All shards of the host. If one shard stops, the others must stop, too: packets that they
    /// hand over to the stopped shard would be lost.
    pub(crate) shards: Arc<[Arc<Shared>]>,
}

impl Activity {
    /// Returns the sum of `self` and `other`, counter by counter.
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            turns: self.turns + other.turns,
            sleeps: self.sleeps + other.sleeps,
            wake_ups: self.wake_ups + other.wake_ups,
            waits: self.waits + other.waits,
            returned_bytes: self.returned_bytes + other.returned_bytes,
        }
    }
}

impl<L: Link + Readiness> Reactor<L> {
    /// Drives the host until the network stops: on request of the application, after an error of a
    /// link, or because another shard has stopped. Returns the links.
    pub(crate) fn run(mut self) -> Vec<InterfaceLink<L>> {
        let guard = PanicGuard { shared: &self.shared, shards: &self.shards };
        let end = Self::run_loop(&self.shared, &mut self.links, &mut self.waiter, self.budget);
        drop(guard);
        stop_other_shards(&self.shared, &self.shards, end);
        self.links
    }

    fn run_loop(
        shared: &Shared,
        links: &mut [InterfaceLink<L>],
        waiter: &mut Waiter,
        budget: Budget,
    ) -> End {
        let mut freed_memory = FreedMemory::new();
        loop {
            let mut state = shared.lock();
            if let Some(end) = state.end {
                return end;
            }
            if let Some(why) = state.stop_reason {
                Self::abort_sockets(&mut state, links, budget);
                // The reason is recorded before the lock is released for the first time after the
                // abort. So a thread that sees an aborted connection also sees why the network has
                // ended.
                state.mark_ended(why, shared.turned());
                return why;
            }
            let now = state.now();
            let turn = match state.stack.turn_on_links(&mut *links, budget, now) {
                Ok(turn) => turn,
                Err(error) => {
                    state.stop_reason = Some(End::Link(error));
                    continue;
                }
            };
            state.activity.turns += 1;
            state.last = turn;
            freed_memory.note(now, state.stack.buffer_memory());
            state.dispatch_events();
            shared.turned().notify_all();
            if turn.more {
                // The host has more work, so the loop goes on without sleeping. A fair unlock hands
                // the lock to an application thread that waits for it. After an ordinary unlock,
                // this loop could take the lock again before that thread does.
                MutexGuard::unlock_fair(state);
                continue;
            }
            state.activity.sleeps += 1;
            drop(state);
            if let Some(freed) = freed_memory.take_due(now) {
                // The lock was released before this call, because the call takes milliseconds.
                return_free_memory();
                shared.lock().activity.returned_bytes += freed as u64;
            }
            if let Err(error) = waiter.wait_for_any(links, turn.next.min(freed_memory.deadline())) {
                shared.lock().stop_reason.get_or_insert(End::Wait(error));
            }
        }
    }

    /// Aborts all connections, closes all listeners, and sends the resets as far as the links have
    /// room for them.
    fn abort_sockets(state: &mut State, links: &mut [InterfaceLink<L>], budget: Budget) {
        let now = state.now();
        let sockets: Vec<_> = state.registry.sockets().collect();
        for socket in sockets {
            // An error means that the socket is already closed, so it is ignored. An aborted
            // connection keeps the data that it has received, so the application can still read it.
            let _ = match socket {
                SocketId::Tcp(handle) => {
                    state.stack.tcp_configure(now, handle, |connection| connection.abort(now))
                }
                SocketId::Listen(handle) => state.stack.tcp_listen_close(now, handle),
                SocketId::Udp(_) => Ok(()),
            };
        }
        state.stack.tcp_abort_orphans(now);
        for _ in 0..FINAL_TURNS {
            match state.stack.turn_on_links(&mut *links, budget, now) {
                Ok(turn) if turn.more => {}
                _ => break,
            }
        }
    }
}

/// Requests all shards except `own` to stop.
fn stop_other_shards(own: &Arc<Shared>, shards: &[Arc<Shared>], why: End) {
    shards
        .iter()
        .filter(|shard| !Arc::ptr_eq(shard, own))
        .for_each(|shard| shard.request_stop(why));
}

/// A guard that is dropped when the reactor ends. If the reactor has panicked, it wakes all
/// application threads, which would otherwise wait for ever, and stops the other shards.
struct PanicGuard<'a> {
    shared: &'a Arc<Shared>,
    shards: &'a [Arc<Shared>],
}

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.shared.mark_ended(End::Panicked);
            stop_other_shards(self.shared, self.shards, End::Panicked);
        }
    }
}
