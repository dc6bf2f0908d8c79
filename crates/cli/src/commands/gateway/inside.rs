//! The process inside the namespace of the clients. The process opens the TUN device, passes the
//! device to the gateway, and then executes the user's program.

use super::INTERFACE;
use super::args::InsideArgs;
use crate::output::Failure;
use linerate_link::kernel_interface::InterfaceError;
use linerate_link::namespace::join;
use linerate_link::{KernelInterface, SteeredTap, TapConfig, passing};
use linerate_stack::Medium;
use linerate_wire::IpCidr;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Length of each transmit queue of the device, in packets. A queue stores packets from the clients
/// while the gateway is busy.
const QUEUE: u32 = 1_000;

/// Opens the TUN device, passes its descriptors to the gateway, and executes the user's program.
pub(crate) fn run(args: &InsideArgs) -> Result<(), Failure> {
    let explain = |error: &dyn std::error::Error| Failure::input(error.to_string());
    let socket = passing::inherited(args.socket).map_err(|error| explain(&error))?;
    if args.into != 0 {
        join(args.into).map_err(|error| explain(&error))?;
    }
    let config =
        TapConfig { name: INTERFACE.to_owned(), medium: Medium::Ip, mtu: args.mtu, offloads: true };
    let tap = SteeredTap::open(&config).map_err(|error| explain(&error))?;
    configure(args, tap.first().interface()).map_err(|error| explain(&error))?;
    let socket = UnixStream::from(socket);
    for queue in tap.into_fds() {
        passing::send(&socket, &queue).map_err(|error| explain(&error))?;
    }
    drop(socket);
    let [program, words @ ..] = &*args.command else { return Ok(()) };
    // `exec` returns only if the program cannot be run.
    let error = Command::new(program).args(words).exec();
    Err(Failure::input(format!("{} cannot be run ({error})", program.display())))
}

fn configure(args: &InsideArgs, interface: &KernelInterface) -> Result<(), InterfaceError> {
    KernelInterface::loopback()?.set_up()?;
    let pairs = || args.addresses.as_chunks().0.iter();
    // Containers often disable IPv6 by default, so an interface with an IPv6 address needs IPv6 to
    // be enabled explicitly.
    if pairs().any(|[client, _]| client.address().is_ipv6()) {
        interface.enable_ipv6()?;
    } else {
        interface.disable_ipv6()?;
    }
    interface.set_queue_length(QUEUE)?;
    for [client, _] in pairs() {
        interface.add_address(client.address(), client.prefix_length())?;
    }
    interface.set_up()?;
    for [_, gateway] in pairs() {
        let all = match gateway.address() {
            IpAddr::V4(_) => IpCidr::ALL_IPV4,
            IpAddr::V6(_) => IpCidr::ALL_IPV6,
        };
        interface.add_route(all.address(), 0, Some(gateway.address()))?;
    }
    Ok(())
}
