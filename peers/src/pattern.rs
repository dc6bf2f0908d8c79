//! The pattern of bytes that transfers send, by which the receiver can check that every byte is in
//! its place.

use crate::work::PIECE;
use bytes::Bytes;

/// Period of the pattern in bytes. It is prime, so the usual lengths of buffers and segments are
/// not multiples of it. Data that are displaced by a whole buffer or segment therefore differ from
/// the pattern.
const PERIOD: usize = 251;

/// The periodic pattern. The memory is one period longer than a piece, so that a piece can begin at
/// any byte of the period.
pub struct Pattern(Bytes);

impl Pattern {
    pub fn new() -> Self {
        let bytes = (0..PERIOD).cycle().take(PIECE + PERIOD);
        Self(bytes.map(|byte| byte as u8).collect())
    }

    /// Returns the part of the pattern that begins at byte `place` of the stream. It has `length`
    /// bytes, but at most [`PIECE`].
    pub fn at(&self, place: u64, length: u64) -> &[u8] {
        let start = (place % PERIOD as u64) as usize;
        &self.0[start..start + length.min(PIECE as u64) as usize]
    }

    /// Returns the part of the pattern that begins at byte `place` of the stream as shared memory,
    /// without a copy. It has `length` bytes, but at most [`PIECE`].
    pub fn shared_at(&self, place: u64, length: u64) -> Bytes {
        self.0.slice_ref(self.at(place, length))
    }

    /// Checks that the received bytes `arrived` are the part of the pattern that begins at byte
    /// `place` of the stream.
    ///
    /// # Errors
    /// A message that says which bytes of the stream contain a difference.
    pub fn verify(&self, place: u64, arrived: &[u8]) -> Result<(), String> {
        if arrived == self.at(place, arrived.len() as u64) {
            return Ok(());
        }
        Err(format!(
            "of the {} bytes from byte {place} of the stream on, some are not what was sent",
            arrived.len()
        ))
    }
}
