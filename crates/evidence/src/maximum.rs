//! The maximum throughput, which reports call 100 %: the link's bit rate minus framing, or the
//! throughput of the floor.

use crate::bench_facts::BenchFacts;
use crate::floor::Floor;
use crate::framing::Framing;
use crate::line_rate::LineRate;
use crate::stats::{Interval, Sample, as_f64, interval};
use linerate_units::Rate;
use serde::{Deserialize, Serialize};

/// The throughput that a report calls 100 %, with an explanation for the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Maximum {
    /// The part of the link's bit rate that framing leaves for data.
    LineRate {
        /// The maximum in bytes of data per second. Headers and framing do not count as data.
        bytes_per_second: f64,
        /// The bit rate of the link.
        line_rate: LineRate,
        /// The calculation of the maximum as text.
        explanation: String,
    },
    /// The throughput of the floor: a transfer between the same two threads without TCP. It is the
    /// maximum if the link has no bit rate.
    Floor {
        /// The rate of the fastest floor transfer, in bytes per second. The fastest one is the
        /// maximum, because other work of the machine can only slow transfers down.
        bytes_per_second: f64,
        /// The median rate of the floor transfers, in bytes per second. A median far below the
        /// maximum shows that the machine was busy.
        median: f64,
        /// The 95 % confidence interval of the median, in bytes per second.
        interval: Interval,
        /// The rates of all floor transfers, in bytes per second.
        samples: Vec<f64>,
        /// A description of the floor transfers: how often each byte was copied and checksummed.
        explanation: String,
    },
    /// Neither a bit rate nor a floor is known. Percentages then refer to the cell with the highest
    /// throughput.
    Unknown {
        /// The reason why no maximum is known, and the remedy.
        explanation: String,
    },
}

impl Maximum {
    /// Returns the maximum in bytes of data per second; `None` if the maximum is unknown.
    #[must_use]
    pub const fn bytes_per_second(&self) -> Option<f64> {
        match self {
            Self::LineRate { bytes_per_second, .. } | Self::Floor { bytes_per_second, .. } => {
                Some(*bytes_per_second)
            }
            Self::Unknown { .. } => None,
        }
    }

    /// Returns the explanation for the report: a calculation, a description of the floor, or the
    /// reason why no maximum is known.
    #[must_use]
    pub fn explanation(&self) -> &str {
        match self {
            Self::LineRate { explanation, .. }
            | Self::Floor { explanation, .. }
            | Self::Unknown { explanation } => explanation,
        }
    }

    /// Computes the maximum from the bit rate of the link. All segments are assumed to be full,
    /// with `payload` bytes of data.
    #[must_use]
    pub fn of_line_rate(line_rate: LineRate, framing: &Framing, payload: u32) -> Self {
        let per_segment = framing.per_segment(payload);
        let bytes_per_second =
            as_f64(line_rate.bits_per_second) / 8.0 * f64::from(payload) / per_segment;
        let (share, duplex) = acknowledgements(framing);
        let explanation = format!(
            "{} ({}) / 8 × {payload} bytes of data / ({}{share} bytes on the wire); {}: {} bytes \
             of headers \
             and {} of framing with each packet, {duplex}",
            line_rate.rate(),
            line_rate.source,
            framing.on_wire(payload),
            framing.name,
            framing.headers,
            framing.overhead,
        );
        Self::LineRate { bytes_per_second, line_rate, explanation }
    }

    /// Computes the maximum from measured floor transfers (transfers without TCP). Returns `None`
    /// if there are none, or if a rate is not finite. `seed` determines the random numbers of the
    /// confidence interval.
    #[must_use]
    pub fn of_floors(floors: &[Floor], seed: u64) -> Option<Self> {
        let rates = floors.iter().map(|floor| as_f64(floor.bytes) / floor.time.as_secs_f64());
        let samples: Vec<f64> = rates.collect();
        let sample = Sample::new(samples.clone())?;
        Some(Self::Floor {
            bytes_per_second: sample.max(),
            median: sample.median(),
            interval: interval(&[&sample], seed, |medians| medians[0]),
            samples,
            explanation: format!("the link has no bit rate, so its own floor: {}", floors[0].how),
        })
    }

    /// Computes the maximum for a bench from the first of three sources that exists: the rate
    /// `given` in the plan, the bit rate in `facts`, and the floor transfers `floors`. If none
    /// exists, the maximum is unknown. `seed` determines the random numbers of a confidence
    /// interval.
    #[must_use]
    pub fn of(facts: &BenchFacts, given: Option<Rate>, floors: &[Floor], seed: u64) -> Self {
        let given = given.map(|rate| LineRate {
            bits_per_second: rate.bits_per_second(),
            source: "as told by --line-rate".to_owned(),
        });
        if let Some(line_rate) = given.or_else(|| facts.line_rate.clone()) {
            return Self::of_line_rate(line_rate, &facts.framing, facts.segment_payload);
        }
        Self::of_floors(floors, seed).unwrap_or_else(|| Self::Unknown {
            explanation:
                "the link tells no bit rate and has no floor: give --line-rate to get percentages"
                    .to_owned(),
        })
    }
}

