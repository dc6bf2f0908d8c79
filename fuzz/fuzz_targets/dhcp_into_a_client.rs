//! Feeds arbitrary messages of servers to a DHCP client: see `linerate_testkit::fuzz`.
//!
//! `cargo xtask fuzz dhcp_into_a_client`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_testkit::fuzz::dhcp_into_a_client(bytes));
