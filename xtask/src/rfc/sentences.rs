//! Finds the normative sentences in the text of an RFC. This module depends on the layout of the
//! texts, but not on the meaning of sentences.
//!
//! The module ignores page headers and footers, the text before the first numbered section, and the
//! paragraph that defines the key words. The rest is divided into sentences. A sentence ends at a
//! blank line, except at the end of a page. It also ends at a full stop, question mark or
//! exclamation mark before white space, unless a lowercase letter follows.
//!
//! A sentence counts once, by its strongest key word. The strongest are MUST, SHALL and REQUIRED,
//! followed by SHOULD and RECOMMENDED, and then by MAY and OPTIONAL. NOT makes no difference. Only
//! key words in capitals count.

use super::level::Level;

/// A sentence that contains a key word of RFC 2119.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sentence {
    /// The number of the section that contains the sentence, such as `7.2`.
    pub(crate) section: String,
    pub(crate) level: Level,
    /// The sentence, with single spaces between words.
    pub(crate) text: String,
}

/// Returns the normative sentences of an RFC's text, in their order.
pub(crate) fn of(text: &str) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    for paragraph in paragraphs(text) {
        if paragraph.text.contains("be interpreted as described in") {
            continue;
        }
        for text in cut(&paragraph.text) {
            if let Some(level) = level(text) {
                let section = paragraph.section.clone();
                sentences.push(Sentence { section, level, text: text.to_owned() });
            }
        }
    }
    sentences
}

struct Paragraph {
    section: String,
    text: String,
}

/// Returns the paragraphs of the text from the first numbered heading on.
fn paragraphs(text: &str) -> Vec<Paragraph> {
    let mut paragraphs = Vec::new();
    let mut section = String::new();
    let mut words = String::new();
    let (mut is_between_pages, mut is_apart) = (false, false);
    for line in text.lines() {
        if line.contains('\u{c}') || is_footer(line) {
            (is_between_pages, is_apart) = (true, false);
            continue;
        }
        if line.trim().is_empty() || is_between_pages && is_header(line) {
            is_apart |= !is_between_pages;
            continue;
        }
        is_between_pages = false;
        let heading = heading(line);
        if heading.is_some() || core::mem::take(&mut is_apart) {
            finish(&mut paragraphs, &section, &mut words);
        }
        if let Some(number) = heading {
            number.clone_into(&mut section);
        } else if !section.is_empty() {
            for word in line.split_whitespace() {
                words.push_str(word);
                words.push(' ');
            }
        }
    }
    finish(&mut paragraphs, &section, &mut words);
    paragraphs
}

fn finish(paragraphs: &mut Vec<Paragraph>, section: &str, words: &mut String) {
    let text = std::mem::take(words);
    if !text.is_empty() {
        paragraphs.push(Paragraph { section: section.to_owned(), text });
    }
}

/// Is the line a page footer, such as `Cheng, et al.   Standards Track   [Page 7]`?
fn is_footer(line: &str) -> bool {
    line.trim_end().ends_with(']') && line.contains("[Page ")
}

/// Is the line a page header, such as `RFC 6675   A Title   August 2012`?
fn is_header(line: &str) -> bool {
    line.starts_with("RFC ")
}

/// Returns the section number or the appendix letter if the line is a heading. A heading is not
/// indented. Most lines of a table of contents are indented. Those that are not have dots before
/// the page number, by which they are recognised.
fn heading(line: &str) -> Option<&str> {
    let (is_appendix, line) = match line.strip_prefix("Appendix ") {
        Some(line) => (true, line),
        None => (false, line),
    };
    let (number, title) = line.split_once(' ')?;
    let number = number.trim_end_matches(['.', ':']);
    let is_digits = |part: &str| {
        (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_letter = |part: &str| matches!(part.as_bytes(), [letter] if letter.is_ascii_uppercase());
    let mut parts = number.split('.');
    let first = parts.next().unwrap_or_default();
    let rest: Vec<_> = parts.collect();
    let is_first = is_digits(first) || is_letter(first) && (is_appendix || !rest.is_empty());
    let is_title = title
        .trim()
        .starts_with(|first: char| first.is_ascii_uppercase() || first.is_ascii_digit())
        && !title.contains("..")
        && !title.contains(". . ");
    (is_first && rest.iter().all(|part| is_digits(part)) && is_title).then_some(number)
}

/// Divides a paragraph into sentences.
fn cut(paragraph: &str) -> impl Iterator<Item = &str> {
    let mut rest = paragraph.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (sentence, after) = rest.split_at(end(rest));
        rest = after.trim_start();
        Some(sentence)
    })
}

/// Returns the length of the first sentence in bytes.
fn end(text: &str) -> usize {
    let ends = text.match_indices(['.', '?', '!']).map(|(at, _)| at + 1);
    ends.filter(|&at| {
        let mut after = text[at..].chars();
        after.next() == Some(' ') && after.next().is_some_and(|first| !first.is_lowercase())
    })
    .find(|&at| !["et al.", "Eq.", "vs.", "Sec."].iter().any(|short| text[..at].ends_with(short)))
    .unwrap_or(text.len())
}

/// Returns the level of the strongest key word; `None` without a key word.
fn level(sentence: &str) -> Option<Level> {
    let has = |key: &str| sentence.split(|c: char| !c.is_alphanumeric()).any(|word| word == key);
    let strengths: [(&[&str], Level); 3] = [
        (&["MUST", "SHALL", "REQUIRED"], Level::Must),
        (&["SHOULD", "RECOMMENDED"], Level::Should),
        (&["MAY", "OPTIONAL"], Level::May),
    ];
    strengths.into_iter().find(|(keys, _)| keys.iter().any(|key| has(key))).map(|(_, level)| level)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
RFC 99          A Title          May 2026

Abstract

   This does not count, and it MUST NOT.

   1. Introduction ......... 1

1.  Introduction

   The key words \"MUST\" and \"MAY\" are to
   be interpreted as described in RFC 2119.

2.  Rules

2.1.  The First

   A sender MUST wait, as X et al. say, and MAY sleep.  It must
   hope, e.g. for

Author                Standards Track               [Page 1]
\u{c}
RFC 99          A Title          May 2026

   rain, and SHOULD NOT do so aloud.  MUSTARD is no key word.

   (1) It is RECOMMENDED to rest

Appendix A.  Fate

   An OPTIONAL end.
";

    #[test]
    fn a_sentence_counts_once_by_its_strongest_word_across_pages() {
        let found = of(TEXT);
        let places: Vec<_> =
            found.iter().map(|found| (found.section.as_str(), found.level)).collect();
        let expected = [
            ("2.1", Level::Must),
            ("2.1", Level::Should),
            ("2.1", Level::Should),
            ("A", Level::May),
        ];
        assert_eq!(places, expected);
        assert_eq!(found[1].text, "It must hope, e.g. for rain, and SHOULD NOT do so aloud.");
    }

    #[test]
    fn headings_stand_at_the_margin() {
        assert_eq!(heading("3.10.7.4.  Other States"), Some("3.10.7.4"));
        assert_eq!(heading("4. Phase 1"), Some("4"));
        assert_eq!(heading("A.1.  More"), Some("A.1"));
        for other in
            ["   2.  Set In", "1.  Introduction ..... 3", "2010 was wet", "A rule", "2. is two"]
        {
            assert_eq!(heading(other), None, "{other}");
        }
    }
}
