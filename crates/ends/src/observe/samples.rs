//! Samples of the queues, the windows and the state of a connection.

use super::call_clock::CallClock;
use super::reading::Reading;
use crate::socket::Stream;
use linerate_evidence::{Distribution, QueueEvidence, SenderStates};
use std::time::{Duration, Instant};

/// The samples of a connection, combined as sums, maxima and shares. A field of type [`Sum`]
/// combines the samples of one variable: the field of [`Reading`] with the same name, in the same
/// unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    unacknowledged: Sum,
    unsent: Sum,
    unread: Sum,
    send_memory: Sum,
    receive_memory: Sum,
    congestion_window: Sum,
    round_trip: Sum,
    peer_window: Sum,
    /// The largest congestion window in the samples before the observed part, in segments.
    earlier_congestion_window: Option<u64>,
    /// Delivery rates in the observed part, in bytes per second. Invariant: at most [`MAX_RATES`].
    delivery_rates: Vec<u64>,
    /// Loss events since the connection was opened, so not only those in the observed part.
    losses: Losses,
    /// Number of samples in each [`State`], indexed by the variant.
    states: [u64; STATES],
}

/// Maximum number of delivery rates that are stored, which limits memory. With a sample every 2 ms,
/// the limit is reached after about two minutes.
const MAX_RATES: usize = 1 << 16;

/// The loss events since the connection was opened. Retransmissions within one round-trip time
/// count as one event, because they usually have one cause.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// Largest number of retransmitted segments that a reading has reported.
    retransmitted: u64,
    /// Number of loss events; `None` if the TCP does not count retransmissions.
    events: Option<u64>,
    /// Time of the sample that began the latest loss event.
    last: Option<Instant>,
}

/// Number of variants of [`State`].
const STATES: usize = 5;

/// The reason why a sender does not send at the moment of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nearly everything is sent, and the program waits in `write` for room in the send buffer.
    BufferFull,
    /// Less than a segment is unsent, and the program is not in `write`, so the program has no data
    /// to send.
    OutOfData,
    /// Unsent data waits because the peer's window is full.
    WindowFull,
    /// Unsent data waits because the congestion window is full.
    CongestionWindowFull,
    /// Unsent data waits although both windows have room, for example because of pacing.
    HeldBack,
}

/// The sum, the number and the maximum of the samples of one value.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    sum: u128,
    count: u32,
    max: u64,
}

impl Samples {
    /// Takes a sample of `stream` in the observed part.
    pub(super) fn take(&mut self, stream: &Stream, clock: &CallClock, now: Instant) {
        let reading = Reading::of(stream);
        self.losses.note(&reading, now);
        self.add(&reading, clock.is_in_call());
    }

    /// Takes a sample of `stream` before the observed part. Only the congestion window and the
    /// losses are recorded.
    pub(super) fn note_earlier(&mut self, stream: &Stream, now: Instant) {
        let reading = Reading::of(stream);
        self.losses.note(&reading, now);
        let window = reading.congestion_window;
        self.earlier_congestion_window = self.earlier_congestion_window.max(window);
    }

    fn add(&mut self, reading: &Reading, is_in_call: bool) {
        self.unacknowledged.add(reading.unacknowledged);
        self.unsent.add(reading.unsent);
        self.unread.add(reading.unread);
        self.send_memory.add(reading.send_memory);
        self.receive_memory.add(reading.receive_memory);
        self.congestion_window.add(reading.congestion_window);
        self.round_trip.add(reading.round_trip);
        self.peer_window.add(reading.peer_window);
        if self.delivery_rates.len() < MAX_RATES {
            self.delivery_rates.extend(reading.delivery_rate);
        }
        if let Some(state) = state(reading, is_in_call) {
            self.states[state as usize] += 1;
        }
    }

    /// Returns the sampled lengths of the queues. The field `drops` remains `None`: drops are not
    /// sampled, because a counter has their number.
    pub(super) fn queues(&self) -> QueueEvidence {
        QueueEvidence {
            unacknowledged: self.unacknowledged.distribution(),
            unsent: self.unsent.distribution(),
            unread: self.unread.distribution(),
            send_memory: self.send_memory.distribution(),
            receive_memory: self.receive_memory.distribution(),
            drops: None,
        }
    }

