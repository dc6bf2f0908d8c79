//! Rejection of connections by a sink.

use crate::control::greeting;
use crate::socket::Stream;
use std::io::Write;
use std::net::Shutdown;

/// Sends the reason why a connection is rejected as a `BUSY` line, and closes the sending
/// direction.
pub(super) fn refuse(mut stream: &Stream, reason: &str) {
    // An error means that the peer has closed the connection, so it needs no reason.
    let _ = stream.write_all(greeting::busy(reason).as_bytes());
    let _ = stream.shutdown(Shutdown::Write);
}
