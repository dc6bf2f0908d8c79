//! The sockets of a host, in one slab, and the lookup of a socket by its handle or index.

use crate::collections::slab::{Key, Slab};
use crate::error::Error;
use crate::event::{Event, RawEvent, UdpEvent};
use crate::handle::{ListenHandle, RawHandle, TcpHandle, UdpHandle};
use crate::ip::egress::Egress;
use crate::raw::RawSocket;
use crate::tcp::listen::Listener;
use crate::tcp::{CompactSocket, Owner, TcpSocket, TcpView};
use crate::udp::UdpSocket;
use alloc::boxed::Box;
use alloc::vec::Vec;
use linerate_tcp::{Event as TcpEvent, TimeWaitRecord};
use linerate_units::Instant;

/// A socket of any kind. All kinds of sockets share one index space, so that timers, senders and
/// events identify a socket by one number.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(Box<TcpSocket>),
    /// An idle connection in compact form.
    Compact(Box<CompactSocket>),
    /// An orphaned connection in TIME-WAIT, stored as a small record.
    TimeWait(Box<CompactSocket<TimeWaitRecord>>),
    Listen(Box<Listener>),
    Udp(Box<UdpSocket>),
    Raw(Box<RawSocket>),
}

impl Socket {
    /// Returns the connection, or `None` if the socket is not a TCP connection.
    pub(crate) fn as_tcp(&self) -> Option<TcpView<'_>> {
        match self {
            Self::Tcp(socket) => Some(TcpView::Full(socket)),
            Self::Compact(socket) => Some(TcpView::Unpacked(socket.view())),
            Self::TimeWait(socket) => Some(TcpView::Unpacked(socket.view())),
            Self::Listen(_) | Self::Udp(_) | Self::Raw(_) => None,
        }
    }

    /// Returns the owner of the connection, or `None` if the socket is not a TCP connection.
    const fn owner(&self) -> Option<Owner> {
        match self {
            Self::Tcp(socket) => Some(socket.owner),
            Self::Compact(socket) => Some(socket.owner()),
            Self::TimeWait(socket) => Some(socket.owner()),
            Self::Listen(_) | Self::Udp(_) | Self::Raw(_) => None,
        }
    }

    /// Returns the connection in full form, unpacking it if necessary. Returns `None` if the socket
    /// is not a TCP connection.
    #[inline]
    fn unpack(&mut self, now: Instant) -> Option<&mut TcpSocket> {
        if let Self::Tcp(socket) = self { Some(socket) } else { self.unpack_compact(now) }
    }

    #[cold]
    fn unpack_compact(&mut self, now: Instant) -> Option<&mut TcpSocket> {
        match self {
            Self::Compact(socket) => *self = Self::Tcp(socket.unpack(now)),
            Self::TimeWait(socket) => *self = Self::Tcp(socket.unpack(now)),
            Self::Tcp(_) | Self::Listen(_) | Self::Udp(_) | Self::Raw(_) => {}
        }
        if let Self::Tcp(socket) = self { Some(socket) } else { None }
    }
}

/// Maximum number of allocations of full TCP sockets in the free list.
const SPARE: usize = 4;

/// Maximum number of allocations of TIME-WAIT records in their free list. It is larger than
/// [`SPARE`], because many TIME-WAIT records expire at once.
const SPARE_RECORDS: usize = 32;

/// The sockets of a host.
#[derive(Debug)]
pub(crate) struct Sockets {
    slab: Slab<Socket>,
    limit: usize,
    /// A free list of full TCP sockets, because a new allocation of this size is slow, and reused
    /// memory is still in the processor's caches. Invariant: the list has at most [`SPARE`]
    /// entries, and no entry holds buffer memory.
    #[allow(clippy::vec_box, reason = "the boxes are what is kept")]
    spare: Vec<Box<TcpSocket>>,
    /// A free list of TIME-WAIT records. Invariant: the list has at most [`SPARE_RECORDS`] entries.
    #[allow(clippy::vec_box, reason = "the boxes are what is kept")]
    spare_records: Vec<Box<CompactSocket<TimeWaitRecord>>>,
    /// The current time of the host: the latest time that was passed to it. The idle time of a
    /// connection that is unpacked from its compact form begins at this time.
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

    /// Converts an entry of the event queue to an event. `index` is the index of the socket, and
    /// `kind` the number of the bit that stands for the event. Returns `None` if there is no such
    /// socket or event.
    #[inline]
    pub(crate) fn event(&self, index: u32, kind: u8) -> Option<Event> {
        let (key, socket) = self.entry(index)?;
        Some(match socket {
            Socket::Tcp(_) | Socket::Compact(_) | Socket::TimeWait(_) => {
                Event::Tcp(TcpHandle(key), *TcpEvent::ALL.get(usize::from(kind))?)
            }
            Socket::Listen(_) => Event::Incoming(ListenHandle(key)),
            Socket::Udp(_) => Event::Udp(UdpHandle(key), UdpEvent::of(kind)?),
            Socket::Raw(_) => Event::Raw(RawHandle(key), RawEvent::of(kind)?),
        })
    }

