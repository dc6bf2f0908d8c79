//! How a terminal is written to: its width, its colours, or characters where it has none.

/// What the reader's terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Are there 256 colours?
    pub colour: bool,
    /// Columns.
    pub width: usize,
}

impl Style {
    /// For a file, a pipe, or a reader who wants no colours.
    pub const PLAIN: Self = Self { colour: false, width: 100 };
}

/// Shades from nothing to all, for paper and pipes.
const CHARACTERS: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];

/// Shades from dark violet over green to yellow, among the 256 colours of a terminal: brightness
/// rises all the way, so that it reads in grey and without a sense of red and green too.
const COLOURS: [u8; 10] = [53, 54, 60, 61, 31, 37, 36, 71, 149, 227];

/// The shade of `share`, from 0 for nothing to 9 for all.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 9")]
pub(super) fn shade(share: f64) -> usize {
    (share * 10.0).clamp(0.0, 9.0) as usize
}

/// The character of a shade.
pub(super) fn character(shade: usize) -> char {
    CHARACTERS[shade.min(9)]
}

/// `text` on the colour of a shade.
pub(super) fn coloured(text: &str, shade: usize) -> String {
    let foreground = if shade >= 6 { 16 } else { 231 };
    format!("\x1b[48;5;{};38;5;{foreground}m{text}\x1b[0m", COLOURS[shade.min(9)])
}

/// `text` in lines of at most `width` characters, broken between words.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let taken = lines[last].chars().count();
        if taken > 0 && taken + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if taken > 0 {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_are_tenths() {
        let shades: Vec<usize> = [-1.0, 0.0, 0.099, 0.1, 0.95, 1.0, 2.0].map(shade).to_vec();
        assert_eq!(shades, [0, 0, 0, 1, 9, 9, 9]);
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("unbreakable", 3), ["unbreakable"]);
    }
}
