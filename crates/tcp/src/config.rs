//! The configuration of a connection: sizes, rules and timeouts. A profile is a consistent set of
//! these.

use crate::compact::pack::packed;
use crate::{
    AckRule, BufferSize, CongestionName, EcnRule, LARGEST_BUFFER, PacingRule, PathSearch, RtoLimits,
};
use core::fmt;
use core::str::FromStr;
use linerate_units::Duration;
use thiserror::Error;

/// The minimum of [`Config::path_floor`], in bytes: smaller segments would consist mostly of
/// headers.
const LEAST_SEGMENT: u32 = 48;

/// The longest delay of an acknowledgement, clock tick included (RFC 9293 MUST-40: less than half a
/// second).
const LONGEST_DELAYED_ACK: Duration = Duration::from_millis(499);

/// The condition under which a small segment may be sent although others are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NagleRule {
    /// RFC 896: not while anything is in flight.
    Classic,
    /// Minshall's variation, as in Linux: not while another small segment is in flight. A send
    /// buffer of one and a half segments then does not wait for a delayed acknowledgement.
    Minshall,
}

/// The minimum and the maximum of a time that the connection computes, such as the RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// The smallest value.
    pub min: Duration,
    /// The largest value.
    pub max: Duration,
}

/// The keep-alive probes of an idle connection (RFC 9293 §3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle time before the first probe. The RFC's default is two hours.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes after which the connection is aborted; at least two, because answers can
    /// be lost (RFC 9293 MUST-29).
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
    /// Size of the send buffer. If tuned, it grows to twice the congestion window, so that one
    /// window is in flight and another is ready.
    pub send_buffer: BufferSize,
    /// Size of the receive buffer. If tuned, it grows to twice what the application reads in a
    /// round trip.
    pub receive_buffer: BufferSize,
    /// Send small segments at once (no Nagle).
    pub no_delay: bool,
    /// The Nagle rule that holds without [`Config::no_delay`].
    pub nagle: NagleRule,
    /// Keep-alive probes of an idle peer; `None`, the RFC's default, sends none.
    pub keep_alive: Option<KeepAlive>,
    /// Time after the application's close during which unsent data is still delivered
    /// (`SO_LINGER`): `None` is unlimited, and zero resets the connection at once.
    pub linger: Option<Duration>,
    /// Offer window scaling (RFC 7323 §2).
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323 §3).
    pub timestamps: bool,
    /// Offer selective acknowledgements, and send them (RFC 2018).
    pub selective_acks: bool,
    /// Use header prediction. Without it every segment takes the slow path, to measure the gain.
    pub header_prediction: bool,
    /// Congestion control.
    pub congestion: CongestionName,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: EcnRule,
    /// Accurate ECN (RFC 9768). It has priority: a SYN that requests both requests AccECN, and
    /// accepts RFC 3168 from a peer without it. [`Config::modern`] leaves it off as Linux does.
    pub accurate_ecn: EcnRule,
    /// Whether segments are paced over the round trip.
    pub pacing: PacingRule,
    /// Let each of the first two duplicate acknowledgements send a new segment beyond the
    /// congestion window (RFC 3042), so that a window of three segments can still produce three
    /// duplicates.
    pub limited_transmit: bool,
    /// After a timeout, send new instead of old data until it is known whether anything was lost
    /// (F-RTO, RFC 5682).
    pub frto: bool,
    /// Initial window, in segments of Ethernet size (RFC 6928: ten). With a larger MSS the window
    /// has the same number of bytes, but at least two segments.
    pub initial_window: u32,
    /// Restart with a small window after an idle time of one RTO (RFC 5681 §4.1). Disable it only
    /// on dedicated paths, whose capacity does not change.
    pub restart_after_idle: bool,
    /// Upper limit of the MSS announced and used (`TCP_MAXSEG`), if the path's MSS is larger; at
    /// least 48 bytes.
    pub largest_segment: Option<u16>,
    /// When to search for the path MTU by probes (RFC 4821).
    pub path_search: PathSearch,
    /// Bytes of data in a segment that nearly every path carries: the base of a search. RFC 4821
    /// §7.2 suggests packets of 1,024 bytes; like Linux, this counts the data only. With IPv6 the
    /// packet has at least the minimum MTU, 1,280 bytes.
    pub path_base: u32,
    /// Smallest segment, in bytes of data, to which a black hole may reduce the size.
    /// [`Config::modern`] sets 524: with timestamps, a packet of 576 bytes, which every IPv4 path
    /// carries. Smaller segments would slow the recovery from every outage, since an outage looks
    /// like a black hole. With IPv6 the packet has at least the minimum MTU, 1,280 bytes.
    pub path_floor: u32,
    /// The rule that decides when to send acknowledgements.
    pub acks: AckRule,
    /// Acknowledge all data of one receive batch by a single ACK (a stretch ACK, RFC 2525 §2.13),
    /// as receive offloads do. If off, an ACK covers at most two full segments (RFC 9293 SHLD-19).
    /// This suits peers whose window grows by the number of ACKs (RFC 3465 §2.3), and experiments
    /// that count ACKs.
    pub stretch_acks: bool,
    /// Longest delay of an acknowledgement (RFC 9293 MUST: below 0.5 s).
    pub delayed_ack: Duration,
    /// Clock tick of delayed acknowledgements; zero for a clock without ticks.
    pub delayed_ack_tick: Duration,
    /// Clock tick of all other timers; zero for a clock without ticks.
    pub slow_tick: Duration,
    /// Limits of the retransmission timeout.
    pub rto: RtoLimits,
    /// Limits of the interval between window probes.
    pub persist: TimeLimits,
    /// R2 (RFC 9293 §3.8.3): the connection is aborted if the peer acknowledges nothing for this
    /// long.
    pub give_up_after: Duration,
    /// R2 for a SYN; the RFC requires at least three minutes.
    pub give_up_syn_after: Duration,
    /// Time without an acknowledgement of written data after which the connection is aborted,
    /// overriding R2; [`crate::Connection::set_user_timeout`] changes it. `None` means that only R2
    /// applies.
    pub user_timeout: Option<Duration>,
    /// Advertise the user timeout, and let the peer change ours unless the application has set one
    /// (RFC 5482: ENABLED). Rare middleboxes drop segments with unknown options.
    pub user_timeout_option: bool,
    /// The least and the largest user timeout that a peer can make us adopt (L_LIMIT, U_LIMIT).
    pub user_timeout_limits: TimeLimits,
    /// The minimum interval between two challenge ACKs (RFC 5961 §7), and between two answers to
    /// empty segments outside the window.
    pub challenge_interval: Duration,
    /// Ignore resets in TIME-WAIT (RFC 1337 §3, its fix 1).
    pub time_wait_outlives_resets: bool,
    /// Maximum segment lifetime; TIME-WAIT lasts twice as long.
    pub msl: Duration,
    /// How long a released connection waits for the peer's FIN, or for a closed window to open.
    pub orphan_timeout: Duration,
    /// Maximum number of ranges of data beyond holes that are stored; a segment that would need
    /// another range is dropped. An overflowing queue in slow start drops every other segment, so
    /// each of the others is a range. A lower limit would drop more segments than that queue.
    pub reassembly_ranges: usize,
}

impl Config {
    /// Today's TCP, with the defaults of Linux.
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

    /// 4.3BSD Tahoe of 1988: no options but MSS, clocks of 200 and 500 ms, slow start from one
    /// segment even on a LAN, and a window update when the window can grow by two segments or by 35
    /// % of the buffer.
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

    /// 4.3BSD Reno of 1990: Tahoe with fast recovery, and a window update at 50 % of the buffer.
    #[must_use]
    pub const fn bsd_reno() -> Self {
        Self {
            congestion: CongestionName::Reno,
            acks: AckRule::Bsd { window_update_percent: 50 },
            ..Self::bsd_tahoe()
        }
    }

    /// Clamps every size to the range that the protocol can express.
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
    /// [`Config::modern`].
    #[default]
    Modern,
    /// [`Config::bsd_tahoe`].
    BsdTahoe,
    /// [`Config::bsd_reno`].
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

/// The error for an unknown name of a profile.
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
