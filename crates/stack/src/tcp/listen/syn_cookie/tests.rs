use super::*;
use core::net::{Ipv4Addr, SocketAddrV4};
use proptest::prelude::*;

fn at(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), port)
}

fn issuer() -> SynCookieIssuer {
    SynCookieIssuer::new(&Keys::new([3; 32]))
}

fn after(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Returns the acknowledgement of a SYN-ACK whose sequence number is `cookie`. The acknowledgement
/// echoes the timestamp of the SYN-ACK.
fn ack<'a>(kept: &StoredSyn, cookie: SeqNum, now: Instant, field: &'a mut [u8; 40]) -> Segment<'a> {
    #[allow(clippy::cast_possible_truncation, reason = "the clock of timestamps is the low half")]
    let echo = kept.timestamp_offset(77, now).wrapping_add(now.as_millis() as u32);
    let timestamps = kept.extras.map(|_| Timestamps { value: 5, echo });
    let length = TcpOptions { timestamps, ..TcpOptions::default() }.emit(field);
    Segment {
        source_port: 2,
        destination_port: 1,
        seq: kept.irs + 1,
        ack: cookie + 1,
        offset_and_flags: 0x5000 | TcpFlags::ACK.bits(),
        window: 10,
        urgent: 0,
        options: &field[..length],
        payload: &[],
        joined: None,
    }
}

fn kept() -> impl Strategy<Value = StoredSyn> {
    let extras = (prop::option::of(0_u8..15), any::<bool>(), any::<bool>()).prop_map(
        |(window_scale, sack_permitted, ecn)| CookieOptions { window_scale, sack_permitted, ecn },
    );
    (any::<u32>(), 0_u8..8, prop::option::of(extras)).prop_map(|(irs, size, extras)| StoredSyn {
        irs: SeqNum::new(irs),
        size,
        extras,
    })
}

proptest! {
    #[test]

    fn a_cookie_returns_its_contents(
        kept in kept(),
        millis in 0_u64..10_000_000,
        later in 0_u64..64,
    ) {
        let made = Instant::ZERO + Duration::from_millis(millis);
        let cookie = issuer().make(made, &Flow::new(at(1), at(2)), &kept);
        let mut field = [0; 40];
        let ack = ack(&kept, cookie, made, &mut field);
        let now = made + Duration::from_secs(later);
        prop_assert_eq!(issuer().read(now, &Flow::new(at(1), at(2)), &ack), Some(kept));
        let mut field = [0; 40];
        let syn = kept.syn(&ack, false, &mut field);
        prop_assert_eq!(StoredSyn::of(&syn, true, false), kept);
    }

    #[test]
    fn a_cookie_with_a_changed_bit_is_invalid(kept in kept(), bit in 0_u32..32) {
        let cookie = issuer().make(after(1_000), &Flow::new(at(1), at(2)), &kept);
        let mut field = [0; 40];
        let unchanged = ack(&kept, cookie, after(1_000), &mut field);
        let flow = Flow::new(at(1), at(2));
        let read = |segment: &Segment<'_>| issuer().read(after(1_000), &flow, segment);
        let other = |number: SeqNum| SeqNum::new(number.number() ^ 1 << bit);
        // An acknowledgement with a changed bit is valid by chance with probability 2^-24. The test
        // would then fail for a random input, but this is too rare to matter.
        prop_assert_eq!(read(&Segment { ack: other(unchanged.ack), ..unchanged }), None);
        prop_assert_eq!(read(&Segment { seq: other(unchanged.seq), ..unchanged }), None);
    }
}

const PLAIN: StoredSyn = StoredSyn { irs: SeqNum::new(9), size: 6, extras: None };

#[test]
fn a_cookie_is_valid_for_its_period_and_the_next() {
    let cookie = issuer().make(after(64), &Flow::new(at(1), at(2)), &PLAIN);
    let mut field = [0; 40];
    let ack = ack(&PLAIN, cookie, after(64), &mut field);
    let is_good = |seconds| issuer().read(after(seconds), &Flow::new(at(1), at(2)), &ack).is_some();
    assert!(is_good(64) && is_good(191));
    assert!(!is_good(192), "too old");
    assert!(!is_good(63), "from the future");
    assert!(!is_good(64 + 32 * 64), "of another period with the same five bits");
}

