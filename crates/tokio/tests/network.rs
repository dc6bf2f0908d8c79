//! Deterministic networks: equal seeds, loss, partitions, time, rules, and failures of a run.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use linerate_tokio::net::{TcpListener, TcpStream, UdpSocket};
use linerate_tokio::sim::{self, Impairments, Network, Verdict};
use std::cell::RefCell;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::{spawn_local, yield_now};
use tokio::time::{Instant, sleep, timeout};

fn impairments(text: &str) -> Impairments {
    text.parse().unwrap()
}

/// Sends `length` bytes to the first client that connects.
async fn send(length: usize) {
    let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    let data: Vec<u8> = (0..=250).cycle().take(length).collect();
    stream.write_all(&data).await.unwrap();
}

/// Reads and checks all data from the server. Returns the number of bytes.
async fn receive() -> usize {
    let mut stream = TcpStream::connect("server:80").await.unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await.unwrap();
    assert!(received.iter().enumerate().all(|(at, &byte)| usize::from(byte) == at % 251));
    received.len()
}

fn transfer(network: &Network, length: usize) -> usize {
    network.host("server").spawn(send(length));
    network.host("client").run(receive())
}

#[test]
fn equal_seeds_give_equal_traces() {
    let run = |seed| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.pcapng");
        let link = impairments("loss=2%,delay=5ms,jitter=1ms,reorder=1%,duplicate=1%,rate=50Mb/s");
        let network = Network::builder().seed(seed).link(link).capture(&file).unwrap().build();
        assert_eq!(transfer(&network, 300_000), 300_000);
        (network.trace(), network.elapsed(), std::fs::read(file).unwrap())
    };
    let first = run(3);
    assert!(first == run(3), "the second run differs");
    assert!(first.2.len() > 300_000, "the capture has the data");
    assert_ne!(first.0, run(4).0);
}

#[test]
fn a_path_that_loses_one_percent_delivers_everything() {
    let network = Network::builder().link(impairments("loss=1%,delay=10ms,rate=100Mb/s")).build();
    assert_eq!(transfer(&network, 4_000_000), 4_000_000);
    let [server, client] = ["server", "client"].map(|name| network.host(name));
    assert!(network.path_counters(&server, &client).lost > 10);
    assert!(server.net().counters().tcp.retransmitted_segments > 10);
}

#[test]
fn a_connection_survives_a_partition_of_thirty_seconds() {
    let network = Network::builder().link(impairments("delay=10ms,rate=10Mb/s")).build();
    let [server, client] = ["server", "client"].map(|name| network.host(name));
    server.spawn(send(2_000_000));
    let others = network.clone();
    let cut = async move {
        sleep(Duration::from_millis(500)).await;
        others.partition(&server, &client);
        sleep(Duration::from_secs(30)).await;
        others.repair(&server, &client);
    };
    network.host("operator").spawn(cut);
    assert_eq!(network.host("client").run(receive()), 2_000_000);
    assert!(network.elapsed() > Duration::from_secs(30), "{:?}", network.elapsed());
    assert!(network.elapsed() < Duration::from_secs(90), "{:?}", network.elapsed());
}

#[test]
fn an_idle_hour_has_few_events() {
    let network = Network::builder().build();
    network.host("server").spawn(async {
        let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4];
        stream.read_exact(&mut request).await.unwrap();
        stream.write_all(&request).await.unwrap();
    });
    network.host("client").run(async {
        let mut stream = TcpStream::connect("server:80").await.unwrap();
        sleep(Duration::from_secs(3_600)).await;
        stream.write_all(b"ping").await.unwrap();
        let mut reply = [0; 4];
        stream.read_exact(&mut reply).await.unwrap();
        assert_eq!(&reply, b"ping");
    });
    assert!(network.elapsed() > Duration::from_secs(3_600));
    assert!(network.trace().packets < 20, "{:?}", network.trace());
}

#[test]
fn a_round_trip_takes_exactly_twice_the_delay() {
    let network = Network::builder().link(impairments("delay=123456ns")).build();
    network.host("server").spawn(async {
        let socket = UdpSocket::bind("0.0.0.0:7").await.unwrap();
        let mut data = [0; 8];
        loop {
            let (length, from) = socket.recv_from(&mut data).await.unwrap();
            socket.send_to(&data[..length], from).await.unwrap();
        }
    });
    network.host("client").run(async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        socket.connect("server:7").await.unwrap();
        for round in 0..3_u8 {
            sleep(Duration::from_millis(round.into())).await;
            let start = Instant::now();
            socket.send(&[round]).await.unwrap();
            let mut data = [0; 8];
            assert_eq!(socket.recv(&mut data).await.unwrap(), 1);
            assert_eq!((start.elapsed(), data[0]), (Duration::from_nanos(246_912), round));
        }
        // Timers of tokio expire at whole milliseconds, so a sleep of 5 ms can take up to 6 ms.
        let start = Instant::now();
        sleep(Duration::from_millis(5)).await;
        assert!((5..6).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    });
}

