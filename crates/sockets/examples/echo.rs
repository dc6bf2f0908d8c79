//! An echo service and its client, on two hosts in one process.
//!
//! ```sh
//! cargo run -p linerate-sockets --example echo
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use linerate_link::memory::{MemoryConfig, pair};
use linerate_sockets::{Net, StackConfig};
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::thread;

fn main() -> Result<(), Box<dyn Error>> {
    let (left, right) = pair(MemoryConfig::default())?;
    let server = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
    let client = StackConfig::new("02:00:00:00:00:02".parse()?, "10.0.0.2/24".parse()?);
    let server = Net::builder(left, server).name("server").start()?;
    let client = Net::builder(right, client).name("client").start()?;

    let listener = server.bind("10.0.0.1:7")?;
    let service = thread::spawn(move || -> io::Result<u64> {
        let (mut stream, _peer) = listener.accept()?;
        io::copy(&mut stream.try_clone()?, &mut stream)
    });

    let mut stream = client.connect("10.0.0.1:7")?;
    stream.write_all(b"line rate")?;
    stream.shutdown(Shutdown::Write)?;
    let mut echo = String::new();
    stream.read_to_string(&mut echo)?;
    let bytes = service.join().map_err(|_| "the service panicked")??;
    println!("the service returned {bytes} bytes: {echo}");
    Ok(())
}
