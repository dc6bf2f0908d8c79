//! Checks that the memory of closed connections returns to the operating system. The test measures
//! the resident memory of its process, so no other test may run in this process.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]
#![allow(clippy::print_stdout, reason = "helpers of tests print as tests do")]

use linerate_link::MemoryLink;
use linerate_link::memory::{MemoryConfig, pair};
use linerate_sockets::{ListenOptions, Net, StackConfig, TcpStream};
use std::io::{ErrorKind, Write};
use std::net::Ipv4Addr;
use std::{fs, thread};

const CONNECTIONS: usize = 2_000;
const SERVER: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 1), 80);

/// Minimum number of bytes in the buffers of all connections together, when they are full.
const HELD: usize = 192 << 20;

/// Maximum number of freed bytes that a network may keep. Each network returns freed memory to the
/// operating system only when it is at least this much.
const KEPT: usize = 16 << 20;

/// Returns the resident memory of this process, in bytes.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * rustix::param::page_size()
}

fn network(link: MemoryLink, number: u8) -> Net {
    let mac = format!("02:00:00:00:00:{number:02x}").parse().unwrap();
    let config = StackConfig::new(mac, format!("10.0.0.{number}/24").parse().unwrap());
    Net::builder(link, config).start().unwrap()
}

/// Writes until the send buffer of the stream and the receive buffer of its peer are full. Returns
/// the number of bytes written.
fn fill(stream: &mut TcpStream) -> usize {
    let mut written = 0;
    loop {
        match stream.write(&[7; 64 << 10]) {
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return written,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn what_two_thousand_connections_held_is_returned_to_the_system() {
    let (left, right) = pair(MemoryConfig::default()).unwrap();
    let (server, client) = (network(left, 1), network(right, 2));
    let listener = server.bind_with(SERVER, &ListenOptions::default()).unwrap();
    let (mut streams, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        let stream = client.connect(SERVER).unwrap();
        stream.set_nonblocking(true).unwrap();
        streams.push(stream);
        ends.push(listener.accept().unwrap().0);
    }
    let opened = resident();
    let mut held = 0;
    while held < HELD {
        held += streams.iter_mut().map(fill).sum::<usize>();
        thread::yield_now();
    }
    let full = resident();
    assert!(full - opened >= HELD, "{opened} bytes before, {full} with full buffers");
    drop((streams, ends));

    // No application has read, so the buffers contained all written data (`held` bytes) when the
    // streams were dropped. The networks must return this memory, but each of the two may keep up
    // to `KEPT` bytes.
    let returned = || server.activity().returned_bytes + client.activity().returned_bytes;
    while returned() < (held - 2 * KEPT) as u64 {
        thread::yield_now();
    }
    let left = resident();
    println!("{opened} bytes before, {full} with full buffers, {left} after");
    assert!(left < opened + (full - opened) / 4, "{left} of {full} bytes are still resident");
}
