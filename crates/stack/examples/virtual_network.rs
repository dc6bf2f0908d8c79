//! Connects two hosts by a virtual wire, sends a ping, and then opens a connection to an echo
//! service.
//!
//! A host does no I/O of its own: this program carries its frames and tells it the time.
//!
//! ```sh
//! cargo run -p linerate-stack --example virtual_network
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use linerate_stack::{ConnectOptions, Event, ListenOptions, RxFrame, Stack, StackConfig};
use linerate_units::{Duration, Instant};
use linerate_wire::{FrameLine, MacAddress};
use std::error::Error;
use std::net::SocketAddr;

/// Time that a frame needs from one host to the other.
const DELAY: Duration = Duration::from_micros(50);

struct Network {
    hosts: [Stack; 2],
    now: Instant,
}

impl Network {
    fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self { hosts: [host(1, "192.0.2.1/24")?, host(2, "192.0.2.2/24")?], now: Instant::ZERO })
    }

    /// Carries frames in both directions until neither host has a frame to send.
    fn carry_all(&mut self) {
        let mut frame = [0; 1_514];
        loop {
            let mut frames = Vec::new();
            for (index, host) in self.hosts.iter_mut().enumerate() {
                while let Some(sent) = host.poll_transmit(self.now, &mut frame) {
                    let elapsed = self.now.since(Instant::ZERO).to_string();
                    println!("{elapsed:>8} {}", FrameLine(&frame[..sent.length]));
                    frames.push((1 - index, frame[..sent.length].to_vec()));
                }
            }
            if frames.is_empty() {
                return;
            }
            self.now += DELAY;
            for (to, bytes) in frames {
                self.hosts[to].handle_frame(self.now, RxFrame::plain(&bytes, self.now));
            }
        }
    }
}

/// Creates a host. Its seed is constant, so that each run of the example sends equal bytes. A real
/// host takes its seed from the operating system.
fn host(number: u8, address: &str) -> Result<Stack, Box<dyn Error>> {
    let mac = MacAddress::new([2, 0, 0, 0, 0, number]);
    Ok(Stack::new(StackConfig::new(mac, address.parse()?), [number; 32]))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut network = Network::new()?;
    network.hosts[0].echo_send(network.now, [192, 0, 2, 2], 7, 1, b"ping")?;
    network.carry_all();
    match network.hosts[0].poll_event() {
        Some(Event::EchoReply(reply)) => println!("reply from {}", reply.source),
        other => return Err(format!("expected an echo reply, not {other:?}").into()),
    }

    let service: SocketAddr = "192.0.2.2:7".parse()?;
    let listener = network.hosts[1].tcp_listen(service, &ListenOptions::default())?;
    let client = network.hosts[0].tcp_connect(network.now, service, &ConnectOptions::default())?;
    network.hosts[0].tcp_write(network.now, client, b"line rate")?;
    network.carry_all();

    let mut bytes = [0; 64];
    let (server, peer) = network.hosts[1].tcp_accept(listener).ok_or("no connection")?;
    let length = network.hosts[1].tcp_read(network.now, server, &mut bytes)?;
    println!("{length} bytes from {peer}");
    network.hosts[1].tcp_write(network.now, server, &bytes[..length])?;
    network.carry_all();

    let length = network.hosts[0].tcp_read(network.now, client, &mut bytes)?;
    println!("echo: {}", String::from_utf8_lossy(&bytes[..length]));
    Ok(())
}
