//! Types characters over a TCP connection on a serial line. For each character, it measures the
//! bytes on the line and the time until the echo (RFC 1144 §1).

mod echo;
#[cfg(test)]
mod tests;

pub use echo::serve_echo;

use crate::ping::RoundTrips;
use crate::turns::turn_until;
use linerate_ends::Interrupt;
use linerate_link::serial::DirectionCounters;
use linerate_link::{MonotonicClock, SerialLink, WaitError, Waiter};
use linerate_stack::{ConnectOptions, Error, Host, LinkError, TcpHandle};
use linerate_tcp::State;
use linerate_units::{Clock, Duration, Instant};
use std::net::SocketAddr;
use thiserror::Error;

/// The parameters of a series of typed characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypedParameters {
    /// Address of the echo service (RFC 862).
    pub destination: SocketAddr,
    /// Number of characters to type.
    pub count: u64,
    /// Time between characters. With zero, the next character is typed as soon as the echo of the
    /// previous one has arrived.
    pub interval: Duration,
    /// Maximum time to wait for the connection, and for each echo.
    pub timeout: Duration,
}

/// The result of a series of typed characters. All figures exclude the first character, because its
/// packets cannot be compressed. They include every later packet up to the echo of the final
/// character.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TypedTally {
    /// Number of characters whose echo arrived.
    pub echoed: u64,
    /// Times from typing a character to reading its echo.
    pub echo_times: RoundTrips,
    /// Packets and bytes that were sent for the counted characters.
    pub sent: DirectionCounters,
    /// Packets and bytes that were received for the counted characters.
    pub received: DirectionCounters,
}

/// The reason why no more characters can be typed.
#[derive(Debug, Error)]
pub enum TypedError {
    /// The host refuses an operation.
    #[error("{0}")]
    Refused(#[from] Error),
    /// No connection to this address could be opened.
    #[error("{0} does not accept the connection: it needs an echo service (RFC 862)")]
    NoConnection(SocketAddr),
    /// The echo of this character did not arrive in time.
    #[error("character {0} has not come back: try a longer --timeout")]
    NoEcho(u64),
    /// The echo of this character was a different character.
    #[error("character {0} came back as another one: there is no echo service")]
    OtherEcho(u64),
    /// The link failed.
    #[error("the link has failed ({0})")]
    Link(#[from] LinkError),
    /// The system could not wait for the link.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

/// Types characters to a host on a serial line, and waits for the echo of each character. Ends
/// early after an interrupt.
///
/// # Errors
/// [`TypedError`], for example if there is no echo service.
pub fn type_characters(
    host: &mut Host<SerialLink>,
    parameters: &TypedParameters,
    interrupt: &Interrupt,
) -> Result<TypedTally, TypedError> {
    let mut typist = Typist { waiter: Waiter::new()?, host, parameters, interrupt };
    let handle = typist.connect()?;
    // The first character is typed before the measurement begins. Its packets have whole headers: a
    // header can be compressed only after both endpoints have stored an earlier one.
    if typist.type_character(handle, 0)?.is_none() {
        return Ok(TypedTally::default());
    }
    let before = *typist.host.link().counters();
    let (mut tally, mut last) = (TypedTally::default(), before);
    for number in 0..parameters.count {
        let typed = MonotonicClock.now();
        let Some(echoed) = typist.type_character(handle, number)? else { break };
        tally.echoed += 1;
        tally.echo_times.add(echoed.since(typed));
        last = *typist.host.link().counters();
        if number + 1 < parameters.count && !typist.pause(typed + parameters.interval)? {
            break;
        }
    }
    tally.sent = last.sent.since(&before.sent);
    tally.received = last.received.since(&before.received);
    // The connection is aborted: a normal close would need more packets, and thus more time on a
    // slow line.
    let now = MonotonicClock.now();
    typist.host.stack_mut().tcp_abort(now, handle)?;
    typist.host.turn(now)?;
    Ok(tally)
}

/// A host whose program types characters, with the parameters of the series.
struct Typist<'a> {
    host: &'a mut Host<SerialLink>,
    waiter: Waiter,
    parameters: &'a TypedParameters,
    interrupt: &'a Interrupt,
}

impl Typist<'_> {
    /// Opens the connection to the echo service.
    fn connect(&mut self) -> Result<TcpHandle, TypedError> {
        let destination = self.parameters.destination;
        let begun = MonotonicClock.now();
        let options = ConnectOptions::default();
        let handle = self.host.stack_mut().tcp_connect(begun, destination, &options)?;
        let connected = self.run(begun + self.parameters.timeout, |host, _| {
            match host.stack().tcp(handle).map(|connection| connection.state()) {
                Some(State::Established) => Some(true),
                Some(State::SynSent | State::SynReceived) => None,
                _ => Some(false),
            }
        })?;
        match connected {
            Some(true) => Ok(handle),
            _ => Err(TypedError::NoConnection(destination)),
        }
    }

    /// Types a character. Returns the time at which its echo was read, or `None` after an
    /// interrupt.
    fn type_character(
        &mut self,
        handle: TcpHandle,
        number: u64,
    ) -> Result<Option<Instant>, TypedError> {
        let character = b'a' + u8::try_from(number % 26).unwrap_or(0);
        let now = MonotonicClock.now();
        self.host.stack_mut().tcp_write(now, handle, &[character])?;
        let echo = self.run(now + self.parameters.timeout, |host, now| {
            let mut byte = [0];
            match host.stack_mut().tcp_read(now, handle, &mut byte) {
                Ok(1) if byte == [character] => Some(Ok(MonotonicClock.now())),
                Err(Error::WouldBlock) => None,
                _ => Some(Err(TypedError::OtherEcho(number + 1))),
            }
        })?;
        match echo {
            Some(echoed) => echoed.map(Some),
            None if self.interrupt.is_raised() => Ok(None),
            None => Err(TypedError::NoEcho(number + 1)),
        }
    }

    /// Waits until `time`. Returns false after an interrupt.
    fn pause(&mut self, time: Instant) -> Result<bool, TypedError> {
        self.run(time, |_, _| None::<()>)?;
        Ok(!self.interrupt.is_raised())
    }

    /// Executes turns of the host until `check` returns a value. Returns `None` at the deadline or
    /// after an interrupt.
    fn run<T>(
        &mut self,
        deadline: Instant,
        mut check: impl FnMut(&mut Host<SerialLink>, Instant) -> Option<T>,
    ) -> Result<Option<T>, TypedError> {
        turn_until(self.host, &mut self.waiter, deadline, self.interrupt, |host, now| {
            while host.stack_mut().poll_event().is_some() {}
            check(host, now)
        })
    }
}
