//! What happened to a connection that its application may want to know.

use crate::rest::pack::{Pack, Packer, Unpacker};
use bitflags::bitflags;

/// What may yet become the end of a connection (RFC 9293 §3.9.1.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// A router, or the peer's host, has said that the peer cannot be reached.
    Unreachable,
    /// The same segment was sent again as often as R1 says (RFC 9293 §3.8.3), and nothing came back.
    Silent,
}

/// One thing that happened. Events of one kind are merged until they are polled, so there are
/// never more than a handful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// There is something to read.
    Readable,
    /// The peer has announced urgent data (RFC 6093); it is read in line.
    Urgent,
    /// The peer will send no more; what has arrived can still be read.
    EndOfStream,
    /// Acknowledged data has left the send buffer, and there was not room for all that was to be written: there
    /// is more of it now. Told with each acknowledgement until the buffer is empty.
    Writable,
    /// The network has reported a problem, or the peer does not answer:
    /// [`crate::Connection::trouble`] says which. It may pass.
    Trouble,
    /// The connection is over; [`crate::Connection::error`] says why, if not by mutual consent.
    Closed,
    /// The largest packet that the path is believed to take has changed, or it is known now that no larger
    /// one passes: [`crate::Connection::path_mtu`] says how large it is.
    PathMtu,
}

impl Event {
    /// All events, in the order in which they are told.
    pub const ALL: [Self; 8] = [
        Self::Connected,
        Self::Readable,
        Self::Urgent,
        Self::EndOfStream,
        Self::Writable,
        Self::Trouble,
        Self::Closed,
        Self::PathMtu,
    ];
}

bitflags! {
    /// The events that wait to be polled: a bit for each, in the order of [`Event::ALL`].
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
        /// [`Event::Trouble`].
        const TROUBLE = 1 << Event::Trouble as u8;
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
    /// Takes out the first event.
    pub(crate) fn pop(&mut self) -> Option<Event> {
        let event = Event::ALL.get(self.bits().trailing_zeros() as usize)?;
        *self = Self::from_bits_retain(self.bits() & (self.bits() - 1));
        Some(*event)
    }
}
