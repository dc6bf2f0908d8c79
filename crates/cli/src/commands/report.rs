//! `linerate report`: the report of a sweep that has ended, was interrupted, or is running.

use crate::output::{self, Failure};
use crate::result_files::ResultFiles;
use clap::Args;
use linerate_evidence::notation;
use linerate_measure::SavedSweep;
use linerate_report::Report;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  linerate report linerate-out/20261121T020000Z-1988
  linerate report linerate-out/20261121T020000Z-1988 --html report.html
  linerate report DIR --json all.json --csv runs.csv --svg map.svg

The folder is only read, so a sweep can be reported while it runs. A sweep that was interrupted or \
killed is reported with the runs that it has completed.";

/// The options of `linerate report`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// The folder of the sweep
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    #[command(flatten)]
    files: ResultFiles,

    /// Write the files, and print nothing
    #[arg(long, help_heading = "Results")]
    quiet: bool,
}

/// Prints the report of the sweep, and writes the requested result files.
pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    let folder = &args.folder;
    let Some(sweep) = SavedSweep::read(folder)? else {
        return say(
            args,
            &format!(
                "{} holds no run: its sweep ended before its plan was saved\n",
                folder.display()
            ),
        );
    };
    args.files.check(None, &sweep.plan, folder)?;
    let state = state(&sweep, folder);
    let Some(start) = &sweep.start else { return say(args, &state) };
    let design = sweep.plan.design();
    let report = Report::new(&design, start, &sweep.runs);
    say(args, &(state + &report.text(output::style())))?;
    args.files.write(&report, &sweep.plan)
}

fn say(args: &ReportArgs, text: &str) -> Result<(), Failure> {
    if args.quiet { Ok(()) } else { output::print(text) }
}

/// Returns a line that says how much of an incomplete sweep has been measured; an empty string for
/// a complete sweep.
fn state(sweep: &SavedSweep, folder: &Path) -> String {
    let (done, total) = (sweep.runs.len() as u64, sweep.plan.design().run_count());
    if done >= total {
        return String::new();
    }
    let next = if sweep.is_running {
        "the sweep is running".to_owned()
    } else {
        format!("continue with `linerate sweep --resume {}`", folder.display())
    };
    let (done, total) = (notation::count(done), notation::count(total));
    format!("partial: {done} of {total} runs are complete; {next}\n")
}
