//! Feeds arbitrary IP fragments and extension headers to a host: see `linerate_testkit::fuzz`.
//!
//! `cargo xtask fuzz fragments_into_a_host`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_testkit::fuzz::fragments_into_a_host(bytes));
