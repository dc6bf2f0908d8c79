//! TCP options: maximum segment size (RFC 9293 §3.7.1), window scale and timestamps (RFC 7323),
//! selective acknowledgement (RFC 2018), user timeout (RFC 5482), Fast Open (RFC 7413), and
//! accurate ECN (RFC 9768).

use crate::{EcnCounts, FastOpenCookie, SeqNum};

/// The first word of an option field that contains timestamps only, in the layout that RFC 7323
/// appendix A recommends: NOP, NOP, kind 8, length 10.
pub(crate) const TIMESTAMPS_PREFIX: u32 = 0x0101_080a;
/// The word before the timestamps of a SYN that has SACK-permitted. This option takes the place of
/// the two NOPs that otherwise align the timestamps.
const PERMITTED_AND_TIMESTAMPS: u32 = 0x0402_080a;
/// The word of a SACK-permitted option after two NOPs.
const PERMITTED: u32 = 0x0101_0402;
/// The constant bytes with which an aligned option begins: kind and length for MSS, and a NOP, kind
/// and length for window scale.
const MSS_PREFIX: u32 = 0x0204;
const WINDOW_SCALE_PREFIX: u32 = 0x01_0303;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
/// The first three bytes of an aligned SACK option: two NOPs and the kind.
const SACK_PREFIX: u32 = 0x01_0105;
const TIMESTAMPS: u8 = 8;
const USER_TIMEOUT: u8 = 28;

/// The timestamps of a segment: TSval and TSecr (RFC 7323 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock at the time of sending.
    pub value: u32,
    /// TSecr: the most recent TSval that the sender has received.
    pub echo: u32,
}

impl Timestamps {
    /// Parses an option field that contains timestamps only, in the recommended layout. Returns
    /// `None` for a field with other contents or another layout.
    #[inline]
    #[must_use]
    pub fn alone(field: &[u8]) -> Option<Self> {
        let (words, []) = field.as_chunks::<4>() else { return None };
        let [prefix, value, echo] = words else { return None };
        (u32::from_be_bytes(*prefix) == TIMESTAMPS_PREFIX)
            .then(|| Self { value: u32::from_be_bytes(*value), echo: u32::from_be_bytes(*echo) })
    }

    /// Returns the timestamps in any option field. Two kinds of field are parsed faster than
    /// others: those with timestamps only, and those with timestamps before SACK blocks.
    #[inline]
    #[must_use]
    pub fn among(field: &[u8]) -> Option<Self> {
        Self::alone(field)
            .or_else(|| Self::before_blocks(field).map(|(timestamps, _)| timestamps))
            .or_else(|| TcpOptions::parse(field).timestamps)
    }

    /// Parses an option field in the aligned layout that contains timestamps, then SACK blocks, and
    /// nothing else. Nearly every ACK during loss recovery has such a field.
    #[inline]
    fn before_blocks(field: &[u8]) -> Option<(Self, &[[u8; 8]])> {
        let (timestamps, rest) = field.split_at_checked(TcpOptions::TIMESTAMPS_LENGTH)?;
        let (&[first, second, kind, length], rest) = rest.split_first_chunk()?;
        let (blocks @ [_, ..], []) = rest.as_chunks() else { return None };
        let are_all = u32::from_be_bytes([0, first, second, kind]) == SACK_PREFIX
            && usize::from(length) == 2 + rest.len();
        are_all.then_some((Self::alone(timestamps)?, blocks))
    }
}

/// A SACK block: the sequence numbers from `left` up to but excluding `right` (RFC 2018 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// The first sequence number of the block.
    pub left: SeqNum,
    /// The first sequence number after the block.
    pub right: SeqNum,
}

/// The SACK blocks of a segment, at most four (RFC 2018 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [SackBlock; Self::MOST],
    count: u8,
}

impl SackBlocks {
    /// The number of blocks that fit an option field without other options.
    pub const MOST: usize = 4;

    /// Returns the SACK blocks in any option field. A field that contains timestamps, then SACK
    /// blocks, and nothing else, is parsed faster than other fields.
    #[inline]
    pub(crate) fn among(field: &[u8]) -> Self {
        match Timestamps::before_blocks(field) {
            Some((_, blocks)) => Self::of(blocks),
            None => TcpOptions::parse(field).sack,
        }
    }

