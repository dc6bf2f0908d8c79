//! The sink's service for peers that send no greeting of linerate: discards their data (RFC 863).

use super::event::{Event, Served, Service};
use super::shared::Shared;
use crate::socket::{ReadTask, Stream};
use std::net::SocketAddr;
use std::time::Duration;

/// Maximum size of each `read` call, in bytes.
const READ_SIZE: usize = 128 << 10;

/// Reads and discards all data of a peer. `first` is the data that the sink has already read to
/// find out that the connection has no greeting.
pub(super) fn serve(stream: &Stream, peer: SocketAddr, first: &[u8], shared: &Shared<'_>) {
    let read_task = ReadTask {
        bytes: u64::MAX,
        read_size: READ_SIZE,
        pattern: None,
        max_time: Duration::MAX,
        idle_time: shared.limits.idle,
        pause: shared.limits.pause,
        discard: false,
    };
    let result = read_task.run(stream, first, || shared.connections.is_closing());
    shared.tell(&Event::Served(Served::new(peer, Service::Plain, &result)));
}
