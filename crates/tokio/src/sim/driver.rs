//! Virtual time: the order of tasks, packets and timers.
//!
//! tokio calls [`Driver::handle_idle`] before it parks its thread, that is when all tasks wait. The
//! driver then processes the events of hosts and paths in their order, and advances the clock,
//! until a task is woken.
//!
//! tokio's timers expire at whole milliseconds. Between two milliseconds only hosts and paths have
//! events, so the driver advances the clock exactly to the next event ([`tokio::time::advance`]).
//! At each whole millisecond, tokio's own timers run first. Longer waits are left to tokio, because
//! only tokio knows when its next timer expires. To be woken in time, a task
//! ([`Driver::keep_alarm`]) sleeps until the whole millisecond at or before the next event.

use super::Failure;
use super::world::World;
use linerate_units::{Duration, Instant};
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time;

const MILLISECOND: u64 = 1_000_000;

thread_local! {
    /// Whether this thread runs a network. Only then is tokio's clock paused, and read as virtual
    /// time. On other threads, it shows the real time.
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// The state that all hosts of a network and its driver share: the clock, the names, and the hosts
/// that need a turn.
#[derive(Debug)]
pub(super) struct Clockwork {
    state: Mutex<State>,
}

impl Default for Clockwork {
    fn default() -> Self {
        // RFC 6761 §6.3 reserves the name `localhost` for the loopback addresses.
        let localhost = vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
        let names = [("localhost".to_owned(), localhost)].into();
        Self { state: Mutex::new(State { names, ..State::default() }) }
    }
}

#[derive(Debug, Default)]
struct State {
    /// The numbers of the hosts that need a turn.
    due: Vec<usize>,
    /// The start of the current run on tokio's clock, and the virtual time at that moment; `None`
    /// between runs.
    started: Option<(tokio::time::Instant, Instant)>,
    /// The latest virtual time that was read. Later reads return at least this time, so that
    /// virtual time never goes backwards.
    now: Instant,
    failure: Option<Failure>,
    main: Option<Waker>,
    names: BTreeMap<String, Vec<IpAddr>>,
}

impl State {
    fn now(&mut self) -> Instant {
        if let Some((start, at)) = self.started.filter(|_| RUNS.get()) {
            let elapsed = tokio::time::Instant::now().saturating_duration_since(start);
            self.now = self.now.max(at + Duration::from(elapsed));
        }
        self.now
    }
}

/// A guard that lets virtual time run. When it is dropped, virtual time stops until the next run.
#[derive(Debug)]
pub(super) struct Running<'a>(&'a Clockwork);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        RUNS.set(false);
        let mut state = self.0.state.lock();
        state.started = None;
        state.main = None;
    }
}

