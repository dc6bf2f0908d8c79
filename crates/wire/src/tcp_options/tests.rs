//! Tests of parsing and emitting TCP options.

use super::*;
use crate::EcnOrder;

impl TcpOptions {
    /// Parses an option field byte by byte, without the faster paths.
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
fn the_options_of_a_syn_survive_emitting_and_parsing() {
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
fn the_experimental_option_of_fast_open_survives_emitting_and_parsing() {
    for (cookie, bytes) in [
        (FastOpenCookie::REQUEST, &[254, 4, 0xf9, 0x89][..]),
        (FastOpenCookie::new(&[1, 2, 3, 4]).unwrap(), &[254, 8, 0xf9, 0x89, 1, 2, 3, 4]),
        (FastOpenCookie::new(&[7; 6]).unwrap(), &[1, 1, 254, 10, 0xf9, 0x89, 7, 7, 7, 7, 7, 7]),
    ] {
        let options = TcpOptions { fast_open: Some(cookie.carried(true)), ..TcpOptions::default() };
        let mut field = [0; 40];
        let length = options.emit(&mut field);
        assert_eq!((&field[..length], length), (bytes, options.length()));
        assert_eq!(TcpOptions::parse(bytes), options);
    }
}

#[test]
fn other_experiments_are_not_fast_open_and_the_last_cookie_counts() {
    for other in [
        &[254, 4, 0xf9, 0x88][..],
        &[254, 3, 0xf9, 0],
        &[253, 4, 0xf9, 0x89],
        &[254, 7, 0xf9, 0x89, 1, 2, 3, 0],
    ] {
        assert_eq!(TcpOptions::parse(other).fast_open, None, "{other:?}");
    }
    let both = [254, 4, 0xf9, 0x89, 34, 6, 1, 2, 3, 4];
    assert_eq!(TcpOptions::parse(&both).fast_open, FastOpenCookie::new(&[1, 2, 3, 4]));
}

#[test]
fn timestamps_alone_are_parsed_as_they_are_byte_by_byte() {
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
fn timestamps_before_blocks_are_parsed_as_they_are_byte_by_byte() {
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

/// Parsing word by word gives the same options as parsing byte by byte. The test fields are SYNs of
/// this stack and of Linux, also with each single bit inverted and with each truncation.
#[test]
fn parsing_by_words_equals_parsing_by_bytes() {
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
fn three_sack_blocks_fit_beside_timestamps() {
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
fn impossible_lengths_end_the_options() {
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

/// RFC 9293 MUST-68, MUST-69: every option except the NOP has a length byte, and padding is zero.
/// Emitted options fill the field, so there is no padding.
#[test]
fn emitted_options_have_lengths_and_fill_the_field() {
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
        // Timestamps and the byte counters of AccECN together leave no room for a SACK block.
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

/// RFC 7413 §4.1.1: a cookie is empty, or has 4 to 16 bytes, and an even length.
#[test]
fn a_cookie_of_an_impossible_length_is_ignored() {
    for length in 0..=18 {
        let mut field = [7; 20];
        field[..2].copy_from_slice(&[34, length + 2]);
        let read = TcpOptions::parse(&field[..usize::from(length) + 2]).fast_open;
        let is_possible = length == 0 || ((4..=16).contains(&length) && length % 2 == 0);
        assert_eq!(read.is_some(), is_possible, "{length}");
        assert!(read.is_none_or(|cookie| cookie.as_bytes() == &field[2..usize::from(length) + 2]));
    }
}

/// RFC 7413 §4.2.2 step 1: the longest cookie fits a SYN with all other current options.
#[test]
fn the_longest_cookie_fits_a_syn_with_all_other_options() {
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

/// RFC 5482 §3.4: a User Timeout option with a value of zero is ignored.
#[test]
fn a_user_timeout_of_zero_is_ignored() {
    let read = |high, low| TcpOptions::parse(&[USER_TIMEOUT, 4, high, low]).user_timeout;
    assert_eq!((read(0, 0), read(0x80, 0)), (None, None));
    assert_eq!(read(0x80, 2), Some(UserTimeout { minutes: true, count: 2 }));
    assert_eq!(read(0x7f, 0xff), Some(UserTimeout { minutes: false, count: UserTimeout::MOST }));
}

/// RFC 9293 MUST-4: the three options that every implementation must support.
#[test]
fn nop_mss_and_end_of_options_are_parsed() {
    let size = |field: &[u8]| TcpOptions::parse(field).mss;
    assert_eq!(size(&[NOP, NOP, MSS, 4, 5, 180, NOP, END]), Some(1_460));
    assert_eq!(size(&[END, MSS, 4, 5, 180]), None);
    assert_eq!(size(&[MSS, 4, 5, 180, END, MSS, 4, 9, 9]), Some(1_460));
}
