//! The first flight: data sent without feedback from the path, at the start of a connection or
//! after an idle time. After a loss in the first flight, the window at the start of later flights
//! is smaller (RFC 6928 §2).

use crate::Connection;
use crate::compact::pack::packed;

/// The number of bytes that may be sent at once on any path, however slow it is (RFC 6928 §2: "4
/// KB"). A loss in a first flight of at most this size has no consequence.
const HARMLESS: u64 = 4 << 10;

/// The latest first flight of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstFlight {
    /// The number of bytes that the peer had acknowledged in total when the flight began.
    began: u64,
    /// The congestion window when the flight began, in bytes.
    window: u32,
}

packed!(FirstFlight { began, window });

impl FirstFlight {
    /// Whether a loss that is detected now belongs to the first flight, and more than [`HARMLESS`]
    /// bytes were sent since the flight began. `acknowledged` bytes are acknowledged so far, and
    /// `flight` bytes are in flight.
    fn is_hit(self, acknowledged: u64, flight: u32) -> bool {
        let since = acknowledged - self.began;
        since < u64::from(self.window) && since + u64::from(flight) > HARMLESS
    }
}

impl Connection {
    /// Records that the connection begins to send, or resumes after an idle time.
    pub(crate) fn begin_first_flight(&mut self) {
        let window = self.sender.congestion.window().cwnd();
        self.sender.first_flight =
            FirstFlight { began: self.statistics.bytes_acknowledged, window };
    }

    /// Handles a loss. If it belongs to the first flight, reduces the window with which the
    /// connection resumes after later idle times.
    pub(super) fn judge_first_flight(&mut self) {
        if self.sender.first_flight.is_hit(self.statistics.bytes_acknowledged, self.snd.flight()) {
            self.sender.congestion.controller().window_mut().restart_with_less();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_counts_until_a_flight_larger_than_4_kib_is_acknowledged() {
        let flight = FirstFlight { began: 50_000, window: 10_000 };
        let hits =
            [(50_000, 4_096), (50_000, 4_097), (53_000, 1_097), (59_999, 9_000), (60_000, 9_000)];
        let outcome = hits.map(|(acknowledged, in_flight)| flight.is_hit(acknowledged, in_flight));
        assert_eq!(outcome, [false, true, true, true, false]);
    }
}
