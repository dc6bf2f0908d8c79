//! The task that drives a host on real links: receive frames, run timers, transmit frames, and
//! wait for the links, the sockets or the next deadline.
//!
//! tokio uses edge-triggered epoll, which reports each change of readiness only once. The driver
//! clears readiness before it drains the link, so that a frame that arrives meanwhile is reported.
//! Frames that a turn leaves in the link are not reported again, so another turn follows at once.

use crate::error::End;
use crate::host::{State, turn};
use linerate_link::{MonotonicClock, Readiness};
use linerate_stack::{Budget, InterfaceLink, Link};
use linerate_units::{Clock, Instant};
use parking_lot::Mutex;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::future::poll_fn;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};
use tokio::sync::Notify;
use tokio::task::yield_now;

/// Maximum number of turns in which a stopping host sends its resets.
const FINAL_TURNS: usize = 64;

/// The requests of the sockets to the driver.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    wanted: Notify,
    is_abandoned: AtomicBool,
}

impl Signals {
    /// Requests a turn.
    pub(crate) fn wake(&self) {
        self.wanted.notify_one();
    }

    /// Reports that no `Net` and no socket is left. The driver ends when closed sockets have sent
    /// their data.
    pub(crate) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
        self.wake();
    }
}

/// The driver of one host.
pub(crate) struct Reactor<L> {
    state: Arc<Mutex<State>>,
    links: Vec<InterfaceLink<L>>,
    /// The descriptors of each link.
    descriptors: Vec<Descriptors>,
    signals: Arc<Signals>,
    budget: Budget,
    timer: Timer,
}

/// The descriptors of a link, registered with the runtime, so that it can wait for them.
struct Descriptors {
    readiness: AsyncFd<OwnedFd>,
    /// The descriptor that is readable when another thread has put frames into the link, if the
    /// link has such a descriptor.
    wakeup: Option<AsyncFd<OwnedFd>>,
}

impl Descriptors {
    fn of(link: &impl Readiness) -> io::Result<Self> {
        let readiness = register(link.fd(), Interest::READABLE | Interest::WRITABLE)?;
        let wakeup = link.wakeup_fd().map(|fd| register(fd, Interest::READABLE)).transpose()?;
        Ok(Self { readiness, wakeup })
    }

    /// Has one of the descriptors signalled an event of the link? Room to transmit counts only if
    /// `wants_room` is set. If there is no event, the task is registered to be woken.
    fn poll_signalled(&self, context: &mut Context<'_>, wants_room: bool) -> io::Result<bool> {
        let mut is_signalled = is_ready(self.readiness.poll_read_ready(context))?;
        if wants_room {
            is_signalled |= is_ready(self.readiness.poll_write_ready(context))?;
        }
        if let Some(wakeup) = &self.wakeup {
            is_signalled |= is_ready(wakeup.poll_read_ready(context))?;
        }
        Ok(is_signalled)
    }
}

/// The result of a turn, and the state of the host after the turn.
struct Step {
    more: bool,
    next: Instant,
    has_ended: bool,
    has_no_orphans: bool,
}

impl<L: Link + Readiness> Reactor<L> {
    pub(crate) fn new(
        state: Arc<Mutex<State>>,
        links: Vec<InterfaceLink<L>>,
        signals: Arc<Signals>,
        budget: Budget,
    ) -> io::Result<Self> {
        let descriptors = links.iter().map(Descriptors::of).collect::<io::Result<_>>()?;
        Ok(Self { state, links, descriptors, signals, budget, timer: Timer::new()? })
    }

    /// Drives the host until it has stopped, or until no `Net` and no socket is left and all closed
    /// sockets have sent their data.
    pub(crate) async fn run(mut self) {
        let mut due = Vec::new();
        loop {
            let step = self.step(&mut due);
            due.drain(..).for_each(Waker::wake);
            if step.has_ended {
                self.send_resets();
                return;
            }
            if step.more {
                // The host has more work, so its next turn follows without waiting. Other tasks of
                // this thread can run before that turn.
                yield_now().await;
                continue;
            }
            if self.signals.is_abandoned.load(Ordering::Acquire) && step.has_no_orphans {
                return;
            }
            if self.wait(step.next).await.is_err() {
                // The runtime is shutting down. Dropping the driver reports this to the sockets.
                return;
            }
        }
    }

