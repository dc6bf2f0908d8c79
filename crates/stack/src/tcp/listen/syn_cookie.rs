//! SYN cookies: what must be known of a SYN, put where the peer's acknowledgement brings it back (RFC
//! 4987 §3.6 and appendix A).
//!
//! The number of the SYN-ACK is the peer's own number plus
//!
//! ```text
//! 31    27 26 24 23                                             0
//! ┌───────┬─────┬───────────────────────────────────────────────┐
//! │ period│ MSS │ keyed hash of both ends, IRS and all the rest │
//! └───────┴─────┴───────────────────────────────────────────────┘
//! ```
//!
//! and the low six bits of its timestamp, if both ends use timestamps, hold window scale, SACK and ECN,
//! as in Linux. The hash covers them too, so nothing of it can be changed on the way. A forged
//! acknowledgement is right once in 2^28 times, and each period has a key of its own: a cookie that
//! somebody has worked out is worth nothing after two minutes.
//!
//! Nothing here knows of listeners or connections; time is an argument.

use crate::keys::Keys;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use linerate_units::{Duration, Instant};
use linerate_wire::{Segment, SeqNum, TcpFlags, TcpOptions, Timestamps};
use siphasher::sip::SipHasher24;

/// How long one key is used to make cookies. They are taken in this period and the next, so an honest
/// peer has a minute at least.
pub(crate) const PERIOD: Duration = Duration::from_secs(64);

/// The sizes of segments that a cookie can keep, each the largest that does not exceed the peer's: the
/// least that TCP takes, the default, tunnels and their like, PPPoE, Ethernet, and its jumbo frames.
const SIZES: [u16; 8] = [48, 536, 1_220, 1_300, 1_380, 1_440, 1_460, 8_960];

/// The size of a peer that does not say (RFC 9293 MUST-15).
const DEFAULT_SIZE: u16 = 536;

/// Bits of a timestamp that hold options.
const MARK: u32 = 63;
/// The shift that stands for "no window scaling" in a mark; the largest real one is fourteen.
const NO_SCALING: u8 = 15;

/// Cookies that were taken and are remembered, so that they are not taken twice.
const REMEMBERED: usize = 4_096;

/// The options of a SYN that fit into six bits of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extras {
    window_scale: Option<u8>,
    sack_permitted: bool,
    ecn: bool,
}

impl Extras {
    fn mark(self) -> u32 {
        let shift = self.window_scale.map_or(NO_SCALING, |shift| shift.min(14));
        u32::from(shift) | u32::from(self.sack_permitted) << 4 | u32::from(self.ecn) << 5
    }

    fn of_mark(mark: u32) -> Self {
        let shift = mark.to_le_bytes()[0] & 15;
        Self {
            window_scale: (shift != NO_SCALING).then_some(shift),
            sack_permitted: mark & 1 << 4 != 0,
            ecn: mark & 1 << 5 != 0,
        }
    }
}

/// What a cookie keeps of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// IRS, the peer's initial number.
    irs: SeqNum,
    /// Which of [`SIZES`].
    size: u8,
    /// Without timestamps there is no place for the other options: they are off.
    extras: Option<Extras>,
}

impl Kept {
    /// What can be kept of `syn`, which is answered with timestamps if `timestamps` says so and it has
    /// them. A request for accurate ECN, if it `is_accurate`, needs no keeping: what acknowledges the answer
    /// tells of it (RFC 9768 §5.1).
    pub(crate) fn of(syn: &Segment<'_>, timestamps: bool, is_accurate: bool) -> Self {
        let options = syn.options();
        let mss = options.mss.unwrap_or(DEFAULT_SIZE);
        let fitting = SIZES.iter().take_while(|&&size| size <= mss).count();
        let ecn = TcpFlags::ECE | TcpFlags::CWR;
        let extras = Extras {
            window_scale: options.window_scale,
            sack_permitted: options.sack_permitted,
            ecn: syn.flags().contains(ecn) && !is_accurate,
        };
        Self {
            irs: syn.seq,
            #[allow(clippy::cast_possible_truncation, reason = "there are eight sizes")]
            size: fitting.saturating_sub(1) as u8,
            extras: (timestamps && options.timestamps.is_some()).then_some(extras),
        }
    }

