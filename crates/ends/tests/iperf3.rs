//! Tests of both roles of iperf3's protocol, client and server. The other role is played by
//! linerate itself, by hostile peers, or by iperf3 if it is installed.

#![allow(clippy::unwrap_used, reason = "test helpers unwrap as tests do")]

use linerate_ends::iperf3::{Client, Event, Iperf3Error, Served, Server, Test};
use linerate_ends::serve::ListenAt;
use linerate_ends::socket::{Network, Options, Stream};
use linerate_ends::{Interrupt, Peer};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// Number of bytes that a test transfers on each stream; a sending server may transfer more.
const PIECE: usize = 64 << 10;

/// Starts linerate's server, and calls `client` with its address. Returns the events of the server.
fn with_server(client: impl FnOnce(SocketAddr)) -> Vec<Event> {
    let place = ListenAt::Address("127.0.0.1:0".parse().unwrap());
    let server = Server::bind(&Network::Kernel, place, &Options::default()).unwrap();
    let address = server.local_addr().unwrap();
    let interrupt = Interrupt::default();
    let events = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let tell = |event: &Event| events.lock().unwrap().push(event.clone());
        let (server, interrupt) = (&server, &interrupt);
        let serving = scope.spawn(move || server.serve(interrupt, &tell));
        client(address);
        interrupt.raise();
        // A connection wakes the server at once. Without it, the server would notice the interrupt
        // only after a timeout.
        drop(TcpStream::connect(address));
        serving.join().unwrap().unwrap();
    });
    events.into_inner().unwrap()
}

/// Returns the successful tests among `events`.
fn served(events: &[Event]) -> Vec<Served> {
    let served = events.iter().filter_map(|event| match event {
        Event::Served(served) => Some(*served),
        Event::Rejected { .. } => None,
    });
    served.collect()
}

fn test(streams: usize, is_reverse: bool) -> Test {
    Test { streams, is_reverse, write_size: PIECE, time: Duration::from_secs(1) }
}

fn start(address: SocketAddr, test: &Test) -> Result<Client, Iperf3Error> {
    let peer = Peer { host: address.ip().to_string(), port: address.port() };
    Client::start(&Network::Kernel, &peer, &Options::default(), test)
}

/// Runs a test that transfers `PIECE` bytes on each stream. Returns the server's results.
fn exchange(address: SocketAddr, test: &Test) -> linerate_ends::iperf3::Results {
    let client = start(address, test).unwrap();
    for mut stream in client.streams() {
        if test.is_reverse {
            stream.read_exact(&mut vec![0; PIECE]).unwrap();
        } else {
            stream.write_all(&vec![0; PIECE]).unwrap();
        }
    }
    client.end(&vec![PIECE as u64; test.streams], Duration::from_secs(1)).unwrap()
}

/// The tests to run: the number of streams, and whether the server sends the data (instead of the
/// client).
const CASES: [(usize, bool); 4] = [(1, false), (8, false), (1, true), (8, true)];

