//! Frames into a host: see `linerate_testkit::fuzz`.
//!
//! `cargo +nightly fuzz run frames_into_a_host -- -max_len=1024`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_testkit::fuzz::frames_into_a_host(bytes));
