//! Bytes that each depend on their position, so that a byte that is lost, doubled or moved is found.

use std::io::{Read, Write};

/// A prime, so that no power of two is a period.
const PERIOD: usize = 65_521;

/// What is written and read at once, and not a multiple of anything.
const PIECE: usize = 60_007;

/// The bytes of every position, twice the period long, so that any piece is one slice of it.
fn table() -> Vec<u8> {
    (0..2 * PERIOD).map(|at| (((at % PERIOD) * 2_654_435_761) >> 7).to_le_bytes()[0]).collect()
}

/// The slice of `table` that begins at `position`.
fn at(table: &[u8], position: u64, length: usize) -> &[u8] {
    let start = usize::try_from(position % PERIOD as u64).unwrap();
    &table[start..start + length]
}

/// Writes the first `bytes` of the pattern.
pub(crate) fn send(mut to: impl Write, bytes: u64) {
    let table = table();
    let mut sent = 0;
    while sent < bytes {
        let length = usize::try_from((bytes - sent).min(PIECE as u64)).unwrap();
        to.write_all(at(&table, sent, length)).unwrap();
        sent += length as u64;
    }
}

/// Reads to the end, which must be the first `bytes` of the pattern and no more.
pub(crate) fn receive(mut from: impl Read, bytes: u64) {
    let table = table();
    let mut piece = vec![0; PIECE];
    let mut received = 0;
    loop {
        let length = from.read(&mut piece).unwrap();
        if length == 0 {
            break;
        }
        assert_eq!(piece[..length], *at(&table, received, length), "behind byte {received}");
        received += length as u64;
    }
    assert_eq!(received, bytes);
}
