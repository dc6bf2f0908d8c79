//! The report of a comparison of two sweeps: what changed from the first sweep to the second, and
//! how certain the changes are.

use crate::paint::{self, Style};
use linerate_evidence::stats::Interval;
use linerate_evidence::{Design, Maximum, RunRecord, Start, notation};
use linerate_units::Bytes;
use linerate_verdict::{CellChange, CellName, Comparison, Table};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;
use thiserror::Error;

/// Maximum number of changed cells that the text lists.
const LISTED: usize = 12;

/// One of the two sweeps of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The name by which the user refers to the sweep.
    pub name: &'a str,
    /// The design of the sweep.
    pub design: &'a Design,
    /// The facts about the machine and the programs, and the maximum throughput of the sweep.
    pub start: &'a Start,
    /// The completed runs of the sweep, in the order in which they were made.
    pub runs: &'a [RunRecord],
    /// The whole plan of the sweep as JSON, including the settings of its engine.
    pub plan: &'a Value,
}

/// The reason why two sweeps cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Incomparable {
    /// The sweep with this name has no complete run.
    #[error("{0} has no complete run: finish it with `linerate sweep --resume`")]
    NoRuns(String),
    /// One sweep was measured in real time, the other was simulated in virtual time.
    #[error(
        "{measured} is measured and {simulated} is simulated in virtual time: compare like \
             with like"
    )]
    VirtualTime {
        /// The name of the measured sweep.
        measured: String,
        /// The name of the simulated sweep.
        simulated: String,
    },
    /// The runs of the two sweeps transfer different numbers of bytes. Slow start takes a larger
    /// part of a shorter transfer, so the rates cannot be compared.
    #[error("a run of {0} has {1} and one of {2} has {3}: measure both with equal --bytes")]
    Bytes(String, Bytes, String, Bytes),
    /// The segments of the two sweeps have different sizes. Buffers of equally many packets
    /// therefore differ in bytes, and the cells cannot be compared.
    #[error(
        "a packet of {0} has {1} bytes of data and one of {2} has {3}: measure both with equal \
         --mtu, or buffers in bytes"
    )]
    Segment(String, u32, String, u32),
    /// The sweeps have no measured cell in common.
    #[error("{0} and {1} have no cell in common: measure both with equal buffers")]
    NoCell(String, String),
}

/// The report of a comparison of two sweeps, as text or JSON.
#[derive(Debug)]
pub struct ComparisonReport<'a> {
    sides: [Side<'a>; 2],
    comparison: Comparison,
    differences: Vec<Difference>,
}

/// A fact or a setting that differs between the two sweeps, with its values as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Difference {
    what: String,
    before: String,
    after: String,
}

/// The JSON document of a comparison, whose schema is docs/schema/comparison.json.
#[derive(Serialize)]
struct Document<'a> {
    before: &'a str,
    after: &'a str,
    /// The mean change over all cells that both sweeps have.
    overall: Change,
    verdict: &'static str,
    cells: Vec<CellDocument>,
    /// Number of cells that only the first sweep has.
    unpaired_before: usize,
    /// Number of cells that only the second sweep has.
    unpaired_after: usize,
    differences: &'a [Difference],
}

/// A change of throughput as a ratio: the rate in the second sweep, divided by the rate in the
/// first sweep. The bounds of the 95 % interval are `None` if the sweeps have too few runs.
#[derive(Serialize)]
struct Change {
    ratio: f64,
    low: Option<f64>,
    high: Option<f64>,
}

/// A cell that both sweeps have, with its median rates in bytes per second.
#[derive(Serialize)]
struct CellDocument {
    #[serde(flatten)]
    name: CellName,
    before: f64,
    after: f64,
    #[serde(flatten)]
    change: Change,
    /// Is the change significant, so that it is not explained by chance?
    certain: bool,
}

