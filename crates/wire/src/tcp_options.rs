//! TCP options: maximum segment size (RFC 9293 §3.7.1), window scale and timestamps (RFC 7323),
//! selective acknowledgement (RFC 2018), user timeout (RFC 5482), Fast Open (RFC 7413), accurate ECN (RFC 9768).

use crate::{EcnCounts, FastOpenCookie, SeqNum};

/// The first word of an option field that holds timestamps alone, in the aligned layout that RFC
/// 7323 appendix A recommends and every stack sends: NOP, NOP, kind 8, length 10.
pub(crate) const TIMESTAMPS_PREFIX: u32 = 0x0101_080a;
/// Timestamps behind SACK-permitted, which takes the place of the NOPs, and that behind NOPs.
const PERMITTED_AND_TIMESTAMPS: u32 = 0x0402_080a;
const PERMITTED: u32 = 0x0101_0402;
/// What is in front of the MSS, and of a window scale that is aligned by a NOP.
const MSS_PREFIX: u32 = 0x0204;
const WINDOW_SCALE_PREFIX: u32 = 0x01_0303;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
/// NOP, NOP, and the kind of SACK.
const SACK_PREFIX: u32 = 0x01_0105;
const TIMESTAMPS: u8 = 8;
const USER_TIMEOUT: u8 = 28;
const FAST_OPEN: u8 = 34;

/// TSval and TSecr (RFC 7323 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the peer's clock as the sender last saw it.
    pub echo: u32,
}

impl Timestamps {
    /// The timestamps of an option field that holds nothing else, in the aligned layout.
    #[inline]
    #[must_use]
    pub fn alone(field: &[u8]) -> Option<Self> {
        let (words, []) = field.as_chunks::<4>() else { return None };
        let [prefix, value, echo] = words else { return None };
        (u32::from_be_bytes(*prefix) == TIMESTAMPS_PREFIX)
            .then(|| Self { value: u32::from_be_bytes(*value), echo: u32::from_be_bytes(*echo) })
    }

    /// The timestamps of an option field, in which they are alone, or before blocks, more often than not.
    #[inline]
    #[must_use]
    pub fn among(field: &[u8]) -> Option<Self> {
        Self::alone(field)
            .or_else(|| Self::before_blocks(field).map(|(timestamps, _)| timestamps))
            .or_else(|| TcpOptions::parse(field).timestamps)
    }

    /// The timestamps and the blocks of an option field that holds them in this order, aligned, and nothing else: of what
    /// tells of a hole, nearly every one.
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

/// One block of data that arrived beyond a hole: from `left` up to, not including, `right`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: SeqNum,
    /// The sequence number after the block's last.
    pub right: SeqNum,
}

/// Up to four blocks, as many as an option field can hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [SackBlock; Self::MOST],
    count: u8,
}

impl SackBlocks {
    /// Blocks that fit beside nothing else.
    pub const MOST: usize = 4;

    /// The blocks of an option field, in which there is nothing else but timestamps more often than not.
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

    /// Adds a block; a fifth is left out, the option has no room for it.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = block;
            self.count += 1;
        }
    }

    /// The blocks in the order of the option.
    #[must_use]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Is there no block?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// How long its sender lets data go unacknowledged before it gives up (RFC 5482 §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserTimeout {
    /// The number counts minutes (G = 1), and not seconds.
    pub minutes: bool,
    /// Fifteen bits, of which zero is reserved.
    pub count: u16,
}

impl UserTimeout {
    const MINUTES: u16 = 0x8000;
    /// The largest count.
    pub const MOST: u16 = 0x7fff;

    /// The timeout of this word, unless it is a reserved one (RFC 5482 §3.4).
    fn of(word: u16) -> Option<Self> {
        let count = word & Self::MOST;
        (count > 0).then_some(Self { minutes: word & Self::MINUTES != 0, count })
    }

    fn word(self) -> u16 {
        self.count & Self::MOST | if self.minutes { Self::MINUTES } else { 0 }
    }
}

/// The options that this stack understands; each of the others is skipped by its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// The largest segment that the sender of this option can receive; only on a SYN.
    pub mss: Option<u16>,
    /// The shift of later window fields; only on a SYN.
    pub window_scale: Option<u8>,
    /// May the peer send selective acknowledgements? Only on a SYN.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// User timeout.
    pub user_timeout: Option<UserTimeout>,
    /// A Fast Open cookie, or the wish for one; only on a SYN.
    pub fast_open: Option<FastOpenCookie>,
    /// Bytes received under each ECN codepoint; not on a SYN.
    pub ecn: Option<EcnCounts>,
    /// Data received beyond holes.
    pub sack: SackBlocks,
}

