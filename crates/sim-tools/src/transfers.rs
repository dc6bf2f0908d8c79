//! Simulates many transfers in parallel threads.
//!
//! The number of threads does not affect the results. Each transfer is a separate simulation, which
//! depends only on its scenario, its buffers and its seed.

use linerate_evidence::stats::as_f64;
use linerate_sim::{Blueprint, Keep, MachineOutcome, TransferFacts, TransferOptions};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A transfer to simulate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job<'a> {
    /// The scenario, with all numbers read and checked.
    pub blueprint: &'a Blueprint,
    /// Size of the send buffer in packets.
    pub send: u32,
    /// Size of the receive buffer in packets.
    pub receive: u32,
    /// Number of bytes to transfer.
    pub bytes: u64,
    /// Seed of the simulation's random numbers.
    pub seed: u64,
}

/// The results of a simulated transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Made {
    /// Throughput from the connection's establishment at the source to the end of the sink's final
    /// read, in units of 1,024 bytes per second.
    pub kilobytes: f64,
    /// Bit rate on the wire from all senders, in bit/s, with preambles and inter-frame gaps.
    pub wire_bits: f64,
    /// Fraction of time in which the sender's processor was idle, from 0 to 1.
    pub sender_idle: f64,
    /// Fraction of time in which the receiver's processor was idle, from 0 to 1.
    pub receiver_idle: f64,
    /// Number of transmissions that collided.
    pub collisions: u64,
    /// Number of frames on the wire.
    pub frames: u64,
    /// Number of retransmitted segments.
    pub sent_again: u64,
    /// Whether all bytes arrived.
    pub complete: bool,
}

/// Runs all jobs. Returns their results in the order of `jobs`, or `None` if `is_stopped` has
/// returned true.
#[must_use]
pub(crate) fn make(
    jobs: &[Job<'_>],
    threads: NonZeroUsize,
    is_stopped: &(dyn Fn() -> bool + Sync),
    tell: &(dyn Fn(usize) + Sync),
) -> Option<Vec<Made>> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut made = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index).filter(|_| !is_stopped()) else { return made };
            made.push((index, job.make()));
            tell(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    let mut all: Vec<(usize, Made)> = thread::scope(|scope| {
        // At most one thread per job is started, because any other thread would be idle.
        let threads: Vec<_> =
            (0..threads.get().min(jobs.len())).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .flat_map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    all.sort_unstable_by_key(|&(index, _)| index);
    (all.len() == jobs.len()).then(|| all.into_iter().map(|(_, made)| made).collect())
}

impl Job<'_> {
    fn make(&self) -> Made {
        let facts = self.blueprint.transfer();
        let segment = facts.map_or(1_460, TransferFacts::segment);
        let bytes = |packets: u32| Some(segment * packets as usize);
        let options = TransferOptions {
            bytes: Some(self.bytes),
            send_buffer: bytes(self.send),
            receive_buffer: bytes(self.receive),
            ..TransferOptions::default()
        };
        let outcome = self.blueprint.run(self.seed, &options, Keep::default());
        let program =
            |end: &str| facts.and_then(|facts| outcome.program(&format!("{}: {end}", facts.name)));
        let (source, sink) = (program("source"), program("sink"));
        let began = source.and_then(|source| source.began).unwrap_or_default();
        let seconds =
            sink.and_then(|sink| sink.ended).unwrap_or(outcome.time).since(began).as_secs_f64();
        let wire = &outcome.wires[0].counted;
        let idle = |host: Option<&str>| {
            let machine =
                outcome.machines.iter().find(|machine| Some(machine.name.as_str()) == host);
            machine.map_or(0.0, |machine: &MachineOutcome| outcome.idle(machine))
        };
        Made {
            kilobytes: sink.map_or(0.0, |sink| as_f64(sink.bytes) / seconds / 1_024.0),
            wire_bits: as_f64((wire.bytes + 20 * wire.frames) * 8) / seconds,
            sender_idle: idle(source.map(|source| source.host.as_str())),
            receiver_idle: idle(sink.map(|sink| sink.host.as_str())),
            collisions: wire.collisions,
            frames: outcome.frames_carried(),
            sent_again: source
                .and_then(|source| source.tcp.as_ref())
                .map_or(0, |tcp| tcp.statistics.retransmitted_segments),
            complete: sink.is_some_and(|sink| sink.complete),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sim::Scenario;

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let blueprint = Scenario::named("sun-3-280-to-3-60").unwrap().blueprint().unwrap();
        let cell = |seed: u32| (1 + seed % 4, 1 + seed / 4);
        let jobs: Vec<Job<'_>> = (0..12)
            .map(|seed| {
                let (send, receive) = cell(seed);
                Job { blueprint: &blueprint, send, receive, bytes: 100_000, seed: seed.into() }
            })
            .collect();
        let made =
            |threads| make(&jobs, NonZeroUsize::new(threads).unwrap(), &|| false, &|_| ()).unwrap();
        let alone = made(1);
        assert!(alone.iter().all(|made| made.complete));
        assert_eq!(alone, made(2));
        assert_eq!(alone, made(5));
    }

    /// With buffers of one packet, exactly one acknowledgement follows each data frame. Data frames
    /// have 1,518 bytes and acknowledgements 64, each plus 20 bytes of preamble and inter-frame
    /// gap. The bits on the wire can thus be computed and compared with the measured rate.
    #[test]
    fn the_rate_of_the_wire_includes_headers_preambles_and_gaps() {
        let mut scenario = Scenario::named("sun-3-60-to-3-60").unwrap();
        scenario.set("noise.rate=0").unwrap();
        let blueprint = scenario.blueprint().unwrap();
        let bytes = 1_000 * 1_460;
        let made = Job { blueprint: &blueprint, send: 1, receive: 1, bytes, seed: 1 }.make();
        assert!((2_000..2_050).contains(&made.frames), "{made:?}");
        let carried = 1_000 * 1_518 + (made.frames - 1_000) * 64 + 20 * made.frames;
        let seconds = as_f64(bytes) / 1_024.0 / made.kilobytes;
        let told = made.wire_bits * seconds / 8.0 / as_f64(carried);
        assert!((told - 1.0).abs() < 0.002, "{told}");
    }

    #[test]
    fn a_stopped_job_has_no_result() {
        let blueprint = Scenario::named("sun-3-60-to-3-60").unwrap().blueprint().unwrap();
        let jobs = [Job { blueprint: &blueprint, send: 1, receive: 1, bytes: 1_000, seed: 1 }];
        assert_eq!(make(&jobs, NonZeroUsize::MIN, &|| true, &|_| ()), None);
    }
}
