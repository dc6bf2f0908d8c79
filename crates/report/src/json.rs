//! The JSON document of a sweep, whose schema is docs/schema/sweep.json.

use crate::fast_path;
use crate::model::Model;
use crate::report::Report;
use linerate_evidence::Facts;
use linerate_evidence::FastPath;
use linerate_evidence::Maximum;
use linerate_evidence::RunRecord;
use linerate_evidence::stats::as_f64;
use linerate_verdict::CellSummary;
use linerate_verdict::diagnosis::Limit;
use linerate_verdict::{CellName, Finding, PredictedCell, Predictions};
use serde::Serialize;

/// The JSON document of a sweep.
#[derive(Serialize)]
struct Document<'a, P> {
    plan: &'a P,
    facts: &'a Facts,
    maximum: &'a Maximum,
    runs: &'a [RunRecord],
    cells: Vec<CellRecord>,
    /// The fit of the model of the machine's speed; absent if the speed was constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Model>,
    fast_path: FastPaths,
    /// Predictions of the cells that a time budget left unmeasured; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<PredictionsRecord>,
    findings: &'a [Finding],
}

/// The predicted cells, with the parameters of the model.
#[derive(Serialize)]
struct PredictionsRecord {
    /// Rate with unlimited buffers, in bytes per second.
    capacity: f64,
    round_trip_seconds: f64,
    /// Ratio of two windows: the window that one byte of receive buffer provides, divided by the
    /// window that one byte of send buffer provides.
    receive_share: f64,
    /// Exponent that says how much sending at capacity overlaps with waiting for acknowledgements.
    /// With 1, the time of sending and the time of waiting add up. With a large exponent, the
    /// longer of the two times alone determines the rate.
    overlap: f64,
    /// The accuracy of the model, determined by cross-validation on measured cells; `None` if it is
    /// not known.
    score: Option<ScoreRecord>,
    cells: Vec<PredictionRecord>,
}

/// The accuracy of the model by cross-validation: each measured cell is predicted from the other
/// measured cells, and compared with its measured rate.
#[derive(Serialize)]
struct ScoreRecord {
    cells: usize,
    /// Number of measured cells whose rate is within the predicted interval.
    within_interval: usize,
    /// Median of the relative errors of the predictions.
    median_error: f64,
}

/// A predicted cell. Rates are in bytes per second, with a 95 % interval for the rate of one run.
#[derive(Serialize)]
struct PredictionRecord {
    #[serde(flatten)]
    name: CellName,
    predicted: f64,
    low: f64,
    high: f64,
}

/// A measured cell. Rates are in bytes per second, with the 95 % interval of the median.
#[derive(Serialize)]
struct CellRecord {
    #[serde(flatten)]
    name: CellName,
    runs: usize,
    median: f64,
    low: f64,
    high: f64,
    percent_of_maximum: Option<f64>,
    /// The factors that limit the rate of the cell: one factor, both buffers together, or an empty
    /// list if none was identified. The field is absent if the limits of the sweep were not
    /// determined.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Vec<Limit>>,
    /// Do larger buffers gain nothing? They gain nothing if no uncontended cell with a larger
    /// buffer, at one end or at both ends, is more than 5 % faster. The field is absent if the
    /// limits of the sweep were not determined.
    #[serde(skip_serializing_if = "Option::is_none")]
    neither_buffer_matters: Option<bool>,
}

/// Hits and misses of header prediction at each end, as sums over all runs; `None` for an end
/// without header prediction.
#[derive(Serialize)]
struct FastPaths {
    sender: Option<EndPath>,
    receiver: Option<EndPath>,
}

/// The header prediction of one end, with the share of segments that were hits.
#[derive(Serialize)]
struct EndPath {
    share: Option<f64>,
    #[serde(flatten)]
    path: FastPath,
}

impl Report<'_> {
    /// Returns the sweep as a JSON document. `plan` is the complete plan: the design of this
    /// report, and the settings of the engine.
    #[must_use]
    pub fn json(&self, plan: &impl Serialize) -> String {
        let end = |path: Option<FastPath>| path.map(|path| EndPath { share: path.share(), path });
        let document = Document {
            plan,
            facts: &self.start.facts,
            maximum: &self.start.maximum,
            runs: self.runs,
            cells: self.table.iter().map(|cell| self.cell_record(cell)).collect(),
            model: Model::of(self),
            fast_path: FastPaths {
                sender: end(fast_path::total(self.runs.iter().map(|run| &run.counters.sender))),
                receiver: end(fast_path::total(self.runs.iter().map(|run| &run.counters.receiver))),
            },
            predictions: self
                .predictions
                .as_ref()
                .map(|predictions| self.predicted_record(predictions)),
            findings: &self.findings,
        };
        // The conversion cannot fail, because the document consists of strings, numbers and maps
        // with string keys.
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    }

    fn predicted_record(&self, predictions: &Predictions) -> PredictionsRecord {
        let payload = self.start.facts.bench.segment_payload;
        let cell = |one: &PredictedCell| PredictionRecord {
            name: CellName::new(one.cell, payload),
            predicted: one.prediction.rate,
            low: one.prediction.low,
            high: one.prediction.high,
        };
        let model = predictions.model;
        PredictionsRecord {
            capacity: model.capacity,
            round_trip_seconds: model.round_trip,
            receive_share: model.receive_share,
            overlap: model.overlap,
            score: predictions.score.map(|score| ScoreRecord {
                cells: score.cells,
                within_interval: score.within,
                median_error: score.median_error,
            }),
            cells: predictions.cells.iter().map(cell).collect(),
        }
    }

    fn cell_record(&self, cell: &CellSummary<'_>) -> CellRecord {
        let maximum = self.start.maximum.bytes_per_second();
        let limit = self.limits.iter().find(|limit| limit.cell == cell.cell);
        CellRecord {
            name: CellName::new(cell.cell, self.start.facts.bench.segment_payload),
            runs: cell.runs.len(),
            median: cell.median(),
            low: cell.interval.low,
            high: cell.interval.high,
            percent_of_maximum: maximum.map(|maximum| cell.median() / maximum * as_f64(100)),
            limits: limit.map(|limit| limit.limits.clone()),
            neither_buffer_matters: limit.map(|limit| limit.is_flat),
        }
    }
}
