//! Parses packets: `S. 0:0(0) ack 1 win 65535 <mss 1460,nop,wscale 7>`.

use super::SyntaxError;
use super::cursor::Cursor;
use super::datagram::{Datagram, datagram};
use super::icmp::{Icmp, icmp};
use super::ip::{IpMarks, ip_marks};
use core::fmt;
use linerate_wire::{EcnCounts, EcnOrder, Ipv4Header, TcpFlags, TcpHeader};

/// A packet to or from the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A TCP segment.
    Segment(Segment),
    /// A UDP datagram.
    Datagram(Datagram),
    /// An ICMP message.
    Icmp(Icmp),
}

/// A TCP segment with the sequence numbers that the script writes. In a SYN they are absolute. In
/// any other segment they are relative to the SYN of the direction whose bytes they count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The fields of the IP header that the script specifies.
    pub ip: IpMarks,
    /// Source and destination port, for scripts with several connections; `None` if the script
    /// gives none.
    pub ports: Option<(u16, u16)>,
    /// Control bits, such as SYN and ACK.
    pub flags: TcpFlags,
    /// Sequence number (SEG.SEQ).
    pub seq: u32,
    /// Length of the data in bytes.
    pub length: u16,
    /// Acknowledgement number (SEG.ACK); `None` if it is not given.
    pub ack: Option<u32>,
    /// Window field of the header, without scaling (SEG.WND); `None` if it is not given.
    pub window: Option<u16>,
    /// Urgent pointer (SEG.UP); `None` if it is not given.
    pub urgent: Option<u16>,
    /// TCP options.
    pub options: SegmentOptions,
}

/// The TCP options of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentOptions {
    /// Any options, written `<...>`.
    Any,
    /// Exactly these options.
    List(Vec<SegmentOption>),
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

/// A TCP option of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentOption {
    /// End of option list.
    End,
    /// No-operation, used for padding.
    Nop,
    /// Maximum segment size that the sender of the segment accepts.
    Mss(u16),
    /// Number of bits by which the window field of later segments is shifted.
    WindowScale(u8),
    /// SACK permitted.
    SackPermitted,
    /// SACK blocks, as left and right edges.
    Sack(Vec<(u32, u32)>),
    /// Timestamps (RFC 7323).
    Timestamps {
        /// Timestamp value (TSval).
        value: u32,
        /// Timestamp echo reply (TSecr).
        echo: u32,
    },
    /// TCP Fast Open (RFC 7413): a cookie, or a request for a cookie if it is empty.
    FastOpen(Vec<u8>),
    /// TCP Fast Open in the form of an experimental option (RFC 7413 §4.1.1, RFC 6994).
    FastOpenExperiment(Vec<u8>),
    /// Accurate ECN: the byte counters (RFC 9768).
    Ecn(EcnCounts),
    /// An option for which scripts have no notation: its kind and its value.
    Other(u8, Vec<u8>),
}

/// The letters of the control bits, in the order in which a segment's text has them.
const FLAG_LETTERS: [(char, TcpFlags); 9] = [
    ('S', TcpFlags::SYN),
    ('F', TcpFlags::FIN),
    ('R', TcpFlags::RST),
    ('P', TcpFlags::PSH),
    ('E', TcpFlags::ECE),
    ('W', TcpFlags::CWR),
    ('A', TcpFlags::AE),
    ('U', TcpFlags::URG),
    ('.', TcpFlags::ACK),
];

/// Parses a packet to the host, which follows `<` in the script.
pub(super) fn inbound(cursor: &mut Cursor<'_>) -> Result<Packet, SyntaxError> {
    let packet = packet(cursor)?;
    if let Some(fault) = packet.ip().inbound_fault() {
        return Err(cursor.error(fault));
    }
    if let Packet::Segment(segment) = &packet {
        let SegmentOptions::List(options) = &segment.options else {
            return Err(cursor.error("<...> is for packets from the host: write the options"));
        };
        check_length(cursor, options, segment.length)?;
    }
    Ok(packet)
}

/// Parses a packet from the host, which follows `>` in the script.
pub(super) fn outbound(cursor: &mut Cursor<'_>) -> Result<Packet, SyntaxError> {
    let packet = packet(cursor)?;
    match packet.ip().outbound_fault() {
        Some(fault) => Err(cursor.error(fault)),
        None => Ok(packet),
    }
}

