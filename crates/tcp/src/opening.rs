//! The start of a connection: active and passive open, the peer's SYN, and the end of the handshake
//! (RFC 9293 §3.5).

use crate::congestion::{Congestion, CongestionName};
use crate::ecn::Notification;
use crate::event::Events;
use crate::expectation::Expectation;
use crate::options::{Agreement, TimestampState};
use crate::path::Path;
use crate::receive::ack_policy::AckPolicy;
use crate::receive::{ReceiveSequence, Receiver};
use crate::send::rtt::RoundTrip;
use crate::send::{SendSequence, Sender};
use crate::shared_config::SharedConfig;
use crate::timers::{Timer, Timers};
use crate::user_timeout::UserTimeouts;
use crate::{Config, Connection, MemoryGrant, Offload, PacingRule, State, Statistics};
use core::hint::cold_path;
use core::num::NonZeroU32;
use linerate_units::{Duration, Instant};
use linerate_wire::{Ecn, Segment, SeqNum, TcpFlags, TcpHeader};

/// The assumed MSS of a peer that announces none over IPv4 (RFC 9293 MUST-15).
pub(crate) const DEFAULT_PEER_MSS: u16 = 536;
/// The assumed MSS of a peer that announces none over IPv6 (RFC 9293 MUST-15).
pub(crate) const DEFAULT_PEER_MSS_IPV6: u16 = 1_220;

/// Random values that the host draws for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// The initial sequence number (ISS, RFC 6528).
    pub initial_sequence: SeqNum,
    /// The offset that is added to the clock of the timestamps option (RFC 7323 §5.4).
    pub timestamp_offset: u32,
}

/// The endpoint that opens the connection: this one or the peer (RFC 9293 §3.10.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// This endpoint opens the connection by a SYN.
    Active,
    /// The peer opens the connection; its SYN has arrived.
    Passive,
}

/// Generates the functions `open` and `reopen` from one list of initial values. The configuration
/// is not in the list: `reopen` may keep the configuration of the closed connection.
macro_rules! begins {
    (($config:ident, $path:ident, $seeds:ident, $open:ident, $now:ident) {
        $(let $name:ident = $known:expr;)*
    } Self {
        $($field:ident: $value:expr,)*
    }) => {
        impl Connection {
            /// Returns a connection in its initial state. The connection has not processed a
            /// segment yet, so the caller can first move it to its place in memory. After a passive
            /// open, the caller continues with [`crate::Driver::learn_from_syn`].
            #[must_use]
            pub fn open(
                config: SharedConfig,
                $path: Path,
                $seeds: Seeds,
                $open: Open,
                $now: Instant,
            ) -> Self {
                let $config = &config;
                $(let $name = $known;)*
                let mut begun = Self { $($field: $value,)* config };
                begun.keep_to_route($now);
                begun
            }

            /// Opens a connection in place of this closed one, and reuses its allocations.
            pub fn reopen(
                &mut self,
                $config: &SharedConfig,
                $path: Path,
                $seeds: Seeds,
                $open: Open,
                $now: Instant,
            ) {
                if !self.config.is_same_allocation($config) {
                    self.config = $config.clone();
                }
                $(let $name = $known;)*
                $(self.$field = $value;)*
                self.keep_to_route($now);
            }
        }
    };
}

begins!((config, path, seeds, open, now) {
    let iss = seeds.initial_sequence;
} Self {
    expectation: Expectation::NONE,
    state: match open {
        Open::Active => State::SynSent,
        Open::Passive => State::SynReceived,
    },
    events: Events::empty(),
    ack_due: false,
    challenge_due: false,
    output_due: true,
    keep_alive_due: false,
    rcv: ReceiveSequence::new(SeqNum::new(0)),
    snd: SendSequence::new(iss),
    timestamps: TimestampState::new(seeds.timestamp_offset),
    last_received: now,
    acks: AckPolicy::new(config.acks),
    agreement: config.agreement().clone(),
    first_due: true,
    memory: MemoryGrant::UNLIMITED,
    receiver: Receiver::new(config.receive_buffer, now),
    timers: Timers::new(config.delayed_ack_tick, config.slow_tick),
    user_timeouts: UserTimeouts::new(config.user_timeout, config.user_timeout_option),
    ecn: Notification::new(config.ecn, config.accurate_ecn),
    sender: Sender::new(config, iss, path.search(), now),
    statistics: Statistics::default(),
    next_challenge: now,
    keep_alive_probed: now,
    preferences: config.preferences().clone(),
    path: path,
    fast_open: None,
    rare: None,
    keep_alive_probes: 0,
    reset_due: None,
    active: open == Open::Active,
    released: false,
    error: None,
    offered: None,
});

