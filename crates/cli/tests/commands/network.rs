//! Tests of commands across two network namespaces that a veth pair connects.

use super::folder::{fail, within};
use super::support::{Background, finished, run};
use linerate_link::KernelInterface;
use linerate_link::kernel_interface::InterfaceError;
use linerate_link::namespace::{Network, isolated_test, isolated_test_of_root};
use linerate_units::Bytes;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Stdio;
use tempfile::TempDir;

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);
/// Addresses of the linerate hosts at both ends of the veth pair.
const OURS: &str = "10.88.0.11/24";
const OURS_FAR: &str = "10.88.0.12/24";

/// Creates the second network namespace, at the far end of a veth pair.
fn far_network() -> Network {
    let (left, far) = Network::behind_veth(["left", "right"], FAR).unwrap();
    left.add_address(NEAR, 24).unwrap();
    far
}

#[test]
fn a_sweep_crosses_the_veth_pair_to_a_sink() {
    isolated_test(|| {
        let far = far_network();
        let listen = format!("{FAR}:0");
        let mut sink = far.run(move || Background::start(&["sink", "--runs", "--listen", &listen]));
        let address = sink.address().to_string();
        let directory = TempDir::new().unwrap();
        let words = "--on kernel --send-buffers 1,8 --receive-buffers 2,8 --repeat 2 --bytes \
                     300000 --verify --json r.json";
        let words: Vec<&str> = ["sweep", &address].into_iter().chain(words.split(' ')).collect();
        let (code, report, errors) = finished(&within(directory.path(), &words).output().unwrap());
        assert_eq!(code, 0, "{errors}");
        assert!(report.contains("Every byte of every run was compared"), "{report}");
        let json: Value =
            serde_json::from_slice(&fs::read(directory.path().join("r.json")).unwrap()).unwrap();
        let runs = json["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 8);
        for run in runs {
            assert_eq!((&run["bytes"], &run["verified"]), (&300_000.into(), &true.into()), "{run}");
            let receive = &run["receive_buffer"];
            let asked = receive["requested_bytes"].as_u64().unwrap();
            assert_eq!(receive["granted_bytes"].as_u64().unwrap(), 2 * asked, "{run}");
            assert!(
                run["counters"]["receiver"]["bytes_received"].as_u64().unwrap() >= 300_000,
                "{run}"
            );
        }
        assert!(
            json["facts"]["bench"]["settings"]["sink"].as_str().unwrap().starts_with("linerate ")
        );
        let (lines, code) = sink.interrupt();
        assert_eq!((code, intact_runs(&lines)), (0, 8));
        let sweep = lines.iter().find(|line| line.contains("sweep: over after 8 runs, "));
        assert!(sweep.is_some_and(|line| line.ends_with(", all data intact")), "{lines:?}");
    });
}

#[test]
fn a_budget_ends_a_sweep_and_the_other_cells_are_predicted() {
    isolated_test(|| {
        let far = far_network();
        let mut sink = kernels_sink(&far);
        let address = sink.address().to_string();
        let directory = TempDir::new().unwrap();
        // A run of 1 TiB cannot finish, so every run takes its maximum time. This time is only a
        // part of the budget, so runs of several cells fit into it.
        let words = "--budget 5 --send-buffers 2KiB,4KiB,8KiB,16KiB,32KiB,64KiB \
                     --receive-buffers 2KiB,4KiB,8KiB,16KiB,32KiB,64KiB --bytes 1TiB --json r.json";
        let words: Vec<&str> = ["sweep", &address].into_iter().chain(words.split(' ')).collect();
        let (code, report, errors) = finished(&within(directory.path(), &words).output().unwrap());
        assert_eq!(code, 0, "{errors}");
        assert!(
            report.contains("of 36 cells were measured within the budget of 5.00 s"),
            "{report}"
        );
        let json: Value =
            serde_json::from_slice(&fs::read(directory.path().join("r.json")).unwrap()).unwrap();
        let runs = json["runs"].as_array().unwrap();
        let corner = |run: &Value| {
            let bytes = |end: &str| run[end]["requested_bytes"].as_u64().unwrap() >> 10;
            (bytes("send_buffer"), bytes("receive_buffer"))
        };
        let corners: Vec<_> = runs.iter().take(4).map(corner).collect();
        assert_eq!(corners, [(64, 64), (2, 2), (64, 2), (2, 64)]);
        let cells = json["cells"].as_array().unwrap().len();
        let predicted = json["predictions"]["cells"].as_array().unwrap().len();
        assert_eq!(cells + predicted, 36);
    });
}

#[test]
fn a_buffer_that_the_sinks_kernel_does_not_grant_is_refused_before_the_first_run() {
    isolated_test(|| {
        let far = far_network();
        let listen = format!("{FAR}:0");
        let mut sink = far.run(move || Background::start(&["sink", "--runs", "--listen", &listen]));
        let address = sink.address().to_string();
        let directory = TempDir::new().unwrap();
        let words = ["sweep", &address, "--send-buffers", "64KiB", "--receive-buffers", "900MiB"];
        let line = fail(directory.path(), &words, 2);
        assert!(
            line.contains("a receive buffer of") && line.contains("net.core.rmem_max"),
            "{line}"
        );
        assert!(line.contains("on 10.88.0.2"), "{line}");
    });
}

#[test]
fn peers_that_are_not_a_sink_are_reported_by_cause() {
    isolated_test(|| {
        let _far = far_network();
        let other = TcpListener::bind((NEAR, 0)).unwrap();
        let other_address = other.local_addr().unwrap().to_string();
        let hangs_up = std::thread::spawn(move || drop(other.accept().unwrap()));
        for (peer, expected_text) in [
            (other_address.as_str(), "is not linerate: start `linerate sink` there"),
            ("10.88.0.1:9", "10.88.0.1:9 cannot be reached (Connection refused"),
            ("203.0.113.1", "203.0.113.1:1988 cannot be reached (Network is unreachable"),
            ("no-such-host.invalid", "cannot be reached"),
        ] {
            let directory = TempDir::new().unwrap();
            let line = fail(directory.path(), &["sweep", peer], 2);
            assert!(
                line.contains(expected_text) && line.trim_end().lines().count() == 1,
                "{peer}: {line}"
            );
            assert_eq!(
                fs::read_dir(directory.path()).unwrap().count(),
                0,
                "{peer} left something behind"
            );
        }
        hangs_up.join().unwrap();
    });
}

/// Returns the number of runs that a sink reported as intact, from its output lines.
fn intact_runs(lines: &[String]) -> usize {
    let is_run = |line: &&String| line.contains(" run: ");
    lines.iter().filter(is_run).filter(|line| line.contains("all data intact")).count()
}

/// Starts a `linerate sink` that uses the kernel's TCP in the far namespace.
fn kernels_sink(far: &Network) -> Background {
    let listen = format!("{FAR}:0");
    far.run(move || Background::start(&["sink", "--runs", "--listen", &listen]))
}

/// Sweeps with linerate's TCP on `link` to the sink at `address`. Returns the content of the JSON
/// file.
fn sweep_on(link: &str, address: &str, further: &[&str]) -> Value {
    let directory = TempDir::new().unwrap();
    // A sweep to another machine has a time budget by default. It is switched off here, because it
    // would end the runs with small buffers before all bytes arrive.
    let words = "--send-buffers 1,40 --receive-buffers 2,40 --repeat 1 --bytes 2000000 --verify \
                 --budget none --json r.json";
    let words =
        ["sweep", address, "--on", link, "--address", OURS].into_iter().chain(words.split(' '));
    let words: Vec<&str> = words.chain(further.iter().copied()).collect();
    let (code, report, errors) = finished(&within(directory.path(), &words).output().unwrap());
    assert_eq!(code, 0, "{errors}");
    assert!(report.contains("Every byte of every run was compared"), "{report}");
    let json: Value =
        serde_json::from_slice(&fs::read(directory.path().join("r.json")).unwrap()).unwrap();
    let runs = json["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for run in runs {
        assert_eq!((&run["bytes"], &run["verified"]), (&2_000_000.into(), &true.into()), "{run}");
        let send = &run["send_buffer"];
        assert_eq!(
            send["granted_bytes"], send["requested_bytes"],
            "linerate grants the requested size: {run}"
        );
        assert!(run["counters"]["sender"]["fast_path"]["hits"].as_u64().unwrap() > 0, "{run}");
    }
    json
}

#[test]
fn a_sweep_with_our_tcp_works_over_a_packet_socket() {
    isolated_test(|| {
        let far = far_network();
        let mut sink = kernels_sink(&far);
        let address = sink.address().to_string();
        let json = sweep_on("packet:left", &address, &["--pcap", "frames.pcapng"]);
        let bench = &json["facts"]["bench"];
        assert_eq!(bench["settings"]["link"], "a packet socket");
        assert_eq!(bench["settings"]["link.offloads"], "on");
        assert_eq!(
            bench["settings"]["sink"].as_str().unwrap().matches("linerate's TCP").count(),
            0
        );
        let json =
            sweep_on("packet:left", &address, &["--offloads", "off", "--impair", "tx.delay=100us"]);
        assert_eq!(json["facts"]["bench"]["settings"]["link.offloads"], "off");
        let (lines, code) = sink.interrupt();
        assert_eq!(code, 0);
        assert_eq!(
            lines.iter().filter(|line| line.contains("sweep: over after 4 runs")).count(),
            2,
            "{lines:?}"
        );
        let from_ours =
            lines.iter().filter(|line| line.starts_with("10.88.0.11:") && line.contains("run: "));
        assert_eq!(from_ours.count(), 8, "{lines:?}");
    });
}

#[test]
fn a_sweep_with_our_tcp_works_over_af_xdp() {
    isolated_test_of_root(|| {
        let far = far_network();
        // The sink uses linerate's TCP as well. The kernel's TCP would leave checksums to the veth
        // device, which does not compute them. linerate's AF_XDP link would then receive packets
        // with incomplete checksums.
        let words = ["sink", "--on", "xdp:right", "--address", OURS_FAR];
        let mut sink = far.run(move || Background::start(&words));
        let address = sink.address().to_string();
        let json = sweep_on("xdp:left", &address, &[]);
        assert_eq!(json["facts"]["bench"]["settings"]["link"], "AF_XDP with copies");
        assert_eq!(json["facts"]["bench"]["settings"]["link.offloads"], "off");
        assert_eq!(sink.interrupt().1, 0);
    });
}

/// Diagnoses the path from `link` to the sink at `address`. Returns the content of the JSON file.
fn why_on(link: &str, address: &str) -> Value {
    let directory = TempDir::new().unwrap();
    let words = ["why", address, "--on", link, "--address", OURS, "--seconds", "5"];
    let words: Vec<&str> = words.into_iter().chain(["--json", "w.json"]).collect();
    let (code, report, errors) = finished(&within(directory.path(), &words).output().unwrap());
    assert_eq!(code, 0, "{errors}");
    let json: Value =
        serde_json::from_slice(&fs::read(directory.path().join("w.json")).unwrap()).unwrap();
    assert!(report.contains("linerate's TCP at 10.88.0.11/24, through"), "{report}");
    let sender = &json["runs"][0]["sender"];
    assert_eq!(sender["connection"]["path_mtu"], 1_500, "{sender}");
    for counter in ["busy_micros", "data_segments_sent", "acknowledged_bytes"] {
        assert!(sender["connection"][counter].as_u64() > Some(0), "{counter}: {sender}");
    }
    assert!(sender["thread"]["host_cpu_nanos"].as_u64() > Some(0), "{sender}");
    json
}

#[test]
fn a_diagnosis_with_our_tcp_has_evidence_of_both_ends_over_a_packet_socket() {
    isolated_test(|| {
        let far = far_network();
        let mut sink = kernels_sink(&far);
        let json = why_on("packet:left", &sink.address().to_string());
        let receiver = &json["runs"][0]["receiver"];
        assert!(receiver["bytes"].as_u64() > Some(0), "{receiver}");
        assert!(receiver["thread"]["host_cpu_nanos"].is_null(), "the kernel's TCP: {receiver}");
    });
}

#[test]
fn a_diagnosis_with_our_tcp_has_evidence_of_both_ends_over_af_xdp() {
    isolated_test_of_root(|| {
        let far = far_network();
        let words = ["sink", "--on", "xdp:right", "--address", OURS_FAR];
        let mut sink = far.run(move || Background::start(&words));
        let json = why_on("xdp:left", &sink.address().to_string());
        let receiver = &json["runs"][0]["receiver"];
        assert!(receiver["thread"]["host_cpu_nanos"].as_u64() > Some(0), "{receiver}");
    });
}

/// Executes `linerate sweep` through the interface `left`. After the first run of the sweep,
/// `change` is applied to this interface. Returns the final line that the command writes to
/// standard error.
fn last_line_after(change: impl FnOnce(KernelInterface) -> Result<(), InterfaceError>) -> String {
    let far = far_network();
    let mut sink = kernels_sink(&far);
    let address = sink.address().to_string();
    let directory = TempDir::new().unwrap();
    let words = "--on packet:left --send-buffers 40 --receive-buffers 40 --bytes 100kB --out night";
    let words: Vec<&str> = ["sweep", &address, "--address", OURS, "--repeat", "99999"]
        .into_iter()
        .chain(words.split(' '))
        .collect();
    let mut command = within(directory.path(), &words);
    let sweep = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while !sink.line().contains("run: ") {}
    change(KernelInterface::named("left").unwrap()).unwrap();
    let (code, _, errors) = finished(&sweep.wait_with_output().unwrap());
    assert_eq!(code, 1, "{errors}");
    let line = errors.lines().last().unwrap();
    assert!(line.contains("of 99999 runs are saved, continue with"), "{errors}");
    line.to_owned()
}

#[test]
fn an_interface_that_goes_down_is_reported_instead_of_the_peer() {
    isolated_test(|| {
        let line = last_line_after(|left| left.set_down());
        assert!(
            line.contains(
                "the interface `left` has failed: the link is down: bring the interface up"
            ),
            "{line}"
        );
    });
}

#[test]
fn an_interface_that_is_removed_is_reported() {
    isolated_test(|| {
        let line = last_line_after(KernelInterface::delete);
        assert!(line.contains("the interface `left` has failed: the link is down"), "{line}");
    });
}

#[test]
fn an_interface_whose_mtu_shrinks_is_reported() {
    isolated_test(|| {
        let line = last_line_after(|left| left.set_mtu(Bytes::new(1_000)));
        let expected_text =
            "the MTU of `left` was 1500 bytes when the night began, and is 1000 now: set it back";
        assert!(line.contains(expected_text), "{line}");
    });
}

#[test]
fn a_sweep_with_our_tcp_at_both_ends_works() {
    isolated_test(|| {
        let far = far_network();
        let on = ["--on", "packet:right", "--address", OURS_FAR, "--listen", "1988"];
        let words = [&["sink", "--runs"][..], &on].concat();
        let mut sink = far.run(move || Background::start(&words));
        let address = sink.address().to_string();
        assert_eq!(address, "10.88.0.12:1988");
        let json = sweep_on("packet:left", &address, &[]);
        assert!(
            json["facts"]["bench"]["settings"]["sink"]
                .as_str()
                .unwrap()
                .ends_with("by linerate's TCP")
        );
        for run in json["runs"].as_array().unwrap() {
            let receive = &run["receive_buffer"];
            assert_eq!(receive["granted_bytes"], receive["requested_bytes"], "{run}");
            assert!(
                run["counters"]["receiver"]["fast_path"]["hits"].as_u64().unwrap() > 0,
                "{run}"
            );
        }
        let (lines, code) = sink.interrupt();
        assert_eq!((code, intact_runs(&lines)), (0, 4));
    });
}

#[test]
fn sinks_and_sources_with_our_tcp_serve_the_kernel_and_each_other() {
    isolated_test(|| {
        let far = far_network();
        let words = ["sink", "--on", "packet:right", "--address", OURS_FAR, "--listen", "0"];
        let mut sink = far.run(move || Background::start(&words));
        let address = sink.address().to_string();
        let (code, said, errors) = run(&["source", &address, "--bytes", "3MiB", "--verify"]);
        assert!(
            code == 0 && said.contains("3 MiB in ") && said.contains("all data intact"),
            "{said}{errors}"
        );
        let ours = ["--on", "packet:left", "--address", OURS];
        let words = [&["source", &address, "--bytes", "3MiB"], &ours[..]].concat();
        let (code, said, errors) = run(&words);
        assert!(
            code == 0 && said.contains("3 MiB in ") && said.contains("read everything and closed"),
            "{said}{errors}"
        );
        let words = [
            &["source", &address, "--bytes", "100kB", "--verify", "--send-buffer", "4KiB"],
            &ours[..],
        ]
        .concat();
        let (code, said, errors) = run(&words);
        assert!(code == 0 && said.contains("all data intact"), "{said}{errors}");
        let (lines, code) = sink.interrupt();
        assert!(code == 0 && lines.iter().any(|line| line.contains("plain: 3 MiB")), "{lines:?}");

        let words = [
            "source",
            "--on",
            "packet:right",
            "--address",
            OURS_FAR,
            "--listen",
            "0",
            "--bytes",
            "500000",
        ];
        let mut source = far.run(move || Background::start(&words));
        let mut bytes = Vec::new();
        TcpStream::connect(source.address()).unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 500_000);
        assert!(source.line().contains("drew 488.3 KiB"));
        assert_eq!(source.interrupt().1, 0);
    });
}

