//! Measures bulk transfers and round trips through the sockets of this crate, over a memory link
//! between two networks in this process:
//! `cargo run --release -p linerate-sockets --example socket_cost`.
//!
//! Each result is printed as the median, the minimum and the maximum of several rounds.

#![allow(clippy::print_stdout, reason = "figures are the output of this program")]

use linerate_link::memory::{MemoryConfig, pair};
use linerate_sockets::{Budget, Net, StackConfig, TcpStream};
use std::error::Error;
use std::io::{Read, Write};
use std::thread;
use std::time::Instant;

const ROUNDS: usize = 11;
const BYTES: usize = 256 << 20;
const ROUND_TRIPS: u32 = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    println!("median of {ROUNDS} rounds (least, most)");
    for frames in [8, 16, 32, 64, 128, 256] {
        let budget = Budget { receive: frames, transmit: frames, ..Budget::default() };
        let (left, right) = networks(budget, 0)?;
        let rates = rounds(|| transfer(&left, &right))?;
        print(&format!("MB/s of bulk, {frames} frames a turn"), &rates);
        println!("    {:?}\n    {:?}", left.activity(), right.activity());
    }
    for spins in [0, 1_000] {
        let (left, right) = networks(Budget::default(), spins)?;
        let (mut near, mut far) = connection(&left, &right)?;
        print(
            &format!("µs of a round trip of one byte, {spins} spins"),
            &rounds(|| round_trips(&mut near, &mut far))?,
        );
    }
    Ok(())
}

fn networks(budget: Budget, spins: u32) -> Result<(Net, Net), Box<dyn Error>> {
    let (left, right) = pair(MemoryConfig::default())?;
    let one = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
    let two = StackConfig::new("02:00:00:00:00:02".parse()?, "10.0.0.2/24".parse()?);
    let left = Net::builder(left, one).budget(budget).spins(spins).start()?;
    let right = Net::builder(right, two).budget(budget).spins(spins).start()?;
    Ok((left, right))
}

fn connection(left: &Net, right: &Net) -> Result<(TcpStream, TcpStream), Box<dyn Error>> {
    let listener = left.bind("10.0.0.1:0")?;
    let far = right.connect(listener.local_addr()?)?;
    let near = listener.accept()?.0;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    Ok((near, far))
}

fn rounds(
    mut round: impl FnMut() -> Result<f64, Box<dyn Error>>,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut figures = (0..ROUNDS).map(|_| round()).collect::<Result<Vec<_>, _>>()?;
    figures.sort_by(f64::total_cmp);
    Ok(figures)
}

fn print(what: &str, figures: &[f64]) {
    println!("{what}: {:.1} ({:.1}, {:.1})", figures[ROUNDS / 2], figures[0], figures[ROUNDS - 1]);
}

/// Transfers `BYTES` bytes over a new connection. Returns megabytes per second.
#[allow(clippy::cast_precision_loss, reason = "the figure is rounded for display")]
fn transfer(left: &Net, right: &Net) -> Result<f64, Box<dyn Error>> {
    let (mut near, mut far) = connection(left, right)?;
    let start = Instant::now();
    let sender = thread::spawn(move || {
        let piece = vec![7; 64 << 10];
        (0..BYTES / piece.len()).try_for_each(|_| far.write_all(&piece))
    });
    let mut piece = vec![0; 64 << 10];
    let mut received = 0;
    while received < BYTES {
        received += near.read(&mut piece)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    sender.join().map_err(|_| "the sender panicked")??;
    Ok(BYTES as f64 / seconds / 1e6)
}

/// Sends single bytes back and forth. Returns microseconds per round trip.
fn round_trips(near: &mut TcpStream, far: &mut TcpStream) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    thread::scope(|scope| {
        let partner = scope.spawn(|| {
            let mut byte = [0];
            (0..ROUND_TRIPS)
                .try_for_each(|_| near.read_exact(&mut byte).and_then(|()| near.write_all(&byte)))
        });
        let mut byte = [7];
        for _ in 0..ROUND_TRIPS {
            far.write_all(&byte)?;
            far.read_exact(&mut byte)?;
        }
        partner.join().map_err(|_| "the partner panicked")??;
        Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUND_TRIPS))
    })
}
