//! `linerate sink`: a line for each connection, and a sum at the end.

use crate::output::{Failure, print};
use crate::own_host::OwnHostArgs;
use clap::Args;
use linerate_ends::serve::ListenAt;
use linerate_ends::sink::{Event, Limits, Served, Service, Sink, Summary};
use linerate_ends::socket::Options;
use linerate_ends::{Ended, Interrupt, Peer};
use linerate_units::{Bytes, Duration, Rate};

const EXAMPLES: &str = "\
Examples:
  linerate sink                          listens at port 1988 of every address, IPv4 and IPv6
  linerate sink --listen 192.0.2.7:5001  where ttcp looks for a receiver
  linerate sweep HOST                    on the other machine: the experiment, with this at its end
  nc HOST 1988 < FILE                    any program may send; what it sends is counted
  linerate sink --on packet:eth1 --address 192.0.2.9/24
                                         received by linerate's own TCP, as root

A sweep sets the receive buffer of each run through a control connection to the same port. Everybody \
else's bytes are thrown away, as by RFC 863's discard service. Ctrl-C ends it, with a sum: \
all bytes, in the time from the first of them to the last, whether connections overlap or pause.";

/// The flags of `linerate sink`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SinkArgs {
    /// Where to listen: ADDR:PORT (IPv6 in brackets), or a port of all addresses; port 0 takes one
    /// that is free
    #[arg(long, value_name = "ADDR:PORT", default_value_t = ListenAt::Everywhere(Peer::DEFAULT_PORT))]
    listen: ListenAt,

    #[command(flatten)]
    host: OwnHostArgs,

    /// Only the sum at the end
    #[arg(long)]
    quiet: bool,
}

/// Serves until it is interrupted.
pub(crate) fn run(args: &SinkArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let options = Options { congestion: args.host.congestion()?, ..Options::default() };
    let network = args.host.network()?;
    let sink = Sink::bind_with(&network, args.listen, &options, Limits::default());
    let sink = sink.map_err(|error| Failure::input(error.to_string()))?;
    let broken = |error| Failure::running(format!("the listening socket broke ({error})"));
    print(&format!("listening at {}\n", sink.local_addr().map_err(broken)?))?;
    let tell = |event: &Event| {
        if !args.quiet {
            // Whoever no longer reads the lines may still want the service.
            let _ = print(&line(event));
        }
    };
    let summary = sink.serve(interrupt, &tell).map_err(broken)?;
    network.end();
    print(&sum(&summary))
}

fn line(event: &Event) -> String {
    match event {
        Event::TurnedAway { peer, reason } => format!("{peer} turned away: {reason}\n"),
        Event::Served(served) => format!("{} {}\n", served.peer, service(served)),
    }
}

fn service(served: &Served) -> String {
    let took = taken(served.bytes, served.span.into());
    match &served.service {
        Service::Plain => format!("plain: {took}"),
        Service::Control { runs } => format!("sweep: over after {runs} runs"),
        Service::Run { receive_granted, ended, verified } => {
            let verified = match verified {
                None => "",
                Some(true) => ", every byte right",
                Some(false) => ", BYTES WRONG",
            };
            format!(
                "run: {took}, receive buffer {receive_granted} bytes{}{verified}",
                ending(*ended)
            )
        }
    }
}

const fn ending(ended: Ended) -> &'static str {
    match ended {
        Ended::Complete => "",
        Ended::EndOfStream => ", ended by the source",
        Ended::TimeUp => ", time up",
        Ended::Stopped => ", stopped",
        Ended::Broken => ", broken off",
    }
}

fn sum(summary: &Summary) -> String {
    let Summary { connections, sessions, turned_away, bytes, .. } = *summary;
    let took = taken(bytes, summary.span().into());
    format!(
        "in all: {took}, over {connections} connections; {sessions} sweeps, {turned_away} turned away\n"
    )
}

/// How much came in which time; one read has no rate.
pub(super) fn taken(bytes: u64, time: Duration) -> String {
    let bytes = Bytes::new(bytes);
    if time == Duration::ZERO {
        return bytes.to_string();
    }
    format!("{bytes} in {time}, {}", Rate::of(bytes, time))
}
