//! The retired terms, and a search for them in prose and in identifiers.

use super::config::{Config, Retired};
use super::piece::{Kind, Piece};
use std::collections::HashMap;
use std::path::Path;

/// All terms that a search must know, grouped by their first word: the retired terms, and the
/// allowed terms that contain a retired term.
#[derive(Debug)]
pub(super) struct Vocabulary<'a> {
    by_first_word: HashMap<&'a str, Vec<Term<'a>>>,
}

#[derive(Clone, Copy, Debug)]
struct Term<'a> {
    /// The term in lowercase, with one space between words.
    text: &'a str,
    /// The entry of a retired term; `None` for an allowed term.
    retired: Option<&'a Retired>,
}

/// A retired term that was found in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occurrence<'a> {
    /// The term as the text spells it.
    pub(super) spelling: &'a str,
    /// The standard terms to use instead.
    pub(super) instead: &'a str,
}

impl<'a> Vocabulary<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        let retired = config.retired.iter().flat_map(|retired| {
            retired.words.iter().map(move |text| Term { text, retired: Some(retired) })
        });
        let allowed = config.allowed.iter().map(|text| Term { text, retired: None });
        let mut by_first_word: HashMap<_, Vec<_>> = HashMap::new();
        for term in retired.chain(allowed) {
            let first = term.text.split(' ').next().unwrap_or_default();
            by_first_word.entry(first).or_default().push(term);
        }
        Self { by_first_word }
    }

    /// Returns the retired terms that occur in `piece` of `file`.
    pub(super) fn find(&self, piece: Piece<'a>, file: &Path) -> Vec<Occurrence<'a>> {
        let words = words(piece.text);
        let mut found = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let Some((term, count)) = self.longest(&words[at..], piece.kind, file) else {
                at += 1;
                continue;
            };
            if let Some(retired) = term.retired {
                let last = words[at + count - 1];
                let spelling = &piece.text[words[at].start..last.start + last.text.len()];
                found.push(Occurrence { spelling, instead: &retired.instead });
            }
            at += count;
        }
        found
    }

    /// Returns the longest retired or allowed term with which `words` begin, and the number of its
    /// words. Returns `None` if they begin with no such term.
    fn longest(&self, words: &[Word<'_>], kind: Kind, file: &Path) -> Option<(Term<'a>, usize)> {
        let first = words.first()?.text.to_lowercase();
        let singular = first.strip_suffix('s').unwrap_or_default();
        let terms = [first.as_str(), singular].map(|word| self.by_first_word.get(word));
        terms
            .into_iter()
            .flatten()
            .flatten()
            .filter(|term| term.retired.is_none_or(|retired| retired.applies_to(kind, file)))
            .filter_map(|term| Some((*term, term.matched_words(words)?)))
            .max_by_key(|&(_, count)| count)
    }
}

impl Retired {
    fn applies_to(&self, kind: Kind, file: &Path) -> bool {
        let is_here = self.only_in.is_empty() || self.only_in.iter().any(|f| file.starts_with(f));
        is_here && (kind == Kind::Code || !self.names_only)
    }
}

impl Term<'_> {
    /// Returns the number of words in this term if `text` begins with the term, otherwise `None`.
    /// The last word of the term may be in the plural in `text`.
    fn matched_words(&self, text: &[Word<'_>]) -> Option<usize> {
        let count = self.text.split(' ').count();
        let text = text.get(..count)?;
        let is_equal = |at: usize, expected: &str| {
            let word = text[at].text;
            let singular = word.strip_suffix(['s', 'S']).filter(|_| at + 1 == count);
            word.eq_ignore_ascii_case(expected)
                || singular.is_some_and(|singular| singular.eq_ignore_ascii_case(expected))
        };
        let is_joined = text[1..].iter().all(|word| word.is_joined);
        let mut words = self.text.split(' ').enumerate();
        (is_joined && words.all(|(at, word)| is_equal(at, word))).then_some(count)
    }
}

/// A word of prose, or one of the words in an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word<'a> {
    start: usize,
    text: &'a str,
    /// Is there at most one space, `_` or `-`, and nothing else, between the previous word and this
    /// word?
    is_joined: bool,
}

