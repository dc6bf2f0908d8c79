//! The machine, the program versions and the bench of a result.

use crate::bench_facts::BenchFacts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything about a sweep that is not in its plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Time of the start, in UTC.
    pub started: String,
    /// The command line.
    pub options: Vec<String>,
    /// The machine.
    pub machine: MachineFacts,
    /// The processor of the machine.
    pub cpu: CpuFacts,
    /// Kernel name, release and build.
    pub kernel: String,
    /// Kernel settings that affect TCP or the processor, by their `sysctl` names.
    pub sysctls: BTreeMap<String, String>,
    /// The program versions.
    pub versions: Versions,
    /// The bench.
    pub bench: BenchFacts,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// Name of the host.
    pub name: String,
    /// Architecture of the machine's processors.
    pub architecture: String,
    /// Memory of the machine, in bytes.
    pub memory_bytes: Option<u64>,
    /// Whether the machine is a virtual one.
    pub virtual_machine: bool,
    /// Load averages of 1, 5 and 15 minutes at the start.
    pub load_average: Option<String>,
}

/// The processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuFacts {
    /// Its model.
    pub model: String,
    /// Number of cores that this process may use.
    pub cores: usize,
    /// The frequency governor, if the kernel reports one.
    pub governor: Option<String>,
}

/// The program versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Version of linerate.
    pub linerate: String,
    /// Commit of the build, if it was built from a checkout.
    pub commit: Option<String>,
    /// Version of the compiler.
    pub rustc: String,
    /// Whether the build lacks optimisation, so that its rates are not meaningful.
    pub debug_build: bool,
}

impl Facts {
    /// Returns the first difference, in words, that makes measurements of `later` incomparable with
    /// those of `self`.
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
    /// Returns all versions in one line.
    #[must_use]
    pub fn text(&self) -> String {
        let commit = self.commit.as_ref().map_or_else(String::new, |commit| format!(" ({commit})"));
        let debug = if self.debug_build { ", debug build" } else { "" };
        format!("linerate {}{commit}, {}{debug}", self.linerate, self.rustc)
    }
}
