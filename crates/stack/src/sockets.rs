//! The sockets of a host: their places, and the handles by which an application knows them.

use crate::error::Error;
use crate::slab::{Key, Slab};
use crate::udp::UdpSocket;
use alloc::boxed::Box;

/// Names a UDP socket. One that was closed names nothing any more, even if its place is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UdpHandle(Key);

/// A socket of any kind. They share one space of numbers, so that timers, turns and events need no
/// further word to say whose they are.
#[derive(Debug)]
pub(crate) enum Socket {
    Udp(Box<UdpSocket>),
}

/// All sockets of a host.
#[derive(Debug)]
pub(crate) struct Sockets {
    slab: Slab<Socket>,
    limit: usize,
}

impl Sockets {
    pub(crate) const fn new(limit: usize) -> Self {
        Self { slab: Slab::new(), limit }
    }

    /// May there be one socket more?
    pub(crate) const fn has_room(&self) -> Result<(), Error> {
        if self.slab.len() < self.limit { Ok(()) } else { Err(Error::TooManySockets { limit: self.limit }) }
    }

    pub(crate) fn insert(&mut self, socket: Socket) -> Key {
        self.slab.insert(socket)
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<Socket> {
        self.slab.remove(index)
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Socket> {
        self.slab.get(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Socket)> {
        self.slab.iter()
    }

    pub(crate) fn udp_handle(&self, index: u32) -> Option<UdpHandle> {
        matches!(self.slab.get(index)?, Socket::Udp(_)).then(|| self.slab.key(index).map(UdpHandle))?
    }

    /// The UDP socket with this number, whoever holds it.
    pub(crate) fn udp_at(&mut self, index: u32) -> Option<&mut UdpSocket> {
        match self.slab.get_mut(index)? {
            Socket::Udp(socket) => Some(socket),
        }
    }

    /// The UDP socket of an application.
    pub(crate) fn udp(&self, handle: UdpHandle) -> Result<&UdpSocket, Error> {
        match self.slab.get(handle.0.index) {
            Some(Socket::Udp(socket)) if self.slab.fits(handle.0) => Ok(socket),
            _ => Err(Error::Closed),
        }
    }

    /// The UDP socket of an application with its number, to change.
    pub(crate) fn udp_mut(&mut self, handle: UdpHandle) -> Result<(u32, &mut UdpSocket), Error> {
        let fits = self.slab.fits(handle.0);
        match self.slab.get_mut(handle.0.index) {
            Some(Socket::Udp(socket)) if fits => Ok((handle.0.index, socket)),
            _ => Err(Error::Closed),
        }
    }
}
