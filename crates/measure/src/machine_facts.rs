//! The facts about this machine, its kernel and its load that are recorded with a sweep.

use crate::utc::Utc;
use linerate_ends::machine;
use linerate_evidence::{BenchFacts, CpuFacts, Facts, MachineFacts, Versions};
use std::fs;

/// Names of the kernel settings that are recorded, because they affect throughput.
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

/// The command line that started a sweep, and the build of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The words of the command line.
    pub options: Vec<String>,
    /// Versions of linerate and its compiler.
    pub versions: Versions,
}

/// Collects the facts of a sweep: `bench`, the facts of the engine, and the facts of this machine.
/// A fact that the machine does not report is omitted or has a default.
pub(crate) fn collect(bench: BenchFacts, invocation: &Invocation) -> Facts {
    let cpu_info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Facts {
        started: Utc::now().text(),
        options: invocation.options.clone(),
        machine: machine(&cpu_info),
        cpu: cpu(&cpu_info),
        kernel: machine::kernel(),
        sysctls: SYSCTLS
            .iter()
            .filter_map(|&name| Some((name.to_owned(), machine::sysctl(name)?)))
            .collect(),
        versions: invocation.versions.clone(),
        bench,
    }
}

fn machine(cpu_info: &str) -> MachineFacts {
    MachineFacts {
        name: machine::line_of("/proc/sys/kernel/hostname").unwrap_or_default(),
        architecture: std::env::consts::ARCH.to_owned(),
        memory_bytes: fs::read_to_string("/proc/meminfo").ok().and_then(|text| memory(&text)),
        virtual_machine: field(cpu_info, "flags")
            .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
        load_average: machine::line_of("/proc/loadavg")
            .map(|line| line.split(' ').take(3).collect::<Vec<_>>().join(" ")),
    }
}

fn cpu(cpu_info: &str) -> CpuFacts {
    CpuFacts {
        model: field(cpu_info, "model name").unwrap_or("unknown").to_owned(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        governor: machine::governor(),
    }
}

/// Returns the value in the first line `key : value` of `text`; `None` if there is no such line.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// Returns the total memory in bytes from the content of `/proc/meminfo`; `None` if the content has
/// no valid total.
fn memory(meminfo: &str) -> Option<u64> {
    let kibibytes: u64 = field(meminfo, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_bench::invocation;
    use linerate_evidence::sample_data::bench_facts;

    fn facts() -> Facts {
        collect(bench_facts(), &invocation())
    }

    #[test]
    fn facts_of_this_machine_are_collected() {
        let facts = facts();
        assert!(facts.cpu.cores >= 1);
        assert!(facts.kernel.starts_with("Linux "), "{}", facts.kernel);
        assert_eq!(facts.versions, invocation().versions);
    }

    #[test]
    fn output_of_the_kernel_is_parsed() {
        let cpu_info =
            "processor\t: 0\nmodel name\t: Example CPU @ 2.00GHz\nflags\t\t: fpu hypervisor avx2\n";
        assert_eq!(cpu(cpu_info).model, "Example CPU @ 2.00GHz");
        assert!(machine(cpu_info).virtual_machine);
        assert_eq!(
            memory("MemTotal:       24576000 kB\nMemFree: 1 kB\n"),
            Some(24_576_000 * 1_024)
        );
    }

    #[test]
    fn a_sweep_can_resume_with_another_load_but_not_with_another_kernel() {
        let before = facts();
        let mut after = before.clone();
        after.machine.load_average = Some("9 9 9".to_owned());
        after.started = "later".to_owned();
        assert_eq!(before.difference(&after), None);
        after.kernel = "Linux 7".to_owned();
        assert!(before.difference(&after).unwrap().ends_with("is now `Linux 7`"));
    }
}