impl TcpOptions {
    /// Bytes of a whole field of options.
    pub const MAX_LENGTH: usize = 40;

    /// Bytes of timestamps in the aligned layout.
    pub const TIMESTAMPS_LENGTH: usize = 12;

    /// Bytes of the options that nearly every SYN has.
    pub const SYN_LENGTH: usize = 20;

    /// Reads an option field. An option whose length is impossible ends the reading (RFC 9293
    /// MUST-7: illegal lengths are survived); what was read before it counts. An option of the
    /// wrong length for its kind is skipped, and of a repeated one the last counts.
    #[inline]
    #[must_use]
    pub fn parse(field: &[u8]) -> Self {
        // Nearly every field: read at once, and not octet by octet.
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

    /// Reads the field of nearly every SYN: five words, in the order in which we write them or in that of Linux.
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

    /// Takes in the options of `rest`, one after the other.
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

    /// Takes in options from the start of `field` as long as they come in words of four octets, as those of a SYN
    /// mostly do, and returns the rest.
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

    /// Takes in one option.
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
            (FAST_OPEN, data) => self.fast_open = FastOpenCookie::new(data).or(self.fast_open),
            (SACK, data) if !data.is_empty() && data.len().is_multiple_of(8) => {
                self.sack = SackBlocks::of(data.as_chunks().0);
            }
            (kind, data) => self.ecn = EcnCounts::parse(kind, data).or(self.ecn),
        }
    }

    /// Bytes that [`TcpOptions::emit`] writes: a multiple of four, at most forty.
    #[must_use]
    pub fn length(&self) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        // It takes the place of the NOPs in front of timestamps.
        let permitted = if self.sack_permitted && self.timestamps.is_none() { 4 } else { 0 };
        let timestamps = if self.timestamps.is_some() { Self::TIMESTAMPS_LENGTH } else { 0 };
        let user_timeout = if self.user_timeout.is_some() { 4 } else { 0 };
        let fast_open = self.fast_open.map_or(0, FastOpenCookie::option_length);
        let ecn = self.ecn.map_or(0, EcnCounts::option_length);
        let taken = mss + scale + permitted + timestamps + user_timeout + fast_open + ecn;
        taken + self.sack_length(taken)
    }

    /// Bytes of the SACK option when `taken` bytes of the field are used by others.
    fn sack_length(&self, taken: usize) -> usize {
        let room = (40_usize.saturating_sub(taken + 4)) / 8;
        match self.sack.as_slice().len().min(room) {
            0 => 0,
            blocks => 4 + 8 * blocks,
        }
    }

    /// Writes the options to the start of `field`, each aligned by NOPs in front of it, and returns
    /// the bytes written, [`TcpOptions::length`]. Blocks of SACK that do not fit beside the rest
    /// are left out from the end.
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
            let bytes = cookie.as_bytes();
            put(&[NOP, NOP][..cookie.padding()]);
            #[allow(
                clippy::cast_possible_truncation,
                reason = "a cookie has sixteen bytes at the most"
            )]
            put(&[FAST_OPEN, 2 + bytes.len() as u8]);
            put(bytes);
        }
        if let Some(ecn) = self.ecn {
            put(&ecn.emit()[..ecn.option_length()]);
        }
        let taken = put(&[]);
        let sack_length = self.sack_length(taken);
        if let Some(option_length @ 1..) = sack_length.checked_sub(2) {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "four blocks make 34 bytes at the most"
            )]
            put(&[NOP, NOP, SACK, option_length as u8]);
            for block in &self.sack.as_slice()[..(option_length - 2) / 8] {
                put(&block.left.number().to_be_bytes());
                put(&block.right.number().to_be_bytes());
            }
        }
        put(&[])
    }

    /// The field in words, if it is that of nearly every SYN.
    fn words_of_syn(&self) -> Option<[u32; 5]> {
        let (mss, shift, timestamps) = (self.mss?, self.window_scale?, self.timestamps?);
        let others = self.user_timeout.is_some() || self.fast_open.is_some() || self.ecn.is_some();
        if !self.sack_permitted || others || !self.sack.is_empty() {
            return None;
        }
        Some(words_of_syn(mss, shift, timestamps))
    }
}

/// The options of nearly every SYN.
#[inline(always)]
pub(crate) const fn words_of_syn(mss: u16, shift: u8, timestamps: Timestamps) -> [u32; 5] {
    let (mss, shift) = (mss as u32, shift as u32);
    let (mss, scale) = (MSS_PREFIX << 16 | mss, WINDOW_SCALE_PREFIX << 8 | shift);
    [mss, scale, PERMITTED_AND_TIMESTAMPS, timestamps.value, timestamps.echo]
}

