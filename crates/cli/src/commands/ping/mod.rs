//! `linerate ping`: echo requests from linerate's own host, to the kernel or to a host behind an
//! interface.

mod args;
mod line;
mod place;
mod typed;
mod words;

pub(crate) use args::PingArgs;

use crate::output::{Failure, cannot_write, print, print_if_read};
use crate::own_host::{check_gateway, random_seed};
use args::On;
use linerate_ends::Interrupt;
use linerate_link::capture_file::CaptureWriter;
use linerate_link::{AnyLink, Capture, Readiness};
use linerate_stack::{
    Autoconfiguration, DhcpConfig, Error as Refusal, Host, Link, Route, Stack, StackConfig,
};
use linerate_tools::dhcp::{LeaseError, wait_for_lease};
use linerate_tools::ping::{Answer, EchoParameters, PingError, Tally, ping, wait_for_addresses};
use linerate_units::Duration;
use linerate_wire::{IpCidr, MacAddress};
use place::{own_address, private_tap, resolve};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use words::{lease_line, line, sum};

/// The time that a router has to give an address. Three solicitations take nine seconds.
const ROUTER_TIMEOUT: Duration = Duration::from_secs(15);
/// The time to wait for an address from a DHCP server.
const DHCP_TIMEOUT: Duration = Duration::from_secs(60);

/// Time between requests if none is given.
const INTERVAL: Duration = Duration::from_secs(1);

/// Sends the requests, and prints the replies.
pub(crate) fn run(args: &PingArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let destination = resolve(&args.host, args.address)?;
    let own = own_address(args, destination)?;
    if let Some(own) = own {
        check_gateway(own, args.gateway)?;
    }
    let asking = Series { args, destination, own, interrupt };
    match &args.on {
        _ if args.typed => typed::run(&asking),
        On::Line(baud) => line::ping(&asking, *baud),
        On::Private(medium) => {
            refuse_link_options(args)?;
            let own = own.ok_or_else(no_server)?;
            let tap = private_tap(*medium, destination, own)?;
            let whose = ", a private network in which this machine's kernel has the address";
            asking.on(&format!("{}{whose}", tap.interface().name()), None, tap)
        }
        On::Link(spec) => {
            let address = own.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |own| own.address());
            let link = AnyLink::open(spec, address, &args.link_options());
            let link = link.map_err(|error| Failure::input(error.to_string()))?;
            asking.on(&format!("{spec} ({})", link.description()), link.mac(), link)
        }
    }
}

/// Refuses properties that a link in a private network does not have.
fn refuse_link_options(args: &PingArgs) -> Result<(), Failure> {
    let given = [
        ("--vlan", args.link.vlan.is_some()),
        ("--header-compression", args.link.header_compression.is_some()),
        ("--mtu", args.mtu.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::input(format!(
            "{flag} has no meaning in a private network: leave it out, or name another link --on"
        ))),
    }
}

/// The parameters of a series of requests.
struct Series<'a> {
    args: &'a PingArgs,
    destination: IpAddr,
    /// `None` if a DHCP server or a router gives it.
    own: Option<IpCidr>,
    interrupt: &'a Interrupt,
}

impl Series<'_> {
    /// Sends requests from a host on `link`. The host uses the MAC address of the link, or a random
    /// one.
    fn on<L: Link + Readiness>(
        &self,
        name: &str,
        mac: Option<[u8; 6]>,
        link: L,
    ) -> Result<(), Failure> {
        let Self { args, destination, own, interrupt } = *self;
        let seed = random_seed()?;
        let parameters = parameters(args, destination, &seed);
        let stack = Stack::new(stack_config(args, own, mac, &seed), seed);
        let headline = |own: IpAddr| {
            let (host, size) = (&args.host, args.size);
            format!("PING {host} ({destination}), {size} bytes of data, from {own} on {name}\n")
        };
        let tally = match &args.pcap {
            None => {
                send_request(&mut Host::new(stack, link), &parameters, headline, args, interrupt)
            }
            Some(file) => {
                let cannot = |error: io::Error| cannot_write(file, error);
                let writer = CaptureWriter::create(file).map_err(cannot)?;
                let mut host = Host::new(stack, Capture::new(link, name, writer));
                let tally = send_request(&mut host, &parameters, headline, args, interrupt);
                host.into_parts().1.into_parts().1.finish().map_err(cannot)?;
                tally
            }
        }?;
        print(&sum(&args.host, &tally))?;
        if tally.received > 0 { Ok(()) } else { Err(Failure::running("no request was answered")) }
    }
}

