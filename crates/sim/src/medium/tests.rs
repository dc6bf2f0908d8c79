//! Tests of the times at which frames leave and arrive on cables, serial lines and switches, and of
//! the counters.

use super::*;
use crate::event_queue::EventQueue;
use crate::parameter::Settings;

/// A tenth of a microsecond in picoseconds: the duration of a bit at 10 Mb/s.
const TENTH: u64 = 100_000;

/// A medium under test, with its event queue.
struct Wire {
    medium: Medium,
    queue: EventQueue<MediumEvent>,
    frames: Frames,
    actions: Vec<MediumAction>,
    /// Signals that NICs observed, with their times in tenths of a microsecond.
    seen: Vec<(u64, Seen)>,
    /// Number of bytes to which every frame is truncated when it begins to leave; `None` for whole
    /// frames.
    cut: Option<usize>,
}

/// A signal that NICs observe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Sending(Port),
    Sent(Port),
    Begin(Port),
    Fragment(Port),
    Frame(Port),
    Damaged(Port),
}

impl Wire {
    fn new(medium: Medium) -> Self {
        let (queue, frames) = (EventQueue::new(), Frames::new(1_514));
        Self { medium, queue, frames, actions: Vec::new(), seen: Vec::new(), cut: None }
    }

    /// Processes all events up to the time `until`, in tenths of a microsecond.
    fn pass_time(&mut self, until: u64) {
        while let Some((at, event)) = self.queue.pop() {
            if at.as_picos() > until.saturating_mul(TENTH) {
                return self.queue.push(at, event);
            }
            self.medium.handle_event(at, event, &mut self.frames, &mut self.actions);
            self.medium.check();
            self.act(at);
        }
    }

    /// Requests to send a frame with these bytes from `port`, at the time `at` in tenths of a
    /// microsecond.
    fn send(&mut self, at: u64, port: Port, bytes: &[u8], to: Audience) {
        self.pass_time(at);
        let (now, frame) = (Tick::from_picos(at * TENTH), self.frames.take());
        self.frames[frame].room()[..bytes.len()].copy_from_slice(bytes);
        self.frames[frame].set_length(bytes.len());
        self.medium.handle_request(now, port, frame, to, &self.frames, &mut self.actions);
        self.act(now);
    }

    fn act(&mut self, now: Tick) {
        let mut actions = std::mem::take(&mut self.actions)
            .into_iter()
            .collect::<std::collections::VecDeque<_>>();
        while let Some(action) = actions.pop_front() {
            let (at, seen) = match action {
                MediumAction::Later { at, event } => {
                    self.queue.push(at, event);
                    continue;
                }
                MediumAction::Sending { port, frame } => {
                    if self.cut.is_some() {
                        self.frames[frame].truncate(self.cut);
                        self.medium.handle_truncation(
                            now,
                            port,
                            frame,
                            &self.frames,
                            &mut self.actions,
                        );
                        actions.extend(self.actions.drain(..));
                    }
                    (now, Seen::Sending(port))
                }
                MediumAction::Sent { port, frame } => {
                    self.frames.release(frame);
                    (now, Seen::Sent(port))
                }
                MediumAction::Arriving { port, at } => (at, Seen::Begin(port)),
                MediumAction::Fragment { port, at } => (at, Seen::Fragment(port)),
                MediumAction::Arrived { port, at, intact: true, .. } => (at, Seen::Frame(port)),
                MediumAction::Arrived { port, at, intact: false, .. } => (at, Seen::Damaged(port)),
                MediumAction::Collided { .. } | MediumAction::GivenUp { .. } => {
                    panic!("{action:?}")
                }
            };
            self.seen.push((at.as_picos() / TENTH, seen));
        }
    }

    /// Processes the remaining events. Returns the observations in the order of time.
    fn finish(mut self) -> (Vec<(u64, Seen)>, MediumStatistics) {
        self.pass_time(u64::MAX);
        assert_eq!(self.frames.held(), 0, "all frames are released");
        self.seen.sort_by_key(|&(at, _)| at);
        (self.seen, self.medium.statistics())
    }
}

