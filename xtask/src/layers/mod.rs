//! `cargo xtask layers`: checks the workspace against the architecture.

mod arrow;
mod attributes;
mod fault;

use crate::error::Error;
use crate::workspace::{self, Package, Use};
use arrow::{Row, TESTKIT};
use attributes::{faults_of_manifest, faults_of_root};
use fault::Fault;
use std::fs;
use std::path::Path;

/// Checks all packages of the workspace, and prints violations of the architecture.
pub(crate) fn run() -> Result<(), Error> {
    let mut faults = Vec::new();
    for package in workspace::read()? {
        faults.extend(faults_of_dependencies(&package));
        faults.extend(faults_of_manifest(&package.name, &read(&package.manifest)?));
        let Some(row) = arrow::row(&package.name) else { continue };
        for root in &package.roots {
            faults.extend(faults_of_root(row, &root.display().to_string(), &read(root)?));
        }
    }
    for fault in &faults {
        eprintln!("{fault}");
    }
    if faults.is_empty() { Ok(()) } else { Err(Error::Layers { count: faults.len() }) }
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Returns the dependencies of a package that the architecture does not allow.
fn faults_of_dependencies(package: &Package) -> Vec<Fault> {
    let Some(row) = arrow::row(&package.name) else {
        return vec![Fault::Unknown { name: package.name.clone() }];
    };
    package.uses.iter().filter_map(|used| fault_of_use(row, used)).collect()
}

fn fault_of_use(row: &Row, used: &Use) -> Option<Fault> {
    let is_allowed = match used.name.as_str() {
        TESTKIT => used.is_dev && row.name != "xtask",
        name => row.may_use(name),
    };
    if is_allowed {
        return None;
    }
    // The message quotes the sentence of the row that forbids the use. If the used crate is the
    // testkit, that is the row of the testkit, which says which crates may use it. Otherwise it is
    // the row of the crate that has the dependency.
    let forbids = if used.name == TESTKIT { arrow::row(TESTKIT)? } else { row };
    Some(Fault::ForbiddenUse {
        name: row.name.to_owned(),
        used: used.name.clone(),
        sentence: forbids.sentence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the faults of a package with the dependencies `uses`; true marks a dev-dependency.
    fn faults(name: &str, uses: &[(&str, bool)]) -> Vec<String> {
        let uses =
            uses.iter().map(|&(name, is_dev)| Use { name: name.to_owned(), is_dev }).collect();
        let package = Package { name: name.to_owned(), uses, ..Package::default() };
        faults_of_dependencies(&package).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_crate_may_use_all_earlier_layers() {
        let above =
            ["linerate-link", "linerate-stack", "linerate-tcp", "linerate-wire", "linerate-units"];
        assert_eq!(faults("linerate-sockets", &above.map(|name| (name, false))), [""; 0]);
    }

    #[test]
    fn a_forbidden_dependency_fails_with_the_sentence_of_the_crate() {
        let [fault] =
            &faults("linerate-tcp", &[("linerate-wire", false), ("linerate-stack", false)])[..]
        else {
            panic!("one fault");
        };
        assert!(
            fault.starts_with("linerate-tcp must not use linerate-stack: tcp knows one connection"),
            "{fault}"
        );
    }

    #[test]
    fn dev_dependencies_are_checked_too() {
        assert_eq!(faults("linerate-link", &[("linerate-sim", true)]).len(), 1);
        assert_eq!(faults("linerate-wire", &[("linerate-units", true)]).len(), 1);
    }

    #[test]
    fn the_testkit_may_only_be_a_dev_dependency() {
        assert_eq!(faults("linerate-tcp", &[(TESTKIT, true)]), [""; 0]);
        let [fault] = &faults("linerate-measure", &[(TESTKIT, false)])[..] else {
            panic!("one fault")
        };
        assert!(fault.ends_with("is never more than a dev-dependency"), "{fault}");
    }

    #[test]
    fn xtask_uses_no_crate_of_ours() {
        assert_eq!(faults("xtask", &[("linerate-units", false), (TESTKIT, true)]).len(), 2);
    }

    #[test]
    fn a_crate_without_a_row_is_a_fault() {
        let [fault] = &faults("linerate-new", &[("linerate-units", false)])[..] else {
            panic!("one fault")
        };
        assert!(fault.contains("add a row with a sentence"), "{fault}");
    }
}
