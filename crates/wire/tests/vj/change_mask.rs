//! The change mask and the numbers after it: one test for each rule of RFC 1144 §3.2.2 and §3.2.3.
//! The bits are C = 0x40, I = 0x20, P = 0x10, S = 0x08, A = 0x04, W = 0x02 and U = 0x01.

use super::{COMPRESSED, Fields, Line, UNCOMPRESSED};
use linerate_wire::TcpFlags;

/// Returns the fields of the first segment of each test, which has ten bytes of data.
fn first() -> Fields {
    Fields {
        connection: 1,
        seq: 1_000,
        ack: 2_000,
        flags: TcpFlags::ACK.bits(),
        window: 4_096,
        urgent: 0,
        identification: 7,
        data: vec![b'x'; 10],
    }
}

/// Sends `first` and `second`, checks that both arrive unchanged, and returns the bytes of `second`
/// on the line.
fn after(first: &Fields, second: &Fields) -> Vec<u8> {
    let mut line = Line::default();
    line.carry(&first.packet());
    line.carry(&second.packet())
}

/// Checks that `second`, sent after [`first`], is encoded as `mask`, checksum, `numbers` and data.
fn is_encoded(second: &Fields, mask: u8, numbers: &[u8]) {
    let packet = second.packet();
    let expected = [&[mask][..], &packet[36..38], numbers, &second.data].concat();
    assert_eq!(after(&first(), second), expected, "{second:?}");
}

fn next(change: impl FnOnce(&mut Fields)) -> Fields {
    let mut fields = Fields { identification: 8, ..first() };
    change(&mut fields);
    fields
}

const URGENT: u16 = TcpFlags::ACK.union(TcpFlags::URG).bits();
const PUSHED: u16 = TcpFlags::ACK.union(TcpFlags::PSH).bits();

#[test]
fn each_bit_of_the_mask_announces_its_number() {
    is_encoded(&next(|next| (next.flags, next.urgent) = (URGENT, 5)), 0x81, &[5]);
    is_encoded(&next(|next| next.window += 9), 0x82, &[9]);
    is_encoded(&next(|next| next.ack += 255), 0x84, &[255]);
    is_encoded(&next(|next| next.seq += 7), 0x88, &[7]);
    is_encoded(&next(|next| (next.ack, next.flags) = (2_001, PUSHED)), 0x94, &[1]);
    is_encoded(&next(|next| (next.ack, next.identification) = (2_001, 10)), 0xa4, &[1, 3]);
}

#[test]
fn numbers_follow_the_mask_in_the_order_urgent_window_ack_sequence_identification() {
    let all_but_sequence = next(|next| {
        (next.flags, next.urgent) = (URGENT, 1);
        (next.window, next.ack, next.identification) = (4_098, 2_003, 11);
    });
    is_encoded(&all_but_sequence, 0xa7, &[1, 2, 3, 4]);
    let all_but_urgent = next(|next| {
        (next.window, next.ack, next.seq, next.identification) = (4_098, 2_003, 1_004, 12);
    });
    is_encoded(&all_but_urgent, 0xae, &[2, 3, 4, 5]);
}

#[test]
fn zero_and_numbers_above_255_take_three_bytes() {
    is_encoded(&next(|next| (next.flags, next.urgent) = (URGENT, 0)), 0x81, &[0, 0, 0]);
    is_encoded(&next(|next| next.ack += 256), 0x84, &[0, 1, 0]);
    is_encoded(&next(|next| next.ack += 65_535), 0x84, &[0, 255, 255]);
    is_encoded(&next(|next| next.window -= 1), 0x82, &[0, 255, 255]);
    let same_identification = next(|next| (next.ack, next.identification) = (2_001, 7));
    is_encoded(&same_identification, 0xa4, &[1, 0, 0, 0]);
    let lower_identification = next(|next| (next.ack, next.identification) = (2_001, 6));
    is_encoded(&lower_identification, 0xa4, &[1, 0, 255, 255]);
}

