//! The marks before a packet: words in brackets that specify fields of its IP header, such as
//! `[ect0]`, `[ttl 3]` or `[frag 7 0:1280]`.

use super::SyntaxError;
use super::cursor::Cursor;
use core::fmt;
use linerate_wire::Ecn;
use std::net::IpAddr;

/// Maximum number of extension headers that the marks before a packet can specify.
const LONGEST_CHAIN: usize = 16;
/// The largest flow label.
const LARGEST_FLOW_LABEL: u32 = 0xf_ffff;
/// The largest offset of a fragment, in bytes.
const LARGEST_OFFSET: u32 = 0x1fff << 3;

/// The fields that the marks before a packet can specify. They are fields of the IP header, and of
/// the extension headers between it and the payload. `None` means that the script does not specify
/// the field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IpMarks {
    /// The ECN bits, or the whole type of service.
    pub marks: Marks,
    /// The TTL or hop limit.
    pub ttl: Option<u8>,
    /// The flow label; zero means that the packet has none. In a packet from the host, any other
    /// value is the number by which the script refers to the host's label.
    pub flow_label: Option<u32>,
    /// The DF flag of IPv4.
    pub dont_fragment: Option<bool>,
    /// The source address of a packet to the host.
    pub from: Option<IpAddr>,
    /// The extension headers of a packet to the host, in the order of the packet. If the packet is
    /// a fragment, the headers after the fragment header belong to the fragmentable part.
    pub chain: Vec<ExtensionHeader>,
    /// The part of the packet that is sent as a fragment; `None` for a whole packet.
    /// [`Piece::position`] is the place of the fragment header among the extension headers.
    pub piece: Option<Piece>,
    /// The encoding of the packet on a serial line.
    pub line: Option<LineMark>,
}

/// The DS field and the ECN field: the second byte of the IPv4 header, or the traffic class of
/// IPv6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marks {
    /// Not specified: zero in a packet to the host, any value in a packet from the host.
    #[default]
    Any,
    /// The packet has these ECN bits.
    Ecn(Ecn),
    /// ECT(0) or ECT(1); only for packets from the host.
    Capable,
    /// The whole byte has this value.
    Byte(u8),
}

/// An extension header of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionHeader {
    /// A Hop-by-Hop Options header. It contains an option of this type; without a type, it contains
    /// only padding.
    HopByHop(Option<u8>),
    /// A Destination Options header. It contains an option of this type; without a type, it
    /// contains only padding.
    Destination(Option<u8>),
    /// A routing header of this type, with this number of segments left.
    Routing {
        /// The type of the routing header.
        kind: u8,
        /// The number of segments left. The header has an address for each of them.
        left: u8,
    },
}

/// A fragment of a packet. It contains the bytes from offset `first` to offset `last` of the
/// packet's fragmentable part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The identification. In a packet from the host, this is the number by which the script refers
    /// to the host's identification.
    pub id: u32,
    /// The offset of the first byte, in bytes.
    pub first: u32,
    /// The offset after the final byte, in bytes. If it lies beyond the end of the packet, the
    /// missing bytes are zero.
    pub last: u32,
    /// The number of extension headers before the fragment header.
    pub position: usize,
}

/// The encoding of a packet from the host on a serial line (RFC 1144), or a fault of the line that
/// affects a packet to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineMark {
    /// The host sent a compressed header, which contains the differences from the previous packet.
    /// The header has this number of bytes; `None` means any number.
    Compressed(Option<u16>),
    /// The host sent complete headers. Both endpoints store them, because the compressed headers of
    /// later packets refer to them (UNCOMPRESSED_TCP in RFC 1144).
    Uncompressed,
    /// The host sent an unchanged IP packet, whose headers the endpoints do not store (TYPE_IP in
    /// RFC 1144).
    Plain,
    /// The line damages a packet to the host by an invalid escape sequence, so that the receiver
    /// detects the damage.
    Damaged,
    /// The line loses a packet to the host entirely, so that the receiver does not notice it.
    Lost,
}

/// The names of all marks, for the error message about an unknown name.
const NAMES: &str = "ect0, ect1, ect01, ce, noecn, tos, ttl, flowlabel, df, nodf, from, hopopts, \
                     dstopts, routing, frag, compressed, uncompressed, plain, damaged or lost";

/// Parses the marks before a packet: `[ect0]`, `(tos 0x10, ttl 3)`, `[hopopts][frag 7 0:8]`. There
/// may be none.
pub(super) fn ip_marks(cursor: &mut Cursor<'_>) -> Result<IpMarks, SyntaxError> {
    let mut ip = IpMarks::default();
    loop {
        let close = match cursor.peek() {
            Some('[') => "]",
            Some('(') => ")",
            _ => return Ok(ip),
        };
        let _ = cursor.take("[") || cursor.take("(");
        cursor.list(close, |cursor| mark(cursor, &mut ip))?;
    }
}