impl Change {
    /// Converts the logarithm of a ratio, and the 95 % interval of this logarithm, to the ratio and
    /// its interval.
    fn of(change: f64, interval: Option<Interval>) -> Self {
        Self {
            ratio: change.exp(),
            low: interval.map(|interval| interval.low.exp()),
            high: interval.map(|interval| interval.high.exp()),
        }
    }
}

impl<'a> ComparisonReport<'a> {
    /// Compares the sweep `before` with the sweep `after`.
    ///
    /// # Errors
    /// Returns the reason why the sweeps cannot be compared.
    pub fn new(before: Side<'a>, after: Side<'a>) -> Result<Self, Incomparable> {
        let sides = [before, after];
        let [one, other] = sides.map(|side| side.name.to_owned());
        if let Some(empty) = sides.iter().find(|side| side.runs.is_empty()) {
            return Err(Incomparable::NoRuns(empty.name.to_owned()));
        }
        match sides.map(|side| side.plan["on"] == "sim") {
            [true, false] => {
                return Err(Incomparable::VirtualTime { measured: other, simulated: one });
            }
            [false, true] => {
                return Err(Incomparable::VirtualTime { measured: one, simulated: other });
            }
            _ => {}
        }
        let [first, second] = sides.map(|side| Bytes::new(side.design.bytes.get()));
        if first != second {
            return Err(Incomparable::Bytes(one, first, other, second));
        }
        let in_packets = before
            .design
            .cells()
            .iter()
            .any(|cell| cell.send.packets().is_some() || cell.receive.packets().is_some());
        let [first, second] = sides.map(|side| side.start.facts.bench.segment_payload);
        if in_packets && first != second {
            return Err(Incomparable::Segment(one, first, other, second));
        }
        let [first, second] = sides.map(|side| Table::new(side.design, side.runs));
        let comparison = Comparison::new(&first, &second);
        let comparison = comparison.ok_or(Incomparable::NoCell(one, other))?;
        Ok(Self { sides, comparison, differences: differences(&sides) })
    }