#[test]
fn data_in_one_direction_is_the_first_special_case() {
    is_encoded(&next(|next| next.seq += 10), 0x8f, &[]);
    is_encoded(&next(|next| (next.seq, next.flags) = (1_010, PUSHED)), 0x9f, &[]);
    is_encoded(&next(|next| (next.seq, next.identification) = (1_010, 9)), 0xaf, &[2]);
}

#[test]
fn echoed_data_is_the_second_special_case() {
    is_encoded(&next(|next| (next.seq, next.ack) = (1_010, 2_010)), 0x8b, &[]);
    let identified = |next: &mut Fields| {
        (next.seq, next.ack, next.identification) = (1_010, 2_010, 9);
    };
    is_encoded(&next(identified), 0xab, &[2]);
    // Sequence and acknowledgement number have both grown by nine, but the previous packet had ten
    // bytes of data. The special case of echoed data requires that both have grown by ten.
    is_encoded(&next(|next| (next.seq, next.ack) = (1_009, 2_009)), 0x8c, &[9, 9]);
}

#[test]
fn changes_that_look_like_a_special_case_are_sent_whole() {
    let urgent = |next: &mut Fields| (next.flags, next.urgent, next.window) = (URGENT, 1, 1);
    for ack in [2_000, 2_001] {
        let fields = next(|next| {
            urgent(next);
            (next.seq, next.ack) = (1_001, ack);
        });
        assert_eq!(after(&first(), &fields)[0] & 0xf0, UNCOMPRESSED);
    }
}

#[test]
fn differences_that_have_no_encoding_are_sent_whole() {
    let changes: [fn(&mut Fields); 6] = [
        |next| next.ack -= 1,
        |next| next.ack += 65_536,
        |next| next.seq -= 1,
        |next| next.seq += 65_536,
        // The urgent pointer has changed in a segment without URG. RFC 1144 cannot encode this.
        |next| (next.ack, next.urgent) = (2_001, 1),
        // No field has changed, although the previous packet had data. This packet is therefore a
        // retransmission, whose headers are sent uncompressed.
        |_| (),
    ];
    for change in changes {
        let fields = next(change);
        assert_eq!(after(&first(), &fields)[0] & 0xf0, UNCOMPRESSED, "{fields:?}");
    }
    let acknowledgement = Fields { data: Vec::new(), ..first() };
    let again = Fields { identification: 8, ..acknowledgement.clone() };
    assert_eq!(after(&acknowledgement, &again)[0] & 0xf0, UNCOMPRESSED, "a duplicate ACK");
    let data = Fields { data: vec![1], ..again };
    assert_eq!(after(&acknowledgement, &data)[0], COMPRESSED, "data after an ACK");
}

#[test]
fn a_connection_is_named_when_it_changes() {
    let mut line = Line::default();
    let segment = |connection, seq| {
        let (identification, data) = (1, vec![1]);
        Fields { connection, seq, identification, data, ..first() }.packet()
    };
    line.carry(&segment(1, 1));
    line.carry(&segment(2, 1));
    // The first connection has slot 0, and the second has slot 1. A packet contains its slot only
    // if the connection has changed; the bit C (0x40) announces it. All segments have the same
    // identification. It does not grow by one, so the bit I (0x20) and three bytes encode its
    // difference, zero.
    assert_eq!(line.carry(&segment(2, 2))[0], 0xaf);
    assert_eq!(line.carry(&segment(1, 2))[..2], [0xef, 0]);
    assert_eq!(line.carry(&segment(1, 3))[0], 0xaf);
    assert_eq!(line.carry(&segment(2, 3))[..2], [0xef, 1]);
}

#[test]
fn the_checksum_is_carried_even_if_it_is_wrong() {
    let mut line = Line::default();
    line.carry(&first().packet());
    let mut damaged = next(|next| next.seq += 10).packet();
    (damaged[36], damaged[37]) = (0xab, 0xcd);
    assert_eq!(line.carry(&damaged)[..3], [0x8f, 0xab, 0xcd]);
}
