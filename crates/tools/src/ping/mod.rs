//! `linerate ping`: sends echo requests from linerate's own host, over any link.

mod parameters;
mod tally;

pub use parameters::EchoParameters;
pub use tally::{RoundTrips, Tally};

use crate::turns::{SLICE, ToolError, turn_until};
use linerate_ends::Interrupt;
use linerate_link::{MonotonicClock, Readiness, Waiter};
use linerate_stack::{EchoError, EchoReply, Error, Event, Host, Link};
use linerate_units::{Clock, Duration, Instant};
use std::net::IpAddr;
use std::ops::Range;

/// A message that answers an echo request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An echo reply to one of the requests.
    Reply {
        /// The sender of the reply.
        source: IpAddr,
        /// Number of the answered request, counted from 1.
        number: u64,
        /// Length of the ICMP message in bytes.
        length: usize,
        /// TTL or hop limit of the reply when it arrived.
        ttl: u8,
        /// Time from the request to the reply.
        round_trip: Duration,
        /// Had the request been answered before, so that this reply is a duplicate?
        again: bool,
        /// Position of the first wrong byte in the data; `None` if the data is intact.
        wrong_at: Option<usize>,
    },
    /// An ICMP error about a request.
    Problem(EchoError),
}

/// Sends a series of echo requests. Calls `begun` once, after the first request was sent. Calls
/// `tell` with each answer to a request. Returns the statistics of the series.
///
/// # Errors
/// [`ToolError`]: requests cannot be sent to the destination, or the link failed.
pub fn ping<L: Link + Readiness>(
    host: &mut Host<L>,
    parameters: &EchoParameters,
    interrupt: &Interrupt,
    mut begun: impl FnMut(),
    mut tell: impl FnMut(&Answer),
) -> Result<Tally, ToolError> {
    let mut waiter = Waiter::new()?;
    let mut tally = Tally::new(*parameters, MonotonicClock.now());
    let data = data(parameters.size);
    loop {
        let now = MonotonicClock.now();
        if tally.is_due(now) {
            send_request(host, &mut tally, now, &data)?;
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

/// Runs the host until its addresses are usable ([`Stack::is_addressed`]). Returns false after
/// `timeout` or an interrupt.
///
/// # Errors
/// [`ToolError::Link`] or [`ToolError::Wait`].
///
/// [`Stack::is_addressed`]: linerate_stack::Stack::is_addressed
pub fn wait_for_addresses<L: Link + Readiness>(
    host: &mut Host<L>,
    timeout: Duration,
    interrupt: &Interrupt,
) -> Result<bool, ToolError> {
    let mut waiter = Waiter::new()?;
    let end = MonotonicClock.now() + timeout;
    let is_addressed = |host: &mut Host<L>, _| host.stack().is_addressed().then_some(());
    turn_until(host, &mut waiter, end, interrupt, is_addressed).map(|found| found.is_some())
}

/// Sends an echo request. If the host has no room for it, the request counts as sent, and thus as
/// lost, because a full link would lose it, too.
fn send_request<L: Link>(
    host: &mut Host<L>,
    tally: &mut Tally,
    now: Instant,
    data: &[u8],
) -> Result<(), ToolError> {
    let EchoParameters { destination, identifier, .. } = *tally.parameters();
    let sequence = tally.record_request(now);
    match host.stack_mut().echo_send(now, destination, identifier, sequence, data) {
        Ok(()) | Err(Error::WouldBlock) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Converts an event of the host to an answer; `None` if it belongs to no request of this series.
fn answer(tally: &mut Tally, event: Event, turned: &Range<Instant>, data: &[u8]) -> Option<Answer> {
    match event {
        Event::EchoReply(reply) if reply.identifier == tally.parameters().identifier => {
            reply_to(tally, &reply, turned, data)
        }
        Event::EchoError(error) if error.identifier == tally.parameters().identifier => {
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
    /// Number of bytes in type, code, checksum, identifier and sequence number.
    const ICMP_HEADER: usize = 8;
    // `turned` is the time from the start to the end of a turn. A reply that arrived before the
    // turn has the link's timestamp. For one that arrived during the turn, the host knows only the
    // turn's start. The end of the turn is used instead: the request may have been sent in this
    // turn, and the round-trip time would be zero.
    let arrived = if reply.arrived < turned.start { reply.arrived } else { turned.end };
    let matched = tally.answer(reply.sequence, arrived)?;
    let same = data.iter().zip(&reply.data).take_while(|(sent, came)| sent == came).count();
    Some(Answer::Reply {
        source: reply.source,
        number: matched.number,
        length: ICMP_HEADER + reply.data.len(),
        ttl: reply.ttl,
        round_trip: matched.round_trip,
        again: matched.again,
        wrong_at: (same < data.len().max(reply.data.len())).then_some(same),
    })
}

/// Returns the data of a request, in which corruption can be recognised.
fn data(size: usize) -> Vec<u8> {
    (0_u8..=u8::MAX).cycle().take(size).collect()
}

#[cfg(test)]
mod tests;
