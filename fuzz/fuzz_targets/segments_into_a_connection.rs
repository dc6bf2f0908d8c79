//! Feeds arbitrary segments to a TCP connection: see `linerate_testkit::fuzz`.
//!
//! `cargo xtask fuzz segments_into_a_connection`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_testkit::fuzz::segments_into_a_connection(
    bytes
));
