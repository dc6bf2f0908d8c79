//! The verdict of a diagnosis, for JSON and for text output.

use super::figure::End;
use super::limit::Limit;
use linerate_evidence::Change;
use serde::Serialize;

/// The verdict of a diagnosis: the limit, its evidence, and advice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The factor that limits the throughput of the path.
    pub limit: Limit,
    /// How clearly the evidence identifies the limit, between 0 and 1: 1 if its rule fits entirely,
    /// every intervention confirms it, and no other rule fits.
    pub confidence: f64,
    /// Throughput of the first run in bytes per second, between the programs, without slow start.
    pub bytes_per_second: f64,
    /// The figures that identified the limit; if no limit was identified, all known figures.
    pub evidence: Vec<EvidenceLine>,
    /// The effects of the interventions, in the order of the runs.
    pub interventions: Vec<InterventionLine>,
    /// Interventions that the rules asked for, but that the path cannot make.
    pub skipped: Vec<Change>,
    /// The remedy in one or two sentences.
    pub advice: &'static str,
}

/// A figure that supports a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvidenceLine {
    /// The name of the figure in JSON and text.
    pub counter: &'static str,
    /// The end at which the figure was measured.
    pub end: End,
    /// The measured value.
    pub value: f64,
    /// The threshold as text; `None` if no limit was identified.
    pub threshold: Option<String>,
    /// The reason for the threshold; `None` if no limit was identified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
}

/// The measured effect of an intervention.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct InterventionLine {
    /// The intervention.
    pub change: Change,
    /// Ratio of the rate with the intervention to the rate without it.
    pub effect: f64,
    /// Lower and upper bound of the effect's interval, about two standard deviations around it.
    pub interval: [f64; 2],
    /// Ratio of the loss rate with the intervention to that without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_effect: Option<f64>,
    /// Ratio of the queueing delay with the intervention to that without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_effect: Option<f64>,
}
