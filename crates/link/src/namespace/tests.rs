//! Tests of entering namespaces.

use super::*;
use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

fn interfaces() -> Vec<String> {
    let text = fs::read_to_string("/proc/net/dev").unwrap();
    text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

#[test]
fn a_new_network_has_only_a_working_loopback_interface() {
    isolated_test(|| {
        assert_eq!(interfaces(), ["lo"]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    });
}

#[test]
fn a_thread_enters_a_further_network_alone() {
    isolated_test(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let other_thread = std::thread::spawn(move || {
            enter(Isolation::Network).unwrap();
            TcpStream::connect(address).unwrap_err().kind()
        });
        assert_eq!(other_thread.join().unwrap(), io::ErrorKind::NetworkUnreachable);
        TcpStream::connect(address).unwrap();
    });
}

#[test]
fn a_child_is_started_in_a_further_network() {
    isolated_test(|| {
        let mut command = Command::new("/proc/self/exe");
        command.arg("--list").stdout(Stdio::null());
        assert!(spawn(command, Isolation::Network).unwrap().wait().unwrap().success());
        probe(Isolation::Network).unwrap();
    });
}

#[test]
fn a_process_with_threads_cannot_enter_a_user_namespace() {
    // The process has at least two threads here: this one, and the one that is started to call
    // `enter`.
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| enter(Isolation::UserAndNetwork)).join().unwrap()
    });
    assert!(matches!(outcome, Err(NamespaceError::Threads)), "{outcome:?}");
}

#[test]
fn a_missing_program_is_distinguished_from_forbidden_namespaces() {
    isolated_test(|| {
        let error = spawn(Command::new("/there/is/no/such/program"), Isolation::UserAndNetwork)
            .unwrap_err();
        assert!(matches!(error, NamespaceError::Program(_)), "{error}");
    });
}

#[test]
fn forbidden_namespaces_are_reported_with_a_remedy() {
    isolated_test(|| {
        // The limit applies only to the test's own user namespace. The limit is zero, so creating
        // one more namespace fails as on a machine that already has the maximum.
        fs::write("/proc/sys/user/max_user_namespaces", "0").unwrap();
        let error = probe(Isolation::UserAndNetwork).unwrap_err();
        assert!(matches!(error, NamespaceError::TooMany), "{error}");
        assert!(error.to_string().contains("raise /proc/sys/user/max_user_namespaces"));
    });
}