fn packet(cursor: &mut Cursor<'_>) -> Result<Packet, SyntaxError> {
    let ip = ip_marks(cursor)?;
    match cursor.peek_word() {
        Some(word @ ("ipv4" | "ipv6" | "gre" | "GREv0" | "mpls")) => Err(cursor.error(format!(
            "`{word}`: packets are TCP segments, UDP datagrams and ICMP messages, and not in \
             tunnels"
        ))),
        Some("icmp") => {
            cursor.take_word("icmp");
            icmp(cursor, ip).map(Packet::Icmp)
        }
        Some("udp") => {
            cursor.take_word("udp");
            datagram(cursor, ip).map(Packet::Datagram)
        }
        _ => segment(cursor, ip).map(Packet::Segment),
    }
}

/// Parses a TCP segment; its ports or its control bits come next. The marks before them have been
/// parsed already: `ip` has the fields of the IP header that they specify, such as the ECN
/// codepoint.
fn segment(cursor: &mut Cursor<'_>, ip: IpMarks) -> Result<Segment, SyntaxError> {
    let ports = ports(cursor)?;
    let mut segment = Segment { ip, ports, flags: flags(cursor)?, ..Segment::default() };
    (segment.seq, segment.length) = sequence(cursor)?;
    if cursor.take_word("ack") {
        segment.ack = Some(cursor.number("an acknowledgement number")?);
    }
    if cursor.take_word("win") {
        segment.window = Some(cursor.number("a window")?);
    }
    if cursor.take_word("urg") {
        segment.urgent = Some(cursor.number("an urgent pointer")?);
    }
    if cursor.take("<") {
        segment.options = options(cursor)?;
    }
    Ok(segment)
}

/// Parses the source and the destination port, such as `40001 > 8080`. Returns `None` if no ports
/// come next.
pub(super) fn ports(cursor: &mut Cursor<'_>) -> Result<Option<(u16, u16)>, SyntaxError> {
    if !begins_with_ports(cursor) {
        return Ok(None);
    }
    let source = cursor.number("a port")?;
    cursor.want(">")?;
    Ok(Some((source, cursor.number("a port")?)))
}

/// Returns whether ports come next. A number is a port if `>` follows it. Any other number here is
/// a single digit, which stands for the three control bits of accurate ECN.
fn begins_with_ports(cursor: &mut Cursor<'_>) -> bool {
    cursor.peek();
    let rest = cursor.rest();
    let behind = rest.trim_start_matches(|next: char| next.is_ascii_digit());
    behind.len() < rest.len() && behind.trim_start().starts_with('>')
}

fn flags(cursor: &mut Cursor<'_>) -> Result<TcpFlags, SyntaxError> {
    if cursor.take("-") {
        return Ok(TcpFlags::empty());
    }
    cursor.peek();
    let letters = cursor.take_while(|next| flag(next).is_some());
    if letters.is_empty() {
        return cursor.expected(
            "control bits (S F R P E W A U and . for ACK, or 0 to 7 for E, W and A as a counter), \
             such as `P.`",
        );
    }
    Ok(letters.chars().filter_map(flag).fold(TcpFlags::empty(), TcpFlags::union))
}

/// Returns the control bits for one character; `None` for an unknown character. A letter stands for
/// one control bit, and a digit for the three bits of the accurate ECN counter (ACE).
fn flag(next: char) -> Option<TcpFlags> {
    let letter = FLAG_LETTERS.iter().find(|(letter, _)| *letter == next).map(|(_, flag)| *flag);
    letter.or_else(|| next.to_digit(8).map(TcpFlags::of_ace))
}

/// Parses the sequence numbers and the length of a segment, `first:last(length)`. Returns `first`
/// and `length`.
pub(super) fn sequence(cursor: &mut Cursor<'_>) -> Result<(u32, u16), SyntaxError> {
    let first: u32 = cursor.number("a sequence number")?;
    cursor.want(":")?;
    let last: u32 = cursor.number("a sequence number")?;
    cursor.want("(")?;
    let length: u16 = cursor.number("a length of data")?;
    cursor.want(")")?;
    if first.wrapping_add(u32::from(length)) != last {
        return Err(
            cursor.error(format!("{first}:{last}({length}): the length is not last - first"))
        );
    }
    Ok((first, length))
}

fn options(cursor: &mut Cursor<'_>) -> Result<SegmentOptions, SyntaxError> {
    if cursor.take("...") {
        cursor.want(">")?;
        return Ok(SegmentOptions::Any);
    }
    let list = cursor.list(">", option)?;
    let length: usize = list.iter().map(SegmentOption::length).sum();
    if length > 40 {
        return Err(cursor.error(format!("the options have {length} bytes, the maximum is 40")));
    }
    Ok(SegmentOptions::List(list))
}

