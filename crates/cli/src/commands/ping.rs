//! `linerate ping`: echo requests from linerate's own host to the kernel, or to whoever is behind a TAP
//! device.

use crate::amounts::count;
use crate::output::{Failure, print};
use clap::Args;
use linerate_lab::Interrupt;
use linerate_lab::ping::{Answer, PingError, Questions, Tally, ping};
use linerate_link::capture_file::CaptureWriter;
use linerate_link::namespace::enter_private_network;
use linerate_link::{Capture, KernelInterface, Readiness, Tap, TapConfig};
use linerate_stack::{Host, Link, Route, Stack, StackConfig};
use linerate_units::{Bytes, Duration};
use linerate_wire::{Ipv4Cidr, MacAddress};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

const EXAMPLES: &str = "\
Examples:
  linerate ping 10.0.0.1                     the kernel takes that address in a network of its own
  linerate ping 10.0.0.1 --interval 0 --count 10000 --quiet
  linerate ping 192.0.2.1 --on tap:tap0 --address 192.0.2.9/24
                                             from a host behind an interface that exists; a user may
                                             open it after `ip tuntap add mode tap user NAME name tap0`

It ends with 0 if anything was answered, with 1 if nothing was.";

/// The flags of `linerate ping`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PingArgs {
    /// Whom to ask
    #[arg(value_name = "HOST")]
    host: String,

    /// Where linerate's host lives: on a TAP device in a private network (tap), or on one that exists
    /// (tap:NAME)
    #[arg(long, value_name = "LINK", default_value = "tap")]
    on: On,

    /// The address of linerate's host and the length of its network's prefix [default: the neighbour of
    /// HOST, in a private network]
    #[arg(long, value_name = "ADDR/LENGTH", value_parser = cidr)]
    address: Option<Ipv4Cidr>,

    /// The way to hosts that are not on the network of --address
    #[arg(long, value_name = "ADDR")]
    gateway: Option<Ipv4Addr>,

    /// Requests to send [default: until Ctrl-C]
    #[arg(long, value_name = "COUNT", value_parser = count)]
    count: Option<NonZeroU32>,

    /// Seconds from one request to the next; 0 asks again as soon as there is an answer
    #[arg(long, value_name = "SECONDS", default_value = "1")]
    interval: Duration,

    /// Seconds that an answer is awaited
    #[arg(long, value_name = "SECONDS", default_value = "2")]
    patience: Duration,

    /// Bytes of data in each request
    #[arg(long, value_name = "SIZE", default_value = "56B", value_parser = size)]
    size: usize,

    /// Write every frame to this pcapng file
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,

    /// Only the sum at the end
    #[arg(long)]
    quiet: bool,
}

/// Where linerate's host lives.
#[derive(Clone, Debug)]
enum On {
    /// On a TAP device in a private network, with the kernel at its other end.
    Private,
    /// On an interface that exists.
    Existing(String),
}

impl FromStr for On {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "tap" => Ok(Self::Private),
            Some(("tap", name)) if !name.is_empty() => Ok(Self::Existing(name.to_owned())),
            _ => Err("write tap, or tap:NAME for an interface that exists".to_owned()),
        }
    }
}

/// Asks until there is enough.
pub(crate) fn run(args: &PingArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let destination = resolve(&args.host)?;
    let own = own_address(args, destination)?;
    let tap = match &args.on {
        On::Private => private_tap(destination, own)?,
        On::Existing(name) => existing_tap(name)?,
    };
    let name = tap.interface().name().to_owned();
    let seed = random()?;
    let questions = questions(args, destination, &seed);
    let stack = stack(args, own, seed);
    let whose = match args.on {
        On::Private => ", a private network in which this machine's kernel has the address",
        On::Existing(_) => "",
    };
    print(&format!(
        "PING {} ({destination}), {} bytes of data, from {} on {name}{whose}\n",
        args.host,
        args.size,
        own.address(),
    ))?;
    let tally = match &args.pcap {
        None => ask(&mut Host::new(stack, tap), &questions, args, interrupt),
        Some(file) => {
            let cannot = |error| Failure::input(format!("{} cannot be written ({error})", file.display()));
            let writer = CaptureWriter::create(file).map_err(cannot)?;
            let mut host = Host::new(stack, Capture::new(tap, &name, writer));
            let tally = ask(&mut host, &questions, args, interrupt);
            host.into_parts().1.into_parts().1.finish().map_err(cannot)?;
            tally
        }
    }?;
    print(&sum(&args.host, &tally))?;
    if tally.received > 0 { Ok(()) } else { Err(Failure::running("no request was answered")) }
}

