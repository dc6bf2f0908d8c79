//! Runs a host in real time, turn by turn, until a tool has what it waits for.

use linerate_ends::Interrupt;
use linerate_link::{MonotonicClock, Readiness, WaitError, Waiter};
use linerate_stack::{Error, Host, Link, LinkError};
use linerate_units::{Clock, Duration, Instant};
use thiserror::Error;

/// Maximum time of a single wait. After each wait, the loop checks whether the user has interrupted
/// the program.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// The reason why a tool cannot continue to use its host.
#[derive(Debug, Error)]
pub enum ToolError {
    /// The host refuses the operation.
    #[error("{0}")]
    Refused(#[from] Error),
    /// The link failed.
    #[error("the link has failed ({0})")]
    Link(#[from] LinkError),
    /// The system could not wait for the link.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

/// Executes turns of a host until `check` returns a value. `check` is called after each turn, with
/// the time at which the turn began. Returns `None` at the deadline or after an interrupt.
///
/// # Errors
/// The link failed, or the system could not wait for it.
pub(crate) fn turn_until<L: Link + Readiness, T, E: From<LinkError> + From<WaitError>>(
    host: &mut Host<L>,
    waiter: &mut Waiter,
    deadline: Instant,
    interrupt: &Interrupt,
    mut check: impl FnMut(&mut Host<L>, Instant) -> Option<T>,
) -> Result<Option<T>, E> {
    loop {
        let now = MonotonicClock.now();
        let turn = host.turn(now)?;
        if let Some(value) = check(host, now) {
            return Ok(Some(value));
        }
        if now >= deadline || interrupt.is_raised() {
            return Ok(None);
        }
        if !turn.more {
            waiter.wait(host.link_mut(), turn.next.min(deadline).min(now + SLICE))?;
        }
    }
}
