//! Compares linerate with other TCP stacks, which perform equal transfers in turn. Processor time
//! is measured; only the workload `shards` is measured in wall-clock time.

#![forbid(unsafe_code)]

mod bars;
mod build;
mod child;
mod contender;
mod facts;
mod figures;
mod floor;
mod gateways;
mod gvisor;
mod kernel;
mod linerate;
mod lwip;
mod packet;
mod pattern;
mod record;
mod report;
mod smoltcp;
mod stopwatch;
mod tap;
mod turns;
mod veth;
mod work;
mod xdp;

use clap::{Parser, ValueEnum};
use contender::{Candidate, Contender};
use facts::Facts;
use report::Report;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use work::Work;

/// Compares the processor time that linerate and its peers take for equal work.
///
/// Both ends of a transfer run in one thread, or on one processor. The link has an MTU of 1,500
/// bytes, and checksums are computed and verified in software. Every contender runs as shipped;
/// peers/README.md lists the differences. Peers that are missing on this machine are named and left
/// out.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Arguments {
    /// Makes a third of the runs, with a quarter of the work in each.
    #[arg(long)]
    quick: bool,
    /// Runs only this workload; may be repeated.
    #[arg(long, value_name = "WORK")]
    work: Vec<Work>,
    /// Runs only this peer beside linerate; may be repeated.
    #[arg(long, value_name = "NAME")]
    peer: Vec<String>,
    /// Writes all results as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Appends a dated row to docs/notebook/bench-runs.md.
    #[arg(long)]
    record: bool,
}

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = given.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        [kernel::SERVE] => kernel::serve_veth_pairs().map_err(Failure::from),
        [packet::SERVE, name] => packet::serve_contender(name).map_err(Failure::from),
        [xdp::SERVE, name] => xdp::serve_contender(name).map_err(Failure::from),
        [tap::SERVE, name] => tap::serve_contender(name).map_err(Failure::from),
        [gateways::WORD, ..] => gateways::start(&given).map_err(Failure::from),
        [gateways::CLIENT, ref words @ ..] => gateways::run_client(words).map_err(Failure::from),
        [gateways::SERVE, ..] => gateways::serve(&given).map_err(Failure::from),
        _ => run(&Arguments::parse()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { sentence, code }) => {
            eprintln!("error: {sentence}");
            ExitCode::from(code)
        }
    }
}

/// An error that ends the program. The exit code is 2 for a wrong argument, and 1 for a failed run.
struct Failure {
    sentence: String,
    code: u8,
}

