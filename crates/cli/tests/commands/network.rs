//! A sweep to a sink on another machine, both of them networks of this one, with a cable between.

use super::folder::{fail, within};
use super::support::{Background, finished};
use linerate_link::KernelInterface;
use linerate_link::namespace::{Network, isolated_test};
use serde_json::Value;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use tempfile::TempDir;

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);

/// Another network, at the far end of a cable from this one.
fn far_network() -> Network {
    let far = Network::new().unwrap();
    let (left, right) = KernelInterface::create_veth("left", "right").unwrap();
    right.move_to_process(far.id()).unwrap();
    give_address(&left, NEAR);
    far.run(|| give_address(&KernelInterface::named("right").unwrap(), FAR));
    far
}

fn give_address(interface: &KernelInterface, address: Ipv4Addr) {
    interface.add_address(address, 24).unwrap();
    interface.set_up().unwrap();
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
            assert!(run["counters"]["receiver"]["bytes_received"].as_u64().unwrap() >= 300_000, "{run}");
        }
        assert!(json["facts"]["bench"]["settings"]["sink"].as_str().unwrap().starts_with("linerate "));
        let (lines, code) = sink.interrupt();
        assert_eq!((code, lines.iter().filter(|line| line.contains("every byte right")).count()), (0, 8));
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
        let words = ["sweep", &address, "--send-buffers", "64KiB", "--receive-buffers", "900GiB"];
        let line = fail(directory.path(), &words, 2);
        assert!(line.contains("a receive buffer of") && line.contains("net.core.rmem_max"), "{line}");
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
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "{peer} left something behind");
        }
        hangs_up.join().unwrap();
    });
}
