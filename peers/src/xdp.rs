//! Contenders that use AF_XDP over veth pairs, in a child process.
//!
//! One contender is linerate, at both ends of a veth pair or with the kernel's TCP at the far end.
//! The other contender uses bare AF_XDP sockets: it carries the same number of frames without
//! processing them.

use crate::child::{Child, serve};
use crate::contender::{Candidate, Missing, Run, Taken};
use crate::facts;
use crate::kernel::choose_control;
use crate::linerate::rules;
use crate::pattern::Pattern;
use crate::stopwatch::Stopwatch;
use crate::tap::ends::{Ends, sentence};
use crate::tap::linerate::{Linerate, ToKernel};
use crate::tap::{Device, Hands, transfer};
use crate::veth::{self, set_up};
use crate::work::{BATCH, PIECE, SEGMENT, Work};
use linerate_link::namespace::{Network, enter_private_network};
use linerate_link::{KernelInterface, MonotonicClock, XdpConfig, XdpLink};
use linerate_stack::{
    Budget, ConnectOptions, Error, Host, Link, ListenHandle, ListenOptions, Stack, StackConfig,
    TcpHandle, TxFrame,
};
use linerate_units::{Clock, Instant};
use linerate_wire::MacAddress;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::Command;

/// Argument with which this program runs as the child process of a contender on AF_XDP.
pub const SERVE: &str = "serve-xdp";
/// Interface names and addresses of the two ends of a veth pair without the kernel's TCP.
const OURS: [(&str, Ipv4Addr); 2] =
    [("one", Ipv4Addr::new(192, 0, 5, 1)), ("two", Ipv4Addr::new(192, 0, 5, 2))];
/// Address and port at which the right host listens.
const PORT: SocketAddrV4 = SocketAddrV4::new(OURS[1].1, 9);
/// Number of frames that each AF_XDP socket has for each direction. They can carry a whole window,
/// and still fit the processor's cache.
const FRAMES: usize = 256;
/// Length of a full Ethernet frame in bytes.
const FULL: usize = 1_514;
/// Length in bytes of a frame with an acknowledgement, TCP timestamps and no data.
const SMALL: usize = 66;

/// The workloads of linerate on AF_XDP.
const LINERATE: [Work; 3] = [Work::XdpFrames, Work::XdpSend, Work::XdpReceive];
/// The workloads of the bare AF_XDP sockets.
const BARE: [Work; 1] = [Work::XdpFrames];

/// Returns linerate on AF_XDP as a contender, if this process may load XDP programs.
pub fn linerate() -> Candidate {
    start("linerate", &LINERATE)
}

/// Returns the bare AF_XDP sockets as a contender, which carries frames without a TCP stack.
pub fn bare() -> Candidate {
    start("bare", &BARE)
}

fn start(name: &'static str, works: &'static [Work]) -> Candidate {
    let own =
        std::env::current_exe().map_err(|error| format!("this program is not found: {error}"));
    let child = own.and_then(|own| {
        let mut command = Command::new(own);
        command.args([SERVE, name]);
        Child::start(name, command, works, 1)
    });
    let reason = |reason| format!("by AF_XDP: {reason}");
    child.map(|child| Box::new(child) as _).map_err(|error| Missing { name, reason: reason(error) })
}

/// Performs the runs that arrive on standard input with the contender called `name`, until the
/// input ends.
///
/// # Errors
/// A message that says which step this machine does not permit.
pub fn serve_contender(name: &str) -> Result<(), String> {
    let version = format!("this tree, by copies on a veth pair of Linux {}", facts::kernel());
    let enter = || enter_private_network().map_err(sentence);
    match name {
        "linerate" => serve(
            || {
                enter()?;
                choose_control()?;
                Ok((
                    version,
                    (Pair::new()?, Ends::<Linerate<XdpLink>>::new(Device::Cable, Hands::Copy)?),
                ))
            },
            |(pair, ends), run| match run.work {
                Work::XdpFrames => pair.bulk(run),
                _ => transfer(ends, run),
            },
        ),
        "bare" => serve(
            || {
                enter()?;
                Ok((version, veth_pair()?))
            },
            |[left, right], run| carry(left, right, run.amount),
        ),
        _ => Err(format!("no contender called {name} works by AF_XDP")),
    }
}

impl ToKernel for XdpLink {
    fn open(device: Device) -> Result<(Self, [u8; 6], Option<Network>), String> {
        let [kernel, own] = device.addresses();
        let network = veth::to_kernel(kernel, false)?;
        let link = Self::open(&config(veth::NEAR, own)).map_err(sentence)?;
        let mac = link.mac();
        Ok((link, mac, Some(network)))
    }
}

/// Returns the configuration of an AF_XDP link on the interface `name`, whose host has the address
/// `address`.
fn config(name: &str, address: Ipv4Addr) -> XdpConfig {
    XdpConfig { frames: FRAMES, in_driver: false, ..XdpConfig::new(name, address) }
}

/// Creates a veth pair without offloads, and opens an AF_XDP link at each end.
fn veth_pair() -> Result<[XdpLink; 2], String> {
    let (one, two) = KernelInterface::create_veth(OURS[0].0, OURS[1].0).map_err(sentence)?;
    set_up(&one, false)?;
    set_up(&two, false)?;
    let open = |(name, address)| XdpLink::open(&config(name, address)).map_err(sentence);
    Ok([open(OURS[0])?, open(OURS[1])?])
}

