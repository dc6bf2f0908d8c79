//! The configuration of a connection: sizes, rules and timeouts. A profile is a predefined
//! configuration.

use crate::compact::pack::packed;
use crate::{
    AckRule, BufferSize, CongestionName, EcnRule, LARGEST_BUFFER, PacingRule, PathSearch, RtoLimits,
};
use core::fmt;
use core::str::FromStr;
use linerate_units::{Duration, Rate};
use thiserror::Error;

/// The lower limit of [`Config::path_floor`], in bytes: smaller segments would consist mostly of
/// headers.
const LEAST_SEGMENT: u32 = 48;

/// The maximum delay of an acknowledgement, after it was rounded up to a clock tick. It must be
/// less than half a second (RFC 9293 MUST-40).
const LONGEST_DELAYED_ACK: Duration = Duration::from_millis(499);

/// The rule that decides whether a small segment may be sent while other segments are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NagleRule {
    /// RFC 896: a small segment waits until nothing is in flight.
    Classic,
    /// Minshall's variation, as in Linux: a small segment waits only while another small segment is
    /// in flight. With a send buffer of one and a half segments, the half segment is thus sent at
    /// once, and need not wait for the delayed ACK of the full segment.
    Minshall,
}

/// The minimum and maximum of a time that the connection computes, such as the RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// The minimum of the computed time.
    pub min: Duration,
    /// The maximum of the computed time.
    pub max: Duration,
}

/// The settings of keep-alive probes, which test whether an idle peer still exists (RFC 9293
/// §3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// The idle time before the first probe. The default of RFC 9293 is two hours.
    pub idle: Duration,
    /// The time between two probes.
    pub interval: Duration,
    /// The number of unanswered probes after which the connection is aborted. At least two, because
    /// answers can be lost (RFC 9293 MUST-29).
    pub probes: u32,
}

packed!(KeepAlive { idle, interval, probes });

impl KeepAlive {
    pub(crate) fn within_limits(self) -> Self {
        Self { probes: self.probes.max(2), ..self }
    }
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self { idle: Duration::from_secs(7_200), interval: Duration::from_secs(75), probes: 9 }
    }
}