fn ask<L: Link + Readiness>(
    host: &mut Host<L>,
    questions: &Questions,
    args: &PingArgs,
    interrupt: &Interrupt,
) -> Result<Tally, Failure> {
    let tell = |answer: &Answer| {
        if !args.quiet {
            // Whoever no longer reads the lines may still want the frames.
            let _ = print(&line(answer));
        }
    };
    ping(host, questions, interrupt, tell).map_err(|error| match error {
        PingError::Refused(_) => Failure::input(format!("{} cannot be asked: {error}", args.host)),
        PingError::Link(_) | PingError::Wait(_) => Failure::running(error.to_string()),
    })
}

fn questions(args: &PingArgs, destination: Ipv4Addr, seed: &[u8; 32]) -> Questions {
    Questions {
        destination,
        count: args.count.map(|count| count.get().into()),
        interval: args.interval,
        patience: args.patience,
        size: args.size,
        identifier: u16::from_be_bytes([seed[0], seed[1]]),
    }
}

fn stack(args: &PingArgs, own: Ipv4Cidr, seed: [u8; 32]) -> Stack {
    // Locally administered, for one host; what follows tells it from others on the same network.
    let mac = MacAddress::new([0x02, seed[2], seed[3], seed[4], seed[5], seed[6]]);
    let mut config = StackConfig::new(mac, own);
    config.routes.extend(args.gateway.map(|gateway| Route::via(Ipv4Cidr::ALL, gateway)));
    Stack::new(config, seed)
}

/// The first IPv4 address of `host`.
fn resolve(host: &str) -> Result<Ipv4Addr, Failure> {
    let unknown =
        |why: String| Failure::input(format!("`{host}` has no IPv4 address ({why}): see how it is spelt"));
    let addresses = (host, 0).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    let mut addresses = addresses.filter_map(|address| match address {
        SocketAddr::V4(address) => Some(*address.ip()),
        SocketAddr::V6(_) => None,
    });
    addresses.next().ok_or_else(|| unknown("it has one of IPv6 only".to_owned()))
}

/// The address that linerate's host gets.
fn own_address(args: &PingArgs, destination: Ipv4Addr) -> Result<Ipv4Cidr, Failure> {
    match (args.address, &args.on) {
        (Some(own), _) if own.address() == destination => {
            Err(Failure::input(format!("--address {own} is the address of HOST itself: choose another one")))
        }
        (Some(own), On::Private) if !own.contains(destination) => Err(Failure::input(format!(
            "{destination} is not on the network of --address {own}, and there is no other in a private network"
        ))),
        (Some(own), _) => Ok(own),
        (None, On::Existing(name)) => Err(Failure::input(format!(
            "linerate's host needs an address behind {name}: give --address ADDR/LENGTH"
        ))),
        (None, On::Private) => neighbour(destination).ok_or_else(|| {
            Failure::input(format!("{destination} is no address that a host can have: take 10.0.0.1"))
        }),
    }
}

/// Another address of the same network of 256.
fn neighbour(destination: Ipv4Addr) -> Option<Ipv4Cidr> {
    let no_host = destination.is_multicast() || destination.is_loopback() || destination.octets()[0] == 0;
    let [a, b, c, d] = destination.octets();
    if no_host || a >= 240 || !(1..=254).contains(&d) {
        return None;
    }
    let other = if d == 254 { 253 } else { d + 1 };
    Ipv4Cidr::new(Ipv4Addr::new(a, b, c, other), 24)
}

/// A device in a network of our own, in which the kernel has the address `destination`.
fn private_tap(destination: Ipv4Addr, own: Ipv4Cidr) -> Result<Tap, Failure> {
    let failure = |error: &dyn std::error::Error| Failure::input(error.to_string());
    enter_private_network().map_err(|error| failure(&error))?;
    let tap = Tap::open(&TapConfig::default()).map_err(|error| failure(&error))?;
    let interface = tap.interface();
    let set_up = interface
        .disable_ipv6()
        .and_then(|()| interface.add_address(destination, own.prefix_length()))
        .and_then(|()| interface.set_up());
    set_up.map_err(|error| failure(&error))?;
    Ok(tap)
}

