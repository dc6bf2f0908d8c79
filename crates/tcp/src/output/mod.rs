//! A segment leaves: choose what, build it, remember it.

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
    /// The sum over all of them, with ports and checksum zero: what the checksum still needs is the
    /// ports and the pseudo-header.
    pub sum: Sum,
    /// The ECN codepoint that its packet bears (RFC 3168 §6.1).
    pub ecn: Ecn,
    /// Bytes of the header, options counted.
    pub header: usize,
    /// Data bytes of each segment, where this is a whole burst that is still to be cut: all have as many.
    pub cut: Option<NonZeroU16>,
    /// The data in the send buffer, if it was not written behind the header.
    pub zero_copy: Option<ZeroCopyRange>,
    /// What it is besides.
    pub kind: Kind,
}

/// What hosts count segments as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As one that was sent, and no more.
    Ordinary,
    /// As one that says again what was said before.
    Again,
    /// As a reset.
    Reset,
}

impl Transmit {
    /// A segment that is `header` bytes of header, which have this sum.
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

    /// How many segments it is.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.cut.map_or(1, |size| (self.length - self.header) / usize::from(size.get()))
    }
}

/// What is left to whoever takes a segment on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finish {
    /// Nothing: it is one segment, and its payload is summed.
    Nothing,
    /// To sum the payload, and to cut what has more data than a segment.
    CutAndSum,
    /// The same, and to gather the payload from the send buffer.
    Gather,
}

