//! Pins the two ends of a transfer inside this process to one CPU each.
//!
//! Otherwise the scheduler places two threads that wake each other sometimes on one CPU, where they
//! share a cache, and sometimes on two, where each waits for interrupts of the other. The rates
//! differ by a factor of ten, and a cell would show the placement rather than the effect of its
//! buffers.

use rustix::process::{getpid, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The nice value of a measured thread.
const HIGHEST_PRIORITY: i32 = -20;

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PinnedThread {
    Source,
    Sink,
}

impl PinnedThread {
    /// Raises the priority of the calling thread, and pins it to its CPU. Does what is allowed: the
    /// process may have only one CPU, may not choose, or may not raise its priority.
    pub(crate) fn pin(self) {
        // Linux changes the priority of the calling thread only. The lowest nice value leaves 99 %
        // of a CPU to it, against one other program. Errors are ignored: it may not be allowed.
        let _ = setpriority_process(None, HIGHEST_PRIORITY);
        let Some([first, second]) = two_cpus() else { return };
        pin_to(if self == Self::Source { first } else { second });
    }

    /// Does each end have its own CPU?
    pub(crate) fn are_separate() -> bool {
        two_cpus().is_some()
    }

    /// Describes the placement, for the facts of a result.
    pub(crate) fn describe() -> String {
        match two_cpus() {
            Some([first, second]) => format!("source on CPU {first}, sink on CPU {second}"),
            None => "both ends on the only CPU that this process may use".to_owned(),
        }
    }
}

/// Pins the calling thread to a CPU. Errors are ignored: the caller cannot depend on success.
pub(crate) fn pin_to(cpu: usize) {
    let mut own = CpuSet::new();
    own.set(cpu);
    let _ = sched_setaffinity(None, &own);
}

/// Returns a CPU other than that of the calling thread.
pub(crate) fn another_cpu() -> Option<usize> {
    let current = sched_getcpu();
    two_cpus()?.into_iter().find(|&cpu| cpu != current)
}

/// Returns the first two CPUs that the process may use. Asks the main thread, which is never
/// pinned.
fn two_cpus() -> Option<[usize; 2]> {
    let allowed = sched_getaffinity(Some(getpid())).ok()?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    Some([cpus.next()?, cpus.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_run_on_different_cpus_if_possible() {
        let Some(seats) = two_cpus() else { return };
        let taken = [PinnedThread::Source, PinnedThread::Sink].map(|end| {
            let thread = std::thread::spawn(move || {
                end.pin();
                let own = sched_getaffinity(None).unwrap();
                (0..CpuSet::MAX_CPU).filter(|&cpu| own.is_set(cpu)).collect::<Vec<_>>()
            });
            thread.join().unwrap()
        });
        assert_eq!(taken, seats.map(|cpu| vec![cpu]));
        assert!(PinnedThread::describe().contains("source on CPU"));
    }
}
