//! Tests of whole transfers in which one segment suffers a fault, such as a loss. Each test repeats
//! the transfer: the first time the fault affects the first segment, then the second, and so on up
//! to the last. Data is sent in both directions, and the faults also affect SYN and FIN.

use crate::{ms, secs};
use linerate_tcp::{Config, Error, Profile, State};
use linerate_testkit::{Connections, End, Fate, Line, Network, pattern};
use linerate_units::{Duration, Rate};
use linerate_wire::{Segment, SeqNum};
use std::cell::Cell;
use std::rc::Rc;

const BYTES: usize = 30_000;

/// The time that the network takes to send four full segments.
const FOUR_SEGMENTS: Duration = Duration::from_micros(500);

/// Returns a network with a round-trip time of 10 ms, which takes 0.12 ms to send a segment.
fn network() -> Network {
    let line = Line { rate: Rate::from_bits_per_second(100_000_000), queue: 1 << 20 };
    Network { line: Some(line), ..Network::clean(ms(5)) }
}

/// The application at one endpoint. It writes `BYTES` bytes, closes its sending direction, and
/// reads to the end of the stream.
#[derive(Default)]
struct Application {
    written: usize,
    read: usize,
    received_end: bool,
}

impl Application {
    fn turn(&mut self, pair: &mut Connections, side: End) {
        if side == End::Server && pair.server.is_none() {
            return;
        }
        let now = pair.now;
        let end = pair.end(side);
        let mut part = [0; 4_096];
        while !self.received_end {
            match end.read(now, &mut part) {
                Ok(0) => self.received_end = true,
                Ok(count) => {
                    let expected = (self.read..self.read + count).map(pattern);
                    assert!(
                        part[..count].iter().copied().eq(expected),
                        "wrong bytes after {}",
                        self.read
                    );
                    self.read += count;
                }
                Err(error) => {
                    assert_eq!(error, Error::WouldBlock);
                    break;
                }
            }
        }
        if self.written < BYTES {
            let part: Vec<u8> = (self.written..BYTES).map(pattern).collect();
            self.written += end.write(now, &part).expect("the direction is open");
        }
        if self.written == BYTES {
            end.shutdown_write(now);
        }
    }
}

/// A fault that affects one of the segments that an endpoint sends.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The segment has this fate, such as a loss or a delay. Its retransmissions are transmitted
    /// without a fault.
    Once(Fate),
    /// The segment is lost, and so is its first retransmission. Further retransmissions arrive.
    LostTwice,
}

/// Applies a fault to the `nth` segment of one endpoint.
struct FaultFilter {
    fault: Fault,
    nth: u32,
    seen: u32,
    /// The sequence number of a segment that was lost, and whose first retransmission must also be
    /// lost; `None` if there is none.
    again: Option<SeqNum>,
    /// Set when the endpoint has sent its `nth` segment, so that the fault has occurred.
    happened: Rc<Cell<bool>>,
}

impl FaultFilter {
    fn decide(&mut self, segment: &Segment<'_>) -> Option<Fate> {
        self.seen += 1;
        if self.seen == self.nth {
            self.happened.set(true);
            self.again = (segment.sequence_length() > 0).then_some(segment.seq);
            return Some(match self.fault {
                Fault::Once(fate) => fate,
                Fault::LostTwice => Fate::Lose,
            });
        }
        let repeated = matches!(self.fault, Fault::LostTwice) && self.again == Some(segment.seq);
        let repeated = repeated && segment.sequence_length() > 0;
        if repeated {
            self.again = None;
        }
        repeated.then_some(Fate::Lose)
    }
}

/// Transfers `BYTES` bytes in both directions at once. The fault affects the `nth` segment of each
/// endpoint in `ends`. Returns the duration of the transfer, and whether the fault occurred.
fn transfer_with(config: &Config, ends: &[End], fault: Fault, nth: u32) -> (Duration, bool) {
    let mut pair = Connections::new(config, config, network(), u64::from(nth));
    let happened = Rc::new(Cell::new(false));
    let judge = || FaultFilter { fault, nth, seen: 0, again: None, happened: Rc::clone(&happened) };
    let mut judges: Vec<_> = ends.iter().map(|&end| (end, judge())).collect();
    pair.set_filter(move |_, side, segment| {
        judges.iter_mut().find(|(end, _)| *end == side)?.1.decide(segment)
    });
    let start = pair.now;
    let (mut client, mut server) = (Application::default(), Application::default());
    while !(client.received_end && server.received_end) {
        client.turn(&mut pair, End::Client);
        server.turn(&mut pair, End::Server);
        assert!(
            pair.step() || client.received_end,
            "nothing happens any more, and bytes are missing"
        );
    }
    let took = pair.now.since(start);
    assert_eq!((client.read, server.read), (BYTES, BYTES));
    pair.run_to_silence();
    for side in [End::Client, End::Server] {
        assert_eq!(
            (pair.end(side).state(), pair.end(side).error()),
            (State::Closed, None),
            "{side:?}"
        );
    }
    (took, happened.get())
}