/// Sends requests. The headline is printed after the first one: if that fails, only the error is
/// printed.
fn send_request<L: Link + Readiness>(
    host: &mut Host<L>,
    parameters: &EchoParameters,
    headline: impl FnOnce(IpAddr) -> String,
    args: &PingArgs,
    interrupt: &Interrupt,
) -> Result<Tally, Failure> {
    let own = own_address_of(host, (args, parameters.destination), interrupt)?;
    let headline = headline(own);
    let mut printed = Ok(());
    let begun = || {
        printed = print(&headline);
        if printed.is_err() {
            interrupt.raise();
        }
    };
    let tell = |answer: &Answer| {
        // If the reader of the lines has gone, the frames may still be wanted.
        if !args.quiet && !matches!(print_if_read(&line(answer)), Ok(true)) && args.pcap.is_none() {
            interrupt.raise();
        }
    };
    let tally = ping(host, parameters, interrupt, begun, tell).map_err(|error| match error {
        PingError::Refused(Refusal::NoRoute(address)) => Failure::input(format!(
            "no route leads to {address}: name the router with --gateway ADDR"
        )),
        PingError::Refused(_) => {
            Failure::input(format!("no request can be sent to {}: {error}", args.host))
        }
        PingError::Link(_) | PingError::Wait(_) => Failure::running(error.to_string()),
    })?;
    printed.map(|()| tally)
}

/// Returns the address of the host. With --dhcp, waits for it and prints the lease; with
/// --autoconf, waits for a router, and returns the source towards the destination.
fn own_address_of<L: Link + Readiness>(
    host: &mut Host<L>,
    (args, destination): (&PingArgs, IpAddr),
    interrupt: &Interrupt,
) -> Result<IpAddr, Failure> {
    if args.autoconf {
        await_address(host, interrupt)?;
        return host.stack().source_towards(destination).ok_or_else(|| {
            Failure::running(format!("no router on the link leads to {destination}"))
        });
    }
    if args.dhcp {
        let lease = wait_for_lease(host, DHCP_TIMEOUT, interrupt).map_err(|error| match error {
            LeaseError::Silence(_) => Failure::running(format!(
                "{error}: check that a server is on the link, or give --address ADDR/LENGTH"
            )),
            error => Failure::running(error.to_string()),
        })?;
        if !args.quiet {
            print(&lease_line(&lease))?;
        }
        return Ok(lease.address.address());
    }
    let first = host.stack().addresses().first().map(|own| own.cidr.address());
    first.ok_or_else(no_server)
}

/// Waits until the host has an address from a router.
fn await_address<L: Link + Readiness>(
    host: &mut Host<L>,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    match wait_for_addresses(host, ROUTER_TIMEOUT, interrupt) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::running(format!(
            "no router has given this host an address within {ROUTER_TIMEOUT}: give --address and \
             --gateway instead"
        ))),
        Err(error) => Err(Failure::running(error.to_string())),
    }
}

/// Returns the failure for a private network, whose only other host is the kernel.
fn no_server() -> Failure {
    Failure::input("--dhcp needs an interface with a DHCP server: name it, --on tap:NAME")
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

fn stack_config(
    args: &PingArgs,
    own: Option<IpCidr>,
    mac: Option<[u8; 6]>,
    seed: &[u8; 32],
) -> StackConfig {
    // A locally administered MAC address. The random part avoids collisions on a network.
    let random = [0x02, seed[2], seed[3], seed[4], seed[5], seed[6]];
    let mac = MacAddress::new(mac.unwrap_or(random));
    let mut config = match own {
        Some(own) => StackConfig::new(mac, own),
        None if args.autoconf => StackConfig {
            ipv6_autoconfiguration: Some(Autoconfiguration::STABLE),
            ..StackConfig::unconfigured(mac).shared_network()
        },
        None => StackConfig::unconfigured(mac).dhcp(DhcpConfig::new()),
    };
    config.routes.extend(args.gateway.map(Route::default_via));
    config
}
