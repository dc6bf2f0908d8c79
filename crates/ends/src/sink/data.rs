//! The data connection of a run, at the sink.

use super::event::{Event, Served, Service};
use super::shared::Shared;
use crate::control::greeting::Token;
use crate::control::{Ready, Reply, Report};
use crate::socket::{ReadResult, Stream, counters};
use linerate_evidence::EndEvidence;
use std::net::SocketAddr;

/// Serves the data connection of the run that `token` identifies. `already` is data of the run that
/// was received together with the greeting.
pub(super) fn serve(
    stream: &Stream,
    peer: SocketAddr,
    token: Token,
    already: &[u8],
    shared: &Shared<'_>,
) {
    let Some(run) = shared.take_expected(token).filter(|run| run.arrive()) else {
        let reason = "its run is not expected (any more)".to_owned();
        shared.tell(&Event::Rejected { peer, reason });
        return;
    };
    let receive_granted = stream.receive_buffer().unwrap_or(0);
    run.send(&Reply::Ready(Ready { granted_bytes: receive_granted }));
    let is_closing = || shared.connections.is_closing();
    let (result, evidence) = run.take(stream, already, shared.limits, is_closing);
    let report = report(stream, &result, evidence);
    let verified = run.verifies().then_some(result.wrong_at.is_none());
    run.end(&result, verified);
    run.send(&Reply::Done(report));
    let service = Service::Run { receive_granted, ended: result.ended, verified };
    shared.tell(&Event::Served(Served::new(peer, service, &result)));
}

/// Creates the report on a run that has ended, which the sink sends to the sweep.
fn report(stream: &Stream, result: &ReadResult, evidence: Option<EndEvidence>) -> Report {
    Report {
        ended: result.ended,
        bytes: result.bytes,
        span_nanos: u64::try_from(result.span().as_nanos()).unwrap_or(u64::MAX),
        wrong_at: result.wrong_at,
        counters: counters(stream, &result.peaks),
        evidence: evidence.map(Box::new),
    }
}
