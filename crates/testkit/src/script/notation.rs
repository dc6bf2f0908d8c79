//! The notation of segments in tests. It resembles the notations of `tcpdump` and packetdrill.

use core::fmt;
use linerate_wire::{
    EcnCounts, EcnOrder, FastOpenCookie, SackBlock, SackBlocks, SeqNum, TcpFlags, TcpOptions,
    Timestamps, UserTimeout,
};

/// A segment in the notation of scripts: flags, `first:last(length)`, then words in any order.
///
/// ```text
/// S 0:0(0) win 65535 mss 1460 wscale 7 sackOK ts 100 0
/// P. 1:101(100) ack 1 win 500
/// . 1:1(0) ack 101 sack 201-301
/// S 0:10(10) mss 1460 tfo 0123456789abcdef          S 0:0(0) tfo ask
/// R 1:1(0)            F. 101:101(0) ack 1            U. 1:11(10) ack 1 urg 5
/// ```
///
/// Flags are `S F R P U E W A` and `.` for ACK, in any order. A digit among the flags is the
/// counter of accurate ECN, and stands for the flags `E W A` that encode it. `ecn0 =1001,0,1` is
/// the option of accurate ECN with its byte counters. If the peer uses timestamps, the script adds
/// them to its segments; `bare` prevents this for one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notation {
    /// Control bits, such as SYN and ACK.
    pub flags: TcpFlags,
    /// Sequence number (SEG.SEQ), counted from the sender's SYN.
    pub seq: u32,
    /// Length of the data in bytes.
    pub length: u32,
    /// Acknowledgement number (SEG.ACK), counted from the SYN of the endpoint that receives the
    /// segment; `None` without the flag ACK.
    pub ack: Option<u32>,
    /// Window field, without scaling; `None` if the text of a script does not mention it.
    pub window: Option<u16>,
    /// Urgent pointer; `None` without the flag URG.
    pub urgent: Option<u16>,
    /// TCP options. The edges of SACK blocks are counted from the SYN of the endpoint that receives
    /// the segment.
    pub options: TcpOptions,
    /// Whether the peer omits the timestamps option in this segment although timestamps were
    /// negotiated.
    pub bare: bool,
}

const LETTERS: [(char, TcpFlags); 9] = [
    ('S', TcpFlags::SYN),
    ('F', TcpFlags::FIN),
    ('R', TcpFlags::RST),
    ('P', TcpFlags::PSH),
    ('U', TcpFlags::URG),
    ('E', TcpFlags::ECE),
    ('W', TcpFlags::CWR),
    ('A', TcpFlags::AE),
    ('.', TcpFlags::ACK),
];

impl Notation {
    /// Parses a segment.
    ///
    /// # Panics
    /// If the text is malformed, which is an error in the test.
    #[must_use]
    #[track_caller]
    pub fn parse(text: &str) -> Self {
        let mut words = text.split_whitespace();
        let flags = words.next().expect("flags").chars().map(flag).collect();
        let (seq, length) = range(words.next().expect("first:last(length)"));
        let mut says = Self { flags, seq, length, ..Self::default() };
        while let Some(word) = words.next() {
            says.take(word, &mut words);
        }
        assert_eq!(says.ack.is_some(), flags.contains(TcpFlags::ACK), "ack and its flag in {text}");
        says
    }

