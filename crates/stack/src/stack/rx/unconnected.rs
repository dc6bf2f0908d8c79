//! Segments that belong to no connection, such as SYNs. Each turn handles a limited number of them
//! immediately. The segments beyond this limit wait until the received segments of connections have
//! been handled.

use crate::ip::Arrived;
use crate::link::arrival::Arrival;
use crate::ready::Sender;
use crate::stack::Stack;
use core::hint::cold_path;
use linerate_wire::Segment;

impl Stack {
    /// Handles a segment that belongs to no connection. If this turn has already handled the
    /// maximum number of such segments, queues the segment instead, unless it comes from this host
    /// itself.
    pub(crate) fn handle_unconnected(&mut self, arrived: &Arrived<'_>, segment: &Segment<'_>) {
        self.flush_coalesced();
        let may = self.unconnected.admit() || arrived.arrival.is_local;
        if self.unconnected.is_spent() {
            cold_path();
            // This turn has handled the maximum number of segments without a connection. The entry
            // `Replies` makes the host call [`Stack::serve_unconnected`] after it has received the
            // segments of connections. That call handles the queued segments.
            self.local_ready.push(Sender::Replies);
        }
        if may {
            self.answer_unconnected(arrived, segment);
        } else {
            self.defer_unconnected(arrived, segment);
        }
    }

    /// Queues a segment without a connection, because this turn has handled the maximum number of
    /// such segments. An acknowledgement with a valid SYN cookie is not queued but opens its
    /// connection at once, because a flood cannot forge the cookie.
    #[cold]
    fn defer_unconnected(&mut self, arrived: &Arrived<'_>, segment: &Segment<'_>) {
        let listener = self.listener_at(&arrived.flow(segment));
        if let Some(listener) = listener.or_else(|| self.forwarder_for(arrived, segment))
            && self.brings_cookie(arrived, listener, segment)
        {
            return self.answer_unconnected(arrived, segment);
        }
        self.counted.tcp_extra.unconnected_deferred += 1;
        let interface = self.interface.number;
        let has_room = segment.joined.is_none() && self.unconnected.push(interface, arrived.bytes);
        self.counted.tcp_extra.unconnected_drops += u64::from(!has_room);
    }

    /// Handles queued segments that belong to no connection. Called after the segments of
    /// connections have been handled. The number is limited while segments of connections keep
    /// arriving.
    #[cold]
    pub(crate) fn serve_unconnected(&mut self) {
        let segments = self.cached_segments() + self.counted.tcp.in_segments;
        for _ in 0..self.unconnected.begin_turn(segments) {
            let Some((interface, packet)) = self.unconnected.pop() else { break };
            self.serving(interface, |stack| stack.handle_waiting(&packet));
            self.unconnected.give_back(packet);
        }
    }

    /// Handles a segment that was queued because it belonged to no connection. Its connection may
    /// have been opened while it waited. Its headers and checksum were verified on arrival.
    fn handle_waiting(&mut self, bytes: &[u8]) {
        let arrival = Arrival::of_stored(self.now);
        let Some((arrived, _)) = Arrived::parse(arrival, bytes) else { return };
        let Ok(segment) = Segment::parse(arrived.payload) else { return };
        match self.flow_of(&arrived, &segment) {
            Some(index) => self.handle_connection_segment(&arrived, index, &segment),
            None => self.answer_unconnected(&arrived, &segment),
        }
        self.flush_coalesced();
    }
}