    fn of(blocks: &[[u8; 8]]) -> Self {
        let mut all = Self::default();
        for block in blocks {
            let (left, right) = (SeqNum::new(word(block, 0)), SeqNum::new(word(block, 4)));
            all.push(SackBlock { left, right });
        }
        all
    }

    /// Appends a block. A fifth block is ignored, because the option has no room for it.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = block;
            self.count += 1;
        }
    }

    /// Returns the blocks in the order of the option.
    #[must_use]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Does the segment contain no SACK blocks?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The user timeout option (RFC 5482 §3.3). The sender of the option closes the connection when its
/// data have been unacknowledged for this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserTimeout {
    /// Does `count` have the unit of minutes (G = 1), instead of seconds?
    pub minutes: bool,
    /// The timeout in minutes or seconds, according to `minutes`. It has 15 bits; zero is reserved.
    pub count: u16,
}

impl UserTimeout {
    const MINUTES: u16 = 0x8000;
    /// The largest value of `count`.
    pub const MOST: u16 = 0x7fff;

    /// Parses the 16 bits after the option's kind and length. Returns `None` for the reserved value
    /// (RFC 5482 §3.4).
    fn of(word: u16) -> Option<Self> {
        let count = word & Self::MOST;
        (count > 0).then_some(Self { minutes: word & Self::MINUTES != 0, count })
    }

    fn word(self) -> u16 {
        self.count & Self::MOST | if self.minutes { Self::MINUTES } else { 0 }
    }
}

/// The TCP options that this stack supports; `None` for options that are absent. Other options are
/// skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// MSS: the largest segment that the sender can receive, in bytes without headers. Only on a
    /// SYN.
    pub mss: Option<u16>,
    /// The shift count for the window field of later segments. Only on a SYN.
    pub window_scale: Option<u8>,
    /// May the peer send selective acknowledgements? Only on a SYN.
    pub sack_permitted: bool,
    /// The timestamps option.
    pub timestamps: Option<Timestamps>,
    /// The user timeout option.
    pub user_timeout: Option<UserTimeout>,
    /// A Fast Open cookie, or a request for one. Only on a SYN.
    pub fast_open: Option<FastOpenCookie>,
    /// The byte counters of accurate ECN. Never on a SYN.
    pub ecn: Option<EcnCounts>,
    /// The blocks of the SACK option.
    pub sack: SackBlocks,
}

impl TcpOptions {
    /// The maximum length of an option field in bytes.
    pub const MAX_LENGTH: usize = 40;

    /// The length of a timestamps option with the two NOPs before it, in bytes.
    pub const TIMESTAMPS_LENGTH: usize = 12;

    /// The length in bytes of the usual options of a SYN: MSS, window scale, SACK-permitted and
    /// timestamps.
    pub const SYN_LENGTH: usize = 20;

    /// Parses an option field. If the length of an option is impossible, parsing stops there, and
    /// only the options before it are used (RFC 9293 MUST-7). An option whose length is wrong for
    /// its kind is skipped. If an option is repeated, the final one is used.
    #[inline]
    #[must_use]
    pub fn parse(field: &[u8]) -> Self {
        // Two common option fields are recognised by comparing all their constant bytes at once,
        // which is faster than parsing byte by byte: timestamps alone, and the options of a SYN.
        if let Some(timestamps) = Timestamps::alone(field) {
            return Self { timestamps: Some(timestamps), ..Self::default() };
        }
        if let Some((mss, window_scale, timestamps)) = Self::of_syn(field) {
            return Self {
                mss: Some(mss),
                window_scale: Some(window_scale),
                sack_permitted: true,
                timestamps: Some(timestamps),
                ..Self::default()
            };
        }
        let mut options = Self::default();
        options.note_all(field);
        options
    }

