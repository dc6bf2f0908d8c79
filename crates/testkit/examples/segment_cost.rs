//! One bulk transfer between two connections in one thread, with nothing between them: what the
//! protocol alone costs a segment. Made to be counted by callgrind:
//!
//! ```sh
//! cargo build --release -p linerate-testkit --example segment_cost
//! valgrind --tool=callgrind target/release/examples/segment_cost 20000
//! ```
//!
//! The difference between two amounts, divided by the difference in segments, leaves out what a
//! connection costs once.

#![allow(clippy::print_stdout, reason = "a figure is what this program is for")]

use linerate_tcp::{Config, Connection, Path, Seeds};
use linerate_units::{Duration, Instant};
use linerate_wire::{Segment, SeqNum};

const PATH: Path = Path { mtu_payload: 1_480, window_clamp: None };
/// What the application writes and reads at a time.
const PIECE: usize = 64 << 10;
/// A turn of the two ends.
const TURN: Duration = Duration::from_micros(10);

fn main() {
    let count = std::env::args().nth(1);
    let segments: u64 = count.map_or(20_000, |count| count.parse().expect("a number of segments"));
    let (mut sender, mut receiver) = handshake();
    let mut now = Instant::ZERO;
    let (piece, mut heard) = (vec![7; PIECE], vec![0; PIECE]);
    while receiver.statistics().segments_received < segments {
        sender.write(now, &piece).expect("an open connection");
        carry(now, &mut sender, &mut receiver);
        while receiver.read(now, &mut heard).is_ok_and(|count| count > 0) {}
        carry(now, &mut receiver, &mut sender);
        now += TURN;
    }
    let received = receiver.statistics();
    let acknowledged = sender.statistics();
    println!(
        "{} segments; predicted: {} of them, {} of {} acknowledgements",
        received.segments_received,
        received.prediction.hits(),
        acknowledged.prediction.hits(),
        acknowledged.segments_received,
    );
}

fn handshake() -> (Connection, Connection) {
    let seeds = |number| Seeds { initial_sequence: SeqNum::new(number), timestamp_offset: 0 };
    let now = Instant::ZERO;
    let mut frame = [0; 1_480];
    let mut sender = Connection::connect(&Config::modern(), PATH, seeds(1), now);
    let syn = sender.poll_transmit(now, &mut frame).expect("a SYN");
    let segment = Segment::parse(&frame[..syn.length]).expect("a segment");
    let mut receiver = Connection::accept(&Config::modern(), PATH, seeds(2), &segment, now);
    carry(now, &mut receiver, &mut sender);
    carry(now, &mut sender, &mut receiver);
    (sender, receiver)
}

/// Everything that `from` has to say reaches `to`.
fn carry(now: Instant, from: &mut Connection, to: &mut Connection) {
    let mut frame = [0; 1_480];
    while let Some(sent) = from.poll_transmit(now, &mut frame) {
        let segment = Segment::parse(&frame[..sent.length]).expect("a segment");
        let _ = to.handle_segment(now, &segment);
    }
}
