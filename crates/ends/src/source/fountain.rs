//! A source that listens, and pours RFC 864's characters over whoever connects.

use super::error::SourceError;
use super::supply::{Supply, options};
use crate::interrupt::Interrupt;
use crate::serve::{Guests, ListenAt, Listener, Place};
use crate::socket::{Contents, Network, Stream, is_pause};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Connections at a time.
const MOST_GUESTS: usize = 64;
/// How long a wait may be before somebody asks whether it should go on.
const SLICE: Duration = Duration::from_millis(100);
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
    /// Bytes that the socket took for it.
    pub bytes: u64,
    /// From the first to the last of them.
    pub time: Duration,
}

impl Fountain {
    /// Listens at `place` of `network`, with `supply` for everybody who comes.
    ///
    /// # Errors
    /// The place cannot be had, or the buffer is larger than what is granted.
    pub fn bind(network: &Network, place: ListenAt, supply: Supply) -> Result<Self, SourceError> {
        // What is accepted inherits the buffer.
        let listener = Listener::bind(network, place, &options(network, &supply)?)?;
        Ok(Self { listener, supply })
    }

    /// Where it listens, with the port that was free if it was left open.
    ///
    /// # Errors
    /// What the socket says.
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
                let serve =
                    move || tell(&Event::Drawn(self.serve_one(&stream, peer, guests, place)));
                if thread::Builder::new().spawn_scoped(scope, serve).is_err() {
                    tell(&Event::TurnedAway(peer));
                }
            });
            guests.close_all();
            outcome
        })
    }

    fn serve_one(
        &self,
        stream: &Stream,
        peer: SocketAddr,
        guests: &Guests,
        _place: Place<'_>,
    ) -> Drawn {
        let began = Instant::now();
        let mut pouring = Pouring::new(&self.supply, began);
        let (silence, silent) = mpsc::channel();
        thread::scope(|scope| {
            // Without a thread to hear it, the peer only must not talk.
            let hearing =
                thread::Builder::new().spawn_scoped(scope, || hear(stream, silence, guests));
            // A peer that breaks off has had enough: that is how this service ends.
            if pouring.pour(stream, guests).is_ok() && hearing.is_ok() {
                await_silence(&silent, guests);
            }
            let _ = stream.shutdown(Shutdown::Both);
        });
        Drawn { peer, bytes: pouring.bytes, time: pouring.last.saturating_duration_since(began) }
    }
}

/// One connection's share.
#[derive(Debug)]
struct Pouring {
    buffer: Vec<u8>,
    /// The part of `buffer` that the socket has not taken yet begins here.
    rest: usize,
    bytes: u64,
    limit: u64,
    began: Instant,
    last: Instant,
    max_time: Duration,
}

impl Pouring {
    fn new(supply: &Supply, began: Instant) -> Self {
        let (buffer, limit, max_time) =
            (vec![0; supply.write_length()], supply.limit(), supply.max_time());
        Self { rest: buffer.len(), buffer, bytes: 0, limit, began, last: began, max_time }
    }

    /// Writes until there is enough, and then the end.
    fn pour(&mut self, stream: &Stream, guests: &Guests) -> io::Result<()> {
        stream.set_write_timeout(Some(SLICE))?;
        while !self.is_enough() && !guests.are_leaving() {
            self.write(stream)?;
        }
        stream.shutdown(Shutdown::Write)
    }

    fn is_enough(&self) -> bool {
        let now = Instant::now();
        self.bytes >= self.limit
            || now.saturating_duration_since(self.began) >= self.max_time
            || now.saturating_duration_since(self.last) >= IDLE
    }

    fn write(&mut self, mut stream: &Stream) -> io::Result<()> {
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
            Err(error) if is_pause(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Throws away whatever the peer says, until it has closed its side, is gone, or all are leaving.
fn hear(mut stream: &Stream, silence: Sender<()>, guests: &Guests) {
    let mut words = [0; 16 << 10];
    while !guests.are_leaving() {
        match stream.read(&mut words) {
            Ok(1..) => {}
            Err(error) if is_pause(&error) => {}
            Ok(0) | Err(_) => break,
        }
    }
    drop(silence);
}

/// Waits until the peer has closed its side, which it does when it has read everything; not for
/// long.
fn await_silence(silent: &Receiver<()>, guests: &Guests) {
    let until = Instant::now() + FAREWELL;
    while Instant::now() < until && !guests.are_leaving() {
        if silent.recv_timeout(SLICE) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}