impl Connection {
    /// Applies three limits: the maximum segment size of the configuration, and the window clamp
    /// and the initial receive window of the route.
    #[inline(always)]
    fn keep_to_route(&mut self, now: Instant) {
        if let Some(most) = self.config.largest_segment {
            cold_path();
            self.path.mss_clamp = Some(self.path.mss_clamp.map_or(most, |clamp| clamp.min(most)));
        }
        if self.path.window_clamp.is_some() || self.path.initial_receive_window.is_some() {
            self.take_receive_window_of_route(now);
        }
    }

    #[cold]
    fn take_receive_window_of_route(&mut self, now: Instant) {
        let mut receive_buffer = self.config.receive_buffer;
        if let Some(segments) = self.path.initial_receive_window {
            receive_buffer =
                receive_buffer.starting_at(segments.get().saturating_mul(self.path.mss()));
        }
        if let Some(clamp) = self.path.window_clamp {
            receive_buffer = receive_buffer.within(clamp as usize);
        }
        self.preferences.receive_buffer = receive_buffer;
        self.agreement = Agreement::offer(&self.config, receive_buffer);
        self.receiver = Receiver::new(receive_buffer, now);
    }

    /// Opens a connection actively: [`crate::Driver::poll_transmit`] returns the SYN.
    #[must_use]
    pub fn connect(
        config: impl Into<SharedConfig>,
        path: Path,
        seeds: Seeds,
        now: Instant,
    ) -> Self {
        Self::open(config.into(), path, seeds, Open::Active, now)
    }

    /// Opens a connection passively for `syn`, which [`crate::judge_listen`] has accepted;
    /// [`crate::Driver::poll_transmit`] returns the SYN-ACK.
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

    pub(crate) fn learn_from_cookie(
        &mut self,
        (syn, ack, ecn): (&Segment<'_>, &Segment<'_>, Ecn),
        now: Instant,
    ) {
        self.learn_from_syn(syn, now);
        // The host has already sent this SYN-ACK, with the cookie as its sequence number. The
        // connection must produce it to reach the right state, but this copy is discarded.
        let _ = self.poll_transmit(now, Offload::None, &mut [0; TcpHeader::MAX_LENGTH]);
        let _ = self.handle_segment_with(now, ack, ecn, None);
        self.sender.rtt = RoundTrip::new(&self.config.rto);
    }

    pub(crate) fn learn_from_syn(&mut self, syn: &Segment<'_>, now: Instant) {
        let options = syn.options();
        self.rcv = ReceiveSequence::new(syn.seq);
        self.rcv.nxt = syn.seq + 1;
        self.rcv.edge = self.rcv.nxt;
        if self.active {
            // This connection has sent a SYN before, which has offered a window. The peer may use
            // this window before our acknowledgement of its SYN arrives.
            self.rcv.edge += u32::from(self.window_of_syn());
        }
        self.agreement.negotiate(&options);
        self.ecn.on_syn_received(syn.flags());
        self.receiver.note_agreement(&self.agreement);
        if let Some(timestamps) = options.timestamps {
            self.timestamps.on = self.config.timestamps;
            self.timestamps.take(timestamps.value, now);
        }
        self.note_user_timeout(now, &options);
        let mss = options.mss.unwrap_or_else(|| self.path.default_peer_mss());
        let most = mss.min(self.path.mss_clamp.unwrap_or(u16::MAX));
        self.begin_path_search(u32::from(most), now);
        self.begin_congestion_control();
        // The window field of a SYN is never scaled (RFC 7323 §2.2).
        self.note_window(syn.seq, self.snd.una, u32::from(syn.window));
    }

    /// Starts congestion control, once the segment size and the use of SACK are known. Without
    /// SACK, BBR is replaced by the default algorithm, because samples of the delivery rate require
    /// SACK.
    fn begin_congestion_control(&mut self) {
        let wish = self.config.congestion;
        let is_possible = self.agreement.selective_acks || wish != CongestionName::Bbr;
        let name = if is_possible { wish } else { Config::modern().congestion };
        let mss = self.full_segment();
        let initial = self.path.initial_window.map_or(self.config.initial_window, NonZeroU32::get);
        let (paced, seed) =
            (self.config.pacing == PacingRule::On, u64::from(self.snd.iss.number()));
        self.sender.congestion = Congestion::new(name, mss, initial, paced, seed);
        self.begin_first_flight();
    }