/// The device behind the interface `name`, which keeps its MTU and is not made if there is none.
fn existing_tap(name: &str) -> Result<Tap, Failure> {
    let state = KernelInterface::named(name).and_then(|interface| interface.state());
    let state = state.map_err(|error| {
        Failure::input(format!(
            "{error}: make it with `ip tuntap add mode tap name {name}` and `ip link set {name} up`"
        ))
    })?;
    let mtu = usize::try_from(state.mtu.count()).unwrap_or(usize::MAX);
    let config = TapConfig { name: name.to_owned(), mtu, ..TapConfig::default() };
    Tap::open(&config).map_err(|error| Failure::input(error.to_string()))
}

fn random() -> Result<[u8; 32], Failure> {
    let mut bytes = [0; 32];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error: io::Error| Failure::running(format!("the machine has no randomness ({error})")))?;
    Ok(bytes)
}

fn line(answer: &Answer) -> String {
    match answer {
        Answer::Reply { source, number, length, ttl, round_trip, again, wrong_at } => {
            let time = milliseconds(round_trip.as_secs_f64());
            let mut line =
                format!("{length} bytes from {source}: icmp_seq={number} ttl={ttl} time={time} ms");
            line.push_str(if *again { " (DUP!)" } else { "" });
            if let Some(at) = wrong_at {
                // Writing to a string cannot fail.
                let _ = write!(line, " (byte {at} is not what was sent)");
            }
            line + "\n"
        }
        Answer::Problem(problem) => {
            format!("From {}: icmp_seq={} {}\n", problem.reporter, problem.sequence, problem.error)
        }
    }
}

fn sum(host: &str, tally: &Tally) -> String {
    let mut text = format!(
        "\n--- {host} ping statistics ---\n{} packets transmitted, {} received, ",
        tally.sent, tally.received
    );
    for (count, what) in [(tally.duplicates, "duplicates"), (tally.problems, "errors")] {
        if count > 0 {
            let _ = write!(text, "+{count} {what}, ");
        }
    }
    let loss = format!("{:.4}", tally.loss_percent());
    let loss = loss.trim_end_matches('0').trim_end_matches('.');
    let _ = writeln!(text, "{loss}% packet loss, time {}ms", tally.time().as_millis());
    if let Some(times) = tally.round_trips.summary() {
        let [least, mean, most, deviation] = times.map(milliseconds);
        let _ = writeln!(text, "rtt min/avg/max/mdev = {least}/{mean}/{most}/{deviation} ms");
    }
    text
}

/// Milliseconds, to the microsecond; below one, to the tenth of it.
fn milliseconds(seconds: f64) -> String {
    let millis = seconds * 1_000.0;
    if millis < 1.0 { format!("{millis:.4}") } else { format!("{millis:.3}") }
}

fn cidr(text: &str) -> Result<Ipv4Cidr, String> {
    text.parse()
        .map_err(|_| "write an IPv4 address and the length of its prefix, such as 10.0.0.2/24".to_owned())
}

fn size(text: &str) -> Result<usize, String> {
    let bytes = text.parse::<Bytes>().map_err(|error| error.to_string())?.count();
    usize::try_from(bytes).ok().filter(|&bytes| bytes <= 65_507).ok_or_else(|| "the most is 65507".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_another_host_of_the_same_network() {
        let neighbour = |text: &str| neighbour(text.parse().unwrap()).map(|cidr| cidr.to_string());
        assert_eq!(neighbour("10.0.0.1").as_deref(), Some("10.0.0.2/24"));
        assert_eq!(neighbour("10.0.0.254").as_deref(), Some("10.0.0.253/24"));
        for no_host in ["10.0.0.0", "10.0.0.255", "224.0.0.1", "127.0.0.1", "0.0.0.1", "255.255.255.254"] {
            assert_eq!(neighbour(no_host), None, "{no_host}");
        }
    }

    #[test]
    fn answers_look_as_people_know_them() {
        let reply = Answer::Reply {
            source: Ipv4Addr::new(10, 0, 0, 1),
            number: 3,
            length: 64,
            ttl: 64,
            round_trip: Duration::from_nanos(45_678),
            again: true,
            wrong_at: Some(9),
        };
        assert_eq!(
            line(&reply),
            "64 bytes from 10.0.0.1: icmp_seq=3 ttl=64 time=0.0457 ms (DUP!) (byte 9 is not what was sent)\n"
        );
    }
}
