//! TCP input: finds the connection or listener of a segment (RFC 9293 §3.10.7).

use crate::icmp::{Problem, Report};
use crate::ip::{Arrived, header_length};
use crate::rx::coalesce::NextAcks;
use crate::stack::Stack;
use crate::tcp::Owner;
use crate::tcp::dispatch::{Dispatched, step_effects};
use alloc::sync::Arc;
use linerate_tcp::{
    Disposition, IcmpReport, ListenVerdict, Refusal, Reset, judge_listen, judge_unconnected,
};
use linerate_units::Instant;
use linerate_wire::{Ecn, Protocol, Segment, Sum, TcpFlags, TcpHeader};

impl Stack {
    pub(crate) fn handle_tcp(&mut self, arrived: &Arrived<'_>) {
        self.counted.tcp.in_segments += 1;
        let Ok(mut segment) = Segment::parse(arrived.payload) else {
            self.counted.tcp.in_errors += 1;
            return;
        };
        segment.joined = arrived.arrival.segment_size;
        if segment.joined.is_some() {
            self.counted.tcp.in_segments += u64::from(segment.count() - 1);
        }
        if !arrived.arrival.is_verified {
            let pseudo = arrived.pseudo_header(arrived.payload.len());
            if !(pseudo + Sum::of(arrived.payload)).is_valid() {
                self.counted.tcp.in_errors += 1;
                self.counted.tcp.in_checksum_errors += 1;
                return;
            }
        }
        // Segments to a broadcast or multicast address are silently discarded, as RFC 9293 requires
        // for SYNs (MUST-57).
        if arrived.is_broadcast {
            return;
        }
        self.handle_flow(arrived, &segment);
    }

    /// Passes a segment with a valid checksum to its connection or listener.
    #[inline(always)]
    pub(crate) fn handle_flow(&mut self, arrived: &Arrived<'_>, segment: &Segment<'_>) {
        match self.flow_of(arrived, segment) {
            Some(index) => self.handle_connection_segment(arrived, index, segment),
            None => self.handle_unconnected(arrived, segment),
        }
    }

    /// Returns the index of the connection to which a segment belongs; `None` if there is no such
    /// connection.
    #[inline(always)]
    pub(crate) fn flow_of(&mut self, arrived: &Arrived<'_>, segment: &Segment<'_>) -> Option<u32> {
        self.flows.lookup(&arrived.flow(segment))
    }

    pub(crate) fn handle_connection_segment(
        &mut self,
        arrived: &Arrived<'_>,
        index: u32,
        segment: &Segment<'_>,
    ) {
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        if let Owner::HalfOpen(listener) = socket.owner
            && !self.may_complete(arrived.arrival.at, (index, listener), segment)
        {
            return;
        }
        let ecn = arrived.type_of_service.ecn();
        let can_coalesce = segment.payload.is_empty() && ecn == Ecn::NotEct;
        if can_coalesce
            && self.coalesce_ack(index, || NextAcks::after_segment(arrived.payload), segment)
        {
            return;
        }
        self.flush_coalesced();
        let disposition = self.deliver_segment(index, segment, ecn, arrived.arrival.memory);
        if disposition == Disposition::OpenAgain {
            self.counted.tcp_extra.time_wait_recycled += 1;
            self.retire(index);
            self.handle_unconnected(arrived, segment);
        }
    }

    /// Passes a segment to its connection, and dispatches this step. `ecn` is the ECN codepoint of
    /// the packet. `memory` is the buffer that contains the segment, if the connection may keep a
    /// reference to it. Without `memory`, the connection copies the data.
    #[inline(never)]
    pub(crate) fn deliver_segment(
        &mut self,
        index: u32,
        segment: &Segment<'_>,
        ecn: Ecn,
        memory: Option<&Arc<[u8]>>,
    ) -> Disposition {
        let now = self.now;
        let Some(socket) = self.sockets.tcp_at(index) else { return Disposition::Accepted };
        self.memory.supply(socket);
        let connection = &mut socket.connection;
        self.counted.tcp_extra.marked_segments += u64::from(ecn == Ecn::Ce);
        let disposition = connection.driver().handle_segment_with(now, segment, ecn, memory);
        if disposition == Disposition::Accepted {
            if step_effects!(self).dispatch(index, socket) == Dispatched::Partly {
                self.dispatch_slowly(index);
            }
        } else if disposition != Disposition::OpenAgain {
            self.finish_segment(now, index, disposition);
        }
        disposition
    }

    /// Completes the handling of a segment by its connection: applies the consequences of a
    /// refusal, if the connection has refused the segment, and dispatches the step.
    pub(crate) fn finish_segment(&mut self, now: Instant, index: u32, disposition: Disposition) {
        if disposition != Disposition::Accepted {
            self.handle_disposition(now, index, disposition);
        }
        self.dispatch_step(index);
    }

    /// Handles the refusal of a segment by its connection: counts a reset in TIME-WAIT, limits the
    /// rate of challenge ACKs, and frees memory if the refusal was due to lack of memory.
    #[cold]
    fn handle_disposition(&mut self, now: Instant, index: u32, disposition: Disposition) {
        match disposition {
            Disposition::Accepted | Disposition::OpenAgain | Disposition::DataRefused => {}
            Disposition::NoMemory => self.refuse_memory(),
            Disposition::Duplicate => self.limit_challenges(now, index),
            Disposition::Refused(refusal) => {
                self.counted.tcp_extra.time_wait_resets +=
                    u64::from(refusal == Refusal::ResetInTimeWait);
                self.limit_challenges(now, index);
            }
        }
    }

