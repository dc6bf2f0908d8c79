//! The options that both SYNs have negotiated, and the state of the timestamps option.

use crate::compact::pack::packed;
use crate::{BufferSize, Config};
use linerate_units::{Duration, Instant};
use linerate_wire::{Segment, SeqNum, TcpOptions, Timestamps};

/// The time after which TS.Recent is outdated, in milliseconds: 24 days without a newer timestamp
/// (RFC 7323 §5.5).
const STALE_AFTER_MILLIS: u64 = 24 * 24 * 60 * 60 * 1_000;

/// The largest shift of window scaling. A peer's larger shift is reduced to it (RFC 7323 §2.3).
const LARGEST_SHIFT: u8 = 14;

/// The timestamps option of a connection (RFC 7323 §3 to §5). Its clock ticks in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TimestampState {
    /// Whether both endpoints have agreed to use timestamps.
    pub(crate) on: bool,
    /// TS.Recent: the peer's timestamp that our segments echo.
    pub(crate) recent: u32,
    /// The time when TS.Recent was set.
    recent_at: Instant,
    /// The offset that is added to the clock, so that timestamps do not reveal how long the host
    /// has been running (RFC 7323 §5.4).
    offset: u32,
}

packed!(TimestampState { on, recent, recent_at, offset });

impl TimestampState {
    pub(crate) const fn new(offset: u32) -> Self {
        Self { on: false, recent: 0, recent_at: Instant::ZERO, offset }
    }

    /// Returns the timestamps for a segment sent at `now`.
    pub(crate) fn stamp(&self, now: Instant) -> Timestamps {
        Timestamps { value: self.clock(now), echo: self.recent }
    }

    /// Returns the timestamps of `segment`, if the connection uses timestamps.
    pub(crate) fn of(&self, segment: &Segment<'_>) -> Option<Timestamps> {
        if self.on { segment.timestamps() } else { None }
    }

    /// Returns the value of the timestamp clock at `now`.
    pub(crate) fn clock(&self, now: Instant) -> u32 {
        self.offset.wrapping_add(low_word(now.as_millis()))
    }

    /// Whether a segment with these timestamps is refused as too old. It may have been sent before
    /// the sequence numbers wrapped (PAWS, RFC 7323 §5.3 R1).
    pub(crate) fn is_old(&self, timestamps: Timestamps, now: Instant) -> bool {
        before(timestamps.value, self.recent)
            && now.since(self.recent_at).as_millis() < STALE_AFTER_MILLIS
    }

    /// Sets TS.Recent to the timestamp of a segment at `seq`, unless the segment begins after
    /// `last_ack_sent`, our latest acknowledgement number (RFC 7323 §4.3). Segments after it that
    /// the same acknowledgement will cover do not replace the value. A delayed acknowledgement thus
    /// echoes the timestamp of the first segment that it covers.
    pub(crate) fn note(
        &mut self,
        timestamps: Timestamps,
        seq: SeqNum,
        last_ack_sent: SeqNum,
        now: Instant,
    ) {
        if !seq.after(last_ack_sent) && !self.is_old(timestamps, now) {
            self.take(timestamps.value, now);
        }
    }

    /// Sets TS.Recent to `value`.
    pub(crate) fn take(&mut self, value: u32, now: Instant) {
        self.recent = value;
        self.recent_at = now;
    }

    /// Returns the round-trip time that the timestamp echo in `segment` shows, to the millisecond.
    /// `None` if there is no echo, or if the echoed timestamp is later than `now`.
    pub(crate) fn echoed_round_trip(
        &self,
        segment: &Segment<'_>,
        now: Instant,
    ) -> Option<Duration> {
        self.round_trip_of(self.of(segment)?, now)
    }

    /// Returns the round-trip time that `timestamps` show, to the millisecond. `None` if there is
    /// no echo, or if the echoed timestamp is later than `now`.
    pub(crate) fn round_trip_of(&self, timestamps: Timestamps, now: Instant) -> Option<Duration> {
        let (echo, clock) = (timestamps.echo, self.clock(now));
        let is_past = echo != 0 && !before(clock, echo);
        is_past.then(|| Duration::from_millis(u64::from(clock.wrapping_sub(echo))))
    }
}

