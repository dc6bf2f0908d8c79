//! The counters of a linerate connection, under names that do not depend on the TCP implementation.

use linerate_evidence::{EndCounters, FastPath, names};
use linerate_tcp::{Information, PredictionStatistics, Statistics};

/// Converts the counters and variables of a linerate connection to the names that all records of
/// runs use.
pub fn of_connection(counted: &Statistics, state: &Information) -> EndCounters {
    let mut end =
        EndCounters { fast_path: Some(fast_path(&counted.prediction)), ..EndCounters::default() };
    note_statistics(counted, &mut end);
    note_information(state, &mut end);
    end
}

fn note_statistics(counted: &Statistics, end: &mut EndCounters) {
    for (name, amount) in [
        ("segments_received", counted.segments_received),
        ("segments_sent", counted.segments_sent),
        ("pure_acks_sent", counted.pure_acks_sent),
        (names::DATA_SEGMENTS_SENT, counted.data_segments_sent),
        (names::RETRANSMITTED_SEGMENTS, counted.retransmitted_segments),
        ("fast_retransmissions", counted.fast_retransmissions),
        (names::RETRANSMISSION_TIMEOUTS, counted.retransmission_timeouts),
        (names::DELAYED_ACK_TIMEOUTS, counted.delayed_ack_timeouts),
        (names::ZERO_WINDOW_PROBES, counted.window_probes),
        (names::SMALL_WINDOW_TIMEOUTS, counted.small_window_timeouts),
        (names::ZERO_WINDOWS_RECEIVED, counted.zero_windows_received),
        ("duplicate_acks", counted.duplicate_acks),
        ("out_of_order_segments", counted.out_of_order_segments),
        ("duplicate_segments", counted.duplicate_segments),
    ] {
        end.set(name, amount);
    }
}

fn note_information(state: &Information, end: &mut EndCounters) {
    end.set("congestion_window", state.congestion_window.into());
    end.set("slow_start_threshold", state.slow_start_threshold.into());
    end.set("effective_mss", state.effective_mss.into());
    end.set("peer_window", state.send_window.into());
    end.set("retransmission_timeout_micros", state.retransmission_timeout.as_micros());
    if let Some(round_trip) = state.smoothed_round_trip {
        end.set("round_trip_nanos", round_trip.as_nanos());
    }
}

fn fast_path(prediction: &PredictionStatistics) -> FastPath {
    let missed = prediction.misses().filter(|&(_, count)| count > 0);
    let misses = missed.map(|(reason, count)| (reason.name().to_owned(), count)).collect();
    FastPath { hits: prediction.hits(), misses }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_segments_are_counted_without_acknowledgements() {
        let mut counted = Statistics::default();
        counted.segments_sent = 12;
        counted.pure_acks_sent = 4;
        counted.data_segments_sent = 7;
        let mut end = EndCounters::default();
        note_statistics(&counted, &mut end);
        assert_eq!(end.get(names::DATA_SEGMENTS_SENT), Some(7));
    }
}
