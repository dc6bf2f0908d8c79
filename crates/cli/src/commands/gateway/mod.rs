//! `linerate gateway`: an egress gateway for a namespace, an inherited device or a virtual machine.

mod addresses;
mod args;
mod inside;
mod place;

pub(crate) use args::{GatewayArgs, InsideArgs};
pub(crate) use inside::run as run_inside;

use crate::output::{Failure, print};
use crate::own_host::random_seed;
use addresses::Addresses;
use args::Echo;
use linerate_gateway::{DnsRelay, Gateway, GatewayConfig, GatewayCounters, GatewayError};
use linerate_link::tap::TapError;
use linerate_link::{Readiness, StreamLink, Tap, TapConfig, passing};
use linerate_stack::{EchoPolicy, Link, Medium};
use linerate_tcp::Config;
use place::Child;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// Relays flows until the user's program ends, the link ends, or the user presses Ctrl-C.
pub(crate) fn run(args: &GatewayArgs) -> Result<ExitCode, Failure> {
    let creates = args.tun.is_none() && args.fd.is_none() && args.unix.is_none();
    let mtu = args.mtu.unwrap_or(if creates { LARGE_MTU } else { 1_500 });
    let addresses = addresses::of(args, mtu)?;
    let config = config(args, &addresses);
    // SIGINT and SIGTERM write to one pipe, so waiting for this pipe covers both signals.
    let (drain, signals) = UnixStream::pair().map_err(no_signals)?;
    let register = || {
        for signal in [SIGINT, SIGTERM] {
            pipe::register(signal, signals.try_clone()?)?;
        }
        Ok(())
    };
    let invalid = |error: TapError| Failure::input(error.to_string());
    if let Some(name) = &args.tun {
        let tap = TapConfig { name: name.clone(), medium: Medium::Ip, mtu, offloads: true };
        let tap = Tap::open(&tap).map_err(invalid)?;
        register().map_err(no_signals)?;
        return relay(args, &config, tap, &drain, None);
    }
    if let Some(fd) = args.fd {
        let device = passing::inherited(fd);
        let device = device.map_err(|error| {
            Failure::input(format!("descriptor {fd} cannot be used ({error}): pass a TUN device"))
        })?;
        let tap = Tap::from_fd(device, mtu).map_err(invalid)?;
        register().map_err(no_signals)?;
        return relay(args, &config, tap, &drain, None);
    }
    if let Some(path) = &args.unix {
        let stream = place::first_client(path)?;
        register().map_err(no_signals)?;
        let link = StreamLink::new(stream, Medium::Ethernet, mtu);
        let link = link.map_err(|error| Failure::input(error.to_string()))?;
        return relay(args, &config, link, &drain, None);
    }
    if args.command.is_empty() && args.into.is_none() {
        return Err(Failure::input(
            "no clients were named: give a command after `--`, or --into, --tun, --fd or --unix",
        ));
    }
    let (tap, child) = match place::open_inside(args, &addresses, mtu)? {
        Ok(opened) => opened,
        Err(code) => return Ok(code),
    };
    register().map_err(no_signals)?;
    relay(args, &config, tap, &drain, child)
}

fn relay<L: Link + Readiness>(
    args: &GatewayArgs,
    config: &GatewayConfig,
    link: L,
    drain: &UnixStream,
    child: Option<Child>,
) -> Result<ExitCode, Failure> {
    let mut gateway = Gateway::new(link, config, random_seed()?).map_err(failed)?;
    if let Some(address) = args.metrics {
        let address = gateway.serve_metrics(address);
        let address = address.map_err(|error| Failure::input(error.to_string()))?;
        eprintln!("metrics at http://{address}/metrics");
    }
    let end = child.as_ref().map(Child::exit);
    let relayed = gateway.run(drain.as_fd(), end);
    let Some(child) = child else {
        let counters = match relayed {
            // A virtual machine ends by closing the Unix stream. This is no error, so the gateway
            // ends normally.
            Err(GatewayError::Link(_)) if args.unix.is_some() => gateway.counters(),
            relayed => relayed.map_err(failed)?,
        };
        print(&summary(&counters))?;
        return Ok(ExitCode::SUCCESS);
    };
    drop(gateway);
    relayed.map_err(failed)?;
    child.wait()
}

fn config(args: &GatewayArgs, addresses: &[Addresses]) -> GatewayConfig {
    let dns = args.dns.or_else(resolver).map(|resolver| DnsRelay {
        addresses: addresses.iter().map(|of| of.name_server).collect(),
        resolver: SocketAddr::new(resolver, 53),
    });
    let defaults = GatewayConfig::default();
    GatewayConfig {
        addresses: addresses.iter().map(|of| of.gateway).collect(),
        dns,
        host_loopback: args.host_loopback,
        denied: args.deny.clone(),
        echo: match args.echo {
            Echo::Drop => EchoPolicy::Drop,
            Echo::Answer => EchoPolicy::Answer,
            Echo::Reject => EchoPolicy::Reject,
        },
        flows: args.flows,
        drain: args.drain,
        tcp: Config { ..defaults.tcp },
        ..defaults
    }
}

/// Returns the address of the first name server in `/etc/resolv.conf`; `None` if there is none.
fn resolver() -> Option<IpAddr> {
    let text = fs::read_to_string("/etc/resolv.conf").ok()?;
    text.lines().find_map(|line| line.strip_prefix("nameserver")?.trim().parse().ok())
}

fn summary(counters: &GatewayCounters) -> String {
    format!(
        "{} connections and {} UDP flows relayed, {} refused, {} dropped; {} bytes up, {} down\n",
        counters.tcp_accepted,
        counters.udp_opened,
        counters.refused,
        counters.flows_dropped,
        counters.tcp_bytes_up + counters.udp_bytes_up,
        counters.tcp_bytes_down + counters.udp_bytes_down,
    )
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that `map_err` requires")]
fn no_signals(error: io::Error) -> Failure {
    Failure::running(format!("signals cannot be handled ({error})"))
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that `map_err` requires")]
fn failed(error: GatewayError) -> Failure {
    Failure::running(error.to_string())
}

/// Name of the interface that the command creates inside a namespace.
const INTERFACE: &str = "lr0";
/// MTU of the created interface in bytes. It is nearly the size of the largest IP packet, so that
/// whole GSO frames fit.
const LARGE_MTU: usize = 65_520;
