//! Converts the values of socket options to the units of linerate's host.

use super::Known;
use crate::syntax::{Errno, OptionValue};
use linerate_tcp::{CongestionName, KeepAlive};
use linerate_units::{Duration, Rate};

/// Returns the congestion control with this name in Linux; `None` if linerate's TCP does not have
/// it.
pub(in crate::stack) fn congestion(name: &str) -> Option<CongestionName> {
    match name {
        "reno" => Some(CongestionName::NewReno),
        name => name.parse().ok(),
    }
}

pub(super) const fn number(value: &OptionValue) -> Result<i64, Errno> {
    match value {
        OptionValue::Number(number) => Ok(*number),
        _ => Err(Errno::INVAL),
    }
}

pub(super) fn size(value: &OptionValue) -> Result<usize, Errno> {
    usize::try_from(number(value)?).map_err(|_| Errno::INVAL)
}

pub(super) fn byte(value: &OptionValue) -> Result<u8, Errno> {
    u8::try_from(number(value)?).map_err(|_| Errno::INVAL)
}

/// Converts `TCP_USER_TIMEOUT`, in milliseconds. Zero selects the host's default, which is `None`.
pub(super) fn user_timeout(value: &OptionValue) -> Result<Option<Duration>, Errno> {
    let millis = u64::try_from(number(value)?).map_err(|_| Errno::INVAL)?;
    Ok((millis > 0).then(|| Duration::from_millis(millis)))
}

pub(super) fn linger(value: &OptionValue) -> Result<Option<Duration>, Errno> {
    match value {
        OptionValue::Linger { on: false, .. } => Ok(None),
        OptionValue::Linger { seconds, .. } => u64::try_from(*seconds)
            .map(|seconds| Some(Duration::from_secs(seconds)))
            .map_err(|_| Errno::INVAL),
        _ => Err(Errno::INVAL),
    }
}

pub(super) fn changed(
    keep_alive: KeepAlive,
    known: Known,
    value: &OptionValue,
) -> Result<KeepAlive, Errno> {
    let number = u32::try_from(number(value)?).map_err(|_| Errno::INVAL)?;
    let seconds = Duration::from_secs(number.into());
    Ok(match known {
        Known::KeepIdle => KeepAlive { idle: seconds, ..keep_alive },
        Known::KeepInterval => KeepAlive { interval: seconds, ..keep_alive },
        _ => KeepAlive { probes: number, ..keep_alive },
    })
}

/// Converts a number of seconds. A negative number means zero.
pub(super) fn seconds(value: &OptionValue) -> Result<Duration, Errno> {
    Ok(Duration::from_secs(u64::try_from(number(value)?).unwrap_or(0)))
}

/// Converts `TCP_NOTSENT_LOWAT`, in bytes. Zero selects the host's default, which is `None`.
pub(super) fn low_water(value: &OptionValue) -> Result<Option<u32>, Errno> {
    let bytes = u32::try_from(number(value)?).map_err(|_| Errno::INVAL)?;
    Ok((bytes > 0).then_some(bytes))
}

/// Converts `SO_MAX_PACING_RATE`, in bytes per second. As in Linux, there is no maximum (`None`) if
/// the value is the largest unsigned number of 32 or of 64 bits. The latter can be written as -1.
pub(super) fn max_pacing_rate(value: &OptionValue) -> Result<Option<Rate>, Errno> {
    let number = number(value)?;
    if number == -1 || number == u32::MAX.into() {
        return Ok(None);
    }
    let bytes = u64::try_from(number).map_err(|_| Errno::INVAL)?;
    Ok(Some(Rate::from_bytes_per_second(bytes)))
}

/// Converts `TCP_MAXSEG`, in bytes. A value outside Linux's limits is refused. Zero selects the MSS
/// of the path, which is `None`.
pub(super) fn largest_segment(value: &OptionValue) -> Result<Option<u16>, Errno> {
    match number(value)? {
        0 => Ok(None),
        bytes @ 88..=32_767 => Ok(u16::try_from(bytes).ok()),
        _ => Err(Errno::INVAL),
    }
}

/// Returns the time from the first transmission of a SYN until the timer of its retransmission
/// number `retries` expires. The timer is one second for the original SYN, and doubles with each
/// retransmission up to 120 seconds.
fn retransmissions_take(retries: u32) -> Duration {
    const MOST_DOUBLINGS: u32 = 6;
    let doubled = (2_u64 << retries.min(MOST_DOUBLINGS)) - 1;
    let rest = u64::from(retries.saturating_sub(MOST_DOUBLINGS)) * 120;
    Duration::from_secs(doubled + rest)
}

/// Returns the host's handshake timeout that permits `retries` retransmissions of the SYN. The host
/// counts this timeout from the first retransmission, one second after the original SYN.
pub(in crate::stack) fn handshake_timeout(retries: u32) -> Duration {
    retransmissions_take(retries).abs_diff(retransmissions_take(0))
}

/// Converts `TCP_SYNCNT`, 1 to 127 retransmissions of the SYN, to a handshake timeout.
pub(super) fn syn_retries(value: &OptionValue) -> Result<Duration, Errno> {
    match number(value)? {
        retries @ 1..=127 => Ok(handshake_timeout(u32::try_from(retries).unwrap_or(127))),
        _ => Err(Errno::INVAL),
    }
}

/// Converts `TCP_DEFER_ACCEPT`, in seconds, to the time for which the host waits for data. As in
/// Linux, the time is rounded up to the expiry of the timer after a whole number of SYN-ACK
/// retransmissions. Zero turns the option off, which is `None`.
pub(super) fn defer_accept(value: &OptionValue) -> Result<Option<Duration>, Errno> {
    let seconds = u64::try_from(number(value)?).unwrap_or(0);
    let mut retries = 0;
    while seconds > 0
        && retries < u32::from(u8::MAX)
        && retransmissions_take(retries) < Duration::from_secs(seconds)
    {
        retries += 1;
    }
    Ok((seconds > 0).then(|| retransmissions_take(retries)))
}
