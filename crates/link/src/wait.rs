//! Waiting for a link, a doorbell, or a deadline.

use crate::MonotonicClock;
use crate::eventfd::Eventfd;
use linerate_stack::InterfaceLink;
use linerate_units::{Clock, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::hint::spin_loop;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use thiserror::Error;

/// A link for which a [`Waiter`] can wait.
///
/// No method has a default, so a wrapper around another link must call the methods of that link in
/// all of them. If a wrapper left one out, its user could sleep while frames wait in the inner
/// link.
///
/// Some links need none of these methods except [`fd`](Self::fd), because this descriptor signals
/// everything. In such a link, [`wakeup_fd`](Self::wakeup_fd) returns `None`, and
/// [`prepare_to_sleep`](Self::prepare_to_sleep) returns true. [`wants_room`](Self::wants_room) and
/// [`is_ready`](Self::is_ready) return false, [`awake`](Self::awake) does nothing, and
/// [`next_deadline`](Self::next_deadline) returns [`Instant::NEVER`].
pub trait Readiness {
    /// Returns the descriptor to poll. It is readable if there is something to receive. It may be
    /// an event that the peer sets. In that case, it becomes readable only after
    /// [`prepare_to_sleep`](Self::prepare_to_sleep) has returned true, and before
    /// [`awake`](Self::awake).
    fn fd(&self) -> BorrowedFd<'_>;

    /// Returns a second descriptor to poll, or `None` if the link has only one. It is readable when
    /// another thread, or another queue of the device, has frames for this link.
    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Returns whether the most recent call of `transmit` ended for lack of room. If so, the caller
    /// also polls [`fd`](Self::fd) for writing, to be woken when there is room.
    fn wants_room(&self) -> bool;

    /// Returns true if the link can tell, without a system call, that calling it is useful now:
    /// there is something to receive, an error to report, or room again after a `transmit` that
    /// ended for lack of room. Even after false, a call may receive frames or find room.
    fn is_ready(&mut self) -> bool;

    /// Prepares the link for a sleep of the caller. Returns false if there is already a reason to
    /// call the link, as for [`is_ready`](Self::is_ready). The caller must not sleep in that case.
    /// After true, the descriptors signal everything that happens from then on.
    fn prepare_to_sleep(&mut self) -> bool;

    /// Ends a sleep that [`prepare_to_sleep`](Self::prepare_to_sleep) has permitted. `signalled`
    /// tells whether a descriptor of this link was signalled.
    fn awake(&mut self, signalled: bool);

    /// Returns the time at which the link must be called at the latest, even if no descriptor is
    /// signalled. For example, a delayed frame is then due.
    fn next_deadline(&self) -> Instant;
}

/// Implements the methods of [`Readiness`] for a wrapper. Each calls the method of the same name of
/// the inner link, which is the field `link`.
macro_rules! forward_readiness {
    () => {
        fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
            self.link.fd()
        }

        fn wakeup_fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
            self.link.wakeup_fd()
        }

        fn wants_room(&self) -> bool {
            self.link.wants_room()
        }

        fn is_ready(&mut self) -> bool {
            self.link.is_ready()
        }

        fn prepare_to_sleep(&mut self) -> bool {
            self.link.prepare_to_sleep()
        }

        fn awake(&mut self, signalled: bool) {
            self.link.awake(signalled);
        }

        fn next_deadline(&self) -> linerate_units::Instant {
            self.link.next_deadline()
        }
    };
}
pub(crate) use forward_readiness;

/// A waiter, with which a thread waits for a link and for a [`Doorbell`] at the same time.
#[derive(Debug)]
pub struct Waiter {
    shared: Arc<SharedState>,
    spins: u32,
}

impl Waiter {
    /// Creates a waiter. It goes to sleep at once if nothing is ready, unless
    /// [`with_spins`](Self::with_spins) changes that.
    ///
    /// # Errors
    /// [`WaitError`] if the system cannot create an eventfd.
    pub fn new() -> Result<Self, WaitError> {
        let event = Eventfd::new().map_err(|errno| WaitError { errno: errno.raw_os_error() })?;
        Ok(Self { shared: Arc::new(SharedState { state: AtomicU8::new(AWAKE), event }), spins: 0 })
    }

    /// Makes the waiter check up to `rounds` times whether something is ready before it sleeps.
    /// Each check takes a few nanoseconds. This is worthwhile if the peer is a thread on another
    /// CPU. It is wasteful if the two threads share a CPU.
    #[must_use]
    pub fn with_spins(self, rounds: u32) -> Self {
        Self { spins: rounds, ..self }
    }