fn option(cursor: &mut Cursor<'_>) -> Result<SegmentOption, SyntaxError> {
    Ok(match cursor.word("an option")? {
        "nop" => SegmentOption::Nop,
        "eol" => SegmentOption::End,
        "mss" => SegmentOption::Mss(cursor.number("an MSS")?),
        "wscale" => SegmentOption::WindowScale(cursor.number("a shift")?),
        "sackOK" => SegmentOption::SackPermitted,
        "sack" => {
            let mut blocks = Vec::new();
            while cursor.peek().is_some_and(|next| next.is_ascii_digit()) {
                let left = cursor.number("a block's left edge")?;
                cursor.want(":")?;
                blocks.push((left, cursor.number("a block's right edge")?));
            }
            SegmentOption::Sack(blocks)
        }
        "TS" => {
            cursor.want("val")?;
            let value = cursor.number("TSval")?;
            cursor.want("ecr")?;
            SegmentOption::Timestamps { value, echo: cursor.number("TSecr")? }
        }
        "FO" => SegmentOption::FastOpen(cookie(cursor)?),
        "FOEXP" => SegmentOption::FastOpenExperiment(cookie(cursor)?),
        "ECN" => counts(cursor)?,
        other => {
            return Err(cursor.error(format!(
                "`{other}` is not a known option: nop, eol, mss, wscale, sackOK, sack, TS val … \
                 ecr …, FO, FOEXP, ECN"
            )));
        }
    })
}

/// Parses the byte counters of accurate ECN, such as `ECN e0b 1 ceb 0 e1b 1`. Counters at the end
/// may be omitted. The option's order on the wire (AccECN0 or AccECN1) is that in the script: it
/// begins with `e0b` or with `e1b`.
fn counts(cursor: &mut Cursor<'_>) -> Result<SegmentOption, SyntaxError> {
    let order = if cursor.peek_word() == Some("e1b") { EcnOrder::One } else { EcnOrder::Zero };
    let names = if order == EcnOrder::Zero { ["e0b", "ceb", "e1b"] } else { ["e1b", "ceb", "e0b"] };
    let mut fields = [0; 3];
    let mut count = 0;
    for (field, name) in fields.iter_mut().zip(names) {
        if !cursor.take_word(name) {
            break;
        }
        *field = cursor.number("a count of bytes")?;
        count += 1;
    }
    let [first, ceb, last] = fields;
    let (e0b, e1b) = if order == EcnOrder::Zero { (first, last) } else { (last, first) };
    Ok(SegmentOption::Ecn(EcnCounts::new(order, e0b, ceb, e1b).cut_to(count)))
}

fn cookie(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, SyntaxError> {
    let Some(text) = cursor.peek_word() else { return Ok(Vec::new()) };
    cursor.word("a cookie")?;
    let bytes = text.as_bytes().chunks(2).map(|pair| {
        let pair = core::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    let bytes: Option<Vec<u8>> = bytes.collect();
    bytes.ok_or_else(|| {
        cursor.error(format!("the cookie {text} is not written in pairs of hexadecimal digits"))
    })
}

/// Checks that an IPv4 packet with these TCP options has room for `length` bytes of data.
pub(super) fn check_length(
    cursor: &Cursor<'_>,
    options: &[SegmentOption],
    length: u16,
) -> Result<(), SyntaxError> {
    let options: usize = options.iter().map(SegmentOption::length).sum();
    let headers = Ipv4Header::LENGTH + TcpHeader::LENGTH + options.next_multiple_of(4);
    let most = usize::from(u16::MAX) - headers;
    if usize::from(length) <= most {
        return Ok(());
    }
    Err(cursor.error(format!("{length} bytes of data are too many: a packet has room for {most}")))
}

impl SegmentOption {
    /// Returns the length of the option in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        match self {
            Self::End | Self::Nop => 1,
            Self::Mss(_) => 4,
            Self::WindowScale(_) => 3,
            Self::SackPermitted => 2,
            Self::Sack(blocks) => 2 + 8 * blocks.len(),
            Self::Timestamps { .. } => 10,
            Self::FastOpen(cookie) => 2 + cookie.len(),
            Self::FastOpenExperiment(cookie) => 4 + cookie.len(),
            Self::Ecn(counts) => 2 + 3 * usize::from(counts.count()),
            Self::Other(_, data) => 2 + data.len(),
        }
    }
}

fn show_cookie(f: &mut fmt::Formatter<'_>, name: &str, cookie: &[u8]) -> fmt::Result {
    f.write_str(name)?;
    if !cookie.is_empty() {
        f.write_str(" ")?;
    }
    cookie.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for SegmentOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("eol"),
            Self::Nop => f.write_str("nop"),
            Self::Mss(mss) => write!(f, "mss {mss}"),
            Self::WindowScale(shift) => write!(f, "wscale {shift}"),
            Self::SackPermitted => f.write_str("sackOK"),
            Self::Sack(blocks) => {
                f.write_str("sack")?;
                blocks.iter().try_for_each(|(left, right)| write!(f, " {left}:{right}"))
            }
            Self::Timestamps { value, echo } => write!(f, "TS val {value} ecr {echo}"),
            Self::FastOpen(cookie) => show_cookie(f, "FO", cookie),
            Self::FastOpenExperiment(cookie) => show_cookie(f, "FOEXP", cookie),
            Self::Ecn(counts) => {
                f.write_str("ECN")?;
                let (e0b, e1b) = (("e0b", counts.e0b()), ("e1b", counts.e1b()));
                let (first, last) =
                    if counts.order() == EcnOrder::Zero { (e0b, e1b) } else { (e1b, e0b) };
                let fields = [first, ("ceb", counts.ceb()), last].into_iter();
                fields
                    .filter_map(|(name, count)| count.map(|count| (name, count)))
                    .try_for_each(|(name, count)| write!(f, " {name} {count}"))
            }
            Self::Other(kind, data) => {
                write!(f, "kind {kind}")?;
                data.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
            }
        }
    }
}

