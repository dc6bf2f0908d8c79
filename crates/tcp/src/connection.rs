//! The connection: its parts, and its methods in the order of a connection's life.

use crate::congestion::{Congestion, CongestionName};
use crate::ecn::Notification;
use crate::event::{Event, Events};
use crate::fast_open::FastOpen;
use crate::options::{Agreement, TimestampState};
use crate::output::predict::Calm;
use crate::output::reset::Reset;
use crate::receive::ack_policy::{AckPolicy, Received};
use crate::receive::buffer::Offered;
use crate::receive::{ReceiveSequence, Receiver, saturated};
use crate::rest::pack::packed;
use crate::send::buffer::SendBuffer;
use crate::send::path_mtu::PathMtu;
use crate::send::rtt::RoundTrip;
use crate::send::{SendSequence, Sender};
use crate::shared_config::{Preferences, SharedConfig};
use crate::timers::{Timer, Timers};
use crate::user_timeout::UserTimeouts;
use crate::{Config, Error, KeepAlive, LARGEST_BUFFER, MemoryGrant, PacingRule, State, Statistics};
use alloc::boxed::Box;
use core::hint::cold_path;
use linerate_units::{Duration, Instant};
use linerate_wire::{Ecn, Segment, SeqNum, TcpHeader, TcpOptions, Timestamps, prefetch};

/// The MSS of a peer that does not say (RFC 9293 MUST-15).
const DEFAULT_PEER_MSS: u16 = 536;

/// The smallest MSS taken from a peer: with less, a segment would be all header, and a hostile peer
/// could make us work at will.
pub(crate) const SMALLEST_PEER_MSS: u32 = 48;

/// Bytes of the IP headers, without options and extensions.
pub(crate) const IPV4_HEADER: u8 = 20;
const IPV6_HEADER: u8 = 40;

/// What the host knows of the way to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Bytes of TCP header and data that fit one packet: the MTU less the IP header.
    pub mtu_payload: usize,
    /// The same of the first link, or of what its route allows: more is never tried.
    pub link_payload: usize,
    /// Was `mtu_payload` found by trying, and nobody knows yet whether more would pass? Then it may be tried
    /// at once.
    pub is_estimated: bool,
    /// Bytes of the IP header: 20, or 40 of IPv6.
    pub ip_header: u8,
    /// The largest window to offer on this route.
    pub window_clamp: Option<u32>,
}

packed!(Path { mtu_payload, link_payload, is_estimated, ip_header, window_clamp });

impl Path {
    /// A path over IPv4 that takes what its first link does, for all that is known.
    #[must_use]
    pub const fn ipv4(mtu: usize) -> Self {
        Self::with_header(mtu, IPV4_HEADER)
    }

    /// The same over IPv6.
    #[must_use]
    pub const fn ipv6(mtu: usize) -> Self {
        Self::with_header(mtu, IPV6_HEADER)
    }

    const fn with_header(mtu: usize, ip_header: u8) -> Self {
        let payload = mtu.saturating_sub(ip_header as usize);
        Self {
            mtu_payload: payload,
            link_payload: payload,
            is_estimated: false,
            ip_header,
            window_clamp: None,
        }
    }

    /// What a search begins with.
    fn search(self) -> PathMtu {
        let packet = |payload: usize| saturated(payload.saturating_add(self.ip_header.into()));
        PathMtu::new(packet(self.mtu_payload), packet(self.link_payload.max(self.mtu_payload)))
    }

    /// The MSS to announce (RFC 6691: options are not taken off).
    pub(crate) fn mss(self) -> u32 {
        let most = u32::from(u16::MAX);
        saturated(self.mtu_payload.saturating_sub(TcpHeader::LENGTH)).clamp(SMALLEST_PEER_MSS, most)
    }
}

/// What the host draws for a connection, unguessable for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// ISS (RFC 6528).
    pub initial_sequence: SeqNum,
    /// Added to the clock of the timestamps option (RFC 7323 §5.4).
    pub timestamp_offset: u32,
}

/// Which end begins (RFC 9293 §3.10.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Ours, with a SYN.
    Active,
    /// The peer, whose SYN has come.
    Passive,
}