/// The big-endian word at `at`, which the caller has made sure is there.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EcnOrder;

    impl TcpOptions {
        /// What is read without a look at whole words.
        fn by_octets(field: &[u8]) -> Self {
            let mut options = Self::default();
            options.note_by_octets(field);
            options
        }
    }

    fn block(left: u32, right: u32) -> SackBlock {
        SackBlock { left: SeqNum::new(left), right: SeqNum::new(right) }
    }

    #[test]
    fn the_options_of_a_syn_are_read_back() {
        let options = TcpOptions {
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            user_timeout: Some(UserTimeout { minutes: true, count: 5 }),
            fast_open: FastOpenCookie::new(&[1, 2, 3, 4, 5, 6, 7, 8]),
            ecn: None,
            sack: SackBlocks::default(),
        };
        let mut field = [0xff; 40];
        let length = options.emit(&mut field);
        assert_eq!(length, options.length());
        assert_eq!(TcpOptions::parse(&field[..length]), options);
    }

    #[test]
    fn timestamps_alone_are_read_at_once_as_they_are_one_by_one() {
        let timestamps = Timestamps { value: 0x0102_0304, echo: 0xfffe_fdfc };
        let mut field = [0; 12];
        TcpOptions { timestamps: Some(timestamps), ..TcpOptions::default() }.emit(&mut field);
        assert_eq!(Timestamps::alone(&field), Some(timestamps));
        for octet in 0..field.len() {
            for bit in 0..8 {
                let mut field = field;
                field[octet] ^= 1 << bit;
                assert_eq!(TcpOptions::parse(&field), TcpOptions::by_octets(&field), "{field:?}");
            }
        }
        for shorter in 0..field.len() {
            assert_eq!(Timestamps::alone(&field[..shorter]), None);
        }
        assert_eq!(Timestamps::alone(&[&field[..], &[NOP; 4]].concat()), None);
    }

    #[test]
    fn timestamps_before_blocks_are_read_at_once_as_they_are_one_by_one() {
        for count in 1..=3 {
            let mut options = TcpOptions {
                timestamps: Some(Timestamps { value: 7, echo: 9 }),
                ..TcpOptions::default()
            };
            (0..count).for_each(|number| options.sack.push(block(number * 100, number * 100 + 50)));
            let mut field = [0; 40];
            let length = options.emit(&mut field);
            assert!(
                Timestamps::before_blocks(&field[..length])
                    .is_some_and(|(_, blocks)| blocks.len() == count as usize)
            );
            for end in 0..=field.len() {
                for bit in 0..8 * end {
                    let mut changed = field[..end].to_vec();
                    changed[bit / 8] ^= 1 << (bit % 8);
                    let read = TcpOptions::by_octets(&changed);
                    let at_once = (Timestamps::among(&changed), SackBlocks::among(&changed));
                    assert_eq!(at_once, (read.timestamps, read.sack), "{changed:?}");
                }
            }
        }
    }

    /// The fields of a SYN as this stack and as Linux write them, and without timestamps: read by words as octet by
    /// octet, also with any bit wrong, and cut anywhere.
    #[test]
    fn what_is_aligned_is_read_by_words_as_it_is_one_by_one() {
        let fields: [&[u8]; 3] = [
            &[2, 4, 5, 180, 1, 3, 3, 7, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 9],
            &[2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 9, 1, 3, 3, 7],
            &[2, 4, 5, 180, 1, 3, 3, 7, 1, 1, 4, 2],
        ];
        for field in fields {
            assert!(TcpOptions::default().note_aligned(field).is_empty(), "{field:?}");
            for length in 0..=field.len() {
                for bit in 0..8 * length {
                    let mut changed = field[..length].to_vec();
                    changed[bit / 8] ^= 1 << (bit % 8);
                    assert_eq!(
                        TcpOptions::parse(&changed),
                        TcpOptions::by_octets(&changed),
                        "{changed:?}"
                    );
                }
                assert_eq!(
                    TcpOptions::parse(&field[..length]),
                    TcpOptions::by_octets(&field[..length])
                );
            }
        }
    }

    #[test]
    fn beside_timestamps_three_blocks_fit() {
        let mut options =
            TcpOptions { timestamps: Some(Timestamps::default()), ..TcpOptions::default() };
        for left in [10, 30, 50, 70] {
            options.sack.push(block(left, left + 10));
        }
        let mut field = [0; 40];
        let length = options.emit(&mut field);
        assert_eq!(length, 40);
        assert_eq!(TcpOptions::parse(&field).sack.as_slice(), &options.sack.as_slice()[..3]);
    }

    #[test]
    fn impossible_lengths_end_the_reading_without_harm() {
        for field in [
            &[MSS][..],
            &[MSS, 0],
            &[MSS, 1, 0, 0],
            &[MSS, 40, 0, 0],
            &[99, 2],
            &[SACK, 2],
            &[SACK, 9, 0, 0, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(TcpOptions::parse(field), TcpOptions::default(), "{field:?}");
        }
        let field = [NOP, NOP, SACK_PERMITTED, 2, 77, 4, 0, 0, MSS, 4, 1, 2];
        let options = TcpOptions::parse(&field);
        assert_eq!((options.sack_permitted, options.mss), (true, Some(258)));
    }

    /// RFC 9293 MUST-68, MUST-69: every option but the NOP has its length, and together they fill the
    /// field, so that there is no padding that could hold anything but zeros.
    #[test]
    fn what_is_written_is_options_with_their_lengths_and_nothing_else() {
        for bits in 0..256_u32 {
            let is_set = |bit: u32| bits >> bit & 1 == 1;
            let mut options = TcpOptions {
                mss: is_set(0).then_some(1_460),
                window_scale: is_set(1).then_some(7),
                sack_permitted: is_set(2),
                timestamps: is_set(3).then_some(Timestamps { value: 1, echo: 2 }),
                user_timeout: is_set(5).then_some(UserTimeout { minutes: false, count: 9 }),
                fast_open: is_set(6).then_some(FastOpenCookie::REQUEST),
                ecn: is_set(7).then_some(EcnCounts::new(EcnOrder::Zero, 1, 2, 3).cut_to(1)),
                sack: SackBlocks::default(),
            };
            // Beside timestamps and counts of bytes a block may find no room.
            let has_blocks = is_set(4) && !(is_set(3) && is_set(7));
            if has_blocks {
                options.sack.push(block(10, 20));
            }
            let mut field = [0xff; 40];
            let length = options.emit(&mut field);
            assert!(length.is_multiple_of(4));
            let (mut at, mut kinds) = (0, 0);
            while at < length {
                assert_ne!(field[at], END);
                at += if field[at] == NOP { 1 } else { usize::from(field[at + 1]) };
                kinds += 1;
            }
            assert_eq!(at, length, "{options:?}");
            assert!(kinds >= bits.count_ones() - u32::from(is_set(4) && !has_blocks));
        }
    }

    /// RFC 7413 §4.1.1: 0, or 4 to 16 bytes, and an even number of them.
    #[test]
    fn a_cookie_of_an_impossible_length_is_none() {
        for length in 0..=18 {
            let mut field = [7; 20];
            field[..2].copy_from_slice(&[FAST_OPEN, length + 2]);
            let read = TcpOptions::parse(&field[..usize::from(length) + 2]).fast_open;
            let is_possible = length == 0 || ((4..=16).contains(&length) && length % 2 == 0);
            assert_eq!(read.is_some(), is_possible, "{length}");
            assert!(
                read.is_none_or(|cookie| cookie.as_bytes() == &field[2..usize::from(length) + 2])
            );
        }
    }

    /// RFC 7413 §4.2.2 step 1: the longest cookie fits beside everything that a SYN says today.
    #[test]
    fn the_longest_cookie_fits_on_a_syn_of_today() {
        let options = TcpOptions {
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 1, echo: 0 }),
            fast_open: FastOpenCookie::new(&[9; 16]),
            ..TcpOptions::default()
        };
        let mut field = [0; TcpOptions::MAX_LENGTH];
        assert_eq!((options.length(), options.emit(&mut field)), (40, 40));
        assert_eq!(TcpOptions::parse(&field), options);
    }

    /// RFC 5482 §3.4.
    #[test]
    fn a_user_timeout_of_zero_is_none() {
        let read = |high, low| TcpOptions::parse(&[USER_TIMEOUT, 4, high, low]).user_timeout;
        assert_eq!((read(0, 0), read(0x80, 0)), (None, None));
        assert_eq!(read(0x80, 2), Some(UserTimeout { minutes: true, count: 2 }));
        assert_eq!(
            read(0x7f, 0xff),
            Some(UserTimeout { minutes: false, count: UserTimeout::MOST })
        );
    }

    /// RFC 9293 MUST-4: the three options that every implementation has.
    #[test]
    fn no_operation_maximum_segment_size_and_the_end_are_understood() {
        let size = |field: &[u8]| TcpOptions::parse(field).mss;
        assert_eq!(size(&[NOP, NOP, MSS, 4, 5, 180, NOP, END]), Some(1_460));
        assert_eq!(size(&[END, MSS, 4, 5, 180]), None);
        assert_eq!(size(&[MSS, 4, 5, 180, END, MSS, 4, 9, 9]), Some(1_460));
    }
}
