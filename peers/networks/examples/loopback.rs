//! Compares the sockets of linerate with the sockets of tokio, which are the kernel's.
//!
//! The client and the server are tasks on one thread. With linerate they are on two hosts, joined
//! by a link in memory; with tokio they use the kernel's loopback interface. For each program, the
//! median, minimum and maximum processor time of several rounds are printed, in user and kernel
//! mode together.
//!
//! ```sh
//! cargo run --release --manifest-path peers/networks/Cargo.toml --example loopback
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

mod rounds;

use linerate_link::memory::{MemoryConfig, pair};
use linerate_tokio::{Net, StackConfig};
use rounds::{Measure, compare};

/// Number of round trips of 64 bytes on one connection.
const ROUND_TRIPS: usize = 50_000;
/// Number of connections, each with one round trip of 64 bytes.
const CONNECTIONS: usize = 1_000;

macro_rules! programs {
    ($net:path, $run:ident) => {{
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        use $net::{TcpListener, TcpStream};

        async fn serve(address: &str) -> std::net::SocketAddr {
            let listener = TcpListener::bind(address).await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(async move {
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let mut request = [0; 64];
                    while stream.read_exact(&mut request).await.is_ok() {
                        stream.write_all(&request).await.unwrap();
                    }
                }
            });
            address
        }

        async fn request(server: std::net::SocketAddr, times: usize) {
            let mut stream = TcpStream::connect(server).await.unwrap();
            stream.set_nodelay(true).unwrap();
            for _ in 0..times {
                stream.write_all(&[7; 64]).await.unwrap();
                stream.read_exact(&mut [0; 64]).await.unwrap();
            }
        }

        let programs: [Measure; 2] = [
            ("50,000 round trips", || {
                $run(serve, |server| request(server, ROUND_TRIPS));
            }),
            ("1,000 echo connections", || {
                $run(serve, |server| async move {
                    for _ in 0..CONNECTIONS {
                        request(server, 1).await;
                    }
                });
            }),
        ];
        programs
    }};
}

/// Runs a server and its client on two hosts of linerate, which share the calling thread.
fn on_linerate<C: Future<Output = ()>>(
    serve: impl AsyncFn(&str) -> std::net::SocketAddr,
    client: impl Fn(std::net::SocketAddr) -> C,
) {
    on_one_thread(async {
        let (left, right) = pair(MemoryConfig::default()).unwrap();
        let config = |mac: &str, address: &str| {
            StackConfig::new(mac.parse().unwrap(), address.parse().unwrap())
        };
        let server = Net::builder(left, config("02:00:00:00:00:01", "10.0.0.1/24"));
        let server = server.start().unwrap();
        let host = Net::builder(right, config("02:00:00:00:00:02", "10.0.0.2/24"));
        let host = host.start().unwrap();
        let address = server.scope(serve("10.0.0.1:7")).await;
        host.scope(client(address)).await;
    });
}

/// Runs a server and its client on the kernel's loopback interface, on the calling thread.
fn on_tokio<C: Future<Output = ()>>(
    serve: impl AsyncFn(&str) -> std::net::SocketAddr,
    client: impl Fn(std::net::SocketAddr) -> C,
) {
    on_one_thread(async { client(serve("127.0.0.1:0").await).await });
}

fn on_one_thread(program: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(program);
}

fn main() {
    compare(
        ("linerate", &programs!(linerate_tokio::net, on_linerate)),
        ("tokio over the kernel", &programs!(tokio::net, on_tokio)),
    );
}
