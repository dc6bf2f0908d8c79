//! The table of requirements of one RFC: its format, and the faults that can be found without
//! running tests.

use super::level::{LEVELS, Level};
use super::sentences::Sentence;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The table of requirements of one RFC.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    /// The number of the RFC.
    pub(crate) rfc: u32,
    pub(crate) title: String,
    /// Number of requirements for each level in the RFC's own summary of requirements; `None` if
    /// the RFC has no summary. Identifiers of the summary are numbered from one for each level, as
    /// in `MUST-1`.
    pub(crate) summary: Option<Counts>,
    /// Number of normative sentences for each level, as `sentences.rs` counts them; `None` if the
    /// RFC has a summary. REC is advice without a key word, which `sentences.rs` cannot count. The
    /// table's file explains the number of RECs.
    pub(crate) sentences: Option<Counts>,
    /// Number of normative sentences that do not apply to an implementation of TCP, and have no
    /// row.
    pub(crate) elsewhere: Option<Counts>,
    /// A description of the sentences in `elsewhere`; `None` if `elsewhere` is `None`.
    pub(crate) elsewhere_is: Option<String>,
    /// The missing feature if the RFC is not implemented at all; otherwise `None`. With a missing
    /// feature, even a MUST may have the status [`Status::NotDone`].
    pub(crate) pending: Option<String>,
    #[serde(default)]
    pub(crate) requirement: Vec<Requirement>,
}

/// The number of requirements or sentences of each level.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Counts {
    #[serde(rename = "MUST")]
    must: usize,
    #[serde(rename = "SHLD")]
    should: usize,
    #[serde(rename = "MAY")]
    may: usize,
    #[serde(rename = "REC")]
    recommended: usize,
}

impl Counts {
    pub(crate) const fn of(&self, level: Level) -> usize {
        match level {
            Level::Must => self.must,
            Level::Should => self.should,
            Level::May => self.may,
            Level::Recommended => self.recommended,
        }
    }

    pub(crate) fn all(&self) -> usize {
        LEVELS.into_iter().map(|level| self.of(level)).sum()
    }
}

/// A requirement, which is a row of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requirement {
    /// The identifier in the RFC's summary, such as `MUST-1`. If the RFC has no summary, the
    /// identifier consists of RFC number, section and a letter, such as `8985-7.2-a`.
    pub(crate) id: String,
    pub(crate) level: Level,
    /// The section of the RFC that contains the requirement.
    pub(crate) section: String,
    /// The requirement as a paraphrase.
    pub(crate) says: String,
    /// The tests that fail if the requirement is violated, as `package::target::path::name`. The
    /// target is omitted for unit tests of a library.
    #[serde(default)]
    pub(crate) tests: Vec<String>,
    /// The reason why there are no tests; `None` if there are tests.
    pub(crate) status: Option<Status>,
    /// An explanation of the status; `None` if the requirement has no status.
    pub(crate) reason: Option<String>,
    /// Behaviour that the tests do not cover, or a choice that the RFC leaves open; `None` if there
    /// is neither.
    pub(crate) note: Option<String>,
}

/// The status of a requirement that has no tests.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Status {
    /// The requirement is not implemented yet, but is planned.
    NotDone,
    /// The requirement will not be implemented.
    Declined,
    /// The requirement does not apply to this stack: it concerns another party, such as a router,
    /// or a feature that the stack does not have.
    NotApplicable,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotDone => "not done",
            Self::Declined => "declined",
            Self::NotApplicable => "not applicable",
        })
    }
}

/// A fault of a table, or of the tests that it names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// A requirement of the RFC has no row.
    #[error("{0} has no row: add its tests, or the reason why there are none")]
    Missing(String),
    /// A requirement has several rows.
    #[error("{0} has more than one row")]
    Twice(String),
    /// A row has an identifier that does not exist in the RFC, or that belongs to another level or
    /// section than the row's.
    #[error("{0} is not an identifier of RFC {1}, or has another level or section")]
    Unknown(String, u32),
    /// The fields before the rows are inconsistent. A table must have either a summary or
    /// sentences, and only with sentences may it have `elsewhere`, together with `elsewhere_is`.
    #[error(
        "the table of RFC {0} must have either a summary or sentences, and explain `elsewhere`"
    )]
    Headless(u32),
    /// A table has too few or too many rows of a level.
    #[error("RFC {rfc} has {required} {level} to account for, and {rows} rows")]
    Rows {
        /// The number of the RFC.
        rfc: u32,
        /// The level with the wrong number of rows.
        level: Level,
        /// The number of rows that the head of the table requires.
        required: usize,
        /// The number of rows in the table.
        rows: usize,
    },
    /// The text of an RFC has another number of normative sentences than its table states.
    #[error("the text of RFC {rfc} has {text} {level} sentences, and its table says {head}")]
    Count {
        /// The number of the RFC.
        rfc: u32,
        /// The level of the counted sentences.
        level: Level,
        /// The number of sentences in the text.
        text: usize,
        /// The number of sentences that the head of the table states.
        head: usize,
    },
    /// A row has neither tests nor a status, or has both.
    #[error("{0} must have either tests, or a status with its reason")]
    Undecided(String),
    /// A MUST has the status [`Status::NotDone`], although the RFC is implemented.
    #[error("{0} is a MUST without a test")]
    Unproven(String),
    /// A row names a test that does not exist.
    #[error("there is no test {0}")]
    NoTest(String),
    /// A row names a test that did not pass.
    #[error("the test {0} has not passed")]
    NotPassed(String),
}

