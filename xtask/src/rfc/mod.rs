//! `cargo xtask rfc`: checks the tables of requirements in `specs/`. Each requirement of an RFC
//! must have tests, or a reason why it has none, and the tests must exist. With `--run`, the tests
//! must also pass. With `--texts`, the requirements in the texts of the RFCs are counted.

mod level;
mod print;
mod proofs;
mod sentences;
mod table;

use crate::error::Error;
use crate::workspace::root;
use proofs::Proofs;
use std::fs;
use std::path::Path;
use table::{Fault, Table};

/// Checks the tables of requirements, and prints them.
pub(crate) fn run(runs_tests: bool) -> Result<(), Error> {
    let tables = read()?;
    let mut faults: Vec<_> = tables.iter().flat_map(Table::faults).collect();
    let proofs = Proofs::build()?;
    let named = || tables.iter().flat_map(Table::tests);
    faults.extend(proofs.faults_of_names(named()));
    if runs_tests {
        faults.extend(proofs.faults_of_runs(named())?);
    }
    print::print(&tables)?;
    report(&faults)
}

/// Counts the normative sentences in the texts `rfcNNNN.txt` in `folder`, and compares the counts
/// with those in the tables.
pub(crate) fn count(folder: &Path) -> Result<(), Error> {
    let mut faults = Vec::new();
    let tables = read()?;
    for table in &tables {
        faults.extend(table.faults());
        let path = folder.join(format!("rfc{}.txt", table.rfc));
        let text = fs::read_to_string(&path).map_err(|source| Error::Read { path, source })?;
        faults.extend(table.faults_of_text(&sentences::of(&text)));
    }
    print::print_counts(&tables)?;
    report(&faults)
}

/// Reads the tables of requirements, in the order of RFC numbers.
fn read() -> Result<Vec<Table>, Error> {
    let folder = root().join("specs");
    let unreadable = |source| Error::Read { path: folder.clone(), source };
    let mut tables = Vec::new();
    for entry in fs::read_dir(&folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path)
            .map_err(|source| Error::Read { path: path.clone(), source })?;
        tables.push(Table::parse(&text).map_err(|source| Error::Table { path, source })?);
    }
    tables.sort_by_key(|table| table.rfc);
    Ok(tables)
}

fn report(faults: &[Fault]) -> Result<(), Error> {
    for fault in faults {
        eprintln!("{fault}");
    }
    if faults.is_empty() { Ok(()) } else { Err(Error::Requirements { count: faults.len() }) }
}
