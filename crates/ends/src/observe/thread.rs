//! Processor time, run-queue wait and context switches of a thread, as the kernel counts them.

use std::fs;

/// Counters of a thread since it started. `None` means that the kernel does not provide a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadCounters {
    /// Time on a CPU in nanoseconds.
    pub(super) cpu_nanos: Option<u64>,
    /// Time in which the thread was ready but waited in a run queue, in nanoseconds.
    pub(super) queue_wait_nanos: Option<u64>,
    /// Number of context switches because the thread waited for an event.
    pub(super) voluntary_switches: Option<u64>,
    /// Number of context switches because the CPU was given to another thread.
    pub(super) involuntary_switches: Option<u64>,
}

/// The observed threads of one end (the source or the sink), as thread IDs in `/proc`. `None`
/// stands for a thread that does not exist or whose ID is unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ObservedThreads {
    /// The thread that writes or reads the data.
    pub(super) own: Option<u32>,
    /// The thread that drives linerate's host, if linerate's TCP is used.
    pub(super) host: Option<u32>,
}

/// Returns the ID of the calling thread in `/proc`; `None` if `/proc` cannot be read.
pub(super) fn own_number() -> Option<u32> {
    // The target of the symbolic link is `PID/task/TID`.
    let target = fs::read_link("/proc/thread-self").ok()?;
    target.file_name()?.to_str()?.parse().ok()
}

impl ThreadCounters {
    /// Reads the counters of a thread of this process, by its ID.
    pub(super) fn of(thread: u32) -> Self {
        let read = |file: &str| fs::read_to_string(format!("/proc/self/task/{thread}/{file}"));
        Self::parse(&read("schedstat").unwrap_or_default(), &read("status").unwrap_or_default())
    }

    /// Reads the processor time of a process's first thread, in nanoseconds, by the ID of the
    /// process. A kernel thread is a process with a single thread, so the result is its whole
    /// processor time. Returns `None` if the process does not exist.
    pub(super) fn cpu_nanos_of_process(process: u32) -> Option<u64> {
        let schedstat = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
        Self::parse(&schedstat, "").cpu_nanos
    }

    /// Parses the texts of `schedstat` (time on a CPU, time in the run queue, number of time
    /// slices) and `status`.
    fn parse(schedstat: &str, status: &str) -> Self {
        let mut words = schedstat.split_whitespace().map(|word| word.parse().ok());
        let switches = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').trim().parse().ok()
        };
        Self {
            cpu_nanos: words.next().flatten(),
            queue_wait_nanos: words.next().flatten(),
            voluntary_switches: switches("voluntary_ctxt_switches"),
            involuntary_switches: switches("nonvoluntary_ctxt_switches"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_a_thread_are_parsed() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n";
        let read = ThreadCounters::parse("300 40 7\n", status);
        assert_eq!((read.cpu_nanos, read.queue_wait_nanos), (Some(300), Some(40)));
        assert_eq!((read.voluntary_switches, read.involuntary_switches), (Some(5), Some(2)));
        assert_eq!(ThreadCounters::parse("", "none"), ThreadCounters::default());
    }

    #[test]
    fn this_thread_has_a_number_and_counters() {
        let number = own_number().unwrap();
        assert!(ThreadCounters::of(number).voluntary_switches.is_some());
        assert_eq!(ThreadCounters::of(u32::MAX), ThreadCounters::default());
        assert!(ThreadCounters::cpu_nanos_of_process(std::process::id()).is_some());
        assert_eq!(ThreadCounters::cpu_nanos_of_process(u32::MAX), None);
    }
}
