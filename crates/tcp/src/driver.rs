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
    /// it is sent (RFC 7413 §4.2). Only for data that may be delivered twice: a duplicated SYN may
    /// open a second connection after the first is forgotten (§6.1).
    #[inline]
    pub fn try_fast_open(self, offer: FastOpenOffer) {
        self.0.try_fast_open(offer);
    }

    /// Lets the SYN-ACK of a passive open carry a cookie for later connections.
    #[inline]
    pub fn give_cookie(self, cookie: FastOpenCookie) {
        self.0.fast_open.get_or_insert_default().option = Some(cookie);
    }

    /// Accepts the data of `syn`, which created the connection with a valid cookie. It can be read
    /// and answered before the handshake is complete (RFC 7413 §4.2.2). Only for data that may be
    /// delivered twice (§6.1).
    #[inline]
    pub fn open_fast(self, syn: &Segment<'_>) {
        self.0.open_fast(syn);
    }

    /// Processes the peer's SYN (RFC 9293 §3.10.7.2, §3.10.7.3).
    #[inline]
    pub fn learn_from_syn(self, syn: &Segment<'_>, now: Instant) {
        self.0.learn_from_syn(syn, now);
    }

    /// Opens a connection passively by a SYN cookie, on a host without a record of the SYN (RFC
    /// 4987 §3.6), instead of [`Driver::learn_from_syn`].
    ///
    /// `syn` is restored from the cookie in `ack`, which acknowledges the SYN-ACK and arrived with
    /// `ecn`. The result equals that of both segments, but without a round trip: bits of the cookie
    /// are in the echoed timestamp.
    #[inline]
    pub fn learn_from_cookie(self, syn: &Segment<'_>, ack: &Segment<'_>, ecn: Ecn, now: Instant) {
        self.0.learn_from_cookie((syn, ack, ecn), now);
    }

    /// Notes the codepoint of the SYN by which the connection was accepted. In AccECN mode the
    /// SYN-ACK reports it (RFC 9768 §3.1.1).
    #[inline]
    pub fn note_codepoint_of_syn(self, ecn: Ecn) {
        self.0.note_codepoint_of_syn(ecn);
    }

    /// Withholds the acknowledgement `segment`, which would complete the handshake and carries
    /// nothing else, until some time after the peer's SYN (`TCP_DEFER_ACCEPT`). The SYN-ACK is then
    /// sent again. Returns false if that time is over or it is another segment, which must be
    /// handled then.
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
    /// (RFC 3168 §5) or a congested router. If it lies in `memory`, which is not written while
    /// shared, data that fills at least half of it stays there until it is read.
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

    /// Handles a run, whose last segment has the header `last`. The connection must not have
    /// changed since the run was begun.
    #[inline]
    pub fn handle_run(self, now: Instant, run: impl Run, last: &Segment<'_>) -> Disposition {
        run.give(self.0, now, last)
    }

    /// Handles an ICMP error. It is ignored if the quoted number is not in flight (RFC 5927 §4.1).
    #[inline]
    pub fn handle_icmp(self, now: Instant, report: IcmpReport) {
        self.0.handle_icmp(now, report);
    }

    /// Ends the connection without a segment, because the host may no longer send from its address.
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
    /// `None` if there is none. To be called until then, or until [`Connection::wants_transmit`] is
    /// false. Segments that differ only in numbers may follow one that was written
    /// ([`Driver::poll_batch`]).
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

    /// Returns the data of the segment that was just sent, in up to two slices. Must be called
    /// before anything else happens to the connection.
    ///
    /// # Panics
    /// If the data is no longer in the send buffer.
    #[must_use]
    #[inline]
    pub fn zero_copy_data(self, range: ZeroCopyRange) -> [&'a [u8]; 2] {
        self.0.zero_copy_data(range)
    }

    /// Returns the segments that may follow the last one at `now` with a copy of its header, which
    /// has `header` bytes: [`Driver::poll_transmit`] would write the same header for each, with
    /// the next number, and the next window in an acknowledgement. Those that are sent must be
    /// [committed](Driver::commit_batch) before anything else happens to the connection.
    ///
    /// A segment of data in a batch never reaches the end of the written data, so it has neither
    /// PSH nor FIN. The final acknowledgement, of everything, is not part of a batch. A batch of
    /// data can be continued later, at the same `now`, by another call; a batch of acknowledgements
    /// ends when anything arrives.
    #[must_use]
    #[inline]
    pub fn poll_batch(self, now: Instant, header: usize) -> Option<Batch> {
        self.0.poll_batch(now, header)
    }

    /// Records that `count` segments of a batch of this `content` were sent at `now`. If the
    /// connection [may have no more](Connection::wants_transmit) then, its timers may have changed.
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

    /// Ensures that something can be written if the host grants memory for it; false if writing is
    /// impossible anyway. Unused memory is freed after a while.
    #[inline]
    pub fn prepare_to_write(self, now: Instant) -> bool {
        self.0.prepare_to_write(now)
    }

    /// Frees unused memory of the send buffer, because other connections wait for memory.
    #[inline]
    pub fn leave_memory_to_others(self) {
        self.0.sender.buffer.give_back_free();
    }

    /// Frees memory that holds nothing and was not used recently, because the host is short of
    /// memory.
    ///
    /// If it `must`, a tuned receive buffer also returns to its initial size as the peer uses up
    /// the window, and data beyond holes is discarded, since it was never acknowledged. Returns
    /// whether there was any.
    #[inline]
    pub fn give_memory_back(self, now: Instant, must: bool) -> bool {
        self.0.give_memory_back(now, must)
    }

    /// Ends the idle period of a quiet connection: [`Connection::compact`] succeeds at once.
    #[inline]
    pub fn end_idle_period(self) {
        self.0.end_idle_period();
    }
}
