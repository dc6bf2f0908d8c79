//! One host: IP, ARP, ICMP, UDP, many TCP connections, and what it asks of a link.
//!
//! Time, randomness and bytes come in as arguments. Nothing here knows about file descriptors,
//! threads, any particular link, or that a simulator exists.

#![no_std]
#![forbid(unsafe_code)]

mod link;

pub use link::{Capabilities, Link, LinkError, Medium, RxChecksum, RxFrame, TxFrame};
