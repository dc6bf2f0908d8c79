//! The processor time of a thread, the time for which it waited for a processor, and the time for
//! which the hypervisor withheld the processors of the machine.

use linerate_evidence::{EndCounters, names};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::{Duration, Instant};

/// Microseconds of a clock tick of `/proc/stat`, whose unit (`USER_HZ`) is 10 ms.
const MICROS_PER_TICK: u64 = 10_000;

/// A measurement of the calling thread, from its creation to [`ThreadUsage::note`].
#[derive(Debug)]
pub(crate) struct ThreadUsage {
    began: Instant,
    /// Processor time of the thread.
    cpu: Duration,
    /// Nanoseconds in the run queue; `None` if the kernel does not count them.
    waited: Option<u64>,
}

impl ThreadUsage {
    /// Starts a measurement of the calling thread.
    pub(crate) fn start() -> Self {
        Self { began: Instant::now(), cpu: cpu_time(), waited: waited() }
    }

    /// Returns the usage since the start.
    pub(crate) fn counted(&self) -> EndCounters {
        let mut counters = EndCounters::default();
        self.note(&mut counters);
        counters
    }

    /// Adds the usage since the start to the counters of the thread's end.
    pub(crate) fn note(&self, counters: &mut EndCounters) {
        let (time, cpu) = (self.began.elapsed(), cpu_time().saturating_sub(self.cpu));
        let (Some(before), Some(after)) = (self.waited, waited()) else { return };
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        counters.set(names::THREAD_MICROS, micros(time));
        counters.set(names::CPU_MICROS, micros(cpu));
        counters.set(names::CPU_WAIT_MICROS, after.saturating_sub(before) / 1_000);
    }
}

/// A measurement of stolen time, from its creation to [`StolenTime::note`].
#[derive(Debug)]
pub(crate) struct StolenTime(Option<Stolen>);

/// Clock ticks that the hypervisor withheld from all CPUs together, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stolen {
    ticks: u64,
    cpus: u64,
}

impl StolenTime {
    /// Starts a measurement of this machine.
    pub(crate) fn start() -> Self {
        Self(stolen())
    }

    /// Adds the mean time that was stolen from a CPU since the start to the counters of an end.
    pub(crate) fn note(&self, counters: &mut EndCounters) {
        let (Some(before), Some(after)) = (self.0, stolen()) else { return };
        let ticks = after.ticks.saturating_sub(before.ticks);
        let micros = ticks.saturating_mul(MICROS_PER_TICK);
        counters.set(names::STOLEN_MICROS, micros / after.cpus.max(1));
    }
}

fn stolen() -> Option<Stolen> {
    parse_stolen(&fs::read_to_string("/proc/stat").ok()?)
}

/// Parses `/proc/stat`: the eighth figure of the sum of all CPUs, and the number of CPUs.
fn parse_stolen(text: &str) -> Option<Stolen> {
    let mut lines = text.lines();
    let ticks = lines.next()?.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok()?;
    let cpus = lines.take_while(|line| line.starts_with("cpu")).count() as u64;
    Some(Stolen { ticks, cpus })
}

/// Returns the processor time of the calling thread. `schedstat` has it too, but counts it at clock
/// ticks only, which are longer than a run in process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn waited() -> Option<u64> {
    parse(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Parses the second figure of `schedstat`: the time in the run queue.
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
