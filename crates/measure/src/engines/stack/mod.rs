//! The engine with linerate's TCP at both ends: two hosts, each with a thread, connected by a
//! memory link.
//!
//! This engine needs no privileges and no network. Each run has new hosts and a new link, so that
//! runs are independent.

mod floor;

use crate::bench::{Bench, RunRequest};
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::PinnedThread;
use crate::engines::own_tcp::{
    End, ReadResult, Rules, Sink, Source, Transfer, Wrapping, WriteResult, max_polls,
};
use crate::engines::thread_usage::{StolenTime, ThreadUsage};
use crate::engines::threads::joined;
use crate::plan::Plan;
use linerate_ends::Interrupt;
use linerate_evidence::{BenchFacts, Counters, Floor, RunOutcome};
use linerate_link::capture_file::CaptureWriter;
use linerate_link::memory::{self, MemoryConfig, MemoryError};
use linerate_link::{MemoryLink, Readiness};
use linerate_stack::Link;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

/// Address of the sending host. It is from TEST-NET-1, which is reserved for documentation (RFC
/// 5737).
const SOURCE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Address of the receiving host, from TEST-NET-1.
const SINK: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// Port of the discard service (RFC 863), on which the sink listens.
const PORT: u16 = 9;

/// The bench for linerate's TCP at both ends of a memory link.
#[derive(Debug)]
pub struct StackBench {
    rules: Rules,
    /// The impairments and the capture file with which the sender's end of the link is wrapped.
    wrapping: Wrapping,
}

impl StackBench {
    /// Creates the bench for `plan`. If `capture` is given, all frames are written to the capture
    /// file.
    ///
    /// # Errors
    /// The plan names an unknown profile or congestion control, or impossible sizes.
    pub fn new(plan: &Plan, capture: Option<CaptureWriter>) -> Result<Self, BenchError> {
        let rules = Rules::new(plan, plan.congestion.as_deref())?;
        Ok(Self { rules, wrapping: Wrapping::new(rules.impairments(), capture) })
    }

    /// Creates a memory link with the MTU of the plan, and returns its two ends.
    fn link(&self) -> Result<(MemoryLink, MemoryLink), BenchError> {
        let config = MemoryConfig { mtu: self.rules.mtu(), ..MemoryConfig::default() };
        memory::pair(config).map_err(|error| no_link(error, config.mtu))
    }
}

/// Converts an error of creating a memory link with an MTU of `mtu` bytes to a bench error.
fn no_link(error: MemoryError, mtu: usize) -> BenchError {
    match error {
        MemoryError::Descriptor { errno } => BenchError::Io {
            what: "making a link in memory".to_owned(),
            source: io::Error::from_raw_os_error(errno),
        },
        error => BenchError::Mtu {
            mtu: u32::try_from(mtu).unwrap_or(u32::MAX),
            remedy: error.to_string(),
        },
    }
}

impl Bench for StackBench {
    fn facts(&self) -> BenchFacts {
        let mut settings = self.rules.settings();
        settings.insert(
            "link.frames_each_way".to_owned(),
            MemoryConfig::default().capacity.to_string(),
        );
        settings.insert("link.looks_before_sleep".to_owned(), max_polls().to_string());
        settings.insert("threads.place".to_owned(), PinnedThread::describe());
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
        let near = self.wrapping.wrap(near, request.seed);
        let stolen = StolenTime::start();
        let (mut outcome, near) = self.rules.carry(near, far, request, interrupt)?;
        stolen.note(&mut outcome.counters.sender);
        self.wrapping.unwrap_link(near)?;
        Ok(outcome)
    }
}

impl Rules {
    /// Executes a transfer from a host on `near` to a host on `far`. Returns the outcome, and the
    /// link of the sending host.
    pub(super) fn carry<N: Link + Readiness + Send, F: Link + Readiness + Send>(
        &self,
        near: N,
        far: F,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<(RunOutcome, N), BenchError> {
        let config = self.config(request)?;
        let transfer = Transfer::new(request, interrupt);
        let address = SocketAddr::from((SINK, PORT));
        let counts = self.compresses_headers();
        let (given, taken) = thread::scope(|scope| {
            // Each thread returns its link instead of dropping it. Dropping a link early would
            // close the other end of the link.
            let source = scope.spawn(|| {
                PinnedThread::Source.pin();
                let usage = ThreadUsage::start();
                let mut end = End::counting_packets(counts, SOURCE.into(), request.seed, near)?;
                let mut given = Source::new(&transfer).run(&mut end, address, &config);
                given.iter_mut().for_each(|given| usage.note(&mut given.counters));
                Ok((given, end.into_link()))
            });
            let sink = scope.spawn(|| {
                PinnedThread::Sink.pin();
                let usage = ThreadUsage::start();
                let mut end = End::counting_packets(counts, SINK.into(), request.seed, far)?;
                let mut taken = Sink::listen(&mut end, address, &config)
                    .and_then(|listener| Sink::new(&transfer).run(&mut end, listener, &config));
                taken.iter_mut().for_each(|taken| usage.note(&mut taken.counters));
                Ok((taken, end.into_link()))
            });
            let (given, taken) = (joined(source), joined(sink));
            let given = given.and_then(|(given, link)| Ok((given?, link)));
            (given, taken.and_then(|(taken, _)| taken))
        });
        outcome(given, taken)
    }
}

/// Combines the results of the source and the sink. If both ends failed, the function returns the
/// interrupt, or else the error of the source. The error of the sink is usually a consequence.
fn outcome<N>(
    given: Result<(WriteResult, N), BenchError>,
    taken: Result<ReadResult, BenchError>,
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
