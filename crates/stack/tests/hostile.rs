//! Tests with arbitrary frames. They must not make a host panic, violate its invariants, or let its
//! memory grow without bound.

use linerate_testkit::Side;
use linerate_testkit::hostile::{busy_host, feed, mend_checksums, real_frames};
use linerate_units::{Duration, Instant};
use linerate_wire::Ipv4Packet;
use proptest::prelude::*;
use proptest::sample::Index;

const BEGIN: Instant = Instant::from_nanos(2_000_000_000_000);

/// A modification of a frame: the index of the frame, the positions and new values of the
/// overwritten bytes, and the length to which the frame is cut, if it is cut.
type Modification = (Index, Vec<(Index, u8)>, Option<Index>);

fn modification() -> impl Strategy<Value = Modification> {
    let changes = prop::collection::vec(any::<(Index, u8)>(), 0..4);
    (any::<Index>(), changes, prop::option::weighted(0.2, any::<Index>()))
}

/// Returns one of the recorded frames with the modification applied. Its destination MAC address is
/// that of the right host and its checksums are valid, so that it passes the first checks of the
/// host.
fn modify(real: &[Vec<u8>], (which, changes, end): &Modification) -> Vec<u8> {
    let mut frame = which.get(real).clone();
    frame[..6].copy_from_slice(&Side::Right.mac().octets());
    for (place, value) in changes {
        let place = place.index(frame.len());
        frame[place] = *value;
    }
    if let Some(end) = end {
        frame.truncate(end.index(frame.len()) + 1);
    }
    mend_checksums(&mut frame);
    frame
}

proptest! {
    #[test]
    fn random_bytes_break_nothing(

        frames in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..120), 0_u64..100_000),
            1..60,
        ),
    ) {
        let mut host = busy_host();
        let mut now = BEGIN;
        for (frame, wait) in frames {
            now += Duration::from_micros(wait);
            feed(&mut host, now, frame);
        }
    }

    #[test]

    fn modified_frames_break_nothing(
        frames in prop::collection::vec((modification(), 0_u64..3_000_000), 1..80),
    ) {
        let real = real_frames();
        let mut host = busy_host();
        let mut now = BEGIN;
        for (how, wait) in &frames {
            now += Duration::from_micros(*wait);
            feed(&mut host, now, modify(&real, how));
        }
    }
}

#[test]
fn recorded_frames_cover_every_protocol() {
    let frames = real_frames();
    let kinds: Vec<_> = frames
        .iter()
        .map(|frame| {
            Ipv4Packet::parse(&frame[14..]).map_or(0, |packet| packet.header.protocol.number())
        })
        .collect();
    for protocol in [0, 1, 6, 17] {
        assert!(kinds.contains(&protocol), "{kinds:?}");
    }
    assert!(frames.len() >= 20, "{}", frames.len());
}
