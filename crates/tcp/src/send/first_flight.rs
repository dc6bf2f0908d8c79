//! What a connection sends before it has heard of the path, or has heard nothing of it for a while: its first
//! flight, and the first after an idle time. A path that loses a part of one is not given as much at once again
//! (RFC 6928 §2).

use crate::Connection;
use crate::rest::pack::packed;

/// Bytes that may leave at once on any path (RFC 6928 §2: "4 KB").
const HARMLESS: u64 = 4 << 10;

/// The flight that began last, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstFlight {
    /// Acknowledged in the connection's life when it began.
    began: u64,
    /// The window with which it began.
    window: u32,
}

packed!(FirstFlight { began, window });

impl FirstFlight {
    /// Is what was lost a part of it, and of more than is harmless? Until now `acknowledged` bytes are, and so many
    /// are in `flight`.
    fn is_hit(self, acknowledged: u64, flight: u32) -> bool {
        let since = acknowledged - self.began;
        since < u64::from(self.window) && since + u64::from(flight) > HARMLESS
    }
}

impl Connection {
    /// The connection begins to send, or begins again after it was idle.
    pub(crate) fn begin_first_flight(&mut self) {
        let window = self.sender.congestion.window().cwnd();
        self.sender.first_flight =
            FirstFlight { began: self.statistics.bytes_acknowledged, window };
    }

    /// Something was lost.
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
    fn a_loss_hits_it_until_all_of_it_is_acknowledged_and_if_it_was_more_than_is_harmless() {
        let flight = FirstFlight { began: 50_000, window: 10_000 };
        let hits =
            [(50_000, 4_096), (50_000, 4_097), (53_000, 1_097), (59_999, 9_000), (60_000, 9_000)];
        let outcome = hits.map(|(acknowledged, in_flight)| flight.is_hit(acknowledged, in_flight));
        assert_eq!(outcome, [false, true, true, true, false]);
    }
}
