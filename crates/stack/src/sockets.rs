//! The sockets of a host: their places, and the handles by which an application knows them.

use crate::collections::slab::{Key, Slab};
use crate::error::Error;
use crate::event::{Event, UdpEvent};
use crate::handle::{ListenHandle, TcpHandle, UdpHandle};
use crate::tcp::listen::Listener;
use crate::tcp::{Owner, RestingSocket, Seen, TcpSocket};
use crate::udp::UdpSocket;
use alloc::boxed::Box;
use alloc::vec::Vec;
use linerate_tcp::{Event as TcpEvent, Waiting};
use linerate_units::Instant;

/// A socket of any kind. They share one space of numbers, so that timers, turns and events need no
/// further word to say whose they are.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(Box<TcpSocket>),
    /// A connection to which nothing happens.
    Resting(Box<RestingSocket>),
    /// One in TIME-WAIT that nobody holds.
    Waiting(Box<RestingSocket<Waiting>>),
    Listen(Box<Listener>),
    Udp(Box<UdpSocket>),
}

impl Socket {
    /// The connection, if it is one.
    pub(crate) fn as_tcp(&self) -> Option<Seen<'_>> {
        match self {
            Self::Tcp(socket) => Some(Seen::Awake(socket)),
            Self::Resting(socket) => Some(Seen::Resting(socket.look())),
            Self::Waiting(socket) => Some(Seen::Resting(socket.look())),
            Self::Listen(_) | Self::Udp(_) => None,
        }
    }

    /// Who holds the connection, if it is one.
    const fn owner(&self) -> Option<Owner> {
        match self {
            Self::Tcp(socket) => Some(socket.owner),
            Self::Resting(socket) => Some(socket.owner()),
            Self::Waiting(socket) => Some(socket.owner()),
            Self::Listen(_) | Self::Udp(_) => None,
        }
    }

    /// The connection, awake, if it is one.
    #[inline]
    fn awake(&mut self, now: Instant) -> Option<&mut TcpSocket> {
        if let Self::Tcp(socket) = self { Some(socket) } else { self.wake(now) }
    }

    #[cold]
    fn wake(&mut self, now: Instant) -> Option<&mut TcpSocket> {
        match self {
            Self::Resting(socket) => *self = Self::Tcp(socket.wake(now)),
            Self::Waiting(socket) => *self = Self::Tcp(socket.wake(now)),
            Self::Tcp(_) | Self::Listen(_) | Self::Udp(_) => {}
        }
        if let Self::Tcp(socket) = self { Some(socket) } else { None }
    }
}

/// Places in memory that are kept for connections to come.
const SPARE: usize = 4;

/// The same of records of connections in TIME-WAIT, which end by the dozen.
const SPARE_RECORDS: usize = 32;

/// All sockets of a host.
#[derive(Debug)]
pub(crate) struct Sockets {
    slab: Slab<Socket>,
    limit: usize,
    /// The places in memory of connections that are over, for those that come next: they are warm, and too large for
    /// an allocator to hand out at once. Invariant: at most [`SPARE`], and none holds memory for buffers.
    #[allow(clippy::vec_box, reason = "the boxes are what is kept")]
    spare: Vec<Box<TcpSocket>>,
    /// The same of what is kept in TIME-WAIT. Invariant: at most [`SPARE_RECORDS`].
    #[allow(clippy::vec_box, reason = "the boxes are what is kept")]
    spare_records: Vec<Box<RestingSocket<Waiting>>>,
    /// The latest time that the host has been told: who is woken may rest again after a while.
    pub(crate) now: Instant,
}

