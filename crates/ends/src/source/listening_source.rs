//! A source that listens, and sends the characters of RFC 864 to every peer that connects.

use super::error::SourceError;
use super::supply::{Supply, options};
use crate::interrupt::Interrupt;
use crate::serve::{ConnectionSlot, Connections, ListenAt, Listener};
use crate::socket::{Contents, Network, Stream, is_pause};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of open connections.
const MAX_CONNECTIONS: usize = 64;
/// Timeout of a single read, write or wait, after which a thread checks whether it should stop.
const SLICE: Duration = Duration::from_millis(100);
/// Maximum time for which the socket of a connection accepts no data. Then the source closes the
/// connection.
const IDLE: Duration = Duration::from_secs(600);
/// Maximum time to wait, after the last byte, until the peer closes its sending direction.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A listening source, with the limits and socket options that apply to each connection.
#[derive(Debug)]
pub struct ListeningSource {
    listener: Listener,
    supply: Supply,
}

/// An event of a listening source, for its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection has ended.
    Served(Served),
    /// A connection from this address was rejected, because the maximum number of connections is
    /// open or no thread could be created.
    Rejected(SocketAddr),
}

/// The record of a connection that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The address of the peer.
    pub peer: SocketAddr,
    /// Number of bytes that the socket accepted.
    pub bytes: u64,
    /// Time from the acceptance of the connection to the last write that succeeded.
    pub time: Duration,
}

impl ListeningSource {
    /// Listens at `place` of `network`. `supply` gives the limits and socket options for each
    /// connection.
    ///
    /// # Errors
    /// The address is not available, or the send buffer exceeds the system's limit.
    pub fn bind(network: &Network, place: ListenAt, supply: Supply) -> Result<Self, SourceError> {
        // The options are set on the listening socket: accepted connections inherit its send
        // buffer.
        let listener = Listener::bind(network, place, &options(network, &supply)?)?;
        Ok(Self { listener, supply })
    }

    /// Returns the address at which the source listens. The address has the actual port if port 0
    /// was requested.
    ///
    /// # Errors
    /// The error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves connections until `interrupt` is raised. Calls `tell` with every event.
    ///
    /// # Errors
    /// The listening socket failed.
    pub fn serve(&self, interrupt: &Interrupt, tell: &(dyn Fn(&Event) + Sync)) -> io::Result<()> {
        let connections = Connections::new(MAX_CONNECTIONS);
        thread::scope(|scope| {
            let outcome = self.listener.accept_until(interrupt, |stream, peer| {
                let connections = &connections;
                let Some(place) = connections.admit(&stream) else {
                    return tell(&Event::Rejected(peer));
                };
                let serve =
                    move || tell(&Event::Served(self.serve_one(&stream, peer, connections, place)));
                if thread::Builder::new().spawn_scoped(scope, serve).is_err() {
                    tell(&Event::Rejected(peer));
                }
            });
            connections.close_all();
            outcome
        })
    }

    fn serve_one(
        &self,
        stream: &Stream,
        peer: SocketAddr,
        connections: &Connections,
        _place: ConnectionSlot<'_>,
    ) -> Served {
        let began = Instant::now();
        let mut transfer = Transfer::new(&self.supply, began);
        let (closed, on_close) = mpsc::channel();
        thread::scope(|scope| {
            // A second thread reads and discards the data that the peer sends. If the system
            // provides no thread, such data is not read; most peers send none.
            let reader = thread::Builder::new()
                .spawn_scoped(scope, || discard_input(stream, closed, connections));
            // If the peer ends the transfer by closing the connection, a write fails. That is not
            // an error, but then there is no close to wait for.
            if transfer.write_to_end(stream, connections).is_ok() && reader.is_ok() {
                await_close(&on_close, connections);
            }
            let _ = stream.shutdown(Shutdown::Both);
        });
        Served { peer, bytes: transfer.bytes, time: transfer.last.saturating_duration_since(began) }
    }
}

/// The transfer of data on one connection.
#[derive(Debug)]
struct Transfer {
    buffer: Vec<u8>,
    /// Offset in `buffer` of the first byte that the socket has not accepted yet.
    rest: usize,
    /// Number of bytes that the socket has accepted.
    bytes: u64,
    /// Maximum number of bytes to write.
    limit: u64,
    began: Instant,
    /// Time of the most recent successful write; the start of the transfer if there was none yet.
    last: Instant,
    max_time: Duration,
}

impl Transfer {
    fn new(supply: &Supply, began: Instant) -> Self {
        let (buffer, limit, max_time) =
            (vec![0; supply.write_length()], supply.limit(), supply.max_time());
        Self { rest: buffer.len(), buffer, bytes: 0, limit, began, last: began, max_time }
    }

    /// Writes data to `stream` until a limit is reached or the service ends, and then closes the
    /// sending direction.
    fn write_to_end(&mut self, stream: &Stream, connections: &Connections) -> io::Result<()> {
        stream.set_write_timeout(Some(SLICE))?;
        while !self.is_enough() && !connections.is_closing() {
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

/// Reads and discards the peer's data until the peer closes its sending direction or the service
/// ends. The drop of `closed` then tells [`await_close`] that reading has ended.
fn discard_input(mut stream: &Stream, closed: Sender<()>, connections: &Connections) {
    let mut words = [0; 16 << 10];
    while !connections.is_closing() {
        match stream.read(&mut words) {
            Ok(1..) => {}
            Err(error) if is_pause(&error) => {}
            Ok(0) | Err(_) => break,
        }
    }
    drop(closed);
}

/// Waits until the peer has closed its sending direction, but at most [`CLOSE_TIMEOUT`].
fn await_close(closed: &Receiver<()>, connections: &Connections) {
    let until = Instant::now() + CLOSE_TIMEOUT;
    while Instant::now() < until && !connections.is_closing() {
        if closed.recv_timeout(SLICE) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}
