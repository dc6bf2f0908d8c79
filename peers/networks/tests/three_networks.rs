//! Tests that run the same programs for tokio on three deterministic networks. On each network, a
//! program differs only in the import of the socket types and in the function that runs a server
//! and a client.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::future::Future;

mod linerate {
    use super::Future;

    pub(super) use linerate_tokio::net;

    pub(super) fn run<S, C>(server: fn() -> S, client: fn() -> C)
    where
        S: Future<Output = ()> + 'static,
        C: Future<Output = ()> + 'static,
    {
        linerate_tokio::sim::client_server(server(), client());
    }
}

mod over_turmoil {
    use super::Future;
    use std::time::Duration;

    pub(super) use turmoil::net;

    pub(super) fn run<S, C>(server: fn() -> S, client: fn() -> C)
    where
        S: Future<Output = ()> + 'static,
        C: Future<Output = ()> + 'static,
    {
        let mut network = turmoil::Builder::new()
            .simulation_duration(Duration::from_secs(3_600))
            .rng_seed(1)
            .build();
        network.host("server", move || async move {
            server().await;
            std::future::pending::<turmoil::Result>().await
        });
        network.client("client", async move {
            client().await;
            Ok(())
        });
        network.run().unwrap();
    }
}

mod over_turmoil_net {
    use super::Future;
    use turmoil_net::fixture::ClientServer;

    pub(super) use turmoil_net::shim::tokio::net;

    pub(super) fn run<S, C>(server: fn() -> S, client: fn() -> C)
    where
        S: Future<Output = ()> + 'static,
        C: Future<Output = ()> + 'static,
    {
        ClientServer::new().server("server", server()).run("client", client());
    }
}

macro_rules! tests_on {
    ($name:ident, $network:ident) => {
        mod $name {
            use crate::$network::net::{TcpListener, TcpStream, UdpSocket};
            use crate::$network::run;
            use std::io::ErrorKind;
            use tokio::io::{AsyncReadExt, AsyncWriteExt};

            async fn echo() {
                let listener = TcpListener::bind("0.0.0.0:7").await.unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let (mut read, mut write) = stream.into_split();
                    let mut piece = vec![0; 16 << 10];
                    while let count @ 1.. = read.read(&mut piece).await.unwrap() {
                        write.write_all(&piece[..count]).await.unwrap();
                    }
                }
            }

            async fn send() {
                let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
                let (mut stream, _) = listener.accept().await.unwrap();
                let data: Vec<u8> = (0..=250).cycle().take(200_000).collect();
                stream.write_all(&data).await.unwrap();
                stream.shutdown().await.unwrap();
                std::future::pending::<()>().await;
            }

            async fn answer_datagrams() {
                let socket = UdpSocket::bind("0.0.0.0:53").await.unwrap();
                let mut data = [0; 64];
                loop {
                    let (length, from) = socket.recv_from(&mut data).await.unwrap();
                    socket.send_to(&data[..length], from).await.unwrap();
                }
            }

            #[test]
            fn a_server_returns_the_bytes_of_its_client() {
                run(echo, || async {
                    let mut stream = TcpStream::connect("server:7").await.unwrap();
                    for round in 0..20_u8 {
                        stream.write_all(&[round; 100]).await.unwrap();
                        let mut answer = [0; 100];
                        stream.read_exact(&mut answer).await.unwrap();
                        assert_eq!(answer, [round; 100]);
                    }
                });
            }

            #[test]
            fn a_transfer_arrives_whole_and_in_order() {
                run(send, || async {
                    let mut stream = TcpStream::connect("server:80").await.unwrap();
                    let (mut received, mut piece) = (Vec::new(), vec![0; 64 << 10]);
                    while let count @ 1.. = stream.read(&mut piece).await.unwrap() {
                        received.extend_from_slice(&piece[..count]);
                    }
                    assert!(received.iter().copied().eq((0..=250).cycle().take(200_000)));
                });
            }

            #[test]
            fn a_closed_port_refuses() {
                run(echo, || async {
                    let refused = TcpStream::connect("server:9").await.unwrap_err();
                    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
                });
            }

            #[test]
            fn datagrams_come_back() {
                run(answer_datagrams, || async {
                    let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
                    // The client waits until the server has bound its socket, because turmoil loses
                    // datagrams that arrive earlier.
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    socket.send_to(b"query", "server:53").await.unwrap();
                    let mut answer = [0; 64];
                    let (length, _) = socket.recv_from(&mut answer).await.unwrap();
                    assert_eq!(&answer[..length], b"query");
                });
            }
        }
    };
}

tests_on!(on_linerate, linerate);
tests_on!(on_turmoil, over_turmoil);
tests_on!(on_turmoil_net, over_turmoil_net);
