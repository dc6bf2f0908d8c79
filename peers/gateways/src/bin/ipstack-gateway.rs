//! A minimal gateway on the crate ipstack, for TCP only.

use ipstack::{IpStack, IpStackConfig, IpStackStream, TcpConfig, TcpOptions};
use linerate_peer_gateways::Tun;
use tokio::net::TcpStream;

/// Length in bytes of the headers of a segment over IPv4 without options.
const HEADERS: u16 = 40;
/// Maximum number of bytes of a received segment that the crate passes on at once. The rest of a
/// larger segment waits until the next segment arrives.
const LARGEST: u16 = 8_192;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (tun, mtu) = Tun::of_arguments()?;
    let mtu = u16::try_from(mtu)?;
    let segment = mtu.saturating_sub(HEADERS);
    let mut tcp = TcpConfig::default();
    // Announces the MSS to the client. Without this option, the client sends segments of 536 bytes.
    // With an MSS above `LARGEST`, uploads would stall.
    tcp.options = Some(vec![TcpOptions::MaximumSegmentSize(segment.min(LARGEST))]);
    // The crate has no window scaling, so a window has at most 65,535 bytes. The crate sends a
    // whole segment if fewer bytes than `max_unacked_bytes` are in flight, so this limit is the
    // window minus one segment.
    tcp.max_unacked_bytes = u32::from(u16::MAX - segment);
    tcp.read_buffer_size = u16::MAX.into();
    let mut config = IpStackConfig::default();
    config.mtu(mtu)?.with_tcp_config(tcp);
    let mut stack = IpStack::new(config, tun);
    loop {
        if let IpStackStream::Tcp(mut client) = stack.accept().await? {
            tokio::spawn(async move {
                let mut far = TcpStream::connect(client.peer_addr()).await?;
                far.set_nodelay(true)?;
                tokio::io::copy_bidirectional(&mut client, &mut far).await
            });
        }
    }
}
