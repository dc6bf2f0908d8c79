//! Stacks on a TAP device, and the kernel's TCP at its other end. Each contender is this program started
//! again, in a network of its own; its stack and the kernel's socket share one thread, whose time on a
//! processor is what counts: the stack's, and the kernel's at both ends of the device.

pub mod ends;
pub mod linerate;
mod smoltcp;

use crate::child::{Child, serve};
use crate::contender::{Candidate, Missing, Run, Taken};
use crate::facts;
use crate::kernel::choose_control;
use crate::pattern::Pattern;
use crate::stopwatch::Stopwatch;
use crate::work::{PIECE, SEGMENT, Work};
use ends::{Ends, KernelEnd};
use linerate_link::Tap;
use linerate_link::namespace::enter_private_network;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::process::Command;

/// The word that makes this program a contender on TAP devices.
pub const SERVE: &str = "serve-tap";

/// A device without offloads, and one with them, each with a network of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    Plain,
    Offloads,
    /// No device, but a virtual cable on whose near end we work at the driver.
    Cable,
    /// One with all offloads, on whose near end we work by a packet socket.
    Packets,
}

impl Device {
    const fn of(work: Work) -> Self {
        match work {
            Work::TapVnetSend | Work::TapVnetReceive => Self::Offloads,
            _ => Self::Plain,
        }
    }

    /// The kernel's address on it, and the stack's.
    pub const fn addresses(self) -> [Ipv4Addr; 2] {
        let third = match self {
            Self::Plain => 2,
            Self::Offloads => 3,
            Self::Cable => 4,
            Self::Packets => 6,
        };
        [Ipv4Addr::new(192, 0, third, 1), Ipv4Addr::new(192, 0, third, 2)]
    }
}

/// How the application gives its data to a stack, and takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hands {
    /// It writes and reads: a copy each.
    Copy,
    /// It is lent the stack's buffer. Where bytes are not verified it touches none: what making and using them in
    /// place costs is its own affair.
    Lend,
    /// It owns what it sends, and gets what has arrived, by reference.
    Share,
}

/// The works that are done on a device.
const WORKS: [Work; 4] = [Work::TapSend, Work::TapReceive, Work::TapVnetSend, Work::TapVnetReceive];

/// A stack on a device, with one connection at a time.
pub trait OnTap: Sized {
    /// Which release it is, and how it is set.
    fn version() -> String;

    /// A host on a device of this kind, which is made for it.
    ///
    /// # Errors
    /// What this machine does not grant.
    fn new(device: Device, hands: Hands) -> Result<Self, String>;

    /// A listener of the kernel's, in the network where it is.
    ///
    /// # Errors
    /// The kernel's word.
    fn listen(&self, address: SocketAddrV4) -> Result<TcpListener, String> {
        TcpListener::bind(address).map_err(|error| error.to_string())
    }

    /// The device, to be waited for.
    fn link(&self) -> std::os::fd::BorrowedFd<'_>;

    /// Begins a connection to the kernel's listener.
    ///
    /// # Errors
    /// The stack's word.
    fn connect(&mut self, port: u16) -> Result<(), String>;

    /// Can data be sent?
    fn is_open(&mut self) -> bool;

    /// Frames in, timers, frames out.
    ///
    /// # Errors
    /// The stack's word.
    fn turn(&mut self) -> Result<(), String>;

    /// Gives the connection what belongs at `place` of the pattern, no more than `left` bytes, and says how much it
    /// took. In place of lent bytes that nobody will `verify` anything may be sent.
    ///
    /// # Errors
    /// The stack's word.
    fn write(
        &mut self,
        pattern: &Pattern,
        place: u64,
        left: u64,
        verify: bool,
    ) -> Result<usize, String>;

    /// Takes what has arrived, and says how much; nothing, if there is nothing. To `verify` it, it is copied.
    ///
    /// # Errors
    /// The stack's word.
    fn read(&mut self, into: &mut [u8], verify: bool) -> Result<usize, String>;

    /// Nothing more will be written.
    ///
    /// # Errors
    /// The stack's word.
    fn close(&mut self) -> Result<(), String>;

    /// Ends the connection, whatever is still to come.
    fn drop_connection(&mut self);

    /// Frames that the device has carried: sent by the stack, and received.
    fn frames(&self) -> [u64; 2];
}

/// linerate on TAP devices.
pub fn linerate() -> Candidate {
    start("linerate")
}

/// The same through the interface that lends its buffers.
pub fn linerate_lent() -> Candidate {
    start("linerate-lent")
}

/// The same with data that are shared.
pub fn linerate_shared() -> Candidate {
    start("linerate-shared")
}

/// smoltcp on TAP devices.
pub fn smoltcp() -> Candidate {
    start("smoltcp")
}

/// The same through the interface that lends its buffers.
pub fn smoltcp_lent() -> Candidate {
    start("smoltcp-lent")
}

