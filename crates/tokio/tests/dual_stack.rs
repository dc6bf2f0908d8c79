//! Sockets at `::` serve both IP versions, unless they exclude IPv4.

#![allow(clippy::unwrap_used, reason = "test helpers unwrap as tests do")]

use linerate_tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use linerate_tokio::sim::{self, Network};
use linerate_tokio::{ListenOptions, UdpOptions};
use std::io::ErrorKind;

#[test]
fn a_listener_at_all_addresses_accepts_both_versions() {
    let network = Network::builder().build();
    network.host("server").spawn(async {
        let listener = TcpListener::bind("[::]:80").await.unwrap();
        assert!(!listener.only_v6().unwrap());
        for expected in ["::ffff:10.0.0.2", "fd00::2", "::ffff:10.0.0.2"] {
            let (stream, peer) = listener.accept().await.unwrap();
            assert_eq!(
                (peer.ip().to_string(), stream.peer_addr().unwrap()),
                (expected.into(), peer)
            );
        }
    });
    network.host("client").run(async {
        for (address, own) in [
            ("10.0.0.1:80", "10.0.0.2"),
            ("[fd00::1]:80", "fd00::2"),
            ("[::ffff:10.0.0.1]:80", "::ffff:10.0.0.2"),
        ] {
            let stream = TcpStream::connect(address).await.unwrap();
            assert_eq!(stream.local_addr().unwrap().ip().to_string(), own);
            assert_eq!(stream.peer_addr().unwrap().to_string(), address);
        }
    });
}

#[test]
fn a_listener_can_exclude_ipv4() {
    sim::lo(async {
        let options = ListenOptions { only_v6: true, ..ListenOptions::default() };
        let listener = TcpListener::bind_with("[::]:80", &options).await.unwrap();
        assert!(listener.only_v6().unwrap());
        let refused = TcpStream::connect("127.0.0.1:80").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        TcpStream::connect("[::1]:80").await.unwrap();
        let ipv4 = TcpListener::bind("0.0.0.0:80").await.unwrap();
        assert_eq!(ipv4.only_v6().unwrap_err().kind(), ErrorKind::Unsupported);
    });
}

#[test]
fn a_socket_of_ipv6_can_exclude_ipv4_before_it_is_bound() {
    sim::lo(async {
        let socket = TcpSocket::new_v6().unwrap();
        assert!(!socket.only_v6().unwrap());
        socket.set_only_v6(true).unwrap();
        socket.bind("[::]:80".parse().unwrap()).unwrap();
        assert_eq!(socket.set_only_v6(false).unwrap_err().kind(), ErrorKind::InvalidInput);
        let listener = socket.listen(8).unwrap();
        assert!(listener.only_v6().unwrap());
        TcpListener::bind("0.0.0.0:80").await.unwrap();
        let ipv4 = TcpSocket::new_v4().unwrap();
        assert_eq!(ipv4.set_only_v6(true).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(ipv4.only_v6().unwrap_err().kind(), ErrorKind::Unsupported);
    });
}

#[test]
fn two_listeners_share_a_port_only_for_different_versions() {
    sim::lo(async {
        let _both = TcpListener::bind("[::]:80").await.unwrap();
        for taken in ["0.0.0.0:80", "[::]:80", "[::ffff:0.0.0.0]:80"] {
            let refused = TcpListener::bind(taken).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::AddrInUse, "{taken}");
        }
    });
}

#[test]
fn a_datagram_socket_serves_both_versions_and_gets_the_errors_of_both() {
    sim::lo(async {
        let socket = UdpSocket::bind("[::]:7").await.unwrap();
        for (home, seen) in [("127.0.0.1:0", "::ffff:127.0.0.1"), ("[::1]:0", "::1")] {
            let peer = UdpSocket::bind(home).await.unwrap();
            let own = peer.local_addr().unwrap();
            let to = std::net::SocketAddr::new(own.ip(), 7);
            peer.send_to(b"question", to).await.unwrap();
            let (_, from) = socket.recv_from(&mut [0; 9]).await.unwrap();
            assert_eq!((from.ip().to_string(), from.port()), (seen.to_owned(), own.port()));
            socket.send_to(b"answer", from).await.unwrap();
            assert_eq!(peer.recv_from(&mut [0; 9]).await.unwrap().1, to);
        }
        for closed in ["[::ffff:127.0.0.1]:9", "[::1]:9"] {
            let socket = UdpSocket::bind("[::]:0").await.unwrap();
            socket.connect(closed).await.unwrap();
            socket.send(b"anyone?").await.unwrap();
            let refused = socket.recv(&mut [0]).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{closed}");
        }
    });
}

#[test]
fn a_datagram_socket_can_exclude_ipv4() {
    sim::lo(async {
        let options = UdpOptions { only_v6: true, ..UdpOptions::default() };
        let socket = UdpSocket::bind_with("[::]:7", &options).await.unwrap();
        assert!(socket.only_v6().unwrap());
        for ipv4 in ["127.0.0.1:7", "[::ffff:127.0.0.1]:7"] {
            let refused = socket.send_to(b"x", ipv4).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::NetworkUnreachable, "{ipv4}");
        }
        UdpSocket::bind("0.0.0.0:7").await.unwrap();
    });
}
