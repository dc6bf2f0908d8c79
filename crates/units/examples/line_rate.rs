//! Prints, for Ethernets of several bit rates, how many full-sized frames fit into a second, and
//! how long each of them takes.
//!
//! ```sh
//! cargo run -p linerate-units --example line_rate
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use linerate_units::{Bytes, Duration, Rate};

/// The bytes that a full-sized frame occupies on the medium: preamble 8, header 14, payload 1,500,
/// checksum 4, and inter-frame gap 12.
const ON_THE_WIRE: Bytes = Bytes::new(8 + 14 + 1_500 + 4 + 12);
/// The bytes of TCP data in a full-sized frame: 1,500 bytes of payload, less 40 for the headers of
/// IPv4 and TCP.
const DATA: Bytes = Bytes::new(1_460);

fn main() {
    for megabits in [10, 100, 1_000, 10_000] {
        let rate = Rate::from_bits_per_second(megabits * 1_000_000);
        let frame = rate.time_for(ON_THE_WIRE);
        let frames = rate.bytes_in(Duration::from_secs(1)).count() / ON_THE_WIRE.count();
        let goodput = Rate::of(Bytes::new(frames * DATA.count()), Duration::from_secs(1));
        println!("{rate}: {frames} frames/s, {frame} each, at most {goodput} of data");
    }
}
