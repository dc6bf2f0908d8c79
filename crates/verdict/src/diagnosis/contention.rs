//! Contention: a run whose threads waited for a CPU is unfair, and nothing is concluded from it.

use super::figure::End;
use linerate_evidence::{EndEvidence, RunEvidence};

/// Share of the time for which a thread may wait for a CPU, or a machine may be without one,
/// before the run is contended. Below it, the effect on a rate is within the spread of equal runs.
pub const CONTENDED_SHARE: f64 = 0.02;

/// Time in which an idle CPU wakes up and starts a thread. The thread counts it as waiting,
/// although nothing else runs there.
const WAKE_UP_NANOS: u64 = 10_000;

/// Returns the time in which other threads had the CPU.
fn waited(end: &EndEvidence) -> Option<u64> {
    let switches = end.thread.voluntary_switches.unwrap_or(0);
    let own = end.thread.queue_wait_nanos?.saturating_sub(switches.saturating_mul(WAKE_UP_NANOS));
    Some(own.max(end.thread.host_queue_wait_nanos.unwrap_or(0)))
}

/// Returns the end, the counter and the share of the worst contention of `run`, if it exceeds
/// [`CONTENDED_SHARE`].
#[must_use]
pub fn contention(run: &RunEvidence) -> Option<(End, &'static str, f64)> {
    let waits = |end: &EndEvidence| end.share_of_nanos(waited(end));
    let found = [
        (End::Sender, "run_queue_wait_share", waits(&run.sender)),
        (End::Receiver, "run_queue_wait_share", waits(&run.receiver)),
        (End::Sender, "steal_share", run.sender.machine.steal_share),
        (End::Receiver, "steal_share", run.receiver.machine.steal_share),
    ];
    found
        .into_iter()
        .filter_map(|(end, name, share)| Some((end, name, share?)))
        .filter(|&(_, _, share)| share > CONTENDED_SHARE)
        .max_by(|(_, _, one), (_, _, other)| one.total_cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_evidence::{MachineEvidence, ThreadEvidence};

    fn end(waited: Option<u64>, steal_share: Option<f64>) -> EndEvidence {
        EndEvidence {
            seconds: Some(1.0),
            thread: ThreadEvidence { queue_wait_nanos: waited, ..ThreadEvidence::default() },
            machine: MachineEvidence { steal_share, ..MachineEvidence::default() },
            ..EndEvidence::default()
        }
    }

    #[test]
    fn waiting_for_a_cpu_for_more_than_two_per_cent_is_contention() {
        let run = |sender, receiver| RunEvidence { sender, receiver, ..RunEvidence::default() };
        let quiet = || end(Some(20_000_000), Some(0.02));
        assert_eq!(contention(&run(quiet(), quiet())), None);
        assert_eq!(contention(&run(end(None, None), end(None, None))), None);
        let waited = run(quiet(), end(Some(21_000_000), None));
        assert_eq!(contention(&waited), Some((End::Receiver, "run_queue_wait_share", 0.021)));
        let mut woken = end(Some(50_000_000), None);
        woken.thread.voluntary_switches = Some(4_000);
        assert_eq!(contention(&run(woken, quiet())), None, "12.5 us a wake-up");
        let stolen = run(end(Some(30_000_000), Some(0.5)), quiet());
        assert_eq!(contention(&stolen), Some((End::Sender, "steal_share", 0.5)));
    }
}