/// One TCP connection.
///
/// The fields that the data arm of header prediction touches lie together at the front. What a predicted segment
/// touches besides, arriving or leaving, follows them, and what hardly any does comes last: where there are very
/// many connections, each line of memory is one to wait for. The parts are laid out to that end, too.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub struct Connection {
    /// Data offset and flags that the next segment is predicted to have; 0, which no segment has,
    /// when nothing may be predicted.
    pub(crate) predicted: u16,
    pub(crate) state: State,
    pub(crate) events: Events,
    /// An acknowledgement must leave, alone or with data.
    pub(crate) ack_due: bool,
    /// It is due for a challenge and nothing else, so the host may withhold it.
    pub(crate) challenge_due: bool,
    /// `poll_transmit` may have something.
    pub(crate) output_due: bool,
    pub(crate) keep_alive_due: bool,
    pub(crate) rcv: ReceiveSequence,
    pub(crate) snd: SendSequence,
    pub(crate) timestamps: TimestampState,
    /// When the last acceptable segment came.
    pub(crate) heard: Instant,
    pub(crate) acks: AckPolicy,
    pub(crate) agreement: Agreement,
    /// Something must leave before all else: a SYN or SYN-ACK; or once the connection is established, an
    /// acknowledgement, before data and without blocks.
    pub(crate) first_due: bool,
    pub(crate) calm: Calm,
    /// What the host lets the buffers take.
    pub(crate) memory: MemoryGrant,
    pub(crate) config: SharedConfig,
    pub(crate) timers: Timers,
    pub(crate) receiver: Receiver,
    pub(crate) user_timeouts: UserTimeouts,
    pub(crate) ecn: Notification,
    pub(crate) sender: Sender,
    pub(crate) statistics: Statistics,
    /// A challenge acknowledgement may leave again from here on (RFC 5961 §7).
    pub(crate) next_challenge: Instant,
    /// When the last of the probes since the peer was last heard was due.
    pub(crate) keep_alive_probed: Instant,
    pub(crate) preferences: Preferences,
    pub(crate) path: Path,
    /// Only where it is used: those that wait in a flood shall not be larger for it.
    pub(crate) fast_open: Option<Box<FastOpen>>,
    /// Probes since the peer was last heard.
    pub(crate) keep_alive_probes: u32,
    /// A reset must leave.
    pub(crate) reset_due: Option<Box<Reset>>,
    /// Did the connection begin with our SYN?
    pub(crate) active: bool,
    /// The application has let go.
    pub(crate) released: bool,
    /// Why the connection ended, if not by mutual consent. Invariant: it is CLOSED then.
    pub(crate) error: Option<Error>,
    /// While a segment is handled: the memory that it lies in.
    pub(crate) offered: Offered,
}

packed!(Connection {
    predicted, state, events, ack_due, challenge_due, output_due, rcv, snd, timestamps, heard, acks,
    receiver, timers, statistics, sender, agreement, memory, ecn, preferences, path, user_timeouts,
    keep_alive_probed, next_challenge, fast_open, keep_alive_probes, keep_alive_due, first_due, active,
    released, error
} known {
    reset_due: |_config| None, offered: |_config| None, config: |shared| shared.clone(), calm: |_config| Calm(false)
});

impl Connection {
    /// An active open: the SYN leaves at the next [`Connection::poll_transmit`].
    #[must_use]
    pub fn connect(config: impl Into<SharedConfig>, path: Path, seeds: Seeds, now: Instant) -> Self {
        Self::open(config.into(), path, seeds, Open::Active, now)
    }

    /// A passive open: `syn` was judged by [`crate::judge_listen`]; the SYN-ACK leaves at the next
    /// [`Connection::poll_transmit`].
    #[must_use]
    pub fn accept(
        config: impl Into<SharedConfig>,
        path: Path,
        seeds: Seeds,
        syn: &Segment<'_>,
        now: Instant,
    ) -> Self {
        let mut connection = Self::open(config.into(), path, seeds, Open::Passive, now);
        connection.learn_from_syn(syn, now);
        connection
    }

