//! Checks the attributes and lints that every crate must have.

use super::arrow::Row;
use super::fault::Fault;

/// Returns the attributes that are missing in the root file of a library or program.
pub(crate) fn faults_of_root(row: &Row, file: &str, text: &str) -> Vec<Fault> {
    let says = |attribute: &str| text.lines().any(|line| line.trim_end() == attribute);
    let mut faults = Vec::new();
    let mut demand = |is_met: bool, attribute: &'static str| {
        if !is_met {
            faults.push(Fault::Root { file: file.to_owned(), attribute });
        }
    };
    let (forbids, denies) = ("#![forbid(unsafe_code)]", "#![deny(unsafe_code)]");
    if row.may_be_unsafe {
        demand(says(forbids) || says(denies), denies);
    } else {
        demand(says(forbids), forbids);
    }
    if row.is_no_std {
        demand(says("#![no_std]"), "#![no_std]");
    }
    faults
}

/// Returns a fault if the manifest of a package does not inherit the lints of the workspace.
pub(crate) fn faults_of_manifest(name: &str, text: &str) -> Vec<Fault> {
    let mut section = "";
    let inherits_lints = text.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            section = line;
        }
        section == "[lints]" && line.split_whitespace().eq(["workspace", "=", "true"])
    });
    if inherits_lints { Vec::new() } else { vec![Fault::Lints { name: name.to_owned() }] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::arrow::row;

    fn attributes(name: &str, text: &str) -> Vec<&'static str> {
        let faults = faults_of_root(row(name).unwrap(), "lib.rs", text);
        faults
            .into_iter()
            .map(|fault| match fault {
                Fault::Root { attribute, .. } => attribute,
                other => panic!("{other}"),
            })
            .collect()
    }

    #[test]
    fn a_crate_forbids_or_denies_unsafe_code() {
        assert_eq!(
            attributes("linerate-report", "//! Report.\n\n#![forbid(unsafe_code)]\n"),
            [""; 0]
        );
        assert_eq!(
            attributes("linerate-report", "#![deny(unsafe_code)]\n"),
            ["#![forbid(unsafe_code)]"]
        );
        assert_eq!(
            attributes("linerate-report", "// #![forbid(unsafe_code)]\n"),
            ["#![forbid(unsafe_code)]"]
        );
        assert_eq!(attributes("linerate-link", "#![deny(unsafe_code)]\n"), [""; 0]);
        assert_eq!(attributes("linerate-link", "\n"), ["#![deny(unsafe_code)]"]);
    }

    #[test]
    fn inner_crates_are_no_std() {
        assert_eq!(attributes("linerate-tcp", "#![forbid(unsafe_code)]\n"), ["#![no_std]"]);
        assert_eq!(attributes("linerate-tcp", "#![no_std]\n#![forbid(unsafe_code)]\n"), [""; 0]);
    }

    #[test]
    fn a_manifest_inherits_the_workspace_lints() {
        assert!(
            faults_of_manifest("a", "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n")
                .is_empty()
        );
        for text in
            ["[package]\n", "[lints]\n[other]\nworkspace = true\n", "[lints]\nworkspace = false\n"]
        {
            assert!(matches!(faults_of_manifest("a", text)[..], [Fault::Lints { .. }]), "{text}");
        }
    }
}
