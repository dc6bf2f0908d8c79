//! A source that listens, and pours RFC 864's characters over whoever connects.

use super::{SourceError, Supply, check_send_buffer};
use crate::Interrupt;
use crate::serve::{Guests, ListenAt, Listener, Place};
use crate::socket::{self, Contents};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Connections at a time.
const MOST_GUESTS: usize = 64;
/// How long a wait may be before somebody asks whether it should go on.
const SLICE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How long a peer that takes nothing is kept.
const IDLE: Duration = Duration::from_secs(600);
/// How long a peer may take to close after the last byte.
const FAREWELL: Duration = Duration::from_secs(5);

/// A source that listens.
#[derive(Debug)]
pub struct Fountain {
    listener: Listener,
    supply: Supply,
}

/// Something that a fountain tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection is over.
    Drawn(Drawn),
    /// A connection came too many.
    TurnedAway(SocketAddr),
}

/// What somebody has drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Who.
    pub peer: SocketAddr,
    /// Bytes that the kernel took for it.
    pub bytes: u64,
    /// From the first to the last of them.
    pub time: Duration,
}

impl Fountain {
    /// Listens at `place`, with `supply` for everybody who comes.
    ///
    /// # Errors
    /// The place cannot be had, or the buffer is larger than the kernel grants.
    pub fn bind(place: ListenAt, supply: Supply) -> Result<Self, SourceError> {
        let listener = Listener::bind(place)?;
        if let Some(bytes) = supply.send_buffer {
            // A refusal shows in the reading back. What is accepted inherits the buffer.
            let _ = socket::grant_send(listener.socket(), bytes.get());
        }
        check_send_buffer(listener.socket(), &supply)?;
        Ok(Self { listener, supply })
    }

    /// Where it listens, with the port that the kernel chose if it was left to it.
    ///
    /// # Errors
    /// The kernel's word.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves whoever comes until `interrupt` is raised; `tell` hears of every connection.
    ///
    /// # Errors
    /// The listening socket broke.
    pub fn serve(&self, interrupt: &Interrupt, tell: &(dyn Fn(&Event) + Sync)) -> io::Result<()> {
        let guests = Guests::new(MOST_GUESTS);
        thread::scope(|scope| {
            let outcome = self.listener.accept_until(interrupt, |stream, peer| {
                let guests = &guests;
                let Some(place) = guests.admit(&stream) else {
                    return tell(&Event::TurnedAway(peer));
                };
                let serve = move || tell(&Event::Drawn(self.serve_one(&stream, peer, guests, place)));
                if thread::Builder::new().spawn_scoped(scope, serve).is_err() {
                    tell(&Event::TurnedAway(peer));
                }
            });
            guests.close_all();
            outcome
        })
    }

    fn serve_one(&self, stream: &TcpStream, peer: SocketAddr, guests: &Guests, _place: Place<'_>) -> Drawn {
        let began = Instant::now();
        let mut pouring = Pouring::new(&self.supply, began);
        // A peer that breaks off has had enough: that is how this service ends.
        let _ = pouring.pour(stream, guests);
        Drawn { peer, bytes: pouring.bytes, time: pouring.last.saturating_duration_since(began) }
    }
}

/// One connection's share.
#[derive(Debug)]
struct Pouring {
    buffer: Vec<u8>,
    /// The part of `buffer` that the kernel has not taken yet begins here.
    rest: usize,
    bytes: u64,
    limit: u64,
    began: Instant,
    last: Instant,
    max_time: Duration,
}

impl Pouring {
    fn new(supply: &Supply, began: Instant) -> Self {
        let (buffer, limit, max_time) = (vec![0; supply.write_length()], supply.limit(), supply.max_time());
        Self { rest: buffer.len(), buffer, bytes: 0, limit, began, last: began, max_time }
    }

    /// Writes until there is enough, and throws away whatever the peer says meanwhile.
    fn pour(&mut self, stream: &TcpStream, guests: &Guests) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let mut hears = true;
        while !self.is_enough() && !guests.are_leaving() {
            let ready = wait(stream, hears, true)?;
            if ready.intersects(PollFlags::IN) {
                hears = hear(stream)?;
            }
            if ready.intersects(PollFlags::OUT | PollFlags::ERR | PollFlags::HUP) {
                self.write(stream)?;
            }
        }
        stream.shutdown(Shutdown::Write)?;
        let until = Instant::now() + FAREWELL;
        while hears && Instant::now() < until && !guests.are_leaving() {
            if wait(stream, true, false)?.intersects(PollFlags::IN | PollFlags::HUP) {
                hears = hear(stream)?;
            }
        }
        Ok(())
    }

    fn is_enough(&self) -> bool {
        let now = Instant::now();
        self.bytes >= self.limit
            || now.saturating_duration_since(self.began) >= self.max_time
            || now.saturating_duration_since(self.last) >= IDLE
    }

    fn write(&mut self, mut stream: &TcpStream) -> io::Result<()> {
        if self.rest == self.buffer.len() {
            Contents::Characters.renew(self.bytes, &mut self.buffer);
            self.rest = 0;
        }
        let left = usize::try_from(self.limit - self.bytes).unwrap_or(usize::MAX);
        let end = self.buffer.len().min(self.rest.saturating_add(left));
        match stream.write(&self.buffer[self.rest..end]) {
            Ok(count) => {
                self.rest += count;
                self.bytes += count as u64;
                self.last = Instant::now();
                Ok(())
            }
            Err(error) if socket::is_pause(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Waits a slice of time for what is wanted.
fn wait(stream: &TcpStream, to_hear: bool, to_write: bool) -> io::Result<PollFlags> {
    let mut wanted = PollFlags::empty();
    wanted.set(PollFlags::IN, to_hear);
    wanted.set(PollFlags::OUT, to_write);
    let mut wait = [PollFd::new(stream, wanted)];
    match poll(&mut wait, Some(&SLICE)) {
        Ok(_) | Err(Errno::INTR) => Ok(wait[0].revents()),
        Err(error) => Err(error.into()),
    }
}

/// Throws away what the peer says; false once it has closed its side.
fn hear(mut stream: &TcpStream) -> io::Result<bool> {
    match stream.read(&mut [0; 16 << 10]) {
        Ok(count) => Ok(count > 0),
        Err(error) if socket::is_pause(&error) => Ok(true),
        Err(error) => Err(error),
    }
}