    fn take<'a>(&mut self, word: &str, rest: &mut impl Iterator<Item = &'a str>) {
        match word {
            "ack" => self.ack = Some(number(rest)),
            "win" => self.window = Some(number(rest)),
            "urg" => self.urgent = Some(number(rest)),
            "mss" => self.options.mss = Some(number(rest)),
            "wscale" => self.options.window_scale = Some(number(rest)),
            "sackOK" => self.options.sack_permitted = true,
            "ts" => {
                self.options.timestamps =
                    Some(Timestamps { value: number(rest), echo: number(rest) });
            }
            "uto" => {
                self.options.user_timeout =
                    Some(user_timeout(rest.next().expect("a number of s or m")));
            }
            "tfo" => self.options.fast_open = Some(cookie(rest.next().expect("a cookie, or ask"))),
            "ecn0" => self.options.ecn = Some(counts(EcnOrder::Zero, rest.next().expect("counts"))),
            "ecn1" => self.options.ecn = Some(counts(EcnOrder::One, rest.next().expect("counts"))),
            "sack" => self.options.sack.push(block(rest.next().expect("left-right"))),
            "bare" => self.bare = true,
            other => panic!("no word of a segment: {other}"),
        }
    }

    /// Checks that the segment `sent` agrees with this segment, which was parsed from `text`.
    /// Flags, sequence number, acknowledgement number and length are always compared. The other
    /// fields are compared only if `text` mentions them.
    ///
    /// # Panics
    /// If it does not agree.
    #[track_caller]
    pub(super) fn assert_matches(&self, sent: &Self, text: &str) {
        let mut seen = sent.clone();
        seen.window = self.window.and(sent.window);
        seen.urgent = self.urgent.and(sent.urgent);
        seen.options.mss = self.options.mss.and(sent.options.mss);
        seen.options.window_scale = self.options.window_scale.and(sent.options.window_scale);
        seen.options.timestamps = self.options.timestamps.and(sent.options.timestamps);
        seen.options.user_timeout = self.options.user_timeout.and(sent.options.user_timeout);
        seen.options.fast_open = self.options.fast_open.and(sent.options.fast_open);
        seen.options.ecn = self.options.ecn.and(sent.options.ecn);
        seen.options.sack_permitted &= self.options.sack_permitted;
        if self.options.sack.is_empty() {
            seen.options.sack = SackBlocks::default();
        }
        assert!(*self == seen, "{sent} was sent, where {text} was expected");
    }
}

impl fmt::Display for Notation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (letter, flag) in LETTERS {
            if self.flags.contains(flag) {
                write!(f, "{letter}")?;
            }
        }
        write!(f, " {}:{}({})", self.seq, self.seq.wrapping_add(self.length), self.length)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        if let Some(urgent) = self.urgent {
            write!(f, " urg {urgent}")?;
        }
        if let Some(mss) = self.options.mss {
            write!(f, " mss {mss}")?;
        }
        if let Some(shift) = self.options.window_scale {
            write!(f, " wscale {shift}")?;
        }
        if self.options.sack_permitted {
            write!(f, " sackOK")?;
        }
        if let Some(stamps) = self.options.timestamps {
            write!(f, " ts {} {}", stamps.value, stamps.echo)?;
        }
        if let Some(timeout) = self.options.user_timeout {
            write!(f, " uto {}{}", timeout.count, if timeout.minutes { "m" } else { "s" })?;
        }
        match self.options.fast_open {
            Some(cookie) if cookie.is_request() => f.write_str(" tfo ask")?,
            Some(cookie) => write!(f, " tfo {cookie}")?,
            None => {}
        }
        if let Some(ecn) = self.options.ecn {
            let (e0b, e1b) = (ecn.e0b(), ecn.e1b());
            let zero = ecn.order() == EcnOrder::Zero;
            let fields = if zero { [e0b, ecn.ceb(), e1b] } else { [e1b, ecn.ceb(), e0b] };
            let fields: Vec<_> =
                fields.into_iter().flatten().map(|field| field.to_string()).collect();
            write!(f, " {} ={}", if zero { "ecn0" } else { "ecn1" }, fields.join(","))?;
        }
        for block in self.options.sack.as_slice() {
            write!(f, " sack {}-{}", block.left, block.right)?;
        }
        Ok(())
    }
}

/// Returns SACK blocks whose edges are those of `blocks`, converted by `to`.
pub(super) fn moved(blocks: SackBlocks, to: impl Fn(SeqNum) -> SeqNum) -> SackBlocks {
    let mut result = SackBlocks::default();
    for block in blocks.as_slice() {
        result.push(SackBlock { left: to(block.left), right: to(block.right) });
    }
    result
}

