//! Output: a segment is chosen, built and recorded.

pub(crate) mod acks;
mod build;
pub(crate) mod burst;
mod choose;
pub(crate) mod predict;
pub(crate) mod reset;
pub(crate) mod zero_copy;

use crate::receive::BLOCKS_THAT_FIT;
use crate::send::Writes;
use crate::timers::Timer;
use crate::{Connection, State, TimeLimits};
use choose::{Choice, Piece};
use core::num::NonZeroU16;
use linerate_units::{Duration, Instant};
use linerate_wire::{Ecn, SeqNum, Sum, TcpFlags};
use zero_copy::ZeroCopyRange;

/// A segment that was written into a frame.
#[derive(Clone, Copy, Debug)]
pub struct Transmit {
    /// Bytes of header and payload.
    pub length: usize,
    /// The checksum over all of them, with ports and checksum zero; the ports and the pseudo-header
    /// are to be added.
    pub sum: Sum,
    /// The ECN codepoint of the packet (RFC 3168 §6.1).
    pub ecn: Ecn,
    /// Bytes of the header, options included.
    pub header: usize,
    /// Data bytes of each segment, if this is a GSO frame that is still to be cut into equal
    /// segments.
    pub cut: Option<NonZeroU16>,
    /// The data in the send buffer, if it was not written behind the header.
    pub zero_copy: Option<ZeroCopyRange>,
    /// The kind of the segment, for counters.
    pub kind: Kind,
}

/// The kind of a segment in the counters of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A segment sent.
    Ordinary,
    /// A retransmission.
    Again,
    /// A reset.
    Reset,
}

impl Transmit {
    /// Returns a segment of `header` bytes without data, with this checksum.
    #[inline]
    const fn without_data(header: usize, sum: Sum) -> Self {
        Self {
            length: header,
            sum,
            ecn: Ecn::NotEct,
            header,
            cut: None,
            zero_copy: None,
            kind: Kind::Ordinary,
        }
    }

    /// Returns the number of segments.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.cut.map_or(1, |size| (self.length - self.header) / usize::from(size.get()))
    }
}

/// The steps left to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finish {
    /// None: it is one segment with a checksum of its payload.
    Nothing,
    /// The payload checksum, and cutting of GSO frames.
    CutAndSum,
    /// The payload checksum, cutting, and gathering of the payload from the send buffer.
    Gather,
}

