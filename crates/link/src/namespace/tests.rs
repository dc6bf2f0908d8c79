use super::*;
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

fn interfaces() -> Vec<String> {
    let text = fs::read_to_string("/proc/net/dev").unwrap();
    text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

#[test]
fn inside_there_is_nothing_but_a_loopback_interface_that_works() {
    isolated_test(|| {
        assert_eq!(interfaces(), ["lo"]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    });
}

#[test]
fn a_thread_inside_enters_a_further_network_alone() {
    isolated_test(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let elsewhere = std::thread::spawn(move || {
            enter(Isolation::Network).unwrap();
            TcpStream::connect(address).unwrap_err().kind()
        });
        assert_eq!(elsewhere.join().unwrap(), io::ErrorKind::NetworkUnreachable);
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
fn a_process_with_threads_is_told_that_it_cannot_take_its_user_along() {
    // The harness runs this test in a second thread.
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| enter(Isolation::UserAndNetwork)).join().unwrap()
    });
    assert!(matches!(outcome, Err(NamespaceError::Threads)), "{outcome:?}");
}

#[test]
fn a_program_that_is_not_there_is_told_from_a_machine_that_forbids() {
    isolated_test(|| {
        let error = spawn(Command::new("/there/is/no/such/program"), Isolation::UserAndNetwork)
            .unwrap_err();
        assert!(matches!(error, NamespaceError::Program(_)), "{error}");
    });
}

#[test]
fn what_the_machine_forbids_is_reported_with_a_remedy() {
    isolated_test(|| {
        // A user namespace in which one may make no further one is the machine that forbids.
        fs::write("/proc/sys/user/max_user_namespaces", "0").unwrap();
        let error = probe(Isolation::UserAndNetwork).unwrap_err();
        assert!(matches!(error, NamespaceError::TooMany), "{error}");
        assert!(error.to_string().contains("raise /proc/sys/user/max_user_namespaces"));
    });
}
