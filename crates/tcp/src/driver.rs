//! The host driver's view of a connection.

use crate::{
    Batch, BatchContent, Connection, Disposition, Error, Event, Events, FastOpenOffer, IcmpReport,
    MemoryGrant, Offload, Run, Transmit, ZeroCopyRange,
};
use alloc::boxed::Box;
use alloc::sync::Arc;
use linerate_units::{Duration, Instant};
use linerate_wire::{Ecn, FastOpenCookie, Segment};

/// The view of the program that drives a connection: it delivers segments and expired timers, and
/// takes segments and events.
///
/// The application must not call these methods. [`Connection::driver`] returns the view; it is a
/// reference, and costs nothing.
#[derive(Debug)]
pub struct Driver<'a>(&'a mut Connection);

impl Connection {
    /// Returns the view of the host driver.
    #[inline]
    pub const fn driver(&mut self) -> Driver<'_> {
        Driver(self)
    }
}

impl<'a> Driver<'a> {
    /// Lets the SYN of an active open request a cookie, or carry one with the data written before
    /// it is sent (RFC 7413 §4.2). Use it only for data that may be delivered twice: a duplicate of
    /// the SYN can open a second connection after the first was forgotten (§6.1).
    #[inline]
    pub fn try_fast_open(self, offer: FastOpenOffer) {
        self.0.try_fast_open(offer);
    }

    /// Lets the SYN-ACK of a passive open carry a cookie for later connections.
    #[inline]
    pub fn give_cookie(self, cookie: FastOpenCookie) {
        self.0.fast_open.get_or_insert_default().option = Some(cookie);
    }

    /// Accepts the data of `syn`, which created the connection with a valid cookie. The data can be
    /// read and answered before the handshake is complete (RFC 7413 §4.2.2). Use it only for data
    /// that may be delivered twice (§6.1).
    #[inline]
    pub fn open_fast(self, syn: &Segment<'_>) {
        self.0.open_fast(syn);
    }

    /// Processes the peer's SYN (RFC 9293 §3.10.7.2, §3.10.7.3).
    #[inline]
    pub fn learn_from_syn(self, syn: &Segment<'_>, now: Instant) {
        self.0.learn_from_syn(syn, now);
    }

    /// Completes a passive open by a SYN cookie (RFC 4987 §3.6), for a host that kept no state for
    /// the SYN. Replaces [`Driver::learn_from_syn`].
    ///
    /// `syn` is restored from the cookie in `ack`, which acknowledges the SYN-ACK and arrived with
    /// `ecn`. The connection equals one that has handled both segments, except that it has no
    /// round-trip sample: the echoed timestamp contains bits of the cookie.
    #[inline]
    pub fn learn_from_cookie(self, syn: &Segment<'_>, ack: &Segment<'_>, ecn: Ecn, now: Instant) {
        self.0.learn_from_cookie((syn, ack, ecn), now);
    }

    /// Notes the ECN codepoint of the packet with the peer's SYN. In AccECN mode the SYN-ACK
    /// reports it (RFC 9768 §3.1.1).
    #[inline]
    pub fn note_codepoint_of_syn(self, ecn: Ecn) {
        self.0.note_codepoint_of_syn(ecn);
    }

    /// Withholds the acknowledgement `segment`, which would complete the handshake and carries
    /// nothing else, until some time after the peer's SYN (`TCP_DEFER_ACCEPT`). The SYN-ACK is then
    /// retransmitted. Returns false if that time is over, or if `segment` is not such an
    /// acknowledgement: the caller must then handle it.
    #[inline]
    pub fn defer_handshake(
        self,
        now: Instant,
        segment: &Segment<'_>,
        unacknowledged_timeout: Duration,
    ) -> bool {
        self.0.defer_handshake(now, segment, unacknowledged_timeout)
    }

    /// Handles a segment with a valid checksum and the ports of this connection, from a packet
    /// without an ECN codepoint.
    #[inline]
    pub fn handle_segment(self, now: Instant, segment: &Segment<'_>) -> Disposition {
        self.0.handle_segment(now, segment)
    }

    /// Handles a segment whose packet carried the codepoint `ecn`, set by an ECN-capable sender
    /// (RFC 3168 §5) or a congested router. If the segment lies in `memory`, which is not written
    /// while shared, the connection may keep a reference instead of copying: it does so if the data
    /// fills at least half of `memory`.
    #[inline]
    pub fn handle_segment_with(
        self,
        now: Instant,
        segment: &Segment<'_>,
        ecn: Ecn,
        memory: Option<&Arc<[u8]>>,
    ) -> Disposition {
        self.0.handle_segment_with(now, segment, ecn, memory)
    }

    /// Handles a GRO run or an ACK batch, whose last segment has the header `last`. The connection
    /// must not have changed since the run was begun.
    #[inline]
    pub fn handle_run(self, now: Instant, run: impl Run, last: &Segment<'_>) -> Disposition {
        run.give(self.0, now, last)
    }

    /// Handles an ICMP error. It is ignored if the quoted sequence number is not in flight (RFC
    /// 5927 §4.1).
    #[inline]
    pub fn handle_icmp(self, now: Instant, report: IcmpReport) {
        self.0.handle_icmp(now, report);
    }