    /// A passive open by a host that has kept nothing of the SYN (RFC 4987 §3.6), in place of
    /// [`Connection::learn_from_syn`]: `syn` is what a cookie has brought back, in a segment `ack` that
    /// acknowledges the SYN-ACK and bore `ecn`. The connection is what the SYN and that segment would have made of
    /// it, except that it knows nothing of the round trip: the timestamp that comes back had bits of the cookie
    /// in it.
    pub fn learn_from_cookie(
        &mut self,
        (syn, ack, ecn): (&Segment<'_>, &Segment<'_>, Ecn),
        grant: MemoryGrant,
        now: Instant,
    ) {
        self.learn_from_syn(syn, now);
        self.grant_memory(grant);
        // The SYN-ACK that left when the SYN came.
        let _ = self.poll_transmit(now, &mut [0; TcpHeader::MAX_LENGTH]);
        let _ = self.handle_segment_bearing(now, ack, ecn);
        self.sender.rtt = RoundTrip::new(&self.config.rto);
    }

    /// Either open, for whoever wants to put the connection into its place before anything else happens to it. A
    /// passive one is told of its SYN next, by [`Connection::learn_from_syn`].
    #[must_use]
    pub fn open(config: SharedConfig, path: Path, seeds: Seeds, open: Open, now: Instant) -> Self {
        let clamp = path.window_clamp.map_or(LARGEST_BUFFER, |clamp| clamp.max(1) as usize);
        let preferences = Preferences::of(&config, clamp);
        let receive_buffer = preferences.receive_buffer;
        let iss = seeds.initial_sequence;
        Self {
            predicted: 0,
            state: match open {
                Open::Active => State::SynSent,
                Open::Passive => State::SynReceived,
            },
            events: Events::empty(),
            ack_due: false,
            challenge_due: false,
            output_due: true,
            rcv: ReceiveSequence::new(SeqNum::new(0)),
            snd: SendSequence::new(iss),
            timestamps: TimestampState::new(seeds.timestamp_offset),
            heard: now,
            acks: AckPolicy::new(config.acks),
            receiver: Receiver::new(receive_buffer, u32::from(DEFAULT_PEER_MSS), now),
            timers: Timers::new(config.delayed_ack_tick, config.slow_tick),
            statistics: Statistics::default(),
            sender: Sender::new(&config, iss, u32::from(DEFAULT_PEER_MSS), path.search(), now),
            agreement: Agreement::offer(&config, receive_buffer.most()),
            memory: MemoryGrant::UNLIMITED,
            ecn: Notification::new(config.ecn, config.accurate_ecn),
            user_timeouts: UserTimeouts::new(config.user_timeout, config.user_timeout_option),
            config,
            preferences,
            path,
            keep_alive_probes: 0,
            keep_alive_probed: now,
            keep_alive_due: false,
            first_due: true,
            calm: Calm(false),
            reset_due: None,
            next_challenge: now,
            active: open == Open::Active,
            fast_open: None,
            released: false,
            error: None,
            offered: None,
        }
    }

    /// Takes from the peer's SYN what it says of the peer (RFC 9293 §3.10.7.2, §3.10.7.3).
    pub fn learn_from_syn(&mut self, syn: &Segment<'_>, now: Instant) {
        let options = syn.options();
        self.rcv = ReceiveSequence::new(syn.seq);
        self.rcv.nxt = syn.seq + 1;
        self.rcv.edge = self.rcv.nxt;
        if self.active {
            // What our SYN has offered: a peer that needs not wait for our acknowledgement may use it at
            // once.
            self.rcv.edge += u32::from(self.window_of_syn());
        }
        self.agreement.settle(&options);
        self.ecn.note_heard_syn(syn.flags());
        self.receiver.largest_window = u32::from(u16::MAX) << self.agreement.receive_shift;
        if let Some(timestamps) = options.timestamps {
            self.timestamps.on = self.config.timestamps;
            self.timestamps.take(timestamps.value, now);
        }
        self.note_user_timeout(now, &options);
        self.begin_path_search(u32::from(options.mss.unwrap_or(DEFAULT_PEER_MSS)), now);
        self.begin_congestion_control();
        // The window of a SYN is never scaled (RFC 7323 §2.2).
        self.note_window(syn.seq, self.snd.una, u32::from(syn.window));
    }

