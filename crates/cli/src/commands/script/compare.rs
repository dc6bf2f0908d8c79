//! `linerate script compare`: scripts against linerate's host and against the kernel.

use super::against::Against;
use super::family::FamilyArgs;
use super::head::HeadArgs;
use super::record::{Row, write_json};
use super::run::left_out;
use super::summary::scripts;
use crate::output::{Failure, Page, are_apart, can_be_written, cannot_write};
use clap::Args;
use linerate_ends::Interrupt;
use linerate_script::{Options, Report, ScriptFile, ScriptFiles, Verdict};
use linerate_units::Duration;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  linerate script compare scripts/
  linerate script compare scripts/close --verbose
  linerate script compare scripts/ --family ipv6

Runs each script against linerate's host, in virtual time, and against the kernel of this machine, \
in real time. Prints a line for each script that fails on one of them: the line at which \
linerate's host fails, the line at which the kernel does, and whether they fail alike. Scripts \
state the requirements of an RFC as their author understood them: if both fail alike, check the \
script first.

The exit code is 0 if all pass on both, 1 otherwise, and 2 if a script cannot be read or the \
kernel cannot be used.";

/// The options of `linerate script compare`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// Scripts, or folders with scripts (*.pkt)
    #[arg(value_name = "FILE|FOLDER", required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    head: HeadArgs,
    #[command(flatten)]
    family: FamilyArgs,
    /// Compare packets and their order, but not times: for a busy machine
    #[arg(long)]
    untimed: bool,
    /// Skip scripts that take longer than this in real time
    #[arg(long, value_name = "TIME", default_value = "120s")]
    longest: Duration,
    /// Also print the expected and the actual event
    #[arg(long, short)]
    verbose: bool,
    /// Write a line of JSON for each script and host
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the scripts against linerate's host and against the kernel, and prints a row for each
/// script.
pub(crate) fn run(args: &CompareArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let ScriptFiles { scripts: files, unreadable } =
        ScriptFiles::read(&args.paths, &args.head.options())
            .map_err(|error| Failure::input(error.to_string()))?;
    are_apart(args.json.as_deref(), files.iter().map(|file| Path::new(&file.name)))?;
    can_be_written(args.json.as_deref(), cannot_write)?;
    Against::Kernel.prepare()?;
    let options = Options { untimed: args.untimed, family: args.family.family() };
    let width = files.iter().map(|file| file.name.chars().count()).max().unwrap_or(0);
    let mut page = Page::new();
    let mut rows = Vec::new();
    for error in &unreadable {
        page.line(format_args!("{error}"))?;
    }
    page.line(format_args!("{:width$}  {:13} {:13} together", "script", "stack", "kernel"))?;
    for file in &files {
        if interrupt.is_raised() {
            return Err(Failure::interrupted("interrupted"));
        }
        if Against::Kernel.is_too_long(file, args.longest) {
            page.line(format_args!("{}", left_out(file)))?;
            continue;
        }
        let stack = Against::Stack.run(file, options)?;
        let kernel = Against::Kernel.run(file, options)?;
        tell(&mut page, args, file, (&stack, &kernel), width)?;
        rows.push((file, stack, kernel));
    }
    page.line(format_args!("{}", summary(&rows)))?;
    page.show()?;
    if let Some(path) = &args.json {
        let both = rows.iter().flat_map(|(file, stack, kernel)| {
            [
                Row::new(file, Against::Stack.name(), stack),
                Row::new(file, Against::Kernel.name(), kernel),
            ]
        });
        write_json(path, &both.collect::<Vec<_>>())?;
    }
    if !unreadable.is_empty() {
        return Err(Failure::input("not every script could be read: see the messages above"));
    }
    if rows.iter().all(|(_, stack, kernel)| passed(stack) && passed(kernel)) {
        Ok(())
    } else {
        Err(Failure::running("not every script passed on both"))
    }
}

fn tell(
    page: &mut Page,
    args: &CompareArgs,
    file: &ScriptFile,
    (stack, kernel): (&Report, &Report),
    width: usize,
) -> Result<(), Failure> {
    if passed(stack) && passed(kernel) {
        return Ok(());
    }
    let together = match (stack.verdict.line(), kernel.verdict.line()) {
        (Some(stack), Some(kernel)) if stack == kernel => "yes",
        _ => "no",
    };
    let (left, right) = (place(&stack.verdict), place(&kernel.verdict));
    page.line(format_args!("{:width$}  {left:13} {right:13} {together}", file.name))?;
    if args.verbose {
        for (host, report) in [("stack", stack), ("kernel", kernel)] {
            for line in report.verdict.describe(&file.name).lines() {
                page.line(format_args!("    {host:6} {line}"))?;
            }
        }
    }
    page.show()?;
    Ok(())
}

/// Formats the result of a script on one host: `passed`, or the number of the line in the script at
/// which the run ended.
fn place(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Passed => "passed".to_owned(),
        Verdict::Failed(deviation) => format!("line {}", deviation.line),
        Verdict::Refused { line, .. } => format!("refused {line}"),
        Verdict::Broken { line, .. } => format!("broken {line}"),
    }
}

fn passed(report: &Report) -> bool {
    report.verdict == Verdict::Passed
}

fn summary(rows: &[(&ScriptFile, Report, Report)]) -> String {
    let count = |is: fn(bool, bool) -> bool| {
        rows.iter().filter(|(_, stack, kernel)| is(passed(stack), passed(kernel))).count()
    };
    format!(
        "{}: {} passed on both, {} on the stack only, {} on the kernel only, {} on neither",
        scripts(rows.len()),
        count(|stack, kernel| stack && kernel),
        count(|stack, kernel| stack && !kernel),
        count(|stack, kernel| !stack && kernel),
        count(|stack, kernel| !stack && !kernel),
    )
}
