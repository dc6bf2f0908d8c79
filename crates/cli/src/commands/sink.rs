//! `linerate sink`: receives data from peers. It prints a line for each sweep and each other
//! connection, and the totals at the end.

use super::sink_metrics::SinkMetrics;
use crate::amounts::{short_time, small_size};
use crate::output::{Failure, print};
use crate::own_host::OwnHostArgs;
use clap::Args;
use linerate_ends::iperf3;
use linerate_ends::serve::{ListenAt, TextPage};
use linerate_ends::sink::{Event, Limits, RunTotals, Served, Service, Sink, Summary};
use linerate_ends::socket::{Network, Options};
use linerate_ends::{Ended, Interrupt, Peer};
use linerate_report::Metrics;
use linerate_units::{Bytes, Duration, Rate};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

const EXAMPLES: &str = "\
Examples:
  linerate sink                          listens at port 1988 of all addresses, IPv4 and IPv6
  linerate sink --listen 192.0.2.7:5001  the default port of ttcp
  linerate sweep HOST                    on the other machine: the experiment, with this sink
  linerate sink --metrics 127.0.0.1:9988 metrics for Prometheus
  nc HOST 1988 < FILE                    any program can send; the data is counted
  linerate sink --iperf3                 serves `iperf3 -c HOST`, also with -P and -R
  linerate sink --on packet:eth1 --address 192.0.2.9/24
                                         received by linerate's own TCP, as root

A sweep sets the receive buffer of each run through a control connection to the same port. Data of \
other peers is discarded, as by the discard service of RFC 863. Ctrl-C ends the sink and prints \
totals: all bytes, and the time from the first byte to the last, including pauses.";

/// The options of `linerate sink`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SinkArgs {
    #[arg(
        long,
        value_name = "ADDR:PORT",
        help = "The address to listen at: ADDR:PORT (IPv6 in brackets), or a port of all \
                addresses; port 0 selects a free one [default: 1988, or 5201 with --iperf3]"
    )]
    listen: Option<ListenAt>,

    /// Serve iperf3 clients in place of sweeps, one test at a time
    #[arg(long, conflicts_with_all = ["read_pause", "read_size", "runs", "metrics"])]
    iperf3: bool,

    #[command(flatten)]
    host: OwnHostArgs,

    /// Wait this long after each read, as a slow reader does
    #[arg(long, value_name = "TIME", value_parser = short_time)]
    read_pause: Option<Duration>,

    /// Print a line for each run of a sweep, and not only one for the sweep
    #[arg(long, conflicts_with = "quiet")]
    runs: bool,

    /// Serve metrics for Prometheus over HTTP at this address, at the path /metrics
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<ListenAt>,

    /// Read at most this many bytes at a time; small reads occupy a processor
    #[arg(long, value_name = "SIZE", value_parser = small_size)]
    read_size: Option<NonZeroU32>,

    /// Print only the totals at the end
    #[arg(long)]
    quiet: bool,
}

/// Serves peers until Ctrl-C, then prints totals.
pub(crate) fn run(args: &SinkArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let options = Options { congestion: args.host.congestion()?, ..Options::default() };
    let network = args.host.network()?;
    if args.iperf3 {
        return serve_iperf3(args, &network, &options, interrupt);
    }
    let place = args.listen.unwrap_or(ListenAt::Everywhere(Peer::DEFAULT_PORT));
    let pause = args.read_pause.unwrap_or(Duration::ZERO).into();
    let read_size = args.read_size.and_then(|size| usize::try_from(size.get()).ok());
    let limits = Limits { pause, read_size, ..Limits::default() };
    let sink = Sink::bind_with(&network, place, &options, limits);
    let sink = sink.map_err(|error| Failure::input(error.to_string()))?;
    let broken = |error| Failure::running(format!("the listening socket failed ({error})"));
    print(&format!("listening at {}\n", sink.local_addr().map_err(broken)?))?;
    let page = args.metrics.map(metrics_page).transpose()?;
    let metrics = Mutex::new(SinkMetrics::default());
    let metrics = || metrics.lock().unwrap_or_else(PoisonError::into_inner);
    let tell = |event: &Event| {
        metrics().add(event);
        if !args.quiet && (args.runs || !is_run(event)) {
            // Errors are ignored: the service continues if standard output is a closed pipe.
            let _ = print(&line(event));
        }
    };
    let summary = thread::scope(|scope| {
        if let Some(page) = &page {
            scope.spawn(|| page.serve(interrupt, || metrics().text()));
        }
        let summary = sink.serve(interrupt, &tell);
        // `thread::scope` waits for the thread that serves metrics. Raising the interrupt ends that
        // thread, even if the service ended because of an error.
        interrupt.raise();
        summary
    });
    let summary = summary.map_err(broken)?;
    network.end();
    print(&sum(&summary))
}

