//! The receive path. A frame takes one of three paths: it [continues a GRO run or ACK
//! batch](coalesce), it belongs to the [cached flow](flow_cache), or it takes the exception path
//! through the full parsers.

mod coalesce;
mod flow_cache;
mod prefetch;
mod unconnected;

use crate::link::arrival::Arrival;
use crate::link::arrival::LONG;
use crate::link::arrival::is_possible_sender;
use crate::link::{Medium, PlainFrame, RxFrame};
use crate::rx::flow_cache::Version;
use crate::stack::Stack;
use linerate_units::Instant;
use linerate_wire::{EtherType, EthernetFrame, V4, V6};

/// # Host driver: input
impl Stack {
    /// Handles one received frame. Delivers all coalesced segments before it returns.
    pub fn handle_frame(&mut self, now: Instant, frame: RxFrame<'_>) {
        self.handle_frame_of_batch(now, &frame);
        self.flush_coalesced();
        if self.unconnected.is_spent() {
            self.serve_unconnected();
        }
    }

    /// Handles one frame of a batch of received frames. The segment in the frame may be coalesced,
    /// and then remains pending until [`flush_coalesced`](Self::flush_coalesced).
    #[inline]
    pub(crate) fn handle_frame_of_batch(&mut self, now: Instant, frame: &RxFrame<'_>) {
        match frame.as_plain() {
            Some(frame) => self.handle_batch(now, core::iter::once(frame)),
            None => {
                self.end_data_run();
                self.handle_frame_with_metadata(now, frame);
            }
        }
    }

    /// Handles consecutive frames of a batch, none of which has metadata. Their segments may be
    /// coalesced, and then remain pending until [`flush_coalesced`](Self::flush_coalesced).
    #[inline(always)]
    pub(crate) fn handle_batch<'a>(
        &mut self,
        now: Instant,
        mut frames: impl Iterator<Item = PlainFrame<'a>>,
    ) {
        while let Some(frame) = frames.next() {
            if self.coalesced.is_none() {
                self.handle_plain_frame(now, frame.bytes, frame.arrived);
                continue;
            }
            // A copy of the iterator is passed. A reference to `frames` itself would force the
            // iterator out of registers into memory.
            let mut after = frames;
            let other = self.continue_run(now, frame, &mut after);
            frames = after;
            let Some(PlainFrame { bytes, arrived }) = other else { return };
            self.handle_plain_frame(now, bytes, arrived);
        }
    }

    #[inline(never)]
    fn handle_plain_frame(&mut self, now: Instant, bytes: &[u8], arrived: Instant) {
        // The arrival time from the link is more precise than `now`. An arrival time after `now`
        // counts as `now`, because otherwise the clock of the host would be ahead of its caller.
        self.advance_clock(arrived.min(now));
        self.counted.receive.bytes += bytes.len() as u64;
        if !self.handle_plain_of::<V4>(bytes) && !self.handle_plain_of::<V6>(bytes) {
            self.handle_other_flow(&RxFrame::plain(bytes, self.now));
        }
    }

    #[inline(never)]
    fn handle_frame_with_metadata(&mut self, now: Instant, frame: &RxFrame<'_>) {
        self.advance_clock(frame.arrived.min(now));
        self.counted.receive.bytes += frame.bytes.len() as u64;
        if let Some((index, packet)) = self.find_cached_flow::<V4>(frame.bytes) {
            self.handle_cached_flow_with_metadata(frame, index, packet);
        } else if let Some((index, packet)) = self.find_cached_flow::<V6>(frame.bytes) {
            self.handle_cached_flow_with_metadata(frame, index, packet);
        } else {
            self.handle_other_flow(frame);
        }
    }

    /// Handles a frame without offload metadata, if it belongs to the cached flow of IP version
    /// `V`. Returns false for other frames, without handling them.
    #[inline(always)]
    fn handle_plain_of<V: Version>(&mut self, bytes: &[u8]) -> bool {
        let Some((index, packet)) = self.find_cached_flow::<V>(bytes) else { return false };
        if packet.segment().len() >= LONG {
            self.handle_cached_data(bytes, index, packet);
        } else if packet.has_data() {
            self.handle_cached_with_data(bytes, index, packet);
        } else {
            self.handle_cached_without_data(bytes, index, packet);
        }
        true
    }

    /// Handles a frame by the full parsers, independently of the previous frames.
    #[inline(never)]
    pub(crate) fn handle_exception(&mut self, frame: &RxFrame<'_>) {
        self.counted.receive.packets += 1;
        let arrival = Arrival::of(frame, self.now);
        match self.interface.capabilities.medium {
            Medium::Ip => self.handle_packet(arrival, frame.bytes),
            Medium::Ethernet => self.handle_ethernet(arrival, frame.bytes),
        }
    }

    fn handle_ethernet(&mut self, mut arrival: Arrival<'_>, bytes: &[u8]) {
        let Ok(frame) = EthernetFrame::parse(bytes) else {
            self.counted.receive.errors += 1;
            self.counted.receive.frame += 1;
            return;
        };
        let header = frame.header;
        if header.destination != self.interface.mac {
            if !header.destination.is_multicast() {
                self.counted.receive.drops += 1;
                return;
            }
            self.counted.receive.multicast += 1;
            arrival.is_link_broadcast = true;
        }
        if !header.tags.is_untagged() || !is_possible_sender(header.source) {
            self.counted.receive.drops += 1;
            return;
        }
        match header.ether_type {
            EtherType::IPV4 => {
                if !arrival.is_link_broadcast {
                    self.interface.flow_cache.link_header = bytes.first_chunk().copied();
                }
                self.handle_ipv4_packet(arrival, frame.payload);
            }
            EtherType::IPV6 => {
                if !arrival.is_link_broadcast {
                    self.interface.flow_cache.ipv6_link_header = bytes.first_chunk().copied();
                }
                self.handle_ipv6_packet(arrival, frame.payload);
            }
            EtherType::ARP => {
                self.flush_coalesced();
                self.handle_arp(arrival, frame.payload);
            }
            _ => self.counted.receive.drops += 1,
        }
    }
}
