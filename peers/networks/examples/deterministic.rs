//! Compares the speed of two deterministic networks, linerate's and turmoil-net's. For each
//! program, the median, minimum and maximum processor time of several rounds are printed.
//!
//! ```sh
//! cargo run --release --manifest-path peers/networks/Cargo.toml --example deterministic
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

mod rounds;

use rounds::{Measure, compare};

/// Number of bytes of the bulk transfer.
const BULK: usize = 256 << 20;
/// Number of requests on one connection, each with an answer.
const REQUESTS: usize = 100_000;
/// Number of hosts of the largest network. All hosts but the client are echo servers.
const HOSTS: usize = 1_000;

mod linerate {
    pub(super) use linerate_tokio::net;

    pub(super) fn run<S, C>(servers: Vec<(String, S)>, client: C)
    where
        S: Future<Output = ()> + 'static,
        C: Future<Output = ()> + 'static,
    {
        let network = linerate_tokio::sim::Network::builder().build();
        for (name, server) in servers {
            network.host(&name).spawn(server);
        }
        network.host("client").run(client);
    }
}

mod over_turmoil_net {
    pub(super) use turmoil_net::shim::tokio::net;

    pub(super) fn run<S, C>(servers: Vec<(String, S)>, client: C)
    where
        S: Future<Output = ()> + 'static,
        C: Future<Output = ()> + 'static,
    {
        let mut network = turmoil_net::fixture::ClientServer::new();
        for (name, server) in servers {
            network = network.server(name, server);
        }
        network.run("client", client);
    }
}

macro_rules! programs {
    ($network:ident) => {{
        use crate::$network::net::{TcpListener, TcpStream};
        use crate::$network::run;
        use std::time::Duration;
        use tokio::io::{AsyncReadExt, AsyncWriteExt};

        async fn accept() -> TcpStream {
            TcpListener::bind("0.0.0.0:7").await.unwrap().accept().await.unwrap().0
        }

        async fn echo() {
            let mut stream = accept().await;
            let mut request = [0; 64];
            while stream.read_exact(&mut request).await.is_ok() {
                stream.write_all(&request).await.unwrap();
            }
        }

        async fn request(server: &str, times: usize) {
            let mut stream = TcpStream::connect((server, 7)).await.unwrap();
            for _ in 0..times {
                stream.write_all(&[7; 64]).await.unwrap();
                stream.read_exact(&mut [0; 64]).await.unwrap();
            }
        }

        async fn send_bulk() {
            let mut stream = accept().await;
            let piece = vec![7; 64 << 10];
            for _ in 0..BULK / piece.len() {
                stream.write_all(&piece).await.unwrap();
            }
        }

        async fn receive_bulk() {
            let mut stream = TcpStream::connect("server:7").await.unwrap();
            let (mut piece, mut received) = (vec![0; 64 << 10], 0);
            while let count @ 1.. = stream.read(&mut piece).await.unwrap() {
                received += count;
            }
            assert_eq!(received, BULK);
        }

        fn server() -> String {
            "server".to_owned()
        }

        let programs: [Measure; 4] = [
            ("256 MiB", || run(vec![(server(), send_bulk())], receive_bulk())),
            ("100,000 requests", || run(vec![(server(), echo())], request("server", REQUESTS))),
            ("1,000 hosts", || {
                let servers = (1..HOSTS).map(|index| (format!("server{index}"), echo())).collect();
                run(servers, async {
                    for index in 1..HOSTS {
                        request(&format!("server{index}"), 1).await;
                    }
                });
            }),
            ("an idle hour", || {
                run(vec![(server(), echo())], async {
                    let _stream = TcpStream::connect("server:7").await.unwrap();
                    tokio::time::sleep(Duration::from_secs(3_600)).await;
                });
            }),
        ];
        programs
    }};
}

fn main() {
    compare(("linerate", &programs!(linerate)), ("turmoil-net", &programs!(over_turmoil_net)));
}