/// Returns the settings of a medium file: `words` as text, `numbers` with name, value and unit.
fn settings(words: &str, numbers: &[(&str, f64, &str)]) -> Settings {
    let lines = numbers.iter().map(|(name, value, unit)| {
        format!(
            "{name} = {{ value = {value:?}, unit = \"{unit}\", range = [0, 1e9], source = \"a \
             test\" }}\n"
        )
    });
    Settings::parse("a test", &format!("{words}\n{}", lines.collect::<String>()), "").unwrap()
}

/// Creates a full-duplex cable of 10 Mb/s with a propagation time of 5 us. `impaired` has the
/// percentages of frames to impair, by the names `loss`, `corruption` and `reorder`.
fn cable(impaired: &[(&str, f64)]) -> Wire {
    let share = |name| {
        impaired.iter().find(|(impaired, _)| *impaired == name).map_or(0.0, |&(_, share)| share)
    };
    let numbers = [
        ("rate", 10.0, "Mb/s"),
        ("gap", 96.0, "bit"),
        ("delay", 5.0, "us"),
        ("loss", share("loss"), "%"),
        ("corruption", share("corruption"), "%"),
        ("reorder", share("reorder"), "%"),
        ("reorder_delay", 300.0, "us"),
    ];
    let parameters = DuplexParameters::read(&settings("", &numbers).root()).unwrap();
    Wire::new(Medium::Duplex(Duplex::new(parameters, 1)))
}

/// Creates a switch with ports of 10 Mb/s and cables with a propagation time of 5 us.
fn switch(ports: usize) -> Wire {
    let (rate, limit) = (("rate", 10.0, "Mb/s"), ("queue.limit", 2.0, "frames"));
    let numbers =
        [rate, ("gap", 96.0, "bit"), ("delay", 5.0, "us"), limit, ("queue.marks", 0.0, "switch")];
    let settings = settings("queue.discipline = \"tail-drop\"", &numbers);
    let parameters = SwitchParameters::read(&settings.root()).unwrap();
    let cables = vec![parameters.cable; ports];
    Wire::new(Medium::Switch(Switch::new(&parameters, &cables, 1)))
}

/// The bytes of a frame without its check sequence. With the check sequence, the frame has 1,000
/// bytes. With its preamble as well, it takes 806.4 us at 10 Mb/s.
const FRAME: [u8; 996] = [0; 996];

#[test]
fn a_cable_carries_frames_in_both_directions_at_once() {
    let mut wire = cable(&[]);
    wire.send(0, 0, &FRAME, Audience::One(1));
    wire.send(100, 1, &FRAME[..10], Audience::One(0));
    wire.send(8_064, 0, &FRAME, Audience::One(1));
    let (seen, counted) = wire.finish();
    let expected = [
        (0, Seen::Sending(0)),
        (100, Seen::Sending(1)),
        (114, Seen::Begin(1)),
        (214, Seen::Begin(0)),
        (100 + 576, Seen::Sent(1)),
        (150 + 576, Seen::Frame(0)),
        (8_064, Seen::Sent(0)),
        (8_114, Seen::Frame(1)),
        (8_160, Seen::Sending(0)),
        (8_274, Seen::Begin(1)),
        (16_224, Seen::Sent(0)),
        (16_274, Seen::Frame(1)),
    ];
    assert_eq!(seen, expected);
    assert_eq!((counted.frames, counted.bytes, counted.impaired), (3, 2_064, 0));
    assert_eq!(counted.busy, Span::from_picos((2 * 8_064 + 576) * TENTH));
}