    /// The size of segments is known, and whether the peer will name what it has. If not, nothing
    /// measures the rate that BBR lives by.
    fn begin_congestion_control(&mut self) {
        let wish = self.config.congestion;
        let is_possible = self.agreement.selective_acks || wish != CongestionName::Bbr;
        let name = if is_possible { wish } else { Config::modern().congestion };
        let (mss, initial) = (self.full_segment(), self.config.initial_window);
        let (paced, seed) = (self.config.pacing == PacingRule::On, u64::from(self.snd.iss.number()));
        self.sender.congestion = Congestion::new(name, mss, initial, paced, seed);
        self.begin_first_flight();
    }

    /// The handshake is complete: our SYN is acknowledged, with all that lies before `ack`.
    pub(crate) fn establish(&mut self, now: Instant, ack: SeqNum) {
        self.state = State::Established;
        self.events |= Events::CONNECTED | Events::WRITABLE;
        self.ecn.on_established();
        // A SYN of ours that was about to go again has been overtaken by its acknowledgement.
        self.first_due = false;
        // What was read before, of a connection that was opened fast, may have opened a window that the
        // SYN-ACK had to close.
        let was_small = self.rcv.window() < self.receiver.largest_segment;
        if self.rcv.pending() > 0 || (was_small && self.has_opened_window()) {
            self.owe_ack();
        }
        if self.sender.rtt.backoff() > 1 {
            cold_path();
            // The handshake lost more than one segment: begin with one (RFC 5681 §3.1). A single loss may
            // be none, over a path that is longer than the first timeout (RFC 6928 §2).
            self.sender.congestion.controller().restart();
        }
        self.sender.rtt.restart_after_handshake(&self.config.rto);
        if self.sender.fin {
            self.state = self.state.after_close();
        }
        if let Some(keep_alive) = self.preferences.keep_alive {
            self.timers.set(Timer::KeepAlive, now, keep_alive.idle);
        }
        if self.snd.max.after(ack) || self.sender.has_unsent(self.snd.nxt) {
            cold_path();
            self.watch_user_timeout(now);
        }
        self.watch_idle_buffers(now);
        self.output_due |= self.sender.has_unsent(self.snd.nxt);
    }

    /// Has what was read opened the window so far that it is worth a segment?
    #[cold]
    fn has_opened_window(&self) -> bool {
        self.acks.on_read(&self.received())
    }

    /// Adds `data` to what is to be sent; returns how much of it there was room for. `Ok(0)` for
    /// data that is not empty means: come back after [`Event::Writable`].
    ///
    /// # Errors
    /// Why the connection ended, or [`Error::Shutdown`] if the application has closed this direction.
    #[inline]
    pub fn write(&mut self, now: Instant, data: &[u8]) -> Result<usize, Error> {
        self.add(now, data.len(), |buffer, memory| {
            let taken = buffer.append(data, memory);
            (taken, taken == data.len())
        })
    }

    /// Has `add` put bytes into the send buffer, of `wanted` that the application would like to; it says how
    /// many it has put there, and whether there was room for all that are wanted.
    #[inline]
    pub(crate) fn add(
        &mut self,
        now: Instant,
        wanted: usize,
        add: impl FnOnce(&mut SendBuffer, &MemoryGrant) -> (usize, bool),
    ) -> Result<usize, Error> {
        if self.sender.fin || !self.state.may_write() {
            return Err(self.error.unwrap_or(Error::Shutdown));
        }
        let was_empty = self.sender.buffer.len() == 0;
        if was_empty {
            // Nothing else waits for the peer in a state to which a user timeout applies.
            self.watch_user_timeout(now);
        }
        self.tune_send_buffer(wanted);
        let waits = self.waits_for_window();
        let (taken, had_room) = add(&mut self.sender.buffer, &self.memory);
        self.output_due |= taken > 0 && !waits;
        self.sender.write_refused = !had_room;
        self.sender.room_awaited |= !had_room;
        if was_empty && taken > 0 {
            self.start_business(now);
        }
        Ok(taken)
    }

