//! Ctrl-C: the first one requests an orderly stop, a second one ends the process at once.

use crate::output::Failure;
use linerate_ends::Interrupt;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns a flag that SIGINT and SIGTERM set.
pub(crate) fn on_signals() -> Result<Interrupt, Failure> {
    let raised = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The handlers of a signal run in the order of registration. The first handler ends the
        // process if the flag is set, and the second handler sets the flag. The first signal
        // therefore only sets the flag, and the next one ends the process.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&raised))
            .and_then(|_| flag::register(signal, Arc::clone(&raised)))
            .map_err(|error| Failure::running(format!("signals cannot be handled ({error})")))?;
    }
    Ok(Interrupt::from_flag(raised))
}
