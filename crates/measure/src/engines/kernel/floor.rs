//! The loopback's floor: the same bytes between the same two threads, without TCP.
//!
//! The way without the protocol is a socket pair of the kernel (`AF_UNIX`): the same `write` and
//! `read` calls of the same sizes, the same two copies (into the kernel and out of it), and no
//! sums, as the loopback device has none either; no TCP, no IP, no device, no acknowledgements. Its
//! buffers are the kernel's own: the plan's would be part of the protocol.

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
        how: "the same writes and reads between two threads through a socket pair of the kernel: two copies of \
              each byte and no sums, as over the loopback, but no TCP, no IP and no device"
            .to_owned(),
    })
}

/// The type says TCP, but all it does is read, write and wait, the same for every stream of the
/// kernel; so the transfer's own loops carry the floor.
fn stream(end: UnixStream) -> Stream {
    TcpStream::from(OwnedFd::from(end)).into()
}
