//! A sweep to a sink on another machine, both of them networks of this one, with a cable between.

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
/// Hosts of linerate's own beside the kernel's, on the cable's ends.
const OURS: &str = "10.88.0.11/24";
const OURS_FAR: &str = "10.88.0.12/24";

/// Another network, at the far end of a cable from this one.
fn far_network() -> Network {
    let (left, far) = Network::behind_cable(["left", "right"], FAR).unwrap();
    left.add_address(NEAR, 24).unwrap();
    far
}

#[test]
fn a_sweep_crosses_the_cable_to_a_sink() {
    isolated_test(|| {
        let far = far_network();
        let listen = format!("{FAR}:0");
        let mut sink = far.run(move || Background::start(&["sink", "--listen", &listen]));
        let address = sink.address().to_string();
        let directory = TempDir::new().unwrap();
        let words = "--on kernel --send-buffers 1,8 --receive-buffers 2,8 --repeat 2 --bytes 300000 --verify --json r.json";
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
        assert_eq!(
            (code, lines.iter().filter(|line| line.contains("every byte right")).count()),
            (0, 8)
        );
        assert!(lines.iter().any(|line| line.contains("sweep: over after 8 runs")), "{lines:?}");
    });
}

#[test]
fn a_buffer_that_the_far_kernel_does_not_grant_is_refused_before_the_first_run() {
    isolated_test(|| {
        let far = far_network();
        let listen = format!("{FAR}:0");
        let mut sink = far.run(move || Background::start(&["sink", "--listen", &listen]));
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
fn peers_that_are_no_sink_are_told_apart() {
    isolated_test(|| {
        let _far = far_network();
        let stranger = TcpListener::bind((NEAR, 0)).unwrap();
        let strange = stranger.local_addr().unwrap().to_string();
        let hangs_up = std::thread::spawn(move || drop(stranger.accept().unwrap()));
        for (peer, says) in [
            (strange.as_str(), "is no linerate: start `linerate sink` there"),
            ("10.88.0.1:9", "10.88.0.1:9 cannot be reached (Connection refused"),
            ("203.0.113.1", "203.0.113.1:1988 cannot be reached (Network is unreachable"),
            ("no-such-host.invalid", "cannot be reached"),
        ] {
            let directory = TempDir::new().unwrap();
            let line = fail(directory.path(), &["sweep", peer], 2);
            assert!(line.contains(says) && line.trim_end().lines().count() == 1, "{peer}: {line}");
            assert_eq!(
                fs::read_dir(directory.path()).unwrap().count(),
                0,
                "{peer} left something behind"
            );
        }
        hangs_up.join().unwrap();
    });
}

/// A sink by the kernel's TCP at the far end.
fn kernels_sink(far: &Network) -> Background {
    let listen = format!("{FAR}:0");
    far.run(move || Background::start(&["sink", "--listen", &listen]))
}

/// A sweep by linerate's TCP on `link` to the sink at `address`; what it has written to its JSON
/// file.
fn sweep_on(link: &str, address: &str, further: &[&str]) -> Value {
    let directory = TempDir::new().unwrap();
    let words = "--send-buffers 1,40 --receive-buffers 2,40 --repeat 1 --bytes 2000000 --verify --json r.json";
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
            "linerate grants what is asked for: {run}"
        );
        assert!(run["counters"]["sender"]["fast_path"]["hits"].as_u64().unwrap() > 0, "{run}");
    }
    json
}

#[test]
fn a_sweep_of_our_tcp_crosses_the_cable_by_a_packet_socket() {
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
fn a_sweep_of_our_tcp_crosses_the_cable_between_its_drivers() {
    isolated_test_of_root(|| {
        let far = far_network();
        // Of the kernel at the other end the cable would have to complete checksums, which it does
        // not.
        let words = ["sink", "--on", "xdp:right", "--address", OURS_FAR];
        let mut sink = far.run(move || Background::start(&words));
        let address = sink.address().to_string();
        let json = sweep_on("xdp:left", &address, &[]);
        assert_eq!(json["facts"]["bench"]["settings"]["link"], "AF_XDP with copies");
        assert_eq!(json["facts"]["bench"]["settings"]["link.offloads"], "off");
        assert_eq!(sink.interrupt().1, 0);
    });
}

/// What the last line says of a sweep across the interface `left` to which, after its first run,
/// such a `change` is made.
fn told_after(change: impl FnOnce(KernelInterface) -> Result<(), InterfaceError>) -> String {
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
    assert!(line.contains("of 99999 runs are kept, go on with"), "{errors}");
    line.to_owned()
}

#[test]
fn an_interface_that_goes_down_ends_a_sweep_with_a_line_about_it_and_not_about_the_peer() {
    isolated_test(|| {
        let line = told_after(|left| left.set_down());
        assert!(
            line.contains(
                "`left` carries nothing any more: the link is down: bring the interface up"
            ),
            "{line}"
        );
    });
}

#[test]
fn so_does_one_that_is_removed() {
    isolated_test(|| {
        let line = told_after(KernelInterface::delete);
        assert!(line.contains("`left` carries nothing any more: the link is down"), "{line}");
    });
}

#[test]
fn so_does_one_whose_mtu_becomes_smaller() {
    isolated_test(|| {
        let line = told_after(|left| left.set_mtu(Bytes::new(1_000)));
        let says = "`left` took packets of 1500 bytes when the night began, and takes 1000 now: set it back";
        assert!(line.contains(says), "{line}");
    });
}

#[test]
fn our_tcp_sweeps_to_our_tcp() {
    isolated_test(|| {
        let far = far_network();
        let words = ["sink", "--on", "packet:right", "--address", OURS_FAR, "--listen", "1988"];
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
        assert_eq!(
            (code, lines.iter().filter(|line| line.contains("every byte right")).count()),
            (0, 4)
        );
    });
}

#[test]
fn sinks_and_sources_of_our_tcp_serve_the_kernel_and_each_other() {
    isolated_test(|| {
        let far = far_network();
        let words = ["sink", "--on", "packet:right", "--address", OURS_FAR, "--listen", "0"];
        let mut sink = far.run(move || Background::start(&words));
        let address = sink.address().to_string();
        let (code, said, errors) = run(&["source", &address, "--bytes", "3MiB", "--verify"]);
        assert!(
            code == 0 && said.contains("3 MiB in ") && said.contains("every byte right"),
            "{said}{errors}"
        );
        let ours = ["--on", "packet:left", "--address", OURS];
        let words = [&["source", &address, "--bytes", "3MiB"], &ours[..]].concat();
        let (code, said, errors) = run(&words);
        assert!(
            code == 0 && said.contains("3 MiB in ") && said.contains("read the last and closed"),
            "{said}{errors}"
        );
        let words = [
            &["source", &address, "--bytes", "100kB", "--verify", "--send-buffer", "4KiB"],
            &ours[..],
        ]
        .concat();
        let (code, said, errors) = run(&words);
        assert!(code == 0 && said.contains("every byte right"), "{said}{errors}");
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
fn what_an_interface_cannot_be_is_one_line() {
    isolated_test(|| {
        let _far = far_network();
        let on = |link, further: &[&'static str]| {
            [&["sweep", "10.88.0.2", "--on", link], further].concat()
        };
        for (words, says) in [
            (on("packet:left", &[]), "needs an address behind left: give --address"),
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
            (
                vec!["sweep", "--address", OURS],
                "--address is that of linerate's host on an interface",
            ),
            (
                vec!["sink", "--gateway", "10.88.0.1"],
                "--gateway is for linerate's host on an interface",
            ),
            (vec!["sink", "--on", "packet:left"], "give --address ADDR/LENGTH"),
            (
                vec!["sink", "--on", "packet:left", "--address", OURS, "--listen", "10.88.0.1:7"],
                "10.88.0.1:7 is no address of linerate's host: listen at 10.88.0.11",
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
                "a window reaches no farther",
            ),
        ] {
            let directory = TempDir::new().unwrap();
            let line = fail(directory.path(), &words, 2);
            assert!(
                line.contains(says) && line.trim_end().lines().count() == 1,
                "{words:?}: {line}"
            );
        }
    });
}