    /// Returns a doorbell that wakes this waiter.
    #[must_use]
    pub fn doorbell(&self) -> Doorbell {
        Doorbell { shared: Arc::clone(&self.shared) }
    }

    /// Waits until `link` is ready, the doorbell rings, or a deadline has passed. There are two
    /// deadlines: that of the link, and `deadline`, a time of [`MonotonicClock`]. Returns at once
    /// if the doorbell has rung since the previous call. Can also return without a reason, for
    /// example after a signal.
    ///
    /// # Errors
    /// [`WaitError`] if the system cannot poll.
    pub fn wait(
        &mut self,
        link: &mut impl Readiness,
        deadline: Instant,
    ) -> Result<Wake, WaitError> {
        self.wait_for_any(std::slice::from_mut(link), deadline)
    }

    /// Waits as [`wait`](Self::wait) does, but until any of several links is ready. Each link's
    /// deadline ends the wait as well.
    ///
    /// # Errors
    /// [`WaitError`] if the system cannot poll.
    pub fn wait_for_any(
        &mut self,
        links: &mut [impl Readiness],
        deadline: Instant,
    ) -> Result<Wake, WaitError> {
        self.spin(links);
        if !self.shared.fall_asleep() {
            return Ok(Wake { link: is_any_ready(links), doorbell: true });
        }
        if let Some(ready) = links.iter_mut().position(|link| !link.prepare_to_sleep()) {
            links[..ready].iter_mut().for_each(|link| link.awake(false));
            return Ok(Wake { link: true, doorbell: self.shared.wake_up(false) });
        }
        let slept = self.sleep(links, deadline);
        let signalled = slept.as_ref().ok();
        for (index, link) in links.iter_mut().enumerate() {
            link.awake(signalled.is_some_and(|signalled| signalled.links[index]));
        }
        let doorbell = self.shared.wake_up(signalled.is_some_and(|signalled| signalled.doorbell));
        slept.map(|woken| Wake { link: woken.links.contains(&true), doorbell })
    }

    fn spin(&self, links: &mut [impl Readiness]) {
        for _ in 0..self.spins {
            if is_any_ready(links) || self.shared.is_rung() {
                return;
            }
            spin_loop();
        }
    }

    /// Sleeps until an event or the deadline. Returns the reasons why the sleep ended.
    fn sleep(&self, links: &[impl Readiness], deadline: Instant) -> Result<Signalled, WaitError> {
        let deadline = links.iter().fold(deadline, |next, link| next.min(link.next_deadline()));
        // The doorbell's descriptor comes first, and then the one or two descriptors of each link.
        let mut fds = vec![PollFd::from_borrowed_fd(self.shared.event.as_fd(), PollFlags::IN)];
        for link in links {
            let room = if link.wants_room() { PollFlags::OUT } else { PollFlags::empty() };
            fds.push(PollFd::from_borrowed_fd(link.fd(), PollFlags::IN | room));
            let second = link.wakeup_fd();
            fds.extend(second.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        }
        let is_signalled = |fd: &PollFd<'_>| !fd.revents().is_empty();
        match poll(&mut fds, time_left(deadline).as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => fds.iter_mut().for_each(PollFd::clear_revents),
            Err(errno) => return Err(WaitError { errno: errno.raw_os_error() }),
        }
        let mut of_links = fds[1..].iter();
        let links = links.iter().map(|link| {
            let count = if link.wakeup_fd().is_some() { 2 } else { 1 };
            of_links.by_ref().take(count).filter(|fd| is_signalled(fd)).count() > 0
        });
        Ok(Signalled { doorbell: is_signalled(&fds[0]), links: links.collect() })
    }
}

/// The reasons why a sleep ended.
#[derive(Debug)]
struct Signalled {
    doorbell: bool,
    /// For each link, in the order of the links, whether one of its descriptors was signalled.
    links: Vec<bool>,
}

/// Is one of the links ready? Calls all links, even if the first is ready.
fn is_any_ready(links: &mut [impl Readiness]) -> bool {
    links.iter_mut().fold(false, |ready, link| ready | link.is_ready())
}

/// Implements [`Readiness`] for one of the links of a host with several interfaces, by the methods
/// of the inner link.
impl<L: Readiness> Readiness for InterfaceLink<L> {
    forward_readiness!();
}

/// Returns the time until `deadline`, or `None` if the deadline is [`Instant::NEVER`].
fn time_left(deadline: Instant) -> Option<Timespec> {
    if deadline == Instant::NEVER {
        return None;
    }
    let nanos = deadline.since(MonotonicClock.now()).as_nanos();
    let seconds = i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX);
    Some(Timespec { tv_sec: seconds, tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0) })
}

