//! Feeds arbitrary frames to a host: see `linerate_testkit::fuzz`.
//!
//! `cargo xtask fuzz frames_into_a_host`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_testkit::fuzz::frames_into_a_host(bytes));
