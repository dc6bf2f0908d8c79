//! A path of the kernel's TCP between two network namespaces. A relay connects their TAP devices,
//! or a veth pair connects them directly.

use crate::plants::{Kernel, Ring, Setting};
use crate::program::{Ended, SECONDS, ask};
use linerate_link::impair::{Impair, Impairments};
use linerate_link::namespace::Network;
use linerate_link::tap::{Tap, TapConfig};
use linerate_link::{KernelInterface, MonotonicClock};
use linerate_stack::{Link, LinkError, TxFrame};
use std::collections::VecDeque;
use std::error::Error;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);
/// Time for which the relay sleeps when no frame has arrived on either link.
const TURN: Duration = Duration::from_micros(200);
/// Maximum number of frames that the relay queues in each direction.
const HELD: usize = 4_096;

/// Creates the path between two namespaces, and returns the limit that `linerate why` names.
pub(crate) fn diagnose(kernel: &Kernel, why: &str, json: &Path) -> Result<String, Box<dyn Error>> {
    // Each planted limit gets new namespaces. In shared namespaces, the settings of one planted
    // limit would affect the next one. So would the TCP metrics that the kernel caches for each
    // peer.
    let (near_network, far_network) = (Network::new()?, Network::new()?);
    let relay = if kernel.is_direct {
        connect_by_veth(kernel, &near_network, &far_network)?;
        None
    } else {
        let far_tap = tap_in(&far_network, "far", FAR, &kernel.far, &kernel.far_route)?;
        let near_tap = tap_in(&near_network, "near", NEAR, &kernel.near, &kernel.near_route)?;
        let impairments = kernel.impairments.parse::<Impairments>()?;
        let far_side = Impair::new(far_tap, impairments, 1_988 + kernel.seed);
        Some(Relay::start(near_tap, far_side, kernel.ring))
    };
    let words = kernel.sink.clone();
    let _sink = far_network.run(move || Ended::sink(&words))?;
    if !kernel.near_route.is_empty() {
        // Some route metrics take effect only from the second connection to a peer on. A first
        // connection is therefore opened before the diagnosis.
        near_network.run(connect_once)?;
    }
    let _hogs = (0..kernel.hogs)
        .map(|_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().map(Ended))
        .collect::<io::Result<Vec<_>>>()?;
    let (words, json) = (format!("{FAR} --seconds {SECONDS} {why}"), json.to_owned());
    let named = near_network.run(move || ask(&words, &json).map_err(|error| error.to_string()));
    if let Some(relay) = relay {
        relay.end();
    }
    Ok(named?)
}

/// Opens a connection to the sink, sends a few bytes, and closes it.
fn connect_once() -> io::Result<()> {
    let mut first = TcpStream::connect((FAR, 1_988))?;
    first.write_all(b"first")?;
    first.shutdown(Shutdown::Write)?;
    io::copy(&mut first, &mut io::sink()).map(|_| ())
}

/// Connects the two namespaces by a veth pair.
fn connect_by_veth(kernel: &Kernel, near: &Network, far: &Network) -> Result<(), Box<dyn Error>> {
    let (near_end, far_end) = KernelInterface::create_veth("near", "far")?;
    near_end.move_to_process(near.id())?;
    far_end.move_to_process(far.id())?;
    for (network, name, address, settings, route) in [
        (near, "near", NEAR, &kernel.near, &kernel.near_route),
        (far, "far", FAR, &kernel.far, &kernel.far_route),
    ] {
        let (settings, route) = (settings.clone(), route.clone());
        network.run(move || {
            configure(name, address, &settings, &route).map_err(|error| error.to_string())
        })?;
    }
    Ok(())
}

/// Opens a TAP device in a namespace, and configures it.
fn tap_in(
    network: &Network,
    name: &'static str,
    address: Ipv4Addr,
    settings: &[Setting],
    route: &str,
) -> Result<Tap, Box<dyn Error>> {
    let (settings, route) = (settings.to_vec(), route.to_owned());
    Ok(network.run(move || {
        let config = TapConfig { name: name.to_owned(), offloads: false, ..TapConfig::default() };
        let tap = Tap::open(&config).map_err(|error| error.to_string())?;
        configure(name, address, &settings, &route).map_err(|error| error.to_string())?;
        Ok::<Tap, String>(tap)
    })?)
}

