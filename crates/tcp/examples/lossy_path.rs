//! Runs a transfer with each congestion control algorithm over a path that loses one segment in
//! fifty.
//!
//! The crate does no I/O: this program carries the segments, keeps the clock, and decides which
//! segments are lost. It prints the same figures on every machine.
//!
//! ```sh
//! cargo run -p linerate-tcp --example lossy_path
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

mod path;

use linerate_tcp::CongestionName;
use linerate_units::{Bytes, Rate};
use path::{TRANSFER, transfer};

fn main() {
    for congestion in CongestionName::ALL {
        let (elapsed, retransmitted) = transfer(congestion);
        let goodput = Rate::of(Bytes::new(TRANSFER as u64), elapsed);
        let name = congestion.to_string();
        println!("{name:>8}: {goodput}, {retransmitted} segments retransmitted");
    }
}
