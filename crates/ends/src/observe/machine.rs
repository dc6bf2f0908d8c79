//! The time that each CPU has spent for each purpose, from `/proc/stat`, and the processor time of
//! the kernel's threads for software interrupts.

use super::thread::ThreadCounters;
use linerate_evidence::MachineEvidence;
use std::fs;
use std::sync::LazyLock;

/// IDs of the kernel's threads for software interrupts (`ksoftirqd`). The list is empty in a PID
/// namespace in which these threads are not visible.
static SOFTIRQ_THREADS: LazyLock<Vec<u32>> = LazyLock::new(softirq_threads);

/// The time of each CPU since the machine started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MachineCounters {
    cpus: Vec<CpuTicks>,
    /// Processor time of the kernel's threads for software interrupts, in nanoseconds; `None` if
    /// they are not visible.
    softirq_thread_nanos: Option<u64>,
}

/// The time of one CPU by purpose, in clock ticks since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTicks {
    /// Total time of the CPU, for all purposes.
    total: u64,
    /// Time without a task to run, including the time spent waiting for input and output.
    idle: u64,
    /// Time in software interrupts, in which the kernel handles received packets.
    softirq: u64,
    /// Time in which the hypervisor ran other virtual machines instead.
    steal: u64,
}

impl MachineCounters {
    /// Reads the counters of this machine.
    pub(super) fn read() -> Self {
        let threads = SOFTIRQ_THREADS.iter().map(|&id| ThreadCounters::cpu_nanos_of_process(id));
        let nanos = threads.sum::<Option<u64>>().filter(|_| !SOFTIRQ_THREADS.is_empty());
        let counters = Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default());
        Self { softirq_thread_nanos: nanos, ..counters }
    }

    /// Parses lines of `/proc/stat`: `cpuN user nice system idle iowait irq softirq steal guest
    /// guest_nice`. The last two columns are the time of guests of this machine. They are ignored,
    /// because the columns `user` and `nice` already include this time.
    fn parse(text: &str) -> Self {
        let cpu = |line: &str| {
            let rest = line.strip_prefix("cpu")?;
            let (_number, ticks) = rest.split_once(' ').filter(|(number, _)| !number.is_empty())?;
            let ticks: Vec<u64> =
                ticks.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
            let &[_, _, _, idle, iowait, _, softirq, steal] = &ticks[..] else { return None };
            Some(CpuTicks { total: ticks.iter().sum(), idle: idle + iowait, softirq, steal })
        };
        Self { cpus: text.lines().filter_map(cpu).collect(), softirq_thread_nanos: None }
    }

    /// Returns the shares of the CPUs' time between `earlier` and this moment. The field
    /// [`MachineEvidence::boot`] is not set. All values are `None` if no time has passed, or if the
    /// number of CPUs has changed.
    pub(super) fn since(&self, earlier: &Self) -> MachineEvidence {
        if self.cpus.len() != earlier.cpus.len() {
            return MachineEvidence::default();
        }
        let mut differences =
            self.cpus.iter().zip(&earlier.cpus).map(|(now, then)| now.since(then));
        let sum = differences.clone().fold(CpuTicks::default(), CpuTicks::plus);
        let softirq = differences
            .try_fold(0.0_f64, |most, cpu| cpu.share(cpu.softirq).map(|share| most.max(share)));
        MachineEvidence {
            steal_share: sum.share(sum.steal),
            softirq_share: softirq.filter(|_| sum.total > 0),
            idle_share: sum.share(sum.idle),
            cpus: u32::try_from(self.cpus.len()).ok().filter(|_| sum.total > 0),
            softirq_thread_nanos: self
                .softirq_thread_nanos
                .zip(earlier.softirq_thread_nanos)
                .map(|(now, then)| now.saturating_sub(then))
                .filter(|_| sum.total > 0),
            boot: None,
        }
    }
}

/// Finds the kernel's threads for software interrupts by their name, `ksoftirqd/` and the number of
/// the CPU.
fn softirq_threads() -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let id = |entry: fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        name.starts_with("ksoftirqd/").then_some(id)
    };
    processes.flatten().filter_map(id).collect()
}

/// Reads the first 64 bits of the kernel's boot ID, which is different after each start of the
/// machine. Returns `None` if the kernel does not report it.
pub(super) fn boot() -> Option<u64> {
    first_half(&fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?)
}

/// Parses the first 64 bits of a boot ID, which is a UUID; `None` if the text contains no
/// hexadecimal digits.
fn first_half(boot_id: &str) -> Option<u64> {
    let digits: String = boot_id.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).ok()
}

impl CpuTicks {
    const fn since(&self, then: &Self) -> Self {
        Self {
            total: self.total.saturating_sub(then.total),
            idle: self.idle.saturating_sub(then.idle),
            softirq: self.softirq.saturating_sub(then.softirq),
            steal: self.steal.saturating_sub(then.steal),
        }
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            total: self.total + other.total,
            idle: self.idle + other.idle,
            softirq: self.softirq + other.softirq,
            steal: self.steal + other.steal,
        }
    }

    /// Returns `part` as a share of the total time; `None` if the total is 0.
    #[allow(clippy::cast_precision_loss, reason = "a share, shown with three digits")]
    fn share(self, part: u64) -> Option<f64> {
        (self.total > 0).then(|| part as f64 / self.total as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_differences_of_ticks() {
        let then =
            MachineCounters::parse("cpu 9 9\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\n");
        let now = MachineCounters::parse(
            "cpu  9 9 9\ncpu0 10 0 10 60 0 0 20 0 0 0\ncpu1 50 0 20 20 0 0 0 10 0 0\nintr 5\n",
        );
        let shares = now.since(&then);
        assert_eq!((shares.steal_share, shares.softirq_share), (Some(0.05), Some(0.2)));
        assert_eq!((shares.idle_share, shares.cpus), (Some(0.4), Some(2)));
        assert_eq!(shares.softirq_thread_nanos, None);
        let with = |counters, nanos| MachineCounters { softirq_thread_nanos: nanos, ..counters };
        let shares = with(now, Some(350)).since(&with(then, Some(100)));
        assert_eq!(shares.softirq_thread_nanos, Some(250));
    }

    #[test]
    fn both_ends_of_this_machine_read_the_same_boot_id() {
        assert_eq!(
            first_half("01234567-89ab-cdef-0123-456789abcdef\n"),
            Some(0x0123_4567_89ab_cdef)
        );
        assert_eq!(first_half(""), None);
        assert_eq!(boot(), boot());
    }

    #[test]
    fn unknown_text_has_no_shares() {
        let none = MachineCounters::parse("cpu0 1 2\ncpux\n");
        assert_eq!(none.since(&none), MachineEvidence::default());
        let one = MachineCounters::parse("cpu0 1 1 1 1 1 1 1 1\n");
        assert_eq!(one.since(&none), MachineEvidence::default());
        assert_eq!(one.since(&one).steal_share, None, "no time has passed");
    }
}
