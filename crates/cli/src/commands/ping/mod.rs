//! `linerate ping`: echo requests from linerate's own host, to the kernel or to a host behind an
//! interface.

mod args;
mod line;
mod typed;
mod words;

pub(crate) use args::PingArgs;

use crate::commands::tool_host::{On, failure_of, no_server, private_tap};
use crate::output::{Failure, cannot_write, print, print_if_read};
use crate::own_host::random_seed;
use linerate_ends::Interrupt;
use linerate_link::capture_file::CaptureWriter;
use linerate_link::{Capture, Readiness};
use linerate_stack::{Host, Link, Stack};
use linerate_tools::ping::{Answer, EchoParameters, Tally, ping};
use linerate_units::Duration;
use linerate_wire::IpCidr;
use std::io;
use std::net::IpAddr;
use words::{line, sum};

/// Default time between requests.
const INTERVAL: Duration = Duration::from_secs(1);

/// Sends the echo requests, and prints the replies.
pub(crate) fn run(args: &PingArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let (destination, own) = args.own.addresses(&args.host)?;
    let asking = Series { args, destination, own, interrupt };
    match &args.own.on {
        _ if args.typed => typed::run(&asking),
        On::Line(baud) => line::ping(&asking, *baud),
        On::Private(medium) => {
            args.own.refuse_link_options()?;
            let own = own.ok_or_else(no_server)?;
            let tap = private_tap(*medium, destination, own)?;
            let whose = ", a private network in which this machine's kernel has the address";
            asking.on(&format!("{}{whose}", tap.interface().name()), None, tap)
        }
        On::Link(spec) => {
            let link = args.own.open(spec, own)?;
            asking.on(&format!("{spec} ({})", link.description()), link.mac(), link)
        }
    }
}

/// The parameters of a series of echo requests.
struct Series<'a> {
    args: &'a PingArgs,
    destination: IpAddr,
    /// Address of linerate's host; `None` if a DHCP server or a router will provide it.
    own: Option<IpCidr>,
    interrupt: &'a Interrupt,
}

impl Series<'_> {
    /// Sends echo requests from a new linerate host on `link`. The MAC address of the host is
    /// `mac`, or a random address if `mac` is `None`.
    fn on<L: Link + Readiness>(
        &self,
        name: &str,
        mac: Option<[u8; 6]>,
        link: L,
    ) -> Result<(), Failure> {
        let Self { args, destination, own, interrupt } = *self;
        let seed = random_seed()?;
        let parameters = parameters(args, destination, &seed);
        let stack = Stack::new(args.own.stack_config(own, mac, &seed), seed);
        let headline = |own: IpAddr| {
            let (host, size) = (&args.host, args.size);
            format!("PING {host} ({destination}), {size} bytes of data, from {own} on {name}\n")
        };
        let tally = match &args.pcap {
            None => {
                send_requests(&mut Host::new(stack, link), &parameters, headline, args, interrupt)
            }
            Some(file) => {
                let cannot = |error: io::Error| cannot_write(file, error);
                let writer = CaptureWriter::create(file).map_err(cannot)?;
                let mut host = Host::new(stack, Capture::new(link, name, writer));
                let tally = send_requests(&mut host, &parameters, headline, args, interrupt);
                host.into_parts().1.into_parts().1.finish().map_err(cannot)?;
                tally
            }
        }?;
        print(&sum(&args.host, &tally))?;
        if tally.received > 0 { Ok(()) } else { Err(Failure::running("no request was answered")) }
    }
}

/// Sends the echo requests. The headline is printed only after the first request has been sent. If
/// this request cannot be sent, the command therefore prints only the error.
fn send_requests<L: Link + Readiness>(
    host: &mut Host<L>,
    parameters: &EchoParameters,
    headline: impl FnOnce(IpAddr) -> String,
    args: &PingArgs,
    interrupt: &Interrupt,
) -> Result<Tally, Failure> {
    let own = args.own.own_address_of(host, parameters.destination, args.quiet, interrupt)?;
    let headline = headline(own);
    let mut printed = Ok(());
    let begun = || {
        printed = print(&headline);
        if printed.is_err() {
            interrupt.raise();
        }
    };
    let tell = |answer: &Answer| {
        // If standard output is a closed pipe, the replies can no longer be read, so the command
        // ends. With a capture file, it continues, because the file still needs frames.
        if !args.quiet && !matches!(print_if_read(&line(answer)), Ok(true)) && args.pcap.is_none() {
            interrupt.raise();
        }
    };
    let tally = ping(host, parameters, interrupt, begun, tell)
        .map_err(|error| failure_of(&error, "request", &args.host))?;
    printed.map(|()| tally)
}

fn parameters(args: &PingArgs, destination: IpAddr, seed: &[u8; 32]) -> EchoParameters {
    EchoParameters {
        destination,
        count: args.count.map(|count| count.get().into()),
        interval: args.interval.unwrap_or(INTERVAL),
        timeout: args.timeout,
        size: args.size,
        identifier: u16::from_be_bytes([seed[0], seed[1]]),
    }
}
