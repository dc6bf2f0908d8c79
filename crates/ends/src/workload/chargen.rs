//! The character generator of RFC 864: lines of 72 printable characters, each line shifted by one
//! character.

use std::sync::LazyLock;

/// The printable ASCII characters except for the space. The generator's sequence of characters has
/// the space after `~`.
const PRINTABLE: std::ops::RangeInclusive<u8> = b'!'..=b'~';
/// Number of characters in a line, without the line end.
const LINE: usize = 72;

/// One period of the output: the lines that begin with each of the 95 characters. After these
/// lines, the output repeats.
static PERIOD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let ring: Vec<u8> = PRINTABLE.chain([b' ']).collect();
    let line = |first: usize| ring.iter().cycle().skip(first).take(LINE).chain(b"\r\n").copied();
    (0..ring.len()).flat_map(line).collect()
});

/// Fills `into` with the output of the character generator from `position` on.
pub(crate) fn fill(position: u64, into: &mut [u8]) {
    let period: &[u8] = &PERIOD;
    let mut at = usize::try_from(position % period.len() as u64).unwrap_or(0);
    let mut rest = into;
    while !rest.is_empty() {
        let piece = (period.len() - at).min(rest.len());
        let (head, tail) = rest.split_at_mut(piece);
        head.copy_from_slice(&period[at..at + piece]);
        (rest, at) = (tail, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_is_that_of_the_rfc() {
        let mut bytes = vec![0; 3 * 74];
        fill(0, &mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(
            lines[0],
            "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefgh"
        );
        assert!(lines[1].starts_with("\"#$") && lines[1].ends_with("ghi"));
        assert!(lines.iter().take(3).all(|line| line.len() == LINE));
    }

    #[test]
    fn any_part_can_be_generated_alone() {
        let mut whole = vec![0; 20_000];
        fill(0, &mut whole);
        for (position, length) in [(0, 1), (7_029, 2), (7_030, 74), (3_333, 12_000)] {
            let mut part = vec![0; length];
            fill(position as u64, &mut part);
            assert_eq!(part, whole[position..position + length]);
        }
        fill(u64::MAX, &mut whole);
    }
}
