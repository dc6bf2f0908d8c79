//! Waiting until the link has something, somebody rings the doorbell, or a deadline passes.

use crate::MonotonicClock;
use crate::bell::Bell;
use linerate_units::{Clock, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::hint::spin_loop;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use thiserror::Error;

/// What a link must tell before anybody can sleep on it.
pub trait Readiness {
    /// What to poll: readable when there is something to receive, or, for a link that says so itself,
    /// when [`prepare_to_sleep`](Self::prepare_to_sleep) would answer false.
    fn fd(&self) -> BorrowedFd<'_>;

    /// A second descriptor to poll, which is readable when there is something: of a link that others put
    /// frames into.
    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether the last call of `transmit` ended for want of room, so that it is worth waking up when
    /// [`fd`](Self::fd) becomes writable.
    fn wants_room(&self) -> bool {
        false
    }

    /// Whether there is something to receive or room where room was wanted, as far as the link knows
    /// without asking the system. False does not mean that there is nothing.
    fn is_ready(&mut self) -> bool {
        false
    }

    /// Called before a sleep. False says that there is something already, and that nobody may sleep;
    /// after true the link takes care that [`fd`](Self::fd) signals whatever comes from now on.
    fn prepare_to_sleep(&mut self) -> bool {
        !self.is_ready()
    }

    /// Called after a sleep that [`prepare_to_sleep`](Self::prepare_to_sleep) allowed; `signalled`
    /// says whether [`fd`](Self::fd) or
    /// [`bell`](Self::bell) ended it.
    fn awake(&mut self, signalled: bool) {
        let _ = signalled;
    }

    /// When the link has something to do by itself, such as a delayed frame that falls due.
    fn next_deadline(&self) -> Instant {
        Instant::NEVER
    }
}

/// The one who waits. Its [`Doorbell`] is how other threads say that they want something.
#[derive(Debug)]
pub struct Waiter {
    door: Arc<Door>,
    spins: u32,
}

impl Waiter {
    /// A waiter that goes to sleep at once when there is nothing.
    ///
    /// # Errors
    /// [`WaitError`] if the system grants no eventfd.
    pub fn new() -> Result<Self, WaitError> {
        let bell = Bell::new().map_err(|errno| WaitError { errno: errno.raw_os_error() })?;
        Ok(Self { door: Arc::new(Door { state: AtomicU8::new(AWAKE), bell }), spins: 0 })
    }

    /// Looks `rounds` times whether something has come, a few nanoseconds each, before it sleeps. Worth
    /// it where the other end is a thread on a core of its own, and a waste where cores are shared.
    #[must_use]
    pub fn with_spins(self, rounds: u32) -> Self {
        Self { spins: rounds, ..self }
    }

    /// What wakes this waiter.
    #[must_use]
    pub fn doorbell(&self) -> Doorbell {
        Doorbell { door: Arc::clone(&self.door) }
    }

    /// Waits until `link` has something, the doorbell rings, or `deadline` (of [`MonotonicClock`]) or
    /// the link's own deadline has passed. It may return for no reason, after a signal for example; a
    /// doorbell that rang since the last call ends it at once.
    ///
    /// # Errors
    /// [`WaitError`] if the system cannot poll.
    pub fn wait(
        &mut self,
        link: &mut impl Readiness,
        deadline: Instant,
    ) -> Result<Wake, WaitError> {
        self.spin(link);
        if !self.door.close() {
            return Ok(Wake { link: link.is_ready(), doorbell: true });
        }
        if !link.prepare_to_sleep() {
            return Ok(Wake { link: true, doorbell: self.door.open(false) });
        }
        let slept = self.sleep(link, deadline);
        let signalled = slept.unwrap_or_default();
        link.awake(signalled.link);
        let doorbell = self.door.open(signalled.doorbell);
        slept.map(|woken| Wake { link: woken.link, doorbell })
    }

    fn spin(&self, link: &mut impl Readiness) {
        for _ in 0..self.spins {
            if link.is_ready() || self.door.is_rung() {
                return;
            }
            spin_loop();
        }
    }

    /// Sleeps, and says who ended it.
    fn sleep(&self, link: &impl Readiness, deadline: Instant) -> Result<Wake, WaitError> {
        let deadline = deadline.min(link.next_deadline());
        let interest =
            if link.wants_room() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let door = self.door.bell.as_fd();
        // Without a bell the door takes its place, and is left out.
        let bell = link.bell();
        let mut fds = [
            PollFd::from_borrowed_fd(door, PollFlags::IN),
            PollFd::from_borrowed_fd(link.fd(), interest),
            PollFd::from_borrowed_fd(bell.unwrap_or(door), PollFlags::IN),
        ];
        let count = if bell.is_some() { 3 } else { 2 };
        match poll(&mut fds[..count], time_left(deadline).as_ref()) {
            Ok(_) => Ok(Wake {
                link: fds[1..count].iter().any(|fd| !fd.revents().is_empty()),
                doorbell: !fds[0].revents().is_empty(),
            }),
            Err(Errno::INTR) => Ok(Wake::default()),
            Err(errno) => Err(WaitError { errno: errno.raw_os_error() }),
        }
    }
}

/// The time until `deadline`, or `None` for one that never comes.
fn time_left(deadline: Instant) -> Option<Timespec> {
    if deadline == Instant::NEVER {
        return None;
    }
    let nanos = deadline.since(MonotonicClock.now()).as_nanos();
    let seconds = i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX);
    Some(Timespec { tv_sec: seconds, tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0) })
}

