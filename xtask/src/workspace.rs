//! The packages of the workspace, as `cargo metadata` describes them.

use crate::error::Error;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// A package of the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest: PathBuf,
    /// The files in which the source of the package's library and of each program begins, such as
    /// `lib.rs`.
    pub(crate) roots: Vec<PathBuf>,
    /// The package's dependencies within the workspace.
    pub(crate) uses: Vec<Use>,
}

/// A dependency on another package of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) name: String,
    /// Is this a dev-dependency, which only tests, examples and benches use?
    pub(crate) is_dev: bool,
}

/// Returns a command that runs the `cargo` by which this program was started. The variables that
/// describe this program's package are removed from its environment. Some build scripts depend on
/// these variables, so cargo would otherwise run them again and rebuild their crates.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let bytes = name.as_encoded_bytes();
        if bytes.starts_with(b"CARGO_PKG_") || bytes.starts_with(b"CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Returns the root folder of the project.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Reads the packages of the workspace from `cargo metadata`.
pub(crate) fn read() -> Result<Vec<Package>, Error> {
    packages(&metadata(cargo(), "Cargo.toml")?)
}

/// Returns the target directory of the workspace with this manifest. Only cargo knows this
/// directory, because `CARGO_TARGET_DIR` and configuration files can change it.
pub(crate) fn target_directory(cargo: Command, manifest: &str) -> Result<PathBuf, Error> {
    Ok(text(&metadata(cargo, manifest)?, "target_directory")?.into())
}

/// Returns the metadata of the workspace with this manifest, whose path is relative to the root
/// folder.
fn metadata(mut cargo: Command, manifest: &str) -> Result<Value, Error> {
    let command = || "cargo metadata".to_owned();
    let output = cargo
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(root().join(manifest))
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|source| Error::Start { command: command(), source })?;
    if !output.status.success() {
        return Err(Error::Failed { command: command() });
    }
    serde_json::from_slice(&output.stdout).map_err(|_| Error::Metadata("JSON"))
}

/// Extracts the packages from cargo's metadata.
pub(crate) fn packages(metadata: &Value) -> Result<Vec<Package>, Error> {
    let listed = list(metadata, "packages")?;
    let names =
        listed.iter().map(|package| text(package, "name")).collect::<Result<Vec<_>, _>>()?;
    listed.iter().map(|listed| package(listed, &names)).collect()
}

fn package(listed: &Value, ours: &[&str]) -> Result<Package, Error> {
    let mut package = Package {
        name: text(listed, "name")?.to_owned(),
        manifest: text(listed, "manifest_path")?.into(),
        ..Package::default()
    };
    for target in list(listed, "targets")? {
        let is_root =
            |kind: &Value| matches!(kind.as_str(), Some("lib" | "bin" | "cdylib" | "staticlib"));
        if list(target, "kind")?.iter().any(is_root) {
            package.roots.push(text(target, "src_path")?.into());
        }
    }
    for dependency in list(listed, "dependencies")? {
        let name = text(dependency, "name")?;
        if ours.contains(&name) {
            let is_dev = dependency["kind"] == "dev";
            package.uses.push(Use { name: name.to_owned(), is_dev });
        }
    }
    Ok(package)
}

fn list<'a>(value: &'a Value, key: &'static str) -> Result<&'a Vec<Value>, Error> {
    value[key].as_array().ok_or(Error::Metadata(key))
}

fn text<'a>(value: &'a Value, key: &'static str) -> Result<&'a str, Error> {
    value[key].as_str().ok_or(Error::Metadata(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dependencies_within_the_workspace_are_read_with_their_kind() {
        let metadata = json!({ "packages": [
            { "name": "upper", "manifest_path": "/w/upper/Cargo.toml", "dependencies": [],
              "targets": [{ "kind": ["lib"], "src_path": "/w/upper/src/lib.rs" }] },
            { "name": "lower", "manifest_path": "/w/lower/Cargo.toml",
              "dependencies": [
                  { "name": "serde", "kind": null },
                  { "name": "upper", "kind": null },
                  { "name": "upper", "kind": "dev" },
              ],
              "targets": [
                  { "kind": ["bin"], "src_path": "/w/lower/src/main.rs" },
                  { "kind": ["test"], "src_path": "/w/lower/tests/laws.rs" },
              ] },
        ]});
        let [upper, lower] = &packages(&metadata).unwrap()[..] else { panic!("two packages") };
        assert!(upper.uses.is_empty());
        let used = |is_dev| Use { name: "upper".to_owned(), is_dev };
        assert_eq!(lower.uses, [used(false), used(true)]);
        assert_eq!(lower.roots, [PathBuf::from("/w/lower/src/main.rs")]);
    }

    #[test]
    fn malformed_metadata_is_refused() {
        assert!(matches!(packages(&json!({})), Err(Error::Metadata("packages"))));
        assert!(matches!(packages(&json!({ "packages": [{}] })), Err(Error::Metadata("name"))));
    }
}
