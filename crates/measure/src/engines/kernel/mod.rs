//! The kernel's TCP at both ends: over the loopback of this machine, or to a `linerate sink` on
//! another one.
//!
//! Every connection has its options set before its handshake: `SO_SNDBUF` at the sender,
//! `SO_RCVBUF` at the receiver, `TCP_CONGESTION` by name even if it is the default, and
//! `TCP_MAXSEG`, so that a packet of the plan is a packet: the loopback's own MTU is 65,536. What
//! the kernel makes of small receive buffers stays as it is: it sends no segment larger than half
//! of the largest window it has seen, so with a buffer of one packet the segments are halves
//! (`snd_mss` among the counters).

mod floor;
mod loopback;
mod path;
mod pins;

use crate::bench::{Bench, RunRequest};
use crate::bench_error::BenchError;
use crate::engines::kernel_buffers;
use crate::engines::remote_sink::Far;
use crate::plan::Plan;
use linerate_ends::Interrupt;
use linerate_ends::socket::Network;
use linerate_evidence::{BenchFacts, Floor, RunOutcome};
use path::Way;
use pins::Pins;

/// The kernel's TCP at both ends.
#[derive(Debug)]
pub struct KernelBench {
    to: To,
    facts: BenchFacts,
    pins: Pins,
}

/// Where the bytes go.
#[derive(Debug)]
enum To {
    Loopback,
    Sink(Box<Far>),
}

impl KernelBench {
    /// The bench for `plan`. Everything that the kernel of either machine would refuse in the
    /// middle of the night is refused here.
    ///
    /// # Errors
    /// The peer cannot be used, the kernel does not know the congestion control, the MTU cannot be
    /// had, or a buffer is larger than the kernel grants.
    pub fn new(plan: &Plan) -> Result<Self, BenchError> {
        let pins = Pins::new(plan)?;
        let (mut to, way) = match &plan.peer {
            None => (To::Loopback, Way::loopback(&pins)?),
            Some(peer) => {
                let far = Far::connect(Network::Kernel, peer, plan.mtu)?;
                let way = Way::to(&far, &pins)?;
                (To::Sink(Box::new(far)), way)
            }
        };
        let mut facts = way.into_facts();
        let payload = facts.segment_payload;
        facts.settings.append(&mut kernel_buffers::sender(plan, payload)?);
        facts.settings.append(&mut match &mut to {
            To::Loopback => kernel_buffers::receiver(plan, payload)?,
            To::Sink(far) => kernel_buffers::receiver_at(far, plan, payload)?,
        });
        Ok(Self { to, facts, pins })
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
            To::Loopback => floor::measure(request, interrupt).map(Some),
            // Nothing but a protocol brings bytes across a network.
            To::Sink(_) => Ok(None),
        }
    }

    fn run(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
    ) -> Result<RunOutcome, BenchError> {
        match &mut self.to {
            To::Loopback => loopback::run(&self.pins, request, interrupt),
            To::Sink(far) => {
                let options = self.pins.sender(far.remote.address(), request);
                far.run(&options, request, interrupt)
            }
        }
    }
}

#[cfg(test)]
mod tests;