/// Opens the HTTP listener for metrics, and prints its address.
fn metrics_page(place: ListenAt) -> Result<TextPage, Failure> {
    let page = TextPage::bind(place, "/metrics", Metrics::CONTENT_TYPE);
    let page =
        page.map_err(|error| Failure::input(error.to_string().replace("--listen", "--metrics")))?;
    if let Ok(address) = page.local_addr() {
        print(&format!("metrics at http://{address}/metrics\n"))?;
    }
    Ok(page)
}

/// Does the event report the end of one run of a sweep?
fn is_run(event: &Event) -> bool {
    let Event::Served(served) = event else { return false };
    matches!(served.service, Service::Run { .. })
}

/// Serves iperf3 clients until Ctrl-C, then prints totals.
fn serve_iperf3(
    args: &SinkArgs,
    network: &Network,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let place = args.listen.unwrap_or(ListenAt::Everywhere(iperf3::DEFAULT_PORT));
    let server = iperf3::Server::bind(network, place, options);
    let server = server.map_err(|error| Failure::input(error.to_string()))?;
    let broken = |error| Failure::running(format!("the listening socket failed ({error})"));
    print(&format!("listening at {}\n", server.local_addr().map_err(broken)?))?;
    let [tests, bytes, rejected] = [(); 3].map(|()| AtomicU64::new(0));
    let tell = |event: &iperf3::Event| {
        match event {
            iperf3::Event::Served(served) => {
                tests.fetch_add(1, Ordering::Relaxed);
                bytes.fetch_add(served.bytes, Ordering::Relaxed);
            }
            iperf3::Event::Rejected { .. } => {
                rejected.fetch_add(1, Ordering::Relaxed);
            }
        }
        if !args.quiet {
            // Errors are ignored: the service continues if standard output is a closed pipe.
            let _ = print(&iperf3_line(event));
        }
    };
    server.serve(interrupt, &tell).map_err(broken)?;
    network.end();
    let [tests, bytes, rejected] = [tests, bytes, rejected].map(AtomicU64::into_inner);
    let bytes = Bytes::new(bytes);
    print(&format!("total: {bytes} in {tests} tests of iperf3, {rejected} rejected\n"))
}

fn iperf3_line(event: &iperf3::Event) -> String {
    match event {
        iperf3::Event::Rejected { peer, reason } => format!("{peer} rejected: {reason}\n"),
        iperf3::Event::Served(served) => {
            let took = taken(served.bytes, served.time.into());
            let direction = if served.is_reverse { "sent" } else { "received" };
            format!("{} iperf3: {took}, {direction} by {} streams\n", served.peer, served.streams)
        }
    }
}

fn line(event: &Event) -> String {
    match event {
        Event::Rejected { peer, reason } => format!("{peer} rejected: {reason}\n"),
        Event::Served(served) => format!("{} {}\n", served.peer, service(served)),
    }
}

fn service(served: &Served) -> String {
    let took = taken(served.bytes, served.span.into());
    match &served.service {
        Service::Plain => format!("plain: {took}"),
        Service::Control { runs, totals } => sweep(*runs, totals),
        Service::Run { receive_granted, ended, verified } => {
            let verified = match verified {
                None => "",
                Some(true) => ", all data intact",
                Some(false) => ", BYTES WRONG",
            };
            format!(
                "run: {took}, receive buffer {receive_granted} bytes{}{verified}",
                ending(*ended)
            )
        }
    }
}

/// Formats the line about a finished sweep.
fn sweep(runs: u64, totals: &RunTotals) -> String {
    let mut text = format!("sweep: over after {runs} runs");
    if totals.ended > 0 {
        text.push_str(&format!(", {}", taken(totals.bytes, totals.reading.into())));
    }
    if totals.incomplete > 0 {
        text.push_str(&format!(", {} not complete", totals.incomplete));
    }
    if totals.wrong > 0 {
        text.push_str(&format!(", BYTES WRONG in {}", totals.wrong));
    } else if totals.ended > 0 && totals.intact == totals.ended {
        text.push_str(", all data intact");
    }
    text
}

const fn ending(ended: Ended) -> &'static str {
    match ended {
        Ended::Complete => "",
        Ended::EndOfStream => ", ended by the source",
        Ended::TimeUp => ", maximum time reached",
        Ended::Stopped => ", stopped",
        Ended::Broken => ", connection failed",
    }
}

fn sum(summary: &Summary) -> String {
    let Summary { connections, sessions, rejected, bytes, .. } = *summary;
    let took = taken(bytes, summary.span().into());
    format!(
        "total: {took}, over {connections} connections; {sessions} sweeps, {rejected} rejected\n"
    )
}

/// Formats an amount of data, the time of its transfer, and the rate. If the time is zero, the rate
/// is undefined, and only the amount is formatted.
pub(super) fn taken(bytes: u64, time: Duration) -> String {
    let bytes = Bytes::new(bytes);
    if time == Duration::ZERO {
        return bytes.to_string();
    }
    format!("{bytes} in {time}, {}", Rate::of(bytes, time))
}
