//! Contention: other programs of the machine take processor time from the threads of a transfer.
//! The rate of such a run depends on those programs and not on the path, so the run is discarded.

use super::figure::{End, busiest};
use linerate_evidence::{EndEvidence, RunEvidence};

/// Maximum share of its time that a thread of an uncontended run may lose: it waits for a CPU, or
/// the hypervisor withholds one. A smaller share changes the rate by less than the random
/// difference between repeated runs.
pub const CONTENDED_SHARE: f64 = 0.02;

/// Assumed delay of a wake-up on an idle CPU, in nanoseconds. The kernel counts this delay as
/// waiting time in the run queue, although no other thread runs there. It is therefore subtracted
/// for each wake-up. The rarer the wake-ups, the longer the delay, because a CPU that sleeps for
/// longer takes longer to wake up. The delay was measured on idle machines
/// (docs/notebook/2026-11-25-diagnosis.md):
///
/// - 1.4 to 1.7 µs with 19,000 to 30,000 wake-ups a second, which is 3 to 4 % of the time;
/// - 2 to 15 µs with 300 to 9,000 wake-ups a second, which is 0.3 to 4 % of the time.
const WAKE_UP_NANOS: u64 = 2_000;
/// Assumed delay of a wake-up on a CPU that has slept for long, in nanoseconds (see
/// [`WAKE_UP_NANOS`] for the measurements).
const LATE_WAKE_UP_NANOS: u64 = 10_000;
/// Maximum share of the time that is subtracted for wake-ups at [`LATE_WAKE_UP_NANOS`] each.
/// Without it, too much would be subtracted for frequent wake-ups, whose delays are short. For
/// them, [`WAKE_UP_NANOS`] each is subtracted if that is more than this share.
const LATE_SHARE: f64 = 0.03;
/// Assumed delay of a wake-up on an idle virtual CPU, in nanoseconds. The kernel counts the delay
/// as time that the hypervisor withheld. It is no contention: it lengthens the round-trip time, but
/// does not reduce the processor time that a thread can get.
///
/// The value was measured on a machine with two CPUs that were idle for 85 % of the time. The
/// hypervisor withheld 15 % of both. There were 3,300 interrupts a second, so each of them accounts
/// for 90 µs.
const STOLEN_WAKE_UP_NANOS: u64 = 90_000;
/// Maximum share of the time that is subtracted for delayed wake-ups of virtual CPUs at
/// [`STOLEN_WAKE_UP_NANOS`] each. A loss above this share is therefore never subtracted completely.
/// The loss of a thread that ran for less than this share may be, but such a thread is not limited
/// by its CPU anyway.
const STOLEN_LATE_SHARE: f64 = 0.1;

/// Maximum number of CPUs that may be busy with work other than the transfer, for the machine to
/// count as otherwise idle. On such a machine, the transfer's threads wait only for each other and
/// for software interrupts, which is not contention.
///
/// Measured on a machine with two CPUs, with transfers of 1.4 to 8 Gb/s over veth devices between
/// two namespaces: other work took 0.08 to 0.16 CPUs, although threads waited for 3 to 11 % of the
/// time. In contrast, a program that occupies a CPU half of the time takes at least 0.3 CPUs.
const ALONE: f64 = 0.2;

/// Returns the share of the time for which a thread of this end waited while other threads occupied
/// its CPU. The delays of wake-ups are subtracted. An end can have two threads, that of the program
/// and that of linerate's host; the one that waited longer counts. Returns `None` if the waiting
/// time of the program's thread is unknown.
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
/// end. The time withheld from the whole machine is attributed to threads and interrupts in
/// proportion to their processor time. At most as much time is attributed to this end as its
/// busiest thread and its interrupts ran. The delays of wake-ups are then subtracted. Returns
/// `None` if the withheld time is unknown.
fn stolen(end: &EndEvidence) -> Option<f64> {
    let steal = end.machine.steal_share?;
    let own = busiest(end).map(|share| share + end.machine.softirq_share.unwrap_or(0.0));
    let busy = end.machine.idle_share.map(|idle| 1.0 - idle - steal);
    let (Some(own), Some(busy)) = (own, busy.filter(|&busy| busy > 0.0)) else {
        return Some(steal);
    };
    let thread = &end.thread;
    let wake_ups = thread.voluntary_switches.max(thread.host_voluntary_switches).unwrap_or(0);
    let delay = end.share_of_nanos(Some(wake_ups.saturating_mul(STOLEN_WAKE_UP_NANOS)));
    let lost = (steal * own / busy).min(steal).min(own);
    Some((lost - delay.unwrap_or(0.0).min(STOLEN_LATE_SHARE)).max(0.0))
}

/// Returns the mean number of CPUs that work other than the transfer's threads occupied on the
/// machine of `end`; `None` if it is unknown. If both ends run on one machine, the threads of both
/// belong to the transfer.
///
/// The kernel's threads for software interrupts also count as threads of the transfer. Another
/// program may cause many software interrupts, but it also uses processor time itself, and that
/// time counts as other work.
fn other_work(run: &RunEvidence, end: &EndEvidence) -> Option<f64> {
    let machine = &end.machine;
    let busy = 1.0 - machine.idle_share? - machine.steal_share?;
    let threads = |end: &EndEvidence| {
        let of = |nanos| end.share_of_nanos(nanos).unwrap_or(0.0);
        of(end.thread.cpu_nanos) + of(end.thread.host_cpu_nanos)
    };
    let (near, far) = (&run.sender, &run.receiver);
    let is_one_machine = near.machine.boot.is_some() && near.machine.boot == far.machine.boot;
    let own = if is_one_machine { threads(near) + threads(far) } else { threads(end) };
    let own = own + end.share_of_nanos(machine.softirq_thread_nanos).unwrap_or(0.0);
    Some((busy * f64::from(machine.cpus?) - own).max(0.0))
}