fn start(name: &'static str) -> Candidate {
    let own =
        std::env::current_exe().map_err(|error| format!("this program is not found: {error}"));
    let child = own.and_then(|own| {
        let mut command = Command::new(own);
        command.args([SERVE, name]);
        Child::start(name, command, &WORKS, 1)
    });
    let reason = |reason| format!("on a TAP device: {reason}");
    child.map(|child| Box::new(child) as _).map_err(|error| Missing { name, reason: reason(error) })
}

/// Does what standard input says with this contender, until it ends.
///
/// # Errors
/// A sentence that says why this machine does not let it.
pub fn serve_contender(name: &str) -> Result<(), String> {
    match name {
        "linerate" => serve_on_tap::<linerate::Linerate<Tap>>(Hands::Copy),
        "linerate-lent" => serve_on_tap::<linerate::Linerate<Tap>>(Hands::Lend),
        "linerate-shared" => serve_on_tap::<linerate::Linerate<Tap>>(Hands::Share),
        "smoltcp" => serve_on_tap::<smoltcp::Smoltcp>(Hands::Copy),
        "smoltcp-lent" => serve_on_tap::<smoltcp::Smoltcp>(Hands::Lend),
        _ => Err(format!("nobody called {name} works on a TAP device")),
    }
}

fn serve_on_tap<S: OnTap>(hands: Hands) -> Result<(), String> {
    serve(
        || {
            enter_private_network().map_err(|error| error.to_string())?;
            choose_control()?;
            let ends = [Ends::<S>::new(Device::Plain, hands)?, Ends::new(Device::Offloads, hands)?];
            Ok((format!("{}; against Linux {}", S::version(), facts::kernel()), ends))
        },
        |[plain, offloads], run| match Device::of(run.work) {
            Device::Plain => transfer(plain, run),
            _ => transfer(offloads, run),
        },
    )
}

/// One transfer over a connection of its own.
///
/// # Errors
/// What went wrong.
pub fn transfer<S: OnTap>(ends: &mut Ends<S>, run: Run) -> Result<Taken, String> {
    let mut kernel = ends.open()?;
    let before = ends.stack.frames();
    let stopwatch = Stopwatch::start();
    if run.work.is_to_kernel() {
        send(ends, &mut kernel, run)?
    } else {
        receive(ends, &mut kernel, run)?
    }
    let processor = stopwatch.elapsed();
    let after = ends.stack.frames();
    ends.stack.drop_connection();
    drop(kernel);
    ends.settle()?;
    Ok(Taken::new(processor, run.amount, [after[0] - before[0], after[1] - before[1]]))
}

/// The stack sends, and the kernel receives.
fn send<S: OnTap>(ends: &mut Ends<S>, kernel: &mut KernelEnd, run: Run) -> Result<(), String> {
    let (pattern, mut heard) = (Pattern::new(), vec![0; PIECE]);
    let total = run.amount * SEGMENT;
    let (mut written, mut read) = (0, 0);
    while read < total {
        let before = (written, read);
        while written < total {
            match ends.stack.write(&pattern, written, total - written, run.verify)? {
                0 => break,
                count => written += count as u64,
            }
            if written == total {
                ends.stack.close()?;
            }
        }
        ends.stack.turn()?;
        while read < total
            && let Some(count) = kernel.read(&mut heard)?
        {
            if run.verify {
                pattern.verify(read, &heard[..count])?;
            }
            read += count as u64;
        }
        ends.wait_unless(before != (written, read), kernel)?;
    }
    Ok(())
}

/// The kernel sends, and the stack receives.
fn receive<S: OnTap>(ends: &mut Ends<S>, kernel: &mut KernelEnd, run: Run) -> Result<(), String> {
    let (pattern, mut heard) = (Pattern::new(), vec![0; PIECE]);
    let total = run.amount * SEGMENT;
    let (mut written, mut read) = (0, 0);
    while read < total {
        let before = (written, read);
        while written < total
            && let Some(count) = kernel.write(pattern.at(written, total - written))?
        {
            written += count as u64;
            if written == total {
                kernel.close()?;
            }
        }
        ends.stack.turn()?;
        loop {
            match ends.stack.read(&mut heard, run.verify)? {
                0 => break,
                count => {
                    if run.verify {
                        pattern.verify(read, &heard[..count])?;
                    }
                    read += count as u64;
                }
            }
        }
        ends.wait_unless(before != (written, read), kernel)?;
    }
    Ok(())
}

/// Gives the kernel its address on a device, and a queue that holds what a window does.
fn take_up(interface: &linerate_link::KernelInterface, device: Device) -> Result<(), String> {
    let [address, _] = device.addresses();
    interface
        .disable_ipv6()
        .and_then(|()| interface.set_queue_length(1_000))
        .and_then(|()| interface.add_address(address, 24))
        .and_then(|()| interface.set_up())
        .map_err(|error| error.to_string())
}