fn mark(cursor: &mut Cursor<'_>, ip: &mut IpMarks) -> Result<(), SyntaxError> {
    match cursor.word(NAMES)? {
        "ect0" => ip.marks = Marks::Ecn(Ecn::Ect0),
        "ect1" => ip.marks = Marks::Ecn(Ecn::Ect1),
        "ect01" => ip.marks = Marks::Capable,
        "ce" => ip.marks = Marks::Ecn(Ecn::Ce),
        "noecn" => ip.marks = Marks::Ecn(Ecn::NotEct),
        "tos" => ip.marks = Marks::Byte(cursor.number("the type of service")?),
        "ttl" => ip.ttl = Some(cursor.number("the TTL")?),
        "flowlabel" => {
            let label = cursor.number("a flow label")?;
            if label > LARGEST_FLOW_LABEL {
                return Err(cursor.error(format!("{label:#x}: a flow label has twenty bits")));
            }
            ip.flow_label = Some(label);
        }
        "df" => ip.dont_fragment = Some(true),
        "nodf" => ip.dont_fragment = Some(false),
        "from" => ip.from = Some(address(cursor)?),
        "hopopts" => ip.chain.push(ExtensionHeader::HopByHop(option_type(cursor)?)),
        "dstopts" => ip.chain.push(ExtensionHeader::Destination(option_type(cursor)?)),
        "routing" => {
            let kind = cursor.number("a type of routing header")?;
            let left = cursor.number("a number of segments left")?;
            if left > 127 {
                return Err(cursor.error(format!("{left}: at most 127 segments can be left")));
            }
            ip.chain.push(ExtensionHeader::Routing { kind, left });
        }
        "frag" if ip.piece.is_some() => {
            return Err(cursor.error("a packet is one fragment: write one frag"));
        }
        "frag" => ip.piece = Some(piece(cursor, ip.chain.len())?),
        "compressed" => {
            let has_length = cursor.peek().is_some_and(|next| next.is_ascii_digit());
            let length =
                if has_length { Some(cursor.number("a length of headers")?) } else { None };
            ip.line = Some(LineMark::Compressed(length));
        }
        "uncompressed" => ip.line = Some(LineMark::Uncompressed),
        "plain" => ip.line = Some(LineMark::Plain),
        "damaged" => ip.line = Some(LineMark::Damaged),
        "lost" => ip.line = Some(LineMark::Lost),
        other => {
            return Err(cursor.error(format!("`{other}` is not a mark of a packet: write {NAMES}")));
        }
    }
    if ip.chain.len() > LONGEST_CHAIN {
        return Err(cursor.error(format!("a packet has at most {LONGEST_CHAIN} extension headers")));
    }
    Ok(())
}

fn address(cursor: &mut Cursor<'_>) -> Result<IpAddr, SyntaxError> {
    cursor.peek();
    let text = cursor.take_while(|next| next.is_ascii_hexdigit() || ".:".contains(next));
    text.parse().map_err(|_| cursor.error(format!("`{text}` is not an IP address")))
}

/// Parses the type of an option, if there is one.
fn option_type(cursor: &mut Cursor<'_>) -> Result<Option<u8>, SyntaxError> {
    if !cursor.peek().is_some_and(|next| next.is_ascii_digit()) {
        return Ok(None);
    }
    let kind = cursor.number("a type of option")?;
    if kind < 2 {
        return Err(cursor.error("the options 0 and 1 are padding: leave the type out"));
    }
    Ok(Some(kind))
}

/// Parses the bytes of a fragment, after `frag`: `ID FIRST:LAST`. `position` is the number of
/// extension headers that precede it.
fn piece(cursor: &mut Cursor<'_>, position: usize) -> Result<Piece, SyntaxError> {
    let id = cursor.number("the identification of a fragment")?;
    let first: u32 = cursor.number("the first byte of a fragment")?;
    cursor.want(":")?;
    let last: u32 = cursor.number("the end of a fragment")?;
    if !first.is_multiple_of(8) || first > LARGEST_OFFSET {
        return Err(cursor.error(format!(
            "{first}:{last}: a fragment begins at a multiple of 8 up to {LARGEST_OFFSET}"
        )));
    }
    // An IP packet has at most 65,535 bytes. A limit of 60,000 bytes for the data of a fragment
    // leaves room for the packet's headers.
    if last < first || last - first > 60_000 {
        return Err(cursor.error(format!(
            "{first}:{last}: a fragment ends behind its first byte, and has at most 60000 bytes"
        )));
    }
    Ok(Piece { id, first, last, position })
}

