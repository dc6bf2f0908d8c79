//! Where the two ends of a transfer inside this process work: each on a CPU of its own.
//!
//! Left alone, the scheduler puts two threads that keep waking each other now on one CPU, where
//! they share a cache, now on two, where each waits for the other's interrupt. The two are a factor
//! of ten apart, and a cell would show which it was rather than what its buffers do.

use rustix::process::getpid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seat {
    Source,
    Sink,
}

impl Seat {
    /// Ties the calling thread to its CPU. Where the process may use only one, or may not choose,
    /// the thread stays where the scheduler puts it.
    pub(crate) fn take(self) {
        let Some([first, second]) = two_cpus() else { return };
        let mut own = CpuSet::new();
        own.set(if self == Self::Source { first } else { second });
        // A refusal leaves things as they were, which `describe` does not hide: it asks the same.
        let _ = sched_setaffinity(None, &own);
    }

    /// Has each end a CPU of its own?
    pub(crate) fn are_two() -> bool {
        two_cpus().is_some()
    }

    /// Where the two ends are, for the facts of a result.
    pub(crate) fn describe() -> String {
        match two_cpus() {
            Some([first, second]) => format!("source on CPU {first}, sink on CPU {second}"),
            None => "both ends on the one CPU that this process may use".to_owned(),
        }
    }
}

/// The first two CPUs that this process may use: its first thread, which is never tied to one.
fn two_cpus() -> Option<[usize; 2]> {
    let allowed = sched_getaffinity(Some(getpid())).ok()?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    Some([cpus.next()?, cpus.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_sit_on_different_cpus_if_there_are_two() {
        let Some(seats) = two_cpus() else { return };
        let taken = [Seat::Source, Seat::Sink].map(|seat| {
            let thread = std::thread::spawn(move || {
                seat.take();
                let own = sched_getaffinity(None).unwrap();
                (0..CpuSet::MAX_CPU).filter(|&cpu| own.is_set(cpu)).collect::<Vec<_>>()
            });
            thread.join().unwrap()
        });
        assert_eq!(taken, seats.map(|cpu| vec![cpu]));
        assert!(Seat::describe().contains("source on CPU"));
    }
}