/// The reason why a wait ended. Both fields are false if a deadline has passed, or if the wait
/// ended spuriously.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// Whether the link has something to receive, room to send, or an error to report.
    pub link: bool,
    /// Whether the doorbell has rung since the previous wait.
    pub doorbell: bool,
}

/// The error for a descriptor that the system cannot create, or for a failed poll. The process has
/// too many descriptors open, or memory is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the system has no wake-up descriptor left (error {errno}): close files, or raise the limit \
     `ulimit -n`"
)]
#[non_exhaustive]
pub struct WaitError {
    /// The error number of the system.
    pub errno: i32,
}

/// A handle by which any thread can wake a [`Waiter`]. Several rings between two waits count as a
/// single ring. While the waiter is awake, ringing takes one atomic operation and no system call.
#[derive(Clone, Debug)]
pub struct Doorbell {
    shared: Arc<SharedState>,
}

impl Doorbell {
    /// Wakes the waiter, or makes its next wait return at once. When [`Waiter::wait`] reports the
    /// doorbell, the waiter sees everything that this thread wrote before ringing.
    pub fn ring(&self) {
        self.shared.ring();
    }
}

/// State while the waiter is awake and the doorbell has not rung. The waiter checks the state
/// before it sleeps.
const AWAKE: u8 = 0;
/// State from the time when the doorbell rings until the waiter notices it.
const RUNG: u8 = 1;
/// State while the waiter sleeps. A ring must then set the event.
const ASLEEP: u8 = 2;

/// The state that a waiter shares with its doorbells. Every change of `state` is one atomic
/// operation, so all changes have one order. If a ring comes before the waiter's change from
/// `AWAKE` to `ASLEEP`, this change fails, and the waiter stays awake. If a ring comes after it,
/// the ring finds `ASLEEP`, and sets the event.
#[derive(Debug)]
struct SharedState {
    state: AtomicU8,
    event: Eventfd,
}

impl SharedState {
    fn ring(&self) {
        // Release makes this thread's earlier writes visible to the waiter. Acquire is not needed,
        // because this thread reads no data of the waiter.
        if self.state.swap(RUNG, Ordering::Release) == ASLEEP {
            self.event.set();
        }
    }

    fn is_rung(&self) -> bool {
        self.state.load(Ordering::Relaxed) == RUNG
    }

    /// Changes the state from awake to asleep. Returns false, and stays awake, if the doorbell has
    /// rung.
    fn fall_asleep(&self) -> bool {
        let sleeps = self
            .state
            .compare_exchange(AWAKE, ASLEEP, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if !sleeps {
            self.state.swap(AWAKE, Ordering::Acquire);
        }
        sleeps
    }

    /// Changes the state to awake. Returns whether the doorbell has rung. Another thread may ring
    /// after the event was cleared and before the state changes. The event then stays set, and the
    /// next sleep ends without a reason.
    fn wake_up(&self, signalled: bool) -> bool {
        if signalled {
            self.event.clear();
        }
        self.state.swap(AWAKE, Ordering::Acquire) == RUNG
    }
}

/// A link without frames, for a [`Waiter`] that waits only for its doorbell or a deadline.
#[derive(Debug)]
pub struct NoLink {
    never: Eventfd,
}

impl NoLink {
    /// Creates a link that is never ready.
    ///
    /// # Errors
    /// [`WaitError`] if the system cannot create an eventfd.
    pub fn new() -> Result<Self, WaitError> {
        let never = Eventfd::new().map_err(|errno| WaitError { errno: errno.raw_os_error() })?;
        Ok(Self { never })
    }
}

impl Readiness for NoLink {
    fn fd(&self) -> BorrowedFd<'_> {
        self.never.as_fd()
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn wants_room(&self) -> bool {
        false
    }

    fn is_ready(&mut self) -> bool {
        false
    }

    fn prepare_to_sleep(&mut self) -> bool {
        true
    }

    fn awake(&mut self, _signalled: bool) {}

