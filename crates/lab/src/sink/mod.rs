//! `linerate sink`: takes bytes from anybody and throws them away, and lets a sweep on another
//! machine decide how they are received.
//!
//! Whoever connects says by its first bytes what it is, see [`crate::control`]. One thread serves one
//! connection; how many there may be is limited, and who comes too many is told so and counted.

mod discard;
mod door;
mod event;
mod run;
mod session;
mod shared;

pub use event::{Event, Served, Service, Summary};

use crate::Interrupt;
use crate::control::greeting::{self, Opening};
use crate::socket;
use door::Door;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use shared::{Place, Shared};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long the listener may wait before it asks whether it should stop.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// A connection that began like one of ours must finish its greeting in this time.
const GREETING_PATIENCE: Duration = Duration::from_secs(10);

/// How much a sink takes on at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections of any kind.
    pub connections: usize,
    /// Control connections among them.
    pub sessions: usize,
    /// A plain peer that has been silent for so long is let go.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 64, sessions: 8, idle: Duration::from_secs(600) }
    }
}

/// Why a sink cannot listen.
#[derive(Debug, Error)]
pub enum SinkError {
    /// Somebody else has the port.
    #[error(
        "{0} is in use: end the program that has it (`ss -ltnp`), or choose another with --listen ADDR:PORT"
    )]
    InUse(SocketAddr),
    /// The port is one for the superuser.
    #[error("no permission to listen at {0}: choose a port above 1023 with --listen ADDR:PORT")]
    NoPermission(SocketAddr),
    /// The address belongs to another machine.
    #[error("{0} is no address of this machine: choose one that `ip addr` shows, or 0.0.0.0 for all")]
    NotOurs(SocketAddr),
    /// The kernel refuses for another reason.
    #[error("cannot listen at {0} ({1}): see `linerate doctor`")]
    Io(SocketAddr, #[source] io::Error),
}

/// A sink that listens.
#[derive(Debug)]
pub struct Sink {
    listener: TcpListener,
    limits: Limits,
}

impl Sink {
    /// Listens at `address`.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn bind(address: SocketAddr, limits: Limits) -> Result<Self, SinkError> {
        let listener = socket::listen(address, &socket::Options::default())
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| explain(address, error))?;
        Ok(Self { listener, limits })
    }

    /// Listens at `port` of every address of this machine: IPv6 and IPv4, or IPv4 alone where the
    /// kernel has no IPv6.
    ///
    /// # Errors
    /// The port cannot be had.
    pub fn bind_everywhere(port: u16, limits: Limits) -> Result<Self, SinkError> {
        match Self::bind((Ipv6Addr::UNSPECIFIED, port).into(), limits) {
            Err(SinkError::Io(..) | SinkError::NotOurs(_)) => {
                Self::bind((Ipv4Addr::UNSPECIFIED, port).into(), limits)
            }
            other => other,
        }
    }

    /// Where it listens, with the port that the kernel chose if it was left to it.
    ///
    /// # Errors
    /// The kernel's word.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves whoever comes until `interrupt` is raised; `tell` hears of every connection. All of
    /// them are closed when it returns.
    ///
    /// # Errors
    /// The listening socket broke.
    pub fn serve(&self, interrupt: &Interrupt, tell: &(dyn Fn(&Event) + Sync)) -> io::Result<Summary> {
        let door = Door::new(&self.listener)?;
        let shared = Shared::new(&door, self.limits, tell);
        thread::scope(|scope| {
            let outcome = self.accept_until(interrupt, |stream, peer| match shared.admit(&stream) {
                Some(place) => {
                    let shared = &shared;
                    scope.spawn(move || serve_one(&stream, peer, &place, shared));
                }
                None => turn_away(&stream, peer, &shared),
            });
            shared.close_all();
            outcome
        })?;
        Ok(shared.summary())
    }

    fn accept_until(
        &self,
        interrupt: &Interrupt,
        mut serve: impl FnMut(TcpStream, SocketAddr),
    ) -> io::Result<()> {
        while !interrupt.is_raised() {
            match poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], Some(&WAIT)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            match self.listener.accept() {
                Ok((stream, peer)) => serve(stream, peer),
                Err(error) if is_of_one_peer(&error) => {}
                // Out of descriptors or memory: those who are served will give some back.
                Err(_) => {
                    let _ = poll(&mut [], Some(&WAIT));
                }
            }
        }
        Ok(())
    }
}

/// The peer went away before it was accepted; the listener is well.
fn is_of_one_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
    )
}

/// Finds out what a connection is for, and does it.
fn serve_one(stream: &TcpStream, peer: SocketAddr, place: &Place<'_>, shared: &Shared<'_>) {
    let mut first = Vec::with_capacity(greeting::LONGEST);
    match hear(stream, &mut first, shared) {
        Opening::Control { length } => session::serve(stream, peer, &first[length..], shared),
        Opening::Data { token, length } => run::serve(stream, peer, token, &first[length..], shared),
        Opening::Foreign => {
            let reason = "the first line is not understood: use the same release at both ends";
            refuse(stream, reason);
            shared.tell(&Event::TurnedAway { peer, reason: reason.to_owned() });
        }
        Opening::Plain | Opening::Undecided => discard::serve(stream, peer, &first, shared),
    }
    let _ = place;
}

/// Reads until the first bytes have said what the connection is for. One that began as ours begin and
/// then fell silent stays undecided.
fn hear(mut stream: &TcpStream, first: &mut Vec<u8>, shared: &Shared<'_>) -> Opening {
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
fn turn_away(stream: &TcpStream, peer: SocketAddr, shared: &Shared<'_>) {
    let reason = format!("{} connections are as many as this sink serves", shared.limits.connections);
    if stream.set_nonblocking(true).is_ok() {
        refuse(stream, &reason);
    }
    shared.tell(&Event::TurnedAway { peer, reason });
}

fn refuse(mut stream: &TcpStream, reason: &str) {
    // Whoever does not take even this line misses nothing.
    let _ = stream.write_all(greeting::busy(reason).as_bytes());
    let _ = stream.shutdown(Shutdown::Write);
}

fn explain(address: SocketAddr, error: io::Error) -> SinkError {
    match error.kind() {
        io::ErrorKind::AddrInUse => SinkError::InUse(address),
        io::ErrorKind::PermissionDenied => SinkError::NoPermission(address),
        io::ErrorKind::AddrNotAvailable => SinkError::NotOurs(address),
        _ => SinkError::Io(address, error),
    }
}

#[cfg(test)]
mod tests;
