//! Waits until linerate's host has an address by DHCP, before a tool uses the host.

use crate::turns::turn_until;
use linerate_ends::Interrupt;
use linerate_link::{MonotonicClock, Readiness, WaitError, Waiter};
use linerate_stack::{DhcpLease, Host, Link, LinkError};
use linerate_units::{Clock, Duration};
use thiserror::Error;

/// The reason why the host has no address from a DHCP server.
#[derive(Debug, Error)]
pub enum LeaseError {
    /// No server has granted an address within this time.
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

/// Runs the host until its DHCP client has an address, and returns the lease.
///
/// # Errors
/// [`LeaseError`]: no server has granted an address within `timeout`, or the link failed.
pub fn wait_for_lease<L: Link + Readiness>(
    host: &mut Host<L>,
    timeout: Duration,
    interrupt: &Interrupt,
) -> Result<DhcpLease, LeaseError> {
    let mut waiter = Waiter::new()?;
    let end = MonotonicClock.now() + timeout;
    let lease = |host: &mut Host<L>, _| host.stack().dhcp_lease().cloned();
    match turn_until(host, &mut waiter, end, interrupt, lease) {
        Ok(Some(lease)) => Ok(lease),
        Ok(None) if interrupt.is_raised() => Err(LeaseError::Interrupted),
        Ok(None) => Err(LeaseError::Silence(timeout)),
        Err(error) => Err(error),
    }
}
