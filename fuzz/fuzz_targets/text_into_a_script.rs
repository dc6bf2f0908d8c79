//! Parses arbitrary text as a packet script. Checks that it is either refused by an error of one
//! printable line, or can be run against our host, over IPv4 and over IPv6.
//!
//! `cargo xtask fuzz text_into_a_script`

#![no_main]

use linerate_script::{Family, Options, Script, run_on_stack};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Script::parse(text, None) {
        Ok(script) => {
            for family in [Family::Own, Family::Ipv6] {
                drop(run_on_stack(&script, &Options { family, ..Options::default() }));
            }
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control), "{error:?}"),
    }
});