    /// The offset of a connection's timestamps with which the one that leaves at `now` has the mark in
    /// its low bits. It is at most 63 ms less than `offset`, so later ones do not go back.
    pub(crate) fn timestamp_offset(&self, offset: u32, now: Instant) -> u32 {
        let Some(extras) = self.extras else { return offset };
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the clock of timestamps is the low half"
        )]
        let clock = offset.wrapping_add(now.as_millis() as u32);
        offset.wrapping_sub(clock.wrapping_sub(extras.mark()) & MARK)
    }

    /// The SYN as the cookie remembers it, its options written to `field`; `like` is a segment of the
    /// same peer, for what needs no keeping: ports, window and timestamp; and `is_accurate` says whether it
    /// asked for accurate ECN.
    pub(crate) fn syn<'a>(
        &self,
        like: &Segment<'_>,
        is_accurate: bool,
        field: &'a mut [u8; 40],
    ) -> Segment<'a> {
        let value = like.options().timestamps.map_or(0, |timestamps| timestamps.value);
        let options = TcpOptions {
            mss: SIZES.get(usize::from(self.size)).copied(),
            window_scale: self.extras.and_then(|extras| extras.window_scale),
            sack_permitted: self.extras.is_some_and(|extras| extras.sack_permitted),
            timestamps: self.extras.map(|_| Timestamps { value, echo: 0 }),
            ..TcpOptions::default()
        };
        let length = options.emit(field);
        let ecn = match self.keeps_ecn() {
            _ if is_accurate => TcpFlags::ACE,
            true => TcpFlags::ECE | TcpFlags::CWR,
            false => TcpFlags::empty(),
        };
        #[allow(clippy::cast_possible_truncation, reason = "at most fifteen words")]
        let words = (5 + length / 4) as u16;
        Segment {
            source_port: like.source_port,
            destination_port: like.destination_port,
            seq: self.irs,
            ack: SeqNum::new(0),
            offset_and_flags: words << 12 | (TcpFlags::SYN | ecn).bits(),
            window: like.window,
            urgent: 0,
            options: &field[..length],
            payload: &[],
            joined: None,
        }
    }

    /// Did the SYN ask for the ECN of RFC 3168?
    pub(crate) fn keeps_ecn(&self) -> bool {
        self.extras.is_some_and(|extras| extras.ecn)
    }

    /// All of it in the form that the hash covers.
    fn bytes(self) -> [u8; 6] {
        let [a, b, c, d] = self.irs.number().to_be_bytes();
        let mark = self.extras.map_or(u8::MAX, |extras| extras.mark().to_le_bytes()[0]);
        [a, b, c, d, self.size, mark]
    }
}

/// Makes cookies, and knows its own again.
#[derive(Debug)]
pub(crate) struct CookieJar {
    /// What the keys of the periods are drawn from.
    secrets: SipHasher24,
    /// Hashes of the cookies that were taken lately, each at the place that its low bits say. Empty
    /// until the first.
    taken: Vec<u64>,
}

impl CookieJar {
    pub(crate) fn new(keys: &Keys) -> Self {
        Self { secrets: keys.visible("SYN cookies"), taken: Vec::new() }
    }

    /// The number of a SYN-ACK from `local` to `peer` that leaves at `now`.
    pub(crate) fn make(
        &self,
        now: Instant,
        local: SocketAddrV4,
        peer: SocketAddrV4,
        kept: &Kept,
    ) -> SeqNum {
        self.make_in(period_at(now), local, peer, kept)
    }

    /// What the cookie that `ack` acknowledges has kept; `None` if it is none of ours, or too old, or
    /// says something else than it did.
    pub(crate) fn read(
        &self,
        now: Instant,
        local: SocketAddrV4,
        peer: SocketAddrV4,
        ack: &Segment<'_>,
    ) -> Option<Kept> {
        let irs = ack.seq - 1;
        let bits = (ack.ack - 1) - irs;
        let latest = period_at(now);
        let age = (latest.to_le_bytes()[0].wrapping_sub(bits.to_be_bytes()[0] >> 3)) & 31;
        let period = latest.checked_sub(u64::from(age)).filter(|_| age <= 1)?;
        let echo = ack.options().timestamps.map(|timestamps| timestamps.echo);
        let extras = echo.map(|echo| Extras::of_mark(echo & MARK));
        let kept = Kept { irs, size: bits.to_be_bytes()[0] & 7, extras };
        (self.make_in(period, local, peer, &kept) == ack.ack - 1).then_some(kept)
    }

    fn make_in(&self, period: u64, local: SocketAddrV4, peer: SocketAddrV4, kept: &Kept) -> SeqNum {
        kept.irs + (cookie_bits(period, kept.size) | low(self.hash(period, local, peer, kept)))
    }

    /// Notes that the cookie `number` of these two ends is taken; false if it was before. Of those that
    /// fall on the same place, the latest is remembered.
    pub(crate) fn take(&mut self, local: SocketAddrV4, peer: SocketAddrV4, number: SeqNum) -> bool {
        let hash = self.secrets.hash(&ends(local, peer, number.number()));
        self.taken.resize(REMEMBERED, 0);
        #[allow(clippy::cast_possible_truncation, reason = "the low bits are what is wanted")]
        let place = hash as usize % REMEMBERED;
        core::mem::replace(&mut self.taken[place], hash) != hash
    }

    fn hash(&self, period: u64, local: SocketAddrV4, peer: SocketAddrV4, kept: &Kept) -> u64 {
        let half = |side: u8| {
            let [a, b, c, d, e, f, g, h] = period.to_be_bytes();
            self.secrets.hash(&[a, b, c, d, e, f, g, h, side])
        };
        let hasher = SipHasher24::new_with_keys(half(0), half(1));
        let mut key = [0; 22];
        key[..16].copy_from_slice(&ends(local, peer, 0));
        key[16..].copy_from_slice(&kept.bytes());
        hasher.hash(&key)
    }
}

fn period_at(now: Instant) -> u64 {
    now.as_nanos() / PERIOD.as_nanos()
}

/// The part of a cookie that is not hash.
fn cookie_bits(period: u64, size: u8) -> u32 {
    u32::from(period.to_le_bytes()[0] & 31) << 27 | u32::from(size) << 24
}

/// The part of a hash that fits beside it.
#[allow(clippy::cast_possible_truncation, reason = "the low bits are what is wanted")]
const fn low(hash: u64) -> u32 {
    hash as u32 & 0x00ff_ffff
}

fn ends(local: SocketAddrV4, peer: SocketAddrV4, number: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&local.ip().octets());
    bytes[4..6].copy_from_slice(&local.port().to_be_bytes());
    bytes[6..10].copy_from_slice(&peer.ip().octets());
    bytes[10..12].copy_from_slice(&peer.port().to_be_bytes());
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests;
