//! Parameters of a queue discipline, from its file.

use super::codel::CoDelParameters;
use super::fair::FairParameters;
use super::red::RedParameters;
use crate::parameter::{ParameterError, Section};

/// Upper limit of the number of queues of a discipline. It bounds memory, because even an empty
/// queue takes some.
const MOST_QUEUES: u64 = 65_536;
/// Upper limit of the configured number of queued frames.
const MOST_WAITING: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueParameters {
    pub(super) law: Law,
    /// Maximum number of queued frames.
    pub(super) limit: usize,
    /// Whether ECN-capable frames are marked instead of dropped.
    pub(super) marks: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Law {
    TailDrop,
    Red(RedParameters),
    CoDel(CoDelParameters),
    Fair(FairParameters),
}

impl QueueParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        let codel = || {
            Ok(CoDelParameters {
                target: section.span("target")?,
                interval: section.span("interval")?,
            })
        };
        let law = match section.word("discipline")? {
            "tail-drop" => Law::TailDrop,
            "red" => Law::Red(read_red(section)?),
            "codel" => Law::CoDel(codel()?),
            "fq-codel" => Law::Fair(FairParameters {
                codel: codel()?,
                queues: section.size_within("queues", 1..=MOST_QUEUES)?,
                quantum: section.count_within("quantum", 1..=u64::from(u32::MAX))?,
            }),
            other => {
                return Err(ParameterError::Unknown {
                    what: "queue discipline",
                    name: other.to_owned(),
                    known: "tail-drop, red, codel, fq-codel".to_owned(),
                });
            }
        };
        Ok(Self {
            law,
            limit: section.size_within("limit", 1..=MOST_WAITING)?,
            marks: section.switch("marks")?,
        })
    }
}

fn read_red(section: &Section<'_>) -> Result<RedParameters, ParameterError> {
    let (low, high) = (section.real("low")?, section.real("high")?);
    if low >= high {
        let what = "the thresholds of a RED queue are reversed: make low less than high";
        return Err(ParameterError::Topology(what.to_owned()));
    }
    Ok(RedParameters {
        low,
        high,
        most: section.share("most")?,
        weight: section.share("weight")?,
        frame: section.span("frame")?,
    })
}