    pub(super) fn congestion_window(&self) -> Option<Distribution> {
        self.congestion_window.distribution()
    }

    pub(super) const fn earlier_congestion_window(&self) -> Option<u64> {
        self.earlier_congestion_window
    }

    pub(super) fn round_trip(&self) -> Option<Distribution> {
        self.round_trip.distribution()
    }

    /// Returns the number of loss events since the connection was opened; `None` if the TCP does
    /// not count retransmissions.
    pub(super) const fn loss_events(&self) -> Option<u64> {
        self.losses.events
    }

    /// Returns the delivery rate that 5 % of the samples exceed, in bytes per second; `None`
    /// without samples. The maximum would be misleading, because acknowledgements that arrive
    /// together give a rate above that of the path.
    pub(super) fn peak_delivery_rate(&self) -> Option<u64> {
        let mut rates = self.delivery_rates.clone();
        rates.sort_unstable();
        rates.get(rates.len() * 95 / 100).copied()
    }

    pub(super) fn peer_window(&self) -> Option<Distribution> {
        self.peer_window.distribution()
    }

    /// Returns the share of the samples in each state of the sender; `None` if no sample has a
    /// state.
    #[allow(clippy::cast_precision_loss, reason = "shares of a number of samples")]
    pub(super) fn states(&self) -> Option<SenderStates> {
        let samples: u64 = self.states.iter().sum();
        let share = |state: State| self.states[state as usize] as f64 / samples as f64;
        (samples > 0).then(|| SenderStates {
            samples,
            buffer_full: share(State::BufferFull),
            out_of_data: share(State::OutOfData),
            window_full: share(State::WindowFull),
            congestion_window_full: share(State::CongestionWindowFull),
            held_back: share(State::HeldBack),
        })
    }
}

/// Returns the reason why the sender does not send at the moment of `reading`; `None` if a value
/// needed for the decision is missing, or if this end receives. `is_in_call` says whether the
/// program is in a call of `write`.
///
/// TCP sends whole segments, so less than a segment of unsent data counts as no unsent data. The
/// peer's window counts as full if it has room for less than a segment, or if nine tenths of it are
/// in flight. The congestion window counts as full if two thirds of it are in flight, because TCP
/// may wait until it can send several segments at once.
fn state(reading: &Reading, is_in_call: bool) -> Option<State> {
    // An end that only receives has an empty send queue, and so looks like a sender that is out of
    // data. A connection that has sent no data therefore has no sender state.
    if reading.data_segments_sent == Some(0) {
        return None;
    }
    let segment = reading.segment?.max(1);
    let (unacknowledged, unsent) = (reading.unacknowledged?, reading.unsent?);
    let in_flight = unacknowledged.saturating_sub(unsent);
    if unsent < segment {
        return Some(if is_in_call { State::BufferFull } else { State::OutOfData });
    }
    let peer_window = reading.peer_window?;
    if in_flight.saturating_add(segment) > peer_window || in_flight >= peer_window / 10 * 9 {
        return Some(State::WindowFull);
    }
    let (in_network, congestion_window) = (reading.in_flight?, reading.congestion_window?);
    if in_network >= congestion_window / 3 * 2 {
        return Some(State::CongestionWindowFull);
    }
    // Both windows have room, but TCP may hold back a small amount of unsent data until the program
    // writes more. A program that is inside `write` cannot write more because the send buffer is
    // full. The buffer is then what limits the sender.
    if is_in_call && unsent < in_flight / 2 {
        return Some(State::BufferFull);
    }
    Some(State::HeldBack)
}

impl Losses {
    /// Counts a loss event if the number of retransmitted segments has grown, unless the latest
    /// event began less than a round-trip time ago.
    fn note(&mut self, reading: &Reading, now: Instant) {
        let Some(retransmitted) = reading.retransmitted else { return };
        let events = self.events.get_or_insert(0);
        if retransmitted <= self.retransmitted {
            return;
        }
        self.retransmitted = retransmitted;
        let round_trip = Duration::from_micros(reading.round_trip.unwrap_or(0));
        let is_same =
            self.last.is_some_and(|last| now.saturating_duration_since(last) < round_trip);
        if !is_same {
            *events += 1;
            self.last = Some(now);
        }
    }
}

