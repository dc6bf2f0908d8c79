//! One epoll for the link, the flows and everything else that a gateway waits for.

use crate::error::{CLOCK, GatewayError};
use linerate_link::Readiness;
use linerate_units::{Clock, Instant};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// The number of events that one wait returns.
const EVENTS: usize = 256;

/// The numbers of the clients of the metrics. Those of flows are larger.
const FIRST_CLIENT: u64 = 4;
const LAST_CLIENT: u64 = u32::MAX as u64;

/// The subject of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// The link.
    Link,
    /// The request to finish the flows and stop.
    Drain,
    /// The request to stop at once.
    End,
    /// The listener for metrics.
    Metrics,
    /// The client of the metrics at this place.
    MetricsClient(usize),
    /// The flow at this index with this generation.
    Flow(u32, u32),
}

impl Token {
    fn data(self) -> EventData {
        let number = match self {
            Self::Link => 0,
            Self::Drain => 1,
            Self::End => 2,
            Self::Metrics => 3,
            Self::MetricsClient(place) => FIRST_CLIENT + place as u64,
            Self::Flow(index, generation) => (u64::from(index) + 1) << 32 | u64::from(generation),
        };
        EventData::new_u64(number)
    }

    #[allow(clippy::cast_possible_truncation, reason = "the halves of a number")]
    fn of(data: EventData) -> Self {
        match data.u64() {
            0 => Self::Link,
            1 => Self::Drain,
            2 => Self::End,
            3 => Self::Metrics,
            number @ FIRST_CLIENT..=LAST_CLIENT => {
                Self::MetricsClient((number - FIRST_CLIENT) as usize)
            }
            number => Self::Flow((number >> 32) as u32 - 1, number as u32),
        }
    }
}

/// An event of a descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) token: Token,
    pub(crate) flags: EventFlags,
}

/// The epoll, and the events of the last wait.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    /// Does the epoll wait for room in the link?
    waits_for_room: bool,
    pub(crate) ready: Vec<Ready>,
}

impl Poller {
    pub(crate) fn new(link: &impl Readiness) -> Result<Self, GatewayError> {
        let epoll =
            epoll::create(CreateFlags::CLOEXEC).map_err(GatewayError::of("create an epoll"))?;
        let poller = Self { epoll, waits_for_room: false, ready: Vec::new() };
        poller.add(link.fd(), Token::Link, EventFlags::IN)?;
        if let Some(second) = link.wakeup_fd() {
            poller.add(second, Token::Link, EventFlags::IN)?;
        }
        Ok(poller)
    }

    /// Adds a descriptor, which is removed when it is closed.
    pub(crate) fn add(
        &self,
        fd: impl AsFd,
        token: Token,
        flags: EventFlags,
    ) -> Result<(), GatewayError> {
        epoll::add(&self.epoll, fd, token.data(), flags)
            .map_err(GatewayError::of("wait for a descriptor"))
    }

    /// Removes a descriptor that stays open.
    pub(crate) fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits until something is ready or `deadline` has passed. Without `may_sleep` it only looks.
    pub(crate) fn wait(
        &mut self,
        link: &mut impl Readiness,
        deadline: Instant,
        may_sleep: bool,
    ) -> Result<(), GatewayError> {
        self.ready.clear();
        if link.wants_room() != self.waits_for_room {
            self.waits_for_room = !self.waits_for_room;
            let flags = if self.waits_for_room { EventFlags::OUT } else { EventFlags::empty() };
            let flags = EventFlags::IN | flags;
            epoll::modify(&self.epoll, link.fd(), Token::Link.data(), flags)
                .map_err(GatewayError::of("wait for the link"))?;
        }
        let sleeps = may_sleep && link.prepare_to_sleep();
        let timeout = if sleeps { time_left(deadline.min(link.next_deadline())) } else { NOW };
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        let waited = epoll::wait(&self.epoll, &mut events[..], timeout.as_ref());
        if let Ok((events, _)) = &waited {
            let ready = events.iter().map(|event| {
                let (data, flags) = (event.data, event.flags);
                Ready { token: Token::of(data), flags }
            });
            self.ready.extend(ready);
        }
        if sleeps {
            link.awake(self.ready.iter().any(|ready| ready.token == Token::Link));
        }
        match waited {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(GatewayError::System { what: "wait for descriptors", errno }),
        }
    }
}

const NOW: Option<Timespec> = Some(Timespec { tv_sec: 0, tv_nsec: 0 });

/// Returns the time until `deadline`, or `None` if it is never reached.
fn time_left(deadline: Instant) -> Option<Timespec> {
    if deadline == Instant::NEVER {
        return None;
    }
    let nanos = deadline.since(CLOCK.now()).as_nanos();
    let seconds = i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX);
    Some(Timespec { tv_sec: seconds, tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_the_epoll() {
        let flow = Token::Flow(u32::MAX - 1, u32::MAX);
        let client = Token::MetricsClient(9);
        for token in [Token::Link, Token::Drain, Token::End, Token::Metrics, client, flow] {
            assert_eq!(Token::of(token.data()), token);
        }
        assert_eq!(Token::of(Token::Flow(0, 0).data()), Token::Flow(0, 0));
    }
}