#[test]
fn a_cookie_is_valid_for_its_ends_and_host_only() {
    let cookie = issuer().make(after(64), &Flow::new(at(1), at(2)), &PLAIN);
    let mut field = [0; 40];
    let ack = ack(&PLAIN, cookie, after(64), &mut field);
    assert_eq!(issuer().read(after(64), &Flow::new(at(1), at(3)), &ack), None);
    assert_eq!(issuer().read(after(64), &Flow::new(at(4), at(2)), &ack), None);
    let mut other = SynCookieIssuer::new(&Keys::new([4; 32]));
    assert_eq!(other.read(after(64), &Flow::new(at(1), at(2)), &ack), None);
}

#[test]
fn a_cookie_is_valid_for_its_addresses_only() {
    let kept = StoredSyn { irs: SeqNum::new(9), size: 3, extras: None };
    let cookie = issuer().make(after(5), &Flow::new(at(1), at(2)), &kept);
    let mut field = [0; 40];
    let ack = ack(&kept, cookie, after(5), &mut field);
    let other_host = |port| SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 9), port);
    assert_eq!(issuer().read(after(5), &Flow::new(at(1), at(2)), &ack), Some(kept));
    assert_eq!(issuer().read(after(5), &Flow::new(other_host(1), at(2)), &ack), None);
    assert_eq!(issuer().read(after(5), &Flow::new(at(1), other_host(2)), &ack), None);
}

#[test]
fn a_changed_timestamp_echo_invalidates_the_cookie() {
    let extras = CookieOptions { window_scale: Some(7), sack_permitted: true, ecn: false };
    let kept = StoredSyn { extras: Some(extras), ..PLAIN };
    let cookie = issuer().make(after(64), &Flow::new(at(1), at(2)), &kept);
    let mut field = [0; 40];
    let unchanged = ack(&kept, cookie, after(64), &mut field);
    let mut changed = unchanged.options.to_vec();
    let last = changed.len() - 1;
    changed[last] ^= 1;
    assert_eq!(
        issuer().read(
            after(64),
            &Flow::new(at(1), at(2)),
            &Segment { options: &changed, ..unchanged }
        ),
        None
    );
    assert_eq!(
        issuer().read(after(64), &Flow::new(at(1), at(2)), &Segment { options: &[], ..unchanged }),
        None
    );
    assert_eq!(issuer().read(after(64), &Flow::new(at(1), at(2)), &unchanged), Some(kept));
}

#[test]
fn the_stored_mss_never_exceeds_that_of_the_peer() {
    for (announced, kept) in [
        (None, 536),
        (Some(20), 48),
        (Some(1_459), 1_440),
        (Some(1_460), 1_460),
        (Some(65_000), 8_960),
    ] {
        let mut field = [0; 40];
        let length = TcpOptions { mss: announced, ..TcpOptions::default() }.emit(&mut field);
        let mut unused = [0; 40];
        let syn = Segment {
            options: &field[..length],
            ..ack(&PLAIN, SeqNum::new(0), after(0), &mut unused)
        };
        assert_eq!(SIZES[usize::from(StoredSyn::of(&syn, true, false).size)], kept);
    }
}

/// RFC 7323 §2.3: a window scale shift above 14 is treated as 14.
#[test]
fn a_shift_above_fourteen_is_stored_as_fourteen() {
    for announced in [14, 15, 16, 200, 255] {
        let extras =
            CookieOptions { window_scale: Some(announced), sack_permitted: false, ecn: false };
        let kept = CookieOptions { window_scale: Some(14), ..extras };
        assert_eq!(CookieOptions::from_bits(extras.bits()), kept, "of a shift of {announced}");
    }
}

#[test]
fn a_cookie_is_taken_once() {
    let mut issuer = issuer();
    assert!(issuer.take(&Flow::new(at(1), at(2)), SeqNum::new(7)));
    assert!(!issuer.take(&Flow::new(at(1), at(2)), SeqNum::new(7)));
    assert!(issuer.take(&Flow::new(at(1), at(2)), SeqNum::new(8)));
}
