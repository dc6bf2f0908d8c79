//! Sending and receiving several datagrams in one call, like the socket options `UDP_SEGMENT` and
//! `UDP_GRO` of Linux.

use crate::demux::binding::end_of_packets;
use crate::error::Error;
use crate::handle::UdpHandle;
use crate::ip::header_length;
use crate::stack::Stack;
use crate::udp::{ReceivedSegments, data_limit};
use core::net::SocketAddr;
use core::num::NonZeroUsize;
use linerate_units::Instant;
use linerate_wire::UdpHeader;

/// # Application calls: several datagrams
impl Stack {
    /// Sends `data` to `remote` as several datagrams of `segment` bytes each; the last datagram may
    /// be shorter. The host queues either all datagrams or none.
    ///
    /// # Errors
    /// The errors of [`Stack::udp_send_to`]. [`Error::MessageTooLong`] is also returned if the send
    /// queue is too small for all datagrams together.
    pub fn udp_send_segments(
        &mut self,
        now: Instant,
        handle: UdpHandle,
        remote: impl Into<SocketAddr>,
        data: &[u8],
        segment: NonZeroUsize,
    ) -> Result<(), Error> {
        let given = remote.into();
        if data.len() <= segment.get() {
            return self.udp_send_to(now, handle, given, data);
        }
        self.advance_clock(now);
        let interface = self.interface_of_datagrams(handle, &given)?;
        let remote = end_of_packets(given);
        self.serving(interface, |stack| stack.send_segments(now, handle, remote, data, segment))
    }

    fn send_segments(
        &mut self,
        now: Instant,
        handle: UdpHandle,
        remote: SocketAddr,
        data: &[u8],
        segment: NonZeroUsize,
    ) -> Result<(), Error> {
        let (index, socket) = self.sockets.udp_mut(handle)?;
        let count = data.len().div_ceil(segment.get());
        let headers = header_length(remote.ip()) + UdpHeader::LENGTH;
        let bytes = data.len() + count * headers;
        let (can_fit, has_room) =
            (socket.to_send.can_contain(count, bytes), socket.to_send.has_room_for(count, bytes));
        let (binding, fragmentation) = (socket.binding, socket.fragmentation);
        let may = (socket.broadcast, socket.forwarded.is_some());
        let largest = data_limit(socket.to_send.largest(), remote.ip());
        let to = self.check_destination(now, &binding, remote, may)?;
        let limit = to.limit(fragmentation).min(largest);
        if segment.get() > limit || !can_fit {
            return Err(Error::MessageTooLong { limit });
        }
        if !has_room {
            if let Some(socket) = self.sockets.udp_at(index) {
                socket.wants_writable = true;
            }
            self.counted.udp.send_buffer_errors += 1;
            return Err(Error::WouldBlock);
        }
        for datagram in data.chunks(segment.get()) {
            self.queue_datagram(index, &to, remote, datagram);
        }
        Ok(())
    }

    /// Receives the next datagram, and the datagrams behind it that have the same sender and the
    /// same size. The final datagram may be shorter. Copies the data of all these datagrams to
    /// `into` without gaps. Datagrams that do not fit stay in the queue, but if the first one does
    /// not fit, the rest of its data is lost.
    ///
    /// # Errors
    /// The errors of [`Stack::udp_receive_from`].
    pub fn udp_receive_segments(
        &mut self,
        handle: UdpHandle,
        into: &mut [u8],
    ) -> Result<ReceivedSegments, Error> {
        let (segment, from) = self.udp_receive_from(handle, into)?;
        let mut length = segment;
        let (_, socket) = self.sockets.udp_mut(handle)?;
        while segment > 0
            && length.is_multiple_of(segment)
            && let Some((&other, data)) = socket.received.front()
            && socket.binding.shown(other) == from
            && data.len() <= segment
            && !data.is_empty()
            && let Some(room) = into.get_mut(length..length + data.len())
        {
            room.copy_from_slice(data);
            length += data.len();
            socket.received.drop_front();
        }
        Ok(ReceivedSegments { length, segment, from })
    }
}