impl Clockwork {
    /// Starts virtual time until the guard is dropped. Must be called inside the tokio runtime of
    /// the run.
    pub(super) fn start(&self) -> Running<'_> {
        let mut state = self.state.lock();
        state.started = Some((tokio::time::Instant::now(), state.now));
        RUNS.set(true);
        Running(self)
    }

    /// Returns the start of the current run and the current time, both in virtual time; `None`
    /// between runs.
    fn run(&self) -> Option<(Instant, Instant)> {
        let mut state = self.state.lock();
        let (_, began) = state.started?;
        Some((began, state.now()))
    }

    pub(super) fn is_running(&self) -> bool {
        self.state.lock().started.is_some()
    }

    /// Returns the virtual time.
    pub(super) fn now(&self) -> Instant {
        self.state.lock().now()
    }

    /// Assigns addresses to the name of a host. The reserved name `localhost` keeps its addresses.
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

    /// Moves the numbers of the hosts that need a turn into `due`, which must be empty.
    pub(super) fn take_due(&self, due: &mut Vec<usize>) {
        due.append(&mut self.state.lock().due);
    }

    /// Ends the run: [`Clockwork::poll_failure`] returns `failure`, and the run panics with it. The
    /// failure can be a panic that was caught in a task.
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
                match &mut state.main {
                    Some(main) => main.clone_from(context.waker()),
                    main @ None => *main = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

/// The driver, as the sockets of one host see it. It provides virtual time and the addresses of
/// names, and marks the host as due for a turn.
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

/// The driver of a run: delivers packets and advances virtual time.
#[derive(Debug)]
pub(super) struct Driver {
    world: Arc<Mutex<World>>,
    clockwork: Arc<Clockwork>,
    limit: Instant,
    alarm: Mutex<Alarm>,
    /// A scratch buffer: the tasks to wake.
    woken: Mutex<Vec<Waker>>,
}

/// The timer that wakes the driver before the next event of a host or a path
/// ([`Driver::keep_alarm`]).
#[derive(Debug)]
struct Alarm {
    /// The time at which the timer expires, or `NEVER`. It is a whole number of milliseconds after
    /// the start of the run.
    at: Instant,
    task: Option<Waker>,
}

impl Driver {
    pub(super) fn new(
        world: Arc<Mutex<World>>,
        clockwork: Arc<Clockwork>,
        limit: time::Duration,
    ) -> Self {
        let limit = Instant::ZERO + Duration::from(limit);
        let alarm = Mutex::new(Alarm { at: Instant::NEVER, task: None });
        Self { world, clockwork, limit, alarm, woken: Mutex::default() }
    }

    /// Processes events and advances virtual time. tokio calls this before the thread parks, when
    /// all tasks wait. Returns when a task is woken, or when a timer of tokio may expire before the
    /// next event of a host or a path.
    pub(super) fn handle_idle(&self) {
        let Some((began, mut now)) = self.clockwork.run() else { return };
        let mut woken = self.woken.lock();
        loop {
            // This step calls the packet rules, which are functions of the test and may panic. A
            // panic is caught, because it must not unwind through the runtime.
            let stepped = catch_unwind(AssertUnwindSafe(|| {
                let mut world = self.world.lock();
                (world.step(now, &mut woken), world.next_event())
            }));
            let (has_acted, next) = match stepped {
                Ok(stepped) => stepped,
                Err(panic) => {
                    self.world.lock().end();
                    return self.clockwork.fail(panic);
                }
            };
            if !woken.is_empty() {
                woken.drain(..).for_each(Waker::wake);
                return;
            }
            if has_acted {
                continue;
            }
            if now >= self.limit {
                return self.fail();
            }
            let next = next.min(self.limit).max(now);
            // Tokio's timers expire only at whole milliseconds since the start of the run
            // (`began`). If the next event comes before such a time (`boundary`), no timer can
            // expire first. The clock is then moved directly to the event.
            let into = now.since(began).as_nanos() % MILLISECOND;
            let boundary = now + Duration::from_nanos(MILLISECOND - into);
            if next < boundary {
                advance(next.since(now));
                now = next;
            } else if into > 0 {
                // The next event comes at the next whole millisecond or later, so a timer of tokio
                // may expire before it. The clock is moved to that millisecond. From there, tokio
                // itself waits, and advances its clock by whole milliseconds.
                return advance(boundary.since(now));
            } else {
                let whole = next.since(began).as_nanos() / MILLISECOND * MILLISECOND;
                return self.set_alarm(began + Duration::from_nanos(whole));
            }
        }
    }

    /// Sets the alarm to `at`, unless it is already set to an earlier time.
    fn set_alarm(&self, at: Instant) {
        let mut alarm = self.alarm.lock();
        if at < alarm.at {
            alarm.at = at;
            if let Some(task) = &alarm.task {
                task.wake_by_ref();
            }
        }
    }

    fn fail(&self) {
        let (netstat, limit) = (self.world.lock().netstat(), self.limit);
        self.clockwork.fail(Box::new(format!(
            "the run did not finish within its virtual time limit of {limit:?}: its tasks wait for \
             something that does not come\n{netstat}"
        )));
    }

    /// Sleeps until the alarm, and after that until the next alarm. When all tasks wait, tokio
    /// advances its paused clock to its earliest timer, which is the alarm or a timer of another
    /// task.
    pub(super) async fn keep_alarm(self: Arc<Self>) {
        let Some((start, began)) = self.clockwork.state.lock().started else { return };
        let mut sleep = pin!(tokio::time::sleep_until(start));
        let mut set = Instant::NEVER;
        poll_fn(|context| {
            let mut alarm = self.alarm.lock();
            match &mut alarm.task {
                Some(task) => task.clone_from(context.waker()),
                task @ None => *task = Some(context.waker().clone()),
            }
            if alarm.at != set {
                set = alarm.at;
                sleep.as_mut().reset(start + set.since(began).into());
            }
            if set != Instant::NEVER && sleep.as_mut().poll(context).is_ready() {
                (alarm.at, set) = (Instant::NEVER, Instant::NEVER);
            }
            Poll::<()>::Pending
        })
        .await;
    }
}

/// Advances tokio's clock by `span`. The future of tokio advances the clock at its first poll. Its
/// further polls only let other tasks run, and none can run here. So the future is polled in a loop
/// until it is ready.
fn advance(span: Duration) {
    let mut advance = pin!(tokio::time::advance(span.into()));
    let mut context = Context::from_waker(Waker::noop());
    while advance.as_mut().poll(&mut context).is_pending() {}
}
