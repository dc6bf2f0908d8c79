//! A test of an application protocol over a lossy path, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use linerate_tokio::net::{TcpListener, TcpStream};
use linerate_tokio::sim::Network;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Duration, Instant};

fn main() {
    let link = "loss=2%,delay=40ms,rate=20Mb/s".parse().unwrap();
    let network = Network::builder().seed(42).link(link).build();
    network.host("server").spawn(async {
        let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let length = stream.read_u32().await.unwrap();
        stream.write_all(&vec![7; length as usize]).await.unwrap();
    });
    network.host("client").run(async {
        let start = Instant::now();
        let mut stream = TcpStream::connect("server:80").await.unwrap();
        stream.write_u32(1_000_000).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer.len(), 1_000_000);
        assert!(start.elapsed() < Duration::from_secs(10));
    });
}