impl Connection {
    /// Writes the next segment to the start of `bytes`, with ports and checksum zero, or returns
    /// `None` if there is none. To be called until then, or until [`Connection::wants_transmit`] is
    /// false.
    ///
    /// # Panics
    /// If `bytes` has no room for the largest segment that this connection's path may take
    /// (`Path::link_payload`).
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, bytes: &mut [u8]) -> Option<Transmit> {
        self.poll(now, bytes, Finish::Nothing)
    }

    /// Writes the next segment for a link with checksum offload and GSO: [`Transmit::sum`] covers
    /// the header alone, and a burst of full segments is written whole behind one header, as far as
    /// `bytes` has room.
    ///
    /// # Panics
    /// As [`Connection::poll_transmit`].
    pub fn poll_transmit_uncut(&mut self, now: Instant, bytes: &mut [u8]) -> Option<Transmit> {
        self.poll(now, bytes, Finish::CutAndSum)
    }

    /// Writes the next segment if it is predicted. It then is the only one that may be sent, and
    /// nothing else that is reported changes. Otherwise [`Connection::poll_unpredicted`] is to be
    /// called. For callers with little to do after the first step.
    ///
    /// # Panics
    /// As [`Connection::poll_transmit`].
    #[inline(always)]
    pub fn poll_predicted(&mut self, now: Instant, bytes: &mut [u8]) -> Option<Transmit> {
        self.poll_rest(now, bytes, Finish::Nothing)
    }

    /// Writes the next segment after [`Connection::poll_predicted`] has written none.
    ///
    /// # Panics
    /// As [`Connection::poll_transmit`].
    #[inline(always)]
    pub fn poll_unpredicted(&mut self, now: Instant, bytes: &mut [u8]) -> Option<Transmit> {
        self.poll_any(now, bytes, Finish::Nothing)
    }

    #[inline(always)]
    fn poll(&mut self, now: Instant, bytes: &mut [u8], finish: Finish) -> Option<Transmit> {
        let rest = self.poll_rest(now, bytes, finish);
        rest.or_else(|| self.poll_any(now, bytes, finish))
    }

    #[inline(always)]
    fn poll_rest(&mut self, now: Instant, bytes: &mut [u8], finish: Finish) -> Option<Transmit> {
        if !self.output_due {
            return None;
        }
        if self.expectation.header() == 0 {
            return self.send_control(now, finish, bytes).map(Transmit::from);
        }
        let rest = self.predict_output()?;
        Some(self.send_predicted(now, rest, finish, bytes))
    }

    #[inline(always)]
    fn poll_any(&mut self, now: Instant, bytes: &mut [u8], finish: Finish) -> Option<Transmit> {
        if !self.output_due {
            return None;
        }
        let (transmit, burst) = self.slow(|connection| connection.poll_chosen(now, finish, bytes));
        self.limit_burst(burst);
        transmit
    }

    /// Chooses and writes the next segment. Also returns how many may follow it as parts of a
    /// burst.
    #[inline(never)]
    fn poll_chosen(
        &mut self,
        now: Instant,
        finish: Finish,
        bytes: &mut [u8],
    ) -> (Option<Transmit>, u8) {
        if let Some(reset) = self.reset_due.take() {
            return (Some(reset.emit(bytes)), 0);
        }
        let mut burst = 0;
        if self.rare.is_some() {
            self.tidy_rare_options();
        }
        self.pace(now);
        let mut choice = self.choose();
        if let Choice::Data(piece) = &mut choice {
            if finish != Finish::Nothing && self.is_to_grow(piece, bytes.len()) {
                self.wait_to_grow(now);
                return (None, 0);
            }
            let was_idle = self.snd.flight() == 0 || self.sender.probes > 0;
            if was_idle && !piece.probe {
                self.restart_after_idle_time(now);
            }
            burst = self.begin_burst(piece, finish, bytes.len());
        }
        if choice == Choice::Nothing {
            self.note_output_ended(now);
            return (None, 0);
        }
        let mut transmit = self.build(now, choice, finish, bytes);
        let before = self.statistics.retransmitted_segments;
        self.remember(now, choice);
        if self.statistics.retransmitted_segments != before {
            transmit.kind = Kind::Again;
        }
        if self.is_last_segment(choice) {
            self.note_output_ended(now);
        }
        (Some(transmit), burst)
    }

    /// Whether certainly nothing else can be sent after `choice`. A pure acknowledgement was chosen
    /// because there was no data to send with it.
    fn is_last_segment(&self, choice: Choice) -> bool {
        let asks = self.is_asked_besides();
        match choice {
            Choice::Ack => !asks && self.sender.path.ready().is_none(),
            Choice::Data(_) => {
                let waits = self.sender.has_unsent(self.snd.nxt) || self.sender.loss.retransmit_due;
                !asks && !waits && self.is_outside_recovery()
            }
            Choice::Syn { .. } => !asks && !self.may_send(),
            Choice::BareAck | Choice::KeepAlive | Choice::Nothing => false,
        }
    }

    /// Whether output other than data is due.
    fn is_asked_besides(&self) -> bool {
        self.ack_due || self.keep_alive_due || self.first_due
    }

    /// Notes that nothing more can be sent until something happens.
    #[inline]
    fn note_output_ended(&mut self, now: Instant) {
        if self.sender.writes == Writes::Limited {
            self.report_low_water();
        }
        let sender = &self.sender;
        if !sender.has_unsent(self.snd.nxt)
            && sender.scoreboard.lost() == 0
            && !sender.path.is_awake()
        {
            self.note_nothing_unsent(now);
        } else {
            self.note_output_blocked(now);
        }
    }

    /// Notes that nothing more can be sent although data is unsent or to be retransmitted.
    #[inline(never)]
    fn note_output_blocked(&mut self, now: Instant) {
        self.output_due = false;
        self.sender.probe_due = false;
        self.sender.held_back = self.is_held_back();
        self.sender.usage.note(self.snd.una, self.snd.nxt, self.snd.flight());
        self.note_occupation(now);
        self.note_application_limit();
        self.watch_small_window(now);
        self.watch_pacer(now);
        self.watch_tail(now);
        if self.sender.path.is_awake() {
            self.watch_path(now);
        }
    }

    /// Notes that everything was sent: an empty send queue is application-limited, not
    /// cwnd-limited.
    fn note_nothing_unsent(&mut self, now: Instant) {
        self.output_due = false;
        self.sender.probe_due = false;
        self.sender.held_back = false;
        self.sender.usage.note(self.snd.una, self.snd.nxt, self.snd.flight());
        self.note_occupation(now);
        self.limit_by_application();
        self.watch_tail(now);
    }

    /// Records that the chosen segment was sent.
    fn remember(&mut self, now: Instant, choice: Choice) {
        self.statistics.segments_sent += u64::from(self.segments_of(choice));
        match choice {
            Choice::Syn { length } => self.record_syn(now, length),
            Choice::Data(piece) => self.record_data(now, piece),
            Choice::KeepAlive => {
                self.keep_alive_due = false;
                self.statistics.keep_alive_probes += 1;
            }
            Choice::BareAck => return self.record_bare_ack(),
            Choice::Ack => self.statistics.pure_acks_sent += 1,
            Choice::Nothing => {}
        }
        // Every segment but the first SYN acknowledges received data; one with data acknowledges
        // all of it.
        if self.state != State::SynSent {
            let told = if choice == Choice::Ack { self.next_ack() } else { self.rcv.nxt };
            self.record_acknowledged(told);
            // Data beyond holes may need more than one (RFC 5681 §4.2).
            self.ack_due = told != self.rcv.nxt
                || (self.receiver.has_blocks() && self.record_reported(choice));
            self.user_timeouts.due &= matches!(choice, Choice::Syn { .. });
        }
    }

    /// Records that a segment has acknowledged the in-order data before `told`.
    #[inline]
    fn record_acknowledged(&mut self, told: SeqNum) {
        self.ack_due = false;
        self.rcv.acked = told;
        self.timers.clear(Timer::DelayedAck);
    }

    /// Records that a segment has reported data beyond holes and duplicates, as far as it can.
    /// Returns whether another must follow.
    #[cold]
    fn record_reported(&mut self, choice: Choice) -> bool {
        if self.agreement.selective_acks {
            self.receiver.on_sack_sent(self.blocks_beside_ecn_option().unwrap_or(BLOCKS_THAT_FIT))
        } else {
            self.receiver.on_duplicate_ack_sent(choice == Choice::Ack)
        }
    }

    /// Records an acknowledgement without SACK blocks; another one will report data beyond holes.
    fn record_bare_ack(&mut self) {
        self.statistics.pure_acks_sent += 1;
        self.first_due = false;
        self.ack_due &= self.receiver.has_blocks();
        self.rcv.acked = self.rcv.nxt;
        self.timers.clear(Timer::DelayedAck);
        self.on_bare_ack_sent();
    }

    fn record_syn(&mut self, now: Instant, length: u32) {
        let flags = self.flags_of_syn();
        if self.snd.max == self.snd.iss {
            return self.record_first_syn(now, flags, length);
        }
        self.ecn.on_syn_sent(flags);
        self.first_due = false;
        self.statistics.retransmitted_segments += 1;
        self.sender.rtt.stop_timing();
        self.watch(now);
    }

    /// Records the first SYN with these flags and `length` bytes of data.
    #[inline(always)]
    fn record_first_syn(&mut self, now: Instant, flags: TcpFlags, length: u32) {
        self.ecn.on_syn_sent(flags);
        self.first_due = false;
        self.sender.rtt.start_timing(self.snd.iss + 1, now);
        if self.fast_open.is_some() {
            self.note_fast_open_syn(length);
        }
        self.snd.nxt = self.snd.iss + 1 + length;
        self.snd.max = self.snd.nxt;
        self.watch(now);
    }

    fn record_data(&mut self, now: Instant, piece: Piece) {
        let end = piece.end();
        let full = self.full_segment();
        // The first segment of a burst records for all of it.
        let first_end = if piece.burst { piece.seq + full } else { end };
        if self.is_new_data(piece) {
            self.ecn.on_new_data_sent();
        }
        if piece.seq.before(self.snd.max) {
            self.statistics.retransmitted_segments += 1;
            let again = piece.length.min(self.snd.max - piece.seq);
            self.statistics.bytes_retransmitted += u64::from(again);
            self.sender.rtt.stop_timing();
            self.sender.loss.repeated_to = end;
        } else if !self.agreement.selective_acks {
            self.sender.rtt.start_timing(first_end, now);
        }
        if piece.length > 0 {
            self.statistics.data_segments_sent += u64::from(self.segments_of(Choice::Data(piece)));
        }
        let is_path_probe = piece.length > full && !piece.burst;
        if is_path_probe {
            self.sender.scoreboard.end_burst();
        }
        if self.agreement.selective_acks && !piece.probe {
            self.note_transmission(now, piece.seq, end);
        }
        if is_path_probe {
            self.remember_path_probe(piece.seq, end);
        } else if piece.length >= full {
            self.sender.path.note_full(first_end, self.snd.una);
        }
        if end.after(self.snd.max) {
            self.statistics.bytes_sent += u64::from(end - self.snd.max) - u64::from(piece.fin);
        }
        self.snd.max = self.snd.max.later(end);
        self.sender.loss.retransmit_due &= !piece.seq.before(self.snd.nxt);
        self.acks.on_data_sent();
        if piece.length > 0 && piece.length < full {
            self.sender.small_end = self.sender.small_end.later(end);
        }
        if piece.probe {
            self.record_window_probe(now);
        } else {
            self.statistics.small_window_timeouts += u64::from(self.sender.probe_due);
            self.sender.last_sent = now;
            self.sender.pacer.on_sent(piece.length);
            // A fast retransmission is behind `nxt`, and exceeds it only with the FIN.
            self.snd.nxt = self.snd.nxt.later(end);
            self.sender.probes = 0;
            self.timers.clear(Timer::Persist);
            self.watch(now);
        }
        self.sender.probe_due = false;
    }

    /// Handles the first transmission while nothing is in flight. A window not used for one RTO is
    /// outdated (RFC 5681 §4.1).
    #[inline]
    fn restart_after_idle_time(&mut self, now: Instant) {
        self.sender.congestion.on_idle(now.since(self.sender.progressed));
        if now.since(self.sender.last_sent) > self.sender.rtt.timeout(&self.config.rto)
            && self.config.restart_after_idle
        {
            self.forget_after_idle();
        }
    }

    #[cold]
    fn forget_after_idle(&mut self) {
        self.sender.congestion.controller().forget_after_idle();
        self.begin_first_flight();
    }

    /// Records a byte sent beyond a closed window; the timer triggers the next one.
    fn record_window_probe(&mut self, now: Instant) {
        self.statistics.window_probes += 1;
        let interval = self.persist_interval();
        self.timers.set(Timer::Persist, now, interval);
    }

    /// Starts the retransmission timer (RFC 6298 (5.1)).
    fn watch(&mut self, now: Instant) {
        if !self.timers.is_set(Timer::Retransmit) {
            self.watch_with_probe(now);
        }
    }

    /// Whether data is unsent because of the congestion window or pacing, not the peer's window.
    fn is_held_back(&self) -> bool {
        let is_full = self.sender.has_unsent(self.snd.nxt)
            && self.is_window_full()
            && self.sender.congestion.window().cwnd() < self.snd.wnd;
        is_full || self.waits_for_pacer() || self.waits_for_path_probe()
    }

    /// Whether a full segment waits for the congestion window. Further data behind it changes
    /// nothing.
    #[inline]
    pub(crate) fn waits_for_window(&self) -> bool {
        let waits = self.sender.buffer.end() - self.snd.nxt;
        waits >= self.full_segment() && self.is_window_full() && self.sender.path.ready().is_none()
    }

    /// Notes whether the sender is application-limited when nothing more can be sent
    /// (draft-ietf-ccwg-bbr §4.1.2.4).
    fn note_application_limit(&mut self) {
        if !self.sender.has_unsent(self.snd.nxt) && self.sender.scoreboard.lost() == 0 {
            self.limit_by_application();
        }
    }

    /// Notes that the sender is application-limited, unless the flight fills the window.
    #[inline]
    fn limit_by_application(&mut self) {
        let pipe = self.sender.scoreboard.in_flight();
        if pipe < self.sender.congestion.window().cwnd() {
            self.sender.account.note_application_limited(pipe);
        }
    }

    /// Starts the persist timer if data waits and nothing is in flight, since no acknowledgement
    /// will arrive (RFC 9293 §3.8.6.1).
    fn watch_small_window(&mut self, now: Instant) {
        let stuck = self.state.sends_data()
            && self.snd.nxt == self.snd.una
            && self.sender.has_unsent(self.snd.nxt)
            && !self.timers.is_set(Timer::Retransmit)
            && !self.waits_for_pacer();
        if stuck && !self.timers.is_set(Timer::Persist) {
            let interval = self.persist_interval();
            self.timers.set(Timer::Persist, now, interval);
        }
    }

    /// Returns the retransmission timeout, doubled for each probe, within the configured limits
    /// (RFC 9293 §3.8.6.1).
    fn persist_interval(&self) -> Duration {
        let TimeLimits { min: least, max: most } = self.config.persist;
        let doubled = self.sender.rtt.timeout(&self.config.rto) * (1 << self.sender.probes.min(16));
        doubled.max(least).min(most)
    }
}
