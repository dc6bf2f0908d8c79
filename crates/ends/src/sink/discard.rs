//! A plain peer: RFC 863 discard, `ttcp -r`, `nc -l > /dev/null`.

use super::event::{Event, Served, Service};
use super::shared::Shared;
use crate::socket::{Intake, Stream};
use std::net::SocketAddr;
use std::time::Duration;

const READ_SIZE: usize = 128 << 10;

/// Reads what comes, of which `first` has, and throws it away.
pub(super) fn serve(stream: &Stream, peer: SocketAddr, first: &[u8], shared: &Shared<'_>) {
    let intake = Intake {
        bytes: u64::MAX,
        read_size: READ_SIZE,
        pattern: None,
        max_time: Duration::MAX,
        idle_time: shared.limits.idle,
    };
    let taken = intake.take(stream, first, || shared.guests.are_leaving());
    shared.tell(&Event::Served(Served::new(peer, Service::Plain, &taken)));
}
