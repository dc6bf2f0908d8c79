//! Segments into a connection: a peer that is partly honest, an application that does anything at any
//! time, and a clock that jumps.
//!
//! The connection has a twin with header prediction switched off that is told the same; both must
//! agree after every step. Data is the pattern of its position in both directions, so whatever is
//! read or sent must be, too, however segments overlap.

use super::choices::Choices;
use crate::script::pattern;
use linerate_tcp::{
    Config, CongestionName, Connection, Disposition, IcmpReport, KeepAlive, ListenVerdict, Path, Profile,
    Seeds, State, judge_listen,
};
use linerate_units::{Duration, Instant};
use linerate_wire::{SackBlock, Segment, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions, Timestamps};

const PATH: Path = Path { mtu_payload: 1_480, window_clamp: None };

/// More segments than two buffers of the largest size make do not leave at once.
const MOST_SEGMENTS: usize = 8_000;

/// Tells the story that `bytes` choose.
///
/// # Panics
/// If an invariant is broken, or header prediction makes a difference.
pub fn segments_into_a_connection(bytes: &[u8]) {
    let Some(mut story) = Story::begin(Choices::new(bytes)) else { return };
    while !story.choices.is_empty() {
        story.step();
    }
}

/// A connection, its twin, and what its peer knows.
struct Story<'a> {
    choices: Choices<'a>,
    now: Instant,
    connection: Connection,
    twin: Connection,
    iss: SeqNum,
    irs: SeqNum,
    /// The connection's last acknowledgement, and the end of what it has sent.
    heard_ack: SeqNum,
    heard_end: SeqNum,
    /// What the peer has acknowledged.
    told_ack: SeqNum,
    /// Does the peer use timestamps, and the last it has heard?
    stamps: bool,
    heard_stamp: u32,
    written: usize,
    read: usize,
}

