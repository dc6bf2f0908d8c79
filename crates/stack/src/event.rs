//! What happened that an application may want to know, in a queue that cannot grow: each socket
//! stands in it once, with one bit for each kind of event.

use crate::collections::list::{Links, List};
use crate::handle::{ListenHandle, TcpHandle, UdpHandle};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hint::cold_path;
use core::net::Ipv4Addr;
use linerate_tcp::Event as TcpEvent;
use linerate_units::Instant;
use linerate_wire::IcmpError;

/// One thing that happened. Events of one kind and one socket are merged until they are polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// To a connection.
    Tcp(TcpHandle, TcpEvent),
    /// A connection can be accepted.
    Incoming(ListenHandle),
    /// To a UDP socket.
    Udp(UdpHandle, UdpEvent),
    /// Somebody answered an echo request of this host.
    EchoReply(EchoReply),
    /// An echo request of this host met a problem.
    EchoError(EchoError),
}

/// What happened to a UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UdpEvent {
    /// There is a datagram to receive.
    Readable,
    /// There is room to send again, after a refusal for want of it.
    Writable,
    /// The network reported a problem with a datagram that the socket sent.
    Error,
}

/// The answer to an echo request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EchoReply {
    /// Who answered.
    pub source: Ipv4Addr,
    /// The identifier of the request.
    pub identifier: u16,
    /// The sequence number of the request.
    pub sequence: u16,
    /// What came back; the data of the request, if nothing changed it.
    pub data: Vec<u8>,
    /// Routers that the answer might still have passed.
    pub ttl: u8,
    /// When the answer arrived.
    pub arrived: Instant,
}

/// The problem that an echo request met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoError {
    /// Who reports it; this host itself if the neighbour did not answer.
    pub reporter: Ipv4Addr,
    /// Where the request was going.
    pub destination: Ipv4Addr,
    /// The identifier of the request.
    pub identifier: u16,
    /// The sequence number of the request.
    pub sequence: u16,
    /// The problem.
    pub error: IcmpError,
}

/// Events that wait to be polled.
#[derive(Debug)]
pub(crate) struct EventQueue {
    links: Links,
    waiting: List,
    /// One bit for each kind of event, by socket. Invariant: not zero exactly for those in `waiting`.
    kinds: Vec<u8>,
    echoes: VecDeque<Event>,
    echo_limit: usize,
}

impl EventQueue {
    /// Nothing has happened.
    pub(crate) const fn new(echo_limit: usize) -> Self {
        Self {
            links: Links::new(),
            waiting: List::EMPTY,
            kinds: Vec::new(),
            echoes: VecDeque::new(),
            echo_limit,
        }
    }

    /// Notes what happened to a socket: a bit for each kind, one at least.
    #[inline]
    pub(crate) fn note(&mut self, socket: u32, kinds: u8) {
        match self.kinds.get_mut(socket as usize) {
            // It waits already.
            Some(known) if *known != 0 => *known |= kinds,
            Some(known) => {
                *known = kinds;
                self.links.push_back(&mut self.waiting, socket);
            }
            None => self.note_first(socket, kinds),
        }
    }

    #[cold]
    fn note_first(&mut self, socket: u32, kinds: u8) {
        self.kinds.resize(socket as usize + 1, 0);
        self.note(socket, kinds);
    }

    /// Notes an event of this host as a whole; false if too many wait already.
    pub(crate) fn note_echo(&mut self, event: Event) -> bool {
        let fits = self.echoes.len() < self.echo_limit;
        if fits {
            self.echoes.push_back(event);
        }
        fits
    }

    /// Forgets what happened to a socket that nobody holds any more.
    pub(crate) fn forget(&mut self, socket: u32) {
        if self.links.contains(socket) {
            cold_path();
            self.links.remove(&mut self.waiting, socket);
            self.kinds[socket as usize] = 0;
        }
    }

    /// Has nothing happened that was not told?
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.echoes.is_empty()
    }

    /// Takes the next event of a socket: the lowest kind of the socket that has waited longest.
    #[inline]
    pub(crate) fn poll_socket(&mut self) -> Option<(u32, u8)> {
        let socket = self.waiting.first()?;
        let kinds = self.kinds.get_mut(socket as usize)?;
        #[allow(clippy::cast_possible_truncation, reason = "eight kinds")]
        let kind = kinds.trailing_zeros() as u8;
        *kinds &= *kinds - 1;
        if *kinds == 0 {
            self.links.pop_front(&mut self.waiting);
        }
        Some((socket, kind))
    }

    /// Takes the next event of the host as a whole.
    #[inline(never)]
    pub(crate) fn poll_echo(&mut self) -> Option<Event> {
        self.echoes.pop_front()
    }

    /// The sockets that have events.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = u32> + '_ {
        self.links.iter(&self.waiting)
    }
}

/// The bit of [`Event::Incoming`] in the queue. Those of a connection are the connection's own.
pub(crate) const INCOMING: u8 = 1;

impl UdpEvent {
    const ALL: [Self; 3] = [Self::Readable, Self::Writable, Self::Error];

    /// Its bit in the queue.
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }

    pub(crate) fn of(kind: u8) -> Option<Self> {
        Self::ALL.get(usize::from(kind)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_socket_are_merged_and_come_in_order() {
        let mut queue = EventQueue::new(1);
        for (socket, kind) in [(7, 2), (3, 0), (7, 0), (7, 2)] {
            queue.note(socket, 1 << kind);
        }
        let polled: Vec<_> = core::iter::from_fn(|| queue.poll_socket()).collect();
        assert_eq!(polled, [(7, 0), (7, 2), (3, 0)]);
    }

    #[test]
    fn a_socket_that_nobody_holds_has_no_events() {
        let mut queue = EventQueue::new(1);
        queue.note(1, 0b10);
        queue.note(2, 0b10);
        queue.forget(1);
        queue.forget(5);
        assert_eq!(queue.poll_socket(), Some((2, 1)));
        assert_eq!(queue.poll_socket(), None);
        queue.note(1, 0b1);
        assert_eq!(queue.poll_socket(), Some((1, 0)));
    }

    #[test]
    fn every_kind_is_found_by_its_number() {
        for (number, event) in (0..).zip(UdpEvent::ALL) {
            assert_eq!((UdpEvent::of(number), event.bit()), (Some(event), 1 << number));
        }
        assert_eq!(UdpEvent::of(3), None);
    }
}
