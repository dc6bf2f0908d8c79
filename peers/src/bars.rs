//! What is to be reached: how many times as long as linerate each peer should take, and how near
//! linerate should come to the floor.

use crate::figures::Figure;
use serde::Serialize;

/// A bar, and where this run stands beside it.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    pub work: &'static str,
    pub contender: &'static str,
    /// The contender's time by linerate's, at least; for the floor linerate's by its, at most.
    pub bar: f64,
    pub reached: f64,
    pub is_met: bool,
}

const FLOOR: &str = "floor";

/// For the floor at most; for all others at least.
const BARS: [(&str, &str, f64); 7] = [
    ("bulk", "smoltcp", 2.0),
    ("bulk", "lwip", 2.5),
    ("bulk", "gvisor", 15.0),
    ("bulk", FLOOR, 1.35),
    ("bulk-in-place", "smoltcp", 1.7),
    // At most 0.6 of smoltcp's time.
    ("ping-pong", "smoltcp", 1.0 / 0.6),
    ("connect", "smoltcp", 1.4),
];

/// The bars of whatever was measured.
pub fn judge(figures: &[Figure]) -> Vec<Bar> {
    let of = |work, contender| {
        figures.iter().find(move |figure| (figure.work, figure.contender) == (work, contender))
    };
    let judged = BARS.iter().filter_map(|&(work, contender, bar)| {
        let ratio = of(work, contender)?.times_linerate.median;
        let (reached, is_met) = match contender {
            FLOOR => (1.0 / ratio, 1.0 / ratio <= bar),
            _ => (ratio, ratio >= bar),
        };
        Some(Bar { work, contender, bar, reached, is_met })
    });
    judged.collect()
}

impl Bar {
    /// The bar in words, for the table.
    pub fn sentence(&self) -> String {
        let Self { contender, bar, reached, .. } = self;
        let outcome = if self.is_met { "reached" } else { "not reached" };
        match *contender {
            FLOOR => format!("at most {bar:.2} times the floor's time: {reached:.2}, {outcome}"),
            _ => format!("{contender} takes at least {bar:.2} times as long: {reached:.2}, {outcome}"),
        }
    }
}
