//! `linerate ping`: echo requests from linerate's own host, over any link, and what comes back.

mod questions;
mod tally;

pub use questions::Questions;
pub use tally::{RoundTrips, Tally};

use linerate_ends::Interrupt;
use linerate_link::{MonotonicClock, Readiness, WaitError, Waiter};
use linerate_stack::{EchoError, EchoReply, Error, Event, Host, Link, LinkError};
use linerate_units::{Clock, Duration, Instant};
use std::net::Ipv4Addr;
use std::ops::Range;
use thiserror::Error;

/// How long a wait may be before somebody asks whether it should go on.
const SLICE: Duration = Duration::from_millis(100);

/// Something that comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The echo of a request.
    Reply {
        /// Who answered.
        source: Ipv4Addr,
        /// Of which request, counted from 1.
        number: u64,
        /// Bytes of the ICMP message.
        length: usize,
        /// Routers that it might still have passed.
        ttl: u8,
        /// From the request to the answer.
        round_trip: Duration,
        /// Has the request been answered before?
        again: bool,
        /// The first byte of the data that is not what was sent.
        wrong_at: Option<usize>,
    },
    /// Somebody reports a problem with a request.
    Problem(EchoError),
}

/// Why nothing can be asked.
#[derive(Debug, Error)]
pub enum PingError {
    /// The host says no.
    #[error("{0}")]
    Refused(#[from] Error),
    /// The link carries nothing any more.
    #[error("the link is gone ({0})")]
    Link(#[from] LinkError),
    /// The system cannot wait.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

/// Asks, and tells that the first request has gone, and each answer as it comes; what it was all
/// together is returned.
///
/// # Errors
/// [`PingError`]: the destination cannot be asked, or the link broke.
pub fn ping<L: Link + Readiness>(
    host: &mut Host<L>,
    questions: &Questions,
    interrupt: &Interrupt,
    mut begun: impl FnMut(),
    mut tell: impl FnMut(&Answer),
) -> Result<Tally, PingError> {
    let mut waiter = Waiter::new()?;
    let mut tally = Tally::new(*questions, MonotonicClock.now());
    let data = data(questions.size);
    loop {
        let now = MonotonicClock.now();
        if tally.is_due(now) {
            ask(host, &mut tally, now, &data)?;
            if tally.sent == 1 {
                begun();
            }
        }
        let turn = host.turn(now)?;
        let turned = now..MonotonicClock.now();
        while let Some(event) = host.stack_mut().poll_event() {
            if let Some(answer) = answer(&mut tally, event, &turned, &data) {
                tell(&answer);
            }
        }
        let now = MonotonicClock.now();
        if tally.is_over(now) || interrupt.is_raised() {
            return Ok(tally.finished(now));
        }
        if !turn.more && !tally.is_due(now) {
            let deadline = turn.next.min(tally.next(now)).min(now + SLICE);
            waiter.wait(host.link_mut(), deadline)?;
        }
    }
}

/// Sends a request; one for which the host has no room counts as sent and lost, as on any full
/// link.
fn ask<L: Link>(
    host: &mut Host<L>,
    tally: &mut Tally,
    now: Instant,
    data: &[u8],
) -> Result<(), PingError> {
    let Questions { destination, identifier, .. } = *tally.questions();
    let sequence = tally.ask(now);
    match host.stack_mut().echo_send(now, destination, identifier, sequence, data) {
        Ok(()) | Err(Error::WouldBlock) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What an event means for these questions, if anything.
fn answer(tally: &mut Tally, event: Event, turned: &Range<Instant>, data: &[u8]) -> Option<Answer> {
    match event {
        Event::EchoReply(reply) if reply.identifier == tally.questions().identifier => {
            reply_to(tally, &reply, turned, data)
        }
        Event::EchoError(error) if error.identifier == tally.questions().identifier => {
            tally.problem();
            Some(Answer::Problem(error))
        }
        _ => None,
    }
}

fn reply_to(
    tally: &mut Tally,
    reply: &EchoReply,
    turned: &Range<Instant>,
    data: &[u8],
) -> Option<Answer> {
    /// Type, code, checksum, identifier and sequence number.
    const ICMP_HEADER: usize = 8;
    // To a host nothing happens later than its turn began. What came while it turned, perhaps to a
    // request of the same turn, was there when the turn was over: anything earlier could be no time
    // at all.
    let arrived = if reply.arrived < turned.start { reply.arrived } else { turned.end };
    let met = tally.answer(reply.sequence, arrived)?;
    let same = data.iter().zip(&reply.data).take_while(|(sent, came)| sent == came).count();
    Some(Answer::Reply {
        source: reply.source,
        number: met.number,
        length: ICMP_HEADER + reply.data.len(),
        ttl: reply.ttl,
        round_trip: met.round_trip,
        again: met.again,
        wrong_at: (same < data.len().max(reply.data.len())).then_some(same),
    })
}

/// What is sent along, so that damage shows.
fn data(size: usize) -> Vec<u8> {
    (0_u8..=u8::MAX).cycle().take(size).collect()
}

#[cfg(test)]
mod tests;