/// Returns the term for acknowledgements in the formula of the maximum, and an explanation of the
/// term. The term is empty if acknowledgements do not share the medium with data.
fn acknowledgements(framing: &Framing) -> (String, &'static str) {
    match (framing.half_duplex, framing.segments_per_ack) {
        (false, _) => (String::new(), "acknowledgements have the other direction to themselves"),
        (true, 0 | 1) => (
            format!(" + {}", framing.acknowledgement),
            "one acknowledgement a segment shares the medium",
        ),
        (true, segments) => (
            format!(" + {}/{segments}", framing.acknowledgement),
            "one acknowledgement for several segments shares the medium",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Duration;

    /// Returns the framing that Van Jacobson's message of 1988 assumes. An acknowledgement occupies
    /// a minimum frame of 64 bytes and the inter-frame gap of 12 bytes. Its preamble is not
    /// counted.
    fn ethernet_of_1988(segments_per_ack: u32) -> Framing {
        Framing { acknowledgement: 76, segments_per_ack, half_duplex: true, ..Framing::ethernet(0) }
    }

    fn ten_megabits() -> LineRate {
        LineRate { bits_per_second: 10_000_000, source: "IEEE 802.3".to_owned() }
    }

    #[test]
    fn the_maximum_of_1988_is_1104_kilobytes_a_second() {
        let maximum = Maximum::of_line_rate(ten_megabits(), &ethernet_of_1988(1), 1_460);
        let kilobytes = maximum.bytes_per_second().unwrap() / 1_024.0;
        assert_eq!(format!("{kilobytes:.0}"), "1104");
        assert_eq!(
            maximum.explanation(),
            "10.00 Mb/s (IEEE 802.3) / 8 × 1460 bytes of data / (1538 + 76 bytes on the wire); \
             Ethernet: 40 \
             bytes of headers and 38 of framing with each packet, one acknowledgement a segment \
             shares the \
             medium"
        );
    }

    #[test]
    fn the_lance_reached_91_per_cent_of_the_maximum_with_twelve_packets() {
        let maximum = Maximum::of_line_rate(ten_megabits(), &ethernet_of_1988(1), 1_460);
        let percent = 1_001.0 * 1_024.0 / maximum.bytes_per_second().unwrap() * 100.0;
        assert_eq!(format!("{percent:.0}"), "91");
    }

    #[test]
    fn the_wire_column_of_1988_has_one_acknowledgement_for_two_packets() {
        let bits = 1_001.0 * 1_024.0 * ethernet_of_1988(2).bits_per_byte(1_460);
        assert_eq!(format!("{:.2}", bits / 1e6), "8.85");
    }

    #[test]
    fn with_both_directions_free_gigabit_ethernet_carries_949_megabits_of_data() {
        let line_rate =
            LineRate { bits_per_second: 1_000_000_000, source: "driver of eth0".to_owned() };
        let maximum = Maximum::of_line_rate(line_rate, &Framing::ethernet(0), 1_460);
        assert_eq!(format!("{:.0}", maximum.bytes_per_second().unwrap() * 8.0 / 1e6), "949");
    }

    #[test]
    fn a_given_line_rate_precedes_the_drivers_and_any_rate_precedes_a_floor() {
        let floors = [Floor { bytes: 1, time: Duration::from_secs(1), how: "by hand".to_owned() }];
        let mut facts = crate::sample_data::start().facts.bench;
        let source =
            |facts: &BenchFacts, given: Option<Rate>| match Maximum::of(facts, given, &floors, 1) {
                Maximum::LineRate { line_rate, .. } => line_rate.source,
                Maximum::Floor { .. } => "floor".to_owned(),
                Maximum::Unknown { .. } => "unknown".to_owned(),
            };
        let given = Some(Rate::from_bits_per_second(1_000));
        assert_eq!(source(&facts, None), "floor");
        facts.line_rate = Some(ten_megabits());
        assert_eq!(source(&facts, None), "IEEE 802.3");
        assert_eq!(source(&facts, given), "as told by --line-rate");
    }

    #[test]
    fn the_maximum_is_the_fastest_floor() {
        let floor = |millis| Floor {
            bytes: 1_000_000,
            time: Duration::from_millis(millis),
            how: "four copies".to_owned(),
        };
        let maximum = Maximum::of_floors(&[floor(1), floor(2), floor(4)], 1).unwrap();
        assert_eq!(maximum.bytes_per_second(), Some(1e9));
        assert!(matches!(maximum, Maximum::Floor { median: 5e8, .. }), "{maximum:?}");
        assert!(maximum.explanation().contains("four copies"));
        assert_eq!(Maximum::of_floors(&[], 1), None);
    }
}