#[test]
fn a_rule_applies_until_its_guard_is_dropped() {
    let network = Network::builder().build();
    let seen = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = seen.clone();
    let guard = network.rule(move |packet| {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if packet.protocol() == 17 { Verdict::Drop } else { Verdict::Pass }
    });
    network.host("server").spawn(async {
        let socket = UdpSocket::bind("0.0.0.0:7").await.unwrap();
        let mut data = [0; 8];
        let (length, from) = socket.recv_from(&mut data).await.unwrap();
        socket.send_to(&data[..length], from).await.unwrap();
    });
    network.host("client").run(async move {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        let mut data = [0; 8];
        socket.send_to(b"lost", "server:7").await.unwrap();
        assert!(timeout(Duration::from_secs(1), socket.recv(&mut data)).await.is_err());
        drop(guard);
        socket.send_to(b"here", "server:7").await.unwrap();
        assert_eq!(socket.recv(&mut data).await.unwrap(), 4);
        assert_eq!(&data[..4], b"here");
    });
    assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 1);
}

/// Sends the bytes 0 to 9, one per datagram. For each datagram, `rule` gets its byte and returns
/// the verdict. Returns the bytes that arrive, and their times.
fn arrivals(mut rule: impl FnMut(u8) -> Verdict + Send + 'static) -> Vec<(u8, Duration)> {
    let network = Network::builder().link(impairments("delay=1ms")).build();
    let _guard = network.rule(move |packet| match *packet.payload() {
        [_, _, _, _, _, _, _, _, byte] => rule(byte),
        _ => Verdict::Pass,
    });
    network.host("client").spawn(async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        for byte in 0..10 {
            socket.send_to(&[byte], "server:7").await.unwrap();
            sleep(Duration::from_millis(10)).await;
        }
    });
    network.host("server").run(async {
        let socket = UdpSocket::bind("0.0.0.0:7").await.unwrap();
        let (start, mut seen) = (Instant::now(), Vec::new());
        let mut byte = [0];
        while timeout(Duration::from_secs(5), socket.recv(&mut byte)).await.is_ok() {
            seen.push((byte[0], start.elapsed()));
        }
        seen
    })
}

