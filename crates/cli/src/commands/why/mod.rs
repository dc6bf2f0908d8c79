//! `linerate why`: names what limits a path, with the evidence and one piece of advice.

mod on;
mod prometheus;
mod text;

use crate::amounts::{short_time, size, small_size, some_time};
use crate::output::{Failure, can_be_written, cannot_write, print, print_if_read, write_file};
use crate::own_host::AddressArgs;
use clap::Args;
use linerate_ends::{Interrupt, Peer};
use linerate_evidence::{Change, RunEvidence};
use linerate_link::impair::Impairments;
use linerate_link::namespace::enter_private_network;
use linerate_measure::{Application, BenchError, DiagnosedPath, SimPath, SocketPath};
use linerate_units::Duration;
use linerate_verdict::diagnosis::{Diagnosis, NextRun, Verdict};
use on::On;
use serde::Serialize;
use std::fs;
use std::io::{self, Write};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  linerate why 192.0.2.7                         to a `linerate sink` there, port 1988
  linerate why 192.0.2.7:5201                    to an iperf3 server: no evidence of its end
  linerate why 192.0.2.7 --json why.json         the verdict with all figures
  linerate why 192.0.2.7 --seconds 60            longer runs, and narrower intervals
  linerate why 192.0.2.7 --send-buffer 64KiB     as the application sets SO_SNDBUF
  linerate why 192.0.2.7 --write-size 4KiB --write-pause 1ms
                                                 as the application writes
  linerate why 192.0.2.7 --watch --prometheus why.prom
                                                 again and again, for a dashboard
  linerate why 192.0.2.7 --on packet:eth1 --address 192.0.2.9/24
                                                 linerate's TCP on eth1, as root
  linerate why --on tap --impair delay=10ms,tx.rate=20Mb/s
                                                 linerate's TCP to the kernel's, in this process
  linerate why --on sim:sun-3-60-to-3-60         a simulated network, from exact counters

A plain transfer gives hypotheses. Each further run changes one thing (a buffer at least four \
times larger or halved, larger writes, shorter pauses, no copy at the reader, pacing at 90 % of \
the estimated link rate, at half or at twice the mean rate, smaller segments, one more \
connection) and confirms or refutes one. The result is one of: send-buffer, receive-buffer, \
writer, reader, sender-cpu, receiver-cpu, link-rate, queue-drop, random-loss, receive-drop, \
route-window, path-mtu, congestion-window, round-trip, contended (other work held the threads, so \
nothing is concluded), not-identified (with all figures).";

/// Seed of the random decisions in simulated paths.
const SEED: u64 = 1988;
/// Duration of the first transfer, as a share of the total time. It is also the maximum duration of
/// each later transfer.
const FIRST_SHARE: f64 = 0.133;
/// Minimum duration of each later transfer, as a share of the total time.
const FURTHER_SHARE: f64 = 0.047;
/// Minimum duration of each later transfer if the first one had losses, as a share of the total
/// time. It is longer than on other paths, because more time yields more losses to compare.
const LOSSY_SHARE: f64 = 0.073;
/// Duration of each later transfer in round-trip times. It is long enough for slow start to end in
/// the first half of the transfer, which is not observed. The minimum and maximum durations given
/// by the shares of the total time take precedence.
const ROUND_TRIPS: f64 = 24.0;
/// Minimum total time in seconds. With less time, each transfer would consist only of slow start.
const MIN_SECONDS: u64 = 5;
/// Maximum total time in seconds.
const MAX_SECONDS: u64 = 600;

