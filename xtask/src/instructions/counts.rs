//! Reads and writes the accepted instruction counts in `docs/instructions.toml`.

use crate::error::Error;
use crate::workspace::root;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

const FILE: &str = "docs/instructions.toml";
pub(super) const HEAD: &str = "\
# Instructions for a unit of each workload, at both ends together, as counted by callgrind.
# `cargo xtask instructions` compares with them, and `cargo xtask instructions --accept` writes this
# file. The units:
# - connection, bulk, bulk-acks, bulk-batch, bulk-ipv6, bulk-batch-ipv6: a data segment
# - path, path-loss: a delivered data segment over a path of 10 ms, without loss and with 1 %
# - ping-pong: a round trip
# - connect, connect-ipv6: a connection, opened and closed
# - data-arm: a data segment of `connection`, at its receiver only
# `protocol` is everything except copies and checksums.
";

/// The number of instructions that one unit of a workload executes, by category.
pub(crate) type Counts = BTreeMap<String, u64>;

/// The counts of all workloads, with the machine for which they are valid.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub(crate) struct AllCounts {
    /// The compiler's version, and whether the processor has AVX2.
    pub(crate) machine: String,
    pub(crate) workloads: BTreeMap<String, Counts>,
}

impl AllCounts {
    /// Reads the accepted counts.
    ///
    /// # Errors
    /// The file cannot be read, or is malformed.
    pub(crate) fn read() -> Result<Self, Error> {
        let path = path();
        let text = fs::read_to_string(&path)
            .map_err(|source| Error::Read { path: path.clone(), source })?;
        toml::from_str(&text).map_err(|source| Error::Counts { path, source })
    }

    /// Writes the counts to the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self) -> Result<(), Error> {
        let path = path();
        fs::write(&path, self.text()).map_err(|source| Error::Write { path, source })
    }

    fn text(&self) -> String {
        let mut text = format!("{HEAD}machine = {:?}\n", self.machine);
        for (workload, counts) in &self.workloads {
            let _ = writeln!(text, "\n[workloads.{workload}]");
            for (what, count) in counts {
                let _ = writeln!(text, "{what} = {count}");
            }
        }
        text
    }
}

fn path() -> PathBuf {
    root().join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_counts_are_read_unchanged() {
        let counts = Counts::from([("all".to_owned(), 4_650), ("protocol".to_owned(), 90)]);
        let counts = AllCounts {
            machine: "a machine".to_owned(),
            workloads: BTreeMap::from([("bulk-batch".to_owned(), counts)]),
        };
        assert_eq!(toml::from_str::<AllCounts>(&counts.text()).unwrap(), counts);
    }
}
