//! TCP output: writes the header template of a connection and its next segment directly into a
//! frame of the link.

use crate::link::arrival::Arrival;
use crate::link::{Medium, TxFrame};
use crate::ready::Sender;
use crate::stack::Stack;
use crate::tcp::dispatch::{Dispatched, step_effects};
use crate::tx::{NextHop, ScatterGather, TransmitOutcome};
use core::hint::cold_path;
use core::net::IpAddr;
use linerate_tcp::{Kind, Offload, State, Transmit};
use linerate_units::Instant;

/// The component that completes the checksum of a segment: the host, or the link by its offloads.
/// If it is the link, a frame may also be a GSO frame, which the link splits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompletedBy {
    Host,
    Link,
}

/// The outcome of an attempt to write the next segment of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentOutcome {
    /// A frame was written.
    Frame(TxFrame),
    /// The connection has no segment to send.
    Nothing,
    /// Nothing was written, because the fast path does not apply: the connection is compact, its
    /// next hop is unresolved, or the link offloads checksums. The caller must use the general
    /// path.
    NotReady,
}

impl Stack {
    /// Writes the next segment of a connection in the common case: the connection is not compact,
    /// its next hop is resolved, and the link has no offloads. This fast path needs only one access
    /// to the socket.
    #[inline(always)]
    pub(crate) fn transmit_common_segment(
        &mut self,
        now: Instant,
        index: u32,
        frame: &mut [u8],
    ) -> SegmentOutcome {
        if self.interface.capabilities.offloads.checksums {
            return SegmentOutcome::NotReady;
        }
        let generation = self.next_hop_generation();
        let frames = self.interface.frames;
        let room = frame.len().min(frames.room);
        let medium = (frames.header, false);
        self.write_segment(
            now,
            index,
            medium,
            CompletedBy::Host,
            Some(generation),
            &mut frame[..room],
        )
    }

    /// Writes the next segment of a connection into `frame`, or queues it until the next hop is
    /// resolved.
    pub(crate) fn transmit_segment(
        &mut self,
        now: Instant,
        index: u32,
        frame: &mut [u8],
    ) -> TransmitOutcome {
        let next_hop = self.next_hop_of(now, index);
        let frames = self.interface.frames;
        let is_known = matches!(next_hop, NextHop::Mac(_));
        // The link cannot complete the checksum of a packet that waits for address resolution,
        // because the packet is queued without its metadata. So the host completes it.
        let is_offloaded = is_known && self.interface.capabilities.offloads.checksums;
        let completed_by = if is_offloaded { CompletedBy::Link } else { CompletedBy::Host };
        let room = frame.len().min(frames.room);
        let medium = (frames.header, false);
        let SegmentOutcome::Frame(written) =
            self.write_segment(now, index, medium, completed_by, None, &mut frame[..room])
        else {
            return TransmitOutcome::Nothing;
        };
        if !is_known {
            // The MAC address of the next hop is unknown. `write_segment` may have begun a batch,
            // whose header template then lacks this address, so the batch must end. Segments of the
            // batch were not yet counted as sent, so the connection sends them later.
            self.batch.forget();
            return self.frame_packet(next_hop, &frame[frames.header..written.length], &mut []);
        }
        TransmitOutcome::Frame(written)
    }

    /// Resolves the next hop of a connection, and writes its MAC address into the header template
    /// of the connection. If the template already has the valid address, does nothing, and the MAC
    /// address in the result is only a placeholder. The address in the template is valid until the
    /// generation of routes and neighbours changes.
    #[inline]
    fn next_hop_of(&mut self, now: Instant, index: u32) -> NextHop {
        let generation = self.next_hop_generation();
        let Some(socket) = self.sockets.tcp_at(index) else { return NextHop::NoRoute };
        if socket.next_hop_generation == generation {
            return NextHop::Mac(self.interface.mac);
        }
        let peer = socket.flow().hosts.remote();
        self.resolve_next_hop_of(now, index, peer)
    }

    fn resolve_next_hop_of(&mut self, now: Instant, index: u32, peer: IpAddr) -> NextHop {
        let next_hop = self.resolve_next_hop(now, peer);
        let generation = self.next_hop_generation();
        if let NextHop::Mac(mac) = next_hop
            && let Some(socket) = self.sockets.tcp_at(index)
        {
            socket.headers.set_mac_addresses(self.interface.mac, mac);
            socket.next_hop_generation = generation;
            if self.recent_headers.are_between(&socket.flow().hosts) {
                self.recent_headers.set_mac_addresses(self.interface.mac, mac, generation);
            }
            if peer.is_ipv6() {
                self.witness_next_hop(index, peer);
            }
        }
        next_hop
    }

