//! Fuzz target: segments to a connection from a peer that often follows the protocol. An
//! application makes any call at any time, and the clock jumps.
//!
//! The connection has a twin without header prediction, which gets the same input. After every
//! step, the connection and its twin must be in equal states. Each byte of the data in both
//! directions is determined by its stream position. So every byte read or sent can be checked,
//! however segments overlap.

mod application;
mod peer;

use super::choices::Choices;
use crate::script::pattern;
use linerate_tcp::{
    Config, CongestionName, Connection, EcnRule, FastOpenOffer, ListenVerdict, Offload, PacingRule,
    Path, Profile, Seeds, judge_listen,
};
use linerate_units::{Duration, Instant};
use linerate_wire::{FastOpenCookie, Segment, SeqNum, Sum, TcpFlags};
use peer::{syn_options, write};

const PATH: Path = Path::ipv4(1_500);

/// Maximum number of segments that the connection may send at one time. It suffices for two full
/// send buffers of the largest size, so a connection that sends more is in an endless loop.
const MOST_SEGMENTS: usize = 8_000;

/// Runs the test case that `bytes` encode.
///
/// # Panics
/// If an invariant is violated, or the twin without header prediction behaves differently.
pub fn segments_into_a_connection(bytes: &[u8]) {
    let Some(mut case) = TestCase::begin(Choices::new(bytes)) else { return };
    while !case.choices.is_empty() {
        case.step();
    }
}

/// A connection, its twin without header prediction, and the state of the peer.
struct TestCase<'a> {
    choices: Choices<'a>,
    now: Instant,
    connection: Connection,
    twin: Connection,
    iss: SeqNum,
    irs: SeqNum,
    /// Acknowledgement number of the most recent segment that the connection has sent.
    received_ack: SeqNum,
    received_end: SeqNum,
    /// Highest valid acknowledgement number that the peer has sent. A number is valid if it does
    /// not exceed the end of what the connection had sent at that time.
    sent_ack: SeqNum,
    /// Whether the peer uses timestamps.
    stamps: bool,
    received_stamp: u32,
    written: usize,
    read: usize,
}

impl<'a> TestCase<'a> {
    fn begin(mut choices: Choices<'a>) -> Option<Self> {
        let config = choose_config(&mut choices);
        let now = Instant::ZERO + Duration::from_secs(u64::from(choices.byte()) * 1_000);
        let iss = SeqNum::new(choices.of(&[0, 1_000, u32::MAX - 2_000, u32::MAX >> 1]));
        let irs = SeqNum::new(choices.of(&[0, 5_000, u32::MAX - 3_000, u32::MAX >> 1]));
        let seeds =
            Seeds { initial_sequence: iss, timestamp_offset: choices.of(&[0, u32::MAX - 500]) };
        let connection = if choices.yes() {
            let mut connection = Connection::connect(config, PATH, seeds, now);
            // Two choices are derived from values that were already read from the input: whether
            // the client uses Fast Open, and whether it has a cookie. Reading another byte for them
            // would change the meaning of all test cases in the corpus.
            if seeds.timestamp_offset > 0 {
                let cookie = FastOpenCookie::new(&[1; 8]).filter(|_| iss.number() != 0);
                connection
                    .driver()
                    .try_fast_open(cookie.map_or(FastOpenOffer::Request, |cookie| {
                        FastOpenOffer::Data { cookie, mss: Some(1_460) }
                    }));
            }
            connection
        } else {
            let mut bytes = [0; 100];
            let length =
                write(TcpFlags::SYN, irs, SeqNum::new(0), &mut choices, &syn_options(), &mut bytes);
            let at = length - Segment::parse(&bytes[..length]).ok()?.payload.len();
            bytes[at..length]
                .iter_mut()
                .enumerate()
                .for_each(|(index, byte)| *byte = pattern(index));
            let syn = Segment::parse(&bytes[..length]).ok()?;
            if judge_listen(&syn) != ListenVerdict::Open {
                return None;
            }
            let mut connection = Connection::accept(config, PATH, seeds, &syn, now);
            if syn.payload.len() % 4 == 1 {
                connection.driver().open_fast(&syn);
            }
            connection
        };
        let mut twin = connection.clone();
        twin.set_header_prediction(false);
        let case = Self {
            choices,
            now,
            connection,
            twin,
            iss,
            irs,
            received_ack: irs + 1,
            received_end: iss + 1,
            sent_ack: iss + 1,
            stamps: true,
            received_stamp: 0,
            written: 0,
            read: 0,
        };
        case.judge();
        Some(case)
    }

    fn step(&mut self) {
        let kind = self.choices.byte();
        match kind & 15 {
            0..=3 => self.likely_segment(),
            4 => self.data_in_order(),
            5 => self.acknowledgement(),
            6 => self.garbage(),
            7 | 8 => self.write(),
            9 | 10 => self.read(),
            11 => self.application(),
            12 => self.pass_time(),
            13 => self.next_timer(),
            14 => self.report(),
            _ => self.poll_events(),
        }
        self.judge();
        if kind & 0x80 == 0 {
            self.flush();
        }
    }

