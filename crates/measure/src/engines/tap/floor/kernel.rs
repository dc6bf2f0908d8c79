//! The kernel's end of a floor measurement, which transfers data without TCP. This end is a UDP
//! socket.

use super::progress::FloorProgress;
use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use linerate_ends::socket;
use linerate_ends::workload::Pattern;
use std::net::UdpSocket;
use std::time::Duration;

/// Timeout of a single call, after which the thread checks for an interrupt.
const SLICE: Duration = Duration::from_millis(50);

/// Reads datagrams until all data has arrived. The kernel verifies checksums and copies the data.
pub(crate) fn receive_all(
    socket: &UdpSocket,
    request: &RunRequest,
    progress: &FloorProgress<'_>,
) -> Result<(), BenchError> {
    socket
        .set_read_timeout(Some(SLICE))
        .map_err(|error| BenchError::io("setting a timeout", error))?;
    let pattern = Pattern::new(request.seed);
    let mut block = vec![0; 65_536];
    let mut read = 0;
    while !progress.is_complete() {
        match socket.recv(&mut block) {
            Ok(length) => {
                if request.verify {
                    // The comparison is made because its time belongs to the floor. Its result is
                    // ignored, because a dropped datagram is not an error here: it shifts all later
                    // data, which then differs from the pattern.
                    let _ = pattern.verify(read, &block[..length]);
                }
                read += length as u64;
                progress.deliver(length);
            }
            Err(error) if socket::is_pause(&error) => progress.check()?,
            Err(error) => return Err(BenchError::io("receiving a datagram", error)),
        }
    }
    Ok(())
}

/// Sends datagrams of at most `payload` bytes until all data has arrived. The kernel copies the
/// data and computes checksums.
pub(crate) fn send_all(
    socket: &UdpSocket,
    payload: usize,
    request: &RunRequest,
    progress: &FloorProgress<'_>,
) -> Result<(), BenchError> {
    socket
        .set_write_timeout(Some(SLICE))
        .map_err(|error| BenchError::io("setting a timeout", error))?;
    let pattern = Pattern::new(request.seed);
    let mut block = vec![0; payload];
    pattern.fill(0, &mut block);
    let mut sent: u64 = 0;
    progress.begin();
    while !progress.is_complete() {
        sent -= progress.await_room(sent)?;
        let left = usize::try_from(request.bytes.saturating_sub(sent)).unwrap_or(usize::MAX);
        // When all requested bytes have been sent (`left` is zero), some are still in flight or
        // were dropped. Datagrams of one byte follow until the receiver has read the requested
        // number.
        let length = payload.min(left.max(1));
        if request.verify {
            pattern.fill(sent, &mut block[..length]);
        }
        match socket.send(&block[..length]) {
            Ok(length) => sent += length as u64,
            Err(error) if socket::is_pause(&error) => progress.check()?,
            Err(error) => return Err(BenchError::io("sending a datagram", error)),
        }
    }
    Ok(())
}
