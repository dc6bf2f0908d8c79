//! Segments into a connection: see `linerate_testkit::fuzz`.
//!
//! `cargo +nightly fuzz run segments_into_a_connection -- -max_len=1024`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_testkit::fuzz::segments_into_a_connection(bytes));
