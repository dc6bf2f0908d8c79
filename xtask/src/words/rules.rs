//! Applies the language rules to the text of a file.

use super::config::Config;
use super::files::Language;
use super::finding::{Breach, Finding, Place, WIDTH};
use super::piece::{self, Kind, Piece};
use super::vocabulary::{Occurrence, Vocabulary};
use std::path::Path;

/// The language rules in a form that can be applied to any number of files.
#[derive(Debug)]
pub(super) struct Rules<'a> {
    vocabulary: Vocabulary<'a>,
    openings: &'a [String],
}

impl<'a> Rules<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        Self { vocabulary: Vocabulary::new(config), openings: &config.openings }
    }

    /// Returns all violations in a file, in the order of its lines.
    pub(super) fn check(&self, file: &Path, language: Language, text: &str) -> Vec<Finding> {
        let pieces = match language {
            Language::Rust => piece::cut_rust(text),
            Language::Toml => piece::cut_toml(text),
            Language::Markdown => piece::cut_markdown(text),
        };
        let mut breaches = self.retired_terms(file, &pieces);
        if language != Language::Markdown {
            breaches.extend(self.openings(&pieces));
        }
        breaches.extend(wide_lines(language, text, &pieces));
        breaches.extend(conflict_markers(text));
        breaches.sort_by_key(|&(line, _)| line);
        let in_line = |(line, breach)| {
            let place = Place::Line { file: file.to_owned(), line };
            Finding { place, breach }
        };
        self.path(file).into_iter().chain(breaches.into_iter().map(in_line)).collect()
    }

    /// Returns a violation for each retired term in the path of a file.
    fn path(&self, file: &Path) -> Vec<Finding> {
        let text = file.to_string_lossy();
        let found = self.vocabulary.find(Piece { line: 1, kind: Kind::Code, text: &text }, file);
        let place = || Place::Path(file.to_owned());
        found.into_iter().map(|term| Finding { place: place(), breach: retired(term) }).collect()
    }

    fn retired_terms(&self, file: &Path, pieces: &[Piece<'_>]) -> Vec<(usize, Breach)> {
        let find = |piece: &Piece<'_>| {
            let found = self.vocabulary.find(*piece, file);
            found.into_iter().map(|term| (piece.line, retired(term))).collect::<Vec<_>>()
        };
        pieces.iter().flat_map(find).collect()
    }

    /// Returns a violation for each comment, or paragraph of a comment, that begins with a
    /// forbidden word.
    fn openings(&self, pieces: &[Piece<'_>]) -> Vec<(usize, Breach)> {
        let mut found = Vec::new();
        let mut line_above = None;
        for (at, piece) in pieces.iter().enumerate() {
            let Some(comment) = Comment::of(piece) else { continue };
            let is_alone = at == 0 || {
                let before = pieces[at - 1];
                before.line < piece.line || before.text.trim().is_empty()
            };
            let continues = is_alone && line_above == Some((piece.line - 1, comment.marker));
            if !continues && let Some(opening) = self.opening(comment.body) {
                found.push((piece.line, Breach::Opening(opening.to_owned())));
            }
            let is_text = is_alone && !comment.body.is_empty();
            line_above = is_text.then_some((piece.line, comment.marker));
        }
        found
    }

    /// Returns the forbidden opening with which `body` begins; `None` if there is none.
    fn opening(&self, body: &str) -> Option<&str> {
        self.openings.iter().map(String::as_str).find(|opening| {
            let Some((start, rest)) = body.split_at_checked(opening.len()) else { return false };
            start.eq_ignore_ascii_case(opening) && !rest.starts_with(char::is_alphanumeric)
        })
    }
}

fn retired(term: Occurrence<'_>) -> Breach {
    Breach::Retired { spelling: term.spelling.to_owned(), instead: term.instead.to_owned() }
}

