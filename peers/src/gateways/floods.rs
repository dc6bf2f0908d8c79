//! Measurement of an upload while the same client sends a flood: `cargo xtask bench gateways
//! --floods`.

use super::network::{FAR, TestNetwork};
use super::subject::{Gateway, Subject};
use super::traffic::{Client, Server};
use super::{FloodFigures, say};
use linerate_wire::{Ipv4Header, Protocol, SeqNum, Sum, TcpFlags, TcpHeader, UdpHeader};
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{iter, thread};

/// Time between the start of a transfer or flood and the measurement, so that a steady state is
/// measured.
const WARM_UP: Duration = Duration::from_millis(700);
/// Duration of each measurement.
const SPAN: Duration = Duration::from_millis(2_000);
/// Number of packets that a flood sends before it checks its rate.
const BURST: u32 = 16;
/// Number of different packets in a flood, one for each port. After the last packet, the flood
/// begins again with the first one.
const PACKETS: u32 = 65_535;
/// A port of the server on which no program listens.
const CLOSED: u16 = 9;

/// The kinds of flood:
///
/// - `local` sends datagrams to the client itself. They do not reach the gateway, and only compete
///   with it for the processors.
/// - `open` sends SYNs to a port with a listener.
/// - `closed` sends SYNs to a port without a listener.
/// - `half-open` sends SYNs to a port with a listener, from addresses that never answer.
/// - `udp` sends datagrams to all ports.
pub const KINDS: [&str; 5] = ["local", "open", "closed", "half-open", "udp"];

/// Measures a gateway with each kind of flood at each of `rates`, in packets per second. Rate 0
/// sends as many packets as possible.
///
/// # Errors
/// A message that the gateway or its client has failed.
pub fn measure(
    subject: Subject,
    program: &Path,
    rates: &[u32],
) -> Result<Vec<FloodFigures>, String> {
    let mut all = Vec::new();
    for kind in KINDS {
        for &rate in rates {
            // Each measurement has new networks and a new gateway, because the effects of a flood
            // on a gateway may last longer than the flood.
            let network = TestNetwork::new()?;
            let server = Server::start(&network.server)?;
            let gateway = subject.start(program, &network, 1_500)?;
            let client = Client { process: gateway.client, server: server.address };
            client.wait_until_ready()?;
            let mut upload = client.start(&["stream"])?;
            thread::sleep(WARM_UP);
            let (alone, _) = rate_of(&server, &gateway)?;
            let mut flood = client.start(&["flood", kind, &rate.to_string()])?;
            thread::sleep(WARM_UP);
            let (beside, processor) = rate_of(&server, &gateway)?;
            let memory = gateway.memory()?;
            drop(flood.stdin.take());
            // Unlike other clients, which print nanoseconds, the client of a flood prints packets
            // per second. `answer` reads the number as nanoseconds, so `as_nanos` gives packets per
            // second.
            let sent = super::traffic::answer(&mut flood)?.as_nanos() as f64;
            let _ = flood.wait();
            let _ = upload.kill();
            let _ = upload.wait();
            let figures = FloodFigures {
                gateway: subject.name(),
                kind,
                rate: sent,
                alone,
                beside,
                processor,
                memory,
            };
            say(&figures.row())?;
            all.push(figures);
        }
    }
    Ok(all)
}

/// Returns the goodput of the upload over [`SPAN`] in Gb/s, and the number of processors that the
/// gateway keeps busy.
fn rate_of(server: &Server, gateway: &Gateway) -> Result<(f64, f64), String> {
    let (started, before) = (Instant::now(), server.received());
    let used = gateway.processor_time()?;
    thread::sleep(SPAN);
    let seconds = started.elapsed().as_secs_f64();
    let bytes = (server.received() - before) as f64;
    let used = gateway.processor_time()? - used;
    Ok((bytes * 8.0 / seconds / 1e9, used / seconds))
}

