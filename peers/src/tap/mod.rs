//! Contenders on a TAP device that has the kernel's TCP at its other end. Each contender is this
//! program started again, in a network namespace of its own. Its stack and the kernel's socket
//! share one thread. The processor time of the stack, and of the kernel at both ends of the device,
//! counts.

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

/// Argument that makes this program a contender on TAP devices.
pub const SERVE: &str = "serve-tap";

/// A kind of device between a stack and the kernel. Each has its own subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    Plain,
    Offloads,
    /// A virtual cable whose near end linerate uses by AF_XDP.
    Cable,
    /// A virtual cable with all offloads, whose near end a packet socket uses.
    Packets,
}

impl Device {
    const fn of(work: Work) -> Self {
        match work {
            Work::TapVnetSend | Work::TapVnetReceive => Self::Offloads,
            _ => Self::Plain,
        }
    }

    /// Returns the IP addresses of the kernel and of the stack.
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

/// The interface through which an application exchanges data with a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hands {
    /// The application writes and reads, which copies the data each time.
    Copy,
    /// The application borrows the stack's buffers. Where bytes are not verified it does not touch
    /// them, because the cost of producing and using data in place is its own.
    InPlace,
    /// The application shares the memory of the data that it sends, and gets received data by
    /// reference.
    Share,
}

/// The workloads on a TAP device.
const WORKS: [Work; 4] = [Work::TapSend, Work::TapReceive, Work::TapVnetSend, Work::TapVnetReceive];

/// A stack on a device, with one connection at a time.
pub trait OnTap: Sized {
    /// Returns the version of the stack, and its settings.
    fn version() -> String;

    /// Creates a host on a new device of this kind.
    ///
    /// # Errors
    /// A message that says what this machine does not permit.
    fn new(device: Device, hands: Hands) -> Result<Self, String>;

    /// Creates a listener of the kernel, in the network namespace of the device's other end.
    ///
    /// # Errors
    /// The kernel's error.
    fn listen(&self, address: SocketAddrV4) -> Result<TcpListener, String> {
        TcpListener::bind(address).map_err(|error| error.to_string())
    }

    /// Returns the device's descriptor, for polling.
    fn link(&self) -> std::os::fd::BorrowedFd<'_>;

    /// Begins to connect to the kernel's listener at `port`.
    ///
    /// # Errors
    /// The stack's error.
    fn connect(&mut self, port: u16) -> Result<(), String>;

    /// Returns whether the connection can send data.
    fn is_open(&mut self) -> bool;

    /// Receives frames, handles timers, and sends frames.
    ///
    /// # Errors
    /// The stack's error.
    fn turn(&mut self) -> Result<(), String>;

    /// Writes the pattern from stream position `place` on, at most `left` bytes. Returns the number
    /// of bytes taken. Without `verify`, a borrowed buffer may keep its old contents.
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

    /// Reads data that have arrived. Returns their length, which is zero if there are none. With
    /// `verify` they are copied to `into`.
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

    /// Returns the numbers of frames that the stack has sent and received.
    fn frames(&self) -> [u64; 2];
}

/// Returns linerate on TAP devices.
pub fn linerate() -> Candidate {
    start("linerate")
}

/// Returns linerate on TAP devices, whose application uses the in-place interface.
pub fn linerate_in_place() -> Candidate {
    start("linerate-lent")
}

/// Returns linerate on TAP devices, whose application shares memory with it.
pub fn linerate_shared() -> Candidate {
    start("linerate-shared")
}

/// Returns smoltcp on TAP devices.
pub fn smoltcp() -> Candidate {
    start("smoltcp")
}

/// Returns smoltcp on TAP devices, whose application uses the in-place interface.
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

/// Performs the runs that arrive on standard input with this contender, until it ends.
///
/// # Errors
/// A message that says what this machine does not permit.
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

/// Performs one transfer over a new connection.
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

/// Transfers data from the stack to the kernel.
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

/// Transfers data from the kernel to the stack.
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

/// Configures the kernel's end of a device: its address, and a queue that holds a whole window.
fn take_up(interface: &linerate_link::KernelInterface, device: Device) -> Result<(), String> {
    let [address, _] = device.addresses();
    interface
        .disable_ipv6()
        .and_then(|()| interface.set_queue_length(1_000))
        .and_then(|()| interface.add_address(address, 24))
        .and_then(|()| interface.set_up())
        .map_err(|error| error.to_string())
}
