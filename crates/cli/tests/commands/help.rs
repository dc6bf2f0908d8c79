//! Tests of `linerate --help` and `linerate --version`.

use super::folder::succeed;
use std::path::Path;

#[test]
fn the_help_of_sweep() {
    insta::assert_snapshot!(succeed(Path::new("."), &["sweep", "--help"]));
}

#[test]
fn the_version_is_one_line() {
    let version = succeed(Path::new("."), &["--version"]);
    assert_eq!(version, format!("linerate {}\n", env!("CARGO_PKG_VERSION")));
}
