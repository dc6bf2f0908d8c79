//! Tests of `linerate sink` and `linerate source`, with each other and with other TCP programs.

use crate::support::{Background, run};
use linerate_link::KernelInterface;
use linerate_link::namespace::{isolated_test, skip_test};
use std::io::{Read, Write};
use std::net::{Ipv6Addr, Shutdown, TcpListener, TcpStream};

#[test]
fn a_sink_counts_the_data_of_a_plain_peer() {
    let mut sink = Background::start(&["sink", "--listen", "127.0.0.1:0"]);
    let address = sink.address();
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(&[b'x'; 100_000]).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(peer.read(&mut [0; 1]).unwrap(), 0);
    let line = sink.line();
    assert!(line.contains("plain: 97.7 KiB"), "{line}");
    let (rest, code) = sink.interrupt();
    assert!(
        rest[0].starts_with("total: 97.7 KiB") && rest[0].contains("1 connections"),
        "{rest:?}"
    );
    assert_eq!(code, 0);
}

#[test]
fn a_source_sends_data_to_a_sink() {
    let mut sink =
        Background::start(&["sink", "--listen", "127.0.0.1:0", "--congestion", "reno", "--runs"]);
    let address = sink.address().to_string();
    let (code, said, _) = run(&["source", &address, "--bytes", "3MiB", "--write-size", "10000"]);
    assert!(code == 0 && said.starts_with("3 MiB in ") && said.contains("closed"), "{said}");
    let (code, said, _) =
        run(&["source", &address, "--bytes", "3MiB", "--verify", "--send-buffer", "64KiB"]);
    assert!(
        code == 0 && said.starts_with("3 MiB in ") && said.contains("all data intact"),
        "{said}"
    );
    let (code, said, said_of_errors) =
        run(&["source", &address, "--bytes", "1MiB", "--congestion", "reno"]);
    assert!(code == 0 && said.starts_with("1 MiB in "), "{said}{said_of_errors}");
    let (code, said, _) = run(&["source", &address, "--seconds", "1ms", "--verify"]);
    assert!(code == 0 && said.contains("all data intact"), "{said}");
    let (lines, _) = sink.interrupt();
    assert!(lines.iter().any(|line| line.contains("run: 3 MiB")), "{lines:?}");
}

#[test]
fn a_sink_and_a_source_support_ipv6() {
    if let Err(error) = TcpListener::bind("[::1]:0") {
        return skip_test(&format!("this machine has no IPv6: {error}"));
    }
    let mut sink = Background::start(&["sink", "--listen", "[::1]:0"]);
    let address = sink.address().to_string();
    let (code, said, _) = run(&["source", &address, "--bytes", "100000", "--verify"]);
    assert!(
        code == 0 && address.starts_with("[::1]:") && said.contains("all data intact"),
        "{said}"
    );
}

#[test]
fn link_local_addresses_have_the_name_of_their_interface() {
    isolated_test(|| {
        let loopback = KernelInterface::loopback().unwrap();
        loopback.set_up().unwrap();
        if let Err(error) = loopback.add_address("fe80::5".parse::<Ipv6Addr>().unwrap(), 64) {
            return skip_test(&format!("the loopback takes no IPv6 address: {error}"));
        }
        let mut sink = Background::start(&["sink", "--listen", "[fe80::5%lo]:0"]);
        let address = sink.address();
        assert!(address.to_string().starts_with("[fe80::5%1]:"), "{address}");
        for host in ["fe80::5%lo", "fe80::5%1"] {
            let host = format!("[{host}]:{}", address.port());
            let (code, said, errors) = run(&["source", &host, "--bytes", "100000", "--verify"]);
            assert!(code == 0 && said.contains("all data intact"), "{said}{errors}");
        }
    });
}

#[test]
fn a_listening_source_sends_characters_to_every_peer() {
    let mut source =
        Background::start(&["source", "--listen", "127.0.0.1:0", "--bytes", "1000000"]);
    let mut peer = TcpStream::connect(source.address()).unwrap();
    let mut bytes = Vec::new();
    peer.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 1_000_000);
    assert!(bytes.starts_with(b"!\"#$%&'()*+,-./0123456789:;<=>?@ABC"));
    drop(peer);
    assert!(source.line().contains("drew 976.6 KiB"));
    assert_eq!(source.interrupt().1, 0);
}