    fn step(&mut self, due: &mut Vec<Waker>) -> Step {
        let Self { state, links, budget, .. } = self;
        turn(state, due, |state| {
            let now = MonotonicClock.now();
            match state.stack.turn_on_links(links, *budget, now) {
                Ok(turn) => state.last = turn,
                Err(error) => state.stop(End::Link(error), now),
            }
            Step {
                more: state.last.more,
                next: state.last.next,
                has_ended: state.end.is_some(),
                has_no_orphans: state.has_no_orphans(),
            }
        })
    }

    /// Sends the resets of a stopped host as far as the links have room for them.
    fn send_resets(&mut self) {
        let mut state = self.state.lock();
        for _ in 0..FINAL_TURNS {
            let now = MonotonicClock.now();
            match state.stack.turn_on_links(&mut self.links, self.budget, now) {
                Ok(turn) if turn.more => {}
                _ => break,
            }
        }
    }

    /// Waits until a link has frames or room, a socket requests a turn, or the time `next` has
    /// come.
    async fn wait(&mut self, next: Instant) -> io::Result<()> {
        if let Some(ready) = self.links.iter_mut().position(|link| !link.prepare_to_sleep()) {
            self.links[..ready].iter_mut().for_each(|link| link.awake(false));
            yield_now().await;
            return Ok(());
        }
        let deadline = self.links.iter().fold(next, |next, link| next.min(link.next_deadline()));
        self.timer.arm(deadline)?;
        // A link need not be `Sync`, so the future below must not contain references to links.
        // Instead, the future uses two flags for each link: whether the link waits for room, and
        // whether it has signalled an event.
        let mut states: Vec<_> = self.links.iter().map(|link| (link.wants_room(), false)).collect();
        let Self { descriptors, signals, timer, .. } = self;
        let mut wanted = pin!(signals.wanted.notified());
        let outcome = poll_fn(|context| {
            let mut is_signalled = false;
            for (descriptors, (wants_room, signalled)) in descriptors.iter().zip(&mut states) {
                *signalled |= descriptors.poll_signalled(context, *wants_room)?;
                is_signalled |= *signalled;
            }
            let is_due = timer.poll_expired(context)? | wanted.as_mut().poll(context).is_ready();
            if is_signalled || is_due { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await;
        for (link, (_, signalled)) in self.links.iter_mut().zip(states) {
            link.awake(signalled);
        }
        outcome
    }
}

impl<L> Drop for Reactor<L> {
    fn drop(&mut self) {
        let mut due = Vec::new();
        turn(&self.state, &mut due, |state| {
            if thread::panicking() {
                state.mark_ended(End::Panicked);
            } else {
                state.stop(End::Runtime, MonotonicClock.now());
            }
        });
        due.into_iter().for_each(Waker::wake);
    }
}

/// Registers a duplicate of a descriptor with the runtime. The link keeps the original.
fn register(fd: BorrowedFd<'_>, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    into_async(fd.try_clone_to_owned()?, interest)
}

#[allow(
    deprecated,
    reason = "the replacement is unsafe, because of types that are no descriptors; `OwnedFd` is one"
)]
fn into_async(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, interest)
}

/// Is a descriptor ready? If so, clears this readiness, so that the next call waits for a new
/// change.
fn is_ready<T: std::os::fd::AsRawFd>(
    ready: Poll<io::Result<AsyncFdReadyGuard<'_, T>>>,
) -> io::Result<bool> {
    match ready {
        Poll::Ready(guard) => {
            guard?.clear_ready();
            Ok(true)
        }
        Poll::Pending => Ok(false),
    }
}

/// A timer with a resolution of nanoseconds. The timers of tokio expire at whole milliseconds,
/// which is too coarse for paced segments.
#[derive(Debug)]
struct Timer {
    event: AsyncFd<OwnedFd>,
    /// The time at which the timer expires. It can be earlier than the next deadline: if a deadline
    /// is postponed, the timer stays as it is, because setting it is a system call.
    expires: Instant,
}

impl Timer {
    fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let event = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { event: into_async(event, Interest::READABLE)?, expires: Instant::NEVER })
    }

    /// Ensures that the timer expires at `deadline` at the latest. If an earlier time is set, it
    /// stays.
    fn arm(&mut self, deadline: Instant) -> io::Result<()> {
        if deadline >= self.expires {
            return Ok(());
        }
        // A duration of zero would disarm the timer. If the deadline has passed, the timer
        // therefore gets one nanosecond.
        let nanos = deadline.since(MonotonicClock.now()).as_nanos().max(1);
        let value = Timespec {
            tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(self.event.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        self.expires = deadline;
        Ok(())
    }

    fn poll_expired(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let expired = is_ready(self.event.poll_read_ready(context))?;
        if expired {
            self.expires = Instant::NEVER;
        }
        Ok(expired)
    }
}
