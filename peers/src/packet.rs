//! Contenders that use a packet socket with GSO frames, on a veth pair with all offloads.
//!
//! The contenders are linerate, and gVisor with its link on a file descriptor. At the far end of
//! the veth pair is a socket of the kernel, in another network namespace but in the same process.

use crate::child::{Child, refuse, serve};
use crate::contender::{Candidate, Missing};
use crate::facts;
use crate::gvisor;
use crate::kernel::choose_control;
use crate::tap::ends::{Ends, sentence, set_buffers};
use crate::tap::linerate::{Linerate, ToKernel};
use crate::tap::{Device, Hands, transfer};
use crate::veth;
use crate::work::Work;
use linerate_link::namespace::{Network, enter_private_network};
use linerate_link::{PacketConfig, PacketLink};
use rustix::io::{FdFlags, fcntl_setfd};
use std::net::{SocketAddrV4, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Argument with which this program runs as the child process of a contender on packet sockets.
pub const SERVE: &str = "serve-packet";
/// The workloads on a packet socket.
const WORKS: [Work; 2] = [Work::PacketVnetSend, Work::PacketVnetReceive];

/// Returns linerate on a packet socket as a contender.
pub fn linerate() -> Candidate {
    start("linerate", 1)
}

/// Returns gVisor on a packet socket as a contender. It is slow, so its runs have a quarter of the
/// amount of work.
pub fn gvisor() -> Candidate {
    start("gvisor", 4)
}

fn start(name: &'static str, share: u64) -> Candidate {
    let own =
        std::env::current_exe().map_err(|error| format!("this program is not found: {error}"));
    let child = own.and_then(|own| {
        let mut command = Command::new(own);
        command.args([SERVE, name]);
        Child::start(name, command, &WORKS, share)
    });
    let reason = |reason| format!("on a packet socket: {reason}");
    child.map(|child| Box::new(child) as _).map_err(|error| Missing { name, reason: reason(error) })
}

/// Performs the runs that arrive on standard input with the contender called `name`, until the
/// input ends.
///
/// # Errors
/// A message that says which step this machine does not permit.
pub fn serve_contender(name: &str) -> Result<(), String> {
    match name {
        "linerate" => serve(
            || {
                enter_private_network().map_err(sentence)?;
                choose_control()?;
                let version = format!("this tree, on a veth pair of Linux {}", facts::kernel());
                Ok((version, Ends::<Linerate<PacketLink>>::new(Device::Packets, Hands::Copy)?))
            },
            transfer,
        ),
        // `become_gvisor` returns only if gVisor's program cannot be executed.
        "gvisor" => refuse(&become_gvisor()),
        _ => Err(format!("no contender called {name} works on packet sockets")),
    }
}

impl ToKernel for PacketLink {
    fn open(device: Device) -> Result<(Self, [u8; 6], Option<Network>), String> {
        let [kernel, _] = device.addresses();
        let network = veth::to_kernel(kernel, true)?;
        let link = Self::open(&PacketConfig::new(veth::NEAR)).map_err(sentence)?;
        let mac = link.mac();
        Ok((link, mac, Some(network)))
    }
}

/// Replaces this program by gVisor's program in the same process. Returns an error message if that
/// fails.
///
/// gVisor's program finds the near end of the veth pair in its own network namespace. It inherits
/// the kernel's listener, which keeps the network namespace of the far end alive.
fn become_gvisor() -> String {
    let prepared = || -> Result<_, String> {
        enter_private_network().map_err(sentence)?;
        choose_control()?;
        let [kernel, own] = Device::Packets.addresses();
        let network = veth::to_kernel(kernel, true)?;
        let listener = network
            .run(move || TcpListener::bind(SocketAddrV4::new(kernel, 0)))
            .map_err(sentence)?;
        set_buffers(&listener)?;
        let program = gvisor::program()?;
        fcntl_setfd(&listener, FdFlags::empty()).map_err(sentence)?;
        let mut command = Command::new(program);
        command.arg(veth::NEAR).arg(own.to_string()).arg(listener.as_raw_fd().to_string());
        Ok((command, listener, network))
    };
    match prepared() {
        Ok((mut command, _listener, _network)) => command.exec().to_string(),
        Err(reason) => reason,
    }
}
