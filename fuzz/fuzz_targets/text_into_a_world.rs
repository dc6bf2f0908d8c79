//! Parses arbitrary text as a scenario of the simulator. Checks that it is either refused by an
//! error of one printable line, or can be run, here for one millisecond.
//!
//! `cargo xtask fuzz text_into_a_world`

#![no_main]

use linerate_sim::{Keep, ParameterError, Scenario, Span, TransferOptions};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = try_to_run(text) {
        assert!(!error.to_string().contains(char::is_control), "{error:?}");
    }
});

fn try_to_run(text: &str) -> Result<(), ParameterError> {
    let read = |file: &str| Err(format!("{file} is not there"));
    let blueprint = Scenario::parse("text", text, &read)?.blueprint()?;
    let limit = Some(Span::from_picos(1_000_000_000));
    let _ =
        blueprint.run(1, &TransferOptions { limit, ..TransferOptions::default() }, Keep::default());
    Ok(())
}