    /// Parses an option field with the usual options of a SYN, in the order in which this stack or
    /// Linux writes them. Returns MSS, window scale and timestamps, or `None` for other fields.
    #[inline(always)]
    fn of_syn(field: &[u8]) -> Option<(u16, u8, Timestamps)> {
        let field: &[u8; Self::SYN_LENGTH] = field.try_into().ok()?;
        let words: &[[u8; 4]; 5] = field.as_chunks().0.try_into().ok()?;
        let [first, a, b, c, d] = words.map(u32::from_be_bytes);
        let (scale, kinds, value, echo) =
            if a == PERMITTED_AND_TIMESTAMPS { (d, a, b, c) } else { (a, b, c, d) };
        let is_usual = first >> 16 == MSS_PREFIX
            && scale >> 8 == WINDOW_SCALE_PREFIX
            && kinds == PERMITTED_AND_TIMESTAMPS;
        #[allow(clippy::cast_possible_truncation, reason = "the last octets of both")]
        is_usual.then_some((first as u16, scale as u8, Timestamps { value, echo }))
    }

    fn note_all(&mut self, field: &[u8]) {
        let rest = self.note_aligned(field);
        if !rest.is_empty() {
            self.note_by_octets(rest);
        }
    }

    /// Parses the options in `rest` byte by byte, and stores them in `self`.
    fn note_by_octets(&mut self, mut rest: &[u8]) {
        while let [kind, after @ ..] = rest {
            match (*kind, after) {
                (END, _) => break,
                (NOP, _) => rest = after,
                (kind, [length, ..]) => {
                    let Some((option, remainder)) = rest.split_at_checked(usize::from(*length))
                    else {
                        break;
                    };
                    let [_, _, data @ ..] = option else { break };
                    self.note(kind, data);
                    rest = remainder;
                }
                (_, []) => break,
            }
        }
    }

