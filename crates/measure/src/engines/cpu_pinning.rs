//! Pinning of threads to CPUs. If both ends of a transfer are in this process, their two threads
//! get a CPU each.
//!
//! Without pinning, the scheduler sometimes places two threads that wake each other on one CPU,
//! where the threads share a cache. At other times it places them on two CPUs, where each thread
//! waits for interrupts from the other CPU. The throughput of these two placements differs by a
//! factor of ten, which would hide the effect of the buffers.

use rustix::process::{getpid, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Nice value of a measured thread, which is the highest priority.
const HIGHEST_PRIORITY: i32 = -20;

/// The end of a transfer to which a pinned thread belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PinnedThread {
    /// The thread that sends.
    Source,
    /// The thread that receives.
    Sink,
}

impl PinnedThread {
    /// Raises the priority of the calling thread, and pins the thread to the CPU for this end of
    /// the transfer. Without the permission, the priority stays as it is. If the process may use
    /// only one CPU, the thread is not pinned.
    pub(crate) fn pin(self) {
        // On Linux, the call affects only the calling thread. If one other program competes for the
        // CPU, a thread with this nice value gets 99 % of it. Errors are ignored, because the
        // process may lack the permission.
        let _ = setpriority_process(None, HIGHEST_PRIORITY);
        let Some([first, second]) = two_cpus() else { return };
        pin_to(if self == Self::Source { first } else { second });
    }

    /// Do the source's thread and the sink's thread have a CPU each?
    pub(crate) fn are_separate() -> bool {
        two_cpus().is_some()
    }

    /// Describes on which CPUs the source's thread and the sink's thread run, for the facts of a
    /// sweep.
    pub(crate) fn describe() -> String {
        match two_cpus() {
            Some([first, second]) => format!("source on CPU {first}, sink on CPU {second}"),
            None => "both ends on the only CPU that this process may use".to_owned(),
        }
    }
}

/// Pins the calling thread to a CPU. Errors are ignored, because the process may lack the
/// permission.
pub(crate) fn pin_to(cpu: usize) {
    let mut own = CpuSet::new();
    own.set(cpu);
    let _ = sched_setaffinity(None, &own);
}

/// Returns a CPU other than the current CPU of the calling thread; `None` if the process may use
/// only one CPU.
pub(crate) fn another_cpu() -> Option<usize> {
    let current = sched_getcpu();
    two_cpus()?.into_iter().find(|&cpu| cpu != current)
}

/// Returns the first two CPUs that the process may use; `None` if there is only one. The CPUs are
/// those of the main thread, which is never pinned, whereas the calling thread may be pinned to one
/// of them.
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
