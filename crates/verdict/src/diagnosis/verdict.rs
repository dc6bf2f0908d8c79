//! The verdict of a diagnosis, as JSON and for text.

use super::figure::End;
use super::limit::Limit;
use linerate_evidence::Change;
use serde::Serialize;

/// The verdict of a diagnosis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The limit.
    pub limit: Limit,
    /// How well the evidence singles the limit out, between 0 and 1: 1 if its rule fits entirely,
    /// every intervention confirms it, and no other rule fits.
    pub confidence: f64,
    /// Throughput of the plain transfer from task to task, without slow start.
    pub bytes_per_second: f64,
    /// The figures that decided; without a limit, all that are known.
    pub evidence: Vec<EvidenceLine>,
    /// The interventions, in the order of the runs.
    pub interventions: Vec<InterventionLine>,
    /// Interventions that were wanted and that the path cannot make.
    pub skipped: Vec<Change>,
    /// The remedy, as one sentence.
    pub advice: &'static str,
}

/// A figure of a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvidenceLine {
    /// The name of the figure.
    pub counter: &'static str,
    /// The end at which it was measured.
    pub end: End,
    /// The value.
    pub value: f64,
    /// The threshold; `None` if no rule decided.
    pub threshold: Option<String>,
    /// The reason for the threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
}

/// An intervention of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct InterventionLine {
    /// The change.
    pub change: Change,
    /// Rate with the change over the plain rate.
    pub effect: f64,
    /// The interval of the effect.
    pub interval: [f64; 2],
    /// Retransmitted share with the change over the plain one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_effect: Option<f64>,
    /// Queueing delay with the change over the plain one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_effect: Option<f64>,
}