    fn next_deadline(&self) -> Instant {
        Instant::NEVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Duration;
    use std::sync::atomic::AtomicU32;
    use std::thread;

    #[test]
    fn a_ring_before_the_wait_ends_one_wait_at_once() {
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

    /// Returns whether the event that wakes this waiter has been set.
    fn is_signalled(waiter: &Waiter) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(waiter.shared.event.as_fd(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    }

    #[test]
    fn only_a_sleeping_waiter_is_signalled() {
        let waiter = Waiter::new().unwrap();
        waiter.doorbell().ring();
        assert!(
            !is_signalled(&waiter) && !waiter.shared.fall_asleep(),
            "an awake waiter gets no event, and does not sleep after the ring"
        );
        assert!(waiter.shared.fall_asleep());
        waiter.doorbell().ring();
        assert!(is_signalled(&waiter));
        assert!(waiter.shared.wake_up(true) && !is_signalled(&waiter));
    }

    /// A link that rings the doorbell when the waiter is about to sleep, in `prepare_to_sleep`.
    struct RingBeforeSleep(NoLink, Doorbell);

    impl Readiness for RingBeforeSleep {
        fn fd(&self) -> BorrowedFd<'_> {
            self.0.fd()
        }

        fn prepare_to_sleep(&mut self) -> bool {
            self.1.ring();
            true
        }

        fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        fn wants_room(&self) -> bool {
            false
        }

        fn is_ready(&mut self) -> bool {
            false
        }

        fn awake(&mut self, _signalled: bool) {}

        fn next_deadline(&self) -> Instant {
            Instant::NEVER
        }
    }

    #[test]
    fn a_ring_ends_one_sleep_and_says_nothing_about_the_link() {
        let mut waiter = Waiter::new().unwrap();
        let mut link = RingBeforeSleep(NoLink::new().unwrap(), waiter.doorbell());
        assert_eq!(
            waiter.wait(&mut link, Instant::NEVER),
            Ok(Wake { link: false, doorbell: true })
        );
        assert!(!is_signalled(&waiter));
        assert_eq!(waiter.wait(&mut link.0, Instant::ZERO), Ok(Wake::default()));
    }

    #[test]
    fn a_ring_does_not_hide_a_ready_link() {
        let mut waiter = Waiter::new().unwrap();
        let mut link =
            ReadyLink { silent: NoLink::new().unwrap(), ready: true, deadline: Instant::NEVER };
        waiter.doorbell().ring();
        assert_eq!(waiter.wait(&mut link, Instant::NEVER), Ok(Wake { link: true, doorbell: true }));
    }

    #[test]
    fn the_time_left_is_exact_zero_after_the_deadline_and_none_for_never() {
        let left = time_left(MonotonicClock.now() + Duration::from_secs(1_000_000)).unwrap();
        assert!((900_000..=1_000_000).contains(&left.tv_sec), "{left:?}");
        let passed = time_left(Instant::ZERO).unwrap();
        assert_eq!((passed.tv_sec, passed.tv_nsec), (0, 0));
        assert!(time_left(Instant::NEVER).is_none());
    }

    #[test]
    fn a_wait_ends_at_its_deadline_and_not_before() {
        let deadline = MonotonicClock.now() + Duration::from_millis(2);
        let mut waiter = Waiter::new().unwrap().with_spins(3);
        let mut link = NoLink::new().unwrap();
        assert_eq!(waiter.wait(&mut link, deadline), Ok(Wake::default()));
        assert!(MonotonicClock.now() >= deadline);
    }

    #[test]
    fn a_waiter_sees_the_work_of_every_ringing_thread() {
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

    /// A link for which a test determines whether it is ready, and which deadline it has.
    struct ReadyLink {
        silent: NoLink,
        ready: bool,
        deadline: Instant,
    }

    impl Readiness for ReadyLink {
        fn fd(&self) -> BorrowedFd<'_> {
            self.silent.fd()
        }
        fn is_ready(&mut self) -> bool {
            self.ready
        }
        fn next_deadline(&self) -> Instant {
            self.deadline
        }

        fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        fn wants_room(&self) -> bool {
            false
        }

        fn prepare_to_sleep(&mut self) -> bool {
            !self.is_ready()
        }

        fn awake(&mut self, _signalled: bool) {}
    }

    #[test]
    fn a_ready_link_or_a_passed_deadline_prevents_the_sleep() {
        let mut waiter = Waiter::new().unwrap();
        let silent = NoLink::new().unwrap();
        let mut link = ReadyLink { silent, ready: true, deadline: Instant::NEVER };
        assert_eq!(
            waiter.wait(&mut link, Instant::NEVER),
            Ok(Wake { link: true, doorbell: false })
        );
        link.ready = false;
        link.deadline = Instant::ZERO;
        assert_eq!(waiter.wait(&mut link, Instant::NEVER), Ok(Wake::default()));
    }
}
