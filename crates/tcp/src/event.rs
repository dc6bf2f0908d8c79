//! The events that a connection reports to its application.

use crate::compact::pack::{Pack, Packer, Unpacker};
use bitflags::bitflags;

/// A problem that does not end the connection, but may lead to its end if it persists (RFC 9293
/// §3.9.1.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SoftError {
    /// A router or the peer's host has reported that the peer cannot be reached.
    Unreachable,
    /// A segment was retransmitted, and got no answer, as many times as the limit R1 (RFC 9293
    /// §3.8.3).
    Silent,
}

/// An event for the application. Events of one kind are merged until the application takes them, so
/// their number is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// Received data can be read.
    Readable,
    /// The peer has announced urgent data (RFC 6093). It is read in order with other data.
    Urgent,
    /// The peer will send no more data. Data that has arrived can still be read.
    EndOfStream,
    /// The application can write again: acknowledged data has left the send buffer. Reported only
    /// after a write that did not fit completely. Each acknowledgement of data then reports it once
    /// more, until the buffer is empty.
    Writable,
    /// There is a problem that may be temporary: the network has reported an error, or the peer
    /// does not answer. [`crate::Connection::soft_error`] returns the problem.
    SoftError,
    /// The connection has ended. [`crate::Connection::error`] returns the reason, unless it was
    /// closed normally.
    Closed,
    /// The estimate of the path MTU has changed, or the search for it has ended: see
    /// [`crate::Connection::path_mtu`].
    PathMtu,
}

impl Event {
    /// All events, in the order in which they are reported if several are pending.
    pub const ALL: [Self; 8] = [
        Self::Connected,
        Self::Readable,
        Self::Urgent,
        Self::EndOfStream,
        Self::Writable,
        Self::SoftError,
        Self::Closed,
        Self::PathMtu,
    ];
}

bitflags! {
    /// A set of pending events. The bits are in the order of [`Event::ALL`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Events: u8 {
        /// [`Event::Connected`].
        const CONNECTED = 1 << Event::Connected as u8;
        /// [`Event::Readable`].
        const READABLE = 1 << Event::Readable as u8;
        /// [`Event::Urgent`].
        const URGENT = 1 << Event::Urgent as u8;
        /// [`Event::EndOfStream`].
        const END_OF_STREAM = 1 << Event::EndOfStream as u8;
        /// [`Event::Writable`].
        const WRITABLE = 1 << Event::Writable as u8;
        /// [`Event::SoftError`].
        const SOFT_ERROR = 1 << Event::SoftError as u8;
        /// [`Event::Closed`].
        const CLOSED = 1 << Event::Closed as u8;
        /// [`Event::PathMtu`].
        const PATH_MTU = 1 << Event::PathMtu as u8;
    }
}

impl Pack for Events {
    fn pack(&self, into: &mut Packer<'_>) {
        self.bits().pack(into);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Self::from_bits_truncate(Pack::unpack(from))
    }
}

impl Events {
    /// Removes the first event in the order of [`Event::ALL`], and returns it.
    pub(crate) fn pop(&mut self) -> Option<Event> {
        let event = Event::ALL.get(self.bits().trailing_zeros() as usize)?;
        *self = Self::from_bits_retain(self.bits() & (self.bits() - 1));
        Some(*event)
    }
}
