//! Contenders that use AF_XDP over virtual cables, in a process of their own: linerate's hosts at
//! both ends or with the kernel at one, and bare sockets, which carry the same number of frames
//! without processing them.

use crate::cable::{self, set_up};
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

/// Argument that makes this program a contender on AF_XDP.
pub const SERVE: &str = "serve-xdp";
/// Names and addresses of the ends of a cable that has no kernel TCP at either end.
const OURS: [(&str, Ipv4Addr); 2] =
    [("one", Ipv4Addr::new(192, 0, 5, 1)), ("two", Ipv4Addr::new(192, 0, 5, 2))];
const PORT: SocketAddrV4 = SocketAddrV4::new(OURS[1].1, 9);
/// Number of frames of a socket in each direction: enough for the window, few enough for the cache.
const FRAMES: usize = 256;
/// Lengths in bytes of a full frame, and of a frame with only an acknowledgement and timestamps.
const FULL: usize = 1_514;
const SMALL: usize = 66;

const LINERATE: [Work; 3] = [Work::XdpFrames, Work::XdpSend, Work::XdpReceive];
const BARE: [Work; 1] = [Work::XdpFrames];

/// Returns linerate on AF_XDP, if this process may load XDP programs.
pub fn linerate() -> Candidate {
    start("linerate", &LINERATE)
}

/// Returns the bare AF_XDP sockets, without a TCP stack.
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

/// Performs the runs that arrive on standard input with this contender, until it ends.
///
/// # Errors
/// A message that says what this machine does not permit.
pub fn serve_contender(name: &str) -> Result<(), String> {
    let version = format!("this tree, by copies on a virtual cable of Linux {}", facts::kernel());
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
                Ok((version, cable()?))
            },
            |[left, right], run| carry(left, right, run.amount),
        ),
        _ => Err(format!("no contender called {name} works by AF_XDP")),
    }
}

impl ToKernel for XdpLink {
    fn open(device: Device) -> Result<(Self, [u8; 6], Option<Network>), String> {
        let [kernel, own] = device.addresses();
        let network = cable::to_kernel(kernel, false)?;
        let link = Self::open(&config(cable::NEAR, own)).map_err(sentence)?;
        let mac = link.mac();
        Ok((link, mac, Some(network)))
    }
}

/// Returns the configuration of the AF_XDP link at one end of the cable.
fn config(name: &str, address: Ipv4Addr) -> XdpConfig {
    XdpConfig { frames: FRAMES, in_driver: false, ..XdpConfig::new(name, address) }
}

/// Opens an AF_XDP link at both ends of a cable.
fn cable() -> Result<[XdpLink; 2], String> {
    let (one, two) = KernelInterface::create_veth(OURS[0].0, OURS[1].0).map_err(sentence)?;
    set_up(&one, false)?;
    set_up(&two, false)?;
    let open = |(name, address)| XdpLink::open(&config(name, address)).map_err(sentence);
    Ok([open(OURS[0])?, open(OURS[1])?])
}

/// Carries `amount` full frames in one direction, and a short frame back for each batch.
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

/// Carries frames. Only the address that the XDP program checks is written into them.
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

/// linerate's hosts at both ends of a cable.
struct Pair {
    left: Host<XdpLink>,
    right: Host<XdpLink>,
    listener: ListenHandle,
}

impl Pair {
    fn new() -> Result<Self, String> {
        let [left, right] = cable()?;
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
                    // As with the bare sockets, no data are produced or read.
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
        // An error means that the connection has already closed.
        let _ = self.left.stack_mut().tcp_abort(now, client);
        let _ = self.right.stack_mut().tcp_abort(now, server);
        for _ in 0..4 {
            self.turn()?;
        }
        Ok(Taken::new(processor, run.amount, [after[0] - before[0], after[1] - before[1]]))
    }

    /// Returns the number of frames that each end has sent.
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
