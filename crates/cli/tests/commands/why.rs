//! Tests of `linerate why`: verdicts on paths with a known limit, and errors.

use crate::support::{Background, run};
use linerate_verdict::diagnosis::Limit;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::thread;

#[test]
fn the_verdict_names_a_known_limit_and_documents_it() {
    let mut sink = Background::start(&["sink", "--listen", "127.0.0.1:0"]);
    let address = sink.address().to_string();
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("why.json");
    let file = json.to_str().unwrap();
    let (code, said, errors) = run(&["why", &address, "--seconds", "5", "--json", file]);
    assert_eq!(code, 0, "{errors}");
    let first = said.lines().next().unwrap();
    let verdict: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let limit = verdict["limit"].as_str().unwrap();
    assert!(Limit::ALL.iter().any(|known| known.name() == limit), "{limit}");
    assert!(first.starts_with(&format!("{limit}: ")), "{first}");
    assert!(said.lines().last().unwrap().starts_with("Advice: "), "{said}");
    assert!(verdict["bytes_per_second"].as_f64() > Some(0.0), "{verdict}");
    for field in ["evidence", "interventions"] {
        assert!(verdict[field].is_array(), "{field}");
    }
    let runs = verdict["runs"].as_array().unwrap();
    assert!(runs[0]["sender"]["seconds"].as_f64() > Some(0.0), "{}", runs[0]);
    assert!(runs[0]["receiver"]["bytes"].as_u64() > Some(0), "{}", runs[0]);
    let line = &verdict["evidence"][0];
    assert!(line["counter"].is_string() && line["end"].is_string() && line["value"].is_f64());
}

#[test]
fn an_iperf3_server_is_enough_and_its_missing_evidence_is_stated() {
    let mut sink = Background::start(&["sink", "--iperf3", "--listen", "127.0.0.1:0"]);
    let address = sink.address().to_string();
    let (code, said, errors) = run(&["why", &address, "--seconds", "5"]);
    assert_eq!(code, 0, "{errors}");
    assert!(said.contains("evidence of the far end is missing"), "{said}");
    assert!(said.contains("Evidence:"), "{said}");
    let (lines, code) = sink.interrupt();
    assert_eq!(code, 0);
    assert!(lines.iter().any(|line| line.contains("iperf3: ")), "{lines:?}");
}

#[test]
fn a_watched_path_has_a_line_for_each_verdict_and_a_file_for_prometheus() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("why.prom");
    let name = file.to_str().unwrap();
    let words = ["why", "--on", "sim:10-gbe-pair", "--set", "sender.machine.scale=8", "--watch"];
    let mut watch = Background::start(&[&words[..], &["--prometheus", name]].concat());
    // The command prints the line of a verdict before it writes the file of that verdict. When the
    // test has read the second line, the file of the first verdict must exist.
    for _ in 0..2 {
        let line = watch.line();
        assert!(line.starts_with("sender-cpu: "), "{line}");
    }
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("limit=\"sender-cpu\"} 1\n"), "{text}");
    assert_eq!(watch.interrupt().1, 0);
    let missing = ["--prometheus", "/no/such/folder/why.prom"];
    let (code, said, errors) = run(&[&words[..], &missing].concat());
    assert_eq!((code, said.as_str(), errors.lines().count()), (2, "", 1), "{errors}");
    assert!(errors.contains("cannot be written"), "{errors}");
}

/// Diagnoses a path whose sender and receiver are in one process, with a send buffer of 32 KiB.
/// Returns the report and the content of the JSON file.
fn why_inside(on: &str) -> (String, serde_json::Value) {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("why.json");
    let file = json.to_str().unwrap();
    let words = ["why", "--on", on, "--send-buffer", "32KiB", "--impair", "delay=10ms"];
    let (code, said, errors) = run(&[&words[..], &["--seconds", "8", "--json", file]].concat());
    assert_eq!(code, 0, "{errors}");
    let verdict: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let limit = verdict["limit"].as_str().unwrap();
    // If the test runs beside other work, the diagnosis may name no limit. It must not name a wrong
    // one.
    assert!(["send-buffer", "contended", "not-identified"].contains(&limit), "{said}{errors}");
    let sender = &verdict["runs"][0]["sender"];
    assert_eq!(sender["connection"]["send_buffer"], 32 << 10, "{sender}");
    assert!(sender["states"]["buffer_full"].as_f64() > Some(0.8), "{sender}");
    (said, verdict)
}

#[test]
fn a_small_buffer_of_our_tcp_is_the_limit_towards_the_kernel() {
    let (said, verdict) = why_inside("tap");
    assert!(said.contains("across a TAP device to the kernel's"), "{said}");
    assert!(verdict["runs"][0]["receiver"]["thread"]["host_cpu_nanos"].is_null(), "{verdict}");
}