#[test]
fn invalid_uses_of_an_interface_are_one_line() {
    isolated_test(|| {
        let _far = far_network();
        let on = |link, further: &[&'static str]| {
            [&["sweep", "10.88.0.2", "--on", link], further].concat()
        };
        for (words, expected_text) in [
            (on("packet:left", &[]), "needs an address on left: give --address"),
            (on("packet:none0", &["--address", OURS]), "no interface `none0`"),
            (
                on("packet:left", &["--address", OURS, "--mtu", "9000"]),
                "left has 1500; give --mtu 1500",
            ),
            (on("packet:left", &["--address", OURS]), "10.88.0.2:1988 cannot be reached"),
            (
                on("xdp:left", &["--address", OURS, "--offloads", "on"]),
                "--offloads has no meaning --on xdp:left:0",
            ),
            (
                vec!["sweep", "--on", "packet:left", "--address", OURS],
                "name the HOST where `linerate sink` runs",
            ),
            (vec!["sweep", "--address", OURS], "--address is for linerate's host on an interface"),
            (
                vec!["sink", "--gateway", "10.88.0.1"],
                "--gateway is for linerate's host on an interface",
            ),
            (vec!["sink", "--on", "packet:left"], "give --address ADDR/LENGTH"),
            (
                vec!["sink", "--on", "packet:left", "--address", OURS, "--listen", "10.88.0.1:7"],
                "10.88.0.1:7 is not the address of linerate's host: listen at 10.88.0.11",
            ),
            (
                vec![
                    "source",
                    "10.88.0.2",
                    "--on",
                    "packet:left",
                    "--address",
                    OURS,
                    "--send-buffer",
                    "2GiB",
                ],
                "no window is larger",
            ),
        ] {
            let directory = TempDir::new().unwrap();
            let line = fail(directory.path(), &words, 2);
            assert!(
                line.contains(expected_text) && line.trim_end().lines().count() == 1,
                "{words:?}: {line}"
            );
        }
    });
}
