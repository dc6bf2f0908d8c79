//! IPv6 in deterministic networks: addresses and names, all types of sockets, rules, partitions,
//! captures, and the list of open sockets.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_link::capture_file::CaptureReader;
use linerate_tokio::net::{TcpListener, TcpSocket, TcpStream, ToSocketAddrs, UdpSocket};
use linerate_tokio::sim::{self, Impairments, IpVersions, Network, Verdict};
use linerate_tokio::{AddressState, Net};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};

fn impairments(text: &str) -> Impairments {
    text.parse().unwrap()
}

/// Sends 300,000 bytes to the first client that connects.
async fn send(address: &str) {
    let listener = TcpListener::bind(address).await.unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    let data: Vec<u8> = (0..=250).cycle().take(300_000).collect();
    stream.write_all(&data).await.unwrap();
}

/// Reads and checks all data from the server. Returns the server's address.
async fn receive() -> SocketAddr {
    let mut stream = TcpStream::connect("server:80").await.unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await.unwrap();
    assert_eq!(received.len(), 300_000);
    assert!(received.iter().enumerate().all(|(at, &byte)| usize::from(byte) == at % 251));
    stream.peer_addr().unwrap()
}

async fn echo_datagrams(address: &'static str) {
    let socket = UdpSocket::bind(address).await.unwrap();
    let mut data = [0; 4_000];
    loop {
        let (length, from) = socket.recv_from(&mut data).await.unwrap();
        socket.send_to(&data[..length], from).await.unwrap();
    }
}

/// Sends a datagram from `local` to the server. Returns whether its echo arrives within a second.
async fn is_answered(local: &str, data: &[u8]) -> bool {
    let socket = UdpSocket::bind(local).await.unwrap();
    socket.send_to(data, "server:7").await.unwrap();
    let mut answer = vec![0; data.len() + 1];
    let answered = timeout(Duration::from_secs(1), socket.recv(&mut answer)).await;
    answered.is_ok_and(|length| answer[..length.unwrap()] == *data)
}

#[test]
fn hosts_have_usable_addresses_of_both_versions_from_the_start() {
    let network = Network::builder().build();
    let hosts = ["one", "two"].map(|name| network.host(name));
    let texts = hosts.each_ref().map(|host| {
        [host.address(), host.ipv4().unwrap().into(), host.ipv6().unwrap().into()]
            .map(|address: IpAddr| address.to_string())
    });
    assert_eq!(texts, [["10.0.0.1", "10.0.0.1", "fd00::1"], ["10.0.0.2", "10.0.0.2", "fd00::2"]]);
    let addresses = hosts[0].net().addresses();
    assert!(addresses.iter().all(|own| own.state == AddressState::Preferred), "{addresses:?}");
    network.host("two").spawn(echo_datagrams("[::]:7"));
    hosts[0].run(async {
        let socket = UdpSocket::bind("[::]:0").await.unwrap();
        let start = Instant::now();
        socket.send_to(b"x", "two:7").await.unwrap();
        socket.recv(&mut [0]).await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_micros(200));
    });
    assert_eq!(network.trace().packets, 2, "neither probes nor reports of groups are sent");
}

#[test]
fn a_name_resolves_to_both_versions_in_the_order_of_rfc_6724() {
    let resolved = |versions, name: &'static str| {
        let network = Network::builder().ip_versions(versions).build();
        let _server = network.host("server");
        network.host("client").run(async move {
            let found = name.to_socket_addrs(&Net::current().unwrap()).unwrap();
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        })
    };
    assert_eq!(resolved(IpVersions::Both, "server:80"), ["10.0.0.1:80", "[fd00::1]:80"]);
    assert_eq!(resolved(IpVersions::V4, "server:80"), ["10.0.0.1:80"]);
    assert_eq!(resolved(IpVersions::V6, "server:80"), ["[fd00::1]:80"]);
    assert_eq!(resolved(IpVersions::Both, "localhost:80"), ["[::1]:80", "127.0.0.1:80"]);
}

#[test]
fn a_client_tries_both_addresses_of_a_server() {
    let listeners = [
        ("0.0.0.0:80", "10.0.0.1:80"),
        ("[fd00::1]:80", "[fd00::1]:80"),
        // A listener at `[::]` accepts both IP versions. The client tries IPv4 first, so it
        // connects to the IPv4 address.
        ("[::]:80", "10.0.0.1:80"),
    ];
    for (address, version) in listeners {
        let server = sim::client_server(send(address), receive());
        assert_eq!(server.to_string(), version);
    }
}

#[test]
fn a_network_can_have_one_ip_version() {
    let network = Network::builder().ip_versions(IpVersions::V6).build();
    let (server, client) = (network.host("server"), network.host("client"));
    assert_eq!((server.address().to_string(), server.ipv4()), ("fd00::1".to_owned(), None));
    server.spawn(send("[::]:80"));
    client.run(async {
        receive().await;
        let unreachable = TcpStream::connect("10.0.0.1:80").await.unwrap_err();
        assert_eq!(unreachable.kind(), ErrorKind::NetworkUnreachable);
    });
    let ipv4 = Network::builder().ip_versions(IpVersions::V4).build().host("one");
    assert_eq!((ipv4.ipv4().is_some(), ipv4.ipv6()), (true, None));
}

