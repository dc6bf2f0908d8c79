//! Hosts on real links. The peer is the kernel of this machine, over a TAP device in a network
//! namespace that each test creates, or another host, over a memory link.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use linerate_link::memory::{MemoryConfig, pair};
use linerate_link::namespace::{isolated_test, skip_test};
use linerate_link::tap::TapError;
use linerate_link::{MemoryLink, Tap, TapConfig};
use linerate_stack::StackConfig;
use linerate_tcp::BufferSize;
use linerate_tokio::net::{TcpListener, TcpStream, UdpSocket};
use linerate_tokio::{End, InterfaceConfig, Net};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown};
use std::time::Duration;
use std::{net, thread};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const BULK: usize = 8 << 20;

fn config(number: u8) -> StackConfig {
    StackConfig::new(
        format!("02:00:00:00:00:0{number}").parse().unwrap(),
        format!("10.0.0.{number}/24").parse().unwrap(),
    )
}

/// Opens a TAP device and configures the kernel's interface, or reports that the test is skipped.
fn tap(offloads: bool) -> Option<Tap> {
    let tap = match Tap::open(&TapConfig { offloads, ..TapConfig::default() }) {
        Err(error @ (TapError::NoDevice | TapError::DeviceForbidden)) => {
            skip_test(&error);
            return None;
        }
        opened => opened.unwrap(),
    };
    let interface = tap.interface();
    interface.disable_ipv6().unwrap();
    interface.add_address(KERNEL, 24).unwrap();
    interface.set_up().unwrap();
    Some(tap)
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn two_threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn cable() -> (MemoryLink, MemoryLink) {
    pair(MemoryConfig::default()).unwrap()
}

/// Returns `length` bytes in a fixed pattern, so that a test can check their order.
fn pattern(length: usize) -> Vec<u8> {
    (0..=250).cycle().take(length).collect()
}

async fn serve_echo(listener: TcpListener) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let (mut read, mut write) = stream.into_split();
            tokio::io::copy(&mut read, &mut write).await.unwrap();
        });
    }
}

#[test]
fn the_kernel_gets_its_bytes_back() {
    isolated_test(|| {
        for (offloads, runtime) in [(false, current_thread()), (true, two_threads())] {
            let Some(tap) = tap(offloads) else { return };
            runtime.block_on(async {
                let net = Net::builder(tap, config(2)).start().unwrap();
                let listener = net.scope(TcpListener::bind((OURS, 7))).await.unwrap();
                tokio::spawn(serve_echo(listener));
                let kernel = thread::spawn(|| {
                    let stream = net::TcpStream::connect((OURS, 7)).unwrap();
                    let mut sending = stream.try_clone().unwrap();
                    let sender = thread::spawn(move || {
                        sending.write_all(&pattern(BULK)).unwrap();
                        sending.shutdown(Shutdown::Write).unwrap();
                    });
                    let mut received = Vec::new();
                    (&stream).read_to_end(&mut received).unwrap();
                    sender.join().unwrap();
                    received
                });
                let received = tokio::task::spawn_blocking(|| kernel.join().unwrap()).await;
                assert!(received.unwrap() == pattern(BULK), "the echo differs");
                net.finish(Duration::from_secs(60)).await.unwrap();
            });
        }
    });
}

#[test]
fn a_client_reaches_the_kernel_and_gets_its_errors() {
    isolated_test(|| {
        let Some(tap) = tap(false) else { return };
        let listener = net::TcpListener::bind((KERNEL, 80)).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            stream.read_to_end(&mut request).unwrap();
            stream.write_all(&request).unwrap();
        });
        let datagrams = net::UdpSocket::bind((KERNEL, 53)).unwrap();
        let resolver = thread::spawn(move || {
            let (length, from) = datagrams.recv_from(&mut [0; 64]).unwrap();
            datagrams.send_to(&[7; 64][..length], from).unwrap();
        });
        current_thread().block_on(async {
            let net = Net::builder(tap, config(2)).name("kernel", KERNEL.into()).start().unwrap();
            let program = async {
                let mut stream = TcpStream::connect("kernel:80").await.unwrap();
                stream.write_all(b"request").await.unwrap();
                stream.shutdown().await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                assert_eq!(answer, "request");
                let refused = TcpStream::connect("kernel:81").await.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
                let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
                socket.send_to(b"query", "kernel:53").await.unwrap();
                assert_eq!(socket.recv(&mut [0; 64]).await.unwrap(), 5);
            };
            net.scope(program).await;
        });
        server.join().unwrap();
        resolver.join().unwrap();
    });
}

