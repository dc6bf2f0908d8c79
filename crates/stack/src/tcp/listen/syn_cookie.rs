//! SYN cookies: the parameters of a SYN, encoded in the sequence number and the timestamp that the
//! peer's acknowledgement returns (RFC 4987 §3.6 and appendix A).
//!
//! The initial sequence number of the SYN-ACK is the sum of the peer's initial sequence number
//! (IRS) and this word:
//!
//! ```text
//!  31    27 26 24 23                                             0
//! ┌───────┬─────┬───────────────────────────────────────────────┐
//! │ period│ MSS │ keyed hash of flow, IRS, MSS and option bits  │
//! └───────┴─────┴───────────────────────────────────────────────┘
//! ```
//!
//! If both hosts use timestamps, the low six bits of the timestamp contain window scale, SACK and
//! ECN, as in Linux. The hash covers these bits, so that the peer cannot change them. A forged
//! acknowledgement is accepted with probability 2^-28: its 24-bit hash must match, and two of 32
//! periods are valid. Each period has its own key, so a guessed cookie is useless after about two
//! minutes.
//!
//! This module does not depend on listeners or connections; time is an argument.

use crate::demux::Flow;
use crate::keys::Keys;
use alloc::vec::Vec;
use linerate_units::{Duration, Instant};
use linerate_wire::{Segment, SeqNum, TcpFlags, TcpOptions, Timestamps};
use siphasher::sip::SipHasher24;

/// Length of a period, in which all cookies have the same key. A cookie is valid in its own period
/// and in the next period. A peer thus has at least a minute to answer.
pub(crate) const PERIOD: Duration = Duration::from_secs(64);

/// The MSS values that a cookie can store, in bytes. The peer's MSS is rounded down to one of these
/// values. They are the smallest peer MSS that a connection uses, the default MSS, and values for
/// the MTUs of tunnels, PPPoE, Ethernet and jumbo frames.
const SIZES: [u16; 8] = [48, 536, 1_220, 1_300, 1_380, 1_440, 1_460, 8_960];

/// MSS in bytes of a peer whose SYN has no MSS option (RFC 9293 MUST-15).
const DEFAULT_SIZE: u16 = 536;

/// Mask of the timestamp bits that contain options of the SYN.
const OPTION_BITS: u32 = 63;
/// The value of the window scale field that means "no window scale option". Valid shifts are at
/// most 14 (RFC 7323 §2.3).
const NO_SCALING: u8 = 15;

/// Number of slots for cookies that were used. A cookie whose hash is still in its slot is not
/// accepted a second time.
const REPLAY_SLOTS: usize = 4_096;

/// The options of a SYN that are stored in six bits of the timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CookieOptions {
    window_scale: Option<u8>,
    sack_permitted: bool,
    ecn: bool,
}

impl CookieOptions {
    fn bits(self) -> u32 {
        let shift = self.window_scale.map_or(NO_SCALING, |shift| shift.min(14));
        u32::from(shift) | u32::from(self.sack_permitted) << 4 | u32::from(self.ecn) << 5
    }

    fn from_bits(bits: u32) -> Self {
        let shift = bits.to_le_bytes()[0] & 15;
        Self {
            window_scale: (shift != NO_SCALING).then_some(shift),
            sack_permitted: bits & 1 << 4 != 0,
            ecn: bits & 1 << 5 != 0,
        }
    }
}

/// The part of a SYN that a cookie can store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredSyn {
    /// The peer's initial sequence number (IRS).
    irs: SeqNum,
    /// Index in [`SIZES`] of the largest size up to the peer's MSS.
    size: u8,
    /// Options stored in the timestamp; `None` if timestamps are not used. The cookie itself has no
    /// room for these options, so without timestamps the connection uses none of them.
    extras: Option<CookieOptions>,
}

