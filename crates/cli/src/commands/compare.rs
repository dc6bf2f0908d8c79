//! `linerate compare`: prints what changed from one sweep to another, and how certain that is.

use crate::output::{self, Failure, can_be_written, cannot_write, write_file};
use clap::Args;
use linerate_evidence::{Cell, Facts, Maximum, RunRecord, Start, schedule};
use linerate_measure::{Plan, SavedSweep};
use linerate_report::{ComparisonReport, Side};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  linerate compare before after                  the folders of two sweeps
  linerate compare before.json after.json        two files of --json
  linerate compare before after --json c.json    all cells with their intervals

Cells are paired. The first line is the change of all cells together, with a 95 % interval that \
includes slow and fast epochs of the machine. A cell counts as changed if its interval excludes \
zero, and all these intervals hold together. Alternate the two variants (before, after, before, \
after) to find out whether a change repeats.";

/// The options of `linerate compare`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// The first sweep: its folder, or a file that `--json` wrote
    #[arg(value_name = "A")]
    before: PathBuf,

    /// The second sweep: its folder, or a file that `--json` wrote
    #[arg(value_name = "B")]
    after: PathBuf,

    /// Write the comparison to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A sweep to compare, read from a folder or from a JSON file.
struct Sweep {
    name: String,
    plan: Plan,
    start: Start,
    runs: Vec<RunRecord>,
}

/// The fields of a JSON report that a comparison reads. All other fields of the report are derived
/// from these, so they are not needed.
#[derive(Deserialize)]
struct Document {
    plan: Plan,
    facts: Facts,
    maximum: Maximum,
    runs: Vec<RunRecord>,
}

/// Prints the comparison of two sweeps, and writes it to the requested file.
pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    output::are_apart(args.json.as_deref(), [&*args.before, &*args.after])?;
    can_be_written(args.json.as_deref(), cannot_write)?;
    let sweeps = [read(&args.before)?, read(&args.after)?];
    let designs = [sweeps[0].plan.design(), sweeps[1].plan.design()];
    let plans = [json(&sweeps[0].plan), json(&sweeps[1].plan)];
    let side = |index: usize| {
        let Sweep { name, start, runs, .. } = &sweeps[index];
        Side { name, design: &designs[index], start, runs, plan: &plans[index] }
    };
    let report = ComparisonReport::new(side(0), side(1));
    let report = report.map_err(|error| Failure::input(error.to_string()))?;
    output::print(&report.text(output::style()))?;
    write_file(args.json.as_deref(), || report.json(), cannot_write)
}

/// Converts a plan to JSON. The conversion cannot fail for the types in a plan.
fn json(plan: &Plan) -> serde_json::Value {
    serde_json::to_value(plan).unwrap_or_default()
}

/// Reads a sweep from its folder, or from a file.
fn read(path: &Path) -> Result<Sweep, Failure> {
    let name = path.display().to_string();
    if path.is_file() {
        return read_file(path, name);
    }
    match SavedSweep::read(path)? {
        Some(SavedSweep { plan, start: Some(start), runs, .. }) => {
            Ok(Sweep { name, plan, start, runs })
        }
        _ => Err(Failure::input(format!(
            "{name} has no complete run: finish it with `linerate sweep --resume`"
        ))),
    }
}

/// Reads a sweep from a file that `--json` wrote.
fn read_file(path: &Path, name: String) -> Result<Sweep, Failure> {
    let text = fs::read(path).map_err(|error| {
        Failure::input(format!("{name} cannot be read ({error}): check its permissions"))
    })?;
    let other = |what: String| {
        Failure::input(format!(
            "{name} is no report of a sweep ({what}): name its folder, or a file that \
             `linerate report --json` wrote"
        ))
    };
    let document = serde_json::from_slice(&text).map_err(|error| other(error.to_string()))?;
    let Document { plan, facts, maximum, runs } = document;
    let schedule = schedule(&plan.design());
    let cells: BTreeSet<Cell> = plan.design().cells().into_iter().collect();
    let is_of_plan = runs.len() <= schedule.len()
        && runs.iter().zip(&schedule).all(|(run, planned)| match plan.budget {
            Some(_) => cells.contains(&run.cell()),
            None => run.is_of(planned),
        });
    if !is_of_plan {
        return Err(other("its runs are not those of its plan".to_owned()));
    }
    Ok(Sweep { name, plan, start: Start { facts, maximum }, runs })
}
