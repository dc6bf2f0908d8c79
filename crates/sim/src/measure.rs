//! The figures of a run, and their names in scenario files.

use crate::parameter::ParameterError;

/// A figure to be computed from the results of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Sum of the throughputs of the named programs, in bit/s.
    Goodput(Vec<String>),
    /// Throughput of the fastest of the named programs, as a fraction of their combined throughput.
    LargerShare(Vec<String>),
    /// Standard deviation of the throughputs of all programs with this name, in bit/s.
    Spread(String),
    /// Fraction of time in which a host's processors were idle: the mean over all of them.
    Idle(String),
    /// Time in which a program transfers this many bytes at its mean throughput, in picoseconds.
    Time(String, u64),
    /// Mean bit rate of the frames on a wire, in bit/s. The bits include check sequences, but no
    /// preambles. `None` means the first wire.
    Carried(Option<String>),
    /// Mean size of the frames on a wire, in bytes. `None` means the first wire.
    FrameSize(Option<String>),
    /// Mean queueing delay in a switch, a router or a bridge, in picoseconds. `None` means the
    /// switch of the first wire.
    Waited(Option<String>),
    /// Number of frames that the queues of a switch, a router or a bridge marked with ECN. `None`
    /// means the switch of the first wire.
    Marked(Option<String>),
    /// Sum of a counter over several programs. The first name selects the programs, the second name
    /// the counter.
    Counted(String, String),
    /// Number of full-size frames that fit a receive ring of a host's NIC.
    Room(String),
    /// Number of frames that a host's NIC failed to receive, or that a router or a bridge lost in
    /// any way.
    Lost(String),
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
                known: "goodput NAME…, larger-share NAME NAME, spread NAME, idle HOST, lost \
                        HOST, room HOST, time NAME BYTES, \
                        carried [WIRE], frame-size [WIRE], waited [WIRE|ROUTER], marked \
                        [WIRE|ROUTER], counted NAME WHAT"
                    .to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measure_is_a_verb_with_its_arguments() {
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