/// Whether timestamp `value` is earlier than `than`, by serial-number arithmetic.
pub(crate) const fn before(value: u32, than: u32) -> bool {
    value.wrapping_sub(than).cast_signed() < 0
}

fn low_word(number: u64) -> u32 {
    #[allow(clippy::cast_possible_truncation, reason = "only the low half is wanted")]
    {
        number as u32
    }
}

/// The options that a connection offers and, after the handshake, those that both endpoints have
/// agreed on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Agreement {
    /// The shift by which we scale the windows that we announce.
    pub(crate) receive_shift: u8,
    /// The shift by which the peer scales the windows that it announces.
    pub(crate) send_shift: u8,
    /// Whether windows are scaled. If not, both shifts are zero.
    pub(crate) scaling: bool,
    /// Whether we offer SACK and, after the handshake, whether both endpoints have agreed on it.
    pub(crate) selective_acks: bool,
}

packed!(Agreement { receive_shift, send_shift, scaling, selective_acks });

impl Agreement {
    /// Returns the options that our SYN offers.
    pub(crate) fn offer(config: &Config, receive_buffer: BufferSize) -> Self {
        let receive_shift =
            if config.window_scaling { shift_for(receive_buffer.most()) } else { 0 };
        Self {
            receive_shift,
            send_shift: 0,
            scaling: config.window_scaling,
            selective_acks: config.selective_acks,
        }
    }

    /// Disables every option that the peer's SYN does not offer, and takes the window scale shift
    /// of the peer.
    pub(crate) fn negotiate(&mut self, peer: &TcpOptions) {
        match (self.scaling, peer.window_scale) {
            (true, Some(shift)) => self.send_shift = shift.min(LARGEST_SHIFT),
            _ => (self.scaling, self.receive_shift) = (false, 0),
        }
        self.selective_acks &= peer.sack_permitted;
    }
}

/// Returns the smallest shift with which the window field can announce `capacity` bytes.
fn shift_for(capacity: usize) -> u8 {
    let units = capacity.div_ceil(u16::MAX.into());
    #[allow(clippy::cast_possible_truncation, reason = "a word has fewer bits than 256")]
    let shift = units.next_power_of_two().trailing_zeros() as u8;
    shift.min(LARGEST_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shift_is_the_smallest_that_expresses_the_buffer() {
        assert_eq!(shift_for(65_535), 0);
        assert_eq!(shift_for(65_536), 1);
        assert_eq!(shift_for(usize::MAX), 14);
    }

    #[test]
    fn scaling_needs_both_sides() {
        let mut agreement = Agreement::offer(&Config::modern(), BufferSize::Fixed(1 << 20));
        assert_eq!(agreement.receive_shift, 5);
        agreement.negotiate(&TcpOptions::default());
        assert_eq!(
            (agreement.receive_shift, agreement.send_shift, agreement.scaling),
            (0, 0, false)
        );
        let mut agreement = Agreement::offer(&Config::modern(), BufferSize::Fixed(1 << 20));
        agreement.negotiate(&TcpOptions { window_scale: Some(200), ..TcpOptions::default() });
        assert_eq!((agreement.receive_shift, agreement.send_shift), (5, 14));
    }

    #[test]
    fn an_old_timestamp_is_detected_until_ts_recent_is_outdated() {
        let mut state = TimestampState::new(0);
        let stamp = |value| Timestamps { value, echo: 0 };
        let day = Duration::from_secs(24 * 60 * 60);
        let start = Instant::ZERO;
        state.note(stamp(100), SeqNum::new(5), SeqNum::new(5), start);
        assert!(state.is_old(stamp(99), start) && !state.is_old(stamp(100), start));
        assert!(!state.is_old(stamp(99), start + day * 25));
        state.note(stamp(200), SeqNum::new(6), SeqNum::new(5), start);
        assert_eq!(
            state.recent, 100,
            "a later segment must not hide the timestamp of an earlier one"
        );
    }
}
