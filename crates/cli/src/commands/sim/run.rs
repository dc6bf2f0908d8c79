//! `linerate sim run`: simulates a scenario once.

use crate::amounts::{seed, some_time};
use crate::output::{Failure, are_apart, can_be_written, cannot_write, print, write_file};
use clap::{Args, ValueEnum};
use linerate_link::capture_file::CaptureWriter;
use linerate_measure::BenchError;
use linerate_sim_tools::{
    FrameWriter, Keep, Outcome, Record, Scenario, TimelineRecord, TransferOptions, Window,
    beside_published, describe, load, timeline_svg,
};
use linerate_units::{Duration, Span, Tick};
use serde::Serialize;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  linerate sim run sun-3-60-to-3-60
  linerate sim run sun-3-280-to-3-60 --set transfer.send_buffer=11680
  linerate sim run 10-gbe-pair --family ipv6
  linerate sim run sun-3-60-to-3-60 --set transfer.bytes=100000 --timeline wire.svg
  linerate sim run sun-3-60-to-3-60 --timeline whole.json --timeline-from 2s --timeline-for 10s
  linerate sim run two-cables-and-a-bridge --pcap left.pcapng --wire left
  linerate sim run my-scenario.toml --check --json run.json";

/// The options of `linerate sim run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// The name of a scenario, or a file that ends in .toml
    #[arg(value_name = "NAME|FILE")]
    scenario: String,
    /// Change a parameter; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The IP version of all hosts [default: that of the scenario, or ipv4]
    #[arg(long, value_enum)]
    family: Option<FamilyArg>,
    /// The seed of all random numbers
    #[arg(long, value_name = "NUMBER", value_parser = seed, default_value = "1988")]
    seed: u64,
    /// Compare received with sent data, and check every invariant after every event
    #[arg(long)]
    check: bool,
    /// Write the results to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write every frame to this pcapng file
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write only the frames of this wire
    #[arg(long, value_name = "NAME", requires = "pcap")]
    wire: Option<String>,
    /// Write the timeline of wires, processors, buses and rings to this file: a picture, or its
    /// spans as JSON
    #[arg(long, value_name = "FILE.svg|FILE.json", value_parser = timeline_file)]
    timeline: Option<PathBuf>,
    /// Start of the timeline
    #[arg(long, value_name = "TIME", default_value = "0s", requires = "timeline")]
    timeline_from: Duration,
    /// Duration of the timeline
    #[arg(
        long,
        value_name = "TIME",
        value_parser = some_time,
        default_value = "200ms",
        requires = "timeline"
    )]
    timeline_for: Duration,
}

/// Parses the file name of a timeline, whose suffix selects the format.
fn timeline_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let known = path.extension().is_some_and(|extension| extension == "svg" || extension == "json");
    known.then_some(path).ok_or_else(|| "the name must end in .svg or .json".to_owned())
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FamilyArg {
    Ipv4,
    Ipv6,
}

impl RunArgs {
    /// Returns the parameters of the scenario that the options change, each as `KEY=VALUE`.
    fn changes(&self) -> Vec<String> {
        let family = self.family.map(|family| match family {
            FamilyArg::Ipv4 => "family=ipv4".to_owned(),
            FamilyArg::Ipv6 => "family=ipv6".to_owned(),
        });
        self.set.iter().cloned().chain(family).collect()
    }

    fn window(&self) -> Window {
        let from = Tick::ZERO + Span::from(self.timeline_from);
        Window { from, until: from + Span::from(self.timeline_for) }
    }
}

/// Simulates the scenario, prints the report, and writes the requested result files.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let changes = args.changes();
    let scenario = load(&args.scenario, &changes).map_err(BenchError::from)?;
    let blueprint = scenario.blueprint().map_err(|error| Failure::input(error.to_string()))?;
    if let Some(name) =
        args.wire.as_deref().filter(|name| !blueprint.wires().any(|wire| wire == *name))
    {
        let known = blueprint.wires().collect::<Vec<_>>().join(", ");
        return Err(Failure::input(format!(
            "the wire `{name}` does not exist: choose one of {known}"
        )));
    }
    let [record, timeline, pcap] = [&args.json, &args.timeline, &args.pcap].map(Option::as_deref);
    are_apart([record, timeline, pcap].into_iter().flatten(), [Path::new(&args.scenario)])?;
    can_be_written([record, timeline].into_iter().flatten(), cannot_write)?;
    let mut capture = args.pcap.as_deref().map(create).transpose()?;
    let keep =
        Keep { frames: capture.is_some(), timeline: args.timeline.as_ref().map(|_| args.window()) };
    let options =
        TransferOptions { verify: args.check, checks: args.check, ..TransferOptions::default() };
    let wire = args.wire.as_deref();
    let mut capture = capture
        .as_mut()
        .map(|capture| FrameWriter::new(capture, &blueprint, scenario.name(), wire));
    let mut watch = |frame| capture.iter_mut().for_each(|capture| capture.handle_frame(&frame));
    let outcome = blueprint.run_watched(args.seed, &options, keep, &mut watch);
    print(&format!("{}\n\n{}", scenario.question(), describe(&outcome)))?;
    let published = beside_published(&args.scenario, &changes, args.seed, &blueprint, &outcome);
    let published = published.map_err(BenchError::from)?;
    if !published.is_empty() {
        print(&format!("\n{published}"))?;
    }
    let written = capture.map_or(Ok(()), FrameWriter::finish);
    written.map_err(|source| BenchError::Capture { source })?;
    let record = || json(&Record::new(scenario.name(), args.seed, &outcome));
    write_file(args.json.as_deref(), record, cannot_write)?;
    write_timeline(args, &scenario, &outcome)?;
    match outcome.programs.iter().find(|program| program.wrong_at.is_some()) {
        Some(program) => Err(Failure::running(format!("{} received wrong data", program.name))),
        None => Ok(()),
    }
}

fn write_timeline(args: &RunArgs, scenario: &Scenario, outcome: &Outcome) -> Result<(), Failure> {
    let (Some(path), Some(timeline)) = (args.timeline.as_deref(), &outcome.timeline) else {
        return Ok(());
    };
    let (name, window) = (scenario.name(), args.window());
    if window.from >= outcome.time {
        let end = outcome.time.as_secs_f64();
        let line = format!("the world ended at {end:.3} s: choose an earlier --timeline-from");
        return Err(Failure::input(line));
    }
    if path.extension().is_some_and(|extension| extension == "json") {
        let record = || json(&TimelineRecord::new(name, args.seed, window, outcome, timeline));
        return write_file(Some(path), record, cannot_write);
    }
    let picture = || timeline_svg(&format!("{name}, seed {}", args.seed), window, timeline);
    write_file(Some(path), picture, cannot_write)
}

fn json(record: &impl Serialize) -> String {
    serde_json::to_string_pretty(record).map_or_else(|error| error.to_string(), |text| text + "\n")
}

fn create(path: &Path) -> Result<CaptureWriter, Failure> {
    CaptureWriter::create(path).map_err(|error| cannot_write(path, error))
}
