//! The floor of the TAP device: the same bytes in datagrams, without TCP.
//!
//! linerate's end writes or reads bare frames; the kernel's end is a UDP socket, the least of a
//! protocol that the kernel has on such a device. As in a run each byte is copied into a buffer of
//! the sender's and from there into a frame, crosses the device, and is copied out of the frame and
//! to its reader, four copies in all; as in a run both ends sum it. There are no acknowledgements,
//! no timers and no connections: what keeps the sender from running ahead is a counter that both
//! threads see.

mod frames;
mod kernel;
mod pace;

use super::device::{KERNEL, OURS};
use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::Seat;
use crate::engines::own_tcp::End;
use crate::engines::threads::joined;
use crate::plan::Direction;
use frames::{Frames, Headers};
use linerate_ends::Interrupt;
use linerate_evidence::Floor;
use linerate_link::{MonotonicClock, Tap};
use linerate_stack::Event;
use linerate_units::{Clock, Duration, Instant};
use linerate_wire::MacAddress;
use pace::Pace;
use std::net::UdpSocket;
use std::thread;

/// Carries the request's bytes once; the device comes back with the floor.
pub(crate) fn measure(
    tap: Tap,
    direction: Direction,
    payload: u32,
    request: &RunRequest,
    interrupt: &Interrupt,
) -> Result<(Floor, Tap), BenchError> {
    let tap = acquainted(tap, interrupt)?;
    let socket = UdpSocket::bind((KERNEL, 0))
        .map_err(|error| BenchError::io("opening a UDP socket", error))?;
    let headers = headers(&tap, &socket)?;
    let pace = Pace::new(request, interrupt, u64::from(payload));
    let frames = Frames::new(tap, headers, payload as usize, request)?;
    let (ours, kernel) = thread::scope(|scope| {
        let ours = scope.spawn(|| match direction {
            Direction::ToKernel => {
                Seat::Source.take();
                frames.send_all(&pace)
            }
            Direction::FromKernel => {
                Seat::Sink.take();
                frames.receive_all(&pace)
            }
        });
        let kernel = scope.spawn(|| match direction {
            Direction::ToKernel => {
                Seat::Sink.take();
                kernel::receive_all(&socket, request, &pace)
            }
            Direction::FromKernel => {
                Seat::Source.take();
                kernel::send_all(&socket, payload as usize, request, &pace)
            }
        });
        (joined(ours), joined(kernel))
    });
    let (tap, ()) = (ours?, kernel?);
    let how = "the same bytes through the same device between two threads, copied four times and summed twice, in \
               bare frames at linerate's end and UDP datagrams at the kernel's, without TCP";
    Ok((Floor { bytes: request.bytes, time: pace.time(), how: how.to_owned() }, tap))
}

/// An echo makes each end know the other's station.
fn acquainted(tap: Tap, interrupt: &Interrupt) -> Result<Tap, BenchError> {
    const PATIENCE: Duration = Duration::from_secs(5);
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
            _ if now.since(begun) > PATIENCE => return Err(silent("no echo")),
            _ => {}
        }
    }
}

fn headers(tap: &Tap, socket: &UdpSocket) -> Result<Headers, BenchError> {
    let mac = tap.interface().state()?.mac.unwrap_or_default();
    let address =
        socket.local_addr().map_err(|error| BenchError::io("asking for a port", error))?;
    socket
        .connect((OURS, frames::PORT))
        .map_err(|error| BenchError::io("connecting a UDP socket", error))?;
    Ok(Headers { kernel: MacAddress::new(mac), port: address.port() })
}
