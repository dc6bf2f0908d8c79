//! Streams: halves, readiness, back-pressure and cancellation; and one program on two networks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use linerate_tokio::net::{TcpListener, TcpStream};
use linerate_tokio::sim;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

/// A program that differs between its two copies only in where `net` comes from.
macro_rules! program {
    ($name:ident, $($net:ident)::+) => {
        mod $name {
            use $($net)::+::tcp::{OwnedReadHalf, OwnedWriteHalf};
            use $($net)::+::{TcpListener, TcpStream, UdpSocket};
            use tokio::io::{AsyncReadExt, AsyncWriteExt};

            async fn echo(mut read: OwnedReadHalf, mut write: OwnedWriteHalf) {
                tokio::io::copy(&mut read, &mut write).await.unwrap();
            }

            pub(super) async fn run() -> Vec<u8> {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                let server = async {
                    let (stream, peer) = listener.accept().await.unwrap();
                    assert_eq!(stream.peer_addr().unwrap(), peer);
                    let (read, write) = stream.into_split();
                    echo(read, write).await;
                };
                let client = async {
                    let mut stream = TcpStream::connect(address).await.unwrap();
                    stream.set_nodelay(true).unwrap();
                    assert!(stream.nodelay().unwrap());
                    stream.writable().await.unwrap();
                    assert_eq!(stream.try_write(b"one ").unwrap(), 4);
                    stream.readable().await.unwrap();
                    let mut first = [0; 1];
                    assert_eq!(stream.peek(&mut first).await.unwrap(), 1);
                    let (mut read, mut write) = stream.split();
                    write.write_all(b"program").await.unwrap();
                    write.shutdown().await.unwrap();
                    let mut received = Vec::new();
                    read.read_to_end(&mut received).await.unwrap();
                    received
                };
                let ((), received) = tokio::join!(server, client);
                let left = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                let right = UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
                left.connect(right.local_addr().unwrap()).await.unwrap();
                left.send(&received).await.unwrap();
                let mut datagram = [0; 64];
                let (length, from) = right.recv_from(&mut datagram).await.unwrap();
                assert_eq!(from, left.local_addr().unwrap());
                datagram[..length].to_vec()
            }
        }
    };
}

program!(over_the_kernel, tokio::net);
program!(over_linerate, linerate_tokio::net);

#[test]
fn one_program_runs_on_both_networks() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(over_the_kernel::run()), b"one program");
    assert_eq!(sim::lo(over_linerate::run()), b"one program");
}

#[test]
fn streams_can_be_sent_between_threads() {
    fn is_send<T: Send + Sync + 'static>() {}
    is_send::<TcpStream>();
    is_send::<TcpListener>();
    is_send::<linerate_tokio::net::UdpSocket>();
    is_send::<linerate_tokio::net::tcp::OwnedReadHalf>();
    is_send::<linerate_tokio::net::tcp::OwnedWriteHalf>();
}

#[test]
fn a_slow_reader_stops_the_writer() {
    sim::client_server(
        async {
            let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            sleep(Duration::from_secs(60)).await;
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap();
            stream.write_all(&rest.len().to_be_bytes()).await.unwrap();
        },
        async {
            let mut stream = TcpStream::connect("server:80").await.unwrap();
            let mut written = 0_usize;
            loop {
                match stream.try_write(&[7; 4_096]) {
                    Ok(count) => written += count,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock);
                        if timeout(Duration::from_secs(10), stream.writable()).await.is_err() {
                            break;
                        }
                    }
                }
            }
            assert!(written > 100_000 && written < 64 << 20, "{written} bytes fit");
            stream.writable().await.unwrap();
            stream.shutdown().await.unwrap();
            let mut counted = [0; 8];
            stream.read_exact(&mut counted).await.unwrap();
            assert_eq!(usize::from_be_bytes(counted), written);
        },
    );
}

#[test]
fn cancelled_calls_lose_nothing() {
    sim::client_server(
        async {
            let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
            let early = timeout(Duration::from_millis(1), listener.accept()).await;
            assert!(early.is_err());
            let (mut stream, _) = listener.accept().await.unwrap();
            for byte in 0..100 {
                stream.write_all(&[byte]).await.unwrap();
                sleep(Duration::from_millis(3)).await;
            }
        },
        async {
            sleep(Duration::from_millis(10)).await;
            let mut stream = TcpStream::connect("server:80").await.unwrap();
            let mut received = Vec::new();
            let mut buffer = [0; 16];
            loop {
                match timeout(Duration::from_millis(2), stream.read(&mut buffer)).await {
                    Ok(Ok(0)) => break,
                    Ok(count) => received.extend_from_slice(&buffer[..count.unwrap()]),
                    Err(_) => {}
                }
            }
            assert!(received.iter().copied().eq(0..100), "{received:?}");
        },
    );
}

#[test]
fn the_halves_of_a_stream_can_be_reunited() {
    sim::client_server(
        async {
            let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let (read, write) = stream.into_split();
            let mut stream = read.reunite(write).unwrap();
            stream.write_all(b"whole").await.unwrap();
        },
        async {
            let stream = TcpStream::connect("server:80").await.unwrap();
            let (mut read, write) = stream.into_split();
            drop(write);
            let mut received = Vec::new();
            read.read_to_end(&mut received).await.unwrap();
            assert_eq!(received, b"whole");
        },
    );
}