impl From<String> for Failure {
    fn from(sentence: String) -> Self {
        Self { sentence, code: 1 }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let json = arguments.json.as_deref().map(create).transpose()?;
    let (mut contenders, missing) = choose(candidates(), &arguments.peer)?;
    for missing in &missing {
        say(&format!("{} is left out: {}", missing.name, missing.reason))?;
    }
    let versions =
        contenders.iter().map(|contender| (contender.name(), contender.version())).collect();
    let facts = Facts::gather(arguments.quick, versions);
    let works = if arguments.work.is_empty() { Work::value_variants() } else { &arguments.work };
    let (mut all, mut remarks) = (Vec::new(), Vec::new());
    for &work in works {
        if contenders
            .iter()
            .find(|contender| contender.can(work))
            .is_none_or(|first| first.name() != "linerate")
        {
            say(&format!("{work} is left out: linerate cannot do it here"))?;
            continue;
        }
        let figures = figures::figures(&turns::take(work, &mut contenders, arguments.quick)?);
        say(&report::table(&work.to_string(), &figures, &bars::judge(&figures)))?;
        for contender in &contenders {
            if let Some(remark) = contender.remark(work) {
                say(&format!("  {}: {remark}\n", contender.name()))?;
                remarks.push((contender.name(), remark));
            }
        }
        all.extend(figures);
    }
    let bars = bars::judge(&all);
    let report = Report { facts, missing, figures: all, remarks, bars };
    if let Some(mut file) = json {
        let written = serde_json::to_writer_pretty(&mut file, &report).map_err(io::Error::from);
        written
            .and_then(|()| file.write_all(b"\n"))
            .map_err(|error| format!("the JSON cannot be written: {error}"))?;
    }
    if arguments.record {
        record::keep(&report.line())?;
        say("appended a row to docs/notebook/bench-runs.md")?;
    }
    Ok(())
}

/// Prints a line to standard output.
///
/// # Errors
/// A message that standard output cannot be written, for example because the pipe is closed.
fn say(line: &str) -> Result<(), Failure> {
    let written = writeln!(io::stdout(), "{line}");
    written.map_err(|error| {
        Failure::from(format!("nothing can be written to standard output: {error}"))
    })
}

/// The name of a contender, and the function that returns the contender if this machine has it.
type Entry = (&'static str, fn() -> Candidate);

/// Returns the entries of all contenders. linerate comes first, because all ratios refer to its
/// time.
fn candidates() -> Vec<Entry> {
    vec![
        ("linerate", || Ok(Box::new(linerate::Linerate::as_shipped()))),
        ("linerate", tap::linerate),
        ("linerate", packet::linerate),
        ("linerate", xdp::linerate),
        ("linerate-lent", tap::linerate_in_place),
        ("linerate-shared", tap::linerate_shared),
        ("linerate-plain", || Ok(Box::new(linerate::Linerate::without_options()))),
        ("linerate-beside", || Ok(Box::new(linerate::Linerate::beside_idle()))),
        ("linerate-apart", || Ok(Box::new(linerate::Linerate::apart()))),
        ("linerate-turns", || Ok(Box::new(linerate::Linerate::in_turn()))),
        ("linerate-loss", || Ok(Box::new(linerate::Linerate::with_loss()))),
        ("linerate-shards", || Ok(Box::new(linerate::Linerate::in_two_shards()))),
        ("smoltcp", || Ok(Box::new(smoltcp::Smoltcp))),
        ("smoltcp", tap::smoltcp),
        ("smoltcp-lent", tap::smoltcp_in_place),
        ("lwip", lwip::candidate),
        ("gvisor", gvisor::candidate),
        ("gvisor", packet::gvisor),
        ("kernel", kernel::candidate),
        ("bare", xdp::bare),
        ("floor", || Ok(Box::new(floor::Floor))),
    ]
}

/// The contenders that are available, and those that are missing on this machine.
type Chosen = (Vec<Box<dyn Contender>>, Vec<contender::Missing>);

/// Creates the contenders whose names are in `wanted`, or all if `wanted` is empty. linerate is
/// always created. Contenders that this machine lacks are returned separately.
fn choose(candidates: Vec<Entry>, wanted: &[String]) -> Result<Chosen, Failure> {
    let mut names: Vec<&str> = candidates.iter().map(|&(name, _)| name).collect();
    // Contenders that support several kinds of link have several entries with the same name. In the
    // error message, each name must be listed once.
    names.dedup();
    if let Some(unknown) = wanted.iter().find(|wanted| !names.contains(&wanted.as_str())) {
        let sentence =
            format!("no contender is called `{unknown}`: choose one of {}", names.join(", "));
        return Err(Failure { sentence, code: 2 });
    }
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    for (name, candidate) in candidates {
        if name != "linerate" && !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        match candidate() {
            Ok(contender) => here.push(contender),
            Err(candidate) => missing.push(candidate),
        }
    }
    Ok((here, missing))
}

/// Creates the file for the JSON report before the first run, so that a wrong path fails at once.
fn create(path: &Path) -> Result<File, Failure> {
    let sentence = |error| format!("{} cannot be written: {error}", path.display());
    File::create(path).map_err(|error| Failure { sentence: sentence(error), code: 2 })
}
