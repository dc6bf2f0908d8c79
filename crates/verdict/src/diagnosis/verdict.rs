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
    /// The confidence that the named limit is the right one, between 0 and 1. It is 1 if all
    /// conditions of the limit's rule hold fully, all its expectations are confirmed, and no rule
    /// of another limit applies. It is 0 if no limit is identified.
    pub confidence: f64,
    /// Throughput between the programs during the observed part of the first run, in bytes per
    /// second. The observed part normally begins after slow start.
    pub bytes_per_second: f64,
    /// The figures of the conditions by which the limit was identified; if no limit was identified,
    /// all known figures.
    pub evidence: Vec<EvidenceLine>,
    /// The effects of the interventions, in the order of their first runs.
    pub interventions: Vec<InterventionLine>,
    /// Interventions that the diagnosis requested, but that cannot be made on this path.
    pub skipped: Vec<Change>,
    /// Advice to the user how to raise the limit, in one or two sentences.
    pub advice: &'static str,
}

/// A figure of the first run, as evidence for a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvidenceLine {
    /// The name of the figure in JSON and text.
    pub counter: &'static str,
    /// The end at which the figure was measured.
    pub end: End,
    /// The measured value, in the unit of the figure.
    pub value: f64,
    /// The threshold that the figure exceeds or stays below, as text; `None` if no limit was
    /// identified.
    pub threshold: Option<String>,
    /// The reason for the threshold; `None` if no limit was identified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
}

/// The measured effect of an intervention.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct InterventionLine {
    /// The intervention whose effect was measured.
    pub change: Change,
    /// Ratio of the rate with the intervention to the rate without it.
    pub effect: f64,
    /// Lower and upper bound of the effect's interval, about two standard deviations below and
    /// above the effect.
    pub interval: [f64; 2],
    /// Is the effect only a lower bound of the true effect? It is if the runs with the intervention
    /// were contended, or if no data arrived without the intervention.
    #[serde(skip_serializing_if = "is_false")]
    pub is_lower_bound: bool,
    /// Ratio of the loss rate with the intervention to the loss rate without it; `None` if there
    /// are no losses without it, or if a counter is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_effect: Option<f64>,
    /// Ratio of the queueing delay with the intervention to the queueing delay without it; `None`
    /// if there is no delay without it, or if the delay is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_effect: Option<f64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}