impl<'a> Story<'a> {
    fn begin(mut choices: Choices<'a>) -> Option<Self> {
        let config = choose_config(&mut choices);
        let now = Instant::ZERO + Duration::from_secs(u64::from(choices.byte()) * 1_000);
        let iss = SeqNum::new(choices.of(&[0, 1_000, u32::MAX - 2_000, u32::MAX >> 1]));
        let irs = SeqNum::new(choices.of(&[0, 5_000, u32::MAX - 3_000, u32::MAX >> 1]));
        let seeds = Seeds { initial_sequence: iss, timestamp_offset: choices.of(&[0, u32::MAX - 500]) };
        let connection = if choices.yes() {
            Connection::connect(&config, PATH, seeds, now)
        } else {
            let mut bytes = [0; 100];
            let length = write(TcpFlags::SYN, irs, SeqNum::new(0), &mut choices, &syn_options(), &mut bytes);
            let syn = Segment::parse(&bytes[..length]).ok()?;
            if judge_listen(&syn) != ListenVerdict::Open {
                return None;
            }
            Connection::accept(&config, PATH, seeds, &syn, now)
        };
        let mut twin = connection.clone();
        twin.set_header_prediction(false);
        let story = Self {
            choices,
            now,
            connection,
            twin,
            iss,
            irs,
            heard_ack: irs + 1,
            heard_end: iss + 1,
            told_ack: iss + 1,
            stamps: true,
            heard_stamp: 0,
            written: 0,
            read: 0,
        };
        story.judge();
        Some(story)
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

    /// Everything that must hold of both, and between them.
    fn judge(&self) {
        self.connection.check();
        self.twin.check();
        self.connection.assert_agrees_with(&self.twin);
    }

    /// The same to both, with the same answer.
    fn both<T: PartialEq + core::fmt::Debug>(&mut self, act: impl Fn(&mut Connection, Instant) -> T) -> T {
        let answer = act(&mut self.connection, self.now);
        assert_eq!(answer, act(&mut self.twin, self.now));
        answer
    }

    /// Takes everything that leaves now.
    fn flush(&mut self) {
        let (mut frame, mut twin_frame) = ([0; 1_480], [0; 1_480]);
        for count in 0.. {
            assert!(count < MOST_SEGMENTS, "never silent");
            let sent =
                self.connection.poll_transmit(self.now, &mut frame).map(|sent| (sent.length, sent.sum));
            let twin = self.twin.poll_transmit(self.now, &mut twin_frame);
            assert_eq!(sent.map(|sent| sent.0), twin.map(|sent| sent.length));
            let Some((length, sum)) = sent else { break };
            assert_eq!(frame[..length], twin_frame[..length]);
            assert_eq!(sum.finish(), Sum::of(&frame[..length]).finish());
            self.hear(&Segment::parse(&frame[..length]).expect("what is sent can be parsed"));
        }
        self.judge();
    }

    fn hear(&mut self, segment: &Segment<'_>) {
        let flags = segment.flags();
        let first = (segment.seq - self.iss).wrapping_sub(1) as usize;
        for (index, &byte) in segment.payload.iter().enumerate() {
            assert_eq!(byte, pattern(first + index), "byte {} was sent wrong", first + index);
        }
        assert!(segment.payload.is_empty() || first + segment.payload.len() <= self.written, "never written");
        if flags.contains(TcpFlags::RST) {
            return;
        }
        if flags.contains(TcpFlags::ACK) {
            self.heard_ack = segment.ack;
        }
        self.heard_end = self.heard_end.later(segment.seq + segment.sequence_length());
        if let Some(stamps) = segment.options().timestamps {
            self.heard_stamp = stamps.value;
        }
    }

    fn arrive(&mut self, bytes: &[u8]) {
        let Ok(segment) = Segment::parse(bytes) else { return };
        let opening = self.connection.state() == State::SynSent;
        let disposition = self.both(|connection, now| connection.handle_segment(now, &segment));
        if opening && self.connection.state() != State::SynSent {
            self.irs = segment.seq;
        }
        if disposition == Disposition::OpenAgain {
            assert_eq!(self.connection.state(), State::TimeWait);
        }
    }

    /// A segment of which each part is right, as a rule.
    fn likely_segment(&mut self) {
        let flags = match self.choices.byte() {
            0..=159 => TcpFlags::ACK,
            160..=199 => TcpFlags::ACK | TcpFlags::PSH,
            200..=214 => TcpFlags::ACK | TcpFlags::FIN,
            215..=229 => TcpFlags::SYN | TcpFlags::ACK,
            _ => TcpFlags::from_bits_retain(self.choices.byte()),
        };
        let opening = self.connection.state() == State::SynSent;
        let expected = if opening { self.irs } else { self.heard_ack };
        let seq = self.choices.near(expected.number());
        let base = self.choices.of(&[self.heard_end, self.heard_end, self.told_ack]);
        let ack = self.choices.near(base.number());
        self.segment(flags, SeqNum::new(seq), SeqNum::new(ack));
    }

    fn data_in_order(&mut self) {
        self.segment(TcpFlags::ACK | TcpFlags::PSH, self.heard_ack, self.heard_end);
    }

    /// Of anything between the last one and all that was sent.
    fn acknowledgement(&mut self) {
        let share = u32::from(self.choices.byte());
        let all = self.heard_end - self.told_ack;
        let ack = self.told_ack + (all / 255 * share + all % 255 * share / 255);
        self.segment(TcpFlags::ACK, self.heard_ack, ack);
    }

    fn segment(&mut self, flags: TcpFlags, seq: SeqNum, ack: SeqNum) {
        if flags.contains(TcpFlags::ACK) && ack.after(self.told_ack) && !ack.after(self.heard_end) {
            self.told_ack = ack;
        }
        let options = self.choose_options(flags);
        let mut bytes = vec![0; 2_000];
        let length = write(flags, seq, ack, &mut self.choices, &options, &mut bytes);
        self.fill(&mut bytes[..length]);
        self.arrive(&bytes[..length]);
    }

    fn choose_options(&mut self, flags: TcpFlags) -> TcpOptions {
        let mut options = if flags.contains(TcpFlags::SYN) { syn_options() } else { TcpOptions::default() };
        match self.choices.byte() {
            0..=7 => self.stamps = !self.stamps,
            8..=15 => options.window_scale = Some(self.choices.byte()),
            16..=23 => options.mss = Some(self.choices.half()),
            24..=31 => options = TcpOptions::default(),
            32..=39 => {
                let left = SeqNum::new(self.choices.near(self.told_ack.number()));
                options.sack.push(SackBlock { left, right: left + u32::from(self.choices.half()) });
            }
            _ => {}
        }
        let clock = u32::try_from(self.now.as_millis() & 0xffff_ffff).expect("a low word");
        options.timestamps = self.stamps.then(|| Timestamps {
            value: self.choices.near(clock),
            echo: self.choices.near(self.heard_stamp),
        });
        options
    }

    /// The data of a segment is what belongs to its place in the stream, whoever made the segment up.
    fn fill(&self, bytes: &mut [u8]) {
        let Ok(segment) = Segment::parse(bytes) else { return };
        // In SYN-SENT nobody knows yet where the stream begins; data is not taken there.
        let first = (segment.seq - self.irs).wrapping_sub(1) as usize;
        let at = bytes.len() - segment.payload.len();
        for (index, byte) in bytes[at..].iter_mut().enumerate() {
            *byte = pattern((first + index) & 0xffff_ffff);
        }
    }

    /// Any bytes that can be read as a segment.
    fn garbage(&mut self) {
        let mut bytes = self.choices.bytes().to_vec();
        if bytes.len() >= TcpHeader::LENGTH && self.choices.yes() {
            // Near enough to get past the first checks.
            bytes[4..8].copy_from_slice(&self.heard_ack.number().to_be_bytes());
            bytes[8..12].copy_from_slice(&self.heard_end.number().to_be_bytes());
        }
        self.fill(&mut bytes);
        self.arrive(&bytes);
    }

    fn write(&mut self) {
        let count = usize::from(self.choices.half()) >> self.choices.of(&[0, 2, 4, 8, 12]);
        let data: Vec<u8> = (self.written..self.written + count).map(pattern).collect();
        let urgent = self.choices.byte() == 7;
        let taken = self.both(|connection, now| {
            if urgent { connection.write_urgent(now, &data) } else { connection.write(now, &data) }
        });
        self.written += taken.unwrap_or(0);
    }

    fn read(&mut self) {
        let count = usize::from(self.choices.half()) >> self.choices.of(&[0, 2, 4, 8, 12]);
        let mut into = vec![0; count];
        let peeked = self.both(|connection, _| connection.peek(&mut vec![0; count]));
        let answer = self.connection.read(self.now, &mut into);
        assert_eq!(answer, self.twin.read(self.now, &mut vec![0; count]));
        assert_eq!(answer, peeked);
        for (index, &byte) in into[..answer.unwrap_or(0)].iter().enumerate() {
            assert_eq!(byte, pattern(self.read + index), "byte {} is wrong", self.read + index);
        }
        self.read += answer.unwrap_or(0);
    }

    fn application(&mut self) {
        let (kind, span) = (self.choices.byte() % 16, self.choices.span());
        let patient = KeepAlive { idle: span.max(Duration::from_secs(10)), ..KeepAlive::default() };
        self.both(|connection, now| match kind {
            0..=3 => connection.shutdown_write(now),
            4 | 5 => connection.close(now),
            6 => connection.abort(now),
            7 => connection.shutdown_read(now),
            8 => connection.set_no_delay(true),
            9 => connection.set_no_delay(false),
            10 => connection.set_linger(Some(span)),
            11 => connection.set_linger(Some(Duration::ZERO)),
            12 => connection.set_linger(None),
            13 => connection.set_keep_alive(now, Some(patient)),
            14 => connection.set_keep_alive(now, None),
            _ => {}
        });
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
        // Timers that were not waited for are late; that, too, must do no harm.
        self.both(|connection, now| connection.handle_timeout(now));
    }

    fn next_timer(&mut self) {
        if self.connection.poll_timeout() != Instant::NEVER {
            self.fire();
        }
    }

    fn fire(&mut self) {
        let due = self.both(|connection, _| connection.poll_timeout());
        self.now = self.now.max(due);
        self.both(|connection, now| connection.handle_timeout(now));
        assert!(self.connection.poll_timeout() > self.now, "a timer expires for ever");
        self.flush();
    }

    fn report(&mut self) {
        let quoted = SeqNum::new(self.choices.near(self.told_ack.number()));
        let mtu_payload = usize::from(self.choices.half());
        let report = match self.choices.byte() % 3 {
            0 => IcmpReport::HardError { quoted },
            1 => IcmpReport::SoftError { quoted },
            _ => IcmpReport::PacketTooBig { quoted, mtu_payload },
        };
        self.both(|connection, now| connection.handle_icmp(now, report));
    }

    fn poll_events(&mut self) {
        for count in 0.. {
            assert!(count < 100, "events without end");
            if self.both(|connection, _| connection.poll_event()).is_none() {
                break;
            }
        }
    }
}

fn choose_config(choices: &mut Choices<'_>) -> Config {
    let config = choices.of(&Profile::ALL).config();
    let switches = choices.byte();
    Config {
        send_buffer: choices.of(&[1, 500, 1_448, 5_000, 65_536]),
        receive_buffer: choices.of(&[1, 500, 1_448, 5_000, 65_535, 100_000]),
        congestion: choices.of(&CongestionName::ALL),
        no_delay: switches & 1 != 0,
        timestamps: switches & 2 != 0,
        window_scaling: switches & 4 != 0,
        selective_acks: switches & 8 != 0,
        reassembly_stretches: if switches & 16 != 0 { 3 } else { 64 },
        linger: (switches & 32 != 0).then(|| Duration::from_secs(3)),
        ..config
    }
}

/// What a peer's SYN offers, unless the story says otherwise.
fn syn_options() -> TcpOptions {
    TcpOptions {
        mss: Some(1_460),
        window_scale: Some(2),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        ..TcpOptions::default()
    }
}

/// Writes a segment whose window, urgent pointer and length are chosen; how long it is.
fn write(
    flags: TcpFlags,
    seq: SeqNum,
    ack: SeqNum,
    choices: &mut Choices<'_>,
    options: &TcpOptions,
    bytes: &mut [u8],
) -> usize {
    let window = match choices.byte() {
        0..=127 => u16::MAX,
        128..=159 => 0,
        160..=191 => u16::from(choices.byte()),
        192..=255 => choices.half(),
    };
    let urgent = if flags.contains(TcpFlags::URG) { choices.half() } else { 0 };
    let header = TcpHeader { seq, ack, flags, window, urgent, ..TcpHeader::default() };
    let options_length = options.emit(&mut bytes[TcpHeader::LENGTH..]);
    header.emit(options_length, bytes);
    let most = bytes.len() - TcpHeader::LENGTH - options_length;
    let data = match choices.byte() {
        0..=95 => 0,
        96..=159 => usize::from(choices.byte()),
        160..=223 => 1_400,
        224..=255 => usize::from(choices.half()) % 1_900,
    };
    TcpHeader::LENGTH + options_length + data.min(most)
}