impl Table {
    pub(crate) fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Returns the names of all tests in the table.
    pub(crate) fn tests(&self) -> impl Iterator<Item = &str> {
        self.requirement.iter().flat_map(|row| &row.tests).map(String::as_str)
    }

    /// Returns the number of requirements that must have a row.
    pub(crate) fn required(&self) -> usize {
        LEVELS.into_iter().map(|level| self.required_of(level)).sum()
    }

    /// Returns the number of requirements of this level that must have a row.
    pub(crate) fn required_of(&self, level: Level) -> usize {
        let all = self.summary.or(self.sentences).unwrap_or_default().of(level);
        all.saturating_sub(self.elsewhere.unwrap_or_default().of(level))
    }

    /// Returns the faults of the table's head, which are the fields before the rows, and of its
    /// rows.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut faults = match (&self.summary, &self.sentences) {
            (Some(summary), None) if self.elsewhere.is_none() => self.faults_by_summary(summary),
            (None, Some(_)) if self.elsewhere.is_some() == self.elsewhere_is.is_some() => {
                self.faults_by_sentences()
            }
            _ => vec![Fault::Headless(self.rfc)],
        };
        faults.extend(self.requirement.iter().filter_map(|row| row.fault(self.pending.is_some())));
        faults
    }

    /// Returns a fault for each identifier of the RFC's summary that does not have exactly one row.
    fn faults_by_summary(&self, summary: &Counts) -> Vec<Fault> {
        let mut rows = BTreeMap::<_, u32>::new();
        for row in &self.requirement {
            *rows.entry((row.id.clone(), row.level)).or_default() += 1;
        }
        let mut faults = Vec::new();
        for level in LEVELS {
            for number in 1..=summary.of(level) {
                let id = format!("{level}-{number}");
                match rows.remove(&(id.clone(), level)) {
                    None => faults.push(Fault::Missing(id)),
                    Some(1) => {}
                    Some(_) => faults.push(Fault::Twice(id)),
                }
            }
        }
        faults.extend(rows.into_keys().map(|(id, _)| Fault::Unknown(id, self.rfc)));
        faults
    }

    /// Returns the faults of a table without a summary: each level needs as many rows as sentences,
    /// and identifiers must be unique.
    fn faults_by_sentences(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut ids = BTreeSet::new();
        for row in &self.requirement {
            if !row.id.starts_with(&format!("{}-{}-", self.rfc, row.section)) {
                faults.push(Fault::Unknown(row.id.clone(), self.rfc));
            } else if !ids.insert(&row.id) {
                faults.push(Fault::Twice(row.id.clone()));
            }
        }
        for level in LEVELS {
            let rows = self.requirement.iter().filter(|row| row.level == level).count();
            let required = self.required_of(level);
            if rows != required {
                faults.push(Fault::Rows { rfc: self.rfc, level, required, rows });
            }
        }
        faults
    }

    /// Returns a fault for each level whose number of sentences in the RFC's text differs from the
    /// number in the table's head. Advice (REC) is left out, because it has no key word by which it
    /// can be found.
    pub(crate) fn faults_of_text(&self, sentences: &[Sentence]) -> Vec<Fault> {
        let Some(head) = &self.sentences else { return Vec::new() };
        let levels = LEVELS.into_iter().filter(|&level| level != Level::Recommended);
        levels
            .map(|level| {
                (level, sentences.iter().filter(|sentence| sentence.level == level).count())
            })
            .filter(|&(level, text)| text != head.of(level))
            .map(|(level, text)| Fault::Count { rfc: self.rfc, level, text, head: head.of(level) })
            .collect()
    }
}