#[test]
fn equal_seeds_give_equal_traces_over_ipv6() {
    let run = |seed| {
        let link = impairments("loss=2%,delay=5ms,jitter=1ms,reorder=1%,duplicate=1%,rate=50Mb/s");
        let network = Network::builder().seed(seed).link(link).build();
        network.host("server").spawn(send("[::]:80"));
        network.host("client").run(receive());
        let [server, client] = ["server", "client"].map(|name| network.host(name));
        assert!(network.path_counters(&server, &client).lost > 0);
        (network.trace(), network.elapsed())
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn rules_see_packets_of_both_versions() {
    let network = Network::builder().build();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&seen);
    let _guard = network.rule(move |packet| {
        let (source, destination) = (packet.source.to_string(), packet.destination.to_string());
        list.lock().unwrap().push((source, destination, packet.protocol(), packet.payload().len()));
        Verdict::Pass
    });
    network.host("server").spawn(echo_datagrams("[fd00::1]:7"));
    network.host("server").spawn(echo_datagrams("0.0.0.0:7"));
    network.host("client").run(async {
        for local in ["0.0.0.0:0", "[::]:0"] {
            assert!(is_answered(local, b"four").await);
        }
        assert!(is_answered("[::]:0", &[7; 2_000]).await, "larger than a packet");
    });
    let seen = seen.lock().unwrap();
    let line = |from: &str, to: &str, length| (from.to_owned(), to.to_owned(), 17, length);
    let (v4, v6) = (["10.0.0.1", "10.0.0.2"], ["fd00::1", "fd00::2"]);
    // The last four lines are fragments of a datagram of 2,000 bytes, two in each direction. With
    // the UDP header, it has 2,008 bytes. The fragments carry 1,448 and 560 of them, after their
    // IPv6 and fragment headers.
    let expected = [
        line(v4[1], v4[0], 12),
        line(v4[0], v4[1], 12),
        line(v6[1], v6[0], 12),
        line(v6[0], v6[1], 12),
        line(v6[1], v6[0], 1_448),
        line(v6[1], v6[0], 560),
        line(v6[0], v6[1], 1_448),
        line(v6[0], v6[1], 560),
    ];
    assert_eq!(seen[..], expected);
}

#[test]
fn verdicts_apply_to_ipv6() {
    let answered = |verdict, data: &'static [u8]| {
        let network = Network::builder().build();
        let _guard = network.rule(move |packet| {
            if packet.source == "fd00::2".parse::<IpAddr>().unwrap() {
                verdict
            } else {
                Verdict::Pass
            }
        });
        network.host("server").spawn(echo_datagrams("[::]:7"));
        network.host("client").run(is_answered("[::]:0", data))
    };
    for data in [&[1; 10][..], &[2; 2_500]] {
        assert!(answered(Verdict::Pass, data));
        assert!(answered(Verdict::Duplicate, data));
        assert!(answered(Verdict::Delay(Duration::from_millis(5)), data));
        assert!(!answered(Verdict::Drop, data));
        assert!(!answered(Verdict::Corrupt, data), "the checksum is wrong");
    }
}

#[test]
fn a_partition_and_the_counters_of_a_path_cover_both_versions() {
    let network = Network::builder().build();
    let (server, client) = (network.host("server"), network.host("client"));
    server.spawn(echo_datagrams("[fd00::1]:7"));
    server.spawn(echo_datagrams("0.0.0.0:7"));
    let operator = network.clone();
    let (one, other) = (server.clone(), client.clone());
    client.run(async move {
        for is_cut in [false, true, false] {
            if is_cut {
                operator.partition(&one, &other);
            } else {
                operator.repair(&one, &other);
            }
            for local in ["0.0.0.0:0", "[::]:0"] {
                assert_eq!(is_answered(local, b"data").await, !is_cut, "{local}");
            }
        }
        let loss = impairments("loss=100%");
        operator.set_link(&one, &other, loss);
        for local in ["0.0.0.0:0", "[::]:0"] {
            assert!(!is_answered(local, b"data").await, "{local}");
        }
    });
    let client = network.host("client");
    assert_eq!(network.path_counters(&client, &server).lost, 2);
}

