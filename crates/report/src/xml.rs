//! Escapes of text in XML and HTML.

/// Escapes text for the content of elements and for quoted attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // XML 1.0 forbids most control characters other than line feed and tab, even as
            // escapes. All others are therefore replaced by U+FFFD.
            '\n' | '\t' => safe.push(character),
            control if control.is_control() => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_control_characters_become_text() {
        assert_eq!(escaped("<a b=\"c\">&\u{1b}[0m"), "&lt;a b=&quot;c&quot;&gt;&amp;\u{fffd}[0m");
    }
}
