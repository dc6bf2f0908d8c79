//! How a connection behaves, one behaviour a file. Most are scripts: a connection, and a peer whose
//! every segment is written down.

mod accurate_ecn;
mod buffers;
mod close;
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
mod joined;
mod keep_alive;
mod lent;
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
mod rest;
mod retransmission;
mod tail_probe;
mod time_wait;
mod timestamps;
mod transfer;
mod undo;
mod urgent;
mod user_timeout;
mod zero_window;

use linerate_units::Duration;

/// An answer to our SYN from a peer without any option but the MSS.
const SYN_ACK: &str = "S. 0:0(0) ack 1 win 65535 mss 1460";

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