    /// Returns the comparison as text, which begins with the overall change of throughput.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let mut text = String::new();
        for line in paint::wrapped(&self.verdict(), style.width) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{line}");
        }
        for sentence in self.notes() {
            for line in paint::wrapped(&sentence, style.width) {
                let _ = writeln!(text, "{line}");
            }
        }
        text.push_str(&self.changed_cells());
        text.push_str(&self.differences_text(style));
        text
    }

    /// Returns the comparison as a JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        let payload = self.sides[0].start.facts.bench.segment_payload;
        let cell = |cell: &CellChange| CellDocument {
            name: CellName::new(cell.cell, payload),
            before: cell.medians[0],
            after: cell.medians[1],
            change: Change::of(cell.change, cell.interval),
            certain: cell.is_certain(),
        };
        let comparison = &self.comparison;
        let document = Document {
            before: self.sides[0].name,
            after: self.sides[1].name,
            overall: Change::of(comparison.overall, comparison.interval),
            verdict: match comparison.is_faster() {
                Some(true) => "faster",
                Some(false) => "slower",
                None => "not_told",
            },
            cells: comparison.cells.iter().map(cell).collect(),
            unpaired_before: comparison.unpaired[0],
            unpaired_after: comparison.unpaired[1],
            differences: &self.differences,
        };
        // Strings and numbers can always be written as JSON.
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    }

    /// Returns the sentence about the overall change of throughput.
    fn verdict(&self) -> String {
        let comparison = &self.comparison;
        let [before, after] = self.sides.map(|side| side.name);
        let cells = notation::plural(comparison.cells.len() as u64, "paired cell");
        let change = notation::change(comparison.overall);
        let Some(Interval { low, high }) = comparison.interval else {
            return format!(
                "cannot be told: {change} from {before} to {after} over {cells}, but single runs \
                 have no interval; use --repeat 4 or more"
            );
        };
        let range = format!("95 %: {} … {}", notation::change(low), notation::change(high));
        let word = match comparison.is_faster() {
            Some(true) => "faster",
            Some(false) => "slower",
            None => "no difference can be told",
        };
        format!("{word}: {change} from {before} to {after} ({range}) over {cells}")
    }

    /// Returns the sentences with which the reader can judge the comparison. They are about a
    /// change of the floor, cells that only one sweep has, and runs that are missing.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let rates = self.sides.map(|side| match side.start.maximum {
            Maximum::Floor { median, .. } => Some(median),
            Maximum::LineRate { .. } | Maximum::Unknown { .. } => None,
        });
        if let [Some(before), Some(after)] = rates
            && before > 0.0
            && after > 0.0
        {
            notes.push(format!(
                "The same link and threads without a protocol changed by {}: what exceeds that is \
                 not the machine.",
                notation::change((after / before).ln())
            ));
        }
        for (side, unpaired) in self.sides.iter().zip(self.comparison.unpaired) {
            if unpaired > 0 {
                let cells = notation::plural(unpaired as u64, "cell");
                notes.push(format!("Left out: {cells} that only {} has.", side.name));
            }
            let (done, all) = (side.runs.len() as u64, side.design.run_count());
            if done < all {
                notes.push(format!(
                    "{} is partial: {} of {} runs.",
                    side.name,
                    notation::count(done),
                    notation::count(all)
                ));
            }
        }
        notes
    }

    /// Returns the numbers of cells that are faster, slower or not significantly changed. A line
    /// for each significant change follows, with the largest change first and at most [`LISTED`]
    /// lines.
    fn changed_cells(&self) -> String {
        let cells = &self.comparison.cells;
        let mut changed: Vec<&CellChange> = cells.iter().filter(|cell| cell.is_certain()).collect();
        changed.sort_by(|one, other| other.change.abs().total_cmp(&one.change.abs()));
        let faster = changed.iter().filter(|cell| cell.change > 0.0).count() as u64;
        let slower = changed.len() as u64 - faster;
        let mut text = format!(
            "\nCells that changed for certain (95 % for all together): {} faster, {} slower, {} \
             not told\n",
            notation::count(faster),
            notation::count(slower),
            notation::count((cells.len() - changed.len()) as u64),
        );
        for cell in changed.iter().take(LISTED) {
            let Some(Interval { low, high }) = cell.interval else { continue };
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "  {:<24} {:>9}  ({} … {})  {} → {} KB/s",
                notation::cell(cell.cell),
                notation::change(cell.change),
                notation::change(low),
                notation::change(high),
                notation::kilobytes(cell.medians[0]),
                notation::kilobytes(cell.medians[1]),
            );
        }
        if changed.len() > LISTED {
            let _ = writeln!(text, "  and {} more", changed.len() - LISTED);
        }
        text
    }

    /// Returns the list of facts and settings that differ.
    fn differences_text(&self, style: Style) -> String {
        if self.differences.is_empty() {
            return "\nMachine, program and plan are equal.\n".to_owned();
        }
        let mut text = "\nWhat else differs\n".to_owned();
        for Difference { what, before, after } in &self.differences {
            let line = format!("{what}: {before} → {after}");
            for (index, line) in
                paint::wrapped(&line, style.width.saturating_sub(4)).iter().enumerate()
            {
                let bullet = if index == 0 { "•" } else { " " };
                // Writing to a string cannot fail.
                let _ = writeln!(text, "  {bullet} {line}");
            }
        }
        text
    }
}

