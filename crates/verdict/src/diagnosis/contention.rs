//! Contention: runs are discarded if their threads waited for a CPU. The rate of such a run depends
//! on the other programs of the machine and not on the path.

use super::figure::{End, busiest};
use linerate_evidence::{EndEvidence, RunEvidence};

/// Maximum share of the time that a thread may wait for a CPU, or a hypervisor may withhold one, in
/// an uncontended run. The effect of a smaller share on the rate is within the spread of repeated
/// runs.
pub const CONTENDED_SHARE: f64 = 0.02;

/// Assumed delay of a wake-up on an idle CPU, in nanoseconds. The kernel counts this delay as time
/// in the run queue, although no other thread runs there. The delay is therefore subtracted for
/// each wake-up. It depends on the number of wake-ups, because a CPU that sleeps for longer takes
/// longer to wake up. It was measured on idle machines (docs/notebook/2026-11-25-diagnosis.md):
///
/// - 1.4 to 1.7 µs with 19,000 to 30,000 wake-ups a second, which is 3 to 4 % of the time;
/// - 2 to 15 µs with 300 to 9,000 wake-ups a second, which is 0.3 to 4 % of the time.
const WAKE_UP_NANOS: u64 = 2_000;
/// Assumed delay of a wake-up on a CPU that has slept for long, in nanoseconds, see
/// [`WAKE_UP_NANOS`].
const LATE_WAKE_UP_NANOS: u64 = 10_000;
/// Maximum share of the time that is subtracted at [`LATE_WAKE_UP_NANOS`] for each wake-up.
const LATE_SHARE: f64 = 0.03;

/// Returns the share of the time for which a thread of this end waited while other threads occupied
/// its CPU. Of the program's thread and the thread of linerate's host, the longer wait counts.
/// Returns `None` if the wait of the program's thread is unknown.
fn waited(end: &EndEvidence) -> Option<f64> {
    let thread = &end.thread;
    let of = |waited: Option<u64>, switches: Option<u64>| {
        let wake_ups = |nanos: u64| {
            end.share_of_nanos(Some(switches.unwrap_or(0).saturating_mul(nanos))).unwrap_or(0.0)
        };
        let delay = wake_ups(LATE_WAKE_UP_NANOS).min(LATE_SHARE).max(wake_ups(WAKE_UP_NANOS));
        Some((end.share_of_nanos(waited)? - delay).max(0.0))
    };
    let own = of(thread.queue_wait_nanos, thread.voluntary_switches)?;
    Some(own.max(of(thread.host_queue_wait_nanos, thread.host_voluntary_switches).unwrap_or(0.0)))
}

/// Returns the share of the time for which the hypervisor withheld a CPU from the threads of this
/// end. The time that it withheld from the machine is divided among the machine's threads and
/// interrupts in proportion to their processor time. Returns `None` if it is unknown.
fn stolen(end: &EndEvidence) -> Option<f64> {
    let steal = end.machine.steal_share?;
    let part = || {
        let busy = 1.0 - end.machine.idle_share? - steal;
        let own = busiest(end)? + end.machine.softirq_share.unwrap_or(0.0);
        (busy > 0.0).then(|| own / busy)
    };
    Some(steal * part().unwrap_or(1.0).min(1.0))
}

/// Returns the worst contention of `run`: the end, the name of the counter, and the share of the
/// time. Returns `None` if no known share exceeds [`CONTENDED_SHARE`].
#[must_use]
pub fn contention(run: &RunEvidence) -> Option<(End, &'static str, f64)> {
    let found = [
        (End::Sender, "run_queue_wait_share", waited(&run.sender)),
        (End::Receiver, "run_queue_wait_share", waited(&run.receiver)),
        (End::Sender, "steal_share", stolen(&run.sender)),
        (End::Receiver, "steal_share", stolen(&run.receiver)),
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
        let stolen = run(end(Some(30_000_000), Some(0.5)), quiet());
        assert_eq!(contention(&stolen), Some((End::Sender, "steal_share", 0.5)));
    }

    #[test]
    fn steal_counts_in_proportion_to_the_processor_time_of_the_transfer() {
        let run = |cpu_nanos| {
            let mut sender = end(Some(0), Some(0.06));
            sender.machine.idle_share = Some(0.64);
            sender.thread.cpu_nanos = Some(cpu_nanos);
            RunEvidence { sender, ..RunEvidence::default() }
        };
        // Of the 30 % that the machine worked, the transfer's thread worked 5 % and 15 %.
        assert_eq!(contention(&run(50_000_000)), None);
        let (end, name, share) = contention(&run(150_000_000)).unwrap();
        assert_eq!((end, name), (End::Sender, "steal_share"));
        assert!((share - 0.03).abs() < 1e-9, "{share}");
    }

    #[test]
    fn frequent_wake_ups_are_no_contention_and_do_not_hide_a_bystander() {
        let woken = |waited_millis: u64, switches, share: Option<f64>| {
            let mut sender = end(Some(waited_millis * 1_000_000), None);
            sender.thread.voluntary_switches = Some(switches);
            let host = ThreadEvidence {
                queue_wait_nanos: Some(0),
                host_queue_wait_nanos: sender.thread.queue_wait_nanos,
                host_voluntary_switches: Some(switches),
                ..ThreadEvidence::default()
            };
            let of_host = EndEvidence { thread: host, ..sender.clone() };
            for sender in [sender, of_host] {
                let run = RunEvidence { sender, ..RunEvidence::default() };
                assert_eq!(contention(&run).map(|(_, _, share)| share), share, "{switches}");
            }
        };
        // These were measured without other load: small writes over the loopback device, and a
        // reader that discards received data.
        woken(32, 21_065, None);
        woken(41, 30_136, None);
        // Transfers over a link of 25 Mb/s and with pauses between writes.
        woken(12, 1_745, None);
        woken(41, 8_623, None);
        // These two were measured while another program occupied the CPU half of the time.
        woken(500, 21_000, Some(0.458));
        woken(300, 30_000, Some(0.24));
    }
}
