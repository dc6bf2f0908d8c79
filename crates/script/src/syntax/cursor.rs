//! A parser's position in a text, and the tokens that all parts of a script use.

use super::SyntaxError;
use linerate_units::Duration;

/// Maximum nesting depth of brackets, so that a hostile script cannot overflow the stack.
const DEEPEST: u32 = 24;
/// Maximum time in a script, in seconds, so that no sum of times overflows.
const LATEST_SECONDS: u64 = 10_000_000;

/// A parser's position in a text.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    depth: u32,
    /// Whether `//` and `/*` start comments.
    has_comments: bool,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the start of `text`, whose first line has the number `line`.
    pub(super) const fn new(text: &'a str, line: u32) -> Self {
        Self { text, at: 0, line, depth: 0, has_comments: true }
    }

    /// Creates a cursor at the start of a text in which `//` is an operator and does not start a
    /// comment.
    pub(super) const fn without_comments(text: &'a str, line: u32) -> Self {
        Self { text, at: 0, line, depth: 0, has_comments: false }
    }

    /// Returns the line of the next token.
    pub(super) fn line(&mut self) -> u32 {
        self.skip();
        self.line
    }

    pub(super) fn error(&self, what: impl Into<String>) -> SyntaxError {
        SyntaxError { line: self.line, what: what.into() }
    }

    /// Returns an error that quotes the next token, and says that `wanted` is needed in its place.
    pub(super) fn expected<T>(&mut self, wanted: &str) -> Result<T, SyntaxError> {
        self.skip();
        let rest = self.rest();
        let found: String = rest.chars().take_while(|next| *next != '\n').take(20).collect();
        let found =
            if found.is_empty() { "the end".to_owned() } else { format!("`{}`", found.trim_end()) };
        Err(self.error(format!("expected {wanted}, found {found}")))
    }

    /// Returns the text after the cursor's position.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip();
        self.rest().is_empty()
    }

    /// Skips white space and comments, and returns the character after them without consuming it;
    /// `None` at the end of the text.
    pub(super) fn peek(&mut self) -> Option<char> {
        self.skip();
        self.rest().chars().next()
    }

    /// Returns whether `text` comes next.
    pub(super) fn sees(&mut self, text: &str) -> bool {
        self.skip();
        self.rest().starts_with(text)
    }

    /// Consumes `text` if it comes next, and returns whether it did.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let seen = self.sees(text);
        if seen {
            self.advance(text.len());
        }
        seen
    }

    /// Consumes `text`, or returns an error if it does not come next.
    pub(super) fn want(&mut self, text: &str) -> Result<(), SyntaxError> {
        if self.take(text) { Ok(()) } else { self.expected(&format!("`{text}`")) }
    }

    /// Consumes `word` if it is the next whole word, and returns whether it was.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let seen = self.peek_word() == Some(word);
        if seen {
            self.advance(word.len());
        }
        seen
    }

    /// Returns the next word: letters, digits and `_`. Returns `None` if other text comes next.
    pub(super) fn peek_word(&mut self) -> Option<&'a str> {
        self.skip();
        let rest = self.rest();
        let is_word = |next: char| next.is_ascii_alphanumeric() || next == '_';
        let end = rest.find(|next| !is_word(next)).unwrap_or(rest.len());
        (end > 0).then(|| &rest[..end])
    }

    /// Consumes a word, or returns the error that `wanted` is needed.
    pub(super) fn word(&mut self, wanted: &str) -> Result<&'a str, SyntaxError> {
        let Some(word) = self.peek_word() else { return self.expected(wanted) };
        self.advance(word.len());
        Ok(word)
    }

    /// Consumes the next characters that satisfy `is_one`, without skipping white space.
    pub(super) fn take_while(&mut self, is_one: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|next| !is_one(next)).unwrap_or(rest.len());
        self.advance(end);
        &rest[..end]
    }

    /// Consumes `open` and the text up to the next `close`, and returns that text.
    pub(super) fn enclosed(&mut self, open: &str, close: &str) -> Result<&'a str, SyntaxError> {
        self.want(open)?;
        let rest = self.rest();
        let Some(end) = rest.find(close) else {
            return Err(self.error(format!("`{open}` has no `{close}`")));
        };
        self.advance(end + close.len());
        Ok(&rest[..end])
    }

    /// Consumes a decimal or hexadecimal integer, which may be negative.
    pub(super) fn integer(&mut self, wanted: &str) -> Result<i64, SyntaxError> {
        self.skip();
        let start = self.clone();
        let negative = self.take("-");
        let hex = self.rest().starts_with("0x");
        if hex {
            self.advance(2);
        }
        let digits = self
            .take_while(|next| if hex { next.is_ascii_hexdigit() } else { next.is_ascii_digit() });
        let value = i64::from_str_radix(digits, if hex { 16 } else { 10 });
        match value {
            Ok(value) => Ok(if negative { -value } else { value }),
            Err(_) => {
                *self = start;
                self.expected(wanted)
            }
        }
    }

    /// Consumes an integer of the type `T`. Returns an error that names `what`, the meaning of the
    /// number, if there is no integer or it is out of the type's range.
    pub(super) fn number<T: TryFrom<i64>>(&mut self, what: &str) -> Result<T, SyntaxError> {
        let start = self.clone();
        let value = self.integer(what)?;
        T::try_from(value).map_err(|_| start.error(format!("{value} is out of range for {what}")))
    }

    /// Returns whether a time comes next.
    pub(super) fn sees_moment(&mut self) -> bool {
        self.skip();
        let mut rest = self.rest().chars();
        match rest.next() {
            Some('.') => rest.next().is_some_and(|next| next.is_ascii_digit()),
            first => first.is_some_and(|first| first.is_ascii_digit()),
        }
    }

    /// Consumes a number of seconds, with or without a fraction.
    pub(super) fn seconds(&mut self) -> Result<Duration, SyntaxError> {
        if !self.sees_moment() {
            return self.expected("a time in seconds, such as 0.1 or .1");
        }
        let is_digit = |next: char| next.is_ascii_digit();
        let whole = self.take_while(is_digit);
        let mut nanos = 0;
        if self.rest().starts_with('.') && self.rest()[1..].starts_with(is_digit) {
            self.advance(1);
            let fraction = self.take_while(is_digit);
            for place in 0..9 {
                let digit =
                    fraction.as_bytes().get(place).map_or(0, |digit| u64::from(digit - b'0'));
                nanos = nanos * 10 + digit;
            }
        }
        let whole = if whole.is_empty() { Some(0) } else { whole.parse().ok() };
        match whole {
            Some(whole) if whole <= LATEST_SECONDS => {
                Ok(Duration::from_secs(whole) + Duration::from_nanos(nanos))
            }
            _ => Err(self.error(format!("a script must end within {LATEST_SECONDS} seconds"))),
        }
    }

    /// Calls a parser that may call itself for nested brackets. Returns an error if the nesting
    /// exceeds [`DEEPEST`].
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error(format!("brackets are nested more than {DEEPEST} deep")));
        }
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Consumes items separated by commas, and the closing bracket `close`. The caller has consumed
    /// the opening bracket.
    pub(super) fn list<T>(
        &mut self,
        close: &str,
        mut read: impl FnMut(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<Vec<T>, SyntaxError> {
        let mut items = Vec::new();
        if self.take(close) {
            return Ok(items);
        }
        loop {
            items.push(read(self)?);
            if self.take(close) {
                return Ok(items);
            }
            self.want(",")?;
            // A comma has just been read. The list may nevertheless end here, because Python writes
            // a tuple of one item as `(1,)`.
            if self.take(close) {
                return Ok(items);
            }
        }
    }

    /// Skips white space and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let space = rest.len() - rest.trim_start().len();
            let rest = &rest[space..];
            let comment = if !self.has_comments {
                0
            } else if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                0
            };
            if space + comment == 0 {
                return;
            }
            self.advance(space + comment);
        }
    }

    fn advance(&mut self, bytes: usize) {
        let passed = &self.text[self.at..self.at + bytes];
        let lines = passed.bytes().filter(|&byte| byte == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.at += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_space_are_skipped_and_lines_counted() {
        let mut cursor = Cursor::new("// one\n /* two\n three */ word", 1);
        assert_eq!((cursor.line(), cursor.word("a word")), (3, Ok("word")));
        assert!(cursor.is_at_end());
    }

    #[test]
    fn seconds_are_exact() {
        for (text, nanos) in
            [("0", 0), (".1", 100_000_000), ("1.000000001", 1_000_000_001), ("0...0.2", 0)]
        {
            assert_eq!(Cursor::new(text, 1).seconds(), Ok(Duration::from_nanos(nanos)), "{text}");
        }
        assert!(Cursor::new("99999999999999999999", 1).seconds().is_err());
        assert!(Cursor::new("...", 1).seconds().is_err());
    }

    #[test]
    fn integers_are_decimal_or_hexadecimal() {
        for (text, value) in [("-1", -1), ("0x2", 2), ("65535", 65_535)] {
            assert_eq!(Cursor::new(text, 1).integer("a number"), Ok(value));
        }
        assert!(Cursor::new("0x", 1).integer("a number").is_err());
        assert!(
            Cursor::new("70000", 1)
                .number::<u16>("a port")
                .unwrap_err()
                .what
                .contains("out of range")
        );
    }
}