impl StoredSyn {
    /// Returns the part of `syn` that a cookie can store. `timestamps` says whether the SYN-ACK may
    /// have timestamps, and `is_accurate` whether the SYN requests accurate ECN. This request is
    /// not stored, because the peer's acknowledgement shows it (RFC 9768 §5.1).
    pub(crate) fn of(syn: &Segment<'_>, timestamps: bool, is_accurate: bool) -> Self {
        let options = syn.options();
        let mss = options.mss.unwrap_or(DEFAULT_SIZE);
        let fitting = SIZES.iter().take_while(|&&size| size <= mss).count();
        let ecn = TcpFlags::ECE | TcpFlags::CWR;
        let extras = CookieOptions {
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

    /// Returns a timestamp offset such that the low bits of the timestamp at `now` are the option
    /// bits. The result is at most 63 ms below `offset`, which the later connection uses. So the
    /// timestamps of the connection are never earlier than that of the SYN-ACK.
    pub(crate) fn timestamp_offset(&self, offset: u32, now: Instant) -> u32 {
        let Some(extras) = self.extras else { return offset };
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the clock of timestamps is the low half"
        )]
        let clock = offset.wrapping_add(now.as_millis() as u32);
        offset.wrapping_sub(clock.wrapping_sub(extras.bits()) & OPTION_BITS)
    }

    /// Returns the TSval of a SYN-ACK that is sent at `now`.
    pub(crate) fn timestamp(&self, offset: u32, now: Instant) -> u32 {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the clock of timestamps is the low half"
        )]
        let clock = now.as_millis() as u32;
        self.timestamp_offset(offset, now).wrapping_add(clock)
    }

    /// Returns whether the SYN-ACK has timestamps.
    pub(crate) const fn has_timestamps(&self) -> bool {
        self.extras.is_some()
    }

    /// Returns the features of the SYN that affect the SYN-ACK, encoded in four bits.
    pub(super) fn features(&self) -> usize {
        self.extras.map_or(0, |extras| {
            let CookieOptions { window_scale, sack_permitted, ecn } = extras;
            1 | usize::from(window_scale.is_some()) << 1
                | usize::from(sack_permitted) << 2
                | usize::from(ecn) << 3
        })
    }

    /// Reconstructs the SYN from the stored part, and writes its options into `field`. Ports,
    /// window and timestamp are copied from `like`, another segment of the peer: the
    /// acknowledgement that contains the cookie, or the SYN itself. `is_accurate` says whether the
    /// SYN requested accurate ECN.
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
        let ecn = match self.has_classic_ecn() {
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

    /// Returns whether the SYN requested ECN as defined by RFC 3168.
    pub(crate) fn has_classic_ecn(&self) -> bool {
        self.extras.is_some_and(|extras| extras.ecn)
    }

    /// Returns the stored part of the SYN as bytes, which the hash of the cookie covers.
    fn to_bytes(self) -> [u8; 6] {
        let [a, b, c, d] = self.irs.number().to_be_bytes();
        let bits = self.extras.map_or(u8::MAX, |extras| extras.bits().to_le_bytes()[0]);
        [a, b, c, d, self.size, bits]
    }
}

/// The keys of SYN cookies, by which the host makes and validates cookies.
#[derive(Debug)]
pub(crate) struct SynCookieIssuer {
    /// The secret keyed hash from which the key of each period is derived.
    secrets: SipHasher24,
    /// The keyed hashes of two periods, the current and the previous one. Each is stored with the
    /// number of its period, at the index that the low bit of this number gives.
    hashers: [Option<(u64, SipHasher24)>; 2],
    /// Hashes of recently used cookies. The low bits of a hash determine its index. The vector is
    /// empty until a cookie is used.
    taken: Vec<u64>,
}

impl SynCookieIssuer {
    pub(crate) fn new(keys: &Keys) -> Self {
        Self { secrets: keys.visible("SYN cookies"), hashers: [None; 2], taken: Vec::new() }
    }

    /// Returns the cookie: the initial sequence number of a SYN-ACK that is sent at `now`.
    pub(crate) fn make(&mut self, now: Instant, flow: &Flow, kept: &StoredSyn) -> SeqNum {
        self.make_in(period_at(now), flow, kept)
    }

