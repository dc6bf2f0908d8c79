//! The counts that were accepted, as the file that keeps them: docs/instructions.toml.

use crate::error::Error;
use crate::workspace::root;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

const FILE: &str = "docs/instructions.toml";
pub(super) const HEAD: &str = "\
# Instructions a unit, both ends together, as callgrind counts them; `cargo xtask instructions` compares, and
# `cargo xtask instructions --accept` writes this file. Units: a data segment (connection, bulk, bulk-acks, bulk-batch),
# one that is delivered over a path of 10 ms, without loss and with 1 % (path, path-loss), a round trip (ping-pong), a
# connection opened and closed (connect). Of a data segment of `connection`, data-arm is what the connection that receives
# it takes: prediction, the short answer, and whatever else that leads to. `protocol` is all but copies and checksums.
";

/// Counts of one work, by what is counted.
pub(crate) type Counts = BTreeMap<String, u64>;

/// All counts, and what they depend on.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub(crate) struct Kept {
    /// The compiler, and whether the processor sums in wide words.
    pub(crate) machine: String,
    pub(crate) works: BTreeMap<String, Counts>,
}

impl Kept {
    /// # Errors
    /// If the file cannot be read, or is not in its form.
    pub(crate) fn read() -> Result<Self, Error> {
        let path = path();
        let text = fs::read_to_string(&path)
            .map_err(|source| Error::Read { path: path.clone(), source })?;
        toml::from_str(&text).map_err(|source| Error::Counts { path, source })
    }

    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&self) -> Result<(), Error> {
        let path = path();
        fs::write(&path, self.text()).map_err(|source| Error::Keep { path, source })
    }

    fn text(&self) -> String {
        let mut text = format!("{HEAD}machine = {:?}\n", self.machine);
        for (work, counts) in &self.works {
            let _ = writeln!(text, "\n[works.{work}]");
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
    fn what_is_written_is_read_again() {
        let counts = Counts::from([("all".to_owned(), 4_650), ("protocol".to_owned(), 90)]);
        let kept = Kept {
            machine: "a machine".to_owned(),
            works: BTreeMap::from([("bulk-batch".to_owned(), counts)]),
        };
        assert_eq!(toml::from_str::<Kept>(&kept.text()).unwrap(), kept);
    }
}