impl Sum {
    fn add(&mut self, value: Option<u64>) {
        let Some(value) = value else { return };
        self.sum += u128::from(value);
        self.count += 1;
        self.max = self.max.max(value);
    }

    #[allow(clippy::cast_precision_loss, reason = "a mean, shown with few digits")]
    fn distribution(&self) -> Option<Distribution> {
        (self.count > 0)
            .then(|| Distribution { mean: self.sum as f64 / f64::from(self.count), max: self.max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(unacknowledged: u64, unsent: u64, window: u64, congestion: u64) -> Reading {
        Reading {
            segment: Some(1_000),
            unacknowledged: Some(unacknowledged),
            unsent: Some(unsent),
            in_flight: Some((unacknowledged - unsent) / 1_000),
            peer_window: Some(window),
            congestion_window: Some(congestion),
            ..Reading::default()
        }
    }

    #[test]
    fn the_state_of_a_sender_follows_from_its_queue_and_windows() {
        let large = 1_000_000;
        for (unacknowledged, unsent, window, congestion, in_call, expected) in [
            (50_000, 0, large, 900, true, State::BufferFull),
            (50_000, 999, large, 900, true, State::BufferFull),
            (5_000, 0, large, 900, false, State::OutOfData),
            (80_000, 20_000, 60_500, 900, true, State::WindowFull),
            (9_000, 9_000, 0, 10, true, State::WindowFull),
            (80_000, 70_000, large, 10, true, State::CongestionWindowFull),
            (80_000, 73_000, large, 10, true, State::CongestionWindowFull),
            (80_000, 70_000, large, 900, true, State::HeldBack),
            (80_000, 20_000, large, 900, true, State::BufferFull),
            (80_000, 20_000, large, 900, false, State::HeldBack),
        ] {
            let reading = reading(unacknowledged, unsent, window, congestion);
            assert_eq!(state(&reading, in_call), Some(expected), "{reading:?}");
        }
    }

    #[test]
    fn a_receiving_end_has_no_state() {
        let receiving = Reading { data_segments_sent: Some(0), ..reading(0, 0, 60_000, 10) };
        let sending = Reading { data_segments_sent: Some(1), ..receiving };
        for is_in_call in [false, true] {
            assert_eq!(state(&receiving, is_in_call), None);
            assert_ne!(state(&sending, is_in_call), None);
        }
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let mut losses = Losses::default();
        losses.note(&Reading::default(), Instant::now());
        assert_eq!(losses.events, None, "no TCP counts retransmissions");
        let began = Instant::now();
        for (millis, retransmitted) in [(0, 0), (1, 3), (5, 4), (10, 4), (12, 5), (40, 6)] {
            let (retransmitted, round_trip) = (Some(retransmitted), Some(10_000));
            let reading = Reading { retransmitted, round_trip, ..Reading::default() };
            losses.note(&reading, began + Duration::from_millis(millis));
        }
        assert_eq!(losses.events, Some(3));
    }

    #[test]
    fn the_peak_is_the_rate_that_few_samples_exceed() {
        let mut samples = Samples::default();
        assert_eq!(samples.peak_delivery_rate(), None);
        for rate in (1..=100).rev() {
            samples.add(&Reading { delivery_rate: Some(rate), ..Reading::default() }, true);
        }
        assert_eq!(samples.peak_delivery_rate(), Some(96));
    }

    #[test]
    fn states_are_shares_of_the_samples() {
        let mut samples = Samples::default();
        assert_eq!((samples.states(), samples.queues().unsent), (None, None));
        samples.add(&Reading::default(), true);
        assert_eq!(samples.states(), None, "a reading without values has no state");
        for unsent in [0, 0, 0, 70_000] {
            samples.add(&reading(80_000, unsent, 1_000_000, 10), true);
        }
        let states = samples.states().unwrap();
        assert_eq!((states.samples, states.buffer_full), (4, 0.75));
        assert_eq!(states.congestion_window_full, 0.25);
        let unsent = samples.queues().unsent.unwrap();
        assert_eq!((unsent.mean, unsent.max), (17_500.0, 70_000));
    }
}
