//! The tests of the workspace, by name, and whether they pass.

use super::table::Fault;
use crate::error::Error;
use crate::workspace::{self, cargo};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An executable that contains tests.
#[derive(Debug)]
struct TestProgram {
    path: PathBuf,
    /// The directory in which the tests of the executable must run.
    folder: PathBuf,
}

/// All tests of the workspace. They are found by their names, in the form that the tables of
/// requirements use.
#[derive(Debug, Default)]
pub(crate) struct Proofs {
    programs: Vec<TestProgram>,
    /// For each test, the index of its executable in `programs`, and the name of the test in that
    /// executable.
    tests: BTreeMap<String, (usize, String)>,
}

impl Proofs {
    /// Builds all tests as `cargo test --workspace` does, and asks each executable for its list of
    /// tests.
    pub(crate) fn build() -> Result<Self, Error> {
        let packages = workspace::read()?;
        let messages =
            output(cargo().args(["test", "--workspace", "--no-run", "--message-format", "json"]))?;
        let mut proofs = Self::default();
        for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok())
        {
            let Some(path) = test_program(&message) else { continue };
            let manifest = Path::new(message["manifest_path"].as_str().unwrap_or_default());
            let package = packages.iter().find(|package| package.manifest == manifest);
            let (Some(package), Some(folder)) = (package, manifest.parent()) else { continue };
            let listed = output(Command::new(&path).arg("--list").current_dir(folder))?;
            let prefix = prefix(&package.name, &message["target"]);
            for name in names(&listed) {
                let program = proofs.programs.len();
                proofs.tests.insert(format!("{prefix}::{name}"), (program, name.to_owned()));
            }
            proofs.programs.push(TestProgram { path, folder: folder.to_owned() });
        }
        Ok(proofs)
    }

    /// Returns a fault for each name in `named` that is not the name of a test.
    pub(crate) fn faults_of_names<'a>(&self, named: impl Iterator<Item = &'a str>) -> Vec<Fault> {
        let unknown: BTreeSet<_> = named.filter(|name| !self.tests.contains_key(*name)).collect();
        unknown.into_iter().map(|name| Fault::NoTest(name.to_owned())).collect()
    }

    /// Runs the named tests that exist, and returns a fault for each test that does not pass.
    pub(crate) fn faults_of_runs<'a>(
        &self,
        named: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<Fault>, Error> {
        let mut by_program = BTreeMap::<usize, BTreeMap<&str, &str>>::new();
        for name in named {
            if let Some((program, inner)) = self.tests.get(name) {
                by_program.entry(*program).or_default().insert(inner, name);
            }
        }
        let mut faults = Vec::new();
        for (program, tests) in by_program {
            let program = &self.programs[program];
            let passed = run(program, tests.keys())?;
            let failed = tests.iter().filter(|(inner, _)| !passed.contains(**inner));
            faults.extend(failed.map(|(_, name)| Fault::NotPassed((*name).to_owned())));
        }
        Ok(faults)
    }
}

/// Runs `tests`, which are tests of one executable, and returns the names of those that pass. A
/// failed test is only missing from the result, and is not an error of this function.
fn run<'a>(
    program: &TestProgram,
    tests: impl Iterator<Item = &'a &'a str>,
) -> Result<BTreeSet<String>, Error> {
    let mut command = Command::new(&program.path);
    command.arg("--exact").args(tests).current_dir(&program.folder);
    command.env("CARGO_MANIFEST_DIR", &program.folder).stderr(Stdio::inherit());
    let output = command.output().map_err(|source| start(&command, source))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(passed(&text).map(str::to_owned).collect())
}

/// Returns the names of passed tests in an output with lines such as `test a::b ... ok`.
fn passed(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... ok"))
}

/// Returns the names of tests in a list with lines such as `a::b: test`.
fn names(listed: &str) -> impl Iterator<Item = &str> {
    listed.lines().filter_map(|line| line.strip_suffix(": test"))
}

/// Returns the test executable that a JSON message of cargo describes; `None` for other messages.
fn test_program(message: &Value) -> Option<PathBuf> {
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    if is_test { message["executable"].as_str().map(PathBuf::from) } else { None }
}

/// Returns the prefix that the tables of requirements put before the names of an executable's
/// tests.
fn prefix(package: &str, target: &Value) -> String {
    match (target["kind"][0].as_str(), target["name"].as_str()) {
        (Some("test"), Some(name)) => format!("{package}::{name}"),
        _ => package.to_owned(),
    }
}

fn output(command: &mut Command) -> Result<String, Error> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|source| start(command, source))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Error::Failed { command: name(command) })
    }
}

fn start(command: &Command, source: std::io::Error) -> Error {
    Error::Start { command: name(command), source }
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tests_are_named_by_package_target_and_path() {
        let target = json!({ "kind": ["test"], "name": "behaviour" });
        assert_eq!(prefix("linerate-tcp", &target), "linerate-tcp::behaviour");
        let library = json!({ "kind": ["lib"], "name": "linerate_tcp" });
        assert_eq!(prefix("linerate-tcp", &library), "linerate-tcp");
        assert!(names("a::b: test\nc: bench\n\n1 test, 1 benchmark\n").eq(["a::b"]));
    }

    #[test]
    fn ignored_and_failed_tests_have_not_passed() {
        let text = "running 3 tests\ntest a::b ... ok\ntest c ... FAILED\ntest d ... ignored\n";
        assert!(passed(text).eq(["a::b"]));
    }

    #[test]
    fn only_programs_built_as_tests_contain_tests() {
        let artifact = |test, executable| {
            json!({
                "reason": "compiler-artifact",
                "profile": { "test": test },
                "executable": executable,
            })
        };
        assert_eq!(test_program(&artifact(true, json!("/t"))), Some(PathBuf::from("/t")));
        assert_eq!(test_program(&artifact(false, json!("/t"))), None);
        assert_eq!(test_program(&artifact(true, Value::Null)), None);
    }

    #[test]
    fn a_name_without_a_test_is_a_fault() {
        let tests = BTreeMap::from([("p::a".to_owned(), (0, "a".to_owned()))]);
        let proofs = Proofs { programs: Vec::new(), tests };
        let faults = proofs.faults_of_names(["p::b", "p::a", "p::b"].into_iter());
        assert_eq!(faults, [Fault::NoTest("p::b".to_owned())]);
    }
}
