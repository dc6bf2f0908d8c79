//! `cargo xtask layers`: does the workspace obey the arrow?

use crate::arrow::{self, Row, TESTKIT};
use crate::error::Error;
use crate::source::{faults_of_manifest, faults_of_root};
use crate::workspace::{self, Package, Use};
use std::fs;
use std::path::Path;

/// Something that the architecture does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// A package has no row in the table.
    #[error(
        "{name} has no place in the architecture: give it a row and a sentence in xtask/src/arrow.rs"
    )]
    Unknown {
        /// The package.
        name: String,
    },
    /// A dependency against the arrow.
    #[error("{name} must not use {used}: {sentence}")]
    WrongWay {
        /// The package.
        name: String,
        /// What it uses.
        used: String,
        /// The sentence of the row that forbids it.
        sentence: &'static str,
    },
    /// The first file of a crate lacks an attribute.
    #[error("{file} does not say {attribute}")]
    Root {
        /// The file.
        file: String,
        /// The attribute.
        attribute: &'static str,
    },
    /// A package goes without the lints of the workspace.
    #[error("the manifest of {name} does not say [lints] workspace = true")]
    Lints {
        /// The package.
        name: String,
    },
}

/// Reads the workspace and prints what is wrong with it.
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

/// The dependencies of a package that the arrow does not allow.
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
    // Whoever uses the testkit may be in its own place: it is the testkit that is not.
    let forbids = if used.name == TESTKIT { arrow::row(TESTKIT)? } else { row };
    Some(Fault::WrongWay {
        name: row.name.to_owned(),
        used: used.name.clone(),
        sentence: forbids.sentence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The faults of a package that uses these, of which some only in tests.
    fn faults(name: &str, uses: &[(&str, bool)]) -> Vec<String> {
        let uses =
            uses.iter().map(|&(name, is_dev)| Use { name: name.to_owned(), is_dev }).collect();
        let package = Package { name: name.to_owned(), uses, ..Package::default() };
        faults_of_dependencies(&package).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_crate_may_use_everything_above_it() {
        let above =
            ["linerate-link", "linerate-stack", "linerate-tcp", "linerate-wire", "linerate-units"];
        assert_eq!(faults("linerate-sockets", &above.map(|name| (name, false))), [""; 0]);
    }

    #[test]
    fn an_arrow_the_wrong_way_fails_with_the_sentence_of_the_crate() {
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
    fn a_test_obeys_the_arrow_too() {
        assert_eq!(faults("linerate-link", &[("linerate-sim", true)]).len(), 1);
        assert_eq!(faults("linerate-wire", &[("linerate-units", true)]).len(), 1);
    }

    #[test]
    fn the_testkit_is_for_tests_of_any_crate_and_for_nothing_else() {
        assert_eq!(faults("linerate-tcp", &[(TESTKIT, true)]), [""; 0]);
        let [fault] = &faults("linerate-lab", &[(TESTKIT, false)])[..] else { panic!("one fault") };
        assert!(fault.ends_with("is never more than a dev-dependency"), "{fault}");
    }

    #[test]
    fn xtask_uses_no_crate_of_ours() {
        assert_eq!(faults("xtask", &[("linerate-units", false), (TESTKIT, true)]).len(), 2);
    }

    #[test]
    fn a_crate_without_a_row_is_asked_for_its_sentence() {
        let [fault] = &faults("linerate-new", &[("linerate-units", false)])[..] else {
            panic!("one fault")
        };
        assert!(fault.contains("give it a row and a sentence"), "{fault}");
    }
}
