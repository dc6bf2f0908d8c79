//! A serial line whose far end is another linerate host in this process.

use super::Series;
use crate::commands::tool_host::no_server;
use crate::output::Failure;
use crate::own_host::random_seed;
use linerate_ends::Interrupt;
use linerate_link::serial::SerialError;
use linerate_link::{SerialConfig, SerialLink};
use linerate_stack::{Host, Stack, StackConfig};
use linerate_tools::typed::{TypedError, serve_echo};
use linerate_wire::{IpCidr, MacAddress};
use std::net::SocketAddr;
use std::thread;

/// Port of the echo service (RFC 862).
pub(super) const ECHO: u16 = 7;

/// Sends echo requests over a pseudo-terminal at `baud` to a linerate host at its far end.
pub(super) fn ping(series: &Series<'_>, baud: u32) -> Result<(), Failure> {
    let config = configuration(series, baud)?;
    let name = format!("serial:{baud} ({})", describe(&config));
    with_neighbour(series, &config, |near| series.on(&name, None, near))
}

/// Describes the serial line for the output of the command.
const fn describe(config: &SerialConfig) -> &'static str {
    if config.header_compression {
        "a pseudo-terminal with header compression"
    } else {
        "a pseudo-terminal"
    }
}

/// Returns the address of linerate's host. Returns an error if the options request an address from
/// a server, because a serial line has no DHCP server.
pub(super) fn own(series: &Series<'_>) -> Result<IpCidr, Failure> {
    series.own.ok_or_else(no_server)
}

/// Returns the configuration of the serial line, or an error for options that a serial line does
/// not support.
pub(super) fn configuration(series: &Series<'_>, baud: u32) -> Result<SerialConfig, Failure> {
    if series.args.own.link.vlan.is_some() {
        return Err(Failure::input("a serial line carries no VLAN tags: leave --vlan out"));
    }
    let options = series.args.own.link_options();
    let config = options.serial(baud, own(series)?.address());
    config.map_err(|error| Failure::input(error.to_string()))
}

/// Creates a serial line, and calls `work` with its near end. A linerate host at the far end has
/// the address of the destination. It answers echo requests and serves TCP's echo port.
pub(super) fn with_neighbour<T>(
    series: &Series<'_>,
    config: &SerialConfig,
    work: impl FnOnce(SerialLink) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let cannot = |error: SerialError| Failure::input(error.to_string());
    let [near, far] = SerialLink::pair(config).map_err(cannot)?;
    let network = IpCidr::new(series.destination, own(series)?.prefix_length())
        .unwrap_or_else(|| IpCidr::single(series.destination));
    let stack = Stack::new(
        for_line(StackConfig::new(MacAddress::ZERO, network), config.header_compression),
        random_seed()?,
    );
    let (mut far, stop) = (Host::new(stack, far), Interrupt::default());
    let service = SocketAddr::new(series.destination, ECHO);
    thread::scope(|scope| {
        let neighbour = scope.spawn(|| serve_echo(&mut far, service, &stop));
        let outcome = work(near);
        stop.raise();
        match neighbour.join() {
            // When `work` is done, the near end of the line is closed. The host at the far end then
            // reports a link error, which is expected and therefore ignored.
            Ok(Ok(()) | Err(TypedError::Link(_))) => outcome,
            Ok(Err(error)) => outcome.and_then(|_| Err(Failure::running(error.to_string()))),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Adapts a host's configuration to a serial line. RFC 1144 compression cannot compress segments
/// with timestamps, so timestamps are off. Compression saves most if the IPv4 identification
/// increases by one with each packet (§3.2.2), which `count_packets` achieves.
pub(super) const fn for_line(mut config: StackConfig, header_compression: bool) -> StackConfig {
    config.count_packets = header_compression;
    config.tcp.timestamps = false;
    // Each acknowledgement is delayed, so that it travels in the segment with the echoed character.
    // This saves a packet for each character.
    config.tcp.acks = linerate_tcp::AckRule::Modern { quick: 0 };
    config
}
