//! Feeds arbitrary messages of Neighbour Discovery to a host: see `linerate_testkit::fuzz`.
//!
//! `cargo xtask fuzz neighbor_discovery_into_a_host`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    linerate_testkit::fuzz::neighbor_discovery_into_a_host(bytes);
});
