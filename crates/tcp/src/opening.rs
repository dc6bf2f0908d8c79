//! How a connection begins: either open, what the SYN says of the peer, and the end of the handshake (RFC 9293 §3.5).

use crate::congestion::{Congestion, CongestionName};
use crate::ecn::Notification;
use crate::event::Events;
use crate::options::{Agreement, TimestampState};
use crate::output::predict::Calm;
use crate::path::Path;
use crate::receive::ack_policy::AckPolicy;
use crate::receive::{ReceiveSequence, Receiver};
use crate::send::rtt::RoundTrip;
use crate::send::{SendSequence, Sender};
use crate::shared_config::{Preferences, SharedConfig};
use crate::timers::{Timer, Timers};
use crate::user_timeout::UserTimeouts;
use crate::{Config, Connection, LARGEST_BUFFER, MemoryGrant, PacingRule, State, Statistics};
use core::hint::cold_path;
use linerate_units::Instant;
use linerate_wire::{Ecn, Segment, SeqNum, TcpHeader};

/// The MSS of a peer that does not say (RFC 9293 MUST-15).
const DEFAULT_PEER_MSS: u16 = 536;

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
    pub fn learn_from_cookie(&mut self, (syn, ack, ecn): (&Segment<'_>, &Segment<'_>, Ecn), now: Instant) {
        self.learn_from_syn(syn, now);
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
}
