//! Measurement of the processor time and waiting time of a thread, and of the time for which the
//! hypervisor withheld the machine's CPUs.

use linerate_evidence::{EndCounters, names};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::{Duration, Instant};

/// Microseconds in a clock tick, the unit of `/proc/stat`: a tick is 10 ms (`USER_HZ` = 100).
const MICROS_PER_TICK: u64 = 10_000;

/// A measurement of the processor time and the waiting time of one thread. The measurement begins
/// when this value is created.
#[derive(Debug)]
pub(crate) struct ThreadUsage {
    began: Instant,
    /// Processor time of the thread when the measurement started.
    cpu: Duration,
    /// Time in the run queue in nanoseconds when the measurement started; `None` if the kernel does
    /// not count it.
    waited: Option<u64>,
}

impl ThreadUsage {
    /// Starts a measurement of the calling thread.
    pub(crate) fn start() -> Self {
        Self { began: Instant::now(), cpu: cpu_time(), waited: waited() }
    }

    /// Returns the usage since the start as counters. The result is empty if the kernel does not
    /// count the time in the run queue.
    pub(crate) fn counted(&self) -> EndCounters {
        let mut counters = EndCounters::default();
        self.note(&mut counters);
        counters
    }

    /// Adds the usage since the start to `counters`, the counters of the thread's end. Adds nothing
    /// if the kernel does not count the time in the run queue.
    pub(crate) fn note(&self, counters: &mut EndCounters) {
        let (time, cpu) = (self.began.elapsed(), cpu_time().saturating_sub(self.cpu));
        let (Some(before), Some(after)) = (self.waited, waited()) else { return };
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        counters.set(names::THREAD_MICROS, micros(time));
        counters.set(names::CPU_MICROS, micros(cpu));
        counters.set(names::CPU_WAIT_MICROS, after.saturating_sub(before) / 1_000);
    }
}

/// A measurement of the time for which the hypervisor withheld CPUs (steal time). It begins when
/// this value is created. The field is `None` if the kernel does not report steal time.
#[derive(Debug)]
pub(crate) struct StolenTime(Option<Stolen>);

/// The steal time of this machine since it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stolen {
    /// Sum of the steal time of all CPUs, in clock ticks.
    ticks: u64,
    /// Number of CPUs.
    cpus: u64,
}

impl StolenTime {
    /// Starts a measurement of this machine's steal time.
    pub(crate) fn start() -> Self {
        Self(stolen())
    }

    /// Adds the steal time since the start to `counters`, in microseconds. The value is the mean
    /// over all CPUs.
    pub(crate) fn note(&self, counters: &mut EndCounters) {
        let (Some(before), Some(after)) = (self.0, stolen()) else { return };
        let ticks = after.ticks.saturating_sub(before.ticks);
        let micros = ticks.saturating_mul(MICROS_PER_TICK);
        counters.set(names::STOLEN_MICROS, micros / after.cpus.max(1));
    }
}

/// Reads the steal time; returns `None` if the kernel does not report it.
fn stolen() -> Option<Stolen> {
    parse_stolen(&fs::read_to_string("/proc/stat").ok()?)
}

/// Parses the content of `/proc/stat`. The first line is the sum over all CPUs, and its eighth
/// number is the steal time. The lines that follow, one for each CPU, are only counted. Returns
/// `None` if the number is missing.
fn parse_stolen(text: &str) -> Option<Stolen> {
    let mut lines = text.lines();
    let ticks = lines.next()?.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok()?;
    let cpus = lines.take_while(|line| line.starts_with("cpu")).count() as u64;
    Some(Stolen { ticks, cpus })
}

/// Returns the processor time of the calling thread. The value in `schedstat` is not precise
/// enough: it is updated at clock ticks, and a run inside the process may be shorter than a tick.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Returns the time that the calling thread has spent in the run queue, in nanoseconds; `None` if
/// the kernel does not count it.
fn waited() -> Option<u64> {
    parse(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Parses the second number of `schedstat`, the time in the run queue in nanoseconds; `None` if it
/// is missing.
fn parse(text: &str) -> Option<u64> {
    text.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_the_kernel_are_parsed() {
        assert_eq!(parse("300 40 7\n"), Some(40));
        assert_eq!(parse("300\n"), None);
        assert_eq!(parse("none of them"), None);
    }

    #[test]
    fn stolen_time_is_that_of_all_cpus() {
        let text = "cpu  1 2 3 4 5 6 7 80 9 0\ncpu0 1 2 3 4 5 6 7 60 9 0\ncpu1 0 0\nintr 1\n";
        assert_eq!(parse_stolen(text), Some(Stolen { ticks: 80, cpus: 2 }));
        assert_eq!(parse_stolen("cpu  1 2 3\n"), None);
        assert_eq!(parse_stolen(""), None);
    }

    #[test]
    fn usage_without_figures_leaves_no_counters() {
        let mut counters = EndCounters::default();
        let cpu = Duration::ZERO;
        ThreadUsage { began: Instant::now(), cpu, waited: None }.note(&mut counters);
        assert_eq!(counters, EndCounters::default());
    }
}
