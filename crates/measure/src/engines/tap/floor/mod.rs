//! The floor of a TAP or TUN device: the time in which the bytes of a run cross the device in UDP
//! datagrams, without TCP.
//!
//! linerate's end reads and writes frames directly. The kernel's end is a UDP socket, because UDP
//! is the simplest protocol that the kernel offers on such a device. As in a run, each byte is
//! copied four times: to a buffer of the sender, to a frame, out of the frame, and to the reading
//! program. As in a run, both ends compute checksums. There are no acknowledgements, timers or
//! connections. Instead, the receiving thread counts the bytes that have arrived, and the sending
//! thread reads this counter to limit the bytes in flight.

mod frames;
mod kernel;
mod progress;

use super::device::{KERNEL, OURS};
use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::PinnedThread;
use crate::engines::own_tcp::End;
use crate::engines::threads::joined;
use crate::plan::Direction;
use frames::{Frames, Headers};
use linerate_ends::Interrupt;
use linerate_evidence::Floor;
use linerate_link::{MonotonicClock, Tap};
use linerate_stack::{Event, Link, Medium};
use linerate_units::{Clock, Duration, Instant};
use linerate_wire::MacAddress;
use progress::FloorProgress;
use std::net::UdpSocket;
use std::thread;

/// Measures the time to transfer the requested bytes through the device without TCP. Returns the
/// measurement and the device.
pub(crate) fn measure(
    tap: Tap,
    direction: Direction,
    payload: u32,
    request: &RunRequest,
    interrupt: &Interrupt,
) -> Result<(Floor, Tap), BenchError> {
    let tap = resolve_addresses(tap, interrupt)?;
    let socket = UdpSocket::bind((KERNEL, 0))
        .map_err(|error| BenchError::io("opening a UDP socket", error))?;
    let headers = headers(&tap, &socket)?;
    let progress = FloorProgress::new(request, interrupt, u64::from(payload));
    let frames = Frames::new(tap, headers, payload as usize, request)?;
    let (ours, kernel) = thread::scope(|scope| {
        let ours = scope.spawn(|| match direction {
            Direction::ToKernel => {
                PinnedThread::Source.pin();
                frames.send_all(&progress)
            }
            Direction::FromKernel => {
                PinnedThread::Sink.pin();
                frames.receive_all(&progress)
            }
        });
        let kernel = scope.spawn(|| match direction {
            Direction::ToKernel => {
                PinnedThread::Sink.pin();
                kernel::receive_all(&socket, request, &progress)
            }
            Direction::FromKernel => {
                PinnedThread::Source.pin();
                kernel::send_all(&socket, payload as usize, request, &progress)
            }
        });
        (joined(ours), joined(kernel))
    });
    let (tap, ()) = (ours?, kernel?);
    let how = "the same bytes through the same device between two threads, copied four times and \
               summed twice, in bare frames at linerate's end and UDP datagrams at the kernel's, \
               without TCP";
    Ok((Floor { bytes: request.bytes, time: progress.time(), how: how.to_owned() }, tap))
}

/// Exchanges an ICMP echo request and its reply before the measurement, so that the kernel resolves
/// the MAC address of linerate's end. During the measurement, that end answers no ARP requests.
fn resolve_addresses(tap: Tap, interrupt: &Interrupt) -> Result<Tap, BenchError> {
    const TIMEOUT: Duration = Duration::from_secs(5);
    let mut end = End::new(OURS, 0, tap)?;
    let begun = MonotonicClock.now();
    let silent = |what: &str| BenchError::ConnectionLost {
        bytes: 0,
        what: format!("the kernel does not answer: {what}"),
    };
    end.stack().echo_send(begun, KERNEL, 1, 1, &[]).map_err(|error| silent(&error.to_string()))?;
    loop {
        let now: Instant = MonotonicClock.now();
        end.turn(now)?;
        match end.stack().poll_event() {
            Some(Event::EchoReply(_)) => return Ok(end.into_link()),
            _ if interrupt.is_raised() => return Err(BenchError::Interrupted),
            _ if now.since(begun) > TIMEOUT => return Err(silent("no echo")),
            _ => {}
        }
    }
}

/// Connects the UDP socket to linerate's end. Returns the MAC address and the port of the kernel's
/// end.
fn headers(tap: &Tap, socket: &UdpSocket) -> Result<Headers, BenchError> {
    let kernel = match tap.capabilities().medium {
        Medium::Ethernet => Some(MacAddress::new(tap.interface().state()?.mac.unwrap_or_default())),
        Medium::Ip => None,
    };
    let address =
        socket.local_addr().map_err(|error| BenchError::io("asking for a port", error))?;
    socket
        .connect((OURS, frames::PORT))
        .map_err(|error| BenchError::io("connecting a UDP socket", error))?;
    Ok(Headers { kernel, port: address.port() })
}
