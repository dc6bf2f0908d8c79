//! Tests that need a network of their own: they run once more, as a child process inside of one.

use super::{Isolation, NamespaceError, spawn};
use crate::kernel_interface::KernelInterface;
use rustix::process::geteuid;
use std::any::type_name;
use std::env;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

/// Set in the child, so that it knows itself.
const INSIDE: &str = "LINERATE_ISOLATED_TEST";
/// What a skipped test says first, and what is looked for in the words of a child.
const SKIPPED: &str = "SKIPPED";

/// Runs `body`, the whole of a test function, as root of a new network with its loopback interface up.
///
/// The test program starts itself again, in new namespaces, with this one test to run. Write
/// `#[test] fn name() { isolated_test(|| { … }) }`: the name of the test is read off the closure, which
/// therefore has to stand in the test function itself. Where the machine allows no namespaces the test
/// is skipped as [`skip_test`] does it.
///
/// # Panics
/// If the test fails inside, with everything it printed.
pub fn isolated_test<F: FnOnce()>(body: F) {
    run_in(Isolation::UserAndNetwork, body);
}

/// The same as root of the machine, for what root of a user namespace may not: programs in the kernel. Where the
/// test program is not run by root the test is skipped aloud, with `CI=true`, too: who runs it is no fault of the
/// machine's.
///
/// # Panics
/// As [`isolated_test`].
pub fn isolated_test_of_root<F: FnOnce()>(body: F) {
    if !geteuid().is_root() {
        return say_skipped(&"it needs root of the machine");
    }
    run_in(Isolation::Network, body);
}

fn run_in<F: FnOnce()>(isolation: Isolation, body: F) {
    if env::var_os(INSIDE).is_some() {
        KernelInterface::loopback()
            .and_then(|interface| interface.set_up())
            .expect("a new network has `lo`");
        return body();
    }
    match run_inside(name_of_test(type_name::<F>()), isolation) {
        Ok(output) => judge(&output),
        Err(error @ NamespaceError::Program(_)) => panic!("{error}"),
        Err(error) => skip_test(&error),
    }
}

/// Says aloud, past the test harness, that the running test is skipped and why; where the environment
/// has `CI=true`, it fails instead. The test has to return after this.
///
/// # Panics
/// If the environment has `CI=true`.
pub fn skip_test(reason: &dyn Display) {
    assert!(
        env::var("CI").as_deref() != Ok("true"),
        "a test may not be skipped under CI: {reason}"
    );
    say_skipped(reason);
}

fn say_skipped(reason: &dyn Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    say_aloud(&format!("{SKIPPED} {test}: {reason}"));
}

fn run_inside(test: &str, isolation: Isolation) -> Result<Output, NamespaceError> {
    let mut command = Command::new(env::current_exe().map_err(NamespaceError::Program)?);
    command.args([test, "--exact", "--nocapture"]).env(INSIDE, test);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    spawn(command, isolation)?.wait_with_output().map_err(NamespaceError::Program)
}

/// Passes on what the child has to say. A name that matches no test would pass without having run, so
/// one test must have.
#[allow(clippy::print_stdout, reason = "what a test prints is for people who ask for it")]
fn judge(output: &Output) {
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "the test inside of its own network failed ({}):\n{stdout}{stderr}",
        output.status
    );
    // By the macro, which the harness keeps to itself unless it is asked for (`--nocapture`).
    print!("{stdout}");
    for line in stderr.lines().filter(|line| line.starts_with(SKIPPED)) {
        say_aloud(line);
    }
}

/// Not by `eprintln!`, which the harness keeps to itself for a test that passes; and in one piece, for
/// other tests speak at the same time.
fn say_aloud(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// The harness's name of the test whose closure has the type `name`: the path without the crate in front
/// and the closure behind.
fn name_of_test(name: &str) -> &str {
    let path = name.split_once("::").map_or(name, |(_, path)| path);
    path.split("::{{closure}}").next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_test_is_read_off_its_closure() {
        fn name<F: FnOnce()>(_: F) -> &'static str {
            name_of_test(type_name::<F>())
        }
        assert_eq!(
            name(|| ()),
            "namespace::isolated_test::tests::the_name_of_a_test_is_read_off_its_closure"
        );
    }
}
