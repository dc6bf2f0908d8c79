//! One connection and a peer whose every segment the test writes, in virtual time.
//!
//! A script reads as a story: `send` is the peer's segment, `expect` the connection's answer,
//! `pass_time` what lies between. Segments are written as `tcpdump` prints them, see
//! [`Notation`]; both ends count from zero, their SYN. Data is the [`pattern`] of its position, so
//! that each byte of every segment is checked without being written down.
//!
//! After every step the connection's invariants are checked, and what arrives is also given to a
//! twin with header prediction switched off, which must come out the same.

mod notation;

pub use notation::Notation;

use crate::connections::poll_with_twin;
use linerate_tcp::{
    Config, Connection, Disposition, Error, Event, ListenVerdict, Path, Seeds, State, judge_listen,
};
use linerate_units::{Duration, Instant};
use linerate_wire::{Ecn, Segment, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use std::collections::VecDeque;
use std::num::NonZeroU16;

/// Where the connection's numbers begin: close to the end of the circle, so that every script
/// crosses it.
const ISS: SeqNum = SeqNum::new(u32::MAX - 300);
/// Where the peer's numbers begin.
const PEER_ISS: SeqNum = SeqNum::new(u32::MAX - 500);
/// What the host has drawn for the connection's timestamps.
const TIMESTAMP_OFFSET: u32 = 1_000_000;

/// The byte at a position of a stream: no two neighbours, packets or buffers look alike.
#[must_use]
pub fn pattern(position: usize) -> u8 {
    (position as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

/// A segment that the connection has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When it left.
    pub at: Instant,
    /// The ECN codepoint of its packet.
    pub ecn: Ecn,
    /// What it says, both ends' numbers counted from their SYN.
    pub says: Notation,
}

/// A connection, and a peer played by the test.
#[derive(Debug)]
pub struct Script {
    /// The time.
    pub now: Instant,
    /// The connection that is examined.
    pub connection: Connection,
    /// Timestamps that the peer's segments carry, if it uses them: its clock is the script's, in
    /// milliseconds.
    peer_stamps: bool,
    /// The last TSval heard from the connection.
    heard_stamp: u32,
    sent: VecDeque<Sent>,
    written: usize,
    read: usize,
}

impl Script {
    /// An active open; its SYN is the first thing to expect.
    #[must_use]
    pub fn connect(config: &Config) -> Self {
        Self::with_path(config, Path::ipv4(1_500))
    }

    /// The same over a path of one's choice.
    #[must_use]
    pub fn with_path(config: &Config, path: Path) -> Self {
        let now = Instant::ZERO + Duration::from_secs(1_000);
        Self::of(Connection::connect(config, path, seeds(), now), now)
    }

    /// A passive open by the peer's `syn`; its SYN-ACK is the first thing to expect.
    ///
    /// # Panics
    /// If no listener would open for such a segment.
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

    /// A passive open by the peer's `syn`, whose cookie the host has found right (RFC 7413): its data is taken
    /// before the handshake is complete.
    ///
    /// # Panics
    /// If no listener would open for such a segment.
    #[must_use]
    pub fn accept_fast(config: &Config, syn: &str) -> Self {
        let mut script = Self::accept(config, syn);
        let bytes = bytes_of(&Notation::parse(syn));
        script.connection.open_fast(&Segment::parse(&bytes).expect("a segment"));
        script.connection.check();
        script
    }

    /// An active open that has been answered by `syn_ack`, whose acknowledgement has left.
    ///
    /// # Panics
    /// If the handshake goes any other way.
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
            heard_stamp: 0,
            sent: VecDeque::new(),
            written: 0,
            read: 0,
        }
    }

    /// The peer's segment arrives.
    #[track_caller]
    pub fn send(&mut self, text: &str) {
        let _ = self.judge(text);
    }

    /// The peer's segment arrives, and a router has marked it.
    #[track_caller]
    pub fn send_marked(&mut self, text: &str) {
        self.send_bearing(Ecn::Ce, text);
    }

    /// The peer's segment arrives in a packet that bears `ecn`.
    #[track_caller]
    pub fn send_bearing(&mut self, ecn: Ecn, text: &str) {
        self.flush();
        let _ = self.deliver(text, ecn, None);
    }

    /// The peer's segment arrives; what the connection makes of it.
    #[track_caller]
    pub fn judge(&mut self, text: &str) -> Disposition {
        self.flush();
        self.deliver(text, Ecn::NotEct, None)
    }

    /// Segments of the peer with `size` bytes of data each, but the last, arrive as the one that a link has made
    /// of them.
    #[track_caller]
    pub fn send_joined(&mut self, text: &str, size: u16) -> Disposition {
        self.send_joined_bearing(Ecn::NotEct, text, size)
    }

    /// The same in packets that all bore `ecn`.
    #[track_caller]
    pub fn send_joined_bearing(&mut self, ecn: Ecn, text: &str, size: u16) -> Disposition {
        self.flush();
        self.deliver(text, ecn, NonZeroU16::new(size))
    }

    /// Segments of the peer arrive so close together that nothing can leave between them.
    #[track_caller]
    pub fn send_together(&mut self, texts: &[&str]) {
        self.flush();
        for text in texts {
            let _ = self.deliver(text, Ecn::NotEct, None);
        }
    }

    #[track_caller]
    fn deliver(&mut self, text: &str, ecn: Ecn, joined: Option<NonZeroU16>) -> Disposition {
        let mut says = Notation::parse(text);
        if says.options.timestamps.is_some() {
            self.peer_stamps = true;
        } else if self.peer_stamps && !says.bare {
            says.options.timestamps =
                Some(Timestamps { value: self.clock(), echo: self.heard_stamp });
        }
        self.arrive(&bytes_of(&says), ecn, joined)
    }

    /// What the peer's timestamps say now.
    #[must_use]
    pub fn clock(&self) -> u32 {
        low_word(self.now.as_millis())
    }

    /// What the connection's timestamps say at `at`.
    #[must_use]
    pub fn stamp_at(&self, at: Instant) -> u32 {
        low_word(at.as_millis()).wrapping_add(TIMESTAMP_OFFSET)
    }

    fn arrive(&mut self, bytes: &[u8], ecn: Ecn, joined: Option<NonZeroU16>) -> Disposition {
        let segment = Segment { joined, ..Segment::parse(bytes).expect("a segment") };
        let mut twin = self.connection.clone();
        twin.set_header_prediction(false);
        let disposition = self.connection.handle_segment_bearing(self.now, &segment, ecn);
        let twins = twin.handle_segment_bearing(self.now, &segment, ecn);
        self.connection.check();
        twin.check();
        assert_eq!(disposition, twins, "fast and slow path differ about {segment:?}");
        self.connection.assert_agrees_with(&mut twin);
        disposition
    }

    /// The next segment that the connection has sent by now is `text`.
    ///
    /// # Panics
    /// If it is another, or none.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> Sent {
        self.flush();
        let Some(sent) = self.sent.pop_front() else {
            panic!("nothing was sent, where {text} was expected")
        };
        Notation::parse(text).assert_matches(&sent.says, text);
        sent
    }

    /// The next segment that the connection has sent by now, whatever it says.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn take_one(&mut self) -> Sent {
        self.flush();
        let Some(sent) = self.sent.pop_front() else { panic!("nothing was sent") };
        sent
    }

    /// The next thing that the connection sends is `text`, exactly `span` from now, and time passes
    /// until then.
    ///
    /// # Panics
    /// If it is something else, at another time, or nothing.
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

    /// The connection has sent nothing that was not expected already.
    ///
    /// # Panics
    /// If it has.
    #[track_caller]
    pub fn expect_nothing(&mut self) {
        self.flush();
        if let Some(sent) = self.sent.front() {
            panic!("{} was sent, where nothing was expected", sent.says);
        }
    }

    /// Nothing is sent for `span`.
    ///
    /// # Panics
    /// If something is.
    #[track_caller]
    pub fn expect_silence(&mut self, span: Duration) {
        self.pass_time(span);
        self.expect_nothing();
    }

    /// Lets `span` go by. What is sent meanwhile waits to be expected.
    pub fn pass_time(&mut self, span: Duration) {
        let until = self.now + span;
        self.flush();
        while self.next_moment() <= until {
            self.fire();
        }
        self.now = until;
    }

    /// Everything that was sent and not expected yet.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        self.flush();
        self.sent.drain(..).collect()
    }

    /// The application writes the next `count` bytes of the pattern.
    ///
    /// # Panics
    /// If the connection does not take them all.
    #[track_caller]
    pub fn write(&mut self, count: usize) {
        let taken = self.try_write(count);
        assert_eq!(taken, Ok(count), "the send buffer has no room");
    }

    /// The application offers the next `count` bytes of the pattern.
    ///
    /// # Errors
    /// As [`Connection::write`].
    pub fn try_write(&mut self, count: usize) -> Result<usize, Error> {
        let data: Vec<u8> = (self.written..self.written + count).map(pattern).collect();
        let taken = self.connection.write(self.now, &data)?;
        self.written += taken;
        self.connection.check();
        Ok(taken)
    }

    /// The same, the last of them urgent.
    ///
    /// # Panics
    /// If the connection does not take them all.
    pub fn write_urgent(&mut self, count: usize) {
        let data: Vec<u8> = (self.written..self.written + count).map(pattern).collect();
        assert_eq!(self.connection.write_urgent(self.now, &data), Ok(count));
        self.written += count;
        self.connection.check();
    }

    /// The application reads exactly `count` bytes, and they are those of the pattern.
    ///
    /// # Panics
    /// If there are fewer, or they are others.
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

    /// What a read says when there is nothing more to read.
    ///
    /// # Errors
    /// As [`Connection::read`].
    pub fn read_nothing(&mut self) -> Result<usize, Error> {
        self.connection.read(self.now, &mut [0; 1])
    }

    /// The application does something else, at this moment.
    pub fn application<T>(&mut self, act: impl FnOnce(&mut Connection, Instant) -> T) -> T {
        let result = act(&mut self.connection, self.now);
        self.connection.check();
        result
    }

    /// The events that wait.
    pub fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.connection.poll_event()).collect()
    }

    /// The connection's number of a segment that it has sent, as the network quotes it.
    #[must_use]
    pub fn number(&self, relative: u32) -> SeqNum {
        ISS + relative
    }

    /// The peer's number of a segment that it sends.
    #[must_use]
    pub fn peer_number(&self, relative: u32) -> SeqNum {
        PEER_ISS + relative
    }

    fn next_moment(&self) -> Instant {
        self.connection.poll_timeout()
    }

    fn fire(&mut self) {
        self.now = self.now.max(self.next_moment());
        self.connection.handle_timeout(self.now);
        self.connection.check();
        assert!(self.connection.poll_timeout() > self.now, "a timer expires for ever");
        self.flush();
    }

    /// Takes down everything that the connection sends now.
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
            let says = heard(&Segment::parse(bytes).expect("what is sent can be parsed"));
            if let Some(stamps) = says.options.timestamps {
                self.heard_stamp = stamps.value;
            }
            self.sent.push_back(Sent { at: self.now, ecn: transmit.ecn, says });
        }
        self.connection.check();
    }
}

const fn seeds() -> Seeds {
    Seeds { initial_sequence: ISS, timestamp_offset: TIMESTAMP_OFFSET }
}

/// The peer's segment on the wire.
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

/// The connection's segment, its numbers counted from the SYNs, and its data checked.
fn heard(segment: &Segment<'_>) -> Notation {
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

/// Where in the stream the data of a segment begins; a SYN takes the number before it.
fn first_position(flags: TcpFlags, seq: u32) -> usize {
    seq.wrapping_sub(u32::from(!flags.contains(TcpFlags::SYN))) as usize
}

fn low_word(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).expect("a low word")
}
