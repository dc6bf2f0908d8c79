//! The host driver's interface to a connection.

use crate::{
    Batch, BatchContent, Connection, Disposition, Error, Event, Events, FastOpenOffer, IcmpReport,
    MemoryGrant, Offload, Run, Transmit, ZeroCopyRange,
};
use alloc::boxed::Box;
use alloc::sync::Arc;
use linerate_units::{Duration, Instant};
use linerate_wire::{Ecn, FastOpenCookie, Segment};

/// The interface of a connection for its driver: the program that delivers segments and expired
/// timers to it, and takes segments and events from it.
///
/// The application must not call these methods. [`Connection::driver`] returns this type, which is
/// a reference and costs nothing.
#[derive(Debug)]
pub struct Driver<'a>(&'a mut Connection);

impl Connection {
    /// Returns the interface for the host driver.
    #[inline]
    pub const fn driver(&mut self) -> Driver<'_> {
        Driver(self)
    }
}

impl<'a> Driver<'a> {
    /// Adds a Fast Open option to the SYN of an active open (RFC 7413 §4.2). With
    /// [`FastOpenOffer::Request`], the SYN requests a cookie. With [`FastOpenOffer::Data`], it
    /// carries a cookie, and the data that was written before the SYN is sent. Send only data that
    /// may be delivered twice: after the server has closed the connection, a duplicate SYN can open
    /// another one (§6.1).
    #[inline]
    pub fn try_fast_open(self, offer: FastOpenOffer) {
        self.0.try_fast_open(offer);
    }

    /// Makes the SYN-ACK of a passive open carry a Fast Open cookie for the client's later
    /// connections.
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

    /// Completes a passive open by a SYN cookie (RFC 4987 §3.6), for a host that has stored nothing
    /// about the SYN. Replaces [`Driver::learn_from_syn`].
    ///
    /// `syn` is reconstructed from the cookie that `ack` acknowledges, and `ecn` is the codepoint
    /// of the packet with `ack`. The result equals a connection that has processed both segments,
    /// except that it has no round-trip sample. The timestamp that `ack` echoes contains bits of
    /// the cookie instead of the time.
    #[inline]
    pub fn learn_from_cookie(self, syn: &Segment<'_>, ack: &Segment<'_>, ecn: Ecn, now: Instant) {
        self.0.learn_from_cookie((syn, ack, ecn), now);
    }

    /// Stores the ECN codepoint of the packet that carried the peer's SYN. In AccECN mode the
    /// SYN-ACK reports it (RFC 9768 §3.1.1).
    #[inline]
    pub fn note_codepoint_of_syn(self, ecn: Ecn) {
        self.0.note_codepoint_of_syn(ecn);
    }

    /// Ignores `segment` if it is an acknowledgement without data that would complete the handshake
    /// (`TCP_DEFER_ACCEPT`). Such acknowledgements are ignored for `period` after the peer's SYN.
    /// Afterwards the SYN-ACK is retransmitted, and the acknowledgement of it completes the
    /// handshake. Returns false if the period is over, or if `segment` is not such an
    /// acknowledgement. The caller must then handle `segment`.
    #[inline]
    pub fn defer_handshake(self, now: Instant, segment: &Segment<'_>, period: Duration) -> bool {
        self.0.defer_handshake(now, segment, period)
    }

    /// Handles a segment that belongs to this connection and has a valid checksum. Use it if the
    /// packet had the codepoint Not-ECT, or if its codepoint is unknown.
    #[inline]
    pub fn handle_segment(self, now: Instant, segment: &Segment<'_>) -> Disposition {
        self.0.handle_segment(now, segment)
    }

    /// Handles a segment that belongs to this connection and has a valid checksum. `ecn` is the
    /// codepoint of its packet, set by an ECN-capable sender or a congested router (RFC 3168 §5).
    ///
    /// `memory` is the buffer that contains the segment, if the connection may keep a reference to
    /// it. It keeps one only if the data fills at least half of this buffer. Otherwise it copies
    /// the data. The buffer must not be written while the connection has a reference to it.
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

    /// Handles all segments of a [`Run`], such as a GRO run or an ACK batch. `last` is the header
    /// of the final segment of the run. Between the first segment of the run and this call, the
    /// connection must not have changed.
    #[inline]
    pub fn handle_run(self, now: Instant, run: impl Run, last: &Segment<'_>) -> Disposition {
        run.give(self.0, now, last)
    }

    /// Handles an ICMP error, which is ignored if the quoted sequence number is not in flight (RFC
    /// 5927 §4.1).
    #[inline]
    pub fn handle_icmp(self, now: Instant, report: IcmpReport) {
        self.0.handle_icmp(now, report);
    }

    /// Ends the connection without sending a segment, because the host has lost its local address.
    #[cold]
    pub fn lose_address(self) {
        self.0.slow(|connection| connection.end(Some(Error::AddressRemoved)));
    }

    /// Suppresses the challenge ACK that is due, if there is one. Called when the limit of the host
    /// for challenge ACKs is reached (RFC 5961 §7).
    #[inline]
    pub fn withhold_challenge(self) {
        self.0.withhold_challenge();
    }

