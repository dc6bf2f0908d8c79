//! A minimal gateway on the crate netstack-smoltcp, for TCP only.

use futures::{SinkExt, StreamExt};
use linerate_peer_gateways::Tun;
use netstack_smoltcp::StackBuilder;
use std::sync::Arc;
use tokio::net::TcpStream;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (tun, mtu) = Tun::of_arguments()?;
    let built = StackBuilder::default().enable_tcp(true).mtu(mtu).build()?;
    let (stack, Some(runner), _, Some(mut listener)) = built else {
        return Err("the stack has no TCP".into());
    };
    let (mut to_stack, mut from_stack) = stack.split();
    let tun = Arc::new(tun);
    let sending = Arc::clone(&tun);
    tokio::spawn(runner);
    tokio::spawn(async move {
        while let Some(Ok(packet)) = from_stack.next().await {
            if sending.send(&packet).await.is_err() {
                break;
            }
        }
    });
    tokio::spawn(async move {
        let mut packet = vec![0; 65_536];
        while let Ok(length) = tun.receive(&mut packet).await {
            if to_stack.send(packet[..length].to_vec()).await.is_err() {
                break;
            }
        }
    });
    while let Some((mut client, _source, destination)) = listener.next().await {
        tokio::spawn(async move {
            let mut far = TcpStream::connect(destination).await?;
            far.set_nodelay(true)?;
            tokio::io::copy_bidirectional(&mut client, &mut far).await
        });
    }
    Ok(())
}