    /// Checks the invariants of the connection and of its twin, and that their states are equal.
    fn judge(&self) {
        self.connection.check();
        self.twin.check();
        self.connection.assert_agrees_with(&mut self.twin.clone());
    }

    /// Applies `act` to the connection and to its twin, and checks that both calls return equal
    /// results.
    fn both<T: PartialEq + core::fmt::Debug>(
        &mut self,
        act: impl Fn(&mut Connection, Instant) -> T,
    ) -> T {
        let answer = act(&mut self.connection, self.now);
        assert_eq!(answer, act(&mut self.twin, self.now));
        answer
    }

    /// Fetches all segments that the connection and its twin can send now, and checks that they are
    /// equal and that their data are correct.
    fn flush(&mut self) {
        let (mut frame, mut twin_frame) = ([0; 1_480], [0; 1_480]);
        for count in 0.. {
            assert!(count < MOST_SEGMENTS, "never silent");
            let sent = self
                .connection
                .driver()
                .poll_transmit(self.now, Offload::None, &mut frame)
                .map(|sent| (sent.length, sent.sum));
            let twin = self.twin.driver().poll_transmit(self.now, Offload::None, &mut twin_frame);
            assert_eq!(sent.map(|sent| sent.0), twin.map(|sent| sent.length));
            let Some((length, sum)) = sent else { break };
            assert_eq!(frame[..length], twin_frame[..length]);
            assert_eq!(sum.finish(), Sum::of(&frame[..length]).finish());
            self.note_sent(&Segment::parse(&frame[..length]).expect("what is sent can be parsed"));
        }
        self.judge();
    }

    fn note_sent(&mut self, segment: &Segment<'_>) {
        let flags = segment.flags();
        let first = first_position(flags, segment.seq - self.iss);
        for (index, &byte) in segment.payload.iter().enumerate() {
            assert_eq!(byte, pattern(first + index), "byte {} was sent wrong", first + index);
        }
        assert!(
            segment.payload.is_empty() || first + segment.payload.len() <= self.written,
            "never written"
        );
        if flags.contains(TcpFlags::RST) {
            return;
        }
        if flags.contains(TcpFlags::ACK) {
            self.received_ack = segment.ack;
        }
        self.received_end = self.received_end.later(segment.seq + segment.sequence_length());
        if let Some(stamps) = segment.options().timestamps {
            self.received_stamp = stamps.value;
        }
    }

    fn pass_time(&mut self) {
        let until = self.now + self.choices.span();
        for _ in 0..64 {
            if self.connection.poll_timeout() > until {
                break;
            }
            self.fire();
        }
        self.now = self.now.max(until);
        // At this point, up to 64 timers have been handled exactly when they were due. If further
        // timers are due, this call handles them late, which must not violate an invariant.
        self.both(|connection, now| connection.driver().handle_timeout(now));
    }

    fn next_timer(&mut self) {
        if self.connection.poll_timeout() != Instant::NEVER {
            self.fire();
        }
    }

    fn fire(&mut self) {
        let due = self.both(|connection, _| connection.poll_timeout());
        self.now = self.now.max(due);
        self.both(|connection, now| connection.driver().handle_timeout(now));
        assert!(self.connection.poll_timeout() > self.now, "a timer expires for ever");
        self.flush();
    }
}

/// Returns the stream position at which the data of a segment begin. `relative` is the segment's
/// sequence number minus that of the sender's SYN. The SYN takes one number, so the first byte of
/// the stream has the relative number 1.
fn first_position(flags: TcpFlags, relative: u32) -> usize {
    relative.wrapping_sub(u32::from(!flags.contains(TcpFlags::SYN))) as usize
}

fn choose_config(choices: &mut Choices<'_>) -> Config {
    let config = choices.of(&Profile::ALL).config();
    let switches = choices.byte();
    Config {
        send_buffer: choices.of(&[1, 500, 1_448, 5_000, 65_536]).into(),
        receive_buffer: choices.of(&[1, 500, 1_448, 5_000, 65_535, 100_000]).into(),
        congestion: choices.of(&CongestionName::ALL),
        no_delay: switches & 1 != 0,
        timestamps: switches & 2 != 0,
        window_scaling: switches & 4 != 0,
        selective_acks: switches & 8 != 0,
        reassembly_ranges: if switches & 16 != 0 { 3 } else { 64 },
        ecn: if switches & 64 != 0 { EcnRule::Request } else { config.ecn },
        accurate_ecn: if switches & 80 == 80 { EcnRule::Request } else { EcnRule::Off },
        pacing: if switches & 128 != 0 { PacingRule::On } else { config.pacing },
        linger: (switches & 32 != 0).then(|| Duration::from_secs(3)),
        ..config
    }
}