/// The configuration of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The size of the send buffer. A tuned buffer grows to twice the congestion window, so that
    /// one window is in flight and the next one is ready to be sent.
    pub send_buffer: BufferSize,
    /// The size of the receive buffer. A tuned buffer grows to twice the amount that the
    /// application reads in a round trip.
    pub receive_buffer: BufferSize,
    /// Whether small segments are sent without delay, because Nagle's algorithm is disabled
    /// (`TCP_NODELAY`).
    pub no_delay: bool,
    /// The variant of Nagle's algorithm, which applies unless [`Config::no_delay`] is set.
    pub nagle: NagleRule,
    /// The keep-alive probes for an idle peer. `None`, the default of RFC 9293, sends none.
    pub keep_alive: Option<KeepAlive>,
    /// The time for which unsent data is still delivered after the application has closed the
    /// connection (`SO_LINGER`). `None` means no limit, and zero resets the connection at once.
    pub linger: Option<Duration>,
    /// Whether window scaling is offered on the SYN (RFC 7323 §2).
    pub window_scaling: bool,
    /// Whether timestamps are offered on the SYN (RFC 7323 §3).
    pub timestamps: bool,
    /// Whether selective acknowledgements are offered on the SYN, and sent (RFC 2018).
    pub selective_acks: bool,
    /// Whether header prediction is used. If it is disabled, every segment takes the slow path.
    /// Experiments disable it to measure the gain.
    pub header_prediction: bool,
    /// The congestion control algorithm.
    pub congestion: CongestionName,
    /// The negotiation of explicit congestion notification (RFC 3168).
    pub ecn: EcnRule,
    /// The negotiation of accurate ECN (RFC 9768). If [`Config::ecn`] also requests ECN, the SYN
    /// requests AccECN. A peer that supports only RFC 3168 can take this for a request of ECN by
    /// RFC 3168. [`Config::modern`] disables AccECN, as Linux does.
    pub accurate_ecn: EcnRule,
    /// The rule that decides whether segments are paced, that is, spread over the round trip.
    pub pacing: PacingRule,
    /// The maximum pacing rate (`SO_MAX_PACING_RATE`). If it is set, segments are paced even if
    /// [`Config::pacing`] would not pace them. `None` means no maximum.
    /// [`crate::Connection::set_max_pacing_rate`] changes it.
    pub max_pacing_rate: Option<Rate>,
    /// Whether each of the first two duplicate acknowledgements lets one new segment exceed the
    /// congestion window (limited transmit, RFC 3042). If one of three segments in flight is lost,
    /// the other two cause only two duplicate ACKs. The new segments then cause the third one,
    /// which starts fast retransmission.
    pub limited_transmit: bool,
    /// Whether new data is sent after a retransmission timeout, until it is known whether the
    /// timeout was spurious (F-RTO, RFC 5682).
    pub frto: bool,
    /// The initial congestion window, in segments of Ethernet size (RFC 6928: ten). With a larger
    /// MSS the window has the same number of bytes, but at least two segments.
    pub initial_window: u32,
    /// Whether the congestion window is reduced after an idle time of one RTO (RFC 5681 §4.1).
    /// Disable this only on dedicated paths: their capacity does not change during the idle time.
    pub restart_after_idle: bool,
    /// An upper limit for the MSS to announce and for the size of segments sent (`TCP_MAXSEG`), in
    /// bytes, at least 48. `None` means that only the path limits them.
    pub largest_segment: Option<u16>,
    /// The condition for searching the path MTU by probes (PLPMTUD, RFC 4821).
    pub path_search: PathSearch,
    /// The segment size at which a search for the path MTU begins, in bytes of data. It should be
    /// so small that nearly every path carries it. RFC 4821 §7.2 suggests packets of 1,024 bytes;
    /// this value, like that of Linux, excludes the headers. With IPv6 the packet has at least the
    /// minimum MTU, 1,280 bytes.
    pub path_base: u32,
    /// The smallest segment size, in bytes of data, to which the detection of a black hole may
    /// reduce segments. [`Config::modern`] uses 524: with timestamps this is a packet of 576 bytes,
    /// which every IPv4 path carries. A smaller size would slow the recovery from outages, which
    /// look like black holes. With IPv6 the packet has at least the minimum MTU, 1,280 bytes.
    pub path_floor: u32,
    /// The rule that decides when to send acknowledgements.
    pub acks: AckRule,
    /// Whether one ACK may acknowledge all data of a receive batch (a stretch ACK, RFC 2525 §2.13),
    /// as is usual with GRO. If this is disabled, an ACK covers at most two full segments (RFC 9293
    /// SHLD-19). Disable this for peers whose window grows by the number of ACKs (RFC 3465 §2.3),
    /// and for experiments that count ACKs.
    pub stretch_acks: bool,
    /// The maximum delay of an acknowledgement (RFC 9293 MUST-40: less than 0.5 s).
    pub delayed_ack: Duration,
    /// The clock tick to which delayed acknowledgements are rounded up; zero for no rounding.
    pub delayed_ack_tick: Duration,
    /// The clock tick to which all other timers are rounded up; zero for no rounding.
    pub slow_tick: Duration,
    /// The limits of the retransmission timeout.
    pub rto: RtoLimits,
    /// The limits of the interval between window probes.
    pub persist: TimeLimits,
    /// R2 (RFC 9293 §3.8.3): the connection is aborted if the peer acknowledges nothing for this
    /// time.
    pub give_up_after: Duration,
    /// R2 for the SYN (RFC 9293 §3.8.3), which must be at least three minutes.
    pub give_up_syn_after: Duration,
    /// The time for which data may be unacknowledged before the connection is aborted. It replaces
    /// R2. `None` means that only R2 applies. [`crate::Connection::set_user_timeout`] changes it.
    pub user_timeout: Option<Duration>,
    /// Whether the user timeout is advertised to the peer, and the peer's advertisement may change
    /// ours (RFC 5482: ENABLED). A timeout that the application has set is never changed. All
    /// profiles disable the option, because a few middleboxes drop segments with unknown options.
    pub user_timeout_option: bool,
    /// The limits of a user timeout that the peer's advertisement can set (RFC 5482: L_LIMIT,
    /// U_LIMIT).
    pub user_timeout_limits: TimeLimits,
    /// The minimum interval between two challenge ACKs (RFC 5961 §7). It also limits the ACKs that
    /// answer segments without data outside the receive window.
    pub challenge_interval: Duration,
    /// Whether resets are ignored in TIME-WAIT, so that an old segment cannot end it (RFC 1337 §3,
    /// fix 1).
    pub time_wait_outlives_resets: bool,
    /// The maximum segment lifetime (MSL). TIME-WAIT lasts twice as long.
    pub msl: Duration,
    /// The time for which a connection that the application has released waits for the peer's FIN,
    /// or for a closed window to open.
    pub orphan_timeout: Duration,
    /// The maximum number of separate ranges of out-of-order data that are stored. A segment that
    /// would need another range is dropped. The default allows for a queue on the path that
    /// overflows in slow start. Such a queue drops every other segment, so each segment that
    /// arrives forms a range of its own. If there were fewer ranges than such segments, the
    /// receiver would drop some of them.
    pub reassembly_ranges: usize,
}

