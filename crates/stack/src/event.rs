//! Events for the application, and their queue. The size of the queue is bounded, because each
//! socket is in the queue at most once, with a bit for each kind of event.

use crate::collections::give_back;
use crate::collections::list::{Links, List};
use crate::handle::{ListenHandle, RawHandle, TcpHandle, UdpHandle};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::hint::cold_path;
use core::net::IpAddr;
use linerate_tcp::Event as TcpEvent;
use linerate_units::Instant;
use linerate_wire::{IcmpError, Icmpv6Error};

/// An event for the application. For each socket, the queue contains each kind of event at most
/// once. An event that occurs again before the application has polled it is therefore reported
/// once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An event of a connection.
    Tcp(TcpHandle, TcpEvent),
    /// A connection waits in the accept queue of this listener.
    Incoming(ListenHandle),
    /// An event of a UDP socket.
    Udp(UdpHandle, UdpEvent),
    /// An event of a raw socket.
    Raw(RawHandle, RawEvent),
    /// A reply to an echo request of this host.
    EchoReply(EchoReply),
    /// An echo request of this host has failed: an ICMP error was received, or the next hop did not
    /// answer address resolution.
    EchoError(EchoError),
    /// The addresses of the host or their states have changed ([`crate::Stack::addresses`]).
    Addresses,
    /// The lease of the DHCP client was granted, renewed or ended.
    Dhcp,
}

/// An event of a UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UdpEvent {
    /// A datagram can be received.
    Readable,
    /// The send queue has room again. Reported only after the socket has refused a datagram because
    /// the send queue was full.
    Writable,
    /// A sent datagram has caused an error: an ICMP error was received, or the next hop did not
    /// answer address resolution.
    Error,
}

/// An event of a raw socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RawEvent {
    /// A packet can be received.
    Readable,
    /// The send queue has room again. Reported only after the socket has refused a packet because
    /// the send queue was full.
    Writable,
}

impl RawEvent {
    const ALL: [Self; 2] = [Self::Readable, Self::Writable];

    /// Returns the bit that represents this event in the event queue.
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }

    pub(crate) fn of(kind: u8) -> Option<Self> {
        Self::ALL.get(usize::from(kind)).copied()
    }
}

/// The reply to an echo request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EchoReply {
    /// The address from which the reply was sent.
    pub source: IpAddr,
    /// The identifier of the request.
    pub identifier: u16,
    /// The sequence number of the request.
    pub sequence: u16,
    /// The data of the reply. They equal the data of the request, unless the replying host is
    /// faulty.
    pub data: Vec<u8>,
    /// The TTL or hop limit of the received packet.
    pub ttl: u8,
    /// The time at which the reply arrived.
    pub arrived: Instant,
}

/// The failure of an echo request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoError {
    /// The host or router that sent the ICMP error; an address of this host itself if the next hop
    /// did not answer address resolution.
    pub reporter: IpAddr,
    /// The destination of the request.
    pub destination: IpAddr,
    /// The identifier of the request.
    pub identifier: u16,
    /// The sequence number of the request.
    pub sequence: u16,
    /// The reported error.
    pub error: ReportedError,
}

/// The error that an ICMP or ICMPv6 message reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedError {
    /// An error of ICMP.
    V4(IcmpError),
    /// An error of ICMPv6.
    V6(Icmpv6Error),
}

impl fmt::Display for ReportedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(error) => error.fmt(f),
            Self::V6(error) => error.fmt(f),
        }
    }
}

/// The queue of events for the application.
#[derive(Debug)]
pub(crate) struct EventQueue {
    links: Links,
    waiting: List,
    /// The pending events of each socket, one bit for each kind of event. Invariant: a socket has a
    /// pending event if and only if it is in `waiting`.
    kinds: Vec<u8>,
    /// Events of the host itself, not of its sockets. The number of echo events is at most
    /// `echo_limit`, and each other event is in the queue at most once.
    host: VecDeque<Event>,
    echo_limit: usize,
}

impl EventQueue {
    /// Creates an empty queue.
    pub(crate) const fn new(echo_limit: usize) -> Self {
        Self {
            links: Links::new(),
            waiting: List::EMPTY,
            kinds: Vec::new(),
            host: VecDeque::new(),
            echo_limit,
        }
    }

    /// Adds the events in the bit mask `kinds` to the pending events of a socket. At least one bit
    /// must be set.
    pub(crate) fn note(&mut self, socket: u32, kinds: u8) {
        match self.kinds.get_mut(socket as usize) {
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

    /// Adds an event about an echo request. Returns false, and drops the event, if the limit of
    /// queued echo events is reached.
    pub(crate) fn note_echo(&mut self, event: Event) -> bool {
        let fits = self.host.len() < self.echo_limit;
        if fits {
            self.host.push_back(event);
        }
        fits
    }

    /// Adds an event about a change of addresses or of the DHCP lease, unless this event is already
    /// in the queue.
    pub(crate) fn note_change(&mut self, event: Event) {
        if !self.host.contains(&event) {
            self.host.push_back(event);
        }
    }

    /// Removes the pending events of a closed socket.
    pub(crate) fn forget(&mut self, socket: u32) {
        if self.links.contains(socket) {
            cold_path();
            self.links.remove(&mut self.waiting, socket);
            self.kinds[socket as usize] = 0;
        }
    }

    /// Frees the entries of sockets with an index of `sockets` or more. These sockets no longer
    /// exist.
    #[cold]
    pub(crate) fn shrink(&mut self, sockets: usize) {
        self.links.shrink(sockets);
        self.kinds.truncate(sockets);
        give_back(&mut self.kinds);
    }

    /// Is the queue empty?
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.host.is_empty()
    }

    /// Removes and returns the next event of a socket, as the index of the socket and the number of
    /// the event's bit. The socket is the one that has been in the queue longest. Of its pending
    /// events, the event with the lowest bit is returned.
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

    /// Removes and returns the next event that concerns the host itself, not one of its sockets.
    #[inline(never)]
    pub(crate) fn poll_host(&mut self) -> Option<Event> {
        self.host.pop_front()
    }

    /// Returns the sockets with pending events.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = u32> + '_ {
        self.links.iter(&self.waiting)
    }
}

/// The bit of [`Event::Incoming`] in the event queue. [`TcpEvent`] defines the bits of a
/// connection's events.
pub(crate) const INCOMING: u8 = 1;

impl UdpEvent {
    const ALL: [Self; 3] = [Self::Readable, Self::Writable, Self::Error];

    /// Returns the bit that represents this event in the event queue.
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
    fn events_of_a_socket_are_merged_and_polled_in_order() {
        let mut queue = EventQueue::new(1);
        for (socket, kind) in [(7, 2), (3, 0), (7, 0), (7, 2)] {
            queue.note(socket, 1 << kind);
        }
        let polled: Vec<_> = core::iter::from_fn(|| queue.poll_socket()).collect();
        assert_eq!(polled, [(7, 0), (7, 2), (3, 0)]);
    }

    #[test]
    fn a_removed_socket_has_no_events() {
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
    fn every_kind_maps_to_its_bit_and_back() {
        for (number, event) in (0..).zip(UdpEvent::ALL) {
            assert_eq!((UdpEvent::of(number), event.bit()), (Some(event), 1 << number));
        }
        assert_eq!(UdpEvent::of(3), None);
    }
}
