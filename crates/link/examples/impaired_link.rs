//! A transfer between two hosts over a memory link that loses frames, delays them and limits their
//! rate.
//!
//! The impairments are given as text, as `linerate sweep --impair` takes them:
//!
//! ```sh
//! cargo run -p linerate-link --example impaired_link -- loss=1%,delay=5ms,rate=100Mb/s
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use linerate_link::impair::{Impair, Impairments};
use linerate_link::memory::{MemoryConfig, pair};
use linerate_link::{MonotonicClock, Readiness};
use linerate_stack::{ConnectOptions, Host, Link, ListenOptions, Stack, StackConfig};
use linerate_units::{Bytes, Clock, Instant, Rate};
use linerate_wire::MacAddress;
use std::error::Error;

const TRANSFER: usize = 1 << 20;
const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let text = std::env::args().nth(1).unwrap_or_else(|| "loss=1%,delay=1ms".to_owned());
    let impairments: Impairments = text.parse()?;
    let (left, right) = pair(MemoryConfig::default())?;
    let mut client = host(1, "192.0.2.1/24", Impair::new(left, impairments, SEED))?;
    let mut server = host(2, "192.0.2.2/24", right)?;

    let start = MonotonicClock.now();
    let service: std::net::SocketAddr = "192.0.2.2:9".parse()?;
    let listener = server.stack_mut().tcp_listen(service, &ListenOptions::default())?;
    let sending = client.stack_mut().tcp_connect(start, service, &ConnectOptions::default())?;
    let (mut written, mut read, mut accepted) = (0, 0, None);
    let (data, mut into) = (vec![0; TRANSFER], vec![0; 1 << 16]);

    while read < TRANSFER {
        let now = MonotonicClock.now();
        client.turn(now)?;
        server.turn(now)?;
        if written < TRANSFER {
            // A write fails while the send buffer is full or the handshake is incomplete. It is
            // then repeated in the next turn.
            written += client.stack_mut().tcp_write(now, sending, &data[written..]).unwrap_or(0);
        }
        accepted = accepted.or_else(|| server.stack_mut().tcp_accept(listener));
        if let Some((receiving, _peer)) = accepted {
            read += server.stack_mut().tcp_read(now, receiving, &mut into).unwrap_or(0);
        }
    }
    report(&client, start);
    Ok(())
}

/// Creates a host on a link. The seed is a constant in this example. Real programs must use random
/// bytes of the operating system.
fn host<L: Link>(number: u8, address: &str, link: L) -> Result<Host<L>, Box<dyn Error>> {
    let mac = MacAddress::new([2, 0, 0, 0, 0, number]);
    let stack = Stack::new(StackConfig::new(mac, address.parse()?), [number; 32]);
    Ok(Host::new(stack, link))
}

fn report<L>(client: &Host<Impair<L>>, start: Instant)
where
    Impair<L>: Link + Readiness,
{
    let elapsed = MonotonicClock.now().since(start);
    println!(
        "{} at {}",
        Bytes::new(TRANSFER as u64),
        Rate::of(Bytes::new(TRANSFER as u64), elapsed)
    );
    println!("sent: {:?}", client.link().transmitted());
    println!("received: {:?}", client.link().received());
}
