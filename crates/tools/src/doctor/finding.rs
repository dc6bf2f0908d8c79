//! One thing about this machine.

/// One thing about this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub subject: &'static str,
    /// Is it as it should be?
    pub good: bool,
    /// What was found.
    pub found: String,
    /// What that means, and for which command.
    pub meaning: String,
    /// What would help, or do more.
    pub remedy: Option<String>,
}

impl Finding {
    pub(super) fn good(
        subject: &'static str,
        found: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Self {
        Self { subject, good: true, found: found.into(), meaning: meaning.into(), remedy: None }
    }

    pub(super) fn bad(
        subject: &'static str,
        found: impl Into<String>,
        meaning: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { subject, good: false, found: found.into(), meaning: meaning.into(), remedy }
    }
}