/// Asserts that a fault makes a transfer at most `time_limit` longer for each endpoint that it
/// affects. Tries the fault for every segment: of the client, of the server, and of both in one
/// transfer.
fn survives(config: &Config, fault: Fault, time_limit: impl Fn(u32) -> Duration) {
    let (clean, _) = transfer_with(config, &[], fault, 0);
    for ends in [&[End::Client][..], &[End::Server], &[End::Client, End::Server]] {
        for nth in 1.. {
            let (took, happened) = transfer_with(config, ends, fault, nth);
            let most = clean + time_limit(nth) * ends.len() as u64;
            assert!(
                took <= most,
                "{fault:?} to segment {nth} of {ends:?} costs {} with {config:?}",
                took - clean
            );
            if !happened {
                assert!(nth > 10, "only {nth} segments were sent");
                break;
            }
        }
    }
}

/// Returns the configurations of a profile with small buffers: one for each combination of SACK and
/// timestamps.
fn variants(profile: Profile) -> impl Iterator<Item = Config> {
    let config = Config {
        send_buffer: (16 << 10).into(),
        receive_buffer: (16 << 10).into(),
        ..profile.config()
    };
    let choices = [(true, true), (true, false), (false, true), (false, false)];
    let choices = choices.into_iter().map(move |(sack, stamps)| Config {
        selective_acks: config.selective_acks && sack,
        timestamps: config.timestamps && stamps,
        ..config
    });
    // The four choices combine SACK and timestamps. A profile without timestamps has no SACK
    // either, so all four would be equal, and one suffices.
    choices.take(if config.timestamps { 4 } else { 1 })
}

/// Returns the longest delay that a fault of the `nth` segment may cause. For each endpoint's first
/// two segments, it includes the timeout of the handshake, which is one second.
fn modern_time_limit(nth: u32) -> Duration {
    if nth <= 2 { ms(1_100) } else { ms(300) }
}

fn old_time_limit(nth: u32) -> Duration {
    if nth <= 2 { secs(7) } else { secs(3) }
}

#[test]
fn a_modern_transfer_survives_the_loss_of_any_one_segment() {
    for config in variants(Profile::Modern) {
        survives(&config, Fault::Once(Fate::Lose), modern_time_limit);
    }
}

/// If a segment and its retransmission are lost, the transfer waits for two timeouts. The second is
/// twice as long as the first.
#[test]
fn a_modern_transfer_survives_the_loss_of_any_one_segment_and_of_its_repetition() {
    for config in variants(Profile::Modern) {
        survives(&config, Fault::LostTwice, |nth| if nth <= 2 { ms(3_200) } else { ms(700) });
    }
}

/// A duplicate of a segment does not delay a transfer, whether it arrives with the original or
/// late.
#[test]
fn a_modern_transfer_survives_the_duplication_of_any_one_segment() {
    for config in variants(Profile::Modern) {
        for late in [Duration::ZERO, FOUR_SEGMENTS, ms(20)] {
            survives(&config, Fault::Once(Fate::Repeat(late)), |_| ms(1));
        }
    }
}

/// One segment is delayed so that up to four later ones overtake it. No timeout occurs. The window
/// may be halved needlessly, however, which makes the transfer some round trips longer.
#[test]
fn a_modern_transfer_survives_the_delay_of_any_one_segment() {
    for config in variants(Profile::Modern) {
        for late in [FOUR_SEGMENTS / 2, FOUR_SEGMENTS] {
            survives(&config, Fault::Once(Fate::Delay(late)), |_| late + ms(45));
        }
    }
}

#[test]
fn a_transfer_of_1988_survives_a_fault_of_any_one_segment() {
    old_transfers(Profile::BsdTahoe);
}

#[test]
fn a_transfer_of_1990_survives_a_fault_of_any_one_segment() {
    old_transfers(Profile::BsdReno);
}

fn old_transfers(profile: Profile) {
    for config in variants(profile) {
        survives(&config, Fault::Once(Fate::Lose), old_time_limit);
        survives(&config, Fault::LostTwice, |nth| old_time_limit(nth) * 3);
        survives(&config, Fault::Once(Fate::Repeat(FOUR_SEGMENTS)), |_| secs(1));
        survives(&config, Fault::Once(Fate::Delay(FOUR_SEGMENTS)), |_| secs(1));
    }
}