impl Config {
    /// Returns the configuration of a present-day TCP, with the defaults of Linux.
    #[must_use]
    pub const fn modern() -> Self {
        Self {
            send_buffer: BufferSize::Tuned { initial: 64 << 10, most: 4 << 20 },
            receive_buffer: BufferSize::Tuned { initial: 256 << 10, most: 6 << 20 },
            no_delay: false,
            nagle: NagleRule::Minshall,
            keep_alive: None,
            linger: None,
            window_scaling: true,
            timestamps: true,
            selective_acks: true,
            header_prediction: true,
            congestion: CongestionName::Cubic,
            ecn: EcnRule::Accept,
            accurate_ecn: EcnRule::Off,
            pacing: PacingRule::Controller,
            max_pacing_rate: None,
            limited_transmit: true,
            frto: true,
            initial_window: 10,
            restart_after_idle: true,
            largest_segment: None,
            path_search: PathSearch::WhenNarrow,
            path_base: 1_024,
            path_floor: 524,
            acks: AckRule::Modern { quick: 16 },
            stretch_acks: true,
            delayed_ack: Duration::from_millis(40),
            delayed_ack_tick: Duration::ZERO,
            slow_tick: Duration::ZERO,
            rto: RtoLimits {
                initial: Duration::from_secs(1),
                minimum: Duration::from_millis(200),
                maximum: Duration::from_secs(120),
                granularity: Duration::from_nanos(1),
            },
            persist: TimeLimits { min: Duration::from_millis(200), max: Duration::from_secs(60) },
            give_up_after: Duration::from_secs(15 * 60),
            user_timeout: None,
            user_timeout_option: false,
            user_timeout_limits: TimeLimits {
                min: Duration::from_secs(100),
                max: Duration::from_secs(3_600),
            },
            give_up_syn_after: Duration::from_secs(180),
            challenge_interval: Duration::from_millis(100),
            time_wait_outlives_resets: true,
            msl: Duration::from_secs(30),
            orphan_timeout: Duration::from_secs(60),
            reassembly_ranges: 1_024,
        }
    }