    /// Suppresses the challenge ACK that a connection is about to send, if the host exceeds its
    /// rate limit of challenge ACKs (RFC 5961 §7).
    fn limit_challenges(&mut self, now: Instant, index: u32) {
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        if !socket.connection.owes_challenge() {
            return;
        }
        if self.challenges.take(now) {
            self.counted.tcp_extra.challenges += 1;
        } else {
            socket.connection.driver().withhold_challenge();
            self.counted.tcp_extra.challenges_limited += 1;
        }
    }

    /// Handles a segment without a connection: passes the segment to a listener or forwarder, or
    /// answers with a reset.
    pub(crate) fn answer_unconnected(&mut self, arrived: &Arrived<'_>, segment: &Segment<'_>) {
        if segment.flags().contains(TcpFlags::RST) {
            self.cancel_deferred(arrived, segment);
        }
        let listener = self.listener_at(&arrived.flow(segment));
        let Some(index) = listener.or_else(|| self.forwarder_for(arrived, segment)) else {
            if let Some(reset) = judge_unconnected(segment) {
                self.send_reset(arrived, segment, &reset);
            }
            return;
        };
        match judge_listen(segment) {
            ListenVerdict::Ignore => {}
            ListenVerdict::Reset(_) if self.take_cookie(arrived, index, segment) => {}
            ListenVerdict::Reset(reset) => self.send_reset(arrived, segment, &reset),
            ListenVerdict::Open if listener.is_none() => self.forward_syn(arrived, index, segment),
            ListenVerdict::Open => self.handle_syn(arrived, index, segment),
        }
    }

    /// Answers a segment with a reset, unless the rate limit of resets is exceeded.
    #[cold]
    pub(crate) fn send_reset(
        &mut self,
        arrived: &Arrived<'_>,
        segment: &Segment<'_>,
        reset: &Reset,
    ) {
        if !self.resets.take(arrived.arrival.at) {
            self.counted.tcp_extra.resets_limited += 1;
            return;
        }
        let mut bytes = [0; Reset::LONGEST];
        let sent = reset.emit(&mut bytes);
        let kept = self.answer_segment(arrived, segment, &bytes[..sent.length], sent.sum);
        self.counted.tcp.out_resets += u64::from(kept);
    }

    /// Queues the segment `answer` to the source of `segment`, after filling in the ports and
    /// checksum of `answer`. These fields of `answer` must be zero, and `sum` must be the
    /// contribution of the bytes of `answer` to the checksum. Returns false if the queue is full.
    pub(crate) fn answer_segment(
        &mut self,
        arrived: &Arrived<'_>,
        segment: &Segment<'_>,
        answer: &[u8],
        sum: Sum,
    ) -> bool {
        let Some(header) = arrived.answer_header(Protocol::TCP) else { return false };
        let kept = self.send_packet(&header, answer.len(), |bytes| {
            bytes.copy_from_slice(answer);
            let sum =
                TcpHeader::fill_ports(bytes, segment.destination_port, segment.source_port, sum);
            TcpHeader::fill_checksum(bytes, header.pseudo_header(answer.len()), sum);
        });
        self.counted.tcp.out_segments += u64::from(kept);
        kept
    }

    /// May a half-open connection process `segment`? As in Linux, an acknowledgement that would
    /// complete the handshake is ignored while the accept queue is full, or while the listener
    /// waits for data. The handshake is not lost: each data segment of the peer repeats the
    /// acknowledgement, so a retransmission of data can complete it later.
    pub(crate) fn may_complete(
        &mut self,
        now: Instant,
        (connection, listener): (u32, u32),
        segment: &Segment<'_>,
    ) -> bool {
        let flags = segment.flags();
        if !flags.contains(TcpFlags::ACK) || flags.contains(TcpFlags::RST) {
            return true;
        }
        if !self.has_accept_room(listener) {
            self.count_overflow(listener);
            return false;
        }
        !self.is_deferred(now, (connection, listener), segment)
    }

    /// Passes an ICMP error to the connection that sent the quoted segment. The connection checks
    /// whether the error is plausible (RFC 5927 §4).
    pub(crate) fn handle_segment_report(&mut self, now: Instant, report: &Report<'_>) {
        let (Some(flow), Some(quoted)) = (report.flow(), report.tcp_seq()) else { return };
        let index = self.flows.get(&flow);
        if let Some(index) = index {
            self.unpack(index);
        }
        let Some((index, socket)) =
            index.and_then(|index| Some((index, self.sockets.tcp_at(index)?)))
        else {
            self.counted.tcp_extra.unmatched_icmps += 1;
            return;
        };
        let connection = &mut socket.connection;
        match report.problem {
            Problem::TooBig { .. } => {
                let Some(mtu) = report.mtu() else { return };
                let mtu_payload = mtu.saturating_sub(header_length(flow.hosts.local()));
                connection
                    .driver()
                    .handle_icmp(now, IcmpReport::PacketTooBig { quoted, mtu_payload });
            }
            Problem::NoPort | Problem::NoProtocol => {
                connection.driver().handle_icmp(now, IcmpReport::HardError { quoted });
            }
            Problem::Other => {
                connection.driver().handle_icmp(now, IcmpReport::SoftError { quoted });
            }
        }
        self.dispatch_step(index);
    }
}
