//! Contenders on a device that has the kernel's TCP at its other end, usually a TAP device.
//!
//! Each contender is this program started again, in a network namespace of its own. The contender's
//! stack and the kernel's socket share one thread. The measured processor time is that of the
//! stack, and of the kernel at both ends of the device.

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

/// Argument with which this program runs as the child process of a contender on TAP devices.
pub const SERVE: &str = "serve-tap";

/// A kind of device between a stack and the kernel. Each kind has a subnet of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// A TAP device without offloads.
    Plain,
    /// A TAP device with offloads, which carries GSO frames without checksums.
    Offloads,
    /// A veth pair without offloads. linerate uses the near interface by AF_XDP, and the kernel's
    /// TCP uses the far interface.
    Cable,
    /// A veth pair with all offloads. The stack uses the near interface through a packet socket,
    /// and the kernel's TCP uses the far interface.
    Packets,
}

impl Device {
    /// Returns the kind of TAP device for a workload.
    const fn of(work: Work) -> Self {
        match work {
            Work::TapVnetSend | Work::TapVnetReceive => Self::Offloads,
            _ => Self::Plain,
        }
    }

    /// Returns the IP address of the kernel and the IP address of the stack.
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

/// The interface through which the application exchanges data with the contender's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hands {
    /// The application writes and reads, and each call copies the data.
    Copy,
    /// The application borrows the stack's buffers. It accesses the bytes only if they are
    /// verified, because the cost of producing and using data is the same on every stack.
    InPlace,
    /// The application passes data to the stack by reference, and gets received data by reference.
    Share,
}

/// The workloads on a TAP device.
const WORKS: [Work; 4] = [Work::TapSend, Work::TapReceive, Work::TapVnetSend, Work::TapVnetReceive];

/// A stack on a device to the kernel, with one connection at a time.
pub trait OnTap: Sized {
    /// Returns the version of the stack, and the settings that matter for the results.
    fn version() -> String;

    /// Creates a host on a new device of the kind `device`, whose application uses the interface
    /// `hands`.
    ///
    /// # Errors
    /// A message that says which step this machine does not permit.
    fn new(device: Device, hands: Hands) -> Result<Self, String>;

    /// Creates a listener of the kernel at `address`, in the network namespace of the device's
    /// other end.
    ///
    /// # Errors
    /// The kernel's error.
    fn listen(&self, address: SocketAddrV4) -> Result<TcpListener, String> {
        TcpListener::bind(address).map_err(|error| error.to_string())
    }

    /// Returns the descriptor of the device, which becomes readable when a frame has arrived.
    fn link(&self) -> std::os::fd::BorrowedFd<'_>;

    /// Starts a connection to the kernel's listener on `port`.
    ///
    /// # Errors
    /// The stack's error.
    fn connect(&mut self, port: u16) -> Result<(), String>;

    /// Returns whether the connection is established.
    fn is_open(&mut self) -> bool;

    /// Runs one turn of the stack: receives frames, runs timers that are due, and sends frames.
    ///
    /// # Errors
    /// The stack's error.
    fn turn(&mut self) -> Result<(), String>;

    /// Writes up to `left` bytes of the pattern, from byte `place` of the stream on. Returns the
    /// number of bytes that the stack has taken. Without `verify`, nothing is written to a borrowed
    /// buffer, so its old contents are sent.
    ///
    /// # Errors
    /// The stack's error.
    fn write(
        &mut self,
        pattern: &Pattern,
        place: u64,
        left: u64,
        verify: bool,
    ) -> Result<usize, String>;

    /// Reads received data. Returns the number of bytes, which is zero if no data are available.
    /// The data are copied to `into`. With interfaces that lend or share data, this copy is only
    /// made for `verify`.
    ///
    /// # Errors
    /// The stack's error.
    fn read(&mut self, into: &mut [u8], verify: bool) -> Result<usize, String>;

    /// Closes the sending direction of the connection.
    ///
    /// # Errors
    /// The stack's error.
    fn close(&mut self) -> Result<(), String>;

    /// Aborts the connection.
    fn drop_connection(&mut self);

    /// Returns the number of frames that the stack has sent, and the number that it has received.
    fn frames(&self) -> [u64; 2];
}

/// Returns linerate on TAP devices as a contender, with the interface that copies.
pub fn linerate() -> Candidate {
    start("linerate")
}

/// Returns linerate on TAP devices as a contender, with the in-place interface.
pub fn linerate_in_place() -> Candidate {
    start("linerate-lent")
}

/// Returns linerate on TAP devices as a contender, with the interface that shares memory.
pub fn linerate_shared() -> Candidate {
    start("linerate-shared")
}

/// Returns smoltcp on TAP devices as a contender, with the interface that copies.
pub fn smoltcp() -> Candidate {
    start("smoltcp")
}

/// Returns smoltcp on TAP devices as a contender, with the in-place interface.
pub fn smoltcp_in_place() -> Candidate {
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

/// Performs the runs that arrive on standard input with the contender called `name`, until the
/// input ends.
///
/// # Errors
/// A message that says which step this machine does not permit.
pub fn serve_contender(name: &str) -> Result<(), String> {
    match name {
        "linerate" => serve_on_tap::<linerate::Linerate<Tap>>(Hands::Copy),
        "linerate-lent" => serve_on_tap::<linerate::Linerate<Tap>>(Hands::InPlace),
        "linerate-shared" => serve_on_tap::<linerate::Linerate<Tap>>(Hands::Share),
        "smoltcp" => serve_on_tap::<smoltcp::Smoltcp>(Hands::Copy),
        "smoltcp-lent" => serve_on_tap::<smoltcp::Smoltcp>(Hands::InPlace),
        _ => Err(format!("no contender called {name} works on a TAP device")),
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

/// Performs one bulk transfer over a new connection, and returns its cost.
///
/// # Errors
/// A message about the failure.
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
    ends.exchange_last_segments()?;
    Ok(Taken::new(processor, run.amount, [after[0] - before[0], after[1] - before[1]]))
}

/// Transfers the data of `run` from the stack to the kernel.
fn send<S: OnTap>(ends: &mut Ends<S>, kernel: &mut KernelEnd, run: Run) -> Result<(), String> {
    let (pattern, mut received) = (Pattern::new(), vec![0; PIECE]);
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
            && let Some(count) = kernel.read(&mut received)?
        {
            if run.verify {
                pattern.verify(read, &received[..count])?;
            }
            read += count as u64;
        }
        ends.wait_unless(before != (written, read), kernel)?;
    }
    Ok(())
}

/// Transfers the data of `run` from the kernel to the stack.
fn receive<S: OnTap>(ends: &mut Ends<S>, kernel: &mut KernelEnd, run: Run) -> Result<(), String> {
    let (pattern, mut received) = (Pattern::new(), vec![0; PIECE]);
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
            match ends.stack.read(&mut received, run.verify)? {
                0 => break,
                count => {
                    if run.verify {
                        pattern.verify(read, &received[..count])?;
                    }
                    read += count as u64;
                }
            }
        }
        ends.wait_unless(before != (written, read), kernel)?;
    }
    Ok(())
}

/// Configures the kernel's end of a device: its address, and a transmit queue that has room for the
/// segments of a whole window.
fn take_up(interface: &linerate_link::KernelInterface, device: Device) -> Result<(), String> {
    let [address, _] = device.addresses();
    interface
        .disable_ipv6()
        .and_then(|()| interface.set_queue_length(1_000))
        .and_then(|()| interface.add_address(address, 24))
        .and_then(|()| interface.set_up())
        .map_err(|error| error.to_string())
}