fn flag(letter: char) -> TcpFlags {
    if let Some(count) = letter.to_digit(8) {
        return TcpFlags::of_ace(count);
    }
    let found = LETTERS.into_iter().find(|(known, _)| *known == letter);
    found.unwrap_or_else(|| panic!("no flag of a segment: {letter}")).1
}

/// Parses the words `first:last(length)`. Returns the first sequence number and the length.
#[track_caller]
fn range(text: &str) -> (u32, u32) {
    let read = || {
        let (first, rest) = text.split_once(':')?;
        let (last, rest) = rest.split_once('(')?;
        let length: u32 = rest.strip_suffix(')')?.parse().ok()?;
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        (first.wrapping_add(length) == last).then_some((first, length))
    };
    read().unwrap_or_else(|| panic!("not first:last(length): {text}"))
}

#[track_caller]
fn number<'a, T: core::str::FromStr>(rest: &mut impl Iterator<Item = &'a str>) -> T {
    let text = rest.next().expect("a number");
    text.parse().unwrap_or_else(|_| panic!("not a number: {text}"))
}

/// Parses a user timeout: `90s` or `5m`.
fn user_timeout(text: &str) -> UserTimeout {
    let (count, unit) = text.split_at(text.len() - 1);
    UserTimeout { minutes: unit == "m", count: count.parse().expect("a number of s or m") }
}

/// Parses a Fast Open cookie: `ask` for a request, or its bytes in hexadecimal.
fn cookie(text: &str) -> FastOpenCookie {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("two digits a byte");
    let bytes =
        if text == "ask" { Vec::new() } else { (0..text.len()).step_by(2).map(byte).collect() };
    FastOpenCookie::new(&bytes).expect("no cookie has so many bytes")
}

/// Parses the byte counters of accurate ECN: `=` and up to three numbers in the order of the
/// option, such as `=1001,0`.
fn counts(order: EcnOrder, text: &str) -> EcnCounts {
    let fields = text
        .strip_prefix('=')
        .expect("= before the counts")
        .split(',')
        .filter(|field| !field.is_empty());
    let fields: Vec<u32> = fields.map(|field| field.parse().expect("a count")).collect();
    let field = |index: usize| fields.get(index).copied().unwrap_or(0);
    let (e0b, e1b) =
        if order == EcnOrder::Zero { (field(0), field(2)) } else { (field(2), field(0)) };
    EcnCounts::new(order, e0b, field(1), e1b)
        .cut_to(u8::try_from(fields.len()).expect("up to three"))
}

fn block(text: &str) -> SackBlock {
    let (left, right) = text.split_once('-').expect("left-right");
    let number = |text: &str| SeqNum::new(text.parse().expect("a number"));
    SackBlock { left: number(left), right: number(right) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_written_as_it_is_read() {
        for text in [
            "S 0:0(0) win 65535 mss 1460 wscale 7 sackOK ts 100 0",
            "P. 1:101(100) ack 1 win 500",
            "U. 1:11(10) ack 1 urg 5",
            ". 1:1(0) ack 101 sack 201-301 sack 401-501",
            ". 1:1(0) ack 1 uto 90s",
            "S 0:10(10) mss 1460 tfo 0123456789abcdef",
            "S 0:0(0) tfo ask",
            "SEWA 0:0(0)",
            "EA. 1:1(0) ack 1 ecn0 =1001,0,1",
            ". 1:1(0) ack 1 ecn1 =5",
            ". 1:1(0) ack 1 ecn0 =",
        ] {
            assert_eq!(Notation::parse(text).to_string(), text);
        }
    }

    #[test]
    #[should_panic(expected = "not first:last(length)")]
    fn a_length_that_does_not_add_up_is_a_mistake() {
        let _ = Notation::parse(". 1:100(100) ack 1");
    }
}