/// Returns the largest loss of time by contention in `run`: the affected end, the name of the
/// counter that shows it, and the lost share of the time. Returns `None` if no known share exceeds
/// [`CONTENDED_SHARE`].
#[must_use]
pub fn contention(run: &RunEvidence) -> Option<(End, &'static str, f64)> {
    let waited = |end| waited(end).filter(|_| other_work(run, end).is_none_or(|work| work > ALONE));
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
        // The hypervisor withholds 6 % of the time, and the machine works 30 % of the time. In the
        // first run, the transfer's thread works 5 % of the time. This is 1/6 of the 30 %, so 1/6
        // of the withheld time is its loss: 1 %, which is no contention. In the second run, the
        // thread works 15 % of the time, so its loss is half of the withheld time: 3 %.
        assert_eq!(contention(&run(50_000_000)), None);
        let (end, name, share) = contention(&run(150_000_000)).unwrap();
        assert_eq!((end, name), (End::Sender, "steal_share"));
        assert!((share - 0.03).abs() < 1e-9, "{share}");
    }

    #[test]
    fn steal_that_delays_wake_ups_is_no_contention() {
        let run = |steal, cpu_millis: u64, wake_ups| {
            let mut sender = end(Some(0), Some(steal));
            sender.machine.idle_share = Some(0.98 - steal);
            sender.thread.cpu_nanos = Some(cpu_millis * 1_000_000);
            sender.thread.voluntary_switches = Some(wake_ups);
            RunEvidence { sender, ..RunEvidence::default() }
        };
        let stolen = |run| contention(&run).map(|(_, name, share)| (name, share));
        // A thread is charged with at most as much lost time as it ran. In the first run it ran 1.5
        // % of the time, which is too little for contention, and in the second 3 %. In the third
        // run it also ran 3 %, but its 700 delayed wake-ups explain that loss. In the fourth run it
        // ran 15 %. Wake-ups explain at most 10 % of the time, so 5 % remain.
        assert_eq!(stolen(run(0.13, 15, 0)), None);
        assert_eq!(stolen(run(0.13, 30, 0)), Some(("steal_share", 0.03)));
        assert_eq!(stolen(run(0.13, 30, 700)), None);
        let (_, share) = stolen(run(0.3, 150, 10_000)).unwrap();
        assert!((share - 0.05).abs() < 1e-9, "{share}");
    }

    #[test]
    fn threads_of_the_transfer_that_wait_for_each_other_are_no_contention() {
        let run = |idle_share, boots: [u64; 2]| {
            let end = |cpu_millis: u64, boot| {
                let mut end = end(Some(80_000_000), Some(0.0));
                end.machine = MachineEvidence {
                    idle_share: Some(idle_share),
                    cpus: Some(2),
                    boot: Some(boot),
                    ..end.machine
                };
                end.thread.cpu_nanos = Some(cpu_millis * 1_000_000);
                end
            };
            let (sender, receiver) = (end(630, boots[0]), end(400, boots[1]));
            RunEvidence { sender, receiver, ..RunEvidence::default() }
        };
        assert_eq!(contention(&run(0.43, [7, 7])), None);
        // Both ends run on one machine. Its two CPUs work 70 % of the time (1.4 CPUs), and the
        // transfer's threads use 1.03 CPUs. Another program therefore takes 0.37 CPUs, which is
        // contention.
        assert!(contention(&run(0.3, [7, 7])).is_some());
        // In this run too, the transfer's threads leave 0.37 of the busy CPUs to other threads. The
        // kernel's threads for software interrupts take 0.25 of them. The remaining 0.12 CPUs are
        // below the limit, so there is no contention.
        let mut interrupted = run(0.3, [7, 7]);
        for end in [&mut interrupted.sender, &mut interrupted.receiver] {
            end.machine.softirq_thread_nanos = Some(250_000_000);
        }
        assert_eq!(contention(&interrupted), None);
        // The ends run on different machines. On each one, two CPUs work 57 % of the time (1.14
        // CPUs), but the transfer's thread there uses at most 0.63 CPUs. Another program must
        // therefore have caused the wait.
        assert!(contention(&run(0.43, [7, 8])).is_some());
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
        // Values measured in two transfers over the loopback device, without other load: with small
        // writes, then with a reader that discards received data. Such waits are no contention.
        woken(32, 21_065, None);
        woken(41, 30_136, None);
        // Values measured in two other transfers, without other load: over a link of 25 Mb/s, then
        // with pauses between writes. Such waits are no contention.
        woken(12, 1_745, None);
        woken(41, 8_623, None);
        // Values measured in two transfers while another program occupied the CPU half of the time.
        // Such waits are contention.
        woken(500, 21_000, Some(0.458));
        woken(300, 30_000, Some(0.24));
    }
}