#[test]
fn a_reader_that_stops_closes_the_window_of_the_kernel() {
    isolated_test(|| {
        const BUFFER: u32 = 64 << 10;
        let Some(tap) = tap(false) else { return };
        let mut config = config(2);
        config.tcp.receive_buffer = BufferSize::Fixed(BUFFER);
        current_thread().block_on(async {
            let net = Net::builder(tap, config).start().unwrap();
            let listener = net.scope(TcpListener::bind((OURS, 80))).await.unwrap();
            let connect = tokio::task::spawn_blocking(|| net::TcpStream::connect((OURS, 80)));
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut kernel = connect.await.unwrap().unwrap();
            kernel.set_nonblocking(true).unwrap();
            // The test writes to the kernel's socket until linerate's receive window is closed and
            // the kernel's send buffer is full.
            let data = pattern(64 << 20);
            let (mut written, mut is_refused) = (0, false);
            let waiting = || net.sockets().iter().map(|entry| entry.received).max().unwrap();
            while !(is_refused && waiting() + 2_000 > BUFFER as usize) {
                match kernel.write(&data[written..]) {
                    Ok(count) => written += count,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock);
                        is_refused = true;
                    }
                }
                yield_now().await;
            }
            assert!(waiting() <= BUFFER as usize, "{} bytes wait", waiting());
            assert!(written < data.len());
            // Reading opens linerate's receive window again, so the data in the kernel's send
            // buffer arrives.
            drop(kernel);
            let mut received = Vec::new();
            stream.read_to_end(&mut received).await.unwrap();
            assert!(received == data[..written], "{} of {written}", received.len());
        });
    });
}

/// Sends data to an echo server, and checks the echo.
async fn exchange_bulk(stream: TcpStream) {
    let (mut read, mut write) = stream.into_split();
    let sender = tokio::spawn(async move {
        write.write_all(&pattern(BULK)).await.unwrap();
    });
    let mut received = Vec::new();
    read.read_to_end(&mut received).await.unwrap();
    sender.await.unwrap();
    assert!(received == pattern(BULK));
}

#[test]
fn two_hosts_on_a_cable_exchange_data_on_any_runtime() {
    for runtime in [current_thread(), two_threads()] {
        let (left, right) = cable();
        runtime.block_on(async {
            let server = Net::builder(left, config(1)).start().unwrap();
            let client = Net::builder(right, config(2)).start().unwrap();
            let listener = server.scope(TcpListener::bind("10.0.0.1:7")).await.unwrap();
            tokio::spawn(serve_echo(listener));
            let stream = client.scope(TcpStream::connect("10.0.0.1:7")).await.unwrap();
            exchange_bulk(stream).await;
        });
    }
}

#[test]
fn a_host_without_users_sends_the_rest_and_ends() {
    let (left, right) = cable();
    current_thread().block_on(async {
        let server = Net::builder(left, config(1)).start().unwrap();
        let client = Net::builder(right, config(2)).start().unwrap();
        let listener = server.scope(TcpListener::bind("10.0.0.1:7")).await.unwrap();
        let mut stream = client.scope(TcpStream::connect("10.0.0.1:7")).await.unwrap();
        let (mut accepted, _) = listener.accept().await.unwrap();
        let piece = pattern(100_000);
        let sender = tokio::spawn(async move {
            stream.write_all(&piece).await.unwrap();
            // Drops the last references to the client's host. Its driver then sends the remaining
            // data and ends.
            drop((stream, client));
        });
        let mut received = Vec::new();
        accepted.read_to_end(&mut received).await.unwrap();
        sender.await.unwrap();
        assert!(received == pattern(100_000));
        // The read succeeds, because the FIN of the client has arrived. `accept` fails, because the
        // client's driver has ended, which takes the server's link down.
        let gone = accepted.read(&mut [0]).await;
        assert_eq!(gone.unwrap(), 0);
        drop(accepted);
        assert_eq!(listener.accept().await.unwrap_err().kind(), ErrorKind::NetworkDown);
        assert!(matches!(server.end(), Some(End::Link(_))), "{:?}", server.end());
    });
}

