//! Virtual time: the order of tasks, packets and timers.
//!
//! The driver is a task that runs when no other task can run. tokio calls [`Clockwork::note_idle`]
//! before it parks its thread, that is when all tasks wait; this wakes the driver, which carries
//! packets. If there are no packets at this time, the driver advances the clock.
//!
//! tokio's timers expire at whole milliseconds. Between two of them only hosts and paths have
//! events, so the driver moves the clock itself ([`tokio::time::advance`]), exactly. Longer waits
//! are left to tokio, which knows the next timer: the driver sleeps until the millisecond before
//! its next event.

use super::Failure;
use super::world::World;
use linerate_units::{Duration, Instant};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time;
use tokio::runtime::Handle;

const MILLISECOND: u64 = 1_000_000;

/// The state that hosts and the driver share.
#[derive(Debug)]
pub(super) struct Clockwork {
    state: Mutex<State>,
}

impl Default for Clockwork {
    fn default() -> Self {
        // RFC 6761 §6.3 reserves this name for the loopback addresses.
        let localhost = vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
        let names = [("localhost".to_owned(), localhost)].into();
        Self { state: Mutex::new(State { names, ..State::default() }) }
    }
}

#[derive(Debug, Default)]
struct State {
    /// The hosts that want a turn.
    due: Vec<usize>,
    /// The driver, and whether it waits for the idle thread rather than for a host.
    driver: Option<Waker>,
    waits_for_idle: bool,
    /// Has the thread been idle since the driver began to wait?
    was_idle: bool,
    /// The start of the current run on tokio's clock, and the virtual time at that moment.
    started: Option<(tokio::time::Instant, Instant)>,
    /// The latest virtual time that was read.
    now: Instant,
    failure: Option<Failure>,
    main: Option<Waker>,
    names: BTreeMap<String, Vec<IpAddr>>,
}

impl Clockwork {
    /// Begins a run. Must be called in its runtime.
    pub(super) fn start(&self) {
        let mut state = self.state.lock();
        state.started = Some((tokio::time::Instant::now(), state.now));
    }

    /// Ends a run. Virtual time then stands still until the next run.
    pub(super) fn stop(&self) {
        let mut state = self.state.lock();
        state.started = None;
        state.driver = None;
        state.main = None;
    }

    pub(super) fn is_running(&self) -> bool {
        self.state.lock().started.is_some()
    }

    /// Returns the virtual time.
    pub(super) fn now(&self) -> Instant {
        let mut state = self.state.lock();
        // Without a runtime, tokio would read the real clock.
        if let Some((start, at)) = state.started.filter(|_| Handle::try_current().is_ok()) {
            let elapsed = tokio::time::Instant::now().saturating_duration_since(start);
            state.now = state.now.max(at + Duration::from(elapsed));
        }
        state.now
    }

    /// Adds the name of a host, unless it is reserved.
    pub(super) fn add_name(&self, name: &str, addresses: Vec<IpAddr>) {
        self.state.lock().names.entry(name.to_owned()).or_insert(addresses);
    }

    /// Requests a turn of a host.
    pub(super) fn mark_due(&self, host: usize) {
        let mut state = self.state.lock();
        if !state.due.contains(&host) {
            state.due.push(host);
        }
    }

    /// Removes and returns the hosts that want a turn.
    pub(super) fn take_due(&self) -> Vec<usize> {
        mem::take(&mut self.state.lock().due)
    }

    /// Called before the thread parks, when all tasks wait. Wakes the driver if it has to act now.
    pub(super) fn note_idle(&self) {
        let mut state = self.state.lock();
        if state.waits_for_idle || !state.due.is_empty() {
            state.was_idle = true;
            if let Some(driver) = state.driver.take() {
                drop(state);
                driver.wake();
            }
        }
    }

    /// Waits until the thread is idle, that is until each other task has run as far as it can. If
    /// `waits_for_idle` is false, the wait also ends when a host wants a turn.
    fn poll_idle(&self, context: &Context<'_>, waits_for_idle: bool) -> Poll<()> {
        let mut state = self.state.lock();
        if mem::take(&mut state.was_idle) {
            state.waits_for_idle = false;
            return Poll::Ready(());
        }
        state.waits_for_idle = waits_for_idle;
        state.driver = Some(context.waker().clone());
        Poll::Pending
    }

    /// Ends the run by a panic that was caught in a task.
    pub(super) fn fail(&self, failure: Failure) {
        let main = {
            let mut state = self.state.lock();
            state.failure.get_or_insert(failure);
            state.main.take()
        };
        main.into_iter().for_each(Waker::wake);
    }

    pub(super) fn poll_failure(&self, context: &Context<'_>) -> Poll<Failure> {
        let mut state = self.state.lock();
        match state.failure.take() {
            Some(failure) => Poll::Ready(failure),
            None => {
                state.main = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The driver of one host.
#[derive(Debug)]
pub(super) struct HostDriver {
    pub(super) clockwork: Arc<Clockwork>,
    pub(super) host: usize,
}

impl crate::host::Driver for HostDriver {
    fn now(&self) -> Instant {
        self.clockwork.now()
    }

    fn wake(&self) {
        self.clockwork.mark_due(self.host);
    }

    fn resolve(&self, name: &str) -> Vec<IpAddr> {
        self.clockwork.state.lock().names.get(name).cloned().unwrap_or_default()
    }
}

/// Carries packets and time until the run ends.
pub(super) async fn drive(
    world: Arc<Mutex<World>>,
    clockwork: Arc<Clockwork>,
    limit: time::Duration,
) {
    let limit = Instant::ZERO + Duration::from(limit);
    loop {
        poll_fn(|context| clockwork.poll_idle(context, true)).await;
        let now = clockwork.now();
        let mut woken = Vec::new();
        let has_acted = world.lock().step(now, &mut woken);
        woken.into_iter().for_each(Waker::wake);
        if has_acted {
            continue;
        }
        if now >= limit {
            let netstat = world.lock().netstat();
            clockwork.fail(Box::new(format!(
                "the run did not finish within its virtual time limit of {limit:?}: its tasks wait \
                 for something that does not come\n{netstat}"
            )));
            return;
        }
        let next = world.lock().next_event().min(limit).max(now);
        wait_until(next, now, &clockwork).await;
    }
}

/// Waits until `next` or until a task changes something. It may return earlier.
async fn wait_until(next: Instant, now: Instant, clockwork: &Clockwork) {
    let Some((start, at)) = clockwork.state.lock().started else { return };
    // In this run, tokio's timers expire at whole milliseconds after the start of the run.
    let into = now.since(at).as_nanos() % MILLISECOND;
    let boundary = now + Duration::from_nanos(MILLISECOND - into);
    if next < boundary {
        tokio::time::advance(next.since(now).into()).await;
    } else if into > 0 {
        // tokio advances its clock by whole milliseconds, so the clock is first moved to the
        // boundary of one.
        tokio::time::advance(boundary.since(now).into()).await;
    } else {
        let whole = next.since(at).as_nanos() / MILLISECOND * MILLISECOND;
        let mut sleep = pin!(tokio::time::sleep_until(start + time::Duration::from_nanos(whole)));
        poll_fn(|context| {
            if clockwork.poll_idle(context, false).is_ready() {
                return Poll::Ready(());
            }
            sleep.as_mut().poll(context)
        })
        .await;
    }
}
