//! How a connection begins: either open, what the SYN says of the peer, and the end of the handshake (RFC 9293 §3.5).

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
use crate::{Config, Connection, MemoryGrant, PacingRule, State, Statistics};
use core::hint::cold_path;
use linerate_units::{Duration, Instant};
use linerate_wire::{Ecn, Segment, SeqNum, TcpFlags, TcpHeader};

/// The MSS of a peer that does not say (RFC 9293 MUST-15).
pub(crate) const DEFAULT_PEER_MSS: u16 = 536;

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

/// Writes down once what a connection begins with, but for its rules: for one that is made, and for one that is over
/// and whose place is used again.
macro_rules! begins {
    (($config:ident, $path:ident, $seeds:ident, $open:ident, $now:ident) {
        $(let $name:ident = $known:expr;)*
    } Self {
        $($field:ident: $value:expr,)*
    }) => {
        impl Connection {
            /// Either open, for whoever wants to put the connection into its place before anything else happens to it. A
            /// passive one is told of its SYN next, by [`Connection::learn_from_syn`].
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

            /// The same in the place of a connection that is over: what both have in common, their rules and the memory
            /// they lie in, stays where it is.
            pub fn reopen(
                &mut self,
                $config: &SharedConfig,
                $path: Path,
                $seeds: Seeds,
                $open: Open,
                $now: Instant,
            ) {
                if !self.config.is_the_same($config) {
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
    heard: now,
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
    /// The route may let less be offered than the rules do, or the rules less than the route.
    #[inline(always)]
    fn keep_to_route(&mut self, now: Instant) {
        if let Some(clamp) = self.path.window_clamp {
            self.clamp_window(clamp, now);
        }
        if let Some(most) = self.config.largest_segment {
            cold_path();
            self.path.mss_clamp = Some(self.path.mss_clamp.map_or(most, |clamp| clamp.min(most)));
        }
    }

    #[cold]
    fn clamp_window(&mut self, clamp: u32, now: Instant) {
        let receive_buffer = self.config.receive_buffer.within(clamp as usize);
        self.preferences.receive_buffer = receive_buffer;
        self.agreement = Agreement::offer(&self.config, receive_buffer);
        self.receiver = Receiver::new(receive_buffer, now);
    }

    /// An active open: the SYN leaves at the next [`Connection::poll_transmit`].
    #[must_use]
    pub fn connect(
        config: impl Into<SharedConfig>,
        path: Path,
        seeds: Seeds,
        now: Instant,
    ) -> Self {
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
        now: Instant,
    ) {
        self.learn_from_syn(syn, now);
        // The SYN-ACK that left when the SYN came.
        let _ = self.poll_transmit(now, &mut [0; TcpHeader::MAX_LENGTH]);
        let _ = self.handle_segment_with(now, ack, ecn, None);
        self.sender.rtt = RoundTrip::new(&self.config.rto);
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
        self.receiver.note_agreement(&self.agreement);
        if let Some(timestamps) = options.timestamps {
            self.timestamps.on = self.config.timestamps;
            self.timestamps.take(timestamps.value, now);
        }
        self.note_user_timeout(now, &options);
        let most =
            options.mss.unwrap_or(DEFAULT_PEER_MSS).min(self.path.mss_clamp.unwrap_or(u16::MAX));
        self.begin_path_search(u32::from(most), now);
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
        let (paced, seed) =
            (self.config.pacing == PacingRule::On, u64::from(self.snd.iss.number()));
        self.sender.congestion = Congestion::new(name, mss, initial, paced, seed);
        self.begin_first_flight();
    }

    /// Withholds from a half-open connection the acknowledgement `segment`, which would complete its handshake
    /// and brings nothing else, until so long after the peer's SYN; the SYN-ACK is then sent once more. False if
    /// that time is over, or if the segment is another one: it is to be handled then. (`TCP_DEFER_ACCEPT`.)
    pub fn defer_handshake(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        patience: Duration,
    ) -> bool {
        let control = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST | TcpFlags::ACK;
        let is_bare = segment.payload.is_empty() && segment.flags() & control == TcpFlags::ACK;
        let completes = self.state == State::SynReceived
            && is_bare
            && segment.seq == self.rcv.nxt
            && segment.ack == self.snd.nxt;
        let until = self.sender.progressed + patience;
        if !completes || now >= until {
            return false;
        }
        self.sender.rtt.measure_withheld(&self.config.rto, now);
        // The peer is there: its silence is counted from when the SYN-ACK goes again.
        self.sender.silent_since = Instant::NEVER;
        self.sender.expiries = 0;
        self.first_due = false;
        self.timers.set_deadline(Timer::Retransmit, until);
        true
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

    /// Has what was read opened the window so far that it is worth a segment?
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

    /// Everything that either has to say reaches the other.
    fn exchange(now: Instant, ends: [&mut Connection; 2]) {
        let [one, other] = ends;
        let mut frame = [0; 1_480];
        for _ in 0..10 {
            while let Some(sent) = one.poll_transmit(now, &mut frame) {
                let segment = Segment::parse(&frame[..sent.length]).expect("a segment");
                let _ = other.handle_segment(now, &segment);
            }
            while let Some(sent) = other.poll_transmit(now, &mut frame) {
                let segment = Segment::parse(&frame[..sent.length]).expect("a segment");
                let _ = one.handle_segment(now, &segment);
            }
        }
    }

    #[test]
    fn who_is_opened_in_the_place_of_another_is_as_anybody_who_is_opened() {
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
            let syn = client.poll_transmit(now, &mut frame).expect("a SYN");
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
