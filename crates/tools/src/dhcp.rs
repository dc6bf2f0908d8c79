//! An address for linerate's host by DHCP, before a tool uses the host.

use linerate_ends::Interrupt;
use linerate_link::{MonotonicClock, Readiness, WaitError, Waiter};
use linerate_stack::{DhcpLease, Host, Link, LinkError};
use linerate_units::{Clock, Duration};
use thiserror::Error;

/// Maximum time of a wait, after which the loop checks for an interrupt.
const SLICE: Duration = Duration::from_millis(100);

/// The reason why the host has no address.
#[derive(Debug, Error)]
pub enum LeaseError {
    /// No server has granted an address.
    #[error("no DHCP server has granted an address within {} s", .0.as_millis() / 1_000)]
    Silence(Duration),
    /// The user has interrupted the program.
    #[error("interrupted before a DHCP server has granted an address")]
    Interrupted,
    /// The link failed.
    #[error("the link has failed ({0})")]
    Link(#[from] LinkError),
    /// The system refused to wait for the link.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

/// Runs the host until its DHCP client has an address. Returns the lease.
///
/// # Errors
/// [`LeaseError`]: there is none within `timeout`, or the link failed.
pub fn wait_for_lease<L: Link + Readiness>(
    host: &mut Host<L>,
    timeout: Duration,
    interrupt: &Interrupt,
) -> Result<DhcpLease, LeaseError> {
    let mut waiter = Waiter::new()?;
    let end = MonotonicClock.now() + timeout;
    loop {
        let now = MonotonicClock.now();
        let turn = host.turn(now)?;
        if let Some(lease) = host.stack().dhcp_lease() {
            return Ok(lease.clone());
        }
        if interrupt.is_raised() {
            return Err(LeaseError::Interrupted);
        }
        if now >= end {
            return Err(LeaseError::Silence(timeout));
        }
        if !turn.more {
            waiter.wait(host.link_mut(), turn.next.min(now + SLICE).min(end))?;
        }
    }
}