    /// Returns the configuration of 4.3BSD Tahoe (1988): no options but MSS, clocks with ticks of
    /// 200 and 500 ms, and slow start from one segment even on a LAN. A window update is sent when
    /// the window can grow by two segments or by 35 % of the buffer.
    #[must_use]
    pub const fn bsd_tahoe() -> Self {
        Self {
            send_buffer: BufferSize::Fixed(4 << 10),
            receive_buffer: BufferSize::Fixed(4 << 10),
            nagle: NagleRule::Classic,
            window_scaling: false,
            timestamps: false,
            selective_acks: false,
            congestion: CongestionName::Tahoe,
            ecn: EcnRule::Off,
            pacing: PacingRule::Off,
            limited_transmit: false,
            frto: false,
            initial_window: 1,
            path_search: PathSearch::Off,
            acks: AckRule::Bsd { window_update_percent: 35 },
            delayed_ack: Duration::from_millis(1),
            delayed_ack_tick: Duration::from_millis(200),
            slow_tick: Duration::from_millis(500),
            rto: RtoLimits {
                initial: Duration::from_secs(6),
                minimum: Duration::from_secs(1),
                maximum: Duration::from_secs(64),
                granularity: Duration::from_millis(500),
            },
            persist: TimeLimits { min: Duration::from_secs(5), max: Duration::from_secs(60) },
            time_wait_outlives_resets: false,
            ..Self::modern()
        }
    }

    /// Returns the configuration of 4.3BSD Reno (1990): Tahoe with fast recovery, and window
    /// updates at 50 % of the buffer.
    #[must_use]
    pub const fn bsd_reno() -> Self {
        Self {
            congestion: CongestionName::Reno,
            acks: AckRule::Bsd { window_update_percent: 50 },
            ..Self::bsd_tahoe()
        }
    }

    /// Limits sizes and times to their permitted ranges.
    #[must_use]
    pub(crate) fn within_limits(mut self) -> Self {
        self.send_buffer = self.send_buffer.within(LARGEST_BUFFER);
        self.receive_buffer = self.receive_buffer.within(LARGEST_BUFFER);
        self.reassembly_ranges = self.reassembly_ranges.max(1);
        self.path_floor = self.path_floor.max(LEAST_SEGMENT);
        self.delayed_ack_tick = self.delayed_ack_tick.min(LONGEST_DELAYED_ACK);
        self.delayed_ack = self.delayed_ack.min(LONGEST_DELAYED_ACK - self.delayed_ack_tick);
        self.keep_alive = self.keep_alive.map(KeepAlive::within_limits);
        self
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::modern()
    }
}

/// The name of a predefined configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// The configuration of a present-day TCP: [`Config::modern`].
    #[default]
    Modern,
    /// The configuration of 4.3BSD Tahoe (1988): [`Config::bsd_tahoe`].
    BsdTahoe,
    /// The configuration of 4.3BSD Reno (1990): [`Config::bsd_reno`].
    BsdReno,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 3] = [Self::Modern, Self::BsdTahoe, Self::BsdReno];

    /// Returns the configuration of the profile.
    #[must_use]
    pub const fn config(self) -> Config {
        match self {
            Self::Modern => Config::modern(),
            Self::BsdTahoe => Config::bsd_tahoe(),
            Self::BsdReno => Config::bsd_reno(),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::BsdTahoe => "bsd_tahoe",
            Self::BsdReno => "bsd_reno",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error of a text that is not the name of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no profile of this name: use modern, bsd_tahoe or bsd_reno")]
pub struct UnknownProfile;

impl FromStr for Profile {
    type Err = UnknownProfile;
    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        Self::ALL.into_iter().find(|profile| profile.name() == text).ok_or(UnknownProfile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_profile_is_found_by_its_name() {
        for profile in Profile::ALL {
            assert_eq!(profile.to_string().parse(), Ok(profile));
        }
        assert!("vax".parse::<Profile>().is_err());
    }

    #[test]
    fn profiles_keep_the_limits_of_the_rfcs() {
        for profile in Profile::ALL {
            let config = profile.config();
            assert!(config.delayed_ack + config.delayed_ack_tick < Duration::from_millis(500));
            assert!(config.rto.maximum >= Duration::from_secs(60));
            assert!(config.give_up_syn_after >= Duration::from_secs(180));
            assert!(config.give_up_after >= Duration::from_secs(100));
        }
    }
}