/// Divides a text into words, at every character that is not a letter and inside `CamelCase`.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words: Vec<Word<'_>> = Vec::new();
    let mut letters = text.char_indices().filter(|(_, c)| c.is_alphabetic()).peekable();
    while let Some((start, first)) = letters.next() {
        let mut end = start + first.len_utf8();
        let mut previous = first;
        while let Some(&(at, next)) = letters.peek() {
            let after = text[at + next.len_utf8()..].chars().next();
            if at != end || is_hump(previous, next, after) {
                break;
            }
            end += next.len_utf8();
            previous = next;
            letters.next();
        }
        let is_joined = words.last().is_some_and(|last| {
            let between = &text[last.start + last.text.len()..start];
            matches!(between, "" | " " | "_" | "-")
        });
        words.push(Word { start, text: &text[start..end], is_joined });
    }
    words
}

/// Does a new word of `CamelCase` begin with `next`? `NICQueue` consists of `NIC` and `Queue`.
fn is_hump(previous: char, next: char, after: Option<char>) -> bool {
    next.is_uppercase() && (previous.is_lowercase() || after.is_some_and(char::is_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        toml::from_str(
            "clean = []
            subjects_after = ''
            openings = []
            allowed = ['gizmo shop', 'thing ring']
            retired = [
                { words = ['gizmo', 'doodad'], instead = 'device' },
                { words = ['gizmo box'], instead = 'chassis' },
                { words = ['thing'], instead = 'item', names_only = true },
                { words = ['widget'], instead = 'control', only_in = ['crates/old'] },
            ]",
        )
        .unwrap()
    }

    fn find_in(file: &str, kind: Kind, text: &str) -> Vec<(String, String)> {
        let config = config();
        let found = Vocabulary::new(&config).find(Piece { line: 1, kind, text }, Path::new(file));
        found.iter().map(|found| (found.spelling.to_owned(), found.instead.to_owned())).collect()
    }

    fn find(kind: Kind, text: &str) -> Vec<(String, String)> {
        find_in("crates/new/a.rs", kind, text)
    }

    #[test]
    fn finds_a_word_in_prose_and_as_a_part_of_a_name() {
        for (text, spelling) in [
            ("// a gizmo.", "gizmo"),
            ("// Gizmos and", "Gizmos"),
            ("the_gizmo_id", "gizmo"),
            ("OldGizmo", "Gizmo"),
            ("NICGizmo2", "Gizmo"),
            ("MAX_GIZMOS", "GIZMOS"),
            ("doodad", "doodad"),
        ] {
            assert_eq!(
                find(Kind::Prose, text),
                [(spelling.to_owned(), "device".to_owned())],
                "{text}"
            );
        }
    }

    #[test]
    fn longer_words_that_contain_a_retired_word_are_allowed() {
        for text in ["gizmology", "ungizmo", "gizmoss", "box", "g-i-z-m-o", "Gizmó"] {
            assert_eq!(find(Kind::Prose, text), [], "{text}");
        }
    }

    #[test]
    fn finds_the_longest_term_however_its_words_are_joined() {
        for text in ["gizmo box", "gizmo-box", "GizmoBox", "GIZMO_BOX"] {
            assert_eq!(
                find(Kind::Prose, text),
                [(text.to_owned(), "chassis".to_owned())],
                "{text}"
            );
        }
        let apart = find(Kind::Prose, "gizmo, box");
        assert_eq!(apart, [("gizmo".to_owned(), "device".to_owned())]);
    }

    #[test]
    fn an_allowed_term_may_contain_a_retired_word() {
        assert_eq!(find(Kind::Code, "a_gizmo_shop, ThingRings"), []);
        assert_eq!(find(Kind::Code, "gizmo_shop_gizmo").len(), 1);
    }

    #[test]
    fn a_term_may_be_retired_in_names_only_or_in_some_folders_only() {
        assert_eq!(find(Kind::Code, "some_thing").len(), 1);
        assert_eq!(find(Kind::Prose, "some thing").len(), 0);
        assert_eq!(find_in("crates/old/a.rs", Kind::Prose, "widget").len(), 1);
        assert_eq!(find_in("crates/older/a.rs", Kind::Prose, "widget").len(), 0);
    }
}