    /// Writes the next segment of a connection with all its headers into `frame`, or several
    /// segments as one GSO frame. The link header has `medium` bytes; `is_local` marks a connection
    /// of the host with itself. If `next_hop_generation` is given, the result is
    /// [`SegmentOutcome::NotReady`] unless two conditions hold: the connection is in full form, and
    /// the MAC address of its next hop was resolved in that generation of routes and neighbours.
    #[inline(always)]
    fn write_segment(
        &mut self,
        now: Instant,
        index: u32,
        (medium, is_local): (usize, bool),
        completed_by: CompletedBy,
        next_hop_generation: Option<u64>,
        frame: &mut [u8],
    ) -> SegmentOutcome {
        let socket = match next_hop_generation {
            Some(next_hop_generation) => self
                .sockets
                .full_at(index)
                .filter(|socket| socket.next_hop_generation == next_hop_generation),
            None => self.sockets.tcp_at(index),
        };
        let Some(socket) = socket else { return SegmentOutcome::NotReady };
        let at = medium + socket.headers.ip_length();
        let Some(room) = frame.get_mut(at..) else { return SegmentOutcome::Nothing };
        if room.len() < socket.room as usize {
            cold_path();
            // The MTU of the link has decreased since the connection was opened, so the largest
            // segments of the connection do not fit. The connection is aborted.
            socket.connection.abort(now);
        }
        let offload = match completed_by {
            CompletedBy::Host => Offload::None,
            CompletedBy::Link if self.scatter_gather == ScatterGather::Allowed => {
                Offload::ScatterGather
            }
            CompletedBy::Link => Offload::Segmentation,
        };
        let Some(sent) = socket.connection.driver().poll_transmit(now, offload, room) else {
            cold_path();
            self.dispatch_step(index);
            return SegmentOutcome::Nothing;
        };
        if completed_by == CompletedBy::Host && sent.is_predicted {
            // A predicted segment changes neither the memory nor the state of the connection, and
            // causes no events. So no full dispatch is needed, only an update of the timer and of
            // the ring of senders.
            let length = socket.headers.complete(medium, &sent, frame);
            if self.identification.is_counting() {
                self.identification.write(&mut frame[medium..], 1);
            }
            self.counted.ip.out_requests += 1;
            self.counted.tcp.out_segments += 1;
            if socket.state == State::TimeWait {
                // If the connection in TIME-WAIT has nothing more to send, a TIME-WAIT record can
                // replace it.
                self.dispatch_in_time_wait(index);
            } else {
                socket.arm(index, &mut self.timers);
            }
            let ready = if is_local { &mut self.local_ready } else { &mut self.interface.ready };
            ready.remove(Sender::Socket(index));
            return SegmentOutcome::Frame(TxFrame::whole(length));
        }
        let written = match completed_by {
            CompletedBy::Host => TxFrame::whole(socket.headers.complete(medium, &sent, frame)),
            CompletedBy::Link => {
                socket.headers.complete_with_partial_checksum(medium, &sent, frame)
            }
        };
        let segments = if completed_by == CompletedBy::Host { 1 } else { sent.segments() };
        if self.identification.is_counting() {
            self.identification.write(&mut frame[medium..], segments);
        }
        if completed_by == CompletedBy::Link
            && let Some(data) = sent.zero_copy
        {
            self.scatter_gather = ScatterGather::Payload(index, data);
        }
        self.counted.ip.out_requests += 1;
        self.counted.tcp.out_segments += segments as u64;
        if sent.kind != Kind::Ordinary {
            cold_path();
            self.counted.tcp.retransmitted_segments += u64::from(sent.kind == Kind::Again);
            self.counted.tcp.out_resets += u64::from(sent.kind == Kind::Reset);
        }
        let has_next = socket.connection.wants_transmit();
        if socket.state == State::TimeWait {
            self.dispatch_in_time_wait(index);
        } else if step_effects!(self).dispatch(index, socket) == Dispatched::Partly {
            self.dispatch_slowly(index);
        }
        if has_next {
            self.prepare_next(now, index, sent, medium, frame);
        } else {
            let ready = if is_local { &mut self.local_ready } else { &mut self.interface.ready };
            ready.remove(Sender::Socket(index));
        }
        SegmentOutcome::Frame(written)
    }

    /// Prepares the transmission of further segments of the connection: begins a batch, if these
    /// segments can share the headers of the segment `sent`.
    #[inline(never)]
    fn prepare_next(
        &mut self,
        now: Instant,
        index: u32,
        sent: Transmit,
        medium: usize,
        frame: &[u8],
    ) {
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        let is_local = socket.egress.is_local();
        let ready = if is_local { &mut self.local_ready } else { &mut self.interface.ready };
        // The ring of senders limits how many frames a sender may send before the next sender has
        // its turn. A GSO frame must count as one frame per segment. The ring has already counted
        // one frame, so the other segments are added here.
        ready.count(u32::try_from(sent.segments()).unwrap_or(u32::MAX) - 1);
        // In a batch, the IPv4 Identification fields of all headers are equal. So there can be no
        // batch if this host numbers its packets in this field. There is also no batch of packets
        // to the host itself.
        if is_local || self.identification.is_counting() {
            return;
        }
        if let Some(batch) = socket.connection.driver().poll_batch(now, sent.header) {
            self.batch.begin(index, socket, batch, &sent, medium, frame);
            self.batch.limit(ready.left_to(Sender::Socket(index)));
        }
    }

    /// Writes the next segment of a connection of the host with itself, and handles the segment at
    /// once as a received packet.
    pub(crate) fn transmit_local(&mut self, now: Instant, arrival: Arrival<'_>, index: u32) {
        let mut packet = core::mem::take(&mut self.scratch);
        packet.resize(crate::ip::LOCAL_MTU, 0);
        let medium = (Medium::Ip.header_length(), true);
        match self.write_segment(now, index, medium, CompletedBy::Host, None, &mut packet) {
            SegmentOutcome::Frame(written) => {
                let socket = self.sockets.full_at(index);
                let interface = socket.map(|socket| socket.egress.interface());
                let packet = &packet[..written.length];
                self.serving(interface.unwrap_or(self.interface.number), |stack| {
                    stack.handle_packet(arrival, packet);
                });
            }
            SegmentOutcome::Nothing | SegmentOutcome::NotReady => {
                self.local_ready.remove(Sender::Socket(index));
            }
        }
        self.scratch = packet;
    }
}