#[test]
fn invalid_arguments_are_one_line_and_exit_code_2() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (words, expected_text) in [
        (&["sink", "--listen", &taken][..], "is in use: end the program"),
        (&["sink", "--listen", "192.0.2.1:0"], "is not an address of this machine"),
        (&["sink", "--listen", "nowhere"], "`nowhere` is not an address"),
        (&["source", "--listen", &taken], "is in use"),
        (&["source"], "HOST"),
        (&["source", "127.0.0.1:1", "--bytes", "0"], "zero bytes"),
        (&["source", "127.0.0.1:1"], "cannot be reached (Connection refused"),
        (&["source", "no-such-host.invalid"], "cannot be reached"),
        (&["source", "fe80::1%nosuch"], "this machine has no interface `nosuch`"),
        (&["source", "fe80::1"], "is link-local: append the interface"),
        (&["source", "[fe80::1%a b]:7"], "is not a peer"),
        (&["sink", "--listen", "[fe80::1%nosuch]:7"], "this machine has no interface `nosuch`"),
        (&["sink", "--listen", "fe80::1%lo"], "is not an address"),
        (&["source", "127.0.0.1:99999"], "is not a peer"),
        (&["source", "--listen", "0", "--send-buffer", "1000M"], "net.core.wmem_max=1048576000"),
        (
            &["source", "--listen", "0", "--send-buffer", "1TiB"],
            "no kernel grants more than 1073741823; ask for less",
        ),
        (&["source", "--listen", "0", "--seconds", "0"], "the time is zero"),
    ] {
        let (code, stdout, stderr) = run(words);
        assert_eq!((code, stdout.as_str()), (2, ""), "{words:?}: {stderr}");
        assert!(
            stderr.contains(expected_text) && stderr.trim_end().lines().count() == 1,
            "{words:?}: {stderr}"
        );
    }
}

#[test]
fn a_peer_that_is_not_linerate_cannot_verify() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let hangs_up = std::thread::spawn(move || drop(other.accept().unwrap()));
    let (code, _, stderr) = run(&["source", &address, "--verify", "--bytes", "1"]);
    assert!(code == 2 && stderr.contains("leave --verify out"), "{stderr}");
    hangs_up.join().unwrap();
}

/// Requests the metrics of a sink over HTTP, and returns the response.
fn metrics_at(address: &str) -> String {
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    peer.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_sink_prints_one_line_for_a_sweep_and_serves_metrics() {
    let mut sink =
        Background::start(&["sink", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
    let address = sink.address().to_string();
    let line = sink.line();
    let page = line.strip_prefix("metrics at http://").unwrap().strip_suffix("/metrics").unwrap();
    assert!(metrics_at(page).contains("linerate_sink_sweeps_total 0\n"));
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("night");
    let buffers = ["--send-buffers", "16KiB,32KiB", "--receive-buffers", "16KiB,32KiB"];
    let words = ["sweep", &address, "--bytes", "64KiB", "--repeat", "1", "--verify", "--quiet"];
    let words = [&words[..], &buffers, &["--out", out.to_str().unwrap()]].concat();
    let (code, _, errors) = run(&words);
    assert_eq!(code, 0, "{errors}");
    let line = sink.line();
    assert!(line.contains(" sweep: over after 4 runs, 256 KiB in "), "{line}");
    assert!(line.ends_with(", all data intact"), "{line}");
    let text = metrics_at(page);
    for expected in ["sweeps_total 1\n", "bytes_total{service=\"run\"} 262144\n"] {
        assert!(text.contains(&format!("linerate_sink_{expected}")), "{text}");
    }
    let (rest, code) = sink.interrupt();
    assert!(code == 0 && rest.len() == 1 && rest[0].starts_with("total: 256 KiB"), "{rest:?}");
}