    /// Stores options from the start of `field`, until one does not begin at a multiple of four
    /// bytes. In most SYNs, all options begin at such multiples. Returns the rest of the field.
    fn note_aligned<'a>(&mut self, mut field: &'a [u8]) -> &'a [u8] {
        while let Some((&first, after)) = field.split_first_chunk() {
            let word = u32::from_be_bytes(first);
            let [_, _, high, low] = first;
            field = if word >> 16 == MSS_PREFIX {
                self.mss = Some(u16::from_be_bytes([high, low]));
                after
            } else if word >> 8 == WINDOW_SCALE_PREFIX {
                self.window_scale = Some(low);
                after
            } else if word == PERMITTED_AND_TIMESTAMPS || word == TIMESTAMPS_PREFIX {
                let Some((&[a, b, c, d, e, f, g, h], after)) = after.split_first_chunk() else {
                    break;
                };
                let (value, echo) =
                    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                self.sack_permitted |= word == PERMITTED_AND_TIMESTAMPS;
                self.timestamps = Some(Timestamps { value, echo });
                after
            } else if word == PERMITTED {
                self.sack_permitted = true;
                after
            } else {
                break;
            };
        }
        field
    }

    /// Stores one option, if it is known and its length is valid.
    fn note(&mut self, kind: u8, data: &[u8]) {
        match (kind, data) {
            (MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            (WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift),
            (SACK_PERMITTED, []) => self.sack_permitted = true,
            (TIMESTAMPS, data) if data.len() == 8 => {
                self.timestamps = Some(Timestamps { value: word(data, 0), echo: word(data, 4) });
            }
            (USER_TIMEOUT, &[high, low]) => {
                self.user_timeout = UserTimeout::of(u16::from_be_bytes([high, low]));
            }
            (SACK, data) if !data.is_empty() && data.len().is_multiple_of(8) => {
                self.sack = SackBlocks::of(data.as_chunks().0);
            }
            (kind, data) => {
                self.fast_open = FastOpenCookie::parse(kind, data).or(self.fast_open);
                self.ecn = EcnCounts::parse(kind, data).or(self.ecn);
            }
        }
    }

    /// Returns the number of bytes that [`TcpOptions::emit`] writes: a multiple of four, at most
    /// forty.
    #[must_use]
    pub fn length(&self) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        // For alignment, two NOPs precede the timestamps. If SACK-permitted is also sent, it takes
        // the place of these NOPs, and needs no bytes of its own.
        let permitted = if self.sack_permitted && self.timestamps.is_none() { 4 } else { 0 };
        let timestamps = if self.timestamps.is_some() { Self::TIMESTAMPS_LENGTH } else { 0 };
        let user_timeout = if self.user_timeout.is_some() { 4 } else { 0 };
        let fast_open = self.fast_open.map_or(0, FastOpenCookie::option_length);
        let ecn = self.ecn.map_or(0, EcnCounts::option_length);
        let taken = mss + scale + permitted + timestamps + user_timeout + fast_open + ecn;
        taken + self.sack_length(taken)
    }

    /// Returns the length in bytes of the SACK option with its NOPs. Other options already take
    /// `taken` bytes, so the option contains only as many blocks as still fit. The length is zero
    /// if that is none.
    fn sack_length(&self, taken: usize) -> usize {
        let room = (40_usize.saturating_sub(taken + 4)) / 8;
        match self.sack.as_slice().len().min(room) {
            0 => 0,
            blocks => 4 + 8 * blocks,
        }
    }

    /// Writes the options to the start of `field`, aligned by NOPs, and returns their
    /// [length](TcpOptions::length). If not all SACK blocks fit, only the first ones are written.
    ///
    /// # Panics
    /// If `field` is shorter than [`TcpOptions::length`].
    pub fn emit(&self, field: &mut [u8]) -> usize {
        if let Some(words) = self.words_of_syn() {
            let field = &mut field[..size_of_val(&words)];
            for (place, word) in field.as_chunks_mut().0.iter_mut().zip(words) {
                *place = word.to_be_bytes();
            }
            return field.len();
        }
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            field[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
            at
        };
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            put(&[MSS, 4, high, low]);
        }
        if let Some(shift) = self.window_scale {
            put(&[NOP, WINDOW_SCALE, 3, shift]);
        }
        if self.sack_permitted {
            put(if self.timestamps.is_some() {
                &[SACK_PERMITTED, 2]
            } else {
                &[NOP, NOP, SACK_PERMITTED, 2]
            });
        }
        if let Some(timestamps) = self.timestamps {
            let prefix = TIMESTAMPS_PREFIX.to_be_bytes();
            put(if self.sack_permitted { &prefix[2..] } else { &prefix });
            put(&timestamps.value.to_be_bytes());
            put(&timestamps.echo.to_be_bytes());
        }
        if let Some(user_timeout) = self.user_timeout {
            let [high, low] = user_timeout.word().to_be_bytes();
            put(&[USER_TIMEOUT, 4, high, low]);
        }
        if let Some(cookie) = self.fast_open {
            put(&cookie.emit()[..cookie.option_length()]);
        }
        if let Some(ecn) = self.ecn {
            put(&ecn.emit()[..ecn.option_length()]);
        }
        let taken = put(&[]);
        let sack_length = self.sack_length(taken);
        if let Some(option_length @ 1..) = sack_length.checked_sub(2) {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "four blocks have at most 34 bytes"
            )]
            put(&[NOP, NOP, SACK, option_length as u8]);
            for block in &self.sack.as_slice()[..(option_length - 2) / 8] {
                put(&block.left.number().to_be_bytes());
                put(&block.right.number().to_be_bytes());
            }
        }
        put(&[])
    }

    /// Returns the words of the option field, if it contains exactly the usual options of a SYN.
    fn words_of_syn(&self) -> Option<[u32; 5]> {
        let (mss, shift, timestamps) = (self.mss?, self.window_scale?, self.timestamps?);
        let others = self.user_timeout.is_some() || self.fast_open.is_some() || self.ecn.is_some();
        if !self.sack_permitted || others || !self.sack.is_empty() {
            return None;
        }
        Some(words_of_syn(mss, shift, timestamps))
    }
}

/// Returns the words of the usual options of a SYN: MSS, SACK-permitted, timestamps and window
/// scale.
#[inline(always)]
pub(crate) const fn words_of_syn(mss: u16, shift: u8, timestamps: Timestamps) -> [u32; 5] {
    let (mss, shift) = (mss as u32, shift as u32);
    let (mss, scale) = (MSS_PREFIX << 16 | mss, WINDOW_SCALE_PREFIX << 8 | shift);
    [mss, scale, PERMITTED_AND_TIMESTAMPS, timestamps.value, timestamps.echo]
}

/// Returns the big-endian word at offset `at`.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests;