#[test]
fn rules_delay_duplicate_corrupt_and_reorder_packets() {
    let bytes = |seen: &[(u8, Duration)]| seen.iter().map(|seen| seen.0).collect::<Vec<_>>();
    let only = |wanted: u8, verdict: Verdict| {
        arrivals(move |byte| if byte == wanted { verdict } else { Verdict::Pass })
    };
    let plain = arrivals(|_| Verdict::Pass);
    assert_eq!(bytes(&plain), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let delayed = only(3, Verdict::Delay(Duration::from_millis(35)));
    assert_eq!(bytes(&delayed), [0, 1, 2, 4, 5, 6, 3, 7, 8, 9]);
    assert_eq!(delayed[6].1, plain[3].1 + Duration::from_millis(35));
    let doubled = only(3, Verdict::Duplicate);
    assert_eq!(bytes(&doubled), [0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(bytes(&only(3, Verdict::Drop)), [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    assert_eq!(bytes(&only(3, Verdict::Corrupt)), [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    let reordered = only(3, Verdict::Reorder(2));
    assert_eq!(bytes(&reordered), [0, 1, 2, 4, 5, 3, 6, 7, 8, 9]);
    // A packet that never enters its path, or enters it later, does not overtake others.
    let beside_others = arrivals(|byte| match byte {
        3 => Verdict::Reorder(2),
        4 => Verdict::Drop,
        5 => Verdict::Delay(Duration::from_millis(35)),
        _ => Verdict::Pass,
    });
    assert_eq!(bytes(&beside_others), [0, 1, 2, 6, 7, 3, 8, 5, 9]);
    // A packet that was held back overtakes others when it enters its path.
    let among_held = arrivals(|byte| match byte {
        3 => Verdict::Reorder(2),
        4 => Verdict::Reorder(1),
        _ => Verdict::Pass,
    });
    assert_eq!(bytes(&among_held), [0, 1, 2, 5, 4, 3, 6, 7, 8, 9]);
    // The verdict `Reorder(2)` delays a packet until two later ones have overtaken it. No datagrams
    // follow the last one, so it is delivered after the maximum delay of one second.
    let late = only(9, Verdict::Reorder(2));
    assert_eq!(bytes(&late), bytes(&plain));
    assert_eq!(late[9].1, plain[9].1 + Duration::from_secs(1));
}

#[test]
fn a_connection_survives_every_verdict() {
    let network = Network::builder().link(impairments("delay=5ms,rate=50Mb/s")).build();
    let mut count = 0_u32;
    let _guard = network.rule(move |_| {
        count += 1;
        match count % 50 {
            0 => Verdict::Drop,
            10 => Verdict::Corrupt,
            20 => Verdict::Duplicate,
            30 => Verdict::Reorder(3),
            40 => Verdict::Delay(Duration::from_millis(20)),
            _ => Verdict::Pass,
        }
    });
    assert_eq!(transfer(&network, 1_000_000), 1_000_000);
    let server = network.host("server").net().counters().tcp.retransmitted_segments;
    assert!(server > 10, "{server} retransmissions");
}

#[test]
fn links_change_while_the_network_runs() {
    let network = Network::builder().build();
    let [server, client] = ["server", "client"].map(|name| network.host(name));
    server.spawn(async {
        let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut byte = [0];
        while stream.read_exact(&mut byte).await.is_ok() {
            stream.write_all(&byte).await.unwrap();
        }
    });
    let (links, this, other) = (network, client.clone(), server);
    client.run(async move {
        let mut stream = TcpStream::connect("server:80").await.unwrap();
        let mut times = Vec::new();
        for delay in ["delay=1ms", "delay=70ms"] {
            links.set_link(&this, &other, impairments(delay));
            let start = Instant::now();
            stream.write_all(b"x").await.unwrap();
            stream.read_exact(&mut [0]).await.unwrap();
            times.push(start.elapsed());
        }
        assert_eq!(times, [2, 140].map(Duration::from_millis));
    });
}

#[test]
fn netstat_lists_the_sockets_of_all_hosts() {
    let network = Network::builder().build();
    let view = network.clone();
    network.host("server").spawn(async {
        let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
        let _connection = listener.accept().await.unwrap();
        std::future::pending::<()>().await;
    });
    network.host("client").run(async move {
        let _stream = TcpStream::connect("server:80").await.unwrap();
        sleep(Duration::from_secs(1)).await;
        let text = view.netstat();
        assert_eq!(text.matches("Established").count(), 2, "{text}");
        assert_eq!(text.matches("Listen").count(), 1, "{text}");
    });
}

#[test]
fn tasks_started_by_spawn_local_stay_on_their_host() {
    let addresses = Rc::new(RefCell::new(Vec::new()));
    let network = Network::builder().build();
    for name in ["one", "two", "three"] {
        let addresses = Rc::clone(&addresses);
        network.host(name).spawn(async move {
            let task = spawn_local(async move {
                yield_now().await;
                // A task can bind an address only of its own host. So this succeeds only if the
                // task runs on the host called `name`.
                let socket = UdpSocket::bind((name, 0)).await.unwrap();
                socket.local_addr().unwrap().ip().to_string()
            });
            let address = task.await.unwrap();
            addresses.borrow_mut().push(address);
        });
    }
    network.host("four").run(async {
        sleep(Duration::from_secs(1)).await;
    });
    let mut addresses = addresses.take();
    addresses.sort();
    assert_eq!(addresses, ["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
}

#[test]
fn a_panic_of_a_task_or_a_rule_and_a_wait_without_end_fail_the_run() {
    let network = Network::builder().build();
    network.host("server").spawn(async { panic!("this panic is part of a test") });
    let run = || network.host("client").run(std::future::pending::<()>());
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"this panic is part of a test"));

    let network = Network::builder().build();
    let _server = network.host("server");
    let _guard = network.rule(|_| panic!("this panic is part of a test, too"));
    let run = || {
        network.host("client").run(async {
            let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
            socket.send_to(b"x", "server:7").await.unwrap();
            socket.recv(&mut [0]).await.unwrap()
        })
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"this panic is part of a test, too"));

    let network = Network::builder().time_limit(Duration::from_secs(60)).build();
    let run = || network.host("client").run(std::future::pending::<()>());
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("virtual time limit"), "{text}");
    assert_eq!(network.elapsed(), Duration::from_secs(60));
}

#[test]
fn wrong_use_returns_the_kinds_of_std() {
    sim::lo(async {
        let kind = |result: std::io::Result<TcpStream>| result.unwrap_err().kind();
        assert_eq!(kind(TcpStream::connect("127.0.0.1:9").await), ErrorKind::ConnectionRefused);
        assert_eq!(kind(TcpStream::connect("[::1]:9").await), ErrorKind::ConnectionRefused);
        assert_eq!(kind(TcpStream::connect("nowhere:9").await), ErrorKind::NotFound);
        let _first = TcpListener::bind("0.0.0.0:80").await.unwrap();
        let second = TcpListener::bind("0.0.0.0:80").await.unwrap_err();
        assert_eq!(second.kind(), ErrorKind::AddrInUse);
        let foreign = UdpSocket::bind("192.0.2.1:80").await.unwrap_err();
        assert_eq!(foreign.kind(), ErrorKind::AddrNotAvailable);
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        assert_eq!(socket.send(b"x").await.unwrap_err().kind(), ErrorKind::NotConnected);
    });
    let network = Network::builder().build();
    let outside = network.run(TcpStream::connect("127.0.0.1:9"));
    assert_eq!(outside.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
}
