//! Names that a script defines: `--define TFO_COOKIE=a1b2c3d4e5f60718`.

use std::collections::BTreeMap;

/// Maximum length of a value, in bytes.
const LONGEST_VALUE: usize = 1_000;
/// Maximum length in bytes of a script in which names have been replaced by their values. Without a
/// limit, a short script with long values could exhaust the memory.
const LONGEST_SCRIPT: usize = 16 << 20;

/// The names that a script defines, and their values. Names are not replaced in strings, comments,
/// assertions and shell lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions(BTreeMap<String, String>);

impl Definitions {
    /// Adds a definition `NAME=VALUE`. It replaces an existing definition of this name.
    ///
    /// # Errors
    /// The reason why the definition is invalid.
    pub(super) fn add(&mut self, definition: &str) -> Result<(), String> {
        let wrong = |what: &str| format!("--define {definition}: {what}, such as NAME=VALUE");
        let (name, value) =
            definition.split_once('=').ok_or_else(|| wrong("a definition has a `=`"))?;
        let value = value.trim_matches('"');
        let begins = name.chars().next().is_some_and(|first| !first.is_ascii_digit());
        if !begins || !name.chars().all(is_word) {
            return Err(wrong("a name is made of letters, digits and `_`"));
        }
        if value.len() > LONGEST_VALUE || value.contains('\n') {
            return Err(format!("--define {name}: a value is one line of {LONGEST_VALUE} bytes"));
        }
        self.0.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    /// Returns `text` with all defined names replaced by their values. The number of lines does not
    /// change, so that errors name the right line.
    ///
    /// # Errors
    /// The text becomes longer than the maximum length.
    pub(super) fn apply(&self, text: &str) -> Result<String, String> {
        if self.0.is_empty() {
            return Ok(text.to_owned());
        }
        let mut whole = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let (kept, behind) = rest.split_at(kept(rest));
            whole.push_str(kept);
            let end = behind.find(|next| !is_word(next)).unwrap_or(behind.len());
            let (word, behind) = behind.split_at(end);
            whole.push_str(self.0.get(word).map_or(word, String::as_str));
            rest = behind;
            if whole.len() > LONGEST_SCRIPT {
                return Err(format!(
                    "definitions make the script longer than {LONGEST_SCRIPT} bytes"
                ));
            }
        }
        Ok(whole)
    }
}

/// Returns the length in bytes of the beginning of `text` that is copied without replacing names.
/// This is a string, a shell command, a block of code, a comment, or a single character that is not
/// part of a word. Returns 0 if `text` begins with a word.
fn kept(text: &str) -> usize {
    const QUOTED: [(&str, &str); 5] =
        [("\"", "\""), ("`", "`"), ("%{", "}%"), ("//", "\n"), ("/*", "*/")];
    let rest = match QUOTED.iter().find(|(open, _)| text.starts_with(open)) {
        Some((open, close)) => {
            let inner = &text[open.len()..];
            return inner.find(close).map_or(text.len(), |at| open.len() + at + close.len());
        }
        None => text,
    };
    let first = rest.chars().next().filter(|&first| !is_word(first));
    first.map_or(0, char::len_utf8)
}

const fn is_word(next: char) -> bool {
    next.is_ascii_alphanumeric() || next == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions(list: &[&str]) -> Definitions {
        let mut definitions = Definitions::default();
        list.iter().for_each(|definition| definitions.add(definition).unwrap());
        definitions
    }

    #[test]
    fn whole_names_are_replaced_outside_quotes_and_comments() {
        let definitions = definitions(&["A=old", "A=[1, 2]", "LEVEL=SOL_IP"]);
        assert_eq!(
            definitions.apply("A AB \"A\" `A` %{ A }% // A\nf(LEVEL) /* A */ A\"A").as_deref(),
            Ok("[1, 2] AB \"A\" `A` %{ A }% // A\nf(SOL_IP) /* A */ [1, 2]\"A")
        );
    }

    #[test]
    fn invalid_definitions_and_huge_texts_are_refused() {
        for text in ["A", "=1", "1A=2", "A B=2", &format!("A={}", "a".repeat(2_000))] {
            assert!(Definitions::default().add(text).is_err(), "{text}");
        }
        let long = definitions(&[&format!("A={}", "b".repeat(1_000))]);
        assert!(long.apply(&"A ".repeat(1 << 20)).is_err());
    }
}
