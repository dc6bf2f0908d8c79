//! `cargo xtask rfc`: is each requirement of RFC 9293 accounted for, and do the tests exist, and with
//! `--run` pass, that are said to prove it?

mod print;
mod proofs;
mod table;

use crate::error::Error;
use proofs::Proofs;
use std::fs;
use std::path::PathBuf;
use table::Table;

/// Where the table lies, from the root of the workspace.
const TABLE: &str = "specs/rfc9293.toml";

/// Judges the table and prints it.
pub(crate) fn run(runs_tests: bool) -> Result<(), Error> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(TABLE);
    let text = fs::read_to_string(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
    let table = Table::parse(&text).map_err(|source| Error::Table { path, source })?;
    let mut faults = table.faults();
    let proofs = Proofs::build()?;
    faults.extend(proofs.faults_of_names(table.tests()));
    if runs_tests {
        faults.extend(proofs.faults_of_runs(table.tests())?);
    }
    print::print(&table)?;
    for fault in &faults {
        eprintln!("{fault}");
    }
    if faults.is_empty() { Ok(()) } else { Err(Error::Requirements { count: faults.len() }) }
}