/// The options of `linerate why`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhyArgs {
    /// The machine at the other end of the path, which runs `linerate sink`, or `iperf3 -s` for the
    /// kernel's TCP
    #[arg(value_name = "HOST[:PORT]", required_unless_present = "on")]
    peer: Option<Peer>,

    /// The sending TCP: linerate's on an interface to HOST, through a packet socket (packet:NAME),
    /// AF_XDP (xdp:NAME or xdp:NAME:QUEUE) or a TAP device (tap:NAME); or a path inside this
    /// process: linerate's to the kernel's (tap), linerate's at both ends (stack), or the first
    /// bulk transfer of a scenario in virtual time (sim:NAME) [default: the kernel's]
    #[arg(long, value_name = "PATH")]
    on: Option<On>,

    #[command(flatten)]
    address: AddressArgs,

    /// Change a parameter of the scenario; can be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "on")]
    set: Vec<String>,

    /// Impair the frames of linerate's host, as for `linerate sweep`: delay=10ms,tx.loss=1%
    #[arg(long, value_name = "LIST", requires = "on")]
    impair: Option<Impairments>,

    /// Maximum total time
    #[arg(long, value_name = "SECONDS", value_parser = total_time, default_value = "30")]
    seconds: Duration,

    /// Write the verdict to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Repeat the diagnosis until Ctrl-C, and print one line for each
    #[arg(long)]
    watch: bool,

    /// Write the latest verdict to this file in the text format of Prometheus
    #[arg(long, value_name = "FILE", requires = "watch")]
    prometheus: Option<PathBuf>,

    /// The sender's socket buffer [default: automatic tuning]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    send_buffer: Option<NonZeroU64>,

    /// The receiver's socket buffer [default: automatic tuning]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    receive_buffer: Option<NonZeroU64>,

    /// Bytes of each write
    #[arg(long, value_name = "SIZE", value_parser = small_size, default_value = "128KiB")]
    write_size: NonZeroU32,

    /// Wait this long after each write
    #[arg(long, value_name = "TIME", value_parser = short_time)]
    write_pause: Option<Duration>,

    /// The sender's congestion control [default: that of the system]
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
}

/// Parses the total time of a diagnosis.
fn total_time(text: &str) -> Result<Duration, String> {
    let time = some_time(text)?;
    let (least, most) = (Duration::from_secs(MIN_SECONDS), Duration::from_secs(MAX_SECONDS));
    (least..=most)
        .contains(&time)
        .then_some(time)
        .ok_or_else(|| format!("{time} is not possible: from {least} to {most}"))
}

/// Diagnoses the path, and prints the verdict.
pub(crate) fn run(args: &WhyArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let files = [args.json.as_deref(), args.prometheus.as_deref()];
    can_be_written(files.into_iter().flatten(), cannot_write)?;
    check(args)?;
    if matches!(args.on, Some(On::Tap)) {
        enter_private_network().map_err(|error| Failure::input(error.to_string()))?;
    }
    if args.watch {
        return watch(args, interrupt);
    }
    let record = diagnose(&mut *path(args)?, args.seconds, interrupt)?;
    print(&text::report(&record.path, &record.verdict))?;
    write_json(args.json.as_deref(), &record)
}

/// Repeats the diagnosis until Ctrl-C. Each diagnosis opens new connections: the sink may have been
/// restarted since the previous one, which would have closed the old connections.
fn watch(args: &WhyArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    while !interrupt.is_raised() {
        let record = match diagnose(&mut *path(args)?, args.seconds, interrupt) {
            Err(_) if interrupt.is_raised() => return Ok(()),
            record => record?,
        };
        if !print_if_read(&text::headline(&record.verdict))? {
            return Ok(());
        }
        write_json(args.json.as_deref(), &record)?;
        if let Some(file) = &args.prometheus {
            let text = prometheus::text(&record.path, &record.verdict);
            replace(file, &text).map_err(|error| cannot_write(file, error))?;
        }
    }
    Ok(())
}

/// Replaces the text of a file. The text is written to a new file, which is then renamed, so that
/// readers never see a partial text.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    fs::write(&new, text)?;
    fs::rename(&new, file)
}

/// Returns the path that the options select for the diagnosis.
fn path(args: &WhyArgs) -> Result<Box<dyn DiagnosedPath>, Failure> {
    let (application, impair) = (application(args), args.impair);
    Ok(match (&args.on, &args.peer) {
        (Some(On::Scenario(name)), _) => Box::new(SimPath::new(name, &args.set, SEED)?),
        (Some(On::Stack), _) => Box::new(SocketPath::in_memory(impair, &application)?),
        (Some(On::Tap), _) => Box::new(SocketPath::over_tap(impair, &application)?),
        (Some(On::Interface(link)), Some(peer)) => {
            let host = args.address.on(link)?;
            Box::new(SocketPath::through(&host, impair, peer, &application)?)
        }
        (None, Some(peer)) => Box::new(SocketPath::to(peer, &application)?),
        (Some(On::Interface(_)) | None, None) => {
            return Err(Failure::input("no HOST is given, which runs `linerate sink`"));
        }
    })
}