/// Why a wait ended. Neither means the deadline, or no reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// The link has something to receive, or room, or an error to report.
    pub link: bool,
    /// The doorbell rang, once or more often, since the last wait.
    pub doorbell: bool,
}

/// The system cannot make or poll descriptors: the process has too many of them, or the machine is
/// out of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the system grants no wake-up descriptor (error {errno}): close files, or raise the limit `ulimit -n`"
)]
pub struct WaitError {
    /// The error number of the system.
    pub errno: i32,
}

/// How any thread tells the one that waits that there is something for it. Rings between two waits
/// are one; ringing for somebody who is awake costs one atomic operation and no system call.
#[derive(Clone, Debug)]
pub struct Doorbell {
    door: Arc<Door>,
}

impl Doorbell {
    /// Wakes the waiter, or keeps it from falling asleep. What was written before is visible to it when
    /// [`Waiter::wait`] returns with `doorbell`.
    pub fn ring(&self) {
        self.door.ring();
    }
}

/// The waiter is at work, and looks at the state before it sleeps.
const AWAKE: u8 = 0;
/// Somebody rang since the waiter last looked.
const RUNG: u8 = 1;
/// The waiter polls the bell.
const ASLEEP: u8 = 2;

/// What the waiter and its doorbells share. Every change of `state` is one atomic exchange, so the
/// changes have one order: a ring comes either before the waiter's `AWAKE → ASLEEP`, which then fails,
/// or after it, and finds `ASLEEP`.
#[derive(Debug)]
struct Door {
    state: AtomicU8,
    bell: Bell,
}

impl Door {
    fn ring(&self) {
        // Release: what the ringer wrote; Acquire is not needed, it reads nothing of the waiter's.
        if self.state.swap(RUNG, Ordering::Release) == ASLEEP {
            self.bell.ring();
        }
    }

    fn is_rung(&self) -> bool {
        self.state.load(Ordering::Relaxed) == RUNG
    }

    /// Goes from awake to asleep; false, and awake, if somebody rang.
    fn close(&self) -> bool {
        let sleeps = self
            .state
            .compare_exchange(AWAKE, ASLEEP, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if !sleeps {
            self.state.swap(AWAKE, Ordering::Acquire);
        }
        sleeps
    }

    /// Awake again: whether somebody rang. One who rang just now may strike the bell after it was
    /// silenced; the next sleep then ends for no reason.
    fn open(&self, signalled: bool) -> bool {
        if signalled {
            self.bell.silence();
        }
        self.state.swap(AWAKE, Ordering::Acquire) == RUNG
    }
}

/// For a [`Waiter`] that has no link, or whose link needs no waiting.
#[derive(Debug)]
pub struct NoLink {
    never: Bell,
}

impl NoLink {
    /// Something that never has anything.
    ///
    /// # Errors
    /// [`WaitError`] if the system grants no eventfd.
    pub fn new() -> Result<Self, WaitError> {
        let never = Bell::new().map_err(|errno| WaitError { errno: errno.raw_os_error() })?;
        Ok(Self { never })
    }
}

impl Readiness for NoLink {
    fn fd(&self) -> BorrowedFd<'_> {
        self.never.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Duration;
    use std::sync::atomic::AtomicU32;
    use std::thread;

    #[test]
    fn a_doorbell_that_rang_before_the_wait_ends_it_at_once_and_only_once() {
        let mut waiter = Waiter::new().unwrap();
        let mut link = NoLink::new().unwrap();
        waiter.doorbell().ring();
        waiter.doorbell().ring();
        assert_eq!(
            waiter.wait(&mut link, Instant::NEVER),
            Ok(Wake { link: false, doorbell: true })
        );
        assert_eq!(waiter.wait(&mut link, Instant::ZERO), Ok(Wake::default()));
    }

