//! Output on a terminal: its width, its colours, and characters that replace colours.

/// The capabilities of the terminal to which text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether the terminal shows 256 colours.
    pub colour: bool,
    /// Width of the terminal in columns.
    pub width: usize,
}

impl Style {
    /// The style for a file, a pipe, or a terminal without colours.
    pub const PLAIN: Self = Self { colour: false, width: 100 };
}

/// Characters for the shades of a heat map without colours, from the lowest value to the highest.
const CHARACTERS: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];

/// Colours for the shades of a heat map, as numbers of a terminal's 256 colours: dark violet over
/// green to yellow. Brightness increases throughout, so the order is visible in grey and to
/// colour-blind readers.
const COLOURS: [u8; 10] = [53, 54, 60, 61, 31, 37, 36, 71, 149, 227];

/// Returns the shade of a rate, which is `share` of the best rate. Each shade covers a tenth: 0 is
/// below 10 %, and 9 is from 90 % on.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 9")]
pub(crate) fn shade(share: f64) -> usize {
    (share * 10.0).clamp(0.0, 9.0) as usize
}

/// Returns the character that stands for a shade from 0 to 9.
pub(crate) fn character(shade: usize) -> char {
    CHARACTERS[shade.min(9)]
}

/// Returns `text` with terminal codes that make the colour of a shade its background.
pub(crate) fn coloured(text: &str, shade: usize) -> String {
    let foreground = if shade >= 6 { 16 } else { 231 };
    format!("\x1b[48;5;{};38;5;{foreground}m{text}\x1b[0m", COLOURS[shade.min(9)])
}

/// Breaks `text` between words into lines of at most `width` characters. A longer word has a line
/// of its own.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
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