/// Returns an error if options contradict each other.
fn check(args: &WhyArgs) -> Result<(), Failure> {
    let on = args.on.as_ref();
    let is_scenario = matches!(on, Some(On::Scenario(_)));
    let refuse_if =
        |is_wrong: bool, line: &str| if is_wrong { Err(Failure::input(line)) } else { Ok(()) };
    if !matches!(on, Some(On::Interface(_))) {
        args.address.need_none()?;
        refuse_if(
            on.is_some() && args.peer.is_some(),
            "this path is inside the process: leave HOST out, or name an interface, --on \
             packet:NAME",
        )?;
    }
    refuse_if(!args.set.is_empty() && !is_scenario, "--set is for a scenario, --on sim:NAME")?;
    refuse_if(
        args.impair.is_some() && is_scenario,
        "a scenario has its own media: change them with --set, and leave --impair out",
    )
}

/// Returns the behaviour of the sending and receiving applications, from the options.
fn application(args: &WhyArgs) -> Application {
    Application {
        send_buffer: args.send_buffer.map(NonZeroU64::get),
        receive_buffer: args.receive_buffer.map(NonZeroU64::get),
        write_size: usize::try_from(args.write_size.get()).unwrap_or(usize::MAX),
        write_pause: args.write_pause.unwrap_or(Duration::ZERO),
        congestion: args.congestion.clone(),
    }
}

/// The content of the JSON file: the verdict, and the evidence of all runs.
#[derive(Debug, Serialize)]
struct Record {
    #[serde(flatten)]
    verdict: Verdict,
    path: String,
    runs: Vec<RunEvidence>,
}

/// Executes the runs that the diagnosis requests, within the total time `seconds`.
fn diagnose(
    path: &mut dyn DiagnosedPath,
    seconds: Duration,
    interrupt: &Interrupt,
) -> Result<Record, Failure> {
    let began = Instant::now();
    let mut diagnosis = Diagnosis::new();
    let mut runs: Vec<RunEvidence> = Vec::new();
    let total = seconds.as_secs_f64();
    while let Some(next) = diagnosis.next_run() {
        let round_trip = runs.first().and_then(|run| run.sender.connection.round_trip_micros);
        let round_trip = round_trip.map_or(0.0, |micros| micros.mean / 1e6);
        let share = if diagnosis.is_lossy() { LOSSY_SHARE } else { FURTHER_SHARE };
        let further = (ROUND_TRIPS * round_trip).clamp(share * total, FIRST_SHARE * total);
        let (change, time) = match next {
            NextRun::First => (None, FIRST_SHARE * total),
            NextRun::Plain => (None, further),
            // If the first run had losses, the run at half the rate is longer than those with other
            // interventions. The sender sends only half as many packets in a given time, so a short
            // run would lose too few packets to compare loss rates.
            NextRun::Changed(change @ Change::PacedAtHalf) if diagnosis.is_lossy() => {
                (Some(change), FIRST_SHARE * total)
            }
            NextRun::Changed(change) => (Some(change), further),
        };
        let time = std::time::Duration::from_secs_f64(time);
        if began.elapsed() + time > seconds.into() {
            diagnosis.end();
            break;
        }
        let evidence = match path.run(change, time.into(), interrupt) {
            Err(BenchError::Interrupted) => {
                return Err(Failure::interrupted("interrupted: no verdict"));
            }
            evidence => evidence?,
        };
        let line = text::progress(change, evidence.as_ref());
        // Errors are ignored: the diagnosis continues if standard error is closed.
        let _ = writeln!(io::stderr(), "{line}");
        runs.extend(evidence.clone());
        diagnosis.add(next, evidence);
    }
    Ok(Record { verdict: diagnosis.verdict(), path: path.description(), runs })
}

fn write_json(file: Option<&Path>, record: &Record) -> Result<(), Failure> {
    let json = || {
        let text = serde_json::to_string_pretty(record);
        text.map_or_else(|error| error.to_string(), |text| text + "\n")
    };
    write_file(file, json, cannot_write)
}