impl fmt::Display for SegmentOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str(" <...>"),
            Self::List(list) if list.is_empty() => Ok(()),
            Self::List(list) => {
                for (index, option) in list.iter().enumerate() {
                    f.write_str(if index == 0 { " <" } else { "," })?;
                    option.fmt(f)?;
                }
                f.write_str(">")
            }
        }
    }
}

impl Packet {
    /// Returns the fields of the IP header that the script specifies.
    #[must_use]
    pub const fn ip(&self) -> &IpMarks {
        match self {
            Self::Segment(segment) => &segment.ip,
            Self::Datagram(datagram) => &datagram.ip,
            Self::Icmp(icmp) => &icmp.ip,
        }
    }

    /// Returns the fields of the IP header that the script specifies, for modification.
    pub(crate) const fn ip_mut(&mut self) -> &mut IpMarks {
        match self {
            Self::Segment(segment) => &mut segment.ip,
            Self::Datagram(datagram) => &mut datagram.ip,
            Self::Icmp(icmp) => &mut icmp.ip,
        }
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Segment(segment) => segment.fmt(f),
            Self::Datagram(datagram) => datagram.fmt(f),
            Self::Icmp(icmp) => icmp.fmt(f),
        }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip.fmt(f)?;
        if let Some((source, destination)) = self.ports {
            write!(f, "{source} > {destination} ")?;
        }
        if self.flags.is_empty() {
            f.write_str("-")?;
        }
        for (letter, flag) in FLAG_LETTERS {
            if self.flags.contains(flag) {
                write!(f, "{letter}")?;
            }
        }
        let length = u32::from(self.length);
        write!(f, " {}:{}({length})", self.seq, self.seq.wrapping_add(length))?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        if let Some(urgent) = self.urgent {
            write!(f, " urg {urgent}")?;
        }
        self.options.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Segment, SyntaxError> {
        let mut cursor = Cursor::new(text, 1);
        let ip = ip_marks(&mut cursor)?;
        segment(&mut cursor, ip)
    }

    #[test]
    fn segments_are_formatted_as_they_were_parsed() {
        for text in [
            "S 0:0(0) win 65535 <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 7>",
            "[ect0] P. 1:1001(1000) ack 1 win 257",
            ". 1:1(0) ack 1 win 257 <nop,nop,sack 2001:3001 4001:5001>",
            "SEW 0:0(0) win 0 <...>",
            "U. 1:2(1) ack 1 win 10 urg 1",
            "40001 > 8080 S 7:7(0) win 100 <FO 0011aabb>",
            "R. 1:1(0) ack 1",
            "SEWA 0:0(0) win 100",
            "EA. 1:1(0) ack 1 win 9 <nop,ECN e0b 1001 ceb 0 e1b 1>",
            "W. 1:1(0) ack 1 win 9 <ECN e1b 5 ceb 7,ECN>",
            "- 1:1(0) win 5",
        ] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_segments_are_refused() {
        for (text, says) in [
            (". 1:100(100) ack 1", "is not last - first"),
            ("S 0:0(0) win 70000", "out of range for a window"),
            ("Q 1:1(0)", "control bits"),
            ("S 0:0(0) win 1 <ms 1>", "not a known option"),
            ("S 0:0(0) win 1 <sack 1:2 3:4 5:6 7:8 9:10>", "the maximum is 40"),
            ("S 0:0(0) win 1 <FO abc>", "pairs"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.what.contains(says), "{text}: {error}");
        }
    }
}
