//! `linerate script run`: scripts against one host.

use super::against::Against;
use super::family::FamilyArgs;
use super::head::HeadArgs;
use super::record::{Capture, Row, write_json};
use super::summary::{Outcome, judge, summary};
use crate::output::{Failure, Page, are_apart, can_be_written, cannot_write};
use clap::Args;
use linerate_ends::Interrupt;
use linerate_script::{Options, Report, ScriptFile, ScriptFiles, Verdict};
use linerate_units::Duration;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  linerate script run scripts/
  linerate script run scripts/close/half-close.pkt --pcap half-close.pcapng
  linerate script run scripts/ --json results.json
  linerate script run suite/ -D TFO_COOKIE=3021b9d889017eeb --tolerance_usecs=14000 --ignore_push
  linerate script run scripts/handshake --against kernel
  linerate script run scripts/ --family ipv6

A script is a time line in the language of packetdrill: calls of an application, segments of a \
peer (<), expected segments (>), assertions about TCP_INFO (%{ … }%), and sysctls in back-quotes. \
No part of a script is executed by a shell or by Python. Time is virtual: a script of two hours \
takes milliseconds, needs no privileges, and always has the same result. Against the kernel, time \
is real; the script's sockets are in a network namespace behind a TUN device, which needs root \
only if the machine forbids user namespaces.

The exit code is 0 if all scripts pass, 1 if one fails, and 2 if one cannot be read or needs a \
feature that this host does not have.";

/// The options of `linerate script run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// Scripts, or folders with scripts (*.pkt)
    #[arg(value_name = "FILE|FOLDER", required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    head: HeadArgs,
    /// The host under test
    #[arg(long, value_name = "HOST", value_enum, default_value_t = Against::Stack)]
    against: Against,
    #[command(flatten)]
    family: FamilyArgs,
    /// Compare packets and their order, but not times: for the kernel on a busy machine
    #[arg(long)]
    untimed: bool,
    /// Skip scripts that take longer than this in real time
    #[arg(long, value_name = "TIME", default_value = "120s")]
    longest: Duration,
    /// Stop at the first script that does not pass
    #[arg(long)]
    fail_fast: bool,
    /// Write a line of JSON for each script
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write every packet, with an interface for each script
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
}

/// Runs the scripts against the chosen host, and prints their results.
pub(crate) fn run(args: &RunArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let ScriptFiles { scripts, unreadable } = ScriptFiles::read(&args.paths, &args.head.options())
        .map_err(|error| Failure::input(error.to_string()))?;
    let results = [&args.json, &args.pcap].map(Option::as_deref).into_iter().flatten();
    are_apart(results, scripts.iter().map(|named| Path::new(&named.name)))?;
    can_be_written(args.json.as_deref(), cannot_write)?;
    args.against.prepare()?;
    let options = Options { untimed: args.untimed, family: args.family.family() };
    let mut capture = args.pcap.as_deref().map(Capture::create).transpose()?;
    let mut page = Page::new();
    let mut reports: Vec<(&ScriptFile, Option<Report>)> = Vec::new();
    let mut stopped = false;
    for error in &unreadable {
        page.line(format_args!("{error}"))?;
    }
    let refused: Vec<_> = unreadable.iter().map(|error| (error.name(), error.verdict())).collect();
    for named in &scripts {
        if interrupt.is_raised() {
            return Err(Failure::interrupted("interrupted"));
        }
        let is_too_long = args.against.is_too_long(named, args.longest);
        if is_too_long && !stopped {
            page.line(format_args!("{}", left_out(named)))?;
        }
        if is_too_long || stopped {
            reports.push((named, None));
            continue;
        }
        let report = args.against.run(named, options)?;
        let passed = tell(&mut page, named, &report)?;
        if let Some(capture) = &mut capture {
            capture.add(named, &report);
        }
        reports.push((named, Some(report)));
        stopped = args.fail_fast && !passed;
    }
    if let Some(capture) = capture {
        capture.finish()?;
    }
    if let Some(path) = &args.json {
        let against = args.against.name();
        let unread = refused.iter().map(|(name, verdict)| Row::unread(name, against, verdict));
        let ran = reports
            .iter()
            .filter_map(|(named, report)| Some(Row::new(named, against, report.as_ref()?)));
        write_json(path, &unread.chain(ran).collect::<Vec<_>>())?;
    }
    let unread = refused.iter().map(|(name, verdict)| (*name, Some(verdict)));
    let outcomes: Vec<Outcome<'_>> = unread
        .chain(reports.iter().map(|(named, report)| {
            (named.name.as_str(), report.as_ref().map(|report| &report.verdict))
        }))
        .collect();
    for line in summary(&outcomes) {
        page.line(format_args!("{line}"))?;
    }
    page.show()?;
    judge(&outcomes)
}

/// Prints the text that a script has printed and, if the script did not pass, where and why it
/// ended. Returns true if the script passed.
pub(super) fn tell(page: &mut Page, named: &ScriptFile, report: &Report) -> Result<bool, Failure> {
    for line in report.printed.lines() {
        page.line(format_args!("{}: {line}", named.name))?;
    }
    let passed = report.verdict == Verdict::Passed;
    if !passed {
        page.line(format_args!("{}", report.verdict.describe(&named.name)))?;
        page.show()?;
    }
    Ok(passed)
}

/// Formats the message about a script that is skipped because it takes too long.
pub(super) fn left_out(file: &ScriptFile) -> String {
    format!(
        "{}: skipped: it takes {} of real time, see --longest",
        file.name,
        file.script.least_time()
    )
}
