//! The processor, its clock, and what else it is doing.

use super::finding::Finding;
use linerate_ends::{Interrupt, machine};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// How long the load is watched.
const WATCH: Duration = Duration::from_millis(250);
/// Readings of the clock, of which the quickest two in a row count.
const READINGS: usize = 2_000;
/// A clock that costs more to read than this is not read in the processor.
const SLOW_CLOCK: Duration = Duration::from_nanos(500);
/// More of the machine's time than this, spent on others, shows in a measurement.
const BUSY_PERCENT: u64 = 10;

pub(super) fn build() -> Finding {
    if cfg!(debug_assertions) {
        return Finding::bad(
            "build",
            "without optimisation",
            "figures of every command say little about the protocol",
            "build it with `cargo build --release`",
        );
    }
    Finding::good("build", "optimised", "figures are worth keeping")
}

pub(super) fn cores() -> Finding {
    judge_cores(thread::available_parallelism().map_or(1, usize::from))
}

fn judge_cores(cores: usize) -> Finding {
    if cores < 2 {
        let remedy = "give this machine, container or CPU set a second core";
        return Finding::bad("cores", "1", "both ends of a sweep take turns on one core", remedy);
    }
    Finding::good("cores", cores.to_string(), "each end of a sweep has its own")
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
        (_, true) => Finding::good("AVX2", "present", "linerate's TCP takes its fast checksum"),
        ("x86_64", false) => Finding::bad(
            "AVX2",
            "absent",
            "linerate's TCP takes its portable checksum, which a sweep --on stack shows",
            "in a virtual machine, pass the host's processor through",
        ),
        (other, false) => Finding::good(
            "AVX2",
            format!("none on {other}"),
            "linerate's TCP takes its portable checksum",
        ),
    }
}

pub(super) fn governor() -> Finding {
    judge_governor(machine::governor().as_deref())
}

fn judge_governor(governor: Option<&str>) -> Finding {
    match governor {
        None => Finding::good("frequency", "not this system's to choose", "nothing to set"),
        Some("performance") => {
            Finding::good("frequency", "performance", "the same from the first run to the last")
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
    let found = format!("{source}, {} ns a reading", cost.as_nanos());
    if cost > SLOW_CLOCK {
        return Finding::bad(
            "clock",
            found,
            "time is asked of a device: every timer and mark of a run pays for it",
            "choose tsc or the hypervisor's own in /sys/devices/system/clocksource/clocksource0",
        );
    }
    Finding::good("clock", found, "runs are timed to well under a microsecond")
}

fn cost_of_reading() -> Duration {
    let readings: Vec<Instant> = (0..READINGS).map(|_| Instant::now()).collect();
    let steps = readings.windows(2).map(|pair| pair[1] - pair[0]);
    // A coarse clock stands still between its ticks; the whole of the readings still tells their
    // cost.
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
            "something else shares the processor: sweeps drift and their intervals grow",
            "end what else runs, and look again",
        );
    }
    Finding::good("load", found, "a sweep has the machine to itself")
}

/// How the processors spent their time, in ticks since the start.
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

    /// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal …
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
    fn one_core_is_too_few() {
        assert!(!judge_cores(1).good && judge_cores(2).good);
    }

    #[test]
    fn avx2_is_missed_only_where_it_could_be() {
        assert!(judge_avx2("x86_64", true).good);
        assert!(!judge_avx2("x86_64", false).good);
        assert!(judge_avx2("aarch64", false).good);
    }

    #[test]
    fn a_governor_that_changes_its_mind_is_named() {
        assert!(judge_governor(None).good && judge_governor(Some("performance")).good);
        let finding = judge_governor(Some("schedutil"));
        assert!(!finding.good && finding.found == "schedutil");
    }

    #[test]
    fn a_clock_that_is_a_device_is_slow() {
        assert!(judge_clock("tsc", Duration::from_nanos(25)).good);
        assert!(!judge_clock("acpi_pm", Duration::from_micros(1)).good);
    }

    #[test]
    fn the_load_is_what_is_neither_idle_nor_waiting() {
        let before = CpuTime::parse("cpu  100 0 50 1000 20 3 7 5 0 0\ncpu0 …\n");
        assert_eq!(before, CpuTime { busy: 160, stolen: 5, whole: 1_185 });
        let after = CpuTime::parse("cpu  130 0 60 1050 20 3 7 15 0 0\n");
        let finding = judge_load(after.since(before));
        assert_eq!(finding.found, "40 % busy, 10 % taken by the hypervisor");
        assert!(!finding.good);
        assert!(judge_load(CpuTime::parse("garbage")).good);
    }
}
