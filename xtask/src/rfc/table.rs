//! The table of requirements: its form, and what can be wrong with it before any test is looked at.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// The identifiers of RFC 9293's own summary (appendix B): each level is numbered from one to this.
pub(crate) const LEVELS: [(Level, u32); 4] =
    [(Level::Must, 69), (Level::Should, 31), (Level::May, 18), (Level::Recommended, 1)];

/// The whole of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) requirement: Vec<Requirement>,
}

/// One row.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requirement {
    /// As in the RFC: `MUST-1`.
    pub(crate) id: String,
    pub(crate) level: Level,
    /// Of RFC 9293.
    pub(crate) section: String,
    /// What is required, in our words.
    pub(crate) says: String,
    /// Tests that fail if it does not hold: `package::target::path::name`, without the target for
    /// those beside the code of a library.
    #[serde(default)]
    pub(crate) tests: Vec<String>,
    /// Why there are none.
    pub(crate) status: Option<Status>,
    /// The reason for that.
    pub(crate) reason: Option<String>,
    /// What the tests leave open, or we do differently where the RFC leaves room.
    pub(crate) note: Option<String>,
}

/// How strongly it is required.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    #[serde(rename = "MUST")]
    Must,
    #[serde(rename = "SHLD")]
    Should,
    #[serde(rename = "MAY")]
    May,
    #[serde(rename = "REC")]
    Recommended,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Must => "MUST",
            Self::Should => "SHLD",
            Self::May => "MAY",
            Self::Recommended => "REC",
        })
    }
}

/// Where a requirement without tests stands.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Status {
    /// It is meant to be met, and is not yet.
    NotDone,
    /// We have decided against it.
    Declined,
    /// It binds somebody else, or speaks of something that there is not.
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

/// Something wrong with the table, or with what it claims.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// A requirement has no row.
    #[error("{0} has no row: say how it is met, or why not")]
    Missing(String),
    /// A requirement has several rows.
    #[error("{0} has more than one row")]
    Twice(String),
    /// No requirement has this identifier.
    #[error("{0} is no identifier of RFC 9293, or its level is another")]
    Unknown(String),
    /// Neither tests nor status, or both.
    #[error("{0} must have either tests, or a status with its reason")]
    Undecided(String),
    /// A MUST is neither tested nor decided against.
    #[error("{0} is a MUST without a test")]
    Unproven(String),
    /// A test that does not exist.
    #[error("there is no test {0}")]
    NoTest(String),
    /// A test that was run and has not passed.
    #[error("the test {0} has not passed")]
    NotPassed(String),
}

impl Table {
    pub(crate) fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// All tests that are named.
    pub(crate) fn tests(&self) -> impl Iterator<Item = &str> {
        self.requirement.iter().flat_map(|row| &row.tests).map(String::as_str)
    }

    /// What is wrong with the rows.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut rows = BTreeMap::<_, u32>::new();
        for row in &self.requirement {
            *rows.entry((row.id.clone(), row.level)).or_default() += 1;
        }
        let mut faults = Vec::new();
        for (level, count) in LEVELS {
            for number in 1..=count {
                let id = format!("{level}-{number}");
                match rows.remove(&(id.clone(), level)) {
                    None => faults.push(Fault::Missing(id)),
                    Some(1) => {}
                    Some(_) => faults.push(Fault::Twice(id)),
                }
            }
        }
        faults.extend(rows.into_keys().map(|(id, _)| Fault::Unknown(id)));
        faults.extend(self.requirement.iter().filter_map(Requirement::fault));
        faults
    }
}

impl Requirement {
    fn fault(&self) -> Option<Fault> {
        let is_reasoned = self.status.is_some() && self.reason.is_some() && self.note.is_none();
        let is_bare = self.status.is_none() && self.reason.is_none();
        let is_decided = if self.tests.is_empty() { is_reasoned } else { is_bare };
        if !is_decided {
            Some(Fault::Undecided(self.id.clone()))
        } else if self.level == Level::Must && self.status == Some(Status::NotDone) {
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
        format!("[[requirement]]\nid = '{id}'\nlevel = '{level}'\nsection = '3.1'\nsays = 'x'\n{rest}\n")
    }

    /// A table in which every requirement is proven, but for the rows that `change` gives.
    fn table(change: impl Fn(&str) -> Option<String>) -> Table {
        let ids = LEVELS.into_iter().flat_map(|(level, count)| (1..=count).map(move |n| (level, n)));
        let rows = ids.map(|(level, number)| {
            let id = format!("{level}-{number}");
            change(&id).unwrap_or_else(|| row(&id, &level.to_string(), "tests = ['a::b']"))
        });
        Table::parse(&rows.collect::<String>()).unwrap()
    }

    #[test]
    fn each_of_the_119_identifiers_has_one_row() {
        let complete = table(|_| None);
        assert_eq!((complete.requirement.len(), complete.faults()), (119, vec![]));
        let missing = table(|id| (id == "SHLD-31").then(String::new));
        assert_eq!(missing.faults(), [Fault::Missing("SHLD-31".to_owned())]);
        let twice = table(|id| (id == "MAY-1").then(|| row(id, "MAY", "tests = ['a']").repeat(2)));
        assert_eq!(twice.faults(), [Fault::Twice("MAY-1".to_owned())]);
        let of_another_level = table(|id| (id == "REC-1").then(|| row(id, "MAY", "tests = ['a']")));
        let id = "REC-1".to_owned();
        assert_eq!(of_another_level.faults(), [Fault::Missing(id.clone()), Fault::Unknown(id)]);
    }

    #[test]
    fn a_row_has_tests_or_a_reason_why_not() {
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
    fn a_must_is_proven_or_decided_against_and_never_only_planned() {
        let with = |status: &str| {
            let rest = format!("status = '{status}'\nreason = 'because'");
            table(|id| (id == "MUST-7").then(|| row(id, "MUST", &rest))).faults()
        };
        assert_eq!(with("not-done"), [Fault::Unproven("MUST-7".to_owned())]);
        assert_eq!((with("declined"), with("not-applicable")), (vec![], vec![]));
    }
}