#[test]
fn congested_paths_mark_packets_of_both_versions() {
    for address in ["0.0.0.0:80", "[::]:80"] {
        let link = impairments("mark=10%,delay=1ms");
        let network = Network::builder().link(link).build();
        network.host("server").spawn(async move {
            let listener = TcpListener::bind(address).await.unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(&[7; 300_000]).await.unwrap();
        });
        network.host("client").run(async move {
            let socket =
                if address.starts_with('[') { TcpSocket::new_v6() } else { TcpSocket::new_v4() };
            let socket = socket.unwrap();
            let ecn = linerate_tcp::EcnRule::Request;
            socket.set_config(&linerate_tokio::Config { ecn, ..socket.config() });
            let version =
                |address: &SocketAddr| address.is_ipv6() == socket.local_addr().unwrap().is_ipv6();
            let found = "server:80".to_socket_addrs(&Net::current().unwrap()).unwrap();
            let server = *found.iter().find(|address| version(address)).unwrap();
            let mut received = Vec::new();
            let mut stream = socket.connect(server).await.unwrap();
            stream.read_to_end(&mut received).await.unwrap();
            assert_eq!(received.len(), 300_000);
        });
        let [server, client] = ["server", "client"].map(|name| network.host(name));
        assert!(network.path_counters(&server, &client).marked > 5, "{address}");
    }
}

#[test]
fn loopback_has_both_addresses() {
    sim::lo(async {
        for address in ["127.0.0.1:80", "[::1]:80", "localhost:81"] {
            let listener = TcpListener::bind(address).await.unwrap();
            let (client, server) = tokio::join!(TcpStream::connect(address), listener.accept());
            let (mut client, (mut server, peer)) = (client.unwrap(), server.unwrap());
            assert!(peer.ip().is_loopback(), "{peer}");
            client.write_all(b"hello").await.unwrap();
            let mut text = [0; 5];
            server.read_exact(&mut text).await.unwrap();
            let socket = UdpSocket::bind(address).await.unwrap();
            socket.send_to(&text, address).await.unwrap();
            assert_eq!(socket.recv(&mut text).await.unwrap(), 5);
        }
        let socket = TcpSocket::new_v6().unwrap();
        socket.bind("[::1]:0".parse().unwrap()).unwrap();
        let listener = socket.listen(4).unwrap();
        let connecting = TcpSocket::new_v6().unwrap().connect(listener.local_addr().unwrap());
        let (client, server) = tokio::join!(connecting, listener.accept());
        assert_eq!(client.unwrap().local_addr().unwrap(), server.unwrap().1);
    });
}

#[test]
fn errors_of_the_network_are_those_of_ipv4() {
    let network = Network::builder().build();
    let server = network.host("server");
    let closed = SocketAddr::new(server.ipv6().unwrap().into(), 9);
    network.host("client").run(async move {
        let refused = TcpStream::connect(closed).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let socket = UdpSocket::bind("[::]:0").await.unwrap();
        socket.connect(closed).await.unwrap();
        socket.send(b"x").await.unwrap();
        let refused = socket.recv(&mut [0]).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let absent = TcpStream::connect("[fd00::77]:80");
        assert!(timeout(Duration::from_secs(60), absent).await.is_err(), "no host answers");
        let foreign = UdpSocket::bind("[fd00::1]:0").await.unwrap_err();
        assert_eq!(foreign.kind(), ErrorKind::AddrNotAvailable);
    });
}

#[test]
fn link_local_addresses_reach_other_hosts() {
    let network = Network::builder().build();
    network.host("server").spawn(echo_datagrams("[::]:7"));
    network.host("client").run(async {
        let socket = UdpSocket::bind("[::]:0").await.unwrap();
        socket.send_to(b"x", "[fe80::ff:fe00:1]:7").await.unwrap();
        let (_, from) = socket.recv_from(&mut [0]).await.unwrap();
        assert_eq!(from.to_string(), "[fe80::ff:fe00:1%1]:7", "with its zone");
    });
}

#[test]
fn captures_and_netstat_have_both_versions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.pcapng");
    let network = Network::builder().capture(&file).unwrap().build();
    let view = network.clone();
    network.host("server").spawn(async {
        let listeners = ["0.0.0.0:80", "[fd00::1]:80"].map(TcpListener::bind);
        for listener in listeners {
            let listener = listener.await.unwrap();
            tokio::task::spawn_local(async move {
                let _connection = listener.accept().await.unwrap();
                std::future::pending::<()>().await;
            });
        }
    });
    network.host("client").run(async move {
        let server = [
            view.host("server").ipv4().unwrap().into(),
            view.host("server").ipv6().unwrap().into(),
        ];
        let connect = |address: IpAddr| TcpStream::connect((address, 80));
        let _streams = [connect(server[0]).await.unwrap(), connect(server[1]).await.unwrap()];
        tokio::time::sleep(Duration::from_secs(1)).await;
        let text = view.netstat();
        for part in ["10.0.0.2:", "[fd00::2]:", "0.0.0.0:80", "[fd00::1]:80"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert_eq!(text.matches("Established").count(), 4, "{text}");
    });
    let mut reader = CaptureReader::open(&file).unwrap();
    let mut versions = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        versions.push(packet.bytes[0] >> 4);
    }
    for version in [4, 6] {
        assert!(versions.iter().filter(|&&found| found == version).count() >= 6, "{versions:?}");
    }
}
