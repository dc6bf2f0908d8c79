//! An echo server on a TAP device.
//!
//! Without an argument, it runs in a private network namespace. A client of the kernel's TCP in
//! this process then connects to the server. This needs no privileges:
//!
//! ```sh
//! cargo run --release -p linerate-sockets --example tap_echo
//! ```
//!
//! With the name of an existing TAP device as its argument, it serves clients on this device until
//! it is interrupted:
//!
//! ```sh
//! sudo ip tuntap add mode tap user $USER name lr0
//! sudo ip address add 10.0.0.1/24 dev lr0
//! sudo ip link set lr0 up
//! cargo run --release -p linerate-sockets --example tap_echo lr0
//! nc 10.0.0.2 7      # in another terminal
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use linerate_link::namespace::enter_private_network;
use linerate_link::{Tap, TapConfig};
use linerate_sockets::{Net, StackConfig};
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown};
use std::{env, thread};

/// The kernel's address on the TAP device.
const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The address of this program's host.
const HOST: &str = "10.0.0.2/24";
const SERVICE: &str = "10.0.0.2:7";

fn main() -> Result<(), Box<dyn Error>> {
    let Some(name) = env::args().nth(1) else { return demonstrate() };
    let tap = Tap::open(&TapConfig { name, ..TapConfig::default() })?;
    serve(&start(tap)?)?;
    Ok(())
}

/// Serves a client in this process, which uses the kernel's TCP, in a private network namespace.
fn demonstrate() -> Result<(), Box<dyn Error>> {
    enter_private_network()?;
    let tap = Tap::open(&TapConfig::default())?;
    tap.interface().add_address(KERNEL, 24)?;
    tap.interface().set_up()?;
    let net = start(tap)?;
    thread::spawn(move || serve(&net));

    let mut stream = std::net::TcpStream::connect(SERVICE)?;
    stream.write_all(b"line rate")?;
    stream.shutdown(Shutdown::Write)?;
    let mut echo = String::new();
    stream.read_to_string(&mut echo)?;
    println!("the kernel received: {echo}");
    Ok(())
}

/// Starts a host of this crate on the TAP device.
fn start(tap: Tap) -> Result<Net, Box<dyn Error>> {
    let config = StackConfig::new("02:00:00:00:00:02".parse()?, HOST.parse()?);
    Ok(Net::builder(tap, config).start()?)
}

/// Accepts connections, and sends the received data of each connection back.
fn serve(net: &Net) -> io::Result<()> {
    let listener = net.bind(SERVICE)?;
    loop {
        let (mut stream, peer) = listener.accept()?;
        println!("connection from {peer}");
        thread::spawn(move || io::copy(&mut stream.try_clone()?, &mut stream));
    }
}
