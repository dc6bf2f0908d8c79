//! Measures how long a frame of 1,514 bytes takes on a memory link and on a TAP device: `cargo run
//! --release -p linerate-link --example frame_cost`.
//!
//! Each figure is the median of several rounds, followed by the minimum and the maximum.

#![allow(clippy::print_stdout, reason = "the program prints its figures")]

use linerate_link::memory::{MemoryConfig, MemoryLink, pair};
use linerate_link::{MonotonicClock, Tap, TapConfig, Waiter, namespace};
use linerate_stack::{Link, TxFrame};
use linerate_units::{Clock, Instant};
use std::error::Error;
use std::hint::black_box;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;

const LENGTH: usize = 1_514;
const ROUNDS: usize = 21;
const FRAMES: usize = 200_000;

fn main() -> Result<(), Box<dyn Error>> {
    // Enters a network namespace, in which the TAP device is created later. This comes before the
    // measurements, because they start threads. Without root privileges, a process can enter a
    // namespace only while it has a single thread.
    let network = namespace::enter_private_network();
    println!("ns per frame of {LENGTH} bytes, median of {ROUNDS} rounds (minimum, maximum)");
    for capacity in [32, 64, 256, 1_024] {
        print(
            &format!("memory, one thread, ring of {capacity}, nothing copied"),
            &one_thread(capacity, false)?,
        );
        print(
            &format!("memory, one thread, ring of {capacity}, copied in and out"),
            &one_thread(capacity, true)?,
        );
    }
    for capacity in [64, 256] {
        print(
            &format!("memory, two threads that sleep, ring of {capacity}, copied"),
            &two_threads(capacity, 0)?,
        );
        print(
            &format!("memory, two threads that spin, ring of {capacity}, copied"),
            &two_threads(capacity, 2_000)?,
        );
    }
    match network.map_err(Into::into).and_then(|()| tap()) {
        Ok((write, read)) => {
            print("TAP, a write", &write);
            print("TAP, a read", &read);
        }
        Err(error) => println!("TAP: {error}"),
    }
    Ok(())
}

/// Sends frames through a memory link with a single thread, which uses the two endpoints
/// alternately. With `copied`, the thread also copies the payload of each frame at both endpoints.
/// Returns the nanoseconds per frame, one value for each round.
fn one_thread(capacity: usize, copied: bool) -> Result<Vec<f64>, Box<dyn Error>> {
    let (mut left, mut right) = pair(MemoryConfig { capacity, ..MemoryConfig::default() })?;
    let (payload, mut sink) = (payload(), payload());
    rounds(FRAMES, || {
        let mut done = 0;
        while done < FRAMES {
            left.transmit(16, |bytes| {
                if copied {
                    bytes[..LENGTH].copy_from_slice(&payload[..]);
                }
                Some(TxFrame::whole(LENGTH))
            })?;
            done += right.receive(16, |frame| {
                if copied {
                    sink[..LENGTH].copy_from_slice(frame.bytes);
                }
                black_box(&sink);
            })?;
        }
        Ok(())
    })
}

fn two_threads(capacity: usize, spins: u32) -> Result<Vec<f64>, Box<dyn Error>> {
    rounds(FRAMES, || {
        let (left, mut right) = pair(MemoryConfig { capacity, ..MemoryConfig::default() })?;
        let sender = thread::spawn(move || send_all(left, spins));
        let mut waiter = Waiter::new()?.with_spins(spins);
        let (mut done, mut sink) = (0, payload());
        while done < FRAMES {
            let received =
                right.receive(64, |frame| sink[..LENGTH].copy_from_slice(frame.bytes))?;
            black_box(&sink);
            if received == 0 {
                waiter.wait(&mut right, Instant::NEVER)?;
            }
            done += received;
        }
        sender.join().map_err(|_| "the sender panicked")?;
        Ok(())
    })
}

fn send_all(mut link: MemoryLink, spins: u32) {
    let payload = payload();
    let mut waiter = Waiter::new().expect("a descriptor").with_spins(spins);
    let mut left = FRAMES;
    while left > 0 {
        let sent = link.transmit(left.min(64), |bytes| {
            bytes[..LENGTH].copy_from_slice(&payload[..]);
            Some(TxFrame::whole(LENGTH))
        });
        match sent {
            Ok(0) => drop(waiter.wait(&mut link, Instant::NEVER)),
            Ok(sent) => left -= sent,
            // The receiver has dropped its endpoint. It does so once it has received all frames, so
            // the sender can end as well.
            Err(_) => return,
        }
    }
}

fn tap() -> Result<(Vec<f64>, Vec<f64>), Box<dyn Error>> {
    const AT_ONCE: usize = 400;
    let kernel = Ipv4Addr::new(10, 0, 0, 1);
    let mut tap = Tap::open(&TapConfig { offloads: false, ..TapConfig::default() })?;
    tap.interface().disable_ipv6()?;
    tap.interface().add_address(kernel, 24)?;
    tap.interface().set_up()?;
    let mut frame = payload();
    // The frame has an experimental EtherType, for which the kernel has no protocol. So the kernel
    // reads the frame and then drops it.
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xB5]);
    let write = rounds(AT_ONCE, || {
        tap.transmit(AT_ONCE, |bytes| {
            bytes[..LENGTH].copy_from_slice(&frame[..]);
            Some(TxFrame::whole(LENGTH))
        })?;
        Ok(())
    })?;
    let socket = UdpSocket::bind((kernel, 0))?;
    socket.set_broadcast(true)?;
    let mut read = Vec::new();
    for _ in 0..ROUNDS {
        for _ in 0..AT_ONCE {
            // The datagram goes to the broadcast address, so the kernel sends it without an ARP
            // request. Nothing on the TAP device would answer such a request.
            socket.send_to(&[0; LENGTH - 42], (Ipv4Addr::new(10, 0, 0, 255), 9))?;
        }
        let begin = MonotonicClock.now();
        let received = tap.receive(AT_ONCE, |frame| _ = black_box(frame.bytes.len()))?;
        read.push(nanos_per(begin, received));
    }
    Ok((write, read))
}

fn rounds(
    frames: usize,
    mut round: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<Vec<f64>, Box<dyn Error>> {
    (0..ROUNDS)
        .map(|_| {
            let begin = MonotonicClock.now();
            round()?;
            Ok(nanos_per(begin, frames))
        })
        .collect()
}

#[allow(clippy::cast_precision_loss, reason = "53 bits are plenty for a printed figure")]
fn nanos_per(begin: Instant, frames: usize) -> f64 {
    MonotonicClock.now().since(begin).as_nanos() as f64 / frames as f64
}

fn payload() -> Box<[u8; LENGTH]> {
    Box::new(std::array::from_fn(|at| at.to_le_bytes()[0]))
}

fn print(what: &str, figures: &[f64]) {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |place: usize| sorted[place];
    println!("{what:60} {:8.1}  ({:.1}, {:.1})", at(sorted.len() / 2), at(0), at(sorted.len() - 1));
}
