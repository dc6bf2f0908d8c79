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
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// There is something to read.
    Readable,
    /// Acknowledged data has left the send buffer: there is room to write.
    Writable,
    /// The peer will send no more; what has arrived can still be read.
    EndOfStream,
    /// The peer has announced urgent data (RFC 6093); it is read in line.
    Urgent,
    /// The network has reported a problem, or the peer does not answer:
    /// [`crate::Connection::trouble`] says which. It may pass.
    Trouble,
    /// The largest packet that the path is believed to take has changed, or it is known now that no larger
    /// one passes: [`crate::Connection::path_mtu`] says how large it is.
    PathMtu,
    /// The connection is over; [`crate::Connection::error`] says why, if not by mutual consent.
    Closed,
}

bitflags! {
    /// The events that wait to be polled.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Events: u8 {
        const CONNECTED = 1;
        const READABLE = 2;
        const WRITABLE = 4;
        const END_OF_STREAM = 8;
        const URGENT = 16;
        const TROUBLE = 32;
        const PATH_MTU = 64;
        const CLOSED = 128;
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
    /// Takes out the first event, in the order of a connection's life.
    pub(crate) fn pop(&mut self) -> Option<Event> {
        if self.is_empty() {
            return None;
        }
        let first = Self::from_bits_retain(self.bits() & self.bits().wrapping_neg());
        self.remove(first);
        Some(match first {
            Self::CONNECTED => Event::Connected,
            Self::READABLE => Event::Readable,
            Self::WRITABLE => Event::Writable,
            Self::END_OF_STREAM => Event::EndOfStream,
            Self::URGENT => Event::Urgent,
            Self::TROUBLE => Event::Trouble,
            Self::PATH_MTU => Event::PathMtu,
            _ => Event::Closed,
        })
    }
}
