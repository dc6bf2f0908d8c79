//! Divides source files into pieces of code, string literals and comments.

/// The kind of text in a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Code: identifiers and punctuation.
    Code,
    /// A string literal, including its quotes.
    Literal,
    /// A comment with its marker, or the prose of a Markdown file.
    Prose,
}

/// A part of a single line that consists of one kind of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    /// The number of the line, counted from 1.
    pub(super) line: usize,
    pub(super) kind: Kind,
    pub(super) text: &'a str,
}

/// Divides Rust source into pieces. If the source is malformed, the pieces are arbitrary. That does
/// no harm, because the compiler reports such source.
pub(super) fn cut_rust(text: &str) -> Vec<Piece<'_>> {
    cut(text, |rest| {
        if rest.starts_with("//") {
            (Kind::Prose, line_length(rest))
        } else if rest.starts_with("/*") {
            (Kind::Prose, block_comment_length(rest))
        } else if let Some(length) = rust_string_length(rest) {
            (Kind::Literal, length)
        } else {
            (Kind::Code, rust_token_length(rest))
        }
    })
}

/// Divides TOML into pieces.
pub(super) fn cut_toml(text: &str) -> Vec<Piece<'_>> {
    cut(text, |rest| {
        if rest.starts_with('#') {
            return (Kind::Prose, line_length(rest));
        }
        for (quote, has_escapes) in [("\"\"\"", true), ("'''", false), ("\"", true), ("'", false)] {
            if let Some(body) = rest.strip_prefix(quote) {
                return (Kind::Literal, quote.len() + length_through(body, quote, has_escapes));
            }
        }
        (Kind::Code, first_char_length(rest))
    })
}

/// Divides Markdown into its lines, each of which is a piece of prose.
pub(super) fn cut_markdown(text: &str) -> Vec<Piece<'_>> {
    cut(text, |rest| (Kind::Prose, rest.len()))
}

/// Divides a text into pieces. A piece that extends over several lines is divided at each newline.
/// `next` gets the rest of the text, and returns the kind and the length of the piece at its start.
fn cut(text: &str, next: impl Fn(&str) -> (Kind, usize)) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let (mut line, mut line_start, mut at) = (1, 0, 0);
    let mut piece_start = 0;
    while at < text.len() {
        let (kind, length) = next(&text[at..]);
        let end = at + length;
        while at < end {
            let line_end = text[at..end].find('\n').map_or(end, |newline| at + newline);
            match pieces.last_mut() {
                Some(last) if last.line == line && last.kind == kind && at > line_start => {
                    last.text = &text[piece_start..line_end];
                }
                _ if line_end > at => {
                    piece_start = at;
                    pieces.push(Piece { line, kind, text: &text[at..line_end] });
                }
                _ => {}
            }
            at = line_end;
            if at < end {
                // `at` is the offset of a newline, which belongs to no piece. The next piece begins
                // on the next line.
                at += 1;
                line += 1;
                line_start = at;
            }
        }
    }
    pieces
}

fn first_char_length(rest: &str) -> usize {
    rest.chars().next().map_or(0, char::len_utf8)
}

fn line_length(rest: &str) -> usize {
    rest.find('\n').unwrap_or(rest.len())
}

/// Returns the length of the block comment at the start of `rest`, including the block comments
/// nested in it.
fn block_comment_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => depth += 1,
            Some(b"*/") => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// Returns the length of the string literal with which `rest` begins; `None` if `rest` begins with
/// other text.
fn rust_string_length(rest: &str) -> Option<usize> {
    let body = rest.trim_start_matches(['b', 'c']);
    let (prefix, is_raw) = match body.strip_prefix('r') {
        Some(body) => (rest.len() - body.len(), true),
        None => (rest.len() - body.len(), false),
    };
    let body = &rest[prefix..];
    let hashes = body.len() - body.trim_start_matches('#').len();
    if prefix > 2 || (hashes > 0 && !is_raw) || !body[hashes..].starts_with('"') {
        return None;
    }
    let start = prefix + hashes + 1;
    let end = format!("\"{}", &body[..hashes]);
    Some(start + length_through(&rest[start..], &end, !is_raw))
}