    /// Writes `data` whose last byte is urgent. RFC 6093 advises new programs against it; the peer
    /// reads the data in line and learns where the urgent part ends.
    ///
    /// # Errors
    /// As [`Connection::write`].
    pub fn write_urgent(&mut self, now: Instant, data: &[u8]) -> Result<usize, Error> {
        let taken = self.write(now, data)?;
        if taken > 0 {
            self.sender.urgent = Some(self.sender.buffer.end());
            self.end_calm();
        }
        Ok(taken)
    }

    /// Takes received bytes into `into`; `Ok(0)` for a buffer that is not empty means that the peer
    /// has closed and everything was read.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if there is nothing yet, or why the connection ended.
    #[inline]
    pub fn read(&mut self, now: Instant, into: &mut [u8]) -> Result<usize, Error> {
        if self.receiver.buffer.is_empty() || into.is_empty() {
            return self.nothing_to_read(into);
        }
        let count = self.receiver.buffer.read(into);
        self.follow_read(now, count);
        Ok(count)
    }

    /// The application has read `count` bytes, at least one.
    #[inline]
    pub(crate) fn follow_read(&mut self, now: Instant, count: usize) {
        self.forget_passed_urgent_mark();
        self.tune_receive_buffer(now, count);
        self.judge_read();
        if self.receiver.buffer.is_empty() {
            self.watch_idle_buffers(now);
        }
    }

    /// Copies received bytes without taking them.
    ///
    /// # Errors
    /// As [`Connection::read`].
    pub fn peek(&self, into: &mut [u8]) -> Result<usize, Error> {
        if self.receiver.buffer.is_empty() || into.is_empty() {
            return self.nothing_to_read(into);
        }
        Ok(self.receiver.buffer.peek(into))
    }

    /// Would [`Connection::read`] find nothing, and may something still come?
    #[inline]
    #[must_use]
    pub fn has_nothing_to_read(&self) -> bool {
        self.receiver.buffer.is_empty() && !self.is_at_end_of_stream()
    }

    fn nothing_to_read(&self, into: &[u8]) -> Result<usize, Error> {
        if into.is_empty() { Ok(0) } else { self.why_nothing_to_read() }
    }

    /// Zero for the end of the stream.
    pub(crate) fn why_nothing_to_read(&self) -> Result<usize, Error> {
        match self.error {
            Some(error) => Err(error),
            None if self.is_at_end_of_stream() => Ok(0),
            None => Err(Error::WouldBlock),
        }
    }

    /// A read has made room: is that worth a segment?
    #[inline(always)]
    fn judge_read(&mut self) {
        let (pending, segment) = (self.rcv.pending(), self.receiver.largest_segment);
        if self.acks.may_wait(pending, segment, self.rcv.window(), self.receiver.capacity()) {
            debug_assert!(!self.acks.on_read(&self.received()), "what may wait is not due");
        } else {
            self.owe_ack_if_window_grew();
        }
    }

    /// What the acknowledgement policy wants to know.
    #[inline]
    pub(crate) fn received(&self) -> Received {
        Received {
            pending: self.rcv.pending(),
            segment: self.receiver.largest_segment,
            unread: saturated(self.receiver.buffer.len()),
            capacity: self.receiver.capacity(),
            offered: self.rcv.window(),
            room: self.receiver.room(),
        }
    }

    /// Bytes until the end of the announced urgent data, while there is any to read (as
    /// `SIOCATMARK` tells by zero).
    #[must_use]
    pub fn urgent_distance(&self) -> Option<usize> {
        let mark = self.receiver.urgent?;
        Some((mark - self.first_unread()) as usize)
    }

    fn first_unread(&self) -> SeqNum {
        self.rcv.nxt - saturated(self.receiver.buffer.len())
    }

    fn forget_passed_urgent_mark(&mut self) {
        if self.receiver.urgent.is_some_and(|mark| !mark.after(self.first_unread())) {
            self.receiver.urgent = None;
            self.refresh_prediction();
        }
    }