    /// Does whoever polls the door's bell wake up?
    fn rings(waiter: &Waiter) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(waiter.door.bell.as_fd(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    }

    #[test]
    fn the_bell_is_struck_for_one_who_sleeps_and_for_nobody_else() {
        let waiter = Waiter::new().unwrap();
        waiter.doorbell().ring();
        assert!(
            !rings(&waiter) && !waiter.door.close(),
            "it was awake, and does not sleep over it"
        );
        assert!(waiter.door.close());
        waiter.doorbell().ring();
        assert!(rings(&waiter));
        assert!(waiter.door.open(true) && !rings(&waiter));
    }

    /// A link at which somebody rings when the waiter is about to sleep.
    struct RungLate(NoLink, Doorbell);

    impl Readiness for RungLate {
        fn fd(&self) -> BorrowedFd<'_> {
            self.0.fd()
        }

        fn prepare_to_sleep(&mut self) -> bool {
            self.1.ring();
            true
        }
    }

    #[test]
    fn one_ring_ends_a_sleep_which_is_no_word_of_the_link_and_is_not_heard_again() {
        let mut waiter = Waiter::new().unwrap();
        let mut link = RungLate(NoLink::new().unwrap(), waiter.doorbell());
        assert_eq!(
            waiter.wait(&mut link, Instant::NEVER),
            Ok(Wake { link: false, doorbell: true })
        );
        assert!(!rings(&waiter));
        assert_eq!(waiter.wait(&mut link.0, Instant::ZERO), Ok(Wake::default()));
    }

    #[test]
    fn who_was_rung_for_is_told_of_the_link_too() {
        let mut waiter = Waiter::new().unwrap();
        let mut link =
            Busy { silent: NoLink::new().unwrap(), ready: true, deadline: Instant::NEVER };
        waiter.doorbell().ring();
        assert_eq!(waiter.wait(&mut link, Instant::NEVER), Ok(Wake { link: true, doorbell: true }));
    }

    #[test]
    fn a_deadline_is_as_far_away_as_it_is_and_one_that_never_comes_is_none() {
        let left = time_left(MonotonicClock.now() + Duration::from_secs(1_000_000)).unwrap();
        assert!((900_000..=1_000_000).contains(&left.tv_sec), "{left:?}");
        let passed = time_left(Instant::ZERO).unwrap();
        assert_eq!((passed.tv_sec, passed.tv_nsec), (0, 0));
        assert!(time_left(Instant::NEVER).is_none());
    }

    #[test]
    fn the_deadline_ends_the_wait_and_not_before_it_has_passed() {
        let deadline = MonotonicClock.now() + Duration::from_millis(2);
        let mut waiter = Waiter::new().unwrap().with_spins(3);
        let mut link = NoLink::new().unwrap();
        assert_eq!(waiter.wait(&mut link, deadline), Ok(Wake::default()));
        assert!(MonotonicClock.now() >= deadline);
    }

    #[test]
    fn a_waiter_sees_the_work_of_whoever_rings_however_the_threads_interleave() {
        const RINGS: u32 = 8_000;
        let mut waiter = Waiter::new().unwrap();
        let mut link = NoLink::new().unwrap();
        let work = Arc::new(AtomicU32::new(0));
        let ringers: Vec<_> = (0..2)
            .map(|_| {
                let (doorbell, work) = (waiter.doorbell(), Arc::clone(&work));
                thread::spawn(move || {
                    for _ in 0..RINGS / 2 {
                        work.fetch_add(1, Ordering::Relaxed);
                        doorbell.ring();
                    }
                })
            })
            .collect();
        while work.load(Ordering::Relaxed) < RINGS {
            waiter.wait(&mut link, Instant::NEVER).unwrap();
        }
        for ringer in ringers {
            ringer.join().unwrap();
        }
    }

    /// A link with something in hand, or with work that falls due.
    struct Busy {
        silent: NoLink,
        ready: bool,
        deadline: Instant,
    }

    impl Readiness for Busy {
        fn fd(&self) -> BorrowedFd<'_> {
            self.silent.fd()
        }
        fn is_ready(&mut self) -> bool {
            self.ready
        }
        fn next_deadline(&self) -> Instant {
            self.deadline
        }
    }

    #[test]
    fn a_link_that_has_something_or_something_due_keeps_the_waiter_from_sleeping() {
        let mut waiter = Waiter::new().unwrap();
        let silent = NoLink::new().unwrap();
        let mut link = Busy { silent, ready: true, deadline: Instant::NEVER };
        assert_eq!(
            waiter.wait(&mut link, Instant::NEVER),
            Ok(Wake { link: true, doorbell: false })
        );
        link.ready = false;
        link.deadline = Instant::ZERO;
        assert_eq!(waiter.wait(&mut link, Instant::NEVER), Ok(Wake::default()));
    }
}