impl Connection {
    /// Writes the next segment to the start of `bytes`, with ports and checksum left zero, or says
    /// that there is none. To be called until it does, or until [`Connection::wants_transmit`] says that there
    /// is no other.
    ///
    /// # Panics
    /// If `bytes` has no room for the largest segment that this connection's path may take
    /// (`Path::link_payload`).
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, bytes: &mut [u8]) -> Option<Transmit> {
        self.poll(now, bytes, Finish::Nothing)
    }

    /// The same for whoever completes checksums by himself, and cuts: [`Transmit::sum`] covers the header
    /// alone, and where a burst of full segments may leave it is written whole behind one header, as far as
    /// `bytes` has room for it.
    ///
    /// # Panics
    /// As [`Connection::poll_transmit`].
    pub fn poll_transmit_uncut(&mut self, now: Instant, bytes: &mut [u8]) -> Option<Transmit> {
        self.poll(now, bytes, Finish::CutAndSum)
    }

    /// The same in two steps, for whoever has little to do after the first: writes the next segment if it is
    /// predicted. Then it is the only one that may leave, is as any other, and nothing else changes that is told of a
    /// connection. If it is not, [`Connection::poll_unpredicted`] is to be asked.
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

    /// Chooses the next segment and writes it. Returns how many may follow it as parts of a burst, too.
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
                self.leave_idleness(now);
            }
            burst = self.begin_burst(piece, finish, bytes.len());
        }
        if choice == Choice::Nothing {
            self.fall_silent(now);
            return (None, 0);
        }
        let mut transmit = self.build(now, choice, finish, bytes);
        let before = self.statistics.retransmitted_segments;
        self.remember(now, choice);
        if self.statistics.retransmitted_segments != before {
            transmit.kind = Kind::Again;
        }
        if self.has_said_all(choice) {
            self.fall_silent(now);
        }
        (Some(transmit), burst)
    }

    /// After `choice` has left, is it certain that nothing else may? What an acknowledgement alone was chosen
    /// after had nothing to say that it would have said with data.
    fn has_said_all(&self, choice: Choice) -> bool {
        let asks = self.is_asked_besides();
        match choice {
            Choice::Ack => !asks && self.sender.path.ready().is_none(),
            Choice::Data(_) => {
                let waits = self.sender.has_unsent(self.snd.nxt) || self.sender.loss.retransmit_due;
                !asks && !waits && self.is_untroubled()
            }
            Choice::Syn { .. } => !asks && !self.may_send(),
            Choice::BareAck | Choice::KeepAlive | Choice::Nothing => false,
        }
    }

    /// Is there anything to be sent that is no data?
    fn is_asked_besides(&self) -> bool {
        self.ack_due || self.keep_alive_due || self.first_due
    }

    /// Nothing more can leave, until something happens.
    #[inline]
    fn fall_silent(&mut self, now: Instant) {
        if self.sender.writes == Writes::Limited {
            self.tell_of_low_water();
        }
        let sender = &self.sender;
        if !sender.has_unsent(self.snd.nxt)
            && sender.scoreboard.lost() == 0
            && !sender.path.is_awake()
        {
            self.say_no_more(now);
        } else {
            self.hold_back(now);
        }
    }

    /// The same where there is more to be said, or again.
    #[inline(never)]
    fn hold_back(&mut self, now: Instant) {
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

    /// The same where everything has been said: who has nothing to say is held back by nothing.
    fn say_no_more(&mut self, now: Instant) {
        self.output_due = false;
        self.sender.probe_due = false;
        self.sender.held_back = false;
        self.sender.usage.note(self.snd.una, self.snd.nxt, self.snd.flight());
        self.note_occupation(now);
        self.limit_by_application();
        self.watch_tail(now);
    }

    /// Notes that what was chosen has left.
    fn remember(&mut self, now: Instant, choice: Choice) {
        self.statistics.segments_sent += u64::from(self.segments_of(choice));
        match choice {
            Choice::Syn { length } => self.remember_syn(now, length),
            Choice::Data(piece) => self.remember_data(now, piece),
            Choice::KeepAlive => {
                self.keep_alive_due = false;
                self.statistics.keep_alive_probes += 1;
            }
            Choice::BareAck => return self.remember_bare_ack(),
            Choice::Ack => self.statistics.pure_acks_sent += 1,
            Choice::Nothing => {}
        }
        // Every segment but the first SYN acknowledges what has arrived, and with data all of it.
        if self.state != State::SynSent {
            let told = if choice == Choice::Ack { self.next_ack() } else { self.rcv.nxt };
            self.remember_told(told);
            // What came beyond holes may want more than one (RFC 5681 §4.2).
            self.ack_due =
                told != self.rcv.nxt || (self.receiver.has_blocks() && self.note_told(choice));
            self.user_timeouts.due &= matches!(choice, Choice::Syn { .. });
        }
    }

    /// A segment has told of what has arrived in order before `told`.
    #[inline]
    fn remember_told(&mut self, told: SeqNum) {
        self.ack_due = false;
        self.rcv.acked = told;
        self.timers.clear(Timer::DelayedAck);
    }

    /// A segment has told, as far as it goes, what lies beyond holes or came twice. Must another follow?
    #[cold]
    fn note_told(&mut self, choice: Choice) -> bool {
        if self.agreement.selective_acks {
            self.receiver.note_named(self.blocks_beside_ecn_option().unwrap_or(BLOCKS_THAT_FIT))
        } else {
            self.receiver.note_counted(choice == Choice::Ack)
        }
    }

    /// A bare acknowledgement has left; what lies beyond holes is told by another.
    fn remember_bare_ack(&mut self) {
        self.statistics.pure_acks_sent += 1;
        self.first_due = false;
        self.ack_due &= self.receiver.has_blocks();
        self.rcv.acked = self.rcv.nxt;
        self.timers.clear(Timer::DelayedAck);
        self.on_bare_ack_sent();
    }

    fn remember_syn(&mut self, now: Instant, length: u32) {
        let flags = self.flags_of_syn();
        if self.snd.max == self.snd.iss {
            return self.remember_first_syn(now, flags, length);
        }
        self.ecn.note_sent_syn(flags);
        self.first_due = false;
        self.statistics.retransmitted_segments += 1;
        self.sender.rtt.stop_timing();
        self.watch(now);
    }

    /// A SYN with these flags, and `length` bytes of data, has left for the first time.
    #[inline(always)]
    fn remember_first_syn(&mut self, now: Instant, flags: TcpFlags, length: u32) {
        self.ecn.note_sent_syn(flags);
        self.first_due = false;
        self.sender.rtt.start_timing(self.snd.iss + 1, now);
        if self.fast_open.is_some() {
            self.note_fast_open_syn(length);
        }
        self.snd.nxt = self.snd.iss + 1 + length;
        self.snd.max = self.snd.nxt;
        self.watch(now);
    }

    fn remember_data(&mut self, now: Instant, piece: Piece) {
        let end = piece.end();
        let full = self.full_segment();
        // The first of a burst says what all of it does.
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
            self.note_departure(now, piece.seq, end);
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
            self.remember_probe(now);
        } else {
            self.statistics.small_window_timeouts += u64::from(self.sender.probe_due);
            self.sender.last_sent = now;
            self.sender.pacer.on_sent(piece.length);
            // A fast retransmission lies behind `nxt`, and may reach beyond it only with the FIN.
            self.snd.nxt = self.snd.nxt.later(end);
            self.sender.probes = 0;
            self.timers.clear(Timer::Persist);
            self.watch(now);
        }
        self.sender.probe_due = false;
    }

    /// Something leaves while nothing is in flight. A window that was not used for a timeout says nothing
    /// about the path now (RFC 5681 §4.1).
    #[inline]
    fn leave_idleness(&mut self, now: Instant) {
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

    /// A byte beyond a closed window has left; its successor goes when the timer says so again.
    fn remember_probe(&mut self, now: Instant) {
        self.statistics.window_probes += 1;
        let interval = self.persist_interval();
        self.timers.set(Timer::Persist, now, interval);
    }

    /// RFC 6298 (5.1).
    fn watch(&mut self, now: Instant) {
        if !self.timers.is_set(Timer::Retransmit) {
            self.watch_with_probe(now);
        }
    }

    /// Nothing more can be sent: does data wait, and for the congestion window or pacing rather than the
    /// peer's window?
    fn is_held_back(&self) -> bool {
        let is_full = self.sender.has_unsent(self.snd.nxt)
            && self.is_window_full()
            && self.sender.congestion.window().cwnd() < self.snd.wnd;
        is_full || self.waits_for_pacer() || self.waits_for_path_probe()
    }

    /// Does a full segment wait for the congestion window to have room for it? Then more data behind it let nothing go.
    #[inline]
    pub(crate) fn waits_for_window(&self) -> bool {
        let waits = self.sender.buffer.end() - self.snd.nxt;
        waits >= self.full_segment() && self.is_window_full() && self.sender.path.ready().is_none()
    }

    /// Nothing more can be sent: is it the application that had nothing more to say
    /// (draft-ietf-ccwg-bbr §4.1.2.4)?
    fn note_application_limit(&mut self) {
        if !self.sender.has_unsent(self.snd.nxt) && self.sender.scoreboard.lost() == 0 {
            self.limit_by_application();
        }
    }

    /// It is, unless what is in flight fills the window.
    #[inline]
    fn limit_by_application(&mut self) {
        let pipe = self.sender.scoreboard.in_flight();
        if pipe < self.sender.congestion.window().cwnd() {
            self.sender.account.note_application_limited(pipe);
        }
    }

    /// Nothing could be sent. If data waits and nothing is in flight, no acknowledgement will ever
    /// call us again: the persist timer must (RFC 9293 §3.8.6.1).
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

    /// The retransmission timeout, doubled for each probe, within the configured limits (RFC 9293
    /// §3.8.6.1).
    fn persist_interval(&self) -> Duration {
        let TimeLimits { min: least, max: most } = self.config.persist;
        let doubled = self.sender.rtt.timeout(&self.config.rto) * (1 << self.sender.probes.min(16));
        doubled.max(least).min(most)
    }
}
