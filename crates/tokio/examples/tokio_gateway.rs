//! An egress gateway: the flows of a TUN device are relayed over the kernel's sockets.
//!
//! ```sh
//! ip tuntap add mode tun user "$USER" name lr0 && ip addr add 10.0.2.15/24 dev lr0
//! ip addr add fd00::f/64 dev lr0 && ip link set lr0 up
//! cargo run --release -p linerate-tokio --example tokio_gateway -- lr0
//! ```

use linerate_link::{Tap, TapConfig};
use linerate_stack::Medium;
use linerate_tokio::net::{Flow, Forwarder, Handshake, UdpSocket};
use linerate_tokio::{
    Destinations, ForwardOptions, IpCidr, Net, Rejection, Route, StackConfig, Unreachable, Verdict,
};
use std::error::Error;
use std::io::{self, ErrorKind};

/// Relays a connection. Completes the client's handshake only after the connection to the
/// destination is established, and rejects it if the destination cannot be reached.
async fn relay(handshake: Handshake) -> io::Result<()> {
    let mut far = match tokio::net::TcpStream::connect(handshake.destination()).await {
        Ok(far) => far,
        Err(error) => {
            return handshake.reject(match error.kind() {
                ErrorKind::NetworkUnreachable => Rejection::Unreachable(Unreachable::Net),
                ErrorKind::HostUnreachable => Rejection::Unreachable(Unreachable::Host),
                _ => Rejection::Reset,
            });
        }
    };
    let mut near = handshake.accept().await?;
    tokio::io::copy_bidirectional(&mut near, &mut far).await.map(drop)
}

/// Relays datagrams until their flow has expired.
async fn relay_datagrams(near: UdpSocket) -> io::Result<()> {
    let destination = near.local_addr()?;
    let any = if destination.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let far = tokio::net::UdpSocket::bind(any).await?;
    far.connect(destination).await?;
    let (mut up, mut down) = (vec![0; 65_535], vec![0; 65_535]);
    loop {
        let sent = tokio::select! {
            received = near.recv(&mut up) => far.send(&up[..received?]).await,
            received = far.recv(&mut down) => match received {
                Ok(length) => near.send(&down[..length]).await,
                Err(error) => Err(error),
            },
        };
        match sent {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                near.report_unreachable(Unreachable::Port)?;
            }
            sent => drop(sent?),
        }
    }
}

/// Relays all flows that arrive at the host `net`.
pub(crate) async fn relay_all(net: &Net) -> io::Result<()> {
    let (everything, options) = (Destinations::EVERYTHING, ForwardOptions::default());
    let forwarder = net.scope(Forwarder::bind(everything, &options, |_| Verdict::Defer)).await?;
    loop {
        // If a flow fails, only its own task ends.
        match forwarder.accept().await? {
            Flow::Handshake(handshake) => drop(tokio::spawn(relay(handshake))),
            Flow::Udp(socket) => drop(tokio::spawn(relay_datagrams(socket))),
            _ => {}
        }
    }
}

/// Returns the configuration of the gateway's host. Direct routes to all networks let clients have
/// any address.
pub(crate) fn configuration() -> Result<StackConfig, Box<dyn Error>> {
    let mut config = StackConfig::new("02:00:00:00:00:02".parse()?, "10.0.2.2/24".parse()?);
    config.addresses.push("fd00::2/64".parse()?);
    config.routes = vec![Route::direct(IpCidr::ALL_IPV4), Route::direct(IpCidr::ALL_IPV6)];
    Ok(config)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).ok_or("name a TUN device")?;
    let tun = Tap::open(&TapConfig { name, medium: Medium::Ip, ..TapConfig::default() })?;
    let net = Net::builder(tun, configuration()?).start()?;
    Ok(relay_all(&net).await?)
}