    pub(crate) fn defer_handshake(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        period: Duration,
    ) -> bool {
        let control = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST | TcpFlags::ACK;
        let is_bare = segment.payload.is_empty() && segment.flags() & control == TcpFlags::ACK;
        let completes = self.state == State::SynReceived
            && is_bare
            && segment.seq == self.rcv.nxt
            && segment.ack == self.snd.nxt;
        let until = self.sender.progressed + period;
        if !completes || now >= until {
            return false;
        }
        self.sender.rtt.measure_withheld(&self.config.rto, now);
        // This ACK shows that the peer is alive. R2 limits the time without an answer. That time
        // therefore starts anew with the next SYN-ACK.
        self.sender.silent_since = Instant::NEVER;
        self.sender.expiries = 0;
        self.first_due = false;
        self.timers.set_deadline(Timer::Retransmit, until);
        true
    }

    /// Completes the handshake. `ack` acknowledges our SYN, and any data that was sent with it.
    pub(crate) fn establish(&mut self, now: Instant, ack: SeqNum) {
        self.state = State::Established;
        self.events |= Events::CONNECTED | Events::WRITABLE;
        self.ecn.on_established();
        // The SYN is acknowledged now, so it must not be retransmitted.
        self.first_due = false;
        // With Fast Open, the SYN may have carried so much data that the window was nearly closed.
        // If the application has already read this data, the larger window is announced.
        let was_small = self.rcv.window() < self.receiver.largest_segment;
        if self.rcv.pending() > 0 || (was_small && self.has_opened_window()) {
            self.owe_ack();
        }
        if self.sender.rtt.backoff() > 1 {
            cold_path();
            // The SYN or SYN-ACK has timed out several times, so the window begins with one segment
            // (RFC 5681 §3.1). A single timeout has no effect on the window, because a round trip
            // longer than the initial RTO also causes one (RFC 6928 §2).
            self.sender.congestion.controller().restart();
        }
        self.sender.rtt.restart_after_handshake(&self.config.rto);
        if self.sender.fin() {
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

    /// Whether the application has read enough data for a window update.
    #[cold]
    fn has_opened_window(&self) -> bool {
        self.acks.on_read(&self.received())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path::ipv4(1_500);

    fn seeds(number: u32) -> Seeds {
        Seeds { initial_sequence: SeqNum::new(number), timestamp_offset: number }
    }

    /// Exchanges segments between both endpoints until neither has a segment to send.
    fn exchange(now: Instant, ends: [&mut Connection; 2]) {
        let [one, other] = ends;
        let mut frame = [0; 1_480];
        for _ in 0..10 {
            while let Some(sent) = one.poll_transmit(now, Offload::None, &mut frame) {
                let segment = Segment::parse(&frame[..sent.length]).expect("a segment");
                let _ = other.handle_segment(now, &segment);
            }
            while let Some(sent) = other.poll_transmit(now, Offload::None, &mut frame) {
                let segment = Segment::parse(&frame[..sent.length]).expect("a segment");
                let _ = one.handle_segment(now, &segment);
            }
        }
    }

    #[test]
    fn a_reopened_connection_equals_a_new_one() {
        let wild = Config {
            accurate_ecn: crate::EcnRule::Request,
            congestion: CongestionName::Bbr,
            keep_alive: Some(crate::KeepAlive::default()),
            user_timeout: Some(Duration::from_secs(9)),
            ..Config::modern()
        };
        let (mut now, mut frame) = (Instant::ZERO + Duration::from_secs(7), [0; 1_480]);
        for before in [Config::modern(), wild, Config::bsd_reno()].map(SharedConfig::from) {
            let mut client = Connection::connect(before.clone(), PATH, seeds(1), now);
            let syn = client.poll_transmit(now, Offload::None, &mut frame).expect("a SYN");
            let segment = Segment::parse(&frame[..syn.length]).expect("a segment");
            let mut server = Connection::accept(before.clone(), PATH, seeds(2), &segment, now);
            exchange(now, [&mut server, &mut client]);
            assert!(client.events().contains(Events::CONNECTED));
            for _ in 0..3 {
                client.write(now, &[7; 20_000]).expect("an open connection");
                now += Duration::from_millis(3);
                exchange(now, [&mut client, &mut server]);
            }
            client.handle_icmp(now, crate::IcmpReport::SoftError { quoted: client.snd.una });
            server.abort(now);
            exchange(now, [&mut server, &mut client]);
            for after in [before.clone(), Config::modern().into()] {
                for open in [Open::Active, Open::Passive] {
                    for path in [PATH, Path { window_clamp: Some(5_000), ..PATH }] {
                        for mut over in [client.clone(), server.clone()] {
                            over.reopen(&after, path, seeds(9), open, now);
                            assert_eq!(
                                over,
                                Connection::open(after.clone(), path, seeds(9), open, now)
                            );
                        }
                    }
                }
            }
        }
    }
}