/// Returns the length of the start of `body` that ends with the first `end`. If `has_escapes` is
/// true, a character after a backslash does not count as part of `end`. If `body` does not contain
/// `end`, returns the length of `body`.
fn length_through(body: &str, end: &str, has_escapes: bool) -> usize {
    let mut at = 0;
    while at < body.len() {
        if body[at..].starts_with(end) {
            return at + end.len();
        }
        if has_escapes && body[at..].starts_with('\\') {
            at += 1;
        }
        at += first_char_length(&body[at..]);
    }
    body.len()
}

/// Returns the length of the identifier, character literal or single character at the start of
/// `rest`.
fn rust_token_length(rest: &str) -> usize {
    let is_part_of_a_name = |c: char| c.is_alphanumeric() || c == '_';
    let name_length = rest.find(|c| !is_part_of_a_name(c)).unwrap_or(rest.len());
    if name_length > 0 {
        return name_length;
    }
    let first = first_char_length(rest);
    let Some(body) = rest.strip_prefix('\'') else { return first };
    // An apostrophe begins a character literal, such as `'a'`, or a lifetime, such as `'a`. It is a
    // literal if a second apostrophe follows the character.
    if body.starts_with('\\') {
        return 1 + length_through(body, "'", true);
    }
    let length = 1 + first_char_length(body);
    if rest[length..].starts_with('\'') { length + 1 } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds<'a>(pieces: &[Piece<'a>]) -> Vec<(usize, Kind, &'a str)> {
        pieces.iter().map(|piece| (piece.line, piece.kind, piece.text)).collect()
    }

    #[test]
    fn separates_code_literals_and_comments_of_rust() {
        let text = "let url = \"http://a\"; // end\n/* one\n/* two */ */ x\n";
        assert_eq!(
            kinds(&cut_rust(text)),
            [
                (1, Kind::Code, "let url = "),
                (1, Kind::Literal, "\"http://a\""),
                (1, Kind::Code, "; "),
                (1, Kind::Prose, "// end"),
                (2, Kind::Prose, "/* one"),
                (3, Kind::Prose, "/* two */ */"),
                (3, Kind::Code, " x"),
            ]
        );
    }

    #[test]
    fn strings_end_where_rust_ends_them() {
        for literal in
            [r#""a\"b""#, r##"r#"a"b"#"##, r#"br"\""#, r#"b"a""#, r#"c"a""#, "\"a\nb\"", "\"\""]
        {
            let text = format!("f({literal}, x) // y");
            let cut = cut_rust(&text);
            let found: Vec<_> =
                cut.iter().filter(|piece| piece.kind == Kind::Literal).map(|p| p.text).collect();
            assert_eq!(found.join("\n"), literal);
            assert_eq!(cut.last().unwrap().text, "// y", "{literal}");
        }
    }

    #[test]
    fn quotes_and_slashes_in_character_literals_begin_nothing() {
        let text = r#"f('"', '\'', '/', '/', 'é', &'a str, r#type) // y"#;
        let cut = cut_rust(text);
        assert_eq!(
            cut.iter().map(|piece| piece.kind).collect::<Vec<_>>(),
            [Kind::Code, Kind::Prose]
        );
    }

    #[test]
    fn separates_keys_values_and_comments_of_toml() {
        let text = "key = \"a # b\" # c\nlong = \"\"\"\n# no comment\n\"\"\"\n'#' = 1\n";
        assert_eq!(
            kinds(&cut_toml(text)),
            [
                (1, Kind::Code, "key = "),
                (1, Kind::Literal, "\"a # b\""),
                (1, Kind::Code, " "),
                (1, Kind::Prose, "# c"),
                (2, Kind::Code, "long = "),
                (2, Kind::Literal, "\"\"\""),
                (3, Kind::Literal, "# no comment"),
                (4, Kind::Literal, "\"\"\""),
                (5, Kind::Literal, "'#'"),
                (5, Kind::Code, " = 1"),
            ]
        );
    }

    #[test]
    fn unfinished_source_is_cut_to_its_end() {
        for text in ["\"", "r#\"", "/*", "'", "'\\", "b", "/* é", "\"\\é", "r#", "\"\\"] {
            let cut = cut_rust(text);
            assert_eq!(cut.iter().map(|piece| piece.text).collect::<String>(), text);
            let cut = cut_toml(text);
            assert_eq!(cut.iter().map(|piece| piece.text).collect::<String>(), text);
        }
    }
}
