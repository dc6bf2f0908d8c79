//! Published figures, and the figures of simulated runs to compare with them. Parameters of the
//! model are not fitted to these figures.

use crate::measure::Measure;
use crate::outcome::Outcome;
use crate::parameter::{Number, ParameterError, Section, Settings};

/// A published figure, and the figure of a simulated run to compare with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Identifier of the figure in lists.
    pub id: String,
    /// The published value. Its range expresses the precision of the published text.
    pub figure: Number,
    /// The figure of a simulated run that corresponds to the published one.
    pub measure: Measure,
    /// The other scenario, if the published figure is a ratio (unit `times`): the figure of the
    /// other scenario divided by that of the present one. It is given by its name, or by a change
    /// KEY=VALUE of the present scenario. `None` if the published figure is no ratio.
    pub against: Option<String>,
    /// Explanation of the simulated figure, and of the limits of the comparison.
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

    /// Returns the figure of a simulated run that corresponds to the published one, in the unit of
    /// the published figure. Returns `None` if the run has no such figure.
    #[must_use]
    pub fn ours(&self, outcome: &Outcome) -> Option<f64> {
        Some(outcome.measure(&self.measure)? / self.figure.base_factor()?)
    }

    /// Returns whether a simulated figure is in the range of the published one.
    #[must_use]
    pub fn admits(&self, ours: f64) -> bool {
        let [low, high] = self.figure.range;
        (low..=high).contains(&ours)
    }
}