impl Requirement {
    fn fault(&self, is_pending: bool) -> Option<Fault> {
        let is_reasoned = self.status.is_some() && self.reason.is_some() && self.note.is_none();
        let is_bare = self.status.is_none() && self.reason.is_none();
        let is_decided = if self.tests.is_empty() { is_reasoned } else { is_bare };
        if !is_decided {
            Some(Fault::Undecided(self.id.clone()))
        } else if self.level == Level::Must && self.status == Some(Status::NotDone) && !is_pending {
            Some(Fault::Unproven(self.id.clone()))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, level: &str, rest: &str) -> String {
        format!(
            "[[requirement]]\nid = '{id}'\nlevel = '{level}'\nsection = '3.1'\nsays = 'x'\n{rest}\n"
        )
    }

    /// Returns a table in which every requirement has a test, except for rows that `change`
    /// replaces.
    fn table(change: impl Fn(&str) -> Option<String>) -> Table {
        let head =
            "rfc = 9293\ntitle = 'x'\nsummary = { MUST = 69, SHLD = 31, MAY = 18, REC = 1 }\n";
        let levels = LEVELS.into_iter().zip([69, 31, 18, 1]);
        let ids = levels.flat_map(|(level, count)| (1..=count).map(move |n| (level, n)));
        let rows = ids.map(|(level, number)| {
            let id = format!("{level}-{number}");
            change(&id).unwrap_or_else(|| row(&id, &level.to_string(), "tests = ['a::b']"))
        });
        Table::parse(&(head.to_owned() + &rows.collect::<String>())).unwrap()
    }

    #[test]
    fn each_of_119_identifiers_has_one_row() {
        let complete = table(|_| None);
        assert_eq!((complete.requirement.len(), complete.faults()), (119, vec![]));
        let missing = table(|id| (id == "SHLD-31").then(String::new));
        assert_eq!(missing.faults(), [Fault::Missing("SHLD-31".to_owned())]);
        let twice = table(|id| (id == "MAY-1").then(|| row(id, "MAY", "tests = ['a']").repeat(2)));
        assert_eq!(twice.faults(), [Fault::Twice("MAY-1".to_owned())]);
        let of_another_level = table(|id| (id == "REC-1").then(|| row(id, "MAY", "tests = ['a']")));
        let id = "REC-1".to_owned();
        assert_eq!(
            of_another_level.faults(),
            [Fault::Missing(id.clone()), Fault::Unknown(id, 9293)]
        );
    }

    #[test]
    fn a_row_has_tests_or_a_status_with_a_reason() {
        for undecided in [
            "",
            "tests = []",
            "status = 'declined'",
            "reason = 'because'",
            "tests = ['a']\nstatus = 'declined'\nreason = 'because'",
        ] {
            let table = table(|id| (id == "MAY-1").then(|| row(id, "MAY", undecided)));
            assert_eq!(table.faults(), [Fault::Undecided("MAY-1".to_owned())], "{undecided}");
        }
    }

    #[test]
    fn a_must_cannot_be_planned() {
        let with = |status: &str| {
            let rest = format!("status = '{status}'\nreason = 'because'");
            table(|id| (id == "MUST-7").then(|| row(id, "MUST", &rest))).faults()
        };
        assert_eq!(with("not-done"), [Fault::Unproven("MUST-7".to_owned())]);
        assert_eq!((with("declined"), with("not-applicable")), (vec![], vec![]));
    }

    /// Returns a table with this head and these rows, for a made-up RFC without a summary.
    fn counted(head: &str, rows: &[String]) -> Table {
        Table::parse(&format!("rfc = 99\ntitle = 'x'\n{head}\n{}", rows.concat())).unwrap()
    }

    #[test]
    fn without_a_summary_rows_are_counted_by_sentences() {
        let head =
            "sentences = { MUST = 2, MAY = 1 }\nelsewhere = { MUST = 1 }\nelsewhere_is = 'routers'";
        let proven = |id, level| row(id, level, "tests = ['a::b']");
        let rows = [proven("99-3.1-a", "MUST"), proven("99-3.1-b", "MAY")];
        assert_eq!((counted(head, &rows).faults(), counted(head, &rows).required()), (vec![], 2));
        let missing = Fault::Rows { rfc: 99, level: Level::May, required: 1, rows: 0 };
        assert_eq!(counted(head, &rows[..1]).faults(), [missing]);
        let twice = [proven("99-3.1-a", "MUST"), proven("99-3.1-a", "MAY")];
        assert_eq!(counted(head, &twice).faults(), [Fault::Twice("99-3.1-a".to_owned())]);
        let of_another_section = [proven("99-3.1-a", "MUST"), proven("99-3.2-b", "MAY")];
        let unknown = Fault::Unknown("99-3.2-b".to_owned(), 99);
        assert_eq!(counted(head, &of_another_section).faults(), [unknown]);
        for headless in ["", "sentences = {}\nelsewhere = {}", "sentences = {}\nsummary = {}"] {
            assert_eq!(counted(headless, &[]).faults(), [Fault::Headless(99)], "{headless}");
        }
    }

    #[test]
    fn a_pending_rfc_can_be_planned() {
        let rows = [row("99-3.1-a", "MUST", "status = 'not-done'\nreason = 'because'")];
        let head = "sentences = { MUST = 1 }";
        assert_eq!(counted(head, &rows).faults(), [Fault::Unproven("99-3.1-a".to_owned())]);
        assert_eq!(counted(&format!("{head}\npending = 'all of it'"), &rows).faults(), []);
    }

    #[test]
    fn the_head_is_compared_with_the_text() {
        let sentence = |level| Sentence { section: "1".to_owned(), level, text: String::new() };
        let text = [sentence(Level::Must), sentence(Level::May)];
        assert_eq!(
            counted("sentences = { MUST = 1, MAY = 1, REC = 4 }", &[]).faults_of_text(&text),
            []
        );
        let fault = Fault::Count { rfc: 99, level: Level::May, text: 1, head: 2 };
        assert_eq!(
            counted("sentences = { MUST = 1, MAY = 2 }", &[]).faults_of_text(&text),
            [fault]
        );
    }
}