    /// Returns [`Error::TooManySockets`] if the limit of sockets is reached.
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

    /// Removes and returns an allocation from the free list of full TCP sockets. It still contains
    /// the fields of a connection that has ended, all of which the caller must overwrite.
    #[inline(always)]
    pub(crate) fn take_spare(&mut self) -> Option<Box<TcpSocket>> {
        self.spare.pop()
    }

    /// Inserts a new connection.
    #[inline(always)]
    pub(crate) fn insert_tcp(&mut self, socket: Box<TcpSocket>) -> TcpHandle {
        TcpHandle(self.insert(Socket::Tcp(socket)))
    }

    /// Removes a socket. If the slab then has fewer slots, returns the number of slots that remain,
    /// otherwise `None`. The caller shrinks all other tables that are indexed by socket to this
    /// number.
    pub(crate) fn remove(&mut self, index: u32) -> Option<usize> {
        let socket = self.slab.remove(index)?;
        self.keep_spare(socket);
        self.slab.shrink()
    }

    fn keep_spare(&mut self, socket: Socket) {
        match socket {
            Socket::Tcp(socket)
                if self.spare.len() < SPARE && socket.connection.buffer_memory() == 0 =>
            {
                self.spare.push(socket);
            }
            Socket::TimeWait(record) if self.spare_records.len() < SPARE_RECORDS => {
                self.spare_records.push(record);
            }
            _ => {}
        }
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Socket> {
        self.slab.get(index)
    }

    /// Returns a mutable reference to the egress of a socket's packets; `None` for a listener.
    pub(crate) fn egress_mut(&mut self, index: u32) -> Option<&mut Egress> {
        match self.slab.get_mut(index)? {
            Socket::Tcp(socket) => Some(&mut socket.egress),
            Socket::Compact(socket) => Some(&mut socket.fields.egress),
            Socket::TimeWait(socket) => Some(&mut socket.fields.egress),
            Socket::Udp(socket) => Some(&mut socket.egress),
            Socket::Raw(socket) => Some(&mut socket.egress),
            Socket::Listen(_) => None,
        }
    }

    /// Returns the socket at this index, with its key.
    #[inline]
    pub(crate) fn entry(&self, index: u32) -> Option<(Key, &Socket)> {
        self.slab.entry(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Socket)> {
        self.slab.iter()
    }

    /// Returns the handle of the connection at this index.
    pub(crate) fn tcp_handle(&self, index: u32) -> Option<TcpHandle> {
        self.slab.get(index)?.owner().and_then(|_| self.slab.key(index).map(TcpHandle))
    }

    /// Returns the handle of the listener at this index.
    pub(crate) fn listen_handle(&self, index: u32) -> Option<ListenHandle> {
        matches!(self.slab.get(index)?, Socket::Listen(_))
            .then(|| self.slab.key(index).map(ListenHandle))?
    }

    /// Returns the handle of the UDP socket at this index.
    pub(crate) fn udp_handle(&self, index: u32) -> Option<UdpHandle> {
        matches!(self.slab.get(index)?, Socket::Udp(_))
            .then(|| self.slab.key(index).map(UdpHandle))?
    }

    /// Returns a mutable reference to the connection at this index, whether or not the connection
    /// has an owner. Converts a compact connection to its full form.
    #[inline]
    pub(crate) fn tcp_at(&mut self, index: u32) -> Option<&mut TcpSocket> {
        self.slab.get_mut(index)?.unpack(self.now)
    }

    /// Returns the connection at this index if it is in full form.
    #[inline]
    pub(crate) fn full_at(&mut self, index: u32) -> Option<&mut TcpSocket> {
        if let Some(Socket::Tcp(socket)) = self.slab.get_mut(index) { Some(socket) } else { None }
    }

    /// Returns the connection at this index with its handle, if the connection is in full form.
    #[inline]
    pub(crate) fn full_entry(&mut self, index: u32) -> Option<(TcpHandle, &mut TcpSocket)> {
        let (key, socket) = self.slab.entry_mut(index)?;
        if let Socket::Tcp(socket) = socket { Some((TcpHandle(key), socket)) } else { None }
    }

    /// Replaces the connection at this index by its compact form.
    pub(crate) fn replace_by_compact(&mut self, index: u32, compact: Socket) {
        if let Some(socket) = self.slab.get_mut(index) {
            let full = core::mem::replace(socket, compact);
            self.keep_spare(full);
        }
    }

    /// Replaces the connection at this index by a TIME-WAIT record, if a record can hold all of the
    /// connection's state. Returns the time at which TIME-WAIT ends, or `None` if the connection
    /// was not replaced.
    #[inline(always)]
    pub(crate) fn replace_by_record(&mut self, index: u32) -> Option<Instant> {
        let place = self.slab.get_mut(index)?;
        let Socket::Tcp(socket) = place else { return None };
        let record = match self.spare_records.last_mut() {
            Some(spare) => spare.overwrite(socket).then(|| self.spare_records.pop())?,
            None => CompactSocket::<TimeWaitRecord>::of(socket),
        }?;
        let end = record.deadline();
        let full = core::mem::replace(place, Socket::TimeWait(record));
        self.keep_spare(full);
        Some(end)
    }

    /// Returns the end of TIME-WAIT, if the socket at this index is a TIME-WAIT record.
    pub(crate) fn time_wait_end(&self, index: u32) -> Option<Instant> {
        if let Some(Socket::TimeWait(socket)) = self.slab.get(index) {
            Some(socket.deadline())
        } else {
            None
        }
    }

    /// Returns the listener at this index.
    pub(crate) fn listener_at(&mut self, index: u32) -> Option<&mut Listener> {
        match self.slab.get_mut(index)? {
            Socket::Listen(listener) => Some(listener),
            _ => None,
        }
    }

    /// Returns the UDP socket at this index.
    pub(crate) fn udp_at(&mut self, index: u32) -> Option<&mut UdpSocket> {
        match self.slab.get_mut(index)? {
            Socket::Udp(socket) => Some(socket),
            _ => None,
        }
    }

    /// Returns the connection with this handle, if it belongs to the application.
    pub(crate) fn tcp(&self, handle: TcpHandle) -> Result<TcpView<'_>, Error> {
        let socket =
            self.slab.find(handle.0).filter(|socket| socket.owner() == Some(Owner::Application));
        socket.and_then(Socket::as_tcp).ok_or(Error::Closed)
    }

    /// Returns a mutable reference to the connection with this handle, and its index, if the
    /// connection belongs to the application. Converts a compact connection to its full form.
    #[inline]
    pub(crate) fn tcp_mut(&mut self, handle: TcpHandle) -> Result<(u32, &mut TcpSocket), Error> {
        match self.slab.find_mut(handle.0).and_then(|socket| socket.unpack(self.now)) {
            Some(socket) if socket.owner == Owner::Application => Ok((handle.0.index(), socket)),
            _ => Err(Error::Closed),
        }
    }

    /// Returns the connection with this handle, if it belongs to the application and is in full
    /// form. The result is for reading only: the caller does not dispatch, so a change would leave
    /// the timers and events of the host out of date.
    #[inline]
    pub(crate) fn full_tcp(&self, handle: TcpHandle) -> Option<&TcpSocket> {
        match self.slab.find(handle.0) {
            Some(Socket::Tcp(socket)) if socket.owner == Owner::Application => Some(socket),
            _ => None,
        }
    }

    /// Returns the listener with this handle.
    pub(crate) fn listener(&self, handle: ListenHandle) -> Result<&Listener, Error> {
        match self.slab.find(handle.0) {
            Some(Socket::Listen(listener)) => Ok(listener),
            _ => Err(Error::Closed),
        }
    }

    /// Returns a mutable reference to the listener with this handle, and its index.
    pub(crate) fn listener_mut(
        &mut self,
        handle: ListenHandle,
    ) -> Result<(u32, &mut Listener), Error> {
        match self.slab.find_mut(handle.0) {
            Some(Socket::Listen(listener)) => Ok((handle.0.index(), listener)),
            _ => Err(Error::Closed),
        }
    }

    /// Returns the UDP socket with this handle.
    pub(crate) fn udp(&self, handle: UdpHandle) -> Result<&UdpSocket, Error> {
        match self.slab.find(handle.0) {
            Some(Socket::Udp(socket)) => Ok(socket),
            _ => Err(Error::Closed),
        }
    }

    /// Returns a mutable reference to the UDP socket with this handle, and its index.
    pub(crate) fn udp_mut(&mut self, handle: UdpHandle) -> Result<(u32, &mut UdpSocket), Error> {
        match self.slab.find_mut(handle.0) {
            Some(Socket::Udp(socket)) => Ok((handle.0.index(), socket)),
            _ => Err(Error::Closed),
        }
    }

    /// Returns the raw socket at this index.
    pub(crate) fn raw_at(&mut self, index: u32) -> Option<&mut RawSocket> {
        if let Socket::Raw(socket) = self.slab.get_mut(index)? { Some(socket) } else { None }
    }

    /// Returns a mutable reference to the raw socket with this handle, and its index.
    pub(crate) fn raw_mut(&mut self, handle: RawHandle) -> Result<(u32, &mut RawSocket), Error> {
        match self.slab.find_mut(handle.0) {
            Some(Socket::Raw(socket)) => Ok((handle.0.index(), socket)),
            _ => Err(Error::Closed),
        }
    }
}