/// Sets up an interface of the current namespace with an address, and applies the sysctl settings
/// and the metrics of the route.
fn configure(
    name: &str,
    address: Ipv4Addr,
    settings: &[Setting],
    route: &str,
) -> Result<(), Box<dyn Error>> {
    let interface = KernelInterface::named(name)?;
    interface.disable_ipv6()?;
    interface.set_queue_length(10_000)?;
    interface.add_address(address, 24)?;
    interface.set_up()?;
    for Setting { path, value } in settings {
        std::fs::write(format!("/proc/sys/{path}"), value)?;
    }
    if !route.is_empty() {
        ip(&format!("route replace 10.88.0.0/24 dev {name} scope link src {address} {route}"))?;
    }
    Ok(())
}

/// Runs `ip` with these arguments.
fn ip(words: &str) -> Result<(), Box<dyn Error>> {
    let status = Command::new("ip").args(words.split_whitespace()).status()?;
    if !status.success() {
        return Err(format!("ip {words} failed: {status}").into());
    }
    Ok(())
}

/// A thread that carries frames between two links.
struct Relay {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Relay {
    fn start(near: Tap, far: Impair<Tap, MonotonicClock>, ring: Option<Ring>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let ring = ring.map(|ring| BusyRing { ring, free: Instant::now() });
        let thread = thread::spawn(move || {
            // Errors are ignored: if a device fails, the transfer also fails, and its error is
            // reported.
            let _ = carry(near, far, ring, &until);
        });
        Self { is_over, thread }
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

/// Model of a receive ring from which the machine takes frames at a fixed rate. A frame that finds
/// the ring full must be dropped and counted by the receiving kernel. To achieve this, its
/// EtherType is replaced by one that the kernel does not know.
struct BusyRing {
    ring: Ring,
    /// Time at which the last frame in the ring will have been processed.
    free: Instant,
}

impl BusyRing {
    /// EtherType for local experiments (RFC 9542 §2.1), which no kernel protocol handles.
    const UNKNOWN: [u8; 2] = [0x88, 0xb5];

    fn receive(&mut self, frame: &mut [u8]) {
        let now = Instant::now();
        self.free = self.free.max(now);
        let waiting = self.free - now;
        if waiting > self.ring.service.saturating_mul(self.ring.frames) {
            frame[12..14].copy_from_slice(&Self::UNKNOWN);
        } else {
            self.free += self.ring.service;
        }
    }
}

fn carry(
    mut near: impl Link,
    mut far: impl Link,
    mut ring: Option<BusyRing>,
    is_over: &AtomicBool,
) -> Result<(), LinkError> {
    let (mut outward, mut inward) = (VecDeque::new(), VecDeque::new());
    while !is_over.load(Ordering::Relaxed) {
        let already = outward.len();
        let moved = take(&mut near, &mut outward)? + take(&mut far, &mut inward)?;
        if let Some(ring) = &mut ring {
            outward.iter_mut().skip(already).for_each(|frame| ring.receive(frame));
        }
        give(&mut far, &mut outward)?;
        give(&mut near, &mut inward)?;
        if moved == 0 {
            thread::sleep(TURN);
        }
    }
    Ok(())
}

fn take(link: &mut impl Link, frames: &mut VecDeque<Vec<u8>>) -> Result<usize, LinkError> {
    let room = HELD - frames.len().min(HELD);
    link.receive(room.min(64), |frame| frames.push_back(frame.bytes.to_vec()))
}

/// Sends all frames of a queue on a link. The link is called even if the queue is empty, because it
/// may then send frames that it has delayed as an impairment.
fn give(link: &mut impl Link, frames: &mut VecDeque<Vec<u8>>) -> Result<usize, LinkError> {
    link.transmit(HELD, |room| {
        let frame = frames.pop_front()?;
        room[..frame.len()].copy_from_slice(&frame);
        Some(TxFrame::whole(frame.len()))
    })
}