#[test]
fn sockets_of_a_stopped_host_fail_and_waiting_calls_end() {
    let (left, right) = cable();
    let runtime = current_thread();
    let (client, stream) = runtime.block_on(async {
        let server = Net::builder(left, config(1)).start().unwrap();
        let client = Net::builder(right, config(2)).start().unwrap();
        let listener = server.scope(TcpListener::bind("10.0.0.1:7")).await.unwrap();
        let mut stream = client.scope(TcpStream::connect("10.0.0.1:7")).await.unwrap();
        let (mut accepted, _) = listener.accept().await.unwrap();
        let stop = async {
            yield_now().await;
            server.shutdown();
        };
        let (waiting, ()) = tokio::join!(listener.accept(), stop);
        assert_eq!(waiting.unwrap_err().kind(), ErrorKind::NetworkDown);
        assert_eq!(server.end(), Some(End::ShutDown));
        let kind = |result: std::io::Result<usize>| result.unwrap_err().kind();
        assert_eq!(kind(accepted.write(b"x").await), ErrorKind::NetworkDown);
        assert_eq!(kind(accepted.read(&mut [0]).await), ErrorKind::NetworkDown);
        let late = server.scope(TcpListener::bind("10.0.0.1:8")).await;
        assert_eq!(late.unwrap_err().kind(), ErrorKind::NetworkDown);
        // The server's host was shut down, which has reset the connection of this stream.
        assert_eq!(kind(stream.read(&mut [0]).await), ErrorKind::ConnectionReset);
        (client, stream)
    });
    drop(runtime);
    assert_eq!(client.end(), Some(End::Runtime));
    assert_eq!(stream.try_write(b"x").unwrap_err().kind(), ErrorKind::NetworkDown);
}

#[test]
fn a_thread_can_have_a_host() {
    let (left, right) = cable();
    current_thread().block_on(async {
        let _server = Net::builder(left, config(1)).start().unwrap();
        let client = Net::builder(right, config(2)).start().unwrap();
        let outside = TcpListener::bind("10.0.0.2:7").await.unwrap_err();
        assert_eq!(outside.kind(), ErrorKind::AddrNotAvailable);
        {
            let _entered = client.enter();
            let task = tokio::spawn(TcpListener::bind("10.0.0.2:7"));
            assert!(task.await.unwrap().is_ok());
        }
        assert!(Net::current().is_none());
    });
}

#[test]
fn a_host_with_two_interfaces_serves_both() {
    for runtime in [current_thread(), two_threads()] {
        let ((inner, inner_peer), (outer, outer_peer)) = (cable(), cable());
        runtime.block_on(async {
            let second = InterfaceConfig::new(
                "02:00:00:00:01:01".parse().unwrap(),
                "10.0.1.1/24".parse().unwrap(),
            );
            let server = Net::builder(inner, config(1)).interface(second, outer).start().unwrap();
            assert_eq!(server.interfaces(), [1, 2]);
            let listener = server.scope(TcpListener::bind("[::]:7")).await.unwrap();
            tokio::spawn(serve_echo(listener));
            let far = StackConfig::new(
                "02:00:00:00:01:02".parse().unwrap(),
                "10.0.1.2/24".parse().unwrap(),
            );
            let transfers =
                [(inner_peer, config(2), "10.0.0.1:7"), (outer_peer, far, "10.0.1.1:7")].map(
                    |(link, config, to)| async move {
                        let client = Net::builder(link, config).start().unwrap();
                        let stream = client.scope(TcpStream::connect(to)).await.unwrap();
                        exchange_bulk(stream).await;
                        client
                    },
                );
            let [one, other] = transfers;
            // Both client hosts are kept until the end of the test. If one ended, it would close
            // its link, and that would end the server's host.
            let _clients = tokio::join!(one, other);
            assert_eq!(server.on(2).unwrap().addresses()[0].cidr, "10.0.1.1/24".parse().unwrap());
            assert_eq!(server.on(3).unwrap_err().kind(), ErrorKind::AddrNotAvailable);
        });
    }
}