    /// Closes the sending direction: a FIN follows what was written. Reading goes on.
    pub fn shutdown_write(&mut self, now: Instant) {
        if self.sender.fin || !self.state.may_write() {
            return;
        }
        if !self.has_undelivered() {
            self.watch_user_timeout(now);
        }
        self.sender.fin = true;
        self.state = self.state.after_close();
        self.output_due = true;
        if self.released {
            self.start_orphan_timer(now);
        }
        self.refresh_prediction();
    }

    /// Closes the receiving direction: what has arrived and what will arrive is thrown away, and
    /// acknowledged all the same.
    pub fn shutdown_read(&mut self, _now: Instant) {
        if !self.receiver.shut {
            self.receiver.shut();
            self.owe_ack_if_window_grew();
            self.refresh_prediction();
        }
    }

    #[inline(never)]
    pub(crate) fn owe_ack_if_window_grew(&mut self) {
        if self.state.takes_data() && self.acks.on_read(&self.received()) {
            self.owe_ack();
        }
    }

    /// The application lets go. What was written is still sent, as `linger` allows; data that
    /// nobody has read, or that still comes, resets the connection, so that the peer does not take
    /// it for delivered (RFC 9293 §3.6.1, RFC 2525 §2.17).
    pub fn close(&mut self, now: Instant) {
        self.released = true;
        if self.state == State::SynSent {
            self.end(None);
        } else if self.state == State::TimeWait {
            // The peer has our FIN and can be told nothing more; old segments must die all the same.
            self.receiver.shut();
        } else if !self.receiver.buffer.is_empty() || self.preferences.linger == Some(Duration::ZERO) {
            self.abort(now);
        } else {
            self.shutdown_write(now);
            self.start_orphan_timer(now);
        }
    }

    /// The timer of a connection that nobody holds: its linger time, or in FIN-WAIT-2 the time for
    /// the peer's FIN.
    pub(crate) fn start_orphan_timer(&mut self, now: Instant) {
        let patience = match (self.state, self.preferences.linger) {
            (State::FinWait2, _) => self.config.orphan_patience,
            (state, Some(linger)) if state != State::TimeWait && state != State::Closed => linger,
            _ => return,
        };
        self.timers.set(Timer::Orphan, now, patience);
    }

    /// Resets the connection (RFC 9293 §3.10.5). One in TIME-WAIT is over already, by mutual consent.
    pub fn abort(&mut self, now: Instant) {
        if self.state == State::TimeWait {
            self.end(None);
        } else {
            self.abort_by_ourselves(now, Error::Aborted);
        }
    }

    /// Resets the connection for the reason `error`, with which no segment of the peer's has to do.
    pub(crate) fn abort_by_ourselves(&mut self, now: Instant, error: Error) {
        let timestamps = self.timestamps.on.then(|| self.timestamps.stamp(now));
        self.abort_with(error, timestamps);
    }

    /// Resets the connection for the reason `error`, by a reset with these timestamps.
    #[cold]
    pub(crate) fn abort_with(&mut self, error: Error, timestamps: Option<Timestamps>) {
        let tells_peer = matches!(
            self.state,
            State::SynReceived
                | State::Established
                | State::FinWait1
                | State::FinWait2
                | State::CloseWait
                | State::Closing
                | State::LastAck
        );
        if tells_peer {
            self.owe_reset(Reset::of(self.empty_seq(), self.rcv.nxt, timestamps));
        }
        self.end(Some(error));
    }

    /// Sends a reset before anything else.
    pub(crate) fn owe_reset(&mut self, reset: Reset) {
        self.reset_due = Some(Box::new(reset));
        self.output_due = true;
    }