/// A line of a comment, divided into its marker and the rest.
#[derive(Clone, Copy, Debug)]
struct Comment<'a> {
    /// The marker of the comment, such as `//`, `///`, `//!`, `/**` or `#`.
    marker: &'a str,
    body: &'a str,
}

impl<'a> Comment<'a> {
    /// Returns the line of a comment that is in `piece`; `None` if `piece` does not begin with a
    /// comment marker.
    fn of(piece: &Piece<'a>) -> Option<Self> {
        let begins = ["//", "/*", "#"].iter().any(|marker| piece.text.starts_with(marker));
        if piece.kind != Kind::Prose || !begins {
            return None;
        }
        let body = piece.text.trim_start_matches(['/', '*', '!', '#']);
        let marker = &piece.text[..piece.text.len() - body.len()];
        Some(Self { marker, body: body.trim() })
    }
}

/// Returns a violation for each line that is too long. Lines that cannot be broken are exempt: code
/// in TOML, and tables, code blocks and link targets in Markdown.
fn wide_lines(language: Language, text: &str, pieces: &[Piece<'_>]) -> Vec<(usize, Breach)> {
    let mut is_code = false;
    let mut is_prose = |line: &str| {
        let line = line.trim_start();
        let is_fence = line.starts_with("```") || line.starts_with("~~~");
        is_code ^= is_fence;
        let is_target = line.starts_with('[') && line.contains("]: ");
        !is_code && !is_fence && !is_target && !line.starts_with('|')
    };
    let has_comment = |number| {
        let of_line = pieces.partition_point(|piece| piece.line < number);
        let of_line = pieces[of_line..].iter().take_while(|piece| piece.line == number);
        of_line.last().is_some_and(|piece| piece.kind == Kind::Prose)
    };
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let is_prose = language != Language::Markdown || is_prose(line);
        let width = line.chars().count();
        if is_prose && width > WIDTH && (language != Language::Toml || has_comment(number)) {
            found.push((number, Breach::Width(width)));
        }
    }
    found
}