    /// Ends the connection without sending a segment, because the host has lost the local address.
    #[cold]
    pub fn lose_address(self) {
        self.0.slow(|connection| connection.end(Some(Error::AddressRemoved)));
    }

    /// Suppresses the pending challenge ACK, if there is one (RFC 5961 §7).
    #[inline]
    pub fn withhold_challenge(self) {
        self.0.withhold_challenge();
    }

    /// Handles all timers that are due at `now`. To be called at [`Connection::poll_timeout`]; an
    /// earlier call changes nothing.
    #[inline]
    pub fn handle_timeout(self, now: Instant) {
        self.0.handle_timeout(now);
    }

    /// Returns when to call [`Driver::handle_timeout`], if nothing is due at `now`.
    #[inline]
    pub fn deadline_after(self, now: Instant) -> Option<Instant> {
        self.0.deadline_after(now)
    }

    /// Returns the next event, if there is one.
    #[inline]
    pub fn poll_event(self) -> Option<Event> {
        self.0.events.pop()
    }

    /// Takes all pending events.
    #[inline]
    pub fn take_events(self) -> Events {
        core::mem::replace(&mut self.0.events, Events::empty())
    }

    /// Writes the next segment to the start of `bytes`, with ports and checksum zero, or returns
    /// `None` if there is none. Call it until it returns `None`, or until
    /// [`Connection::wants_transmit`] is false. After a segment was written, [`Driver::poll_batch`]
    /// may offer further ones that differ only in numbers.
    ///
    /// # Panics
    /// If `bytes` has no room for the largest segment that this connection's path may take
    /// (`Path::link_payload`).
    #[inline]
    pub fn poll_transmit(
        self,
        now: Instant,
        offload: Offload,
        bytes: &mut [u8],
    ) -> Option<Transmit> {
        self.0.poll_transmit(now, offload, bytes)
    }

    /// Returns the data of the segment that was just sent, in up to two slices. Call it before any
    /// other method of the connection.
    ///
    /// # Panics
    /// If the data is no longer in the send buffer.
    #[must_use]
    #[inline]
    pub fn zero_copy_data(self, range: ZeroCopyRange) -> [&'a [u8]; 2] {
        self.0.zero_copy_data(range)
    }

    /// Returns the segments that may follow the last one at `now` with a copy of its header, which
    /// has `header` bytes. [`Driver::poll_transmit`] would write equal headers, except for the
    /// sequence number of data, or the number and window of an acknowledgement. Those that are sent
    /// must be [committed](Driver::commit_batch) before anything else happens to the connection.
    ///
    /// A segment of data in a batch never reaches the end of the written data, so it has neither
    /// PSH nor FIN. The final acknowledgement, of everything, is not part of a batch. A batch of
    /// data can be continued later, at the same `now`, by another call; a batch of acknowledgements
    /// ends when any segment arrives.
    #[must_use]
    #[inline]
    pub fn poll_batch(self, now: Instant, header: usize) -> Option<Batch> {
        self.0.poll_batch(now, header)
    }

    /// Records that `count` segments of a batch of this `content` were sent at `now`. If
    /// [`Connection::wants_transmit`] is false afterwards, the timers may have changed.
    #[inline]
    pub fn commit_batch(self, now: Instant, content: BatchContent, count: u32) {
        self.0.commit_batch(now, content, count);
    }

    /// Sets the memory grant until the next call.
    #[inline]
    pub fn grant_memory(self, grant: MemoryGrant) {
        self.0.memory = grant;
    }

    /// Swaps the memory of the send buffer with `memory` if the buffer is empty and both have the
    /// same size.
    #[inline]
    pub fn exchange_send_memory(self, memory: &mut Box<[u8]>) -> bool {
        self.0.sender.buffer.exchange(memory)
    }

    /// Swaps the memory of the receive buffer with `memory` if the buffer is empty and both have
    /// the same size.
    #[inline]
    pub fn exchange_receive_memory(self, memory: &mut Box<[u8]>) -> bool {
        self.0.receiver.assembler.is_empty() && self.0.receiver.buffer.exchange(memory)
    }

    /// Ensures that the application can write, by allocating memory within the host's grant.
    /// Returns false if the connection does not permit writing. Unused memory is freed after a
    /// while.
    #[inline]
    pub fn prepare_to_write(self, now: Instant) -> bool {
        self.0.prepare_to_write(now)
    }

    /// Frees unused memory of the send buffer, because other connections wait for memory.
    #[inline]
    pub fn leave_memory_to_others(self) {
        self.0.sender.buffer.give_back_free();
    }

    /// Frees empty buffer memory that was not used recently, because the host is short of memory.
    ///
    /// With `must`, a tuned receive buffer also shrinks to its initial size as the peer uses up the
    /// window, and data beyond holes is discarded, which is permitted because it was never
    /// acknowledged. Returns whether such data was discarded.
    #[inline]
    pub fn give_memory_back(self, now: Instant, must: bool) -> bool {
        self.0.give_memory_back(now, must)
    }

    /// Ends the idle period of a quiet connection early, so that [`Connection::compact`] succeeds
    /// at once.
    #[inline]
    pub fn end_idle_period(self) {
        self.0.end_idle_period();
    }
}
