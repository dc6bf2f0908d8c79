//! The kernel's TCP at both ends: over the loopback of this machine, or to a `linerate sink` on
//! another one.
//!
//! Every connection has its options set before its handshake: `SO_SNDBUF` at the sender, `SO_RCVBUF`
//! at the receiver, `TCP_CONGESTION` by name even if it is the default, and `TCP_MAXSEG`, so that a
//! packet of the plan is a packet: the loopback's own MTU is 65,536. What the kernel makes of small
//! receive buffers stays as it is: it sends no segment larger than half of the largest window it has
//! seen, so with a buffer of one packet the segments are halves (`snd_mss` among the counters).

pub(super) mod buffers;
mod floor;
pub(super) mod interface;
pub(super) mod loopback;
pub(super) mod way;

use super::far::Far;
use super::{Bench, BenchError, BenchFacts, Floor, RunOutcome, RunRequest};
use crate::Interrupt;
use crate::plan::Plan;
use crate::socket::{self, Congestion, Network, Options};
use std::io;
use std::net::SocketAddr;
use way::Way;

/// The smallest MTU that `TCP_MAXSEG` can bring about.
const LEAST_MTU: u16 = 128;
/// The largest.
const MOST_MTU: u16 = 32_767 + 40;

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

/// What all sockets of the bench have in common.
#[derive(Debug)]
struct Pins {
    congestion: Option<String>,
    mtu: u16,
}

impl KernelBench {
    /// The bench for `plan`. Everything that the kernel of either machine would refuse in the middle
    /// of the night is refused here.
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
        facts.settings.append(&mut buffers::sender(plan, payload)?);
        facts.settings.append(&mut match &mut to {
            To::Loopback => buffers::receiver(plan, payload)?,
            To::Sink(far) => buffers::receiver_at(far, plan, payload)?,
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

impl Pins {
    fn new(plan: &Plan) -> Result<Self, BenchError> {
        if !(LEAST_MTU..=MOST_MTU).contains(&plan.mtu) {
            let remedy = format!("kernel sockets take one from {LEAST_MTU} to {MOST_MTU}");
            return Err(BenchError::Mtu { mtu: plan.mtu.into(), remedy });
        }
        let congestion = Congestion::of_this_machine().choose(plan.congestion.as_deref())?;
        Ok(Self { congestion, mtu: plan.mtu })
    }

    /// The options of a sending socket to `address`.
    fn sender(&self, address: SocketAddr, request: &RunRequest) -> Options {
        Options {
            send_buffer: Some(request.send_buffer.bytes),
            max_segment: Some(self.max_segment(address)),
            congestion: request.congestion.clone().or_else(|| self.congestion.clone()),
            ..Options::default()
        }
    }

    fn max_segment(&self, address: SocketAddr) -> u16 {
        socket::max_segment(address, self.mtu)
    }
}

/// The operating system refused something that it usually grants.
pub(super) fn failed(what: &str, source: io::Error) -> BenchError {
    BenchError::Io { what: what.to_owned(), source }
}

#[cfg(test)]
mod tests;
