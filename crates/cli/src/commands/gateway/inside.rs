//! The process inside the namespace of the clients: it opens the device, passes it to the gateway,
//! and becomes the program that the user has named.

use super::INTERFACE;
use super::args::InsideArgs;
use crate::output::Failure;
use linerate_link::kernel_interface::InterfaceError;
use linerate_link::namespace::join;
use linerate_link::{KernelInterface, Tap, TapConfig, passing};
use linerate_stack::Medium;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The packets that wait for the gateway while it is busy.
const QUEUE: u32 = 1_000;

/// Opens the device and passes it on.
pub(crate) fn run(args: &InsideArgs) -> Result<(), Failure> {
    let explain = |error: &dyn std::error::Error| Failure::input(error.to_string());
    let socket = passing::inherited(args.socket).map_err(|error| explain(&error))?;
    if args.into != 0 {
        join(args.into).map_err(|error| explain(&error))?;
    }
    let config =
        TapConfig { name: INTERFACE.to_owned(), medium: Medium::Ip, mtu: args.mtu, offloads: true };
    let tap = Tap::open(&config).map_err(|error| explain(&error))?;
    configure(args, tap.interface()).map_err(|error| explain(&error))?;
    let device = tap.into_fd();
    let socket = UnixStream::from(socket);
    passing::send(&socket, &device).map_err(|error| explain(&error))?;
    drop((socket, device));
    let [program, words @ ..] = &*args.command else { return Ok(()) };
    // This returns only if the program cannot be run.
    let error = Command::new(program).args(words).exec();
    Err(Failure::input(format!("{} cannot be run ({error})", program.display())))
}

fn configure(args: &InsideArgs, interface: &KernelInterface) -> Result<(), InterfaceError> {
    KernelInterface::loopback()?.set_up()?;
    interface.disable_ipv6()?;
    interface.set_queue_length(QUEUE)?;
    interface.add_address(args.client, args.gateway.prefix_length())?;
    interface.set_up()?;
    interface.add_route(Ipv4Addr::UNSPECIFIED, 0, Some(args.gateway.address().into()))
}