impl Sockets {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            slab: Slab::new(),
            limit,
            spare: Vec::new(),
            spare_records: Vec::new(),
            now: Instant::ZERO,
        }
    }

    /// Returns the event of this kind that happened to the socket at `index`.
    #[inline]
    pub(crate) fn event(&self, index: u32, kind: u8) -> Option<Event> {
        let (key, socket) = self.entry(index)?;
        Some(match socket {
            Socket::Tcp(_) | Socket::Resting(_) | Socket::Waiting(_) => {
                Event::Tcp(TcpHandle(key), *TcpEvent::ALL.get(usize::from(kind))?)
            }
            Socket::Listen(_) => Event::Incoming(ListenHandle(key)),
            Socket::Udp(_) => Event::Udp(UdpHandle(key), UdpEvent::of(kind)?),
        })
    }

    /// May there be one socket more?
    pub(crate) const fn has_room(&self) -> Result<(), Error> {
        if self.slab.len() < self.limit {
            Ok(())
        } else {
            Err(Error::TooManySockets { limit: self.limit })
        }
    }

    pub(crate) fn insert(&mut self, socket: Socket) -> Key {
        self.slab.insert(socket)
    }

    /// The place in memory of a connection that is over, which is still in it.
    #[inline(always)]
    pub(crate) fn take_spare(&mut self) -> Option<Box<TcpSocket>> {
        self.spare.pop()
    }

    /// A new connection.
    #[inline(always)]
    pub(crate) fn insert_tcp(&mut self, socket: Box<TcpSocket>) -> TcpHandle {
        TcpHandle(self.insert(Socket::Tcp(socket)))
    }

    pub(crate) fn remove(&mut self, index: u32) {
        if let Some(socket) = self.slab.remove(index) {
            self.keep_spare(socket);
        }
    }

    fn keep_spare(&mut self, socket: Socket) {
        match socket {
            Socket::Tcp(socket)
                if self.spare.len() < SPARE && socket.connection.buffer_memory() == 0 =>
            {
                self.spare.push(socket);
            }
            Socket::Waiting(record) if self.spare_records.len() < SPARE_RECORDS => {
                self.spare_records.push(record);
            }
            _ => {}
        }
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Socket> {
        self.slab.get(index)
    }

    /// The socket with this number, and the key to it.
    #[inline]
    pub(crate) fn entry(&self, index: u32) -> Option<(Key, &Socket)> {
        self.slab.entry(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Socket)> {
        self.slab.iter()
    }

    /// The name by which an application knows the connection with this number.
    pub(crate) fn tcp_handle(&self, index: u32) -> Option<TcpHandle> {
        self.slab.get(index)?.owner().and_then(|_| self.slab.key(index).map(TcpHandle))
    }

    /// The name by which an application knows the listener with this number.
    pub(crate) fn listen_handle(&self, index: u32) -> Option<ListenHandle> {
        matches!(self.slab.get(index)?, Socket::Listen(_))
            .then(|| self.slab.key(index).map(ListenHandle))?
    }

    /// The name by which an application knows the UDP socket with this number.
    pub(crate) fn udp_handle(&self, index: u32) -> Option<UdpHandle> {
        matches!(self.slab.get(index)?, Socket::Udp(_))
            .then(|| self.slab.key(index).map(UdpHandle))?
    }

    /// The connection with this number, whoever holds it.
    #[inline]
    pub(crate) fn tcp_at(&mut self, index: u32) -> Option<&mut TcpSocket> {
        self.slab.get_mut(index)?.awake(self.now)
    }

    /// The connection with this number, if it does not rest.
    #[inline]
    pub(crate) fn awake_at(&mut self, index: u32) -> Option<&mut TcpSocket> {
        if let Some(Socket::Tcp(socket)) = self.slab.get_mut(index) { Some(socket) } else { None }
    }

    /// The same, and the name by which an application knows it.
    #[inline]
    pub(crate) fn awake_entry(&mut self, index: u32) -> Option<(TcpHandle, &mut TcpSocket)> {
        let (key, socket) = self.slab.entry_mut(index)?;
        if let Socket::Tcp(socket) = socket { Some((TcpHandle(key), socket)) } else { None }
    }

    /// The connection with this number rests, as `resting`.
    pub(crate) fn put_to_rest(&mut self, index: u32, resting: Socket) {
        if let Some(socket) = self.slab.get_mut(index) {
            let awake = core::mem::replace(socket, resting);
            self.keep_spare(awake);
        }
    }

    /// Of the connection with this number only that is kept which TIME-WAIT needs, if that is all that is left of it: when
    /// it is over.
    #[inline(always)]
    pub(crate) fn put_to_wait(&mut self, index: u32) -> Option<Instant> {
        let place = self.slab.get_mut(index)?;
        let Socket::Tcp(socket) = place else { return None };
        let record = match self.spare_records.last_mut() {
            Some(spare) => spare.keep(socket).then(|| self.spare_records.pop())?,
            None => RestingSocket::<Waiting>::of(socket),
        }?;
        let end = record.deadline();
        let awake = core::mem::replace(place, Socket::Waiting(record));
        self.keep_spare(awake);
        Some(end)
    }

    /// When TIME-WAIT of the connection with this number is over, if nothing else is kept of it.
    pub(crate) fn waits_until(&self, index: u32) -> Option<Instant> {
        if let Some(Socket::Waiting(socket)) = self.slab.get(index) {
            Some(socket.deadline())
        } else {
            None
        }
    }

    /// The listener with this number.
    pub(crate) fn listener_at(&mut self, index: u32) -> Option<&mut Listener> {
        match self.slab.get_mut(index)? {
            Socket::Listen(listener) => Some(listener),
            Socket::Tcp(_) | Socket::Resting(_) | Socket::Waiting(_) | Socket::Udp(_) => None,
        }
    }

    /// The UDP socket with this number.
    pub(crate) fn udp_at(&mut self, index: u32) -> Option<&mut UdpSocket> {
        match self.slab.get_mut(index)? {
            Socket::Udp(socket) => Some(socket),
            Socket::Tcp(_) | Socket::Resting(_) | Socket::Waiting(_) | Socket::Listen(_) => None,
        }
    }

    /// The connection of an application.
    pub(crate) fn tcp(&self, handle: TcpHandle) -> Result<Seen<'_>, Error> {
        let socket =
            self.slab.find(handle.0).filter(|socket| socket.owner() == Some(Owner::Application));
        socket.and_then(Socket::as_tcp).ok_or(Error::Closed)
    }

    /// The connection of an application with its number, to change.
    #[inline]
    pub(crate) fn tcp_mut(&mut self, handle: TcpHandle) -> Result<(u32, &mut TcpSocket), Error> {
        match self.slab.find_mut(handle.0).and_then(|socket| socket.awake(self.now)) {
            Some(socket) if socket.owner == Owner::Application => Ok((handle.0.index(), socket)),
            _ => Err(Error::Closed),
        }
    }

    /// The connection of an application, if it does not rest. Nothing is to be followed of one that was looked at only.
    #[inline]
    pub(crate) fn awake_of(&self, handle: TcpHandle) -> Option<&TcpSocket> {
        match self.slab.find(handle.0) {
            Some(Socket::Tcp(socket)) if socket.owner == Owner::Application => Some(socket),
            _ => None,
        }
    }

    /// The listener of an application.
    pub(crate) fn listener(&self, handle: ListenHandle) -> Result<&Listener, Error> {
        match self.slab.find(handle.0) {
            Some(Socket::Listen(listener)) => Ok(listener),
            _ => Err(Error::Closed),
        }
    }

    /// The listener of an application with its number, to change.
    pub(crate) fn listener_mut(
        &mut self,
        handle: ListenHandle,
    ) -> Result<(u32, &mut Listener), Error> {
        match self.slab.find_mut(handle.0) {
            Some(Socket::Listen(listener)) => Ok((handle.0.index(), listener)),
            _ => Err(Error::Closed),
        }
    }

    /// The UDP socket of an application.
    pub(crate) fn udp(&self, handle: UdpHandle) -> Result<&UdpSocket, Error> {
        match self.slab.find(handle.0) {
            Some(Socket::Udp(socket)) => Ok(socket),
            _ => Err(Error::Closed),
        }
    }

    /// The UDP socket of an application with its number, to change.
    pub(crate) fn udp_mut(&mut self, handle: UdpHandle) -> Result<(u32, &mut UdpSocket), Error> {
        match self.slab.find_mut(handle.0) {
            Some(Socket::Udp(socket)) => Ok((handle.0.index(), socket)),
            _ => Err(Error::Closed),
        }
    }
}
