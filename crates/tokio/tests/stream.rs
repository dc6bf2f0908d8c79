//! Streams: halves, readiness, back-pressure and cancellation. One test program runs twice: on
//! tokio's sockets over the kernel, and on the sockets of this crate.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use linerate_tokio::net::{TcpListener, TcpStream, UdpSocket};
use linerate_tokio::{Net, sim};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::time::{sleep, timeout};

/// A test program that is compiled twice: for tokio's sockets over the kernel, and for the sockets
/// of this crate.
macro_rules! program {
    ($name:ident, $($net:ident)::+) => {
        mod $name {
            use $($net)::+::tcp::{OwnedReadHalf, OwnedWriteHalf};
            use $($net)::+::{TcpListener, TcpSocket, TcpStream, UdpSocket};
            use std::future::poll_fn;
            use std::io::{ErrorKind, IoSlice, IoSliceMut};
            use std::time::Duration;
            use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest, ReadBuf};

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
                datagrams(&left, &right).await;
                configured().await;
                datagram[..length].to_vec()
            }

            /// Uses all calls of a UDP socket.
            async fn datagrams(left: &UdpSocket, right: &UdpSocket) {
                assert!(left.ready(Interest::WRITABLE).await.unwrap().is_writable());
                assert_eq!(left.try_send(b"two").unwrap(), 3);
                right.readable().await.unwrap();
                let mut data = [0; 8];
                assert_eq!(right.try_peek_from(&mut data).unwrap().0, 3);
                let received = right.try_io(Interest::READABLE, || right.try_recv_from(&mut data));
                assert_eq!((received.unwrap().0, &data[..3]), (3, &b"two"[..]));
                let nothing = right.try_recv_from(&mut data).unwrap_err();
                assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
                let back = left.local_addr().unwrap();
                poll_fn(|context| right.poll_send_to(context, b"three", back)).await.unwrap();
                let mut data = ReadBuf::new(&mut data);
                poll_fn(|context| left.poll_recv(context, &mut data)).await.unwrap();
                assert_eq!(data.filled(), b"three");
                left.set_broadcast(true).unwrap();
                assert!(left.broadcast().unwrap());
                assert!(left.take_error().unwrap().is_none());
            }

            /// Connects sockets whose options were set, and uses those calls of a stream that do
            /// not wait.
            async fn configured() {
                let socket = TcpSocket::new_v4().unwrap();
                assert!(!socket.reuseaddr().unwrap());
                socket.set_reuseaddr(true).unwrap();
                assert!(socket.reuseaddr().unwrap());
                socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
                let address = socket.local_addr().unwrap();
                assert_ne!(address.port(), 0);
                let listener = socket.listen(8).unwrap();
                assert_eq!(listener.local_addr().unwrap(), address);

                let socket = TcpSocket::new_v4().unwrap();
                socket.set_keepalive(true).unwrap();
                socket.set_nodelay(true).unwrap();
                socket.set_send_buffer_size(64 << 10).unwrap();
                socket.set_recv_buffer_size(64 << 10).unwrap();
                socket.set_tos_v4(0x10).unwrap();
                assert!(socket.keepalive().unwrap() && socket.nodelay().unwrap());
                assert!(socket.send_buffer_size().unwrap() >= 64 << 10);
                assert_eq!(socket.tos_v4().unwrap(), 0x10);
                let (client, server) = tokio::join!(socket.connect(address), listener.accept());
                let (client, (server, _)) = (client.unwrap(), server.unwrap());
                assert!(client.nodelay().unwrap());
                client.set_ttl(33).unwrap();
                assert_eq!(client.ttl().unwrap(), 33);
                assert_eq!(client.set_ttl(0).unwrap_err().kind(), ErrorKind::InvalidInput);
                assert_eq!(client.linger().unwrap(), None);

                let nothing = server.try_io(Interest::READABLE, || server.try_read(&mut [0; 4]));
                assert_eq!(nothing.unwrap_err().kind(), ErrorKind::WouldBlock);
                client.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap();
                let pieces = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cdef")];
                assert_eq!(client.try_write_vectored(&pieces).unwrap(), 6);
                poll_fn(|context| server.poll_read_ready(context)).await.unwrap();
                let mut peeked = [0; 8];
                let mut into = ReadBuf::new(&mut peeked);
                let count = poll_fn(|context| server.poll_peek(context, &mut into)).await.unwrap();
                assert_eq!((count, into.filled()), (6, &b"abcdef"[..]));
                let (mut one, mut two) = ([0; 1], [0; 2]);
                let mut buffers = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
                assert_eq!(server.try_read_vectored(&mut buffers).unwrap(), 3);
                let mut rest = Vec::with_capacity(64);
                assert_eq!(server.try_read_buf(&mut rest).unwrap(), 3);
                assert_eq!((&one, &two, &rest[..]), (b"a", b"bc", &b"def"[..]));
                assert!(server.try_read_buf(&mut rest).is_err());

                poll_fn(|context| client.poll_write_ready(context)).await.unwrap();
                let write = || client.try_write(b"last");
                assert_eq!(client.async_io(Interest::WRITABLE, write).await.unwrap(), 4);
                let (mut read, _write) = server.into_split();
                drop(client.into_split());
                let mut last = Vec::new();
                read.read_to_end(&mut last).await.unwrap();
                assert_eq!(last, b"last");
                assert!(read.ready(Interest::READABLE).await.unwrap().is_read_closed());
                zero_linger(&listener).await;
            }

            /// Resets a connection by dropping a stream with a linger time of zero.
            async fn zero_linger(listener: &TcpListener) {
                let address = listener.local_addr().unwrap();
                let connect = TcpStream::connect(address);
                let (client, server) = tokio::join!(connect, listener.accept());
                let (client, (mut server, _)) = (client.unwrap(), server.unwrap());
                client.set_zero_linger().unwrap();
                assert_eq!(client.linger().unwrap(), Some(Duration::ZERO));
                drop(client);
                let reset = server.read(&mut [0]).await.unwrap_err();
                assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
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
    is_send::<UdpSocket>();
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

/// Polls a future once, and drops it.
async fn cancel<T>(future: impl Future<Output = T>) {
    let mut future = Box::pin(future);
    poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[test]
fn calls_that_are_cancelled_after_their_first_poll_lose_nothing() {
    sim::client_server(
        async {
            let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
            for _ in 0..3 {
                cancel(listener.accept()).await;
            }
            let (mut stream, _) = listener.accept().await.unwrap();
            let socket = UdpSocket::bind("0.0.0.0:80").await.unwrap();
            for _ in 0..3 {
                cancel(stream.read(&mut [0; 4])).await;
                cancel(stream.peek(&mut [0; 4])).await;
                cancel(stream.readable()).await;
                cancel(stream.ready(Interest::READABLE)).await;
                cancel(socket.recv_from(&mut [0; 4])).await;
            }
            let mut received = [0; 8];
            let (length, from) = socket.recv_from(&mut received).await.unwrap();
            assert_eq!(&received[..length], b"datagram");
            socket.send_to(b"go", from).await.unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap();
            assert_eq!(rest, b"stream");
        },
        async {
            sleep(Duration::from_millis(10)).await;
            let mut stream = TcpStream::connect("server:80").await.unwrap();
            // A connection attempt is cancelled, and must leave no socket behind. The only socket
            // is then that of `stream`.
            cancel(TcpStream::connect("server:81")).await;
            assert_eq!(Net::current().unwrap().sockets().len(), 1);
            let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
            sleep(Duration::from_millis(10)).await;
            socket.send_to(b"datagram", "server:80").await.unwrap();
            cancel(socket.recv_from(&mut [0; 4])).await;
            socket.recv_from(&mut [0; 4]).await.unwrap();
            stream.write_all(b"stream").await.unwrap();
        },
    );
}

#[test]
fn a_cancelled_write_has_written_nothing() {
    sim::client_server(
        async {
            let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            sleep(Duration::from_secs(60)).await;
            let mut received = Vec::new();
            stream.read_to_end(&mut received).await.unwrap();
            stream.write_all(&received.len().to_be_bytes()).await.unwrap();
        },
        async {
            let mut stream = TcpStream::connect("server:80").await.unwrap();
            let mut written = 0_usize;
            // Writes until the buffers of both endpoints are full. They count as full when a write
            // waits for a second.
            while let Ok(count) = timeout(Duration::from_secs(1), stream.write(&[7; 4_096])).await {
                written += count.unwrap();
            }
            for _ in 0..3 {
                cancel(stream.write(&[7; 4_096])).await;
                cancel(stream.writable()).await;
            }
            stream.writable().await.unwrap();
            written += stream.write(&[7; 100]).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut counted = [0; 8];
            stream.read_exact(&mut counted).await.unwrap();
            assert_eq!(usize::from_be_bytes(counted), written);
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
