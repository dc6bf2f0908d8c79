//! Facts about a sweep that its plan does not contain: the machine, the software versions and the
//! bench.

use crate::bench_facts::BenchFacts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts about a sweep that its plan does not contain: the machine, the software versions and the
/// bench.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Time at which the sweep started, in UTC, such as `2026-01-31T22:05:00Z`.
    pub started: String,
    /// The words of the command line that started the sweep.
    pub options: Vec<String>,
    /// The machine on which the sweep ran.
    pub machine: MachineFacts,
    /// The processor of the machine.
    pub cpu: CpuFacts,
    /// Kernel name, release and build.
    pub kernel: String,
    /// Kernel settings that affect TCP or the processor, by their `sysctl` names.
    pub sysctls: BTreeMap<String, String>,
    /// Versions of linerate and its compiler.
    pub versions: Versions,
    /// Properties of the bench that made the runs.
    pub bench: BenchFacts,
}

/// Facts about the machine on which a sweep ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// Name of the host.
    pub name: String,
    /// Architecture of the machine's processors.
    pub architecture: String,
    /// Size of the machine's memory in bytes; `None` if the kernel does not report it.
    pub memory_bytes: Option<u64>,
    /// Whether the machine is virtual.
    pub virtual_machine: bool,
    /// Load averages over 1, 5 and 15 minutes when the sweep started; `None` if the kernel does not
    /// report them.
    pub load_average: Option<String>,
}

/// Facts about the processor of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuFacts {
    /// Name of the processor's model.
    pub model: String,
    /// Number of cores that this process may use.
    pub cores: usize,
    /// Frequency governor of the processor (`scaling_governor`); `None` if the kernel does not
    /// report one.
    pub governor: Option<String>,
}

/// Versions of linerate and its compiler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Version of linerate.
    pub linerate: String,
    /// Git commit of the build; `None` if linerate was not built from a Git checkout.
    pub commit: Option<String>,
    /// Version of the Rust compiler.
    pub rustc: String,
    /// Whether the build is not optimised. Its rates then say nothing about the optimised program.
    pub debug_build: bool,
}

impl Facts {
    /// Describes the first difference between these facts and the `later` facts of a resumed sweep
    /// in processor, kernel, versions or bench. Such a difference makes the measurements before and
    /// after the interruption incomparable. Returns `None` if there is no difference.
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

impl Versions {
    /// Formats the versions as one line of text.
    #[must_use]
    pub fn text(&self) -> String {
        let commit = self.commit.as_ref().map_or_else(String::new, |commit| format!(" ({commit})"));
        let debug = if self.debug_build { ", debug build" } else { "" };
        format!("linerate {}{commit}, {}{debug}", self.linerate, self.rustc)
    }
}
