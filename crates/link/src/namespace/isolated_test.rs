//! Runs tests in a network namespace of their own. For that, the test program starts itself once
//! more as a child process, which runs a single test.

use super::enter::spawn;
use super::error::NamespaceError;
use super::isolation::Isolation;
use crate::kernel_interface::KernelInterface;
use rustix::process::geteuid;
use std::any::type_name;
use std::env;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

/// Environment variable that is set in the child process. If it is set, the test runs its body; if
/// not, the test starts the child.
const INSIDE: &str = "LINERATE_ISOLATED_TEST";
/// The first word of the message about a skipped test.
const SKIPPED: &str = "SKIPPED";

/// Runs `body`, the whole body of a test function, in a child process. The child is root of a new
/// network namespace, whose loopback interface is up.
///
/// Write `#[test] fn name() { isolated_test(|| { … }) }`. The name of the test is derived from the
/// type of the closure, so the closure must be in the test function itself. The child runs only the
/// test of this name. If the machine forbids namespaces, the test is skipped by [`skip_test`].
///
/// # Panics
/// If the test fails in the child process. The message contains the child's output.
pub fn isolated_test<F: FnOnce()>(body: F) {
    run_in(Isolation::UserAndNetwork, body);
}

/// Runs `body` in a new network namespace like [`isolated_test`], but as root of the machine. Only
/// root of the machine can load programs into the kernel. If the test program does not run as root,
/// the test is skipped with a message. It is skipped even with `CI=true`, because running without
/// root is the user's choice.
///
/// # Panics
/// If the test fails in the child process. The message contains the child's output.
pub fn isolated_test_of_root<F: FnOnce()>(body: F) {
    if !geteuid().is_root() {
        return print_skipped(&"it needs root of the machine");
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
        Ok(output) => check_output(&output),
        Err(error @ NamespaceError::Program(_)) => panic!("{error}"),
        Err(error) => skip_test(&error),
    }
}

/// Prints that the running test is skipped, and for which reason. The line is visible even if the
/// test harness captures output. The test must return after this call. With `CI=true` in the
/// environment, the test fails instead of being skipped.
///
/// # Panics
/// If the environment has `CI=true`.
pub fn skip_test(reason: &dyn Display) {
    assert!(
        env::var("CI").as_deref() != Ok("true"),
        "a test may not be skipped under CI: {reason}"
    );
    print_skipped(reason);
}

fn print_skipped(reason: &dyn Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    print_uncaptured(&format!("{SKIPPED} {test}: {reason}"));
}

fn run_inside(test: &str, isolation: Isolation) -> Result<Output, NamespaceError> {
    let mut command = Command::new(env::current_exe().map_err(NamespaceError::Program)?);
    command.args([test, "--exact", "--nocapture"]).env(INSIDE, test);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    spawn(command, isolation)?.wait_with_output().map_err(NamespaceError::Program)
}

/// Prints the output of the child, and checks its result. The output must say that exactly one test
/// passed: if no test has the expected name, the harness runs none, and reports success as well.
#[allow(clippy::print_stdout, reason = "the harness shows the output of tests on request")]
fn check_output(output: &Output) {
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "the test in its own network failed ({}):\n{stdout}{stderr}",
        output.status
    );
    // The harness captures this output, and shows it only with `--nocapture`.
    print!("{stdout}");
    for line in stderr.lines().filter(|line| line.starts_with(SKIPPED)) {
        print_uncaptured(line);
    }
}

/// Writes a line directly to standard error. The harness would capture the output of `eprintln!`. A
/// single call writes the whole line, so that other tests cannot write in the middle of it.
fn print_uncaptured(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Returns the name under which the test harness knows a test. `name` is the type name of a closure
/// in the test function. It begins with the name of the crate and ends with that of the closure,
/// which are removed.
fn name_of_test(name: &str) -> &str {
    let path = name.split_once("::").map_or(name, |(_, path)| path);
    path.split("::{{closure}}").next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_test_is_derived_from_its_closure() {
        fn name<F: FnOnce()>(_: F) -> &'static str {
            name_of_test(type_name::<F>())
        }
        assert_eq!(
            name(|| ()),
            "namespace::isolated_test::tests::the_name_of_a_test_is_derived_from_its_closure"
        );
    }
}
