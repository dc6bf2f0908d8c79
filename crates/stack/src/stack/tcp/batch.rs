//! Transmission of a batch: after the first segment of a connection, the next segments of this
//! connection are written from one header template
//! ([`BatchHeaders`](crate::tcp::batch::BatchHeaders)).
//!
//! While a link takes the frames of a batch, no other method of the host can be called. So nothing
//! else reads the state of the connection, and this state is updated only once for all sent frames,
//! when the batch is committed.

use crate::link::{FrameSlots, TxFrame};
use crate::ready::Sender;
use crate::stack::Stack;
use crate::tcp::batch::{
    TCP_OFFSET_ETHERNET, TCP_OFFSET_ETHERNET_IPV6, TCP_OFFSET_IP, TCP_OFFSET_IPV6,
};
use linerate_tcp::BatchContent;
use linerate_units::Instant;

impl Stack {
    /// Writes frames of the current batch into `slots`, until the batch has no further segment or
    /// `slots` has no room. Returns whether `slots` has room for more frames.
    #[inline(never)]
    pub(crate) fn fill_from_batch(&mut self, slots: &mut impl FrameSlots) -> bool {
        match self.batch.tcp {
            TCP_OFFSET_ETHERNET => self.fill_from_batch_at::<TCP_OFFSET_ETHERNET>(slots),
            TCP_OFFSET_ETHERNET_IPV6 => self.fill_from_batch_at::<TCP_OFFSET_ETHERNET_IPV6>(slots),
            TCP_OFFSET_IPV6 => self.fill_from_batch_at::<TCP_OFFSET_IPV6>(slots),
            _ => self.fill_from_batch_at::<TCP_OFFSET_IP>(slots),
        }
    }

    /// Writes one frame of the current batch into `frame`, and returns its length in bytes. Returns
    /// `None` if `frame` is too short.
    #[inline(never)]
    pub(crate) fn write_next_of_batch(&mut self, frame: &mut [u8]) -> Option<usize> {
        let batch = &mut self.batch;
        let connection = &self.sockets.tcp_at(batch.owner?)?.connection;
        let data = |seq, payload: &mut [u8]| connection.copy_of_batch(seq, payload);
        match batch.tcp {
            TCP_OFFSET_ETHERNET => batch.write::<TCP_OFFSET_ETHERNET>(data, frame),
            TCP_OFFSET_ETHERNET_IPV6 => batch.write::<TCP_OFFSET_ETHERNET_IPV6>(data, frame),
            TCP_OFFSET_IPV6 => batch.write::<TCP_OFFSET_IPV6>(data, frame),
            _ => batch.write::<TCP_OFFSET_IP>(data, frame),
        }
    }

    #[inline(always)]
    fn fill_from_batch_at<const TCP: usize>(&mut self, slots: &mut impl FrameSlots) -> bool {
        let batch = &mut self.batch;
        let Some(socket) = batch.owner.and_then(|owner| self.sockets.tcp_at(owner)) else {
            return false;
        };
        let connection = &socket.connection;
        while batch.has_next() {
            let data = |seq, payload: &mut [u8]| connection.copy_of_batch(seq, payload);
            if !slots.offer(|frame| batch.write::<TCP>(data, frame).map(TxFrame::whole)) {
                return false;
            }
        }
        true
    }

    /// Asks the connection how many more segments it can send with the header template of the
    /// batch. Returns false if it can send none, or if its largest segment does not fit into a
    /// frame of `room` bytes. Also returns false if the template is out of date, because routes or
    /// neighbours have changed.
    pub(crate) fn resume_batch(&mut self, now: Instant, room: usize) -> bool {
        let Some(index) = self.batch.owner else { return false };
        let generation = self.next_hop_generation();
        let Some(socket) = self.sockets.tcp_at(index) else { return false };
        if room < self.batch.tcp + socket.room as usize || socket.next_hop_generation != generation
        {
            return false;
        }
        // The batch was committed: its frames were handed to the link. It is resumed only if it
        // carries data. An ACK batch is not resumed, because frames that have arrived since then
        // may require other acknowledgements.
        let next = socket.connection.driver().poll_batch(now, self.batch.header());
        let Some(next) = next.filter(|next| next.content == BatchContent::Data) else {
            return false;
        };
        self.batch.set(next);
        self.batch.limit(self.interface.ready.left_to(Sender::Socket(index)));
        self.batch.has_next()
    }

    /// Updates the connection and the counters for the frames of the batch that have been sent.
    #[inline]
    pub(crate) fn commit_batch(&mut self) {
        if !self.batch.is_committed() {
            self.commit_frames();
        }
    }

    fn commit_frames(&mut self) {
        let sent = self.batch.take_sent();
        self.interface.ready.count(sent.count);
        if let Some(index) = self.batch.owner
            && let Some(socket) = self.sockets.tcp_at(index)
        {
            if sent.count > 0 {
                socket.connection.driver().commit_batch(self.now, sent.content, sent.count);
            }
            if !socket.connection.wants_transmit() {
                // The end of a batch causes no events and changes no state. It changes only the
                // deadline of the connection, so the timer is armed here instead of a dispatch.
                debug_assert!(
                    socket.connection.events().is_empty(),
                    "the end of a batch causes no events"
                );
                socket.arm(index, &mut self.timers);
                self.interface.ready.remove(Sender::Socket(index));
                self.batch.forget();
            }
        }
        if sent.content != BatchContent::Data {
            self.batch.forget();
        }
        self.counted.ip.out_requests += u64::from(sent.count);
        self.counted.tcp.out_segments += u64::from(sent.count);
        self.counted.transmit.packets += u64::from(sent.count);
        self.counted.transmit.bytes += u64::from(sent.count) * sent.length as u64;
    }
}
