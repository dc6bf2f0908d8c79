//! The plan of Van Jacobson's experiment of 1988 on a serial line, whose rate determines the
//! duration of a run.

use super::Plan;
use super::draft::Draft;
use super::kind::BenchKind;
use linerate_link::SerialConfig;
use linerate_units::Duration;
use std::num::{NonZeroU32, NonZeroU64};

/// Number of bytes of a packet besides its data, on a line without header compression: the headers
/// of IPv4 and TCP, and SLIP's END character.
const OVERHEAD: u64 = 20 + 20 + 1;
/// Default duration of a run in seconds.
const SECONDS: u64 = 4;
/// Minimum number of packets in a run. At low rates, a run with so many packets takes longer than
/// the default duration.
const FEWEST_PACKETS: u64 = 8;

impl Draft {
    /// Returns the plan of a reduced form of Van Jacobson's experiment of 1988, on a serial line of
    /// `baud`. The full experiment would take days on such a line, the reduced form takes minutes.
    /// It has buffers of 1, 2, 4 and 8 packets, and two runs of about four seconds for each cell.
    #[must_use]
    pub fn of_serial(baud: NonZeroU32) -> Self {
        let mut draft = Self::of_1988(BenchKind::Serial);
        draft.baud = Some(baud);
        draft.mtu = mtu();
        if let Ok(buffers) = "1,2,4,8".parse::<linerate_evidence::BufferList>() {
            (draft.send_buffers, draft.receive_buffers) = (buffers.clone(), buffers);
        }
        draft.repeat = const { NonZeroU32::new(2).unwrap() };
        let data = u64::from(draft.mtu) - 40;
        let packets = (u64::from(baud.get()) / 10 * SECONDS / data).max(FEWEST_PACKETS);
        draft.bytes = NonZeroU64::new(packets * data).unwrap_or(draft.bytes);
        draft.write_size = const { NonZeroU32::new(1_024).unwrap() };
        draft.read_size = const { NonZeroU32::new(1_024).unwrap() };
        draft.max_time = draft.serial_time_limit().unwrap_or(draft.max_time);
        draft
    }

    /// Returns a maximum duration for runs on a serial line inside this machine: four times
    /// [`Draft::serial_time`], plus ten seconds. Returns `None` if the plan is for another engine.
    #[must_use]
    pub fn serial_time_limit(&self) -> Option<Duration> {
        let time = self.serial_time()?.as_nanos().saturating_mul(4);
        Some(Duration::from_nanos(time.saturating_add(10_000_000_000)))
    }

    /// Returns the time in which a serial line inside this machine transmits the data of a run. The
    /// data is in full packets, and headers are not compressed. Returns `None` if the plan is for
    /// another engine.
    #[must_use]
    pub fn serial_time(&self) -> Option<Duration> {
        let baud = u128::from(self.baud?.get());
        let data = u64::from(self.mtu).saturating_sub(40).max(1);
        let packets = self.bytes.get().div_ceil(data);
        let bytes = u128::from(self.bytes.get()) + u128::from(packets) * u128::from(OVERHEAD);
        let nanos = bytes * 10 * 1_000_000_000 / baud;
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }
}

impl Plan {
    /// Returns the configuration of the serial line inside this machine; `None` on other engines.
    #[must_use]
    pub fn serial_line(&self) -> Option<SerialConfig> {
        let mtu = usize::from(self.mtu);
        let header_compression = self.header_compression.unwrap_or(true);
        let usual = SerialConfig::new(self.baud?.get());
        Some(SerialConfig { header_compression, mtu, queue: mtu, ..usual })
    }

    /// Does the link of linerate's host compress headers (RFC 1144)?
    #[must_use]
    pub fn compresses_headers(&self) -> bool {
        match (&self.host, self.serial_line()) {
            (Some(host), _) => host.compresses_headers(),
            (None, Some(line)) => line.header_compression,
            (None, None) => false,
        }
    }
}

/// Returns the default MTU of a serial line, in bytes.
#[allow(clippy::cast_possible_truncation, reason = "296")]
const fn mtu() -> u16 {
    SerialConfig::MTU as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_takes_seconds_at_any_rate() {
        for (baud, bytes, millis) in
            [(2_400, 2_048, 9_900), (9_600, 3_840, 4_640), (115_200, 46_080, 4_640)]
        {
            let draft = Draft::of_serial(NonZeroU32::new(baud).unwrap());
            assert_eq!(draft.bytes.get(), bytes, "{baud} baud");
            assert_eq!(draft.serial_time().unwrap().as_millis(), millis, "{baud} baud");
            let limit = draft.serial_time().unwrap().as_nanos() * 4 + 10_000_000_000;
            assert_eq!(draft.max_time.as_nanos(), limit, "{baud} baud");
            let line = Plan::new(draft).unwrap().serial_line().unwrap();
            assert_eq!(line, SerialConfig::new(baud));
        }
    }
}
