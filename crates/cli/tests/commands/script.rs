//! Tests of `linerate script` with scripts that pass, that fail, and that cannot be run.

use crate::support::run;
use linerate_link::namespace::isolated_test;
use std::path::Path;

const LISTEN: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
    +0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
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
fn a_failing_script_prints_the_line_and_the_expected_and_actual_segments() {
    let folder = tempfile::tempdir().unwrap();
    let file =
        kept(folder.path(), "bad.pkt", &format!("{LISTEN}+.1 > S. 0:0(0) ack 2 win 5 <mss 9>\n"));
    let json = folder.path().join("results");
    let (code, output, error) =
        run(&["script", "run", folder.path().to_str().unwrap(), "--json", json.to_str().unwrap()]);
    let mut lines = output.lines();
    assert_eq!(code, 1, "{error}");
    let first =
        format!("{file}:5: another packet was sent: acknowledgement, window, options differ");
    assert_eq!(lines.next(), Some(first.as_str()));
    assert_eq!(lines.next(), Some("  expected  +0.1 > S. 0:0(0) ack 2 win 5 <mss 9>"));
    assert!(lines.next().unwrap().starts_with("  actual    0 > S. 0:0(0) ack 1 win "), "{output}");
    assert_eq!(lines.next(), Some("1 script: 0 passed, 1 failed"));
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!((json["verdict"].as_str(), json["line"].as_u64()), (Some("failed"), Some(5)));
}

#[test]
fn a_script_that_cannot_be_run_has_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    for (text, expected_text) in [
        ("0 close(3) = 0\n0 nonsense(3) = 0", ":2: the system call `nonsense` is not supported"),
        ("0 `rm -rf /`", ":1: `rm -rf /` is not run"),
        (
            "0 `sysctl net.ipv4.tcp_moon=1`",
            ":1: refused: net.ipv4.tcp_moon: linerate's host has no such setting",
        ),
        ("", "the script is empty"),
    ] {
        let file = kept(folder.path(), "script.pkt", text);
        let (code, output, error) = run(&["script", "run", &file]);
        assert!(
            code == 2 && format!("{output}{error}").contains(expected_text),
            "{text}: {output}{error}"
        );
    }
    let (code, _, error) = run(&["script", "run", "/no/such/file"]);
    assert!(code == 2 && error.contains("/no/such/file"), "{error}");
}

#[test]
fn unreadable_files_are_skipped_and_the_summary_lists_folders_and_reasons() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    std::fs::create_dir(&first).unwrap();
    std::fs::create_dir(&second).unwrap();
    let good = format!("{LISTEN}+0 > S. 0:0(0) ack 1 <...>\n");
    kept(&first, "a-unreadable.pkt", "0 splice(3, 4) = 0\n");
    kept(&first, "good.pkt", &good);
    kept(&first, "needs.pkt", "0 `sysctl net.ipv4.tcp_moon=1`\n");
    std::fs::write(first.join("binary.pkt"), [0xff, 0xfe]).unwrap();
    kept(&second, "wrong.pkt", &format!("{LISTEN}+0 > S. 0:0(0) ack 7 <...>\n"));
    let (code, output, _) = run(&["script", "run", folder.path().to_str().unwrap()]);
    let lines: Vec<_> = output.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.starts_with(first.to_str().unwrap()) && line.contains("scripts:"));
    let summary = &lines[at.unwrap()..];
    assert!(code == 1 && summary.len() == 6, "{output}");
    assert!(summary[0].ends_with("first: 4 scripts: 1 passed, 3 refused"), "{output}");
    for reason in ["splice", "tcp_moon", "cannot be read"] {
        assert!(
            summary[1..4]
                .iter()
                .any(|line| line.starts_with("  1 refused: ") && line.contains(reason)),
            "{reason}: {output}"
        );
    }
    assert!(summary[4].ends_with("second: 1 script: 0 passed, 1 failed"), "{output}");
    assert_eq!(summary[5], "5 scripts: 1 passed, 1 failed, 3 refused");
}

#[test]
fn options_of_scripts_can_be_given_to_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "{LISTEN}+.02 > S. 0:0(0) ack NUMBER <...>\n+0 < . 1:1(0) ack 1 win 9000\n+0 accept(3, \
         ..., ...) = 4\n+0 write(4, ..., 2000) = 2000\n+0 > . 1:2001(2000) ack 1\n"
    );
    let file = kept(folder.path(), "defined.pkt", &text);
    let all =
        ["script", "run", &file, "-D", "NUMBER=1", "--tolerance_usecs=20000", "--ignore_push"];
    assert_eq!(run(&all).0, 0);
    for left_out in [3, 5, 6] {
        let mut some = all.to_vec();
        some.remove(left_out);
        if left_out == 3 {
            some.remove(3);
        }
        assert_ne!(run(&some).0, 0, "without {}", all[left_out]);
    }
    assert_eq!(run(&[&all[..], &["--strict_segments"]].concat()).0, 1);
}

#[test]
fn the_packets_of_a_script_can_be_captured() {
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
        for family in ["own", "ipv6"] {
            let folder = folder.path().to_str().unwrap();
            let (code, output, _) =
                run(&["script", "compare", "--untimed", folder, "--family", family]);
            let lines: Vec<_> = output.lines().collect();
            assert_eq!((code, lines.len()), (1, 3), "{family}: {output}");
            assert!(
                lines[1].contains("wrong.pkt") && lines[1].contains("line 5        line 5"),
                "{family}: {output}"
            );
            assert_eq!(
                lines[2],
                "2 scripts: 1 passed on both, 0 on the stack only, 0 on the kernel only, 1 on \
                 neither"
            );
        }
    });
}

#[test]
fn a_script_about_ipv4_is_refused_over_ipv6_and_others_are_translated() {
    let folder = tempfile::tempdir().unwrap();
    let good = format!("{LISTEN}+0 > S. 0:0(0) ack 1 <...>\n");
    kept(folder.path(), "about-ipv4.pkt", &format!("--ip_version=ipv4\n{good}"));
    kept(folder.path(), "good.pkt", &good);
    let capture = folder.path().join("capture");
    let capture = capture.to_str().unwrap();
    let files = folder.path().to_str().unwrap();
    let (code, output, _) = run(&["script", "run", files, "--family", "ipv6", "--pcap", capture]);
    assert_eq!(code, 2, "{output}");
    assert!(output.contains("about-ipv4.pkt:1: refused: the script is about IPv4"), "{output}");
    assert!(output.ends_with("2 scripts: 1 passed, 1 refused\n"), "{output}");
    let (_, lines, _) = run(&["dump", capture]);
    assert!(lines.contains("2001:db8::c000:201.40001 > 2001:db8::c0a8:2.8080"), "{lines}");
}
