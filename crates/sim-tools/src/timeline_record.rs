//! A timeline in the form of JSON.

use linerate_sim::{Activity, Outcome, SegmentLabel, Timeline, Window};
use serde::Serialize;

/// A timeline, with the fields of its JSON.
#[derive(Clone, Debug, Serialize)]
pub struct TimelineRecord {
    scenario: String,
    seed: u64,
    from_seconds: f64,
    until_seconds: f64,
    /// Number of activities that were omitted because of the timeline's memory limit.
    left_out: u64,
    lanes: Vec<LaneRecord>,
}

#[derive(Clone, Debug, Serialize)]
struct LaneRecord {
    part: String,
    held: Vec<HeldRecord>,
}

#[derive(Clone, Debug, Serialize)]
struct HeldRecord {
    from_seconds: f64,
    until_seconds: f64,
    by: Activity,
    amount: u64,
    /// The TCP segment in the frame, with sequence numbers relative to the SYNs. `None` for a SYN,
    /// a FIN or an RST, and for an activity that is not the transmission of a segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    segment: Option<SegmentRecord>,
}

#[derive(Clone, Debug, Serialize)]
struct SegmentRecord {
    seq: u32,
    length: u32,
    ack: u32,
    window: u32,
}

impl From<SegmentLabel> for SegmentRecord {
    fn from(SegmentLabel { seq, length, ack, window }: SegmentLabel) -> Self {
        Self { seq, length, ack, window }
    }
}

impl TimelineRecord {
    /// Creates the record of a timeline, which was recorded in this window.
    #[must_use]
    pub fn new(
        scenario: &str,
        seed: u64,
        window: Window,
        outcome: &Outcome,
        timeline: &Timeline,
    ) -> Self {
        let lanes = timeline.lanes.iter().map(|lane| LaneRecord {
            part: lane.part.clone(),
            held: lane
                .held
                .iter()
                .map(|held| HeldRecord {
                    from_seconds: held.from.as_secs_f64(),
                    until_seconds: held.until.as_secs_f64(),
                    by: held.by,
                    amount: held.amount,
                    segment: held.segment.map(SegmentRecord::from),
                })
                .collect(),
        });
        Self {
            scenario: scenario.to_owned(),
            seed,
            from_seconds: window.from.as_secs_f64(),
            until_seconds: window.until.min(outcome.time).as_secs_f64(),
            left_out: timeline.left_out,
            lanes: lanes.collect(),
        }
    }
}
