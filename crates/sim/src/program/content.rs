//! Contents of bulk transfers: pseudo-random bytes. With these, a byte that is received at a wrong
//! position of the stream differs from the expected one. They are generated once per process.

use std::sync::LazyLock;

/// Period of the content, in bytes. Because it is prime, it is no multiple of the size of a buffer,
/// a segment or a window. Data that are shifted by such a size are therefore detected.
const PERIOD: usize = 65_521;

static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    // The period is stored twice. So a slice that begins anywhere in the first copy, and is at most
    // a period long, is contiguous.
    let mut bytes: Vec<u8> = (0..PERIOD)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        })
        .collect();
    bytes.extend_from_within(..);
    bytes
});

/// Returns the content that begins at stream position `position`. It has `length` bytes, or one
/// period if that is shorter.
pub(super) fn piece(position: u64, length: usize) -> &'static [u8] {
    let at = usize::try_from(position % PERIOD as u64).unwrap_or(0);
    &BYTES[at..at + length.min(PERIOD)]
}

/// Compares bytes, the first of which has the stream position `position`, with the content. Returns
/// the stream position of the first byte that differs; `None` if all are right.
pub(super) fn first_wrong(position: u64, bytes: &[u8]) -> Option<u64> {
    let mut at = position;
    for part in bytes.chunks(PERIOD) {
        let right = piece(at, part.len());
        if part != right {
            let offset = part.iter().zip(right).position(|(one, other)| one != other)?;
            return Some(at + offset as u64);
        }
        at += part.len() as u64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_displaced_byte_is_found() {
        let bytes = piece(70_000, 3_000);
        assert_eq!(first_wrong(70_000, bytes), None);
        assert!(first_wrong(70_001, bytes).is_some_and(|at| at < 70_010));
    }
}