#[test]
fn a_truncated_frame_ends_after_its_last_byte() {
    let shorter = [
        (0, Seen::Sending(0)),
        (4_064, Seen::Sent(0)),
        (4_160, Seen::Sending(0)),
        (8_224, Seen::Sent(0)),
    ];
    for mut wire in [cable(&[]), switch(2)] {
        wire.cut = Some(496);
        wire.send(0, 0, &FRAME, Audience::One(1));
        wire.send(4_064, 0, &FRAME, Audience::One(1));
        let is_switch = matches!(wire.medium, Medium::Switch(_));
        let (seen, counted) = wire.finish();
        let left: Vec<(u64, Seen)> = seen
            .iter()
            .copied()
            .filter(|(_, seen)| matches!(seen, Seen::Sending(_) | Seen::Sent(_)))
            .collect();
        assert_eq!(left, shorter);
        assert_eq!((counted.frames, counted.bytes), (2, 1_000));
        assert_eq!(counted.busy, Span::from_picos(2 * 4_064 * TENTH));
        assert_eq!(
            counted.discarded,
            if is_switch { 2 } else { 0 },
            "a switch verifies the check sequence"
        );
        assert_eq!(seen.len(), if is_switch { 4 } else { 8 });
    }
}

#[test]
fn an_impaired_frame_is_counted_once_and_a_lost_one_ends_as_a_fragment() {
    let received = |impaired: &[(&str, f64)]| {
        let mut wire = cable(impaired);
        wire.send(0, 0, &FRAME, Audience::One(1));
        let (seen, counted) = wire.finish();
        (
            seen.into_iter()
                .filter(|&(_, seen)| !matches!(seen, Seen::Sending(_) | Seen::Sent(_)))
                .collect::<Vec<_>>(),
            counted.impaired,
        )
    };
    let at = |late: u64, end: Seen| (vec![(114 + late, Seen::Begin(1)), (8_114 + late, end)], 1);
    assert_eq!(received(&[("loss", 100.0)]), at(0, Seen::Fragment(1)));
    assert_eq!(received(&[("corruption", 100.0)]), at(0, Seen::Damaged(1)));
    assert_eq!(received(&[("reorder", 100.0)]), at(3_000, Seen::Frame(1)));
    assert_eq!(received(&[("corruption", 100.0), ("reorder", 100.0)]), at(3_000, Seen::Damaged(1)));
}

#[test]
fn the_losses_of_both_directions_are_independent() {
    let mut wire = cable(&[("loss", 50.0)]);
    for number in 0..64 {
        for port in [0, 1] {
            wire.send(number * 10_000, port, &FRAME, Audience::One(1 - port));
        }
    }
    let (seen, counted) = wire.finish();
    let lost = |port| {
        let end = |&(at, seen): &(u64, Seen)| match seen {
            Seen::Fragment(to) if to == port => Some((at, true)),
            Seen::Frame(to) if to == port => Some((at, false)),
            _ => None,
        };
        seen.iter().filter_map(end).collect::<Vec<_>>()
    };
    assert_ne!(lost(0), lost(1));
    let all = [lost(0), lost(1)].concat();
    assert_eq!(all.len(), 128);
    assert_eq!(counted.impaired, all.iter().filter(|(_, lost)| *lost).count() as u64);
}

#[test]
fn a_byte_takes_ten_bits_and_an_escaped_one_twenty() {
    let numbers = [
        ("rate", 100.0, "kb/s"),
        ("bits", 10.0, "bit"),
        ("delay", 50.0, "us"),
        ("compression", 0.0, "switch"),
    ];
    let parameters = SerialParameters::read(&settings("", &numbers).root()).unwrap();
    let mut wire = Wire::new(Medium::Serial(Box::new(Serial::new(parameters))));
    // The first packet has 9 bytes on the line: each of the bytes END (0o300) and ESC (0o333) is
    // sent as two, and an END precedes and follows the packet (RFC 1055). A byte takes 100 us.
    wire.send(0, 0, &[1, 2, 0o300, 0o333, 5], Audience::One(1));
    wire.send(20, 1, &[1], Audience::One(0));
    let (seen, counted) = wire.finish();
    let expected = [
        (0, Seen::Sending(0)),
        (20, Seen::Sending(1)),
        (1_500, Seen::Begin(1)),
        (1_520, Seen::Begin(0)),
        (3_020, Seen::Sent(1)),
        (3_520, Seen::Frame(0)),
        (9_000, Seen::Sent(0)),
        (9_500, Seen::Frame(1)),
    ];
    assert_eq!(seen, expected);
    assert_eq!(
        (counted.frames, counted.bytes, counted.busy),
        (2, 6, Span::from_picos(12_000 * TENTH))
    );
}

