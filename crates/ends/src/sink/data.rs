//! The data connection of a run.

use super::event::{Event, Served, Service};
use super::shared::Shared;
use crate::control::greeting::Token;
use crate::control::{Ready, Reply, Report};
use crate::socket::{Stream, Taken, counters};
use std::net::SocketAddr;

/// Serves the data connection that `token` opened, of whose data `already` has arrived.
pub(super) fn serve(
    stream: &Stream,
    peer: SocketAddr,
    token: Token,
    already: &[u8],
    shared: &Shared<'_>,
) {
    let Some(run) = shared.take_expected(token).filter(|run| run.arrive()) else {
        let reason = "its run is not expected (any more)".to_owned();
        shared.tell(&Event::TurnedAway { peer, reason });
        return;
    };
    let receive_granted = stream.receive_buffer().unwrap_or(0);
    run.say(&Reply::Ready(Ready { granted_bytes: receive_granted }));
    let taken = run.take(stream, already, || shared.guests.are_leaving());
    let report = report(stream, &taken);
    run.end();
    run.say(&Reply::Done(report));
    let verified = run.verifies().then_some(taken.wrong_at.is_none());
    let service = Service::Run { receive_granted, ended: taken.ended, verified };
    shared.tell(&Event::Served(Served::new(peer, service, &taken)));
}

fn report(stream: &Stream, taken: &Taken) -> Report {
    Report {
        ended: taken.ended,
        bytes: taken.bytes,
        span_nanos: u64::try_from(taken.span().as_nanos()).unwrap_or(u64::MAX),
        wrong_at: taken.wrong_at,
        counters: counters(stream, &taken.peaks),
    }
}