    /// Returns the part of the SYN that is stored in the cookie which `ack` acknowledges. Returns
    /// `None` if the cookie is forged, changed or expired.
    pub(crate) fn read(
        &mut self,
        now: Instant,
        flow: &Flow,
        ack: &Segment<'_>,
    ) -> Option<StoredSyn> {
        let irs = ack.seq - 1;
        let bits = (ack.ack - 1) - irs;
        let latest = period_at(now);
        let age = (latest.to_le_bytes()[0].wrapping_sub(bits.to_be_bytes()[0] >> 3)) & 31;
        let period = latest.checked_sub(u64::from(age)).filter(|_| age <= 1)?;
        let echo = ack.options().timestamps.map(|timestamps| timestamps.echo);
        let extras = echo.map(|echo| CookieOptions::from_bits(echo & OPTION_BITS));
        let kept = StoredSyn { irs, size: bits.to_be_bytes()[0] & 7, extras };
        (self.make_in(period, flow, &kept) == ack.ack - 1).then_some(kept)
    }

    fn make_in(&mut self, period: u64, flow: &Flow, kept: &StoredSyn) -> SeqNum {
        kept.irs + (cookie_bits(period, kept.size) | low(self.hash(period, flow, kept)))
    }

    /// Notes that a cookie is used. Returns false if this cookie was used before, and its hash is
    /// still in `taken`. The hash stays there until another used cookie with equal low bits
    /// replaces it.
    pub(crate) fn take(&mut self, flow: &Flow, number: SeqNum) -> bool {
        let (key, length) = key(flow, &number.number().to_be_bytes());
        let hash = self.secrets.hash(&key[..length]);
        self.taken.resize(REPLAY_SLOTS, 0);
        #[allow(clippy::cast_possible_truncation, reason = "the low bits are used")]
        let place = hash as usize % REPLAY_SLOTS;
        core::mem::replace(&mut self.taken[place], hash) != hash
    }

    fn hash(&mut self, period: u64, flow: &Flow, kept: &StoredSyn) -> u64 {
        let [a, b, c, d, e, f] = kept.to_bytes();
        let (key, length) = key(flow, &[0, 0, 0, 0, a, b, c, d, e, f]);
        self.hasher(period).hash(&key[..length])
    }

    /// Returns the keyed hash of a period. The key of the period is derived only once, by two
    /// hashes. Each cookie then costs only one hash.
    fn hasher(&mut self, period: u64) -> SipHasher24 {
        let half = |side: u8| {
            let [a, b, c, d, e, f, g, h] = period.to_be_bytes();
            self.secrets.hash(&[a, b, c, d, e, f, g, h, side])
        };
        let known = &mut self.hashers[usize::from(period & 1 != 0)];
        match known {
            Some((number, hasher)) if *number == period => *hasher,
            _ => known.insert((period, SipHasher24::new_with_keys(half(0), half(1)))).1,
        }
    }
}

fn period_at(now: Instant) -> u64 {
    now.as_nanos() / PERIOD.as_nanos()
}

/// Returns the bits of a cookie above the hash: the low five bits of the period, and the index of
/// the MSS.
fn cookie_bits(period: u64, size: u8) -> u32 {
    u32::from(period.to_le_bytes()[0] & 31) << 27 | u32::from(size) << 24
}

/// Returns the low 24 bits of a hash, for which a cookie has room.
#[allow(clippy::cast_possible_truncation, reason = "the low bits are used")]
const fn low(hash: u64) -> u32 {
    hash as u32 & 0x00ff_ffff
}

/// Returns the bytes to be hashed, which are `flow` and `rest`, and the number of these bytes.
fn key(flow: &Flow, rest: &[u8]) -> ([u8; Flow::KEY + 10], usize) {
    let mut bytes = [0; Flow::KEY + 10];
    let at = flow.write_key(&mut bytes);
    let length = at + rest.len();
    bytes[at..length].copy_from_slice(rest);
    (bytes, length)
}

#[cfg(test)]
mod tests;
