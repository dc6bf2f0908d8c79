//! `linerate script`: scripts that pass, that fail, and that cannot be run.

use crate::support::run;
use linerate_link::namespace::isolated_test;
use std::path::Path;

const LISTEN: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
    +0 < S 0:0(0) win 1000 <mss 1000>\n";

fn kept(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_script_that_passes_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = kept(folder.path(), "good.pkt", &format!("{LISTEN}+0 > S. 0:0(0) ack 1 <...>\n"));
    assert_eq!(run(&["script", "run", &file]), (0, "1 script: 1 passed\n".into(), String::new()));
}

#[test]
fn a_script_that_fails_says_where_what_was_expected_and_what_came() {
    let folder = tempfile::tempdir().unwrap();
    let file =
        kept(folder.path(), "bad.pkt", &format!("{LISTEN}+.1 > S. 0:0(0) ack 2 win 5 <mss 9>\n"));
    let json = folder.path().join("results");
    let (code, told, error) =
        run(&["script", "run", folder.path().to_str().unwrap(), "--json", json.to_str().unwrap()]);
    let mut lines = told.lines();
    assert_eq!(code, 1, "{error}");
    let first =
        format!("{file}:5: another segment was sent: acknowledgement, window, options differ");
    assert_eq!(lines.next(), Some(first.as_str()));
    assert_eq!(lines.next(), Some("  expected  +0.1 > S. 0:0(0) ack 2 win 5 <mss 9>"));
    assert!(lines.next().unwrap().starts_with("  came      0 > S. 0:0(0) ack 1 win "), "{told}");
    assert_eq!(lines.next(), Some("1 script: 0 passed, 1 failed"));
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!((json["verdict"].as_str(), json["line"].as_u64()), (Some("failed"), Some(5)));
}

#[test]
fn what_cannot_be_run_is_wrong_use() {
    let folder = tempfile::tempdir().unwrap();
    for (text, says) in [
        ("0 close(3) = 0\n0 nonsense(3) = 0", ":2: there is no system call `nonsense` here"),
        ("0 `rm -rf /`", ":1: `rm -rf /` is not run"),
        (
            "0 `sysctl net.ipv4.tcp_moon=1`",
            ":1: refused: net.ipv4.tcp_moon: linerate's host has no such setting",
        ),
        ("", "the script is empty"),
    ] {
        let file = kept(folder.path(), "script.pkt", text);
        let (code, told, error) = run(&["script", "run", &file]);
        assert!(code == 2 && format!("{told}{error}").contains(says), "{text}: {told}{error}");
    }
    let (code, _, error) = run(&["script", "run", "/no/such/file"]);
    assert!(code == 2 && error.contains("/no/such/file"), "{error}");
}

#[test]
fn the_packets_of_a_script_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = kept(folder.path(), "good.pkt", &format!("{LISTEN}+.5 < R 1:1(0) win 0\n"));
    let capture = folder.path().join("capture");
    let capture = capture.to_str().unwrap();
    assert_eq!(run(&["script", "run", &file, "--pcap", capture]).0, 0);
    let (code, lines, _) = run(&["dump", capture]);
    assert_eq!((code, lines.lines().count()), (0, 3), "{lines}");
    assert!(
        lines.contains("  0.500000000 < IP 192.0.2.1.40001 > 192.168.0.2.8080: Flags [R]"),
        "{lines}"
    );
}

#[test]
fn both_hosts_are_compared() {
    isolated_test(|| {
        let folder = tempfile::tempdir().unwrap();
        kept(folder.path(), "good.pkt", &format!("{LISTEN}* > S. 0:0(0) ack 1 <...>\n"));
        kept(folder.path(), "wrong.pkt", &format!("{LISTEN}* > S. 0:0(0) ack 7 <...>\n"));
        let (code, told, _) =
            run(&["script", "compare", "--untimed", folder.path().to_str().unwrap()]);
        let lines: Vec<_> = told.lines().collect();
        assert_eq!((code, lines.len()), (1, 3), "{told}");
        assert!(
            lines[1].contains("wrong.pkt") && lines[1].contains("line 5        line 5"),
            "{told}"
        );
        assert_eq!(
            lines[2],
            "2 scripts: 1 passed on both, 0 on the stack only, 0 on the kernel only, 1 on neither"
        );
    });
}
