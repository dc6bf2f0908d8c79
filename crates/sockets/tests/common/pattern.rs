//! Test data in which each byte depends on its position in the stream, so that lost, duplicated or
//! moved bytes are detected.

use std::io::{Read, Write};

/// The period of the pattern in bytes. It is a prime number, so no buffer size is a multiple of it.
/// If a bug displaces data by the size of a buffer, the data thus differs from the pattern.
const PERIOD: usize = 65_521;

/// Number of bytes in each write and read. No buffer size is a multiple of it, so reads and writes
/// cross the ends of buffers.
const PIECE: usize = 60_007;

/// Returns two periods of the pattern. So `PIECE` bytes of the pattern that begin at any position
/// are a slice of the result.
fn table() -> Vec<u8> {
    (0..2 * PERIOD).map(|at| (((at % PERIOD) * 2_654_435_761) >> 7).to_le_bytes()[0]).collect()
}

/// Returns the slice of `table` that contains the `length` bytes of the pattern from `position` on.
fn at(table: &[u8], position: u64, length: usize) -> &[u8] {
    let start = usize::try_from(position % PERIOD as u64).unwrap();
    &table[start..start + length]
}

/// Writes the first `bytes` bytes of the pattern.
pub(crate) fn send(mut to: impl Write, bytes: u64) {
    let table = table();
    let mut sent = 0;
    while sent < bytes {
        let length = usize::try_from((bytes - sent).min(PIECE as u64)).unwrap();
        to.write_all(at(&table, sent, length)).unwrap();
        sent += length as u64;
    }
}

/// Reads to the end of the stream, and checks that the data is the first `bytes` bytes of the
/// pattern.
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
