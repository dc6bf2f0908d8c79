//! `linerate sink`: a service that reads and discards the data of any peer. A sweep on another
//! machine can request runs from it, over a control connection.
//!
//! The first bytes of a connection determine its purpose, see [`crate::control`]. Each connection
//! is served by its own thread. Connections beyond the limit are rejected with a message, and
//! counted.

mod data;
mod discard;
mod event;
mod limits;
mod receive_buffer;
mod refuse;
mod run;
mod session;
mod shared;
mod totals;

pub use event::{Event, Served, Service, Summary};
pub use limits::Limits;
pub use totals::RunTotals;

use crate::control::greeting::{self, Opening};
use crate::interrupt::Interrupt;
use crate::serve::{ConnectionSlot, ListenAt, ListenError, Listener};
use crate::socket::{Network, Options, Stream};
use receive_buffer::ReceiveBufferLock;
use refuse::refuse;
use shared::Shared;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time, after the first bytes of a greeting, in which the rest of the greeting must
/// arrive.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);

/// A sink, which serves sweeps, and also peers that send data without a greeting.
#[derive(Debug)]
pub struct Sink {
    listener: Listener,
    limits: Limits,
}

impl Sink {
    /// Listens at `place` of `network`, with default options.
    ///
    /// # Errors
    /// The address is not available.
    pub fn bind(network: &Network, place: ListenAt, limits: Limits) -> Result<Self, ListenError> {
        Self::bind_with(network, place, &Options::default(), limits)
    }

    /// Listens at `place` of `network`. Accepted connections inherit `options`.
    ///
    /// # Errors
    /// The address or an option is not available.
    pub fn bind_with(
        network: &Network,
        place: ListenAt,
        options: &Options,
        limits: Limits,
    ) -> Result<Self, ListenError> {
        Ok(Self { listener: Listener::bind(network, place, options)?, limits })
    }

    /// Returns the address at which the sink listens, with the actual port if port 0 was requested.
    ///
    /// # Errors
    /// The error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves connections until `interrupt` is raised, and then closes all connections. Calls
    /// `tell` with every event, and returns the totals.
    ///
    /// # Errors
    /// The listening socket failed.
    pub fn serve(
        &self,
        interrupt: &Interrupt,
        tell: &(dyn Fn(&Event) + Sync),
    ) -> io::Result<Summary> {
        let receive_buffer = ReceiveBufferLock::new(self.listener.socket())?;
        let shared = Shared::new(&receive_buffer, self.limits, tell);
        thread::scope(|scope| {
            let outcome = self.listener.accept_until(interrupt, |stream, peer| {
                let shared = &shared;
                let Some(place) = shared.connections.admit(&stream) else {
                    return reject(&stream, peer, shared);
                };
                let serve = move || serve_one(&stream, peer, place, shared);
                if thread::Builder::new().spawn_scoped(scope, serve).is_err() {
                    let reason = "the machine has no thread left for it".to_owned();
                    shared.tell(&Event::Rejected { peer, reason });
                }
            });
            shared.connections.close_all();
            outcome
        })?;
        Ok(shared.summary())
    }
}

/// Determines the purpose of a connection from its first bytes, and serves the connection
/// accordingly.
fn serve_one(stream: &Stream, peer: SocketAddr, _place: ConnectionSlot<'_>, shared: &Shared<'_>) {
    let mut first = Vec::with_capacity(greeting::LONGEST);
    match read_greeting(stream, &mut first, shared) {
        Opening::Control { length } => session::serve(stream, peer, &first[length..], shared),
        Opening::Data { token, length } => {
            data::serve(stream, peer, token, &first[length..], shared);
        }
        Opening::Foreign => {
            let reason =
                "the first line is not a known greeting: use the same release at both ends";
            refuse(stream, reason);
            shared.tell(&Event::Rejected { peer, reason: reason.to_owned() });
        }
        Opening::Plain | Opening::Undecided => discard::serve(stream, peer, &first, shared),
    }
}

/// Reads the first bytes of a connection into `first` until they determine its purpose. Returns
/// [`Opening::Undecided`] if the greeting is not complete in time.
fn read_greeting(mut stream: &Stream, first: &mut Vec<u8>, shared: &Shared<'_>) -> Opening {
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
        match greeting::classify(first) {
            Opening::Undecided => deadline = deadline.min(Instant::now() + GREETING_TIMEOUT),
            decided => return decided,
        }
    }
}

/// Rejects a connection because the maximum number of connections is open. Does not wait for the
/// peer to read the message.
fn reject(stream: &Stream, peer: SocketAddr, shared: &Shared<'_>) {
    let reason = format!("this sink serves at most {} connections", shared.limits.connections);
    if stream.set_nonblocking(true).is_ok() {
        refuse(stream, &reason);
    }
    shared.tell(&Event::Rejected { peer, reason });
}

#[cfg(test)]
mod tests;