#[test]
fn both_roles_agree() {
    for (streams, is_reverse) in CASES {
        let events = with_server(|address| {
            let results = exchange(address, &test(streams, is_reverse));
            let numbers: Vec<f64> = results.streams.iter().map(|stream| stream.id).collect();
            let all = [1.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
            assert_eq!(numbers, all[..streams]);
        });
        let served = served(&events);
        assert_eq!(served.len(), 1, "{events:?}");
        assert_eq!((served[0].streams, served[0].is_reverse), (streams, is_reverse));
        if is_reverse {
            assert!(served[0].bytes >= (streams * PIECE) as u64, "{served:?}");
        }
    }
}

#[test]
fn a_second_client_is_told_that_the_server_is_busy() {
    with_server(|address| {
        let first = start(address, &test(1, false)).unwrap();
        assert!(matches!(start(address, &test(1, false)), Err(Iperf3Error::Busy)));
        first.end(&[0], Duration::from_secs(1)).unwrap();
    });
}

#[test]
fn a_hostile_client_costs_one_line_and_the_next_one_is_served() {
    let cookie = b"abcdefghijklmnopqrstuvwxyz2345672345\0";
    let udp = br#"{"udp":true,"parallel":1}"#;
    let many = br#"{"tcp":true,"parallel":1e9}"#;
    let text = |text: &[u8]| [&u32::try_from(text.len()).unwrap().to_be_bytes(), text].concat();
    for (sent, expected) in [
        (b"GET / HTTP/1.1\r\nHost: a.server.example\r\n\r\n".to_vec(), "it is not iperf3"),
        ([&cookie[..], b"\xff\xff\xff\xff"].concat(), "a text of 4294967295 bytes"),
        ([&cookie[..], &text(b"[[[[[[")].concat(), "not JSON"),
        ([&cookie[..], &text(udp)].concat(), "another protocol than TCP"),
        ([&cookie[..], &text(many)].concat(), "a number of streams"),
        (cookie[..9].to_vec(), "closed the connection"),
    ] {
        let events = with_server(|address| {
            let mut peer = TcpStream::connect(address).unwrap();
            peer.write_all(&sent).unwrap();
            peer.shutdown(Shutdown::Write).unwrap();
            // Reads until the server has closed the connection. If the server has not read all
            // data, it resets the connection and the read fails.
            let _ = peer.read_to_end(&mut Vec::new());
            exchange(address, &test(1, false));
        });
        let lines: Vec<&String> = events
            .iter()
            .filter_map(|event| match event {
                Event::Rejected { reason, .. } => Some(reason),
                Event::Served(_) => None,
            })
            .collect();
        assert!(lines.iter().any(|line| line.contains(expected)), "{expected}: {events:?}");
        assert!(lines.iter().all(|line| line.lines().count() == 1), "{events:?}");
        assert_eq!(served(&events).len(), 1, "{events:?}");
    }
}

#[test]
fn a_server_of_another_protocol_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let other = thread::spawn(move || {
        let mut peer = listener.accept().unwrap().0;
        peer.write_all(b"220 mail.example ESMTP\r\n").unwrap();
        let _ = peer.read_to_end(&mut Vec::new());
    });
    assert!(matches!(start(address, &test(1, false)), Err(Iperf3Error::NotIperf3)));
    other.join().unwrap();
}

/// Is iperf3 installed? Without it, the two roles are tested only against each other.
fn has_iperf3() -> bool {
    Command::new("iperf3").arg("--version").output().is_ok()
}

#[test]
fn iperf3_clients_are_served() {
    if !has_iperf3() {
        return;
    }
    for (streams, is_reverse) in CASES {
        let events = with_server(|address| {
            let (port, count) = (address.port().to_string(), streams.to_string());
            let mut iperf3 = Command::new("iperf3");
            iperf3.args(["-c", "127.0.0.1", "-p", &port, "-n", "1M", "-P", &count, "--json"]);
            if is_reverse {
                iperf3.arg("-R");
            }
            let output = iperf3.output().unwrap();
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert!(output.status.success(), "{report:#}");
            assert_eq!(report.get("error"), None, "{report:#}");
            let ends = report["end"]["streams"].as_array().unwrap();
            assert_eq!(ends.len(), streams);
            let sent = report["end"]["sum_sent"]["bytes"].as_u64().unwrap();
            let received = report["end"]["sum_received"]["bytes"].as_u64().unwrap();
            assert!(sent > 0 && received > 0, "{sent} sent, {received} received");
        });
        let served = served(&events);
        assert_eq!(served.len(), 1, "{events:?}");
        assert_eq!((served[0].streams, served[0].is_reverse), (streams, is_reverse));
    }
}

#[test]
fn an_iperf3_server_serves_us() {
    if !has_iperf3() {
        return;
    }
    for (streams, is_reverse) in CASES {
        // A listener finds a free port, and is closed at once. iperf3 can listen at this port
        // without delay, because it sets SO_REUSEADDR.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Command::new("iperf3")
            .args(["-s", "-1", "-B", "127.0.0.1", "-p", &port.to_string(), "--forceflush"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        assert!(lines.by_ref().any(|line| line.unwrap().contains("listening on")));
        let address = ([127, 0, 0, 1], port).into();
        let results = exchange(address, &test(streams, is_reverse));
        assert_eq!(results.streams.len(), streams, "{results:?}");
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert!(server.wait().unwrap().success(), "{rest:?}");
        assert!(rest.iter().all(|line| !line.contains("error")), "{rest:?}");
    }
}

#[test]
fn a_stream_is_a_connection_of_the_kernel() {
    with_server(|address| {
        let client = start(address, &test(1, false)).unwrap();
        assert!(matches!(client.streams(), [Stream::Kernel(_)]));
        client.end(&[0], Duration::ZERO).unwrap();
    });
}
