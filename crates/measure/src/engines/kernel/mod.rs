//! The engine with the kernel's TCP at both ends: over this machine's loopback device, or to a
//! `linerate sink` on another machine.
//!
//! Options are set before the handshake of each connection: `SO_SNDBUF` at the sender, `SO_RCVBUF`
//! at the receiver, and `TCP_CONGESTION`, even if the plan selects the kernel's default.
//! `TCP_MAXSEG` gives segments the size of the plan, because the MTU of the loopback device is
//! 65,536.
//!
//! The kernel sends no segment larger than half of the largest window that the peer has announced.
//! With a receive buffer of one packet, segments therefore have half the size (`snd_mss` among the
//! counters). This effect is a part of the result.

mod common_options;
mod floor;
mod loopback;
mod path;

use crate::bench::{Bench, RunRequest};
use crate::bench_error::BenchError;
use crate::engines::kernel_buffers;
use crate::engines::remote_sink::RemoteSink;
use crate::plan::Plan;
use common_options::CommonOptions;
use linerate_ends::Interrupt;
use linerate_ends::socket::Network;
use linerate_evidence::{BenchFacts, Floor, RunOutcome};
use path::Path;

/// The bench for the kernel's TCP at both ends.
#[derive(Debug)]
pub struct KernelBench {
    /// The receiving end of the transfers.
    to: Destination,
    facts: BenchFacts,
    common_options: CommonOptions,
}

/// The receiving end of the transfers.
#[derive(Debug)]
enum Destination {
    /// A socket of this process, reached over loopback.
    Loopback,
    /// A linerate sink, usually on another machine.
    Sink(Box<RemoteSink>),
}

impl KernelBench {
    /// Creates the bench for `plan`. Checks the plan against the limits of both machines' kernels
    /// now, so that no run fails because of them during the sweep.
    ///
    /// # Errors
    /// The peer cannot be used, the congestion control is unknown, the MTU is not possible, or a
    /// buffer is larger than the kernel grants.
    pub fn new(plan: &Plan) -> Result<Self, BenchError> {
        let common_options = CommonOptions::new(plan)?;
        let (mut to, path) = match &plan.peer {
            None => (Destination::Loopback, Path::loopback(&common_options)?),
            Some(peer) => {
                let far = RemoteSink::connect(Network::Kernel, peer, plan.mtu)?;
                let path = Path::to(&far, &common_options)?;
                (Destination::Sink(Box::new(far)), path)
            }
        };
        let mut facts = path.into_facts();
        let payload = facts.segment_payload;
        facts.settings.append(&mut kernel_buffers::sender(plan, payload)?);
        facts.settings.append(&mut match &mut to {
            Destination::Loopback => kernel_buffers::receiver(plan, payload)?,
            Destination::Sink(far) => kernel_buffers::receiver_at(far, plan, payload)?,
        });
        Ok(Self { to, facts, common_options })
    }
}

impl Bench for KernelBench {
    fn facts(&self) -> BenchFacts {
        self.facts.clone()
    }

    fn floor(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<Option<Floor>, BenchError> {
        match self.to {
            Destination::Loopback => floor::measure(request, interrupt).map(Some),
            // A floor is not possible, because the path between machines cannot carry data without
            // a protocol.
            Destination::Sink(_) => Ok(None),
        }
    }

    fn run(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<RunOutcome, BenchError> {
        match &mut self.to {
            Destination::Loopback => loopback::run(&self.common_options, request, interrupt),
            Destination::Sink(far) => {
                let options = self.common_options.sender(far.remote.address(), request);
                far.run(&options, request, interrupt)
            }
        }
    }
}

#[cfg(test)]
mod tests;