/// Returns the facts and settings that differ between the sweeps. Times, the folders of the results
/// and the lists of buffers are not compared.
fn differences(sides: &[Side<'_>; 2]) -> Vec<Difference> {
    let [before, after] = sides.map(facts);
    let names = before.iter().chain(&after).map(|(name, _)| name);
    let mut differences = Vec::<Difference>::new();
    for name in names {
        let value = |facts: &[(String, String)]| {
            let found = facts.iter().find(|(other, _)| other == name);
            found.map_or_else(|| "absent".to_owned(), |(_, value)| value.clone())
        };
        let (before, after) = (value(&before), value(&after));
        if before != after && differences.iter().all(|known| known.what != *name) {
            differences.push(Difference { what: name.clone(), before, after });
        }
    }
    differences
}

/// Returns the facts and settings of a sweep that are compared, each as a name and a value.
fn facts(side: Side<'_>) -> Vec<(String, String)> {
    let facts = &side.start.facts;
    let mut all = vec![
        ("machine".to_owned(), facts.machine.name.clone()),
        ("processor".to_owned(), facts.cpu.model.clone()),
        ("cores".to_owned(), facts.cpu.cores.to_string()),
        ("kernel".to_owned(), facts.kernel.clone()),
        ("versions".to_owned(), facts.versions.text()),
        ("bench".to_owned(), facts.bench.description.clone()),
    ];
    let settings = facts.bench.settings.iter().chain(&facts.sysctls);
    all.extend(settings.map(|(name, value)| (name.clone(), value.clone())));
    let buffers = ["send_buffers", "receive_buffers"];
    let fields = side.plan.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| !buffers.contains(&name.as_str()));
    all.extend(fields.map(|(name, value)| {
        let value = match value {
            Value::Null => "none".to_owned(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        (name.replace('_', " "), value)
    }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_evidence::Cell;
    use linerate_evidence::sample_data::{noise, records, square_design, start};
    use serde_json::json;

    /// Returns the text and the JSON of a comparison. The second sweep is 10 % faster. `change` can
    /// modify the design, the facts and the plan of the second sweep.
    fn compared(
        change: impl FnOnce(&mut Design, &mut Start, &mut Value),
    ) -> Result<(String, String), Incomparable> {
        let plan = json!({ "on": "stack", "bytes": 8_388_608, "profile": null });
        let (mut design, mut later, mut other) = (square_design(3), start(), plan.clone());
        change(&mut design, &mut later, &mut other);
        let rate = |cell: Cell, repeat| 1e6 * noise(cell, repeat, 0.01);
        let first = square_design(3);
        let one = records(&first, rate);
        let two = records(&design, |cell, repeat| 1.1 * rate(cell, repeat + 30));
        let start = start();
        let before = Side { name: "a", design: &first, start: &start, runs: &one, plan: &plan };
        let after = Side { name: "b", design: &design, start: &later, runs: &two, plan: &other };
        let report = ComparisonReport::new(before, after)?;
        Ok((report.text(Style::PLAIN), report.json()))
    }

    #[test]
    fn the_verdict_is_first_and_what_differs_is_last() {
        let (text, json) = compared(|_, start, plan| {
            start.facts.kernel = "Linux 7.0".to_owned();
            plan["profile"] = "bsd_reno".into();
        })
        .unwrap();
        insta::assert_snapshot!(text);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&json["verdict"], &json["cells"][8]["certain"]),
            (&"faster".into(), &true.into())
        );
        assert_eq!(json["differences"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn sweeps_that_a_comparison_would_mislead_about_are_refused() {
        let refused = |change: &dyn Fn(&mut Design, &mut Start, &mut Value)| {
            compared(|design, start, plan| change(design, start, plan)).unwrap_err().to_string()
        };
        for (line, expected_text) in [
            (refused(&|_, _, plan| plan["on"] = "sim".into()), "b is simulated in virtual time"),
            (refused(&|design, _, _| design.bytes = 1_024.try_into().unwrap()), "equal --bytes"),
            (refused(&|_, start, _| start.facts.bench.segment_payload = 536), "equal --mtu"),
            (
                refused(&|design, _, _| {
                    design.send_buffers = "7..9".parse().unwrap();
                }),
                "a and b have no cell in common",
            ),
        ] {
            assert!(line.contains(expected_text) && !line.contains('\n'), "{line}");
        }
    }
}
