//! The result of examining one property of this machine.

/// The result of examining one property of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the property.
    pub subject: &'static str,
    /// Is the property as it should be for linerate?
    pub good: bool,
    /// The value that was found.
    pub found: String,
    /// The consequence of the value, and the command that it affects.
    pub meaning: String,
    /// The remedy for a bad value, or a possible improvement; `None` if there is neither.
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
