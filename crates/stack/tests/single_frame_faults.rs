//! Tests with a fault in a single frame: the n-th segment of a transfer is damaged or lost. The
//! transfer is repeated for n = 1, 2, 3 and so on, until it has no n-th segment. A damaged frame is
//! dropped because of its checksum, so it must cost no more time than a lost frame.

use linerate_testkit::transfer::{established, listen};
use linerate_testkit::{Fate, Line, Network, Pair, Setup, Side, Transfer};
use linerate_units::{Duration, Rate};
use linerate_wire::{EthernetHeader, Ipv4Header, TcpHeader};
use std::cell::Cell;
use std::rc::Rc;

const BYTES: usize = 30_000;

/// The places in a frame at which a test inverts a bit, each with its name and its offset. They are
/// in the significant header fields and in the checksums.
const PLACES: [(&str, usize); 12] = [
    ("version and header length", IP),
    ("total length", IP + 3),
    ("fragment offset", IP + 7),
    ("protocol", IP + 9),
    ("header checksum", IP + 10),
    ("source address", IP + 15),
    ("destination port", TCP + 3),
    ("sequence number", TCP + 7),
    ("acknowledgement", TCP + 11),
    ("flags", TCP + 13),
    ("checksum", TCP + 16),
    ("the last byte", usize::MAX),
];
const IP: usize = EthernetHeader::LENGTH;
const TCP: usize = IP + Ipv4Header::LENGTH;

/// Creates two hosts on a path with a round-trip time of 10 ms, on which a full frame takes 0.12 ms
/// to transmit.
fn pair(nth: u32) -> Pair {
    let line = Line { rate: Rate::from_bits_per_second(100_000_000), queue: 1 << 20 };
    let network = Network { line: Some(line), ..Network::clean(Duration::from_millis(5)) };
    Pair::new(&Setup { seed: u64::from(nth), network, ..Setup::default() }, |_, config| {
        config.tcp.send_buffer = (16 << 10).into();
        config.tcp.receive_buffer = (16 << 10).into();
    })
}

/// Transfers data in both directions. `accident` determines the fate of the n-th segment that the
/// host `from` sends. Returns three values: the duration, whether there was an n-th segment, and
/// the number of frames that the hosts refused as invalid.
fn transfer_with(
    from: Side,
    nth: u32,
    accident: impl Fn(&[u8]) -> Fate + 'static,
) -> (Duration, bool, u64) {
    let mut pair = pair(nth);
    let happened = Rc::new(Cell::new(false));
    let (happening, mut seen) = (Rc::clone(&happened), 0);
    pair.set_filter(move |_, side, frame| {
        // Only TCP segments are counted. They are longer than ARP frames, which are not tested: an
        // ARP frame has no checksum, so a fault in it cannot be detected, and TCP does not
        // retransmit it.
        seen += u32::from(side == from && frame.len() > TCP + TcpHeader::LENGTH);
        let hit = side == from && seen == nth && !happening.get();
        happening.set(happening.get() || hit);
        hit.then(|| accident(frame))
    });
    let start = pair.now;
    let listener = listen(&mut pair);
    let (left, right) = established(&mut pair, listener);
    let mut there = Transfer::new((Side::Left, left), (Side::Right, right), BYTES);
    let mut back = Transfer::new((Side::Right, right), (Side::Left, left), BYTES);
    let arrived =
        pair.run_until(Duration::from_secs(60), |pair| there.advance(pair) & back.advance(pair));
    assert!(
        arrived,
        "{from:?}'s segment {nth}: {} and {} bytes, and no more",
        there.read(),
        back.read()
    );
    let took = pair.now.since(start);
    // Frames may still be in flight at the end of the transfer. They arrive in this second, so that
    // they are counted if they are invalid.
    pair.run_for(Duration::from_secs(1));
    let invalid = Side::BOTH.map(|side| {
        let counters = pair.stack(side).counters();
        let ip = counters.ip.in_header_errors
            + counters.ip.in_address_errors
            + counters.ip.reassembly_required;
        ip + counters.ip.in_unknown_protocols + counters.tcp.in_errors + counters.receive.errors
    });
    (took, happened.get(), invalid.iter().sum())
}

/// Returns the additional time that a fault of the n-th segment may cost. A segment of the
/// handshake has a retransmission timeout of one second, so 1.1 s are allowed for it, and 300 ms
/// for any other segment.
fn allowed_delay(nth: u32) -> Duration {
    Duration::from_millis(if nth <= 2 { 1_100 } else { 300 })
}

#[test]
fn a_bit_error_in_any_segment_costs_no_more_than_a_loss() {
    let (clean, _, _) = transfer_with(Side::Left, u32::MAX, |_| Fate::Arrive);
    for from in Side::BOTH {
        for (name, place) in PLACES {
            for nth in 1.. {
                let bit = move |frame: &[u8]| place.min(frame.len() - 1) as u64 * 8;
                let (took, happened, invalid) =
                    transfer_with(from, nth, move |frame| Fate::Spoil(bit(frame)));
                assert!(
                    took <= clean + allowed_delay(nth),
                    "{name} of {from:?}'s segment {nth} costs {}",
                    took - clean
                );
                assert_eq!(
                    invalid,
                    u64::from(happened),
                    "{name} of {from:?}'s segment {nth} is counted once"
                );
                if !happened {
                    assert!(nth > 10, "only {nth} segments were sent");
                    break;
                }
            }
        }
    }
}

#[test]
fn the_loss_of_any_segment_costs_at_most_a_timeout() {
    let (clean, _, _) = transfer_with(Side::Left, u32::MAX, |_| Fate::Arrive);
    for from in Side::BOTH {
        for nth in 1.. {
            let (took, happened, _) = transfer_with(from, nth, |_| Fate::Lose);
            assert!(
                took <= clean + allowed_delay(nth),
                "{from:?}'s segment {nth} costs {}",
                took - clean
            );
            if !happened {
                break;
            }
        }
    }
}
