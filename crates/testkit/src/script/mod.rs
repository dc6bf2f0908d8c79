//! One connection and a peer whose every segment the test writes, in virtual time.
//!
//! In a script, `send` is the peer's segment, `expect` the connection's answer, and `pass_time` the
//! time between them. Segments are written in the notation of `tcpdump`, see [`Notation`]; both
//! ends count from their SYN, which is number zero. Data is the [`pattern`] of its position, so
//! every byte of every segment is checked without being written down.
//!
//! Every segment that arrives is also given to a twin with header prediction switched off, which
//! must reach an equal state. The invariants of the connection are checked after every step.

mod notation;

pub use notation::Notation;

use crate::arrival::arrive;
use crate::connections::poll_with_twin;
use linerate_tcp::{
    Config, Connection, Disposition, Error, Event, ListenVerdict, Path, Seeds, State, judge_listen,
};
use linerate_units::{Duration, Instant};
use linerate_wire::{Ecn, Segment, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use std::collections::VecDeque;
use std::num::NonZeroU16;

/// Initial sequence number of the connection: close to the wrap-around, so that every script
/// crosses it.
const ISS: SeqNum = SeqNum::new(u32::MAX - 300);
/// Initial sequence number of the peer.
const PEER_ISS: SeqNum = SeqNum::new(u32::MAX - 500);
/// Random offset of the connection's timestamps.
const TIMESTAMP_OFFSET: u32 = 1_000_000;

/// Returns the byte at a position of a stream. Neighbouring bytes, packets and buffers all differ.
#[must_use]
pub fn pattern(position: usize) -> u8 {
    (position as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

/// A segment that the connection has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Time at which it was sent.
    pub at: Instant,
    /// The ECN codepoint of its packet.
    pub ecn: Ecn,
    /// The content of the segment; the sequence numbers of both ends are counted from their SYNs.
    pub says: Notation,
}

/// A connection, and a peer played by the test.
#[derive(Debug)]
pub struct Script {
    /// The current virtual time.
    pub now: Instant,
    /// The connection under test.
    pub connection: Connection,
    /// Whether the peer's segments carry timestamps: the script's clock in milliseconds.
    peer_stamps: bool,
    /// The last TSval received from the connection.
    received_stamp: u32,
    sent: VecDeque<Sent>,
    written: usize,
    read: usize,
}

impl Script {
    /// Starts an active open; the first segment to expect is its SYN.
    #[must_use]
    pub fn connect(config: &Config) -> Self {
        Self::with_path(config, Path::ipv4(1_500))
    }

    /// Starts an active open over the given path.
    #[must_use]
    pub fn with_path(config: &Config, path: Path) -> Self {
        let now = Instant::ZERO + Duration::from_secs(1_000);
        Self::of(Connection::connect(config, path, seeds(), now), now)
    }

    /// Starts a passive open by the peer's `syn`; the first segment to expect is the SYN-ACK.
    ///
    /// # Panics
    /// If a listener would not open a connection for `syn`.
    #[must_use]
    pub fn accept(config: &Config, syn: &str) -> Self {
        let now = Instant::ZERO + Duration::from_secs(1_000);
        let path = Path::ipv4(1_500);
        let bytes = bytes_of(&Notation::parse(syn));
        let segment = Segment::parse(&bytes).expect("a segment");
        assert_eq!(judge_listen(&segment), ListenVerdict::Open, "no listener opens for {syn}");
        let mut script = Self::of(Connection::accept(config, path, seeds(), &segment, now), now);
        script.peer_stamps = segment.options().timestamps.is_some();
        script
    }

    /// Starts a passive open by a `syn` with a valid Fast Open cookie (RFC 7413): its data is
    /// accepted before the handshake completes.
    ///
    /// # Panics
    /// If a listener would not open a connection for `syn`.
    #[must_use]
    pub fn accept_fast(config: &Config, syn: &str) -> Self {
        let mut script = Self::accept(config, syn);
        let bytes = bytes_of(&Notation::parse(syn));
        script.connection.driver().open_fast(&Segment::parse(&bytes).expect("a segment"));
        script.connection.check();
        script
    }

    /// Performs an active open that `syn_ack` answers, up to the connection's acknowledgement of
    /// it.
    ///
    /// # Panics
    /// If the handshake fails.
    #[must_use]
    pub fn established(config: &Config, syn_ack: &str) -> Self {
        let mut script = Self::connect(config);
        script.expect("S 0:0(0)");
        script.send(syn_ack);
        script.expect(". 1:1(0) ack 1");
        assert_eq!(script.events(), [Event::Connected, Event::Writable]);
        assert_eq!(script.connection.state(), State::Established);
        script
    }

    fn of(connection: Connection, now: Instant) -> Self {
        connection.check();
        Self {
            now,
            connection,
            peer_stamps: false,
            received_stamp: 0,
            sent: VecDeque::new(),
            written: 0,
            read: 0,
        }
    }

    /// Delivers a segment of the peer's.
    #[track_caller]
    pub fn send(&mut self, text: &str) {
        let _ = self.judge(text);
    }

    /// Delivers a segment of the peer's that a router has marked (CE).
    #[track_caller]
    pub fn send_marked(&mut self, text: &str) {
        self.send_bearing(Ecn::Ce, text);
    }

    /// Delivers a segment of the peer's in a packet with the codepoint `ecn`.
    #[track_caller]
    pub fn send_bearing(&mut self, ecn: Ecn, text: &str) {
        let _ = self.judge_bearing(ecn, text);
    }

    /// Delivers a segment of the peer's, and returns the connection's disposition.
    #[track_caller]
    pub fn judge(&mut self, text: &str) -> Disposition {
        self.judge_bearing(Ecn::NotEct, text)
    }

    /// Delivers a segment of the peer's in a packet with the codepoint `ecn`, and returns the
    /// connection's disposition.
    #[track_caller]
    pub fn judge_bearing(&mut self, ecn: Ecn, text: &str) -> Disposition {
        self.flush();
        self.deliver(text, ecn, None)
    }

    /// Delivers a segment into which a link (GRO) has joined segments of `size` bytes each; the
    /// last may be shorter.
    #[track_caller]
    pub fn send_joined(&mut self, text: &str, size: u16) -> Disposition {
        self.send_joined_bearing(Ecn::NotEct, text, size)
    }

    /// Delivers a joined segment whose packets all had the codepoint `ecn`.
    #[track_caller]
    pub fn send_joined_bearing(&mut self, ecn: Ecn, text: &str, size: u16) -> Disposition {
        self.flush();
        self.deliver(text, ecn, NonZeroU16::new(size))
    }

    /// Delivers segments of the peer's without letting the connection send between them.
    #[track_caller]
    pub fn send_together(&mut self, texts: &[&str]) {
        self.flush();
        for text in texts {
            let _ = self.deliver(text, Ecn::NotEct, None);
        }
    }

    #[track_caller]
    fn deliver(&mut self, text: &str, ecn: Ecn, joined: Option<NonZeroU16>) -> Disposition {
        let bytes = self.bytes_of(text);
        self.arrive(&bytes, ecn, joined)
    }

    /// Returns a segment of the peer's as bytes, for a test that delivers it by another method.
    #[track_caller]
    pub fn bytes_of(&mut self, text: &str) -> Vec<u8> {
        let mut says = Notation::parse(text);
        if says.options.timestamps.is_some() {
            self.peer_stamps = true;
        } else if self.peer_stamps && !says.bare {
            says.options.timestamps =
                Some(Timestamps { value: self.clock(), echo: self.received_stamp });
        }
        bytes_of(&says)
    }

    /// Returns the current timestamp of the peer.
    #[must_use]
    pub fn clock(&self) -> u32 {
        low_word(self.now.as_millis())
    }

    /// Returns the connection's timestamp at `at`.
    #[must_use]
    pub fn stamp_at(&self, at: Instant) -> u32 {
        low_word(at.as_millis()).wrapping_add(TIMESTAMP_OFFSET)
    }

    fn arrive(&mut self, bytes: &[u8], ecn: Ecn, joined: Option<NonZeroU16>) -> Disposition {
        let segment = Segment { joined, ..Segment::parse(bytes).expect("a segment") };
        let mut twin = self.connection.clone();
        twin.set_header_prediction(false);
        let now = self.now;
        let disposition = arrive(&mut self.connection, &mut twin, |connection| {
            connection.driver().handle_segment_with(now, &segment, ecn, None)
        });
        self.connection.assert_agrees_with(&mut twin);
        disposition
    }

    /// Checks that the next segment sent by now is `text`.
    ///
    /// # Panics
    /// If it is another segment, or there is none.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> Sent {
        self.flush();
        let Some(sent) = self.sent.pop_front() else {
            panic!("nothing was sent, where {text} was expected")
        };
        Notation::parse(text).assert_matches(&sent.says, text);
        sent
    }

    /// Takes the next segment sent by now, without checking it.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn take_one(&mut self) -> Sent {
        self.flush();
        let Some(sent) = self.sent.pop_front() else { panic!("nothing was sent") };
        sent
    }

    /// Checks that the connection's next segment is `text`, sent exactly `span` from now, and lets
    /// that time pass.
    ///
    /// # Panics
    /// If it is another segment, or sent at another time, or there is none.
    #[track_caller]
    pub fn expect_after(&mut self, span: Duration, text: &str) -> Sent {
        let due = self.now + span;
        self.flush();
        while self.sent.is_empty() && self.next_moment() <= due {
            self.fire();
        }
        let Some(sent) = self.sent.front() else {
            panic!("nothing was sent within {span}, where {text} was expected")
        };
        assert_eq!(sent.at, due, "{} was sent {} early", sent.says, due.since(sent.at));
        self.now = due;
        self.expect(text)
    }

    /// Checks that every segment sent by now was expected.
    ///
    /// # Panics
    /// If one was not.
    #[track_caller]
    pub fn expect_nothing(&mut self) {
        self.flush();
        if let Some(sent) = self.sent.front() {
            panic!("{} was sent, where nothing was expected", sent.says);
        }
    }

    /// Lets `span` pass, and checks that nothing is sent.
    ///
    /// # Panics
    /// If a segment is sent.
    #[track_caller]
    pub fn expect_silence(&mut self, span: Duration) {
        self.pass_time(span);
        self.expect_nothing();
    }

    /// Lets `span` pass. Segments sent meanwhile are queued for `expect`.
    pub fn pass_time(&mut self, span: Duration) {
        let until = self.now + span;
        self.flush();
        while self.next_moment() <= until {
            self.fire();
        }
        self.now = until;
    }

    /// Takes all segments that were sent and not yet expected.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        self.flush();
        self.sent.drain(..).collect()
    }

    /// Writes the next `count` bytes of the pattern.
    ///
    /// # Panics
    /// If the connection does not take them all.
    #[track_caller]
    pub fn write(&mut self, count: usize) {
        let taken = self.try_write(count);
        assert_eq!(taken, Ok(count), "the send buffer has no room");
    }

    /// Offers the next `count` bytes of the pattern, and returns how many were taken.
    ///
    /// # Errors
    /// Those of [`Connection::write`].
    pub fn try_write(&mut self, count: usize) -> Result<usize, Error> {
        let data: Vec<u8> = (self.written..self.written + count).map(pattern).collect();
        let taken = self.connection.write(self.now, &data)?;
        self.written += taken;
        self.connection.check();
        Ok(taken)
    }

    /// Writes the next `count` bytes of the pattern, the last of them urgent.
    ///
    /// # Panics
    /// If the connection does not take them all.
    pub fn write_urgent(&mut self, count: usize) {
        let data: Vec<u8> = (self.written..self.written + count).map(pattern).collect();
        assert_eq!(self.connection.write_urgent(self.now, &data), Ok(count));
        self.written += count;
        self.connection.check();
    }

    /// Reads exactly `count` bytes, and compares them with the pattern.
    ///
    /// # Panics
    /// If fewer bytes are readable, or they differ.
    #[track_caller]
    pub fn read(&mut self, count: usize) {
        let mut data = vec![0; count];
        assert_eq!(self.connection.read(self.now, &mut data), Ok(count));
        for (index, byte) in data.into_iter().enumerate() {
            assert_eq!(byte, pattern(self.read + index), "byte {} is wrong", self.read + index);
        }
        self.read += count;
        self.connection.check();
    }

    /// Reads with an empty receive queue, and returns the result.
    ///
    /// # Errors
    /// Those of [`Connection::read`].
    pub fn read_nothing(&mut self) -> Result<usize, Error> {
        self.connection.read(self.now, &mut [0; 1])
    }

    /// Lets the application call any method at the current time.
    pub fn application<T>(&mut self, act: impl FnOnce(&mut Connection, Instant) -> T) -> T {
        let result = act(&mut self.connection, self.now);
        self.connection.check();
        result
    }

    /// Takes all queued events.
    pub fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.connection.driver().poll_event()).collect()
    }

    /// Converts a relative sequence number of the connection's to the one on the wire.
    #[must_use]
    pub fn number(&self, relative: u32) -> SeqNum {
        ISS + relative
    }

    /// Converts a relative sequence number of the peer's to the one on the wire.
    #[must_use]
    pub fn peer_number(&self, relative: u32) -> SeqNum {
        PEER_ISS + relative
    }

    fn next_moment(&self) -> Instant {
        self.connection.poll_timeout()
    }

    fn fire(&mut self) {
        self.now = self.now.max(self.next_moment());
        self.connection.driver().handle_timeout(self.now);
        self.connection.check();
        assert!(self.connection.poll_timeout() > self.now, "a timer expires for ever");
        self.flush();
    }

    /// Records all segments that the connection sends now.
    fn flush(&mut self) {
        let mut frame = [0; 1_480];
        while let Some(transmit) = poll_with_twin(&mut self.connection, self.now, &mut frame) {
            self.connection.check();
            let bytes = &frame[..transmit.length];
            assert_eq!(
                transmit.sum.finish(),
                Sum::of(bytes).finish(),
                "the sum is not that of the bytes"
            );
            let says = notation_of(&Segment::parse(bytes).expect("what is sent can be parsed"));
            if let Some(stamps) = says.options.timestamps {
                self.received_stamp = stamps.value;
            }
            self.sent.push_back(Sent { at: self.now, ecn: transmit.ecn, says });
        }
        self.connection.check();
    }
}