impl IpMarks {
    /// Returns the reason why a packet to the host cannot have these marks; `None` if it can.
    pub(super) fn inbound_fault(&self) -> Option<&'static str> {
        if self.marks == Marks::Capable {
            return Some("[ect01] is for packets from the host: write ect0 or ect1");
        }
        match self.line {
            None | Some(LineMark::Damaged | LineMark::Lost) => None,
            Some(_) => Some(
                "the peer's packets are compressed as far as possible: write \
                             damaged or lost, or nothing",
            ),
        }
    }

    /// Returns the reason why a packet from the host cannot have these marks; `None` if it can.
    pub(super) fn outbound_fault(&self) -> Option<&'static str> {
        if !self.chain.is_empty() || self.from.is_some() {
            return Some("extension headers and source addresses are for packets to the host");
        }
        match self.line {
            Some(LineMark::Damaged | LineMark::Lost) => {
                Some("the script only damages and loses packets to the host")
            }
            _ => None,
        }
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[frag {} {}:{}] ", self.id, self.first, self.last)
    }
}

impl fmt::Display for ExtensionHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HopByHop(None) => f.write_str("[hopopts] "),
            Self::HopByHop(Some(kind)) => write!(f, "[hopopts {kind:#x}] "),
            Self::Destination(None) => f.write_str("[dstopts] "),
            Self::Destination(Some(kind)) => write!(f, "[dstopts {kind:#x}] "),
            Self::Routing { kind, left } => write!(f, "[routing {kind} {left}] "),
        }
    }
}

impl fmt::Display for LineMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compressed(Some(length)) => return write!(f, "[compressed {length}] "),
            Self::Compressed(None) => "[compressed] ",
            Self::Uncompressed => "[uncompressed] ",
            Self::Plain => "[plain] ",
            Self::Damaged => "[damaged] ",
            Self::Lost => "[lost] ",
        })
    }
}

impl fmt::Display for IpMarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            line.fmt(f)?;
        }
        match self.marks {
            Marks::Any => {}
            Marks::Ecn(Ecn::NotEct) => f.write_str("[noecn] ")?,
            Marks::Ecn(Ecn::Ect0) => f.write_str("[ect0] ")?,
            Marks::Ecn(Ecn::Ect1) => f.write_str("[ect1] ")?,
            Marks::Ecn(Ecn::Ce) => f.write_str("[ce] ")?,
            Marks::Capable => f.write_str("[ect01] ")?,
            Marks::Byte(byte) => write!(f, "[tos {byte:#x}] ")?,
        }
        if let Some(ttl) = self.ttl {
            write!(f, "[ttl {ttl}] ")?;
        }
        if let Some(label) = self.flow_label {
            write!(f, "[flowlabel {label:#x}] ")?;
        }
        if let Some(is_set) = self.dont_fragment {
            f.write_str(if is_set { "[df] " } else { "[nodf] " })?;
        }
        if let Some(from) = self.from {
            write!(f, "[from {from}] ")?;
        }
        for (index, header) in self.chain.iter().enumerate() {
            if let Some(piece) = self.piece.filter(|piece| piece.position == index) {
                piece.fmt(f)?;
            }
            header.fmt(f)?;
        }
        match self.piece.filter(|piece| piece.position >= self.chain.len()) {
            Some(piece) => piece.fmt(f),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<IpMarks, SyntaxError> {
        ip_marks(&mut Cursor::new(text, 1))
    }

    #[test]
    fn marks_are_formatted_as_they_were_parsed() {
        for text in [
            "",
            "[ect0] [ttl 3] ",
            "[compressed 4] ",
            "[tos 0x10] [flowlabel 0x12345] ",
            "[nodf] [frag 7 0:1480] ",
            "[hopopts] [frag 7 8:16] [dstopts 0x9e] ",
            "[from ::ffff:192.0.2.1] [routing 0 1] ",
            "[damaged] ",
        ] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        assert_eq!(read("(tos 0x10, ttl 3)").unwrap().to_string(), "[tos 0x10] [ttl 3] ");
    }

    #[test]
    fn invalid_marks_are_refused() {
        for (text, says) in [
            ("[hop]", "not a mark of a packet"),
            ("[flowlabel 0x100000]", "twenty bits"),
            ("[frag 1 4:8]", "a multiple of 8"),
            ("[frag 1 16:8]", "behind its first byte"),
            ("[frag 1 0:8][frag 2 0:8]", "one fragment"),
            ("[frag 1 65536:65540]", "up to 65528"),
            ("[dstopts 1]", "padding"),
            ("[routing 0 128]", "at most 127"),
            ("[from here]", "not an IP address"),
            (&"[hopopts]".repeat(17), "at most 16"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.what.contains(says), "{text}: {error}");
        }
    }
}
