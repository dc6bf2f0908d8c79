//! The floor of the loopback device: the time in which the bytes of a run pass between its two
//! threads without TCP.
//!
//! The floor uses a socket pair of the kernel (`AF_UNIX`), with the sizes of `write` and `read`
//! calls that a run has. As over the loopback device, data is copied into the kernel and out of it,
//! and no checksum is computed. TCP, IP, the device and acknowledgements take no time. Buffers have
//! the kernel's default size, because the buffer sizes of the plan belong to TCP, which the floor
//! leaves out.

use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::stream_transfer::carry;
use linerate_ends::Interrupt;
use linerate_ends::socket::Stream;
use linerate_evidence::Floor;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// Transfers the requested bytes once through a socket pair, and returns the time.
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

/// Wraps a Unix socket as a TCP stream, so that the floor can use the code that transfers data over
/// TCP in a run. That code also samples TCP's queues, which fails on a Unix socket, but it ignores
/// such errors. All its other calls are valid for every stream socket of the kernel.
fn stream(end: UnixStream) -> Stream {
    TcpStream::from(OwnedFd::from(end)).into()
}
