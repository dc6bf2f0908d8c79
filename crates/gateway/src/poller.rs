//! The epoll instance with which a gateway waits for events of its link, of its flows and of all
//! other descriptors.

use crate::error::{CLOCK, GatewayError};
use linerate_link::Readiness;
use linerate_units::{Clock, Instant};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// Maximum number of events that one wait returns.
const EVENTS: usize = 256;

/// Range of the event data that identifies clients of the metrics. Smaller values identify the
/// sources of which there is only one, and larger values identify flows.
const FIRST_CLIENT: u64 = 4;
const LAST_CLIENT: u64 = u32::MAX as u64;

/// The source of an epoll event, encoded in the event's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// The link has frames to receive, or room to send.
    Link,
    /// The request to finish the flows and then stop.
    Drain,
    /// The request to stop at once.
    End,
    /// The listening socket for metrics has a new connection.
    Metrics,
    /// The metrics client with this index in the server.
    MetricsClient(usize),
    /// The flow with this index and generation.
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

/// An event that epoll has reported: its source and its flags.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) token: Token,
    pub(crate) flags: EventFlags,
}

/// The epoll instance of a gateway, and the events that the most recent wait returned.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    /// Does epoll report when the link has room to send, in addition to received frames?
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

    /// Adds a descriptor. The kernel removes it when the descriptor is closed.
    pub(crate) fn add(
        &self,
        fd: impl AsFd,
        token: Token,
        flags: EventFlags,
    ) -> Result<(), GatewayError> {
        epoll::add(&self.epoll, fd, token.data(), flags)
            .map_err(GatewayError::of("wait for a descriptor"))
    }

    /// Removes a descriptor without closing it, so that its events are no longer reported.
    pub(crate) fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits until a descriptor is ready, or until `deadline` or the deadline of the link has
    /// passed. Only collects the events that are already there if `may_sleep` is false or the link
    /// has work.
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

/// Returns the time until `deadline`; `None` if there is no deadline.
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
    fn tokens_are_restored_from_the_data_of_epoll() {
        let flow = Token::Flow(u32::MAX - 1, u32::MAX);
        let client = Token::MetricsClient(9);
        for token in [Token::Link, Token::Drain, Token::End, Token::Metrics, client, flow] {
            assert_eq!(Token::of(token.data()), token);
        }
        assert_eq!(Token::of(Token::Flow(0, 0).data()), Token::Flow(0, 0));
    }
}