    /// Handles all timers that have expired at `now`. Call it at the time of
    /// [`Connection::poll_timeout`]; an earlier call has no effect.
    #[inline]
    pub fn handle_timeout(self, now: Instant) {
        self.0.handle_timeout(now);
    }

    /// Returns the time for the next call of [`Driver::handle_timeout`]: [`Instant::NEVER`] if no
    /// timer is running, and `None` if the call is already due at `now`.
    #[inline]
    pub fn deadline_after(self, now: Instant) -> Option<Instant> {
        self.0.deadline_after(now)
    }

    /// Returns the next event, if there is one.
    #[inline]
    pub fn poll_event(self) -> Option<Event> {
        self.0.events.pop()
    }

    /// Returns and clears all pending events.
    #[inline]
    pub fn take_events(self) -> Events {
        core::mem::replace(&mut self.0.events, Events::empty())
    }

    /// Writes the next segment to the start of `bytes`, with zero for ports and checksum. Returns
    /// `None` if there is no segment to send. Call it until it returns `None` or
    /// [`Connection::wants_transmit`] is false. After it has written a segment,
    /// [`Driver::poll_batch`] may offer further segments that differ from it only in data and in
    /// numbers of the header.
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

    /// Returns the data of the segment that was just sent, if it was not copied to the frame.
    /// `range` is [`Transmit::zero_copy`]. The data lies in up to two slices. No other method of
    /// the connection may be called between sending the segment and this call.
    ///
    /// # Panics
    /// If the data is no longer in the send buffer.
    #[must_use]
    #[inline]
    pub fn zero_copy_data(self, range: ZeroCopyRange) -> [&'a [u8]; 2] {
        self.0.zero_copy_data(range)
    }

    /// Returns a batch of further segments that can be sent at `now`. Their headers equal that of
    /// the segment that was just sent (`header` bytes). Only the sequence number differs, or for
    /// ACKs the acknowledgement number and the window. The caller must
    /// [commit](Driver::commit_batch) the segments that it sends before it calls another method.
    ///
    /// No data segment of a batch contains the end of the written data, so none has PSH or FIN. The
    /// ACK that covers all received data is not part of a batch; [`Driver::poll_transmit`] writes
    /// it. Another call at the same `now` can continue a batch of data. A batch of ACKs ends when
    /// any segment arrives.
    #[must_use]
    #[inline]
    pub fn poll_batch(self, now: Instant, header: usize) -> Option<Batch> {
        self.0.poll_batch(now, header)
    }

    /// Records that `count` segments of a batch with this `content` were sent at `now`. If
    /// [`Connection::wants_transmit`] is false afterwards, the timers may have changed.
    #[inline]
    pub fn commit_batch(self, now: Instant, content: BatchContent, count: u32) {
        self.0.commit_batch(now, content, count);
    }

    /// Sets the amount of buffer memory that the connection may allocate, until the next call of
    /// this method.
    #[inline]
    pub fn grant_memory(self, grant: MemoryGrant) {
        self.0.memory = grant;
    }

    /// Swaps the memory of the send buffer with `memory`, if the buffer is empty and both memories
    /// have equal size. Thus the host can provide memory that is in the CPU's cache. Returns
    /// whether the memories were swapped.
    #[inline]
    pub fn exchange_send_memory(self, memory: &mut Box<[u8]>) -> bool {
        self.0.sender.buffer.exchange(memory)
    }

    /// Swaps the memory of the receive buffer with `memory`, if the buffer is empty and both
    /// memories have equal size. Thus the host can provide memory that is in the CPU's cache.
    /// Returns whether the memories were swapped.
    #[inline]
    pub fn exchange_receive_memory(self, memory: &mut Box<[u8]>) -> bool {
        self.0.receiver.assembler.is_empty() && self.0.receiver.buffer.exchange(memory)
    }

    /// Allocates memory within the host's grant, so that the application can write. Returns false
    /// if the connection does not permit writing, or the grant is too small. Memory that stays
    /// unused is freed later.
    #[inline]
    pub fn prepare_to_write(self, now: Instant) -> bool {
        self.0.prepare_to_write(now)
    }

    /// Frees unused memory of the send buffer, for other connections that wait for memory.
    #[inline]
    pub fn leave_memory_to_others(self) {
        self.0.sender.buffer.give_back_free();
    }

    /// Frees buffer memory that holds no data and was not used recently, because the host is short
    /// of memory.
    ///
    /// If `must` is true, two more measures are taken. A tuned receive buffer shrinks to its
    /// initial size as the peer uses up the window. Out-of-order data is discarded, which is
    /// permitted because no acknowledgement number has covered it. Returns whether such data was
    /// discarded.
    #[inline]
    pub fn give_memory_back(self, now: Instant, must: bool) -> bool {
        self.0.give_memory_back(now, must)
    }

    /// Ends the idle period of a connection that has no pending work, so that
    /// [`Connection::compact`] succeeds at once.
    #[inline]
    pub fn end_idle_period(self) {
        self.0.end_idle_period();
    }
}
