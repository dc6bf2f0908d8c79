//! Tests of forwarders, which accept flows to any address. Some tests use the gateway of the
//! examples, and others use forwarders directly.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

#[path = "../examples/tokio_gateway.rs"]
#[allow(dead_code, reason = "its `main` opens a device")]
mod tokio_gateway;

use linerate_link::memory::{MemoryConfig, pair};
use linerate_stack::Medium;
use linerate_tokio::net::{Flow, Forwarder, TcpStream, UdpSocket};
use linerate_tokio::{
    Destinations, ForwardOptions, IpCidr, Net, Rejection, Route, StackConfig, Verdict,
};
use std::io::ErrorKind;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

/// An address that no host has.
const FAR: &str = "203.0.113.9:80";

/// Returns a client and the host of a gateway, on a link without MAC addresses.
fn hosts() -> (Net, Net) {
    let memory = MemoryConfig { medium: Medium::Ip, ..MemoryConfig::default() };
    let (near, far) = pair(memory).unwrap();
    let mut client =
        StackConfig::new("02:00:00:00:00:01".parse().unwrap(), "10.0.2.15/24".parse().unwrap());
    client.addresses.push("fd00::f/64".parse().unwrap());
    client.routes = vec![Route::direct(IpCidr::ALL_IPV4), Route::direct(IpCidr::ALL_IPV6)];
    let client = Net::builder(near, client).start().unwrap();
    let gateway = Net::builder(far, tokio_gateway::configuration().unwrap()).start().unwrap();
    (client, gateway)
}

async fn forward(net: &Net, verdict: Verdict) -> Forwarder {
    let (everything, options) = (Destinations::EVERYTHING, ForwardOptions::default());
    net.scope(Forwarder::bind(everything, &options, move |_| verdict)).await.unwrap()
}

fn connect(net: &Net, address: &'static str) -> JoinHandle<std::io::Result<TcpStream>> {
    tokio::spawn(net.scope(TcpStream::connect(address)))
}

#[tokio::test]
async fn a_deferred_connection_is_accepted_at_its_destination() {
    let (client, gateway) = hosts();
    let forwarder = forward(&gateway, Verdict::Defer).await;
    for address in [FAR, "[2001:db8::9]:80"] {
        let connecting = connect(&client, address);
        let Flow::Handshake(handshake) = forwarder.accept().await.unwrap() else { panic!() };
        assert_eq!(handshake.destination(), address.parse().unwrap());
        assert!(!connecting.is_finished(), "the client waits for the answer");
        let (accepted, connected) = tokio::join!(handshake.accept(), connecting);
        let (mut far, mut near) = (accepted.unwrap(), connected.unwrap().unwrap());
        assert_eq!(far.local_addr().unwrap(), address.parse().unwrap());
        near.write_all(b"to any address").await.unwrap();
        near.shutdown().await.unwrap();
        let mut text = String::new();
        far.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "to any address");
    }
    assert_eq!(forwarder.statistics().unwrap().accepted, 2);
}

#[tokio::test]
async fn a_rejected_connection_is_refused() {
    let (client, gateway) = hosts();
    let forwarder = forward(&gateway, Verdict::Defer).await;
    let connecting = connect(&client, FAR);
    let Flow::Handshake(handshake) = forwarder.accept().await.unwrap() else { panic!() };
    handshake.reject(Rejection::Reset).unwrap();
    assert_eq!(connecting.await.unwrap().unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn the_hook_accepts_at_once() {
    let (client, gateway) = hosts();
    let forwarder = forward(&gateway, Verdict::Accept).await;
    let _near = connect(&client, FAR).await.unwrap().unwrap();
    let Flow::Tcp(far) = forwarder.accept().await.unwrap() else { panic!() };
    assert_eq!(far.local_addr().unwrap(), FAR.parse().unwrap());
}

#[tokio::test]
async fn a_host_has_one_forwarder_at_a_time() {
    let (_client, gateway) = hosts();
    let forwarder = forward(&gateway, Verdict::Drop).await;
    let options = ForwardOptions::default();
    let bind =
        || gateway.scope(Forwarder::bind(Destinations::EVERYTHING, &options, |_| Verdict::Drop));
    assert_eq!(bind().await.unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(forwarder);
    bind().await.unwrap();
}

#[tokio::test]
async fn an_expired_flow_ends_the_calls_of_its_socket() {
    let (client, gateway) = hosts();
    let idle = linerate_units::Duration::from_millis(1);
    let options =
        ForwardOptions { udp_idle: idle, udp_idle_well_known: idle, ..ForwardOptions::default() };
    let everything = Destinations::EVERYTHING;
    let bind = Forwarder::bind(everything, &options, |_| Verdict::Accept);
    let forwarder = gateway.scope(bind).await.unwrap();
    let near = client.scope(UdpSocket::bind("10.0.2.15:0")).await.unwrap();
    near.send_to(b"first", FAR).await.unwrap();
    let Flow::Udp(far) = forwarder.accept().await.unwrap() else { panic!() };
    let mut data = [0; 8];
    let error = loop {
        // The datagram that began the flow may still be in the queue, so the first call can
        // succeed. Calls are repeated until one fails, which happens once the flow has expired.
        if let Err(error) = far.recv(&mut data).await {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::NotConnected);
}

#[tokio::test]
async fn the_example_relays_to_the_sockets_of_the_kernel() {
    let (client, gateway) = hosts();
    // Loopback addresses are never forwarded, so the kernel's servers need another address.
    let Some(own) = own_address().await else {
        println!("skipped: this machine has no address but those of loopback");
        return;
    };
    let relaying = tokio::spawn(async move { tokio_gateway::relay_all(&gateway).await });
    let listener = tokio::net::TcpListener::bind((own, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut data = Vec::new();
        stream.read_to_end(&mut data).await.unwrap();
        stream.write_all(&data).await.unwrap();
    });
    let mut near = client.scope(TcpStream::connect(address)).await.unwrap();
    near.write_all(&[7; 100_000]).await.unwrap();
    near.shutdown().await.unwrap();
    let mut data = Vec::new();
    near.read_to_end(&mut data).await.unwrap();
    assert_eq!(data, [7; 100_000]);
    serving.await.unwrap();
    let refused = client.scope(TcpStream::connect(address)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    let server = tokio::net::UdpSocket::bind((own, 0)).await.unwrap();
    let near = client.scope(UdpSocket::bind("10.0.2.15:0")).await.unwrap();
    near.send_to(b"ask", server.local_addr().unwrap()).await.unwrap();
    let mut data = [0; 8];
    let (length, from) = server.recv_from(&mut data).await.unwrap();
    server.send_to(&data[..length], from).await.unwrap();
    let (length, from) = near.recv_from(&mut data).await.unwrap();
    assert_eq!((&data[..length], from), (&b"ask"[..], server.local_addr().unwrap()));
    relaying.abort();
}

/// Returns an address of this machine that is not a loopback address. Connecting a UDP socket
/// selects its local address without sending a packet.
async fn own_address() -> Option<std::net::IpAddr> {
    let socket = tokio::net::UdpSocket::bind("0.0.0.0:0").await.ok()?;
    socket.connect("192.0.2.1:9").await.ok()?;
    socket.local_addr().ok().map(|address: SocketAddr| address.ip())
}
