//! Refusals of connections.

use crate::control::greeting;
use crate::socket::Stream;
use std::io::Write;
use std::net::Shutdown;

/// Writes the line that refuses a connection, and ends the stream.
pub(super) fn refuse(mut stream: &Stream, reason: &str) {
    // The line is lost if the peer does not read it.
    let _ = stream.write_all(greeting::busy(reason).as_bytes());
    let _ = stream.shutdown(Shutdown::Write);
}
