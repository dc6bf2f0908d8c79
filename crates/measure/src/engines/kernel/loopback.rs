//! A transfer over the loopback device, between two threads of this process with a socket each.

use super::common_options::CommonOptions;
use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::stream_transfer::{carry, granted};
use linerate_ends::socket::{self, Options, Stream, counters};
use linerate_ends::{Ended, Interrupt};
use linerate_evidence::{Counters, RunOutcome};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

/// The loopback address with port 0, for which the kernel chooses a port.
pub(crate) const ANYWHERE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
/// Timeout of the handshake, which takes microseconds over loopback.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Transfers the requested bytes over a new connection, and returns the outcome.
pub(crate) fn run(
    common_options: &CommonOptions,
    request: &RunRequest,
    interrupt: &Interrupt,
) -> Result<RunOutcome, BenchError> {
    let sender = common_options.sender(ANYWHERE, request);
    let receiver = Options {
        receive_buffer: Some(request.receive_buffer.bytes),
        max_segment: sender.max_segment,
        ..Options::default()
    };
    let (near, far) = connected(&sender, &receiver)
        .map_err(|error| BenchError::io("opening a connection", error))?;
    let carried = carry(&near, &far, request, interrupt)?;
    let mut counters = Counters {
        sender: counters(&near, &carried.given.peaks),
        receiver: counters(&far, &carried.taken.peaks),
    };
    carried.note_usage(&mut counters);
    Ok(RunOutcome {
        bytes: carried.taken.bytes,
        time: carried.time(),
        complete: carried.taken.ended == Ended::Complete,
        verified: request.verify.then_some(carried.taken.wrong_at.is_none()),
        send_granted: granted(near.send_buffer())?,
        receive_granted: granted(far.receive_buffer())?,
        counters,
    })
}

/// Opens a connection over loopback. Returns the sender's stream and the receiver's stream.
fn connected(sender: &Options, receiver: &Options) -> io::Result<(Stream, Stream)> {
    let listener = socket::listen(ANYWHERE, receiver)?;
    let near = socket::connect(listener.local_addr()?, sender, TIMEOUT)?;
    loop {
        // Another program may have connected to this port first. Its connection is dropped, and the
        // loop accepts the next one.
        let (far, peer) = listener.accept()?;
        if peer == near.local_addr()? {
            return Ok((near.into(), far.into()));
        }
    }
}
