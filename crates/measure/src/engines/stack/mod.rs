//! linerate's TCP at both ends: two hosts, each with a thread of its own, on the two ends of a link
//! in memory. It needs no privileges and no network.
//!
//! Each run has new hosts and a new link, so that none inherits anything from another.

mod floor;

use crate::bench::{Bench, RunRequest};
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::Seat;
use crate::engines::own_tcp::{
    End, Given, Rules, Sink, Source, Taken, Transfer, Wrapping, most_looks,
};
use crate::engines::threads::joined;
use crate::plan::Plan;
use linerate_ends::Interrupt;
use linerate_evidence::{BenchFacts, Counters, Floor, RunOutcome};
use linerate_link::capture_file::CaptureWriter;
use linerate_link::memory::{self, MemoryConfig, MemoryError};
use linerate_link::{MemoryLink, Readiness};
use linerate_stack::Link;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;

/// From TEST-NET-1 (RFC 5737): nobody's addresses.
const SOURCE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SINK: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// Discard (RFC 863).
const PORT: u16 = 9;

/// linerate's TCP at both ends.
#[derive(Debug)]
pub struct StackBench {
    rules: Rules,
    /// What is around the source's end of the link.
    dressing: Wrapping,
}

impl StackBench {
    /// The bench for `plan`, with its frames written to `capture` if there is one.
    ///
    /// # Errors
    /// If the plan names a profile or a congestion control that there is not, or sizes that cannot
    /// be.
    pub fn new(plan: &Plan, capture: Option<CaptureWriter>) -> Result<Self, BenchError> {
        let rules = Rules::new(plan, plan.congestion.as_deref())?;
        Ok(Self { rules, dressing: Wrapping::new(rules.impairments(), capture) })
    }

    fn link(&self) -> Result<(MemoryLink, MemoryLink), BenchError> {
        let config = MemoryConfig { mtu: self.rules.mtu(), ..MemoryConfig::default() };
        memory::pair(config).map_err(|error| match error {
            MemoryError::Descriptor { errno } => BenchError::Io {
                what: "making a link in memory".to_owned(),
                source: io::Error::from_raw_os_error(errno),
            },
            error => BenchError::Mtu { mtu: self.rules.payload(), remedy: error.to_string() },
        })
    }
}

impl Bench for StackBench {
    fn facts(&self) -> BenchFacts {
        let mut settings = self.rules.settings();
        settings.insert(
            "link.frames_each_way".to_owned(),
            MemoryConfig::default().capacity.to_string(),
        );
        settings.insert("link.looks_before_sleep".to_owned(), most_looks().to_string());
        settings.insert("threads.place".to_owned(), Seat::describe());
        BenchFacts {
            description: "linerate's TCP at both ends, a thread for each, over a link in memory"
                .to_owned(),
            segment_payload: self.rules.payload(),
            framing: self.rules.framing(),
            line_rate: None,
            settings,
        }
    }

    fn floor(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<Option<Floor>, BenchError> {
        let (near, far) = self.link()?;
        floor::measure(near, far, self.rules.payload(), request, interrupt).map(Some)
    }

    fn run(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<RunOutcome, BenchError> {
        let (near, far) = self.link()?;
        let near = self.dressing.put_on(near, request.seed);
        let (outcome, near) = self.rules.carry(near, far, request, interrupt)?;
        self.dressing.take_off(near)?;
        Ok(outcome)
    }
}

impl Rules {
    /// One transfer from `near` to `far`; the source's link comes back with the outcome.
    fn carry<N: Link + Readiness + Send, F: Link + Readiness + Send>(
        &self,
        near: N,
        far: F,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<(RunOutcome, N), BenchError> {
        let config = self.config(request)?;
        let transfer = Transfer::new(request, interrupt);
        let address = SocketAddrV4::new(SINK, PORT);
        let (given, taken) = thread::scope(|scope| {
            // Each end's link comes back, too: without it the other end's is down.
            let source = scope.spawn(|| {
                Seat::Source.take();
                let mut end = End::new(SOURCE, request.seed, near)?;
                let given = Source::new(&transfer).give(&mut end, address, &config);
                Ok((given, end.into_link()))
            });
            let sink = scope.spawn(|| {
                Seat::Sink.take();
                let mut end = End::new(SINK, request.seed, far)?;
                let taken = Sink::listen(&mut end, address, &config)
                    .and_then(|listener| Sink::new(&transfer).take(&mut end, listener, &config));
                Ok((taken, end.into_link()))
            });
            let (given, taken) = (joined(source), joined(sink));
            let given = given.and_then(|(given, link)| Ok((given?, link)));
            (given, taken.and_then(|(taken, _)| taken))
        });
        outcome(given, taken)
    }
}

/// What both ends say together, and the source's link. Of two errors the one of the end that was
/// not merely left alone.
fn outcome<N>(
    given: Result<(Given, N), BenchError>,
    taken: Result<Taken, BenchError>,
) -> Result<(RunOutcome, N), BenchError> {
    match (given, taken) {
        (Ok((given, link)), Ok(taken)) => {
            let outcome = RunOutcome {
                bytes: taken.bytes,
                time: taken.finished.since(given.began),
                complete: taken.complete,
                verified: taken.verified,
                send_granted: given.send_buffer,
                receive_granted: taken.receive_buffer,
                counters: Counters { sender: given.counters, receiver: taken.counters },
            };
            Ok((outcome, link))
        }
        (Err(BenchError::Interrupted), _) | (_, Err(BenchError::Interrupted)) => {
            Err(BenchError::Interrupted)
        }
        (Err(error), _) | (Ok(_), Err(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests;
