//! The targets of the benchmark. Most are ratios between the processor time of a peer and that of
//! linerate. Others compare linerate with the floor, which moves the same bytes without a protocol,
//! or with itself under other conditions.

use crate::figures::Figure;
use serde::Serialize;

/// A target for the ratio between linerate's processor time and that of a contender, and the ratio
/// that this run of the benchmark has reached. [`Bar::bar`] says which targets are minimums.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    /// Name of the workload.
    pub work: &'static str,
    /// Name of the contender whose time is compared with linerate's time.
    pub contender: &'static str,
    /// The target for `reached`. For peers and for two shards, `reached` must be at least the
    /// target. For the floor, many connections and loss, it must be at most the target.
    pub bar: f64,
    /// The ratio that this run of the benchmark has reached: the median over its rounds.
    pub reached: f64,
    /// Whether the ratio reaches the target.
    pub is_met: bool,
}

/// The ratio to which a target applies, and whether the target is its minimum or its maximum.
enum Kind {
    /// Minimum ratio of the peer's time to linerate's time.
    Peer,
    /// Maximum ratio of linerate's time to the floor's time.
    Floor,
    /// Minimum ratio of linerate's time with one shard to its time with two shards on two cores.
    Cores,
    /// Maximum ratio of linerate's time with many connections to its time with one connection, or
    /// of its time with loss to its time without loss.
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

/// All targets: name of the workload, name of the contender, and target. [`Kind`] gives the meaning
/// of the target.
const BARS: [(&str, &str, f64); 25] = [
    ("bulk", "smoltcp", 2.0),
    ("bulk", "lwip", 2.5),
    ("bulk", "gvisor", 15.0),
    ("bulk", "floor", 1.35),
    ("bulk-acks", "smoltcp", 2.0),
    ("bulk-acks", "lwip", 2.5),
    ("bulk-acks", "floor", 1.35),
    ("bulk-in-place", "smoltcp", 1.7),
    // linerate may take at most 0.6 times as long as smoltcp. The target refers to the inverse
    // ratio, smoltcp's time divided by linerate's, so it is 1 / 0.6.
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
    // These targets are measured on a packet socket, because gVisor's link on a file descriptor
    // does not support TAP devices with offloads.
    ("packet-vnet-send", "gvisor", 2.5),
    ("packet-vnet-receive", "gvisor", 2.5),
    ("tap-vnet-send", "kernel", 1.5),
    ("tap-vnet-receive", "kernel", 1.5),
    ("xdp-frames", "bare", 0.9),
    ("xdp-send", "kernel", 1.3),
    ("xdp-receive", "kernel", 1.3),
];

/// Returns the targets whose contender is among `figures`, each with the ratio reached.
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
    /// Returns a sentence with the target and the ratio reached, for the table.
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
