//! Tests of the behaviour of a connection. Each file tests one aspect. Most tests are scripts, in
//! which the segments of the peer are given as text.

mod accurate_ecn;
mod buffers;
mod close;
mod coalesced;
mod compact;
mod congestion;
mod corking;
mod defer_accept;
mod delayed_ack;
mod ecn;
mod fast_open;
mod fast_path;
mod handshake;
mod icmp;
mod information;
mod keep_alive;
mod low_water;
mod nagle;
mod pacing;
mod path_mtu;
mod reassembly;
mod records;
mod recovery;
mod refused;
mod reordering;
mod requirements;
mod reset;
mod retransmission;
mod tail_probe;
mod time_wait;
mod timestamps;
mod transfer;
mod undo;
mod urgent;
mod user_timeout;
mod zero_copy;
mod zero_window;

use linerate_units::Duration;

/// A SYN-ACK of a peer that supports no option except the MSS.
const SYN_ACK: &str = "S. 0:0(0) ack 1 win 65535 mss 1460";

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