const fn seeds() -> Seeds {
    Seeds { initial_sequence: ISS, timestamp_offset: TIMESTAMP_OFFSET }
}

/// Returns the peer's segment as bytes.
fn bytes_of(says: &Notation) -> Vec<u8> {
    let header = TcpHeader {
        seq: PEER_ISS + says.seq,
        ack: says.ack.map_or_else(SeqNum::default, |ack| ISS + ack),
        flags: says.flags,
        window: says.window.unwrap_or(u16::MAX),
        urgent: says.urgent.unwrap_or(0),
        ..TcpHeader::default()
    };
    let mut options = says.options;
    options.sack = notation::moved(options.sack, |number| ISS + number.number());
    let mut bytes = vec![0; TcpHeader::MAX_LENGTH];
    let length = options.emit(&mut bytes[TcpHeader::LENGTH..]);
    header.emit(length, &mut bytes);
    bytes.truncate(TcpHeader::LENGTH + length);
    let first = first_position(says.flags, says.seq);
    bytes.extend((first..first + says.length as usize).map(pattern));
    bytes
}

/// Returns the connection's segment with numbers counted from the SYNs, and checks its data.
fn notation_of(segment: &Segment<'_>) -> Notation {
    let seq = segment.seq - ISS;
    let flags = segment.flags();
    for (index, &byte) in segment.payload.iter().enumerate() {
        let position = first_position(flags, seq) + index;
        assert_eq!(byte, pattern(position), "byte {position} was sent wrong");
    }
    let mut options: TcpOptions = segment.options();
    options.sack = notation::moved(options.sack, |number| SeqNum::new(number - PEER_ISS));
    Notation {
        flags,
        seq,
        length: u32::try_from(segment.payload.len()).expect("a segment is short"),
        ack: flags.contains(TcpFlags::ACK).then(|| segment.ack - PEER_ISS),
        window: Some(segment.window),
        urgent: flags.contains(TcpFlags::URG).then_some(segment.urgent),
        options,
        bare: false,
    }
}

/// Returns the position in the stream at which the data of a segment begins; a SYN takes the number
/// before it.
fn first_position(flags: TcpFlags, seq: u32) -> usize {
    seq.wrapping_sub(u32::from(!flags.contains(TcpFlags::SYN))) as usize
}

fn low_word(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).expect("a low word")
}