#[test]
fn a_switch_stores_and_forwards_with_a_gap_between_frames() {
    let mut wire = switch(3);
    wire.send(0, 0, &FRAME, Audience::One(2));
    wire.send(1_000, 1, &FRAME, Audience::One(2));
    wire.send(8_070, 0, &FRAME, Audience::None);
    let (seen, counted) = wire.finish();
    let expected = [
        (0, Seen::Sending(0)),
        (1_000, Seen::Sending(1)),
        (8_064, Seen::Sent(0)),
        (8_160, Seen::Sending(0)),
        // The switch begins to forward the first frame when it has received all of it, after 811.4
        // us. The times are in tenths of a microsecond.
        (8_114 + 114, Seen::Begin(2)),
        (9_064, Seen::Sent(1)),
        (16_224, Seen::Sent(0)),
        (8_114 + 8_114, Seen::Frame(2)),
        // The switch has received the second frame after 911.4 us. At that time its outgoing cable
        // still carries the first frame. So the second one waits until that frame has ended and the
        // gap has passed.
        (16_274 + 114, Seen::Begin(2)),
        (16_274 + 8_114, Seen::Frame(2)),
    ];
    assert_eq!(seen, expected);
    assert_eq!((counted.frames, counted.bytes, counted.passed), (3, 3_000, 2));
    assert_eq!(counted.busy, Span::from_picos(3 * 8_064 * TENTH));
    assert_eq!(
        (counted.waited, counted.longest_wait),
        (Span::from_picos(7_160 * TENTH), Span::from_picos(7_160 * TENTH))
    );
}

#[test]
fn the_longest_queueing_delay_is_kept() {
    let mut wire = switch(4);
    for (begins, port) in [(0, 0), (1_000, 1), (12_000, 3)] {
        wire.send(begins, port, &FRAME, Audience::One(2));
    }
    let (_, counted) = wire.finish();
    // The switch has received the whole second frame at 911.4 us. This frame waits until the
    // outgoing cable becomes idle at 1,627.4 us. The third frame arrives at 2,011.4 us, and waits
    // until 2,443.4 us.
    assert_eq!(counted.longest_wait, Span::from_picos(7_160 * TENTH));
    assert_eq!(counted.waited, Span::from_picos((7_160 + 4_320) * TENTH));
}

#[test]
fn a_switch_floods_a_broadcast_and_drops_from_full_queues() {
    let mut wire = switch(5);
    wire.send(0, 1, &FRAME, Audience::All);
    for port in [0, 2, 3, 4] {
        wire.send(100, port, &FRAME, Audience::One(1));
    }
    let (seen, counted) = wire.finish();
    let received = |port| seen.iter().filter(|&&(_, seen)| seen == Seen::Frame(port)).count();
    assert_eq!([0, 1, 2, 3, 4].map(received), [1, 3, 1, 1, 1]);
    assert_eq!(counted.dropped, 1, "of four frames one is being sent and two are queued");
}

#[test]
fn combined_counters_sum_drops_and_keep_the_largest_delay() {
    let millis = |count: u64| Span::from_picos(count * 1_000_000_000);
    let egress = |passed, waited, longest, dropped, marked| EgressStatistics {
        passed,
        waited: millis(waited),
        longest_wait: millis(longest),
        dropped,
        marked,
    };
    let all = EgressStatistics::of_all(
        [egress(9, 1, 1, 2, 3), egress(3, 20, 8, 4, 5), egress(90, 10, 9, 6, 7)].into_iter(),
    );
    assert_eq!(all, egress(3, 20, 9, 12, 15));
}
