//! Checks the processor, its clock and its load.

use super::finding::Finding;
use linerate_ends::{Interrupt, machine};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Duration over which the load is measured.
const WATCH: Duration = Duration::from_millis(250);
/// Number of readings of the clock, from which the shortest interval between two of them is
/// determined.
const READINGS: usize = 2_000;
/// Maximum time of a clock reading if the clock is a register of the processor. If a reading takes
/// longer, the clock must be a device.
const SLOW_CLOCK: Duration = Duration::from_nanos(500);
/// Minimum percentage of processor time used by other programs at which they disturb measurements.
const BUSY_PERCENT: u64 = 10;

pub(super) fn build() -> Finding {
    if cfg!(debug_assertions) {
        return Finding::bad(
            "build",
            "without optimisation",
            "results of every command say little about the protocol",
            "build it with `cargo build --release`",
        );
    }
    Finding::good("build", "optimised", "results are meaningful")
}

pub(super) fn cores() -> Finding {
    judge_cores(thread::available_parallelism().map_or(1, usize::from))
}

fn judge_cores(cores: usize) -> Finding {
    if cores < 2 {
        let remedy = "give this machine, container or CPU set a second core";
        return Finding::bad("cores", "1", "both ends of a sweep share one core", remedy);
    }
    Finding::good("cores", cores.to_string(), "each end of a sweep has its own core")
}

pub(super) fn avx2() -> Finding {
    judge_avx2(std::env::consts::ARCH, has_avx2())
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
const fn has_avx2() -> bool {
    false
}

fn judge_avx2(architecture: &str, present: bool) -> Finding {
    match (architecture, present) {
        (_, true) => Finding::good("AVX2", "present", "linerate's TCP uses its fast checksum"),
        ("x86_64", false) => Finding::bad(
            "AVX2",
            "absent",
            "linerate's TCP uses its portable checksum, which slows down sweep --on stack",
            "in a virtual machine, expose the host's processor",
        ),
        (other, false) => Finding::good(
            "AVX2",
            format!("none on {other}"),
            "linerate's TCP uses its portable checksum",
        ),
    }
}

pub(super) fn governor() -> Finding {
    judge_governor(machine::governor().as_deref())
}

fn judge_governor(governor: Option<&str>) -> Finding {
    match governor {
        None => Finding::good("frequency", "not chosen by this system", "nothing to set"),
        Some("performance") => {
            Finding::good("frequency", "performance", "constant from the first run to the last")
        }
        Some(other) => Finding::bad(
            "frequency",
            other,
            "the first runs of a sweep may be slower than the rest",
            "`cpupower frequency-set -g performance` for the night",
        ),
    }
}

pub(super) fn clock() -> Finding {
    let source =
        fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let source = source.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned());
    judge_clock(&source, cost_of_reading())
}

fn judge_clock(source: &str, cost: Duration) -> Finding {
    let found = format!("{source}, {} ns per reading", cost.as_nanos());
    if cost > SLOW_CLOCK {
        return Finding::bad(
            "clock",
            found,
            "the clock is a device: every timer and timestamp of a run is slow",
            "choose tsc or the hypervisor's clock in /sys/devices/system/clocksource/clocksource0",
        );
    }
    Finding::good("clock", found, "runs are timed to less than a microsecond")
}

fn cost_of_reading() -> Duration {
    let readings: Vec<Instant> = (0..READINGS).map(|_| Instant::now()).collect();
    let steps = readings.windows(2).map(|pair| pair[1] - pair[0]);
    // The cost of a reading is the shortest time above zero between two successive readings. If the
    // clock is coarse, this time is a whole tick, and most of the other times are zero. The mean
    // over all readings is then more exact. It is smaller, and so it is the result.
    let whole =
        (readings[READINGS - 1] - readings[0]) / u32::try_from(READINGS).unwrap_or(u32::MAX);
    steps.filter(|step| !step.is_zero()).min().unwrap_or(whole).min(whole)
}

pub(super) fn load(interrupt: &Interrupt) -> Finding {
    let before = CpuTime::read();
    if !interrupt.is_raised() {
        thread::sleep(WATCH);
    }
    judge_load(CpuTime::read().since(before))
}

fn judge_load(spent: CpuTime) -> Finding {
    let percent = |part: u64| (part * 100).checked_div(spent.whole).unwrap_or(0);
    let (busy, stolen) = (percent(spent.busy), percent(spent.stolen));
    let found = format!("{busy} % busy, {stolen} % taken by the hypervisor");
    if busy + stolen > BUSY_PERCENT {
        return Finding::bad(
            "load",
            found,
            "other programs share the processor: sweeps drift and their intervals grow",
            "end the other programs, and run this again",
        );
    }
    Finding::good("load", found, "a sweep has the machine to itself")
}

/// The time of all processors by purpose, in clock ticks since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTime {
    busy: u64,
    stolen: u64,
    whole: u64,
}

impl CpuTime {
    fn read() -> Self {
        fs::read_to_string("/proc/stat").map_or_else(|_| Self::default(), |text| Self::parse(&text))
    }

    /// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal
    /// …
    fn parse(text: &str) -> Self {
        let line = text.lines().next().unwrap_or("");
        let ticks: Vec<u64> =
            line.split_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, waiting, interrupts, soft, stolen] = ticks[..] else {
            return Self::default();
        };
        let busy = user + nice + system + interrupts + soft;
        Self { busy, stolen, whole: busy + stolen + idle + waiting }
    }

    const fn since(self, earlier: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            stolen: self.stolen.saturating_sub(earlier.stolen),
            whole: self.whole.saturating_sub(earlier.whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_core_is_bad() {
        assert!(!judge_cores(1).good && judge_cores(2).good);
    }

    #[test]
    fn missing_avx2_is_bad_only_on_x86_64() {
        assert!(judge_avx2("x86_64", true).good);
        assert!(!judge_avx2("x86_64", false).good);
        assert!(judge_avx2("aarch64", false).good);
    }

    #[test]
    fn a_governor_that_changes_the_frequency_is_bad() {
        assert!(judge_governor(None).good && judge_governor(Some("performance")).good);
        let finding = judge_governor(Some("schedutil"));
        assert!(!finding.good && finding.found == "schedutil");
    }

    #[test]
    fn a_slow_clock_is_bad() {
        assert!(judge_clock("tsc", Duration::from_nanos(25)).good);
        assert!(!judge_clock("acpi_pm", Duration::from_micros(1)).good);
    }

    #[test]
    fn the_load_excludes_idle_and_iowait() {
        let before = CpuTime::parse("cpu  100 0 50 1000 20 3 7 5 0 0\ncpu0 …\n");
        assert_eq!(before, CpuTime { busy: 160, stolen: 5, whole: 1_185 });
        let after = CpuTime::parse("cpu  130 0 60 1050 20 3 7 15 0 0\n");
        let finding = judge_load(after.since(before));
        assert_eq!(finding.found, "40 % busy, 10 % taken by the hypervisor");
        assert!(!finding.good);
        assert!(judge_load(CpuTime::parse("garbage")).good);
    }
}
