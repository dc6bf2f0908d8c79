//! The floor of the loopback: the same bytes between the same two threads, without TCP.
//!
//! It uses a socket pair of the kernel (`AF_UNIX`): the same `write` and `read` calls of the same
//! sizes, and the same two copies, into the kernel and out of it. There is no checksum, as on the
//! loopback device, and no TCP, IP, device or acknowledgements. The buffers are the kernel's
//! defaults: those of the plan would be part of the protocol.

use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::stream_transfer::carry;
use linerate_ends::Interrupt;
use linerate_ends::socket::Stream;
use linerate_evidence::Floor;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// Carries the request's bytes once.
pub(crate) fn measure(request: &RunRequest, interrupt: &Interrupt) -> Result<Floor, BenchError> {
    let (near, far) =
        UnixStream::pair().map_err(|error| BenchError::io("opening a socket pair", error))?;
    let carried = carry(&stream(near), &stream(far), request, interrupt)?;
    Ok(Floor {
        bytes: carried.taken.bytes,
        time: carried.time(),
        how: "the same writes and reads between two threads through a socket pair of the kernel: \
              two copies of each byte and no sums, as over the loopback, but no TCP, no IP and no \
              device"
            .to_owned(),
    })
}

/// Wraps a socket as a TCP stream. Only reading, writing and timeouts are used, which are the same
/// for all streams of the kernel; so the floor uses the loops of a transfer.
fn stream(end: UnixStream) -> Stream {
    TcpStream::from(OwnedFd::from(end)).into()
}
