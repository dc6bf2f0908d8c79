//! Published figures, which are compared with those of the simulator. No parameter is fitted to
//! them.

use crate::measure::Measure;
use crate::outcome::Outcome;
use crate::parameter::{Number, ParameterError, Section, Settings};

/// A published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Name of the figure in the list of figures.
    pub id: String,
    /// The published value. Its range is the uncertainty of the document's wording.
    pub figure: Number,
    /// The simulator's measure that corresponds to the figure.
    pub measure: Measure,
    /// For a figure in `times`: the scenario, or the change KEY=VALUE to this one, whose figure is
    /// divided by that of this scenario.
    pub against: Option<String>,
    /// Meaning and limits of the simulator's figure.
    pub word: String,
}

impl Published {
    pub(crate) fn read_all(settings: &Settings) -> Result<Vec<Self>, ParameterError> {
        let names = settings.names("published");
        names
            .iter()
            .map(|id| Self::read(&settings.section(format!("published.{id}")), id))
            .collect()
    }

    fn read(section: &Section<'_>, id: &str) -> Result<Self, ParameterError> {
        let against =
            if section.has("against") { Some(section.word("against")?.to_owned()) } else { None };
        Ok(Self {
            id: id.to_owned(),
            figure: section.whole_number("figure")?,
            measure: section.word("measure")?.parse()?,
            against,
            word: section.word("word")?.to_owned(),
        })
    }

    /// Returns the corresponding figure of a run, in the unit of the document.
    #[must_use]
    pub fn ours(&self, outcome: &Outcome) -> Option<f64> {
        Some(outcome.measure(&self.measure)? / self.figure.base_factor()?)
    }

    /// Returns whether a figure is in the range of the published one.
    #[must_use]
    pub fn admits(&self, ours: f64) -> bool {
        let [low, high] = self.figure.range;
        (low..=high).contains(&ours)
    }
}
