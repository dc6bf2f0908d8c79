//! The targets of the benchmark: how much more processor time than linerate each peer should take,
//! and how close linerate should come to the floor.

use crate::figures::Figure;
use serde::Serialize;

/// A target, and the result of this run. For a peer, `bar` is the minimum ratio of its time to
/// linerate's. For the floor, it is the maximum ratio of linerate's time to the floor's. For
/// linerate with many connections or with loss, it is the maximum ratio of its time to that
/// without.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    pub work: &'static str,
    pub contender: &'static str,
    pub bar: f64,
    pub reached: f64,
    pub is_met: bool,
}

/// The meaning of a target's number.
enum Kind {
    /// The minimum ratio of the peer's time to linerate's.
    Peer,
    /// The maximum ratio of linerate's time to the floor's.
    Floor,
    /// The minimum speed-up of linerate by a second core.
    Cores,
    /// The maximum ratio of linerate's time with many connections or loss to its usual time.
    Harder,
}

impl Kind {
    fn of(contender: &str) -> Self {
        match contender {
            "floor" => Self::Floor,
            "linerate-shards" => Self::Cores,
            "linerate-beside" | "linerate-turns" | "linerate-loss" => Self::Harder,
            _ => Self::Peer,
        }
    }
}

const BARS: [(&str, &str, f64); 25] = [
    ("bulk", "smoltcp", 2.0),
    ("bulk", "lwip", 2.5),
    ("bulk", "gvisor", 15.0),
    ("bulk", "floor", 1.35),
    ("bulk-acks", "smoltcp", 2.0),
    ("bulk-acks", "lwip", 2.5),
    ("bulk-acks", "floor", 1.35),
    ("bulk-in-place", "smoltcp", 1.7),
    // smoltcp's time is the base: linerate may take 0.6 of it.
    ("ping-pong", "smoltcp", 1.0 / 0.6),
    ("connect", "smoltcp", 1.4),
    ("flows", "linerate-beside", 1.2),
    ("flows", "linerate-turns", 2.0),
    ("path", "linerate-loss", 1.3),
    ("shards", "linerate-shards", 1.8),
    ("tap-send", "smoltcp", 1.05),
    ("tap-receive", "smoltcp", 1.2),
    ("tap-vnet-send", "smoltcp", 1.2),
    ("tap-vnet-receive", "smoltcp", 1.3),
    // In place of TAP with offloads, which gVisor's link on a file descriptor does not support.
    ("packet-vnet-send", "gvisor", 2.5),
    ("packet-vnet-receive", "gvisor", 2.5),
    ("tap-vnet-send", "kernel", 1.5),
    ("tap-vnet-receive", "kernel", 1.5),
    ("xdp-frames", "bare", 0.9),
    ("xdp-send", "kernel", 1.3),
    ("xdp-receive", "kernel", 1.3),
];

/// Returns the targets of the measured workloads, with their results.
pub fn judge(figures: &[Figure]) -> Vec<Bar> {
    let of = |work, contender| {
        figures.iter().find(move |figure| (figure.work, figure.contender) == (work, contender))
    };
    let judged = BARS.iter().filter_map(|&(work, contender, bar)| {
        let ratio = of(work, contender)?.times_linerate.median;
        let (reached, is_met) = match Kind::of(contender) {
            Kind::Floor => (1.0 / ratio, 1.0 / ratio <= bar),
            Kind::Cores => (1.0 / ratio, 1.0 / ratio >= bar),
            Kind::Harder => (ratio, ratio <= bar),
            Kind::Peer => (ratio, ratio >= bar),
        };
        Some(Bar { work, contender, bar, reached, is_met })
    });
    judged.collect()
}

impl Bar {
    /// Returns the target and its result in words, for the table.
    pub fn sentence(&self) -> String {
        let Self { contender, bar, reached, .. } = self;
        let outcome = if self.is_met { "reached" } else { "not reached" };
        match Kind::of(contender) {
            Kind::Floor => {
                format!("at most {bar:.2} times the floor's time: {reached:.2}, {outcome}")
            }
            Kind::Cores => {
                format!(
                    "{contender} is done at least {bar:.2} times as fast: {reached:.2}, {outcome}"
                )
            }
            Kind::Harder => {
                format!("{contender} takes at most {bar:.2} times as long: {reached:.2}, {outcome}")
            }
            Kind::Peer => {
                format!(
                    "{contender} takes at least {bar:.2} times as long: {reached:.2}, {outcome}"
                )
            }
        }
    }
}
