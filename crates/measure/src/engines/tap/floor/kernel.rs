//! The kernel's end of the floor: a UDP socket.

use super::pace::Pace;
use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use linerate_ends::socket;
use linerate_ends::workload::Pattern;
use std::net::UdpSocket;
use std::time::Duration;

/// How long a thread may sit in one call before it asks whether it should go on.
const SLICE: Duration = Duration::from_millis(50);

/// Reads until everything has arrived. The kernel sums and copies.
pub(crate) fn receive_all(
    socket: &UdpSocket,
    request: &RunRequest,
    pace: &Pace<'_>,
) -> Result<(), BenchError> {
    socket
        .set_read_timeout(Some(SLICE))
        .map_err(|error| BenchError::io("setting a time-out", error))?;
    let pattern = Pattern::new(request.seed);
    let mut block = vec![0; 65_536];
    let mut read = 0;
    while !pace.is_complete() {
        match socket.recv(&mut block) {
            Ok(length) => {
                if request.verify {
                    // A dropped datagram moves those behind it; only the time of the comparison
                    // counts.
                    let _ = pattern.verify(read, &block[..length]);
                }
                read += length as u64;
                pace.deliver(length);
            }
            Err(error) if socket::is_pause(&error) => pace.check()?,
            Err(error) => return Err(BenchError::io("receiving a datagram", error)),
        }
    }
    Ok(())
}

/// Sends until everything has arrived. The kernel copies and sums.
pub(crate) fn send_all(
    socket: &UdpSocket,
    payload: usize,
    request: &RunRequest,
    pace: &Pace<'_>,
) -> Result<(), BenchError> {
    socket
        .set_write_timeout(Some(SLICE))
        .map_err(|error| BenchError::io("setting a time-out", error))?;
    let pattern = Pattern::new(request.seed);
    let mut block = vec![0; payload];
    pattern.fill(0, &mut block);
    let mut sent: u64 = 0;
    pace.begin();
    while !pace.is_complete() {
        sent -= pace.await_room(sent)?;
        let left = usize::try_from(request.bytes.saturating_sub(sent)).unwrap_or(usize::MAX);
        // Datagrams that were dropped are made up for by more of the same.
        let length = payload.min(left.max(1));
        if request.verify {
            pattern.fill(sent, &mut block[..length]);
        }
        match socket.send(&block[..length]) {
            Ok(length) => sent += length as u64,
            Err(error) if socket::is_pause(&error) => pace.check()?,
            Err(error) => return Err(BenchError::io("sending a datagram", error)),
        }
    }
    Ok(())
}