/// Carries `amount` full frames from `left` to `right`, and after each batch one short frame back.
fn carry(left: &mut XdpLink, right: &mut XdpLink, amount: u64) -> Result<Taken, String> {
    let (mut there, mut back) = (0, 0);
    let stopwatch = Stopwatch::start();
    while there < amount {
        let batch = BATCH.min(usize::try_from(amount - there).map_err(sentence)?);
        pass(left, right, OURS[1].1, batch, FULL)?;
        pass(right, left, OURS[0].1, 1, SMALL)?;
        there += batch as u64;
        back += 1;
    }
    Ok(Taken::new(stopwatch.elapsed(), amount, [there, back]))
}

/// Carries `count` frames of `length` bytes to the link at `address`. Of each frame, only the
/// EtherType and the destination address are written, because the XDP program checks these fields.
fn pass(
    from: &mut XdpLink,
    to: &mut XdpLink,
    address: Ipv4Addr,
    count: usize,
    length: usize,
) -> Result<(), String> {
    let sent = from.transmit(count, |frame| {
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[30..34].copy_from_slice(&address.octets());
        Some(TxFrame::whole(length))
    });
    let mut left = sent.map_err(sentence)?;
    while left > 0 {
        left -= to.receive(left, |_| ()).map_err(sentence)?;
    }
    Ok(())
}

/// Two of linerate's hosts at the ends of a veth pair, and the listener of the right host.
struct Pair {
    left: Host<XdpLink>,
    right: Host<XdpLink>,
    listener: ListenHandle,
}

impl Pair {
    fn new() -> Result<Self, String> {
        let [left, right] = veth_pair()?;
        let left = host(OURS[0].1, left)?;
        let mut right = host(OURS[1].1, right)?;
        let listener =
            right.stack_mut().tcp_listen(PORT, &ListenOptions::default()).map_err(sentence)?;
        Ok(Self { left, right, listener })
    }

    fn turn(&mut self) -> Result<Instant, String> {
        let now = MonotonicClock.now();
        for host in [&mut self.left, &mut self.right] {
            host.turn(now).map_err(sentence)?;
            while host.stack_mut().poll_event().is_some() {}
        }
        Ok(now)
    }

    fn open(&mut self) -> Result<(TcpHandle, TcpHandle), String> {
        let options = ConnectOptions { config: Some(rules()), ..ConnectOptions::default() };
        let client = self
            .left
            .stack_mut()
            .tcp_connect(MonotonicClock.now(), PORT, &options)
            .map_err(sentence)?;
        loop {
            self.turn()?;
            if let Some((server, _)) = self.right.stack_mut().tcp_accept(self.listener) {
                return Ok((client, server));
            }
        }
    }

    fn bulk(&mut self, run: Run) -> Result<Taken, String> {
        let (client, server) = self.open()?;
        let (pattern, mut received) = (Pattern::new(), vec![0; PIECE]);
        let total = run.amount * SEGMENT;
        let (mut written, mut read) = (0, 0);
        let before = self.frames();
        let stopwatch = Stopwatch::start();
        let mut now = MonotonicClock.now();
        while read < total {
            while written < total {
                let piece = pattern.at(written, total - written);
                let stack = self.left.stack_mut();
                let count = if run.verify {
                    stack.tcp_write(now, client, piece)
                } else {
                    // The contender with bare AF_XDP sockets neither produces nor reads the data.
                    // For a fair comparison, linerate does neither in measured runs (without
                    // `verify`).
                    stack.tcp_write_with(now, client, piece.len(), |room| room.len())
                };
                match count.map_err(sentence)? {
                    0 => break,
                    count => written += count as u64,
                }
                if written == total {
                    self.left.stack_mut().tcp_shutdown_write(now, client).map_err(sentence)?;
                }
            }
            now = self.turn()?;
            loop {
                let stack = self.right.stack_mut();
                let count = if run.verify {
                    stack.tcp_read(now, server, &mut received)
                } else {
                    stack.tcp_read_with(now, server, |bytes| bytes.len())
                };
                match count {
                    Ok(0) | Err(Error::WouldBlock) => break,
                    Ok(count) => {
                        if run.verify {
                            pattern.verify(read, &received[..count])?;
                        }
                        read += count as u64;
                    }
                    Err(error) => return Err(sentence(error)),
                }
            }
        }
        let processor = stopwatch.elapsed();
        let after = self.frames();
        // A connection that has already closed cannot be aborted, so the errors are ignored.
        let _ = self.left.stack_mut().tcp_abort(now, client);
        let _ = self.right.stack_mut().tcp_abort(now, server);
        for _ in 0..4 {
            self.turn()?;
        }
        Ok(Taken::new(processor, run.amount, [after[0] - before[0], after[1] - before[1]]))
    }

    /// Returns the number of frames that each host has sent.
    fn frames(&self) -> [u64; 2] {
        [&self.left, &self.right].map(|host| host.stack().counters().transmit.packets)
    }
}

fn host(address: Ipv4Addr, link: XdpLink) -> Result<Host<XdpLink>, String> {
    let config = StackConfig::new(
        MacAddress::new(link.mac()),
        format!("{address}/24").parse().map_err(sentence)?,
    );
    let stack = Stack::new(StackConfig { tcp: rules(), ..config }, [address.octets()[3]; 32]);
    let budget = Budget { receive: BATCH, transmit: BATCH, ..Budget::default() };
    Ok(Host::new(stack, link).with_budget(budget))
}