#[test]
fn interventions_that_our_tcp_cannot_make_are_named() {
    let (said, verdict) = why_inside("stack");
    assert!(verdict["runs"][0]["receiver"]["thread"]["host_cpu_nanos"].is_u64(), "{verdict}");
    let interventions = verdict["interventions"].as_array().unwrap();
    assert!(interventions.iter().all(|line| line["change"] != "discard"), "{verdict}");
    // Beside other work, the time may not suffice to try all interventions. If it did not suffice
    // for `discard`, no intervention is skipped.
    if verdict["limit"] == "send-buffer" && verdict["skipped"] != serde_json::json!([]) {
        assert!(said.contains("Not possible on this path: reader discards"), "{said}");
        assert_eq!(verdict["skipped"], serde_json::json!(["discard"]));
    }
}

#[test]
fn a_port_in_use_is_one_line_and_exit_code_2() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for words in [&["sink", "--listen", &address][..], &["sink", "--iperf3", "--listen", &address]]
    {
        let (code, said, errors) = run(words);
        assert_eq!((code, said.as_str(), errors.lines().count()), (2, "", 1), "{errors}");
        assert!(errors.contains("is in use"), "{errors}");
    }
}

#[test]
fn what_prevents_a_diagnosis_is_one_line_and_exit_code_2() {
    // The listener is dropped at once, so that connections to its port are refused.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mail_server = mail_server().to_string();
    for (words, expected) in [
        (&["why", "no-such-host.invalid"][..], "cannot be reached"),
        (&["why", &closed], "cannot be reached"),
        (&["why", &mail_server], "is not linerate: start `linerate sink` there"),
        (&["why", &closed, "--json", "/no/such/folder/why.json"], "cannot be written"),
        (&["why", &closed, "--seconds", "1"], "from 5.00 s to 600.00 s"),
        (&["why", &closed, "--congestion", "no-such"], "there is no congestion control"),
        (&["why", "--on", "sim:no-such"], "no-such"),
        (&["why", "--on", "moon"], "write one of stack, tap, sim:NAME"),
        (&["why", "--on", "packet:no-such"], "no HOST is given"),
        (&["why", &closed, "--on", "packet:no-such"], "needs an address"),
        (&["why", &closed, "--on", "stack"], "leave HOST out"),
        (&["why", "--on", "stack", "--congestion", "no-such"], "has no congestion control"),
        (&["why", "--on", "sim:10-gbe-pair", "--impair", "delay=1ms"], "has its own media"),
        (&["why", "--on", "stack", "--set", "x=1"], "--set is for a scenario"),
        (&["why", "--on", "sim:saturated-long"], "has no bulk transfer"),
        (&["why"], "see `linerate why --help`"),
    ] {
        let (code, said, errors) = run(words);
        assert_eq!((code, said.as_str()), (2, ""), "{words:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{words:?}: {errors}");
        assert!(errors.starts_with("error: ") && errors.contains(expected), "{words:?}: {errors}");
    }
}

/// Starts a server that sends an SMTP greeting to its only peer.
fn mail_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut peer, b"220 mail.example ESMTP\r\n").unwrap();
        // The server reads all data before it closes the socket. If data were unread, the kernel
        // would send a reset, and the peer could lose the greeting.
        std::io::copy(&mut peer, &mut std::io::sink()).unwrap_or_default();
    });
    address
}

#[test]
fn limits_planted_in_a_simulated_network_are_named() {
    for (change, expected) in [
        ("transfer.send_buffer=20000", "send-buffer"),
        ("transfer.receive_buffer=20000", "receive-buffer"),
        ("sender.machine.scale=4", "sender-cpu"),
        ("receiver.machine.scale=4", "receiver-cpu"),
        ("transfer.bytes=100000000", "link-rate"),
    ] {
        let (code, said, errors) = run(&["why", "--on", "sim:10-gbe-pair", "--set", change]);
        assert_eq!(code, 0, "{change}: {errors}");
        assert!(said.starts_with(&format!("{expected}: ")), "{change}: {said}");
    }
}

#[test]
fn a_short_queue_and_a_short_transfer_in_a_simulated_network_are_named() {
    let (short_queue, short_transfer) = (
        ["sim:wan-tail-drop", "--set", "medium.queue.limit=4"],
        ["sim:10-gbe-pair", "--set", "medium.delay=50000", "--set", "transfer.bytes=3000000"],
    );
    for (path, expected) in [(&short_queue[..], "queue-drop"), (&short_transfer, "round-trip")] {
        let (code, said, errors) = run(&[&["why", "--on"], path].concat());
        assert_eq!(code, 0, "{path:?}: {errors}");
        assert!(said.starts_with(&format!("{expected}: ")), "{path:?}: {said}");
    }
}

#[test]
fn a_shared_link_between_two_routers_is_named_by_the_gain_of_a_faster_one() {
    let (code, said, errors) = run(&["why", "--on", "sim:wan-two-routers"]);
    assert_eq!(code, 0, "{errors}");
    assert!(said.starts_with("link-rate: "), "{said}");
    assert!(said.contains("the slowest link faster"), "{said}");
}

#[test]
fn two_transfers_that_fill_a_cable_together_are_limited_by_its_rate() {
    let (code, said, errors) = run(&["why", "--on", "sim:wan-tail-drop", "--set", "limit.time=20"]);
    assert_eq!(code, 0, "{errors}");
    assert!(said.starts_with("link-rate: "), "{said}");
}
