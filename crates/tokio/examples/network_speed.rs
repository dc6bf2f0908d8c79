//! The speed of deterministic networks on this machine: a bulk transfer, requests, an idle hour.
//!
//! ```sh
//! cargo run --release -p linerate-tokio --example network_speed
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example shows what it does")]

use linerate_tokio::net::{TcpListener, TcpStream};
use linerate_tokio::sim::Network;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const BULK: usize = 256 << 20;
const REQUESTS: u32 = 100_000;

fn main() {
    let (network, elapsed) = timed(
        async {
            let (mut stream, _) = listen().await.accept().await.unwrap();
            let piece = vec![7; 64 << 10];
            for _ in 0..BULK / piece.len() {
                stream.write_all(&piece).await.unwrap();
            }
        },
        async {
            let mut stream = TcpStream::connect("server:80").await.unwrap();
            let (mut piece, mut received) = (vec![0; 64 << 10], 0);
            while let count @ 1.. = stream.read(&mut piece).await.unwrap() {
                received += count;
            }
            assert_eq!(received, BULK);
        },
    );
    let packets = network.trace().packets;
    let rate = packets as f64 / elapsed.as_secs_f64() / 1e6;
    println!("256 MiB: {elapsed:?}, {packets} packets, {rate:.2} million packets a second");

    let (network, elapsed) = timed(
        async {
            let (mut stream, _) = listen().await.accept().await.unwrap();
            let mut request = [0; 64];
            while stream.read_exact(&mut request).await.is_ok() {
                stream.write_all(&request).await.unwrap();
            }
        },
        async {
            let mut stream = TcpStream::connect("server:80").await.unwrap();
            for _ in 0..REQUESTS {
                stream.write_all(&[7; 64]).await.unwrap();
                stream.read_exact(&mut [0; 64]).await.unwrap();
            }
        },
    );
    let packets = network.trace().packets;
    println!("{REQUESTS} requests: {:?} each, {packets} packets", elapsed / REQUESTS);

    let (_, elapsed) = timed(
        async {
            let _connection = listen().await.accept().await.unwrap();
            std::future::pending::<()>().await;
        },
        async {
            let _stream = TcpStream::connect("server:80").await.unwrap();
            tokio::time::sleep(Duration::from_secs(3_600)).await;
        },
    );
    println!("an idle hour: {elapsed:?}");
}

async fn listen() -> TcpListener {
    TcpListener::bind("0.0.0.0:80").await.unwrap()
}

/// Runs both ends on a new network. Returns it, and the time that it took on the real clock.
fn timed(
    server: impl Future<Output = ()> + 'static,
    client: impl Future<Output = ()> + 'static,
) -> (Network, Duration) {
    let start = Instant::now();
    let network = Network::builder().build();
    network.host("server").spawn(server);
    network.host("client").run(client);
    (network, start.elapsed())
}
