//! A figure that a document gives, beside which ours is set. No parameter is fitted to it.

use crate::outcome::Outcome;
use crate::parameter::{Number, ParameterError, Section, Settings};

/// A document's figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Its name in the list of figures.
    pub id: String,
    /// What the document says: its range is what the document's words leave open.
    pub figure: Number,
    /// Which figure of ours stands beside it.
    pub measure: Measure,
    /// A figure in `times` is that of the scenario of this name (or of this one with this KEY=VALUE), over ours.
    pub against: Option<String>,
    /// What our figure means and what it does not.
    pub word: String,
}

/// A figure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// What programs moved in a second, together: bits a second.
    Goodput(Vec<String>),
    /// Of two programs, the part of the one that moved more.
    LargerShare(Vec<String>),
    /// How much the programs of one name differ: the standard deviation of their goodputs, bits a second.
    Spread(String),
    /// The part of the time that a host's processor had nothing to do.
    Idle(String),
    /// How long a program takes for so many bytes, in picoseconds.
    Time(String, u64),
    /// What crosses a wire, the first one if none is named: bits a second, check sequences included, preambles not.
    Carried(Option<String>),
    /// Bytes of a frame on a wire, on average.
    FrameSize(Option<String>),
    /// How long frames waited in a switch, a router or a bridge, on average, in picoseconds.
    Waited(Option<String>),
    /// Frames that its queues marked.
    Marked(Option<String>),
    /// Something that programs of a name have counted, together.
    Counted(String, String),
    /// How many of the longest frames a host's card holds.
    Room(String),
    /// Frames that a host's card has lost, or a router or a bridge anywhere within it.
    Lost(String),
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

    /// Our figure in the document's unit.
    #[must_use]
    pub fn ours(&self, outcome: &Outcome) -> Option<f64> {
        Some(outcome.measure(&self.measure)? / self.figure.base_factor()?)
    }

    /// Does a figure lie where the document's words leave it?
    #[must_use]
    pub fn admits(&self, ours: f64) -> bool {
        let [low, high] = self.figure.range;
        (low..=high).contains(&ours)
    }
}

impl std::str::FromStr for Measure {
    type Err = ParameterError;

    fn from_str(text: &str) -> Result<Self, ParameterError> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let (verb, names) =
            words.split_first().map_or(("", &[][..]), |(verb, names)| (verb.as_str(), names));
        match (verb, names) {
            ("goodput", [_, ..]) => Ok(Self::Goodput(names.to_vec())),
            ("larger-share", [_, _]) => Ok(Self::LargerShare(names.to_vec())),
            ("spread", [name]) => Ok(Self::Spread(name.clone())),
            ("idle", [name]) => Ok(Self::Idle(name.clone())),
            ("room", [name]) => Ok(Self::Room(name.clone())),
            ("lost", [name]) => Ok(Self::Lost(name.clone())),
            ("carried", [] | [_]) => Ok(Self::Carried(names.first().cloned())),
            ("marked", [] | [_]) => Ok(Self::Marked(names.first().cloned())),
            ("frame-size", [] | [_]) => Ok(Self::FrameSize(names.first().cloned())),
            ("waited", [] | [_]) => Ok(Self::Waited(names.first().cloned())),
            ("counted", [name, what]) => Ok(Self::Counted(name.clone(), what.clone())),
            ("time", [name, bytes]) if bytes.parse::<u64>().is_ok() => {
                Ok(Self::Time(name.clone(), bytes.parse().unwrap_or(0)))
            }
            _ => Err(ParameterError::Unknown {
                what: "measure",
                name: text.to_owned(),
                known: "goodput NAME…, larger-share NAME NAME, spread NAME, idle HOST, lost HOST, room HOST, time NAME BYTES, \
                        carried [WIRE], frame-size [WIRE], waited [WIRE|ROUTER], marked [WIRE|ROUTER], counted NAME WHAT"
                    .to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measure_is_a_verb_with_its_names_and_nothing_else() {
        assert_eq!("idle a".parse(), Ok(Measure::Idle("a".to_owned())));
        assert_eq!("waited".parse(), Ok(Measure::Waited(None)));
        assert_eq!("waited west".parse(), Ok(Measure::Waited(Some("west".to_owned()))));
        assert_eq!("time a 10".parse(), Ok(Measure::Time("a".to_owned(), 10)));
        for wrong in ["", "idle", "time a b", "larger-share a", "carried x y", "speed a"] {
            let error = wrong.parse::<Measure>().unwrap_err().to_string();
            assert!(error.contains("choose one of goodput"), "{error}");
        }
    }
}
