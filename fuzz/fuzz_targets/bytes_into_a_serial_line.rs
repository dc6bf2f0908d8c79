//! Feeds arbitrary bytes to the receiver of a serial line: see `linerate_testkit::fuzz`.
//!
//! `cargo xtask fuzz bytes_into_a_serial_line`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linerate_testkit::fuzz::bytes_into_a_serial_line(bytes));
