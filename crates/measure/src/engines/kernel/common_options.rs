//! The socket options that are the same for all runs of a bench with the kernel's TCP.

use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::plan::Plan;
use linerate_ends::socket::{Congestion, Options, max_segment};
use std::net::SocketAddr;

/// Minimum MTU in bytes for which `TCP_MAXSEG` has a valid value.
const MIN_MTU: u16 = 128;
/// Maximum MTU in bytes for which `TCP_MAXSEG` has a valid value.
const MAX_MTU: u16 = 32_767 + 40;

/// The socket options that are the same for all runs of a bench with the kernel's TCP.
#[derive(Debug)]
pub(super) struct CommonOptions {
    /// Name of the sender's congestion control; `None` if the plan names none and the kernel's
    /// default is unknown.
    pub(super) congestion: Option<String>,
    /// MTU of the plan in bytes.
    pub(super) mtu: u16,
}

impl CommonOptions {
    /// Creates the options that `plan` describes. Returns an error if the MTU is out of range, or
    /// if the kernel does not have the congestion control.
    pub(super) fn new(plan: &Plan) -> Result<Self, BenchError> {
        if !(MIN_MTU..=MAX_MTU).contains(&plan.mtu) {
            let remedy = format!("kernel sockets take one from {MIN_MTU} to {MAX_MTU}");
            return Err(BenchError::Mtu { mtu: plan.mtu.into(), remedy });
        }
        let congestion = Congestion::of_this_machine().choose(plan.congestion.as_deref())?;
        Ok(Self { congestion, mtu: plan.mtu })
    }

    /// Returns the options of a socket that sends to `address` in the run `request`.
    pub(super) fn sender(&self, address: SocketAddr, request: &RunRequest) -> Options {
        Options {
            send_buffer: Some(request.send_buffer.bytes),
            max_segment: Some(self.max_segment(address)),
            congestion: request.congestion.clone().or_else(|| self.congestion.clone()),
            ..Options::default()
        }
    }

    /// Returns the MSS in bytes for packets to `address` with the MTU of the plan.
    pub(super) fn max_segment(&self, address: SocketAddr) -> u16 {
        max_segment(address, self.mtu)
    }
}