    /// The connection is over. What had arrived in order can still be read.
    pub(crate) fn end(&mut self, error: Option<Error>) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.end_burst();
        self.error = self.error.or(error);
        self.events |= Events::CLOSED;
        self.timers.clear_all();
        self.sender.buffer.clear();
        self.sender.scoreboard.clear(self.snd.max);
        self.sender.undo = None;
        self.sender.fin = false;
        self.snd.una = self.snd.max;
        self.snd.nxt = self.snd.max;
        self.ack_due = false;
        self.first_due = false;
        self.keep_alive_due = false;
        self.predicted = 0;
    }

    /// Everything is done; old segments are given time to leave the network (RFC 9293 §3.6.1).
    pub(crate) fn enter_time_wait(&mut self, now: Instant) {
        self.ecn.forget();
        self.timers.clear_all();
        self.timers.set(Timer::TimeWait, now, self.config.msl * 2);
        if self.released && self.receiver.buffer.is_empty() {
            self.receiver.buffer.give_back();
            self.sender.buffer.give_back();
        } else {
            self.watch_idle_buffers(now);
        }
    }

    /// An acknowledgement must leave at the next opportunity.
    pub(crate) fn owe_ack(&mut self) {
        self.ack_due = true;
        self.challenge_due = false;
        self.output_due = true;
    }

    /// Fetches each line of memory that a segment is going to need which arrives, and what is asked before its
    /// acknowledgement leaves, so that all of them are at hand when it has its turn. Nothing else comes of it.
    #[inline]
    pub fn warm(&self) {
        prefetch(&self.predicted);
        prefetch(&self.snd);
        prefetch(&self.heard);
        prefetch(&self.memory);
        prefetch(&self.receiver.buffer);
        prefetch(&self.receiver.largest_segment);
        prefetch(&self.receiver.autotune);
        prefetch(&self.statistics.segments_received);
        prefetch(&self.statistics.bytes_received);
        prefetch(&self.statistics.prediction.data);
        prefetch(&self.timers);
        prefetch(&self.ecn);
        prefetch(&self.sender.probes);
        prefetch(&self.sender.pacer);
        prefetch(&self.sender.path);
        prefetch(&self.sender.buffer);
        prefetch(&self.sender.congestion);
        prefetch(&self.sender.scoreboard);
    }

    /// The next event, if there is one.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// What [`Connection::poll_event`] would have.
    #[inline]
    #[must_use]
    pub const fn events(&self) -> Events {
        self.events
    }

    /// Takes all events at once.
    #[inline]
    pub const fn take_events(&mut self) -> Events {
        core::mem::replace(&mut self.events, Events::empty())
    }

    /// When [`Connection::handle_timeout`] must be called next; [`Instant::NEVER`] if not at all. The
    /// answer may move either way with every other call.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        self.timers.next()
    }

    /// A time before which there is no deadline: the earliest one since [`Connection::handle_timeout`] was
    /// called last, though it may have moved later since. Who looks at it after each step, which costs
    /// nothing, and calls that when it has come, is never late, and seldom called for nothing.
    #[inline]
    #[must_use]
    pub const fn earliest_timeout(&self) -> Instant {
        self.timers.floor()
    }

    /// May [`Connection::poll_transmit`] have something? If not, it has nothing until the next call
    /// of another method.
    #[must_use]
    pub const fn wants_transmit(&self) -> bool {
        self.output_due
    }

    /// Payload bytes of a full segment: the MSS less the options that every segment carries.
    #[must_use]
    pub fn effective_mss(&self) -> usize {
        self.full_segment() as usize
    }

    /// The same as a length in sequence space.
    pub(crate) fn full_segment(&self) -> u32 {
        self.sender.full
    }

    /// Bytes of options that every segment with data carries.
    pub(crate) fn constant_options(&self) -> u32 {
        if self.timestamps.on { saturated(TcpOptions::TIMESTAMPS_LENGTH) } else { 0 }
    }

    /// Bytes of the largest packet that the path is believed to take. Where the peer takes less than the
    /// first link, that is not asked of the path.
    #[must_use]
    pub fn path_mtu(&self) -> usize {
        let known = if self.sender.path.is_widest() { self.path.mtu_payload } else { 0 };
        known.saturating_add(self.path.ip_header.into()).max(self.sender.path.effective() as usize)
    }

    /// Is it not known yet whether the path would take a larger packet than [`Connection::path_mtu`]?
    #[must_use]
    pub fn is_path_mtu_estimated(&self) -> bool {
        self.sender.path.is_estimated()
    }

    /// Send segments that are not full at once (`TCP_NODELAY`)?
    pub fn set_no_delay(&mut self, no_delay: bool) {
        self.preferences.no_delay = no_delay;
        self.output_due = true;
    }

    /// Are segments that are not full sent at once?
    #[must_use]
    pub const fn no_delay(&self) -> bool {
        self.preferences.no_delay
    }

    /// Use header prediction? Off, every segment takes the slow path, which does the same.
    pub fn set_header_prediction(&mut self, on: bool) {
        self.preferences.header_prediction = on;
        self.refresh_prediction();
    }

    /// Probe a silent peer?
    pub fn set_keep_alive(&mut self, now: Instant, keep_alive: Option<KeepAlive>) {
        self.preferences.keep_alive = keep_alive.map(KeepAlive::within_limits);
        self.keep_alive_probes = 0;
        match keep_alive {
            Some(keep_alive) if self.state.is_synchronized() && self.state != State::TimeWait => {
                self.timers.set(Timer::KeepAlive, now, keep_alive.idle);
            }
            _ => self.timers.clear(Timer::KeepAlive),
        }
    }

    /// How a silent peer is probed, if it is.
    #[must_use]
    pub const fn keep_alive(&self) -> Option<KeepAlive> {
        self.preferences.keep_alive
    }

    /// How long unsent data is cared for after [`Connection::close`].
    pub fn set_linger(&mut self, linger: Option<Duration>) {
        self.preferences.linger = linger;
    }

    /// How long unsent data is cared for after [`Connection::close`].
    #[must_use]
    pub const fn linger(&self) -> Option<Duration> {
        self.preferences.linger
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::mem::offset_of;

    /// What the data arm reads and writes of sequence space lies in the first cache line, so that a
    /// predicted segment costs one miss before it reaches the buffer.
    #[test]
    fn the_data_arm_touches_one_line_before_the_buffer() {
        let line = 64;
        assert!(offset_of!(Connection, predicted) < line);
        assert!(offset_of!(Connection, output_due) < line);
        assert!(offset_of!(Connection, rcv) + size_of::<ReceiveSequence>() <= line);
        assert!(offset_of!(Connection, snd) + offset_of!(SendSequence, nxt) <= line);
    }

    /// Cache lines that hold these fields, of a connection that begins one.
    fn lines(fields: &[(usize, usize)]) -> usize {
        let mut lines: Vec<usize> =
            fields.iter().flat_map(|&(at, size)| at / 64..=(at + size - 1) / 64).collect();
        lines.sort_unstable();
        lines.dedup();
        lines.len()
    }

    macro_rules! field {
        ($first:ident $(. $further:ident)*) => {
            (offset_of!(Connection, $first $(. $further)*), {
                const fn size<T>(_: fn(&Connection) -> &T) -> usize {
                    size_of::<T>()
                }
                size(|connection| &connection.$first $(. $further)*)
            })
        };
    }

    /// What a predicted segment reads or writes of its connection, beside the bytes in the buffers.
    #[test]
    fn the_arms_of_prediction_touch_few_lines() {
        let both = [
            field!(predicted),
            field!(output_due),
            field!(rcv),
            field!(snd.una),
            field!(snd.wnd),
            field!(timestamps),
            field!(heard),
            field!(statistics.segments_received),
        ];
        let data = [
            field!(acks),
            field!(config),
            field!(memory),
            field!(timers),
            field!(receiver.buffer),
            field!(receiver.assembler),
            field!(receiver.largest_segment),
            field!(receiver.largest_window),
            field!(statistics.bytes_received),
            field!(statistics.prediction.data),
        ];
        let ack = [
            field!(snd.max_wnd),
            field!(timers),
            field!(sender.buffer),
            field!(sender.rtt),
            field!(sender.loss),
            field!(sender.congestion),
            field!(sender.scoreboard),
            field!(sender.account),
            field!(sender.rack),
            field!(statistics.bytes_acknowledged),
            field!(statistics.prediction.acks),
        ];
        let lines_of = |arm: &[(usize, usize)]| lines(&[&both[..], arm].concat());
        assert!(lines_of(&data) <= 8, "{} lines for data", lines_of(&data));
        // All of the sender's parts, of which one acknowledgement moves a half.
        assert!(lines_of(&ack) <= 17, "{} lines for an acknowledgement", lines_of(&ack));
    }
}
