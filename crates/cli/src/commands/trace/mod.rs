//! `linerate trace`: shows the routers on the way to a host, with probes from linerate's own host.

mod args;

pub(crate) use args::TraceArgs;

use crate::commands::tool_host::{On, failure_of, no_server, private_tap};
use crate::output::{Failure, print, print_if_read};
use crate::own_host::random_seed;
use linerate_ends::Interrupt;
use linerate_link::Readiness;
use linerate_stack::{Host, Link, Stack};
use linerate_tools::trace::{Hop, Method, TraceParameters, TraceReport, trace};
use linerate_wire::IpCidr;
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::IpAddr;

/// Sends the probes, and prints a line for each hop.
pub(crate) fn run(args: &TraceArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    if args.first_hop > args.max_hops {
        return Err(Failure::input(format!(
            "--first-hop {} is beyond --max-hops {}: choose a smaller one",
            args.first_hop, args.max_hops
        )));
    }
    let (destination, own) = args.own.addresses(&args.host)?;
    let run = Run { args, destination, own, interrupt };
    match &args.own.on {
        On::Private(medium) => {
            args.own.refuse_link_options()?;
            let tap = private_tap(*medium, destination, own.ok_or_else(no_server)?)?;
            let name = tap.interface().name().to_owned();
            run.on(&name, None, tap)
        }
        On::Line(_) => Err(Failure::input(
            "the other end of a line is the only hop: name a link with a router, --on tap:NAME",
        )),
        On::Link(spec) => {
            let link = args.own.open(spec, own)?;
            run.on(&spec.to_string(), link.mac(), link)
        }
    }
}

/// The parameters of a trace, from the options.
struct Run<'a> {
    args: &'a TraceArgs,
    destination: IpAddr,
    /// Address of linerate's host; `None` if a DHCP server or a router will provide it.
    own: Option<IpCidr>,
    interrupt: &'a Interrupt,
}

impl Run<'_> {
    fn on<L: Link + Readiness>(
        &self,
        name: &str,
        mac: Option<[u8; 6]>,
        link: L,
    ) -> Result<(), Failure> {
        let Self { args, destination, own, interrupt } = *self;
        let seed = random_seed()?;
        let mut host = Host::new(Stack::new(args.own.stack_config(own, mac, &seed), seed), link);
        let own = args.own.own_address_of(&mut host, destination, args.json, interrupt)?;
        let parameters = TraceParameters {
            destination,
            method: if args.icmp { Method::Icmp } else { Method::Udp },
            first_hop: args.first_hop,
            max_hops: args.max_hops,
            probes: args.probes,
            timeout: args.timeout,
            size: args.size,
            port: args.port,
            identifier: u16::from_be_bytes([seed[0], seed[1]]),
        };
        if !args.json {
            let (text, hops) = (&args.host, args.max_hops);
            print(&format!(
                "TRACE {text} ({destination}), {hops} hops max, from {own} on {name}\n"
            ))?;
        }
        let tell = |hop: &Hop| {
            if !args.json && !matches!(print_if_read(&line(hop)), Ok(true)) {
                interrupt.raise();
            }
        };
        let report = trace(&mut host, &parameters, interrupt, tell)
            .map_err(|error| failure_of(&error, "probe", &args.host))?;
        if args.json {
            print(&format!("{:#}\n", value(&args.host, destination, &report)))?;
        }
        if report.reached {
            Ok(())
        } else {
            Err(Failure::running("the destination has not answered"))
        }
    }
}

/// Formats the output line of a hop. An address is shown only where it differs from the address of
/// the previous answer.
fn line(hop: &Hop) -> String {
    let mut line = format!("{:2} ", hop.number);
    let mut last = None;
    for answer in &hop.answers {
        let Some(answer) = answer else {
            line += " *";
            continue;
        };
        if last.replace(answer.from) != Some(answer.from) {
            // Writing to a string cannot fail.
            let _ = write!(line, " {}", answer.from);
        }
        let _ = write!(line, "  {:.3} ms", answer.round_trip.as_secs_f64() * 1e3);
        if let Some(note) = answer.note {
            let _ = write!(line, " {note}");
        }
    }
    line + "\n"
}

fn value(host: &str, destination: IpAddr, report: &TraceReport) -> Value {
    let hops = report.hops.iter().map(|hop| {
        let answers = hop.answers.iter().map(|answer| {
            answer.map(|answer| {
                json!({
                    "from": answer.from.to_string(),
                    "milliseconds": answer.round_trip.as_secs_f64() * 1e3,
                    "note": answer.note.map(|note| note.to_string()),
                })
            })
        });
        json!({ "hop": hop.number, "answers": answers.collect::<Vec<_>>() })
    });
    json!({
        "host": host,
        "destination": destination.to_string(),
        "reached": report.reached,
        "hops": hops.collect::<Vec<_>>(),
    })
}
