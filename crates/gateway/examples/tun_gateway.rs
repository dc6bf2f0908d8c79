//! A gateway on a TUN device that exists already:
//!
//! ```sh
//! ip tuntap add mode tun user "$USER" name lr0 && ip addr add 10.0.2.15/24 dev lr0
//! ip addr add fd00::15/64 dev lr0 && ip link set lr0 up && ip route add default dev lr0
//! ip -6 route add default dev lr0
//! cargo run -p linerate-gateway --example tun_gateway -- lr0
//! ```

use linerate_gateway::{Gateway, GatewayConfig};
use linerate_link::{Tap, TapConfig, random_bytes};
use linerate_stack::{EchoPolicy, Medium};
use std::error::Error;
use std::io;
use std::os::fd::AsFd;

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).ok_or("name a TUN device")?;
    let tun = Tap::open(&TapConfig { name, medium: Medium::Ip, ..TapConfig::default() })?;
    let config = GatewayConfig {
        // The gateway answers echo requests itself, whether or not the destination exists.
        echo: EchoPolicy::Answer,
        // These ranges contain the metadata services of cloud providers. Through the gateway, a
        // client would reach such a service with the identity of this machine.
        denied: vec!["169.254.0.0/16".parse()?, "fd00:ec2::/32".parse()?],
        ..GatewayConfig::default()
    };
    let mut gateway = Gateway::new(tun, &config, random_bytes()?)?;
    let metrics = gateway.serve_metrics("127.0.0.1:0".parse()?)?;
    eprintln!("metrics at http://{metrics}/; end the input to stop");
    let counters = gateway.run(io::stdin().as_fd(), None)?;
    eprintln!("{} connections, {} bytes up", counters.tcp_accepted, counters.tcp_bytes_up);
    Ok(())
}
