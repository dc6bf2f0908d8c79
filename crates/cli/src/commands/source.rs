//! `linerate source`: sends data to a sink, or to every peer that connects.

use super::sink::taken;
use crate::amounts::{seed, size, small_size, some_time};
use crate::output::{Failure, print};
use crate::own_host::OwnHostArgs;
use clap::Args;
use linerate_ends::serve::ListenAt;
use linerate_ends::socket::Network;
use linerate_ends::source::{
    Delivered, Event, ListeningSource, SourceError, Supply, send, send_verified,
};
use linerate_ends::{Interrupt, Peer};
use linerate_units::Duration;
use std::num::{NonZeroU32, NonZeroU64};

const EXAMPLES: &str = "\
Examples:
  linerate source 192.0.2.7 --bytes 1GiB           to port 1988, for example a `linerate sink`
  linerate source 192.0.2.7 --bytes 1GiB --verify  a `linerate sink` compares every byte
  linerate source 192.0.2.7:5001 --seconds 10      to `ttcp -r`
  linerate source --listen 1900                    for `nc HOST 1900`: an endless character stream
  linerate source 192.0.2.7 --on packet:eth1 --address 192.0.2.9/24
                                                   sent by linerate's own TCP, as root
  linerate source 192.0.2.7 --congestion bbr       sent by the kernel's BBR

Plain peers get the characters of RFC 864 and nothing else. With --verify the data is a pattern \
that depends on the position.";

/// The options of `linerate source`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SourceArgs {
    /// The destination: a `linerate sink`, `nc -l`, `ttcp -r`, a discard service
    #[arg(
        value_name = "HOST[:PORT]",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    peer: Option<Peer>,

    /// Send to every peer that connects here: ADDR:PORT (IPv6 in brackets), or a port of all
    /// addresses
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<ListenAt>,

    #[command(flatten)]
    host: OwnHostArgs,

    /// Bytes for each connection [default: until the peer closes it, or Ctrl-C]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    bytes: Option<NonZeroU64>,

    /// Time for each connection [default: until the peer closes it, or Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = some_time)]
    seconds: Option<Duration>,

    /// Bytes of each write
    #[arg(long, value_name = "SIZE", value_parser = small_size, default_value = "64KiB")]
    write_size: NonZeroU32,

    /// The socket's send buffer [default: automatic tuning]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    send_buffer: Option<NonZeroU64>,

    /// Let a linerate sink compare every byte
    #[arg(long, conflicts_with = "listen")]
    verify: bool,

    /// The seed of the compared data
    #[arg(
        long,
        value_name = "NUMBER",
        value_parser = seed,
        default_value = "1988",
        requires = "verify"
    )]
    seed: u64,
}

/// Sends data until the limit of `--bytes` or `--seconds` is reached, the peer closes, or the user
/// presses Ctrl-C.
pub(crate) fn run(args: &SourceArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let supply = Supply {
        bytes: args.bytes,
        max_time: args.seconds,
        write_size: args.write_size,
        send_buffer: args.send_buffer,
        congestion: args.host.congestion()?,
    };
    let network = &args.host.network()?;
    let outcome = match (args.listen, &args.peer) {
        (Some(place), _) => serve(network, place, supply, interrupt),
        (None, Some(peer)) if args.verify => {
            report(send_verified(network, peer, &supply, args.seed, interrupt))
        }
        (None, Some(peer)) => report(send(network, peer, &supply, interrupt)),
        (None, None) => Err(Failure::input("neither HOST nor --listen is given")),
    };
    network.end();
    outcome
}

fn serve(
    network: &Network,
    place: ListenAt,
    supply: Supply,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let listening_source = ListeningSource::bind(network, place, supply)?;
    let broken = |error| Failure::running(format!("the listening socket failed ({error})"));
    print(&format!("listening at {}\n", listening_source.local_addr().map_err(broken)?))?;
    let tell = |event: &Event| {
        let line = match event {
            Event::Served(drawn) => {
                format!("{} drew {}\n", drawn.peer, taken(drawn.bytes, drawn.time.into()))
            }
            Event::Rejected(peer) => format!("{peer} rejected: too many connections\n"),
        };
        // Errors are ignored: the service continues if standard output is a closed pipe.
        let _ = print(&line);
    };
    listening_source.serve(interrupt, &tell).map_err(broken)
}

fn report(delivered: Result<Delivered, SourceError>) -> Result<(), Failure> {
    let delivered = delivered?;
    let what = match (delivered.verified, delivered.confirmed) {
        (Some(true), _) => "read by the sink, all data intact",
        (Some(false), _) => {
            return Err(Failure::running("the sink received other data than was sent"));
        }
        (None, true) => "until the peer had read everything and closed",
        (None, false) => {
            "until the last write; the peer did not confirm that it has read everything"
        }
    };
    print(&format!("{}, {what}\n", taken(delivered.bytes, delivered.time.into())))
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Broken { .. } => Self::running(error.to_string()),
            _ => Self::input(error.to_string()),
        }
    }
}
