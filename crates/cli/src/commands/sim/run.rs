//! `linerate sim run`: one world, from its beginning to its end.

use crate::output::{Failure, print};
use clap::Args;
use linerate_lab::simulation::{
    Keep, Record, TransferOptions, beside_published, describe, load, timeline, write_frames,
};
use linerate_lab::{BenchError, Interrupt, StoreError};
use linerate_link::capture_file::CaptureWriter;
use std::fs;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  linerate sim run sun-3-60-to-3-60
  linerate sim run sun-3-280-to-3-60 --set transfer.send_buffer=11680 --set transfer.receive_buffer=11680
  linerate sim run sun-3-60-to-3-60 --set transfer.bytes=100000 --timeline wire.svg --pcap wire.pcapng
  linerate sim run my-scenario.toml --check --json run.json";

/// The flags of `linerate sim run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// A scenario by its name, or a file that ends in .toml
    #[arg(value_name = "NAME|FILE")]
    scenario: String,
    /// Change a parameter, as often as wanted
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Decides whatever is drawn
    #[arg(long, value_name = "NUMBER", default_value_t = 1988)]
    seed: u64,
    /// Compare what arrives with what was sent, and judge every invariant after every event
    #[arg(long)]
    check: bool,
    /// Write what came of it to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write every frame to this pcapng file
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Draw who sent when into this file, its first second
    #[arg(long, value_name = "FILE.svg")]
    timeline: Option<PathBuf>,
}

/// Runs it.
pub(crate) fn run(args: &RunArgs, _interrupt: &Interrupt) -> Result<(), Failure> {
    let scenario = load(&args.scenario, &args.set).map_err(BenchError::from)?;
    let blueprint = scenario.blueprint().map_err(|error| Failure::input(error.to_string()))?;
    let mut capture = args.pcap.as_deref().map(create).transpose()?;
    let keep = Keep { frames: capture.is_some(), timeline: args.timeline.is_some() };
    let options = TransferOptions { verify: args.check, checks: args.check, ..TransferOptions::default() };
    let outcome = blueprint.run(args.seed, &options, keep);
    print(&format!("{}\n\n{}", scenario.question(), describe(&outcome)))?;
    let published = beside_published(&args.scenario, &args.set, args.seed, &blueprint, &outcome);
    let published = published.map_err(BenchError::from)?;
    if !published.is_empty() {
        print(&format!("\n{published}"))?;
    }
    if let Some(capture) = &mut capture {
        write_frames(capture, &blueprint, scenario.name(), &outcome)?;
    }
    write(args.json.as_deref(), || {
        let record = Record::new(scenario.name(), args.seed, &outcome);
        serde_json::to_string_pretty(&record).map_or_else(|error| error.to_string(), |text| text + "\n")
    })?;
    write(args.timeline.as_deref(), || timeline(&outcome))?;
    match outcome.programs.iter().find(|program| program.wrong_at.is_some()) {
        Some(program) => Err(Failure::running(format!("{} got wrong bytes", program.name))),
        None => Ok(()),
    }
}

fn create(path: &Path) -> Result<CaptureWriter, Failure> {
    Ok(CaptureWriter::create(path).map_err(|error| StoreError::writing(path, error))?)
}

pub(super) fn write(path: Option<&Path>, make: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    Ok(fs::write(path, make()).map_err(|error| StoreError::writing(path, error))?)
}
