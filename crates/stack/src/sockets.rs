//! The sockets of a host, in one slab, and their handles.

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

/// A socket of any kind. All kinds share one index space, so that timers, senders and events
/// identify a socket by one number.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(Box<TcpSocket>),
    /// A connection without activity, in compact form.
    Compact(Box<CompactSocket>),
    /// An orphaned connection in TIME-WAIT, as a record.
    TimeWait(Box<CompactSocket<TimeWaitRecord>>),
    Listen(Box<Listener>),
    Udp(Box<UdpSocket>),
    Raw(Box<RawSocket>),
}

impl Socket {
    /// Returns the connection, if the socket is one.
    pub(crate) fn as_tcp(&self) -> Option<TcpView<'_>> {
        match self {
            Self::Tcp(socket) => Some(TcpView::Full(socket)),
            Self::Compact(socket) => Some(TcpView::Unpacked(socket.view())),
            Self::TimeWait(socket) => Some(TcpView::Unpacked(socket.view())),
            Self::Listen(_) | Self::Udp(_) | Self::Raw(_) => None,
        }
    }

    /// Returns the owner of the connection, if the socket is one.
    const fn owner(&self) -> Option<Owner> {
        match self {
            Self::Tcp(socket) => Some(socket.owner),
            Self::Compact(socket) => Some(socket.owner()),
            Self::TimeWait(socket) => Some(socket.owner()),
            Self::Listen(_) | Self::Udp(_) | Self::Raw(_) => None,
        }
    }

    /// Returns the connection in full form, if the socket is one.
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

/// Allocations of full sockets that are kept for reuse.
const SPARE: usize = 4;

/// Allocations of TIME-WAIT records that are kept for reuse. There are more of them than of full
/// sockets, because they expire in groups.
const SPARE_RECORDS: usize = 32;

/// The sockets of a host.
#[derive(Debug)]
pub(crate) struct Sockets {
    slab: Slab<Socket>,
    limit: usize,
    /// A free list of full sockets. Reused memory is in the processor's caches, and an allocation
    /// of this size is slow. Invariant: at most [`SPARE`], and none holds buffer memory.
    #[allow(clippy::vec_box, reason = "the boxes are what is kept")]
    spare: Vec<Box<TcpSocket>>,
    /// A free list of TIME-WAIT records. Invariant: at most [`SPARE_RECORDS`].
    #[allow(clippy::vec_box, reason = "the boxes are what is kept")]
    spare_records: Vec<Box<CompactSocket<TimeWaitRecord>>>,
    /// The latest time that the host was told. Unpacking a connection restarts its idle period at
    /// this time.
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

    /// Returns the event that the bit `kind` stands for, at the socket with this index.
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

    /// Removes and returns an allocation of the free list, which still contains an ended
    /// connection.
    #[inline(always)]
    pub(crate) fn take_spare(&mut self) -> Option<Box<TcpSocket>> {
        self.spare.pop()
    }

    /// Inserts a new connection.
    #[inline(always)]
    pub(crate) fn insert_tcp(&mut self, socket: Box<TcpSocket>) -> TcpHandle {
        TcpHandle(self.insert(Socket::Tcp(socket)))
    }

    /// Removes a socket. Returns the number of slots that remain if memory was given back: the
    /// tables that are indexed by socket can do the same.
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

    /// Returns the way of the packets of a socket; `None` for a listener.
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

    /// Returns the connection at this index for writing, unpacked, with any owner.
    #[inline]
    pub(crate) fn tcp_at(&mut self, index: u32) -> Option<&mut TcpSocket> {
        self.slab.get_mut(index)?.unpack(self.now)
    }

    /// Returns the connection at this index, unless it is compact.
    #[inline]
    pub(crate) fn full_at(&mut self, index: u32) -> Option<&mut TcpSocket> {
        if let Some(Socket::Tcp(socket)) = self.slab.get_mut(index) { Some(socket) } else { None }
    }

    /// Returns the connection at this index with its handle, unless it is compact.
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

    /// Replaces the connection at this index by a TIME-WAIT record, if nothing else needs to be
    /// kept. Returns the end of its TIME-WAIT.
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

    /// Returns the connection of an application's handle.
    pub(crate) fn tcp(&self, handle: TcpHandle) -> Result<TcpView<'_>, Error> {
        let socket =
            self.slab.find(handle.0).filter(|socket| socket.owner() == Some(Owner::Application));
        socket.and_then(Socket::as_tcp).ok_or(Error::Closed)
    }

    /// Returns the connection of an application's handle for writing, unpacked, with its index.
    #[inline]
    pub(crate) fn tcp_mut(&mut self, handle: TcpHandle) -> Result<(u32, &mut TcpSocket), Error> {
        match self.slab.find_mut(handle.0).and_then(|socket| socket.unpack(self.now)) {
            Some(socket) if socket.owner == Owner::Application => Ok((handle.0.index(), socket)),
            _ => Err(Error::Closed),
        }
    }

    /// Returns the connection of an application's handle, unless it is compact. Only for reading,
    /// since no dispatch follows.
    #[inline]
    pub(crate) fn full_tcp(&self, handle: TcpHandle) -> Option<&TcpSocket> {
        match self.slab.find(handle.0) {
            Some(Socket::Tcp(socket)) if socket.owner == Owner::Application => Some(socket),
            _ => None,
        }
    }

    /// Returns the listener of an application's handle.
    pub(crate) fn listener(&self, handle: ListenHandle) -> Result<&Listener, Error> {
        match self.slab.find(handle.0) {
            Some(Socket::Listen(listener)) => Ok(listener),
            _ => Err(Error::Closed),
        }
    }

    /// Returns the listener of an application's handle for writing, with its index.
    pub(crate) fn listener_mut(
        &mut self,
        handle: ListenHandle,
    ) -> Result<(u32, &mut Listener), Error> {
        match self.slab.find_mut(handle.0) {
            Some(Socket::Listen(listener)) => Ok((handle.0.index(), listener)),
            _ => Err(Error::Closed),
        }
    }

    /// Returns the UDP socket of an application's handle.
    pub(crate) fn udp(&self, handle: UdpHandle) -> Result<&UdpSocket, Error> {
        match self.slab.find(handle.0) {
            Some(Socket::Udp(socket)) => Ok(socket),
            _ => Err(Error::Closed),
        }
    }

    /// Returns the UDP socket of an application's handle for writing, with its index.
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

    /// Returns the raw socket of an application for writing, with its index.
    pub(crate) fn raw_mut(&mut self, handle: RawHandle) -> Result<(u32, &mut RawSocket), Error> {
        match self.slab.find_mut(handle.0) {
            Some(Socket::Raw(socket)) => Ok((handle.0.index(), socket)),
            _ => Err(Error::Closed),
        }
    }
}
