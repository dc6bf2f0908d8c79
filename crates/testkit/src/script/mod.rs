//! A connection whose peer is played by the test, segment by segment, in virtual time.
//!
//! In a test, `send` delivers a segment of the peer, `expect` checks the connection's next segment,
//! and `pass_time` lets time pass. Segments are written in the notation of `tcpdump`, see
//! [`Notation`]. Sequence numbers of both endpoints are counted from their SYN, which has number
//! zero. The stream position of a byte determines its value ([`pattern`]), so tests check all data
//! without writing them down.
//!
//! Every segment that arrives is also delivered to a twin without header prediction, which must
//! reach an equal state. The invariants of the connection are checked after every step.

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

/// Initial sequence number of the connection. It is so close to the largest sequence number that
/// the numbers wrap around to zero in most tests.
const ISS: SeqNum = SeqNum::new(u32::MAX - 300);
/// Initial sequence number of the peer.
const PEER_ISS: SeqNum = SeqNum::new(u32::MAX - 500);
/// Offset of the connection's timestamps in milliseconds, which outside of tests is random.
const TIMESTAMP_OFFSET: u32 = 1_000_000;

/// Returns the byte at a stream position. The period of the pattern equals no usual packet or
/// buffer size, so that misplaced data are detected.
#[must_use]
pub fn pattern(position: usize) -> u8 {
    (position as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

/// A segment that the connection has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Time at which the segment was sent.
    pub at: Instant,
    /// ECN codepoint of the packet that carried it.
    pub ecn: Ecn,
    /// Contents of the segment. Sequence numbers of both directions are counted from the SYNs.
    pub says: Notation,
}

/// A connection under test, and its peer, whose segments the test sends.
#[derive(Debug)]
pub struct Script {
    /// The current virtual time.
    pub now: Instant,
    /// The connection under test.
    pub connection: Connection,
    /// Whether the peer's segments carry timestamps, whose value is the virtual time in
    /// milliseconds.
    peer_stamps: bool,
    /// The most recent TSval of the connection, which the peer's segments echo.
    received_stamp: u32,
    sent: VecDeque<Sent>,
    written: usize,
    read: usize,
}

impl Script {
    /// Begins an active open. The first segment to expect is the SYN.
    #[must_use]
    pub fn connect(config: &Config) -> Self {
        Self::with_path(config, Path::ipv4(1_500))
    }

    /// Begins an active open over the given path.
    #[must_use]
    pub fn with_path(config: &Config, path: Path) -> Self {
        let now = Instant::ZERO + Duration::from_secs(1_000);
        Self::of(Connection::connect(config, path, seeds(), now), now)
    }

    /// Begins a passive open with the peer's `syn`. The first segment to expect is the SYN-ACK.
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

    /// Begins a passive open with a `syn` that has a valid Fast Open cookie (RFC 7413). The
    /// connection accepts the data of the SYN before the handshake completes.
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

    /// Performs an active open in which the peer answers with `syn_ack`, until the connection has
    /// acknowledged the SYN-ACK.
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

    /// Delivers a segment of the peer.
    #[track_caller]
    pub fn send(&mut self, text: &str) {
        let _ = self.judge(text);
    }

    /// Delivers a segment of the peer that a congested router has marked (CE).
    #[track_caller]
    pub fn send_marked(&mut self, text: &str) {
        self.send_bearing(Ecn::Ce, text);
    }

    /// Delivers a segment of the peer in a packet with the ECN codepoint `ecn`.
    #[track_caller]
    pub fn send_bearing(&mut self, ecn: Ecn, text: &str) {
        let _ = self.judge_bearing(ecn, text);
    }

    /// Delivers a segment of the peer. Returns the disposition with which the connection has
    /// handled it.
    #[track_caller]
    pub fn judge(&mut self, text: &str) -> Disposition {
        self.judge_bearing(Ecn::NotEct, text)
    }

    /// Delivers a segment of the peer in a packet with the ECN codepoint `ecn`. Returns the
    /// connection's disposition.
    #[track_caller]
    pub fn judge_bearing(&mut self, ecn: Ecn, text: &str) -> Disposition {
        self.flush();
        self.deliver(text, ecn, None)
    }

    /// Delivers a GRO run: one segment that a link has merged from several. Each of the merged
    /// segments had `size` bytes of data, except for the final one, which may have had fewer.
    #[track_caller]
    pub fn send_joined(&mut self, text: &str, size: u16) -> Disposition {
        self.send_joined_bearing(Ecn::NotEct, text, size)
    }

    /// Delivers a GRO run. All packets from which the link has merged it had the ECN codepoint
    /// `ecn`.
    #[track_caller]
    pub fn send_joined_bearing(&mut self, ecn: Ecn, text: &str, size: u16) -> Disposition {
        self.flush();
        self.deliver(text, ecn, NonZeroU16::new(size))
    }

    /// Delivers several segments of the peer one after the other. The connection gets no
    /// opportunity to send in between.
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

    /// Encodes a segment of the peer as bytes. Tests use it if they deliver the segment by a call
    /// that has no method here.
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

    /// Returns the timestamp value that the peer sends at the current time, in milliseconds.
    #[must_use]
    pub fn clock(&self) -> u32 {
        low_word(self.now.as_millis())
    }

    /// Returns the timestamp value that the connection sends at the time `at`, in milliseconds.
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

    /// Checks that the next segment that the connection has sent is `text`. Removes and returns
    /// this segment.
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

    /// Removes and returns the next segment that has been sent, without checking it.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn take_one(&mut self) -> Sent {
        self.flush();
        let Some(sent) = self.sent.pop_front() else { panic!("nothing was sent") };
        sent
    }

    /// Lets `span` pass, and checks that the connection then sends the segment `text`, exactly at
    /// the end of this time.
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

    /// Checks that the connection has sent no segment beyond those that the test has expected.
    ///
    /// # Panics
    /// If a segment was sent that the test has not expected.
    #[track_caller]
    pub fn expect_nothing(&mut self) {
        self.flush();
        if let Some(sent) = self.sent.front() {
            panic!("{} was sent, where nothing was expected", sent.says);
        }
    }

    /// Lets `span` pass, and checks that no segment is sent.
    ///
    /// # Panics
    /// If a segment is sent.
    #[track_caller]
    pub fn expect_silence(&mut self, span: Duration) {
        self.pass_time(span);
        self.expect_nothing();
    }

    /// Lets `span` pass. Segments that the connection sends in this time are stored until the test
    /// calls `expect`.
    pub fn pass_time(&mut self, span: Duration) {
        let until = self.now + span;
        self.flush();
        while self.next_moment() <= until {
            self.fire();
        }
        self.now = until;
    }

    /// Removes and returns all segments that the connection has sent and that the test has not yet
    /// taken.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        self.flush();
        self.sent.drain(..).collect()
    }

    /// Writes the next `count` bytes of the pattern.
    ///
    /// # Panics
    /// If the connection does not take all of them.
    #[track_caller]
    pub fn write(&mut self, count: usize) {
        let taken = self.try_write(count);
        assert_eq!(taken, Ok(count), "the send buffer has no room");
    }

    /// Offers the next `count` bytes of the pattern to the connection. Returns the number of bytes
    /// that it has accepted.
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

    /// Writes the next `count` bytes of the pattern as urgent data. The urgent pointer marks the
    /// final byte.
    ///
    /// # Panics
    /// If the connection does not take all of them.
    pub fn write_urgent(&mut self, count: usize) {
        let data: Vec<u8> = (self.written..self.written + count).map(pattern).collect();
        assert_eq!(self.connection.write_urgent(self.now, &data), Ok(count));
        self.written += count;
        self.connection.check();
    }

    /// Reads exactly `count` bytes, and compares them with the pattern.
    ///
    /// # Panics
    /// If fewer bytes can be read, or they differ.
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

    /// Reads from a connection whose receive queue is empty. Returns the result.
    ///
    /// # Errors
    /// Those of [`Connection::read`].
    pub fn read_nothing(&mut self) -> Result<usize, Error> {
        self.connection.read(self.now, &mut [0; 1])
    }

    /// Calls `act` with the connection and the current time. Tests use it for calls of the
    /// application for which `Script` has no method.
    pub fn application<T>(&mut self, act: impl FnOnce(&mut Connection, Instant) -> T) -> T {
        let result = act(&mut self.connection, self.now);
        self.connection.check();
        result
    }

    /// Removes and returns all queued events of the connection.
    pub fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.connection.driver().poll_event()).collect()
    }

    /// Converts a sequence number of the connection, counted from its SYN, to the number on the
    /// wire.
    #[must_use]
    pub fn number(&self, relative: u32) -> SeqNum {
        ISS + relative
    }

    /// Converts a sequence number of the peer, counted from its SYN, to the number on the wire.
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

    /// Fetches all segments that the connection can send now, and stores them for `expect`.
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

/// Encodes a segment of the peer as bytes.
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

/// Converts a segment of the connection to the notation of scripts, with sequence numbers counted
/// from the SYNs. Checks that its data match the pattern.
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

/// Returns the stream position of the first data byte of a segment. `seq` is its sequence number,
/// counted from the SYN. The SYN itself takes number 0, so the first byte of the stream has number
/// 1.
fn first_position(flags: TcpFlags, seq: u32) -> usize {
    seq.wrapping_sub(u32::from(!flags.contains(TcpFlags::SYN))) as usize
}

fn low_word(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).expect("a low word")
}