/// Returns a violation for each line that is a marker of a merge conflict.
fn conflict_markers(text: &str) -> impl Iterator<Item = (usize, Breach)> {
    let is_marker = |line: &str| {
        ['<', '>'].iter().any(|&side| {
            let rest = line.trim_start_matches(side);
            line.len() - rest.len() == 7 && rest.starts_with(' ')
        })
    };
    let markers = (1..).zip(text.lines()).filter(move |(_, line)| is_marker(line));
    markers.map(|(number, _)| (number, Breach::Conflict))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_in(file: &str, language: Language, text: &str) -> Vec<String> {
        let config = toml::from_str(
            "clean = []
            subjects_after = ''
            openings = ['Who', 'The same']
            allowed = []
            retired = [{ words = ['gizmo'], instead = 'device' }]",
        )
        .unwrap();
        let found = Rules::new(&config).check(Path::new(file), language, text);
        found.iter().map(ToString::to_string).collect()
    }

    fn findings(language: Language, text: &str) -> Vec<String> {
        findings_in("a.rs", language, text)
    }

    #[test]
    fn retired_terms_are_named_with_file_line_and_remedy() {
        let text = "// ok\nfn gizmo() {} // a Gizmo\nconst A: &str = \"my gizmos\";\n";
        let finding = |line, term| format!("a.rs:{line}: `{term}` is retired: write device");
        assert_eq!(
            findings(Language::Rust, text),
            [finding(2, "gizmo"), finding(2, "Gizmo"), finding(3, "gizmos")]
        );
        assert_eq!(findings(Language::Toml, "gizmo = 1\n"), [finding(1, "gizmo")]);
        assert_eq!(findings(Language::Markdown, "\n```\ngizmo\n```\n"), [finding(3, "gizmo")]);
    }

    #[test]
    fn the_path_of_a_file_is_checked_too() {
        let found = findings_in("src/gizmo.rs", Language::Rust, "");
        assert_eq!(found, ["src/gizmo.rs: `gizmo` is retired: write device"]);
    }

    /// Returns the numbers of the lines whose comments begin with a forbidden word.
    fn openings(language: Language, text: &str) -> Vec<usize> {
        let found = findings(language, text);
        let line = |finding: &String| {
            let line = finding.strip_prefix("a.rs:")?.split_once(": the comment opens with")?.0;
            line.parse().ok()
        };
        found.iter().map(|finding| line(finding).expect(finding)).collect()
    }

    #[test]
    fn a_comment_opens_with_a_thing() {
        for text in [
            "/// Who sends.",
            "//! who sends",
            "// The same for both.",
            "/* Who sends. */",
            "/** Who sends. */",
            "f(); // who sends",
            "// Who's next.",
            "/// Who\n/// sends.",
        ] {
            assert_eq!(openings(Language::Rust, text), [1], "{text}");
        }
        assert_eq!(openings(Language::Toml, "# Who sends.\n"), [1]);
        for text in
            ["/// Whole segments.", "/// The sames.", "f(\"// Who\")", "/// Says who sends."]
        {
            assert_eq!(openings(Language::Rust, text), [0; 0], "{text}");
        }
        assert_eq!(findings(Language::Markdown, "Who sends\n# Who sends\n"), [""; 0]);
    }

    #[test]
    fn only_the_first_line_of_a_paragraph_opens_it() {
        assert_eq!(openings(Language::Rust, "/// A sender\n/// who sends.\n"), [0; 0]);
        assert_eq!(openings(Language::Rust, "/// A sender.\n///\n/// Who sends.\n"), [3]);
        assert_eq!(openings(Language::Rust, "/// A sender.\n// Who sends.\n"), [2]);
        assert_eq!(openings(Language::Rust, "// A sender.\n\n// Who sends.\n"), [3]);
        assert_eq!(openings(Language::Rust, "f(); // A sender.\ng(); // Who sends.\n"), [2]);
        assert_eq!(openings(Language::Rust, "f(); // A sender.\n// Who sends.\n"), [2]);
        assert_eq!(openings(Language::Rust, "/* A sender\nwho sends. */\n"), [0; 0]);
    }

    #[test]
    fn a_line_has_at_most_100_columns() {
        let line =
            |length: usize, start: &str| format!("{start}{}\n", "é".repeat(length - start.len()));
        let wide = |line, width| {
            format!("a.rs:{line}: {width} columns: break the line at 100, or say it in fewer words")
        };
        for start in ["", "// ", "\""] {
            assert_eq!(findings(Language::Rust, &line(100, start)), [""; 0]);
            assert_eq!(findings(Language::Rust, &line(101, start)), [wide(1, 101)]);
        }
        assert_eq!(findings(Language::Toml, &line(101, "# ")), [wide(1, 101)]);
        assert_eq!(findings(Language::Toml, &line(101, "a = 1 # ")), [wide(1, 101)]);
        assert_eq!(findings(Language::Toml, &line(101, "a = \"# ")), [""; 0]);
        let prose = line(101, "");
        let text = format!("{prose}```\n{prose}```\n{prose}[a]: {prose}");
        assert_eq!(findings(Language::Markdown, &text), [wide(1, 101), wide(5, 101)]);
        assert_eq!(findings(Language::Markdown, &line(101, "| ")), [""; 0]);
    }

    #[test]
    fn markers_of_a_merge_conflict_are_found() {
        let (left, right) = ("<".repeat(7), ">".repeat(7));
        let text = format!("{left} HEAD\none\n{}\ntwo\n{right} 1a2b3c4\n", "=".repeat(7));
        let found = findings_in("a.md", Language::Markdown, &text);
        let conflict = "a marker of a merge conflict: resolve the conflict";
        assert_eq!(found, [format!("a.md:1: {conflict}"), format!("a.md:5: {conflict}")]);
        let text = format!("{left}\n> {right} quoted\n{left}< eight\n");
        assert!(findings_in("a.md", Language::Markdown, &text).is_empty());
    }
}