/// Sends a flood of `rate` packets per second until standard input ends; rate 0 stands for as many
/// packets as possible. Returns the number of packets per second that were sent.
///
/// # Errors
/// A message that the system does not permit a raw socket or has no route to the server.
pub fn send(server: SocketAddr, kind: &str, rate: u64) -> Result<u64, String> {
    let explain = |errno: rustix::io::Errno| format!("the flood cannot be sent: {errno}");
    let own = own_address(server).map_err(|error| error.to_string())?;
    let raw = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW)).map_err(explain)?;
    let packets: Vec<_> = (0..PACKETS).map(|number| packet(kind, own, server, number)).collect();
    let is_over = AtomicBool::new(false);
    let wait = || {
        let _ = std::io::stdin().read(&mut [0]);
        is_over.store(true, Ordering::Relaxed);
    };
    thread::scope(|scope| {
        scope.spawn(wait);
        let (started, mut sent) = (Instant::now(), 0_u64);
        let mut next = iter::repeat(&packets).flatten();
        while !is_over.load(Ordering::Relaxed) {
            if rate > 0 && started.elapsed().as_secs_f64() * (rate as f64) < sent as f64 {
                thread::sleep(Duration::from_micros(100));
                continue;
            }
            for (to, packet) in next.by_ref().take(BURST as usize) {
                // If the queue is full, the packet is dropped, as it would be in a real flood.
                let _ = sendto(&raw, packet, SendFlags::DONTWAIT, to);
                sent += 1;
            }
        }
        Ok((sent as f64 / started.elapsed().as_secs_f64()) as u64)
    })
}

/// Returns the address from which this process sends to `server`.
fn own_address(server: SocketAddr) -> std::io::Result<Ipv4Addr> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(server)?;
    match socket.local_addr()? {
        SocketAddr::V4(own) => Ok(*own.ip()),
        SocketAddr::V6(_) => Err(std::io::ErrorKind::Unsupported.into()),
    }
}

/// Returns packet number `number` of a flood of this kind, and its destination.
fn packet(kind: &str, own: Ipv4Addr, server: SocketAddr, number: u32) -> (SocketAddrV4, Vec<u8>) {
    let low = (number % 28_000) as u16;
    let source_port = 32_768 + low;
    // The sources of a half-open flood are other addresses in the client's network. No host has
    // them, so the SYN-ACKs are never answered.
    let neighbor = Ipv4Addr::from_bits(own.to_bits() & !0xff | (16 + number % 200));
    let is_udp = kind == "udp" || kind == "local";
    let destination = if kind == "local" { own } else { FAR };
    let (source, port) = match kind {
        "open" => (own, server.port()),
        "half-open" => (neighbor, server.port()),
        "udp" => (own, 1 + (number % 65_535) as u16),
        _ => (own, CLOSED),
    };
    let (protocol, mut segment) =
        if is_udp { (Protocol::UDP, vec![0; 24]) } else { (Protocol::TCP, vec![0; 20]) };
    let header = Ipv4Header::new(source, destination, protocol);
    let pseudo = header.pseudo_header(segment.len());
    if is_udp {
        UdpHeader { source_port, destination_port: port }.emit(16, &mut segment);
        let sum = Sum::of(&segment);
        UdpHeader::fill_checksum(&mut segment, pseudo, sum);
    } else {
        let syn = TcpHeader {
            source_port,
            destination_port: port,
            seq: SeqNum::new(number.wrapping_mul(2_654_435_761)),
            flags: TcpFlags::SYN,
            window: 64_000,
            ..TcpHeader::default()
        };
        syn.emit(0, &mut segment);
        let sum = Sum::of(&segment);
        TcpHeader::fill_checksum(&mut segment, pseudo, sum);
    }
    let mut packet = vec![0; Ipv4Header::LENGTH];
    header.emit(segment.len(), &mut packet);
    packet.extend_from_slice(&segment);
    (SocketAddrV4::new(destination, port), packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_flood_of_datagrams_reaches_all_ports() {
        let (own, server) = (Ipv4Addr::new(192, 0, 2, 1), SocketAddr::from((FAR, 9)));
        let port = |number| packet("udp", own, server, number).0.port();
        let ports: BTreeSet<u16> = (0..PACKETS).map(port).collect();
        assert!(ports.into_iter().eq(1..=u16::MAX));
    }
}
