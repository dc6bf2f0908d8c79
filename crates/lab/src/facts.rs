//! The machine, the programs and the bench that a result is from.

use crate::bench::BenchFacts;
use crate::utc::Utc;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;

/// Everything about a sweep that its plan does not say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// When it began, in UTC.
    pub started: String,
    /// The words of the command line.
    pub options: Vec<String>,
    /// The machine.
    pub machine: MachineFacts,
    /// Its processor.
    pub cpu: CpuFacts,
    /// The kernel: name, release and build.
    pub kernel: String,
    /// Settings of the kernel that bear on TCP or on the CPU, by the name that `sysctl` uses.
    pub sysctls: BTreeMap<String, String>,
    /// The programs.
    pub versions: Versions,
    /// What carried the bytes.
    pub bench: BenchFacts,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// Its name.
    pub name: String,
    /// Its architecture.
    pub architecture: String,
    /// Its memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Is it a guest of another machine?
    pub virtual_machine: bool,
    /// How busy it was at the start: the load averages of 1, 5 and 15 minutes.
    pub load_average: Option<String>,
}

/// The processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuFacts {
    /// Its name.
    pub model: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Who chooses its frequency, if anybody says.
    pub governor: Option<String>,
}

/// The programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// linerate.
    pub linerate: String,
    /// The commit it is built from, if it is from a checkout.
    pub commit: Option<String>,
    /// The compiler it is built with.
    pub rustc: String,
    /// Is it built without optimisation, so that its figures mean little?
    pub debug_build: bool,
}

const SYSCTLS: &[&str] = &[
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.netdev_max_backlog",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "kernel.sched_rt_runtime_us",
];

impl Facts {
    /// What can be known now, for a sweep on `bench` that `options` asked for. What the machine does
    /// not tell is left out.
    #[must_use]
    pub fn collect(bench: BenchFacts, options: Vec<String>) -> Self {
        let cpu_info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            started: Utc::now().text(),
            options,
            machine: MachineFacts::collect(&cpu_info),
            cpu: CpuFacts::collect(&cpu_info),
            kernel: kernel(),
            sysctls: SYSCTLS
                .iter()
                .filter_map(|&name| Some((name.to_owned(), sysctl(name)?)))
                .collect(),
            versions: Versions::of_this_build(),
            bench,
        }
    }

    /// The first fact that makes measurements of `later` no continuation of those of `self`, in
    /// words.
    #[must_use]
    pub fn difference(&self, later: &Self) -> Option<String> {
        let changed = |what: &str, before: &str, after: &str| {
            (before != after).then(|| format!("{what} was `{before}` and is now `{after}`"))
        };
        let cores = |facts: &Self| facts.cpu.cores.to_string();
        changed("the processor", &self.cpu.model, &later.cpu.model)
            .or_else(|| changed("the number of cores", &cores(self), &cores(later)))
            .or_else(|| changed("the kernel", &self.kernel, &later.kernel))
            .or_else(|| changed("linerate", &self.versions.text(), &later.versions.text()))
            .or_else(|| {
                (self.bench != later.bench).then(|| "the bench is set up differently".to_owned())
            })
    }
}

impl MachineFacts {
    fn collect(cpu_info: &str) -> Self {
        Self {
            name: line_of("/proc/sys/kernel/hostname").unwrap_or_default(),
            architecture: std::env::consts::ARCH.to_owned(),
            memory_bytes: fs::read_to_string("/proc/meminfo").ok().and_then(|text| memory(&text)),
            virtual_machine: field(cpu_info, "flags")
                .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
            load_average: line_of("/proc/loadavg")
                .map(|line| line.split(' ').take(3).collect::<Vec<_>>().join(" ")),
        }
    }
}

impl CpuFacts {
    fn collect(cpu_info: &str) -> Self {
        Self {
            model: field(cpu_info, "model name").unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            governor: governor(),
        }
    }
}

impl Versions {
    /// The versions that this program is made of.
    #[must_use]
    pub fn of_this_build() -> Self {
        let commit = env!("LINERATE_COMMIT");
        Self {
            linerate: env!("CARGO_PKG_VERSION").to_owned(),
            commit: (!commit.is_empty()).then(|| commit.to_owned()),
            rustc: env!("LINERATE_RUSTC").to_owned(),
            debug_build: cfg!(debug_assertions),
        }
    }

    /// All of it in one line.
    #[must_use]
    pub fn text(&self) -> String {
        let commit = self.commit.as_ref().map_or_else(String::new, |commit| format!(" ({commit})"));
        let debug = if self.debug_build { ", debug build" } else { "" };
        format!("linerate {}{commit}, {}{debug}", self.linerate, self.rustc)
    }
}

/// Who chooses the processor's frequency, if anybody says.
pub(crate) fn governor() -> Option<String> {
    line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
}

/// The kernel: name, release and build.
pub(crate) fn kernel() -> String {
    let part = |name: &str| line_of(&format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!("{} {} {}", part("ostype"), part("osrelease"), part("version")).trim().to_owned()
}

/// A setting of the kernel, by the name that `sysctl` uses.
pub(crate) fn sysctl(name: &str) -> Option<String> {
    let value = line_of(&format!("/proc/sys/{}", name.replace('.', "/")))?;
    Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The only line of a small file.
fn line_of(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// The value of the first `key : value` of a text.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

fn memory(meminfo: &str) -> Option<u64> {
    let kibibytes: u64 = field(meminfo, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Bench;
    use crate::testing::FakeBench;

    fn facts() -> Facts {
        Facts::collect(FakeBench::new().facts(), vec!["sweep".to_owned()])
    }

    #[test]
    fn the_machine_tells_about_itself() {
        let facts = facts();
        assert!(facts.cpu.cores >= 1);
        assert!(facts.kernel.starts_with("Linux "), "{}", facts.kernel);
        assert!(facts.versions.text().contains("rustc 1."), "{}", facts.versions.text());
    }

    #[test]
    fn what_the_kernel_prints_is_read() {
        let cpu_info =
            "processor\t: 0\nmodel name\t: Example CPU @ 2.00GHz\nflags\t\t: fpu hypervisor avx2\n";
        assert_eq!(CpuFacts::collect(cpu_info).model, "Example CPU @ 2.00GHz");
        assert!(MachineFacts::collect(cpu_info).virtual_machine);
        assert_eq!(
            memory("MemTotal:       24576000 kB\nMemFree: 1 kB\n"),
            Some(24_576_000 * 1_024)
        );
    }

    #[test]
    fn another_kernel_is_no_continuation_and_another_load_is() {
        let before = facts();
        let mut after = before.clone();
        after.machine.load_average = Some("9 9 9".to_owned());
        after.started = "later".to_owned();
        assert_eq!(before.difference(&after), None);
        after.kernel = "Linux 7".to_owned();
        assert!(before.difference(&after).unwrap().ends_with("is now `Linux 7`"));
    }
}
