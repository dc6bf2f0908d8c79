//! `linerate sink`: takes bytes from anybody and throws them away, and lets a sweep on another
//! machine decide how they are received.
//!
//! Whoever connects says by its first bytes what it is, see [`crate::control`]. One thread serves
//! one connection; how many there may be is limited, and who comes too many is told so and counted.

mod data;
mod discard;
mod door;
mod event;
mod limits;
mod refuse;
mod run;
mod session;
mod shared;

pub use event::{Event, Served, Service, Summary};
pub use limits::Limits;

use crate::control::greeting::{self, Opening};
use crate::interrupt::Interrupt;
use crate::serve::{ListenAt, ListenError, Listener, Place};
use crate::socket::{Network, Options, Stream};
use door::Door;
use refuse::refuse;
use shared::Shared;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// A connection that began like one of ours must finish its greeting in this time.
const GREETING_PATIENCE: Duration = Duration::from_secs(10);

/// A sink that listens.
#[derive(Debug)]
pub struct Sink {
    listener: Listener,
    limits: Limits,
}

impl Sink {
    /// Listens at `place` of `network`.
    ///
    /// # Errors
    /// The place cannot be had.
    pub fn bind(network: &Network, place: ListenAt, limits: Limits) -> Result<Self, ListenError> {
        Self::bind_with(network, place, &Options::default(), limits)
    }

    /// Listens at `place` of `network`, for connections with `options`.
    ///
    /// # Errors
    /// The place cannot be had, or an option.
    pub fn bind_with(
        network: &Network,
        place: ListenAt,
        options: &Options,
        limits: Limits,
    ) -> Result<Self, ListenError> {
        Ok(Self { listener: Listener::bind(network, place, options)?, limits })
    }

    /// Where it listens, with the port that was free if it was left open.
    ///
    /// # Errors
    /// What the socket says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves whoever comes until `interrupt` is raised; `tell` hears of every connection. All of
    /// them are closed when it returns.
    ///
    /// # Errors
    /// The listening socket broke.
    pub fn serve(
        &self,
        interrupt: &Interrupt,
        tell: &(dyn Fn(&Event) + Sync),
    ) -> io::Result<Summary> {
        let door = Door::new(self.listener.socket())?;
        let shared = Shared::new(&door, self.limits, tell);
        thread::scope(|scope| {
            let outcome = self.listener.accept_until(interrupt, |stream, peer| {
                let shared = &shared;
                let Some(place) = shared.guests.admit(&stream) else {
                    return turn_away(&stream, peer, shared);
                };
                let serve = move || serve_one(&stream, peer, place, shared);
                if thread::Builder::new().spawn_scoped(scope, serve).is_err() {
                    let reason = "the machine has no thread left for it".to_owned();
                    shared.tell(&Event::TurnedAway { peer, reason });
                }
            });
            shared.guests.close_all();
            outcome
        })?;
        Ok(shared.summary())
    }
}

/// Finds out what a connection is for, and does it.
fn serve_one(stream: &Stream, peer: SocketAddr, _place: Place<'_>, shared: &Shared<'_>) {
    let mut first = Vec::with_capacity(greeting::LONGEST);
    match hear(stream, &mut first, shared) {
        Opening::Control { length } => session::serve(stream, peer, &first[length..], shared),
        Opening::Data { token, length } => {
            data::serve(stream, peer, token, &first[length..], shared);
        }
        Opening::Foreign => {
            let reason = "the first line is not understood: use the same release at both ends";
            refuse(stream, reason);
            shared.tell(&Event::TurnedAway { peer, reason: reason.to_owned() });
        }
        Opening::Plain | Opening::Undecided => discard::serve(stream, peer, &first, shared),
    }
}

/// Reads until the first bytes have said what the connection is for. One that began as ours begin
/// and then fell silent stays undecided.
fn hear(mut stream: &Stream, first: &mut Vec<u8>, shared: &Shared<'_>) -> Opening {
    let mut deadline = Instant::now() + shared.limits.idle;
    loop {
        let mut piece = [0; greeting::LONGEST];
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Opening::Undecided;
        }
        let room = greeting::LONGEST - first.len();
        match stream.read(&mut piece[..room]) {
            Ok(0) => return Opening::Undecided,
            Ok(count) => first.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Opening::Undecided,
        }
        match greeting::judge(first) {
            Opening::Undecided => deadline = deadline.min(Instant::now() + GREETING_PATIENCE),
            decided => return decided,
        }
    }
}

/// Tells a connection that came too many, without waiting for it to listen.
fn turn_away(stream: &Stream, peer: SocketAddr, shared: &Shared<'_>) {
    let reason =
        format!("{} connections are as many as this sink serves", shared.limits.connections);
    if stream.set_nonblocking(true).is_ok() {
        refuse(stream, &reason);
    }
    shared.tell(&Event::TurnedAway { peer, reason });
}

#[cfg(test)]
mod tests;
