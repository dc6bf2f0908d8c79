//! A minimal gateway on the crate ipstack, for TCP only.

use ipstack::{IpStack, IpStackConfig, IpStackStream};
use linerate_peer_gateways::Tun;
use tokio::net::TcpStream;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (tun, mtu) = Tun::of_arguments()?;
    let mut config = IpStackConfig::default();
    config.mtu(u16::try_from(mtu)?)?;
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
