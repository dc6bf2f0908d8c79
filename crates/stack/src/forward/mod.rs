//! The state of forwarders: listeners that accept flows to addresses of other hosts.
//!
//! A deferred handshake is stored as a record of its SYN and not as a connection, because it may
//! wait for as long as another host needs to connect. A flood of SYNs must not fill the memory with
//! connections in that time.

mod destinations;
mod options;
mod records;

pub use destinations::Destinations;
pub use options::{
    EchoPolicy, ForwardEvent, ForwardOptions, ForwardStatistics, Opening, Rejection, Transport,
    Verdict,
};
pub(crate) use records::{Deferred, Records};

use crate::collections::list::List;
use crate::handle::UdpHandle;
use crate::keys::Keys;
use crate::udp::UdpFlowList;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;

/// The decision of an application about a new flow.
pub(crate) type Hook = Box<dyn FnMut(&Opening) -> Verdict + Send>;

/// One forwarder.
pub(crate) struct Forwarder {
    pub(crate) destinations: Destinations,
    pub(crate) options: ForwardOptions,
    /// The index of its listener, which has the queues of accepted connections.
    pub(crate) listener: u32,
    pub(crate) hook: Hook,
}

impl fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarder")
            .field("destinations", &self.destinations)
            .field("options", &self.options)
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

/// The UDP flows of forwarders. Each list is in the order of the last datagrams. At the limit, the
/// oldest flow without an answer is evicted, so that a scan of ports does not end flows that are in
/// use.
#[derive(Debug)]
pub(crate) struct UdpFlows {
    /// Flows that the application has not polled yet.
    pub(crate) fresh: List,
    /// Flows without a datagram from the application.
    pub(crate) unanswered: List,
    /// Flows with datagrams in both directions.
    pub(crate) answered: List,
}

impl UdpFlows {
    pub(crate) const fn len(&self) -> usize {
        self.fresh.len() + self.unanswered.len() + self.answered.len()
    }

    pub(crate) const fn list(&mut self, list: UdpFlowList) -> &mut List {
        match list {
            UdpFlowList::Fresh => &mut self.fresh,
            UdpFlowList::Unanswered => &mut self.unanswered,
            UdpFlowList::Answered => &mut self.answered,
        }
    }
}

/// All forwarders of a host.
#[derive(Debug)]
pub(crate) struct Forwarding {
    /// The forwarders in the order of their creation: the first that matches decides.
    pub(crate) forwarders: Vec<Forwarder>,
    pub(crate) records: Records,
    pub(crate) udp: UdpFlows,
    /// UDP flows that the host has ended. Invariant: at most the limit of flows, because the
    /// application polls these events before new flows.
    pub(crate) expired: VecDeque<UdpHandle>,
    pub(crate) counted: ForwardStatistics,
}

impl Forwarding {
    pub(crate) fn new(keys: &Keys) -> Self {
        Self {
            forwarders: Vec::new(),
            records: Records::new(keys),
            udp: UdpFlows { fresh: List::EMPTY, unanswered: List::EMPTY, answered: List::EMPTY },
            expired: VecDeque::new(),
            counted: ForwardStatistics::default(),
        }
    }

    /// Is there a forwarder for packets to this address, whatever their port?
    pub(crate) fn covers(&self, address: core::net::IpAddr) -> bool {
        self.forwarders.iter().any(|forwarder| forwarder.destinations.covers(address))
    }

    /// Returns the index of the first forwarder for flows to `destination`.
    pub(crate) fn find(&self, destination: SocketAddr) -> Option<usize> {
        let matches = |forwarder: &Forwarder| forwarder.destinations.contains(destination);
        self.forwarders.iter().position(matches)
    }

    /// Returns the forwarder whose listener has this index.
    pub(crate) fn of_listener(&self, listener: u32) -> Option<usize> {
        self.forwarders.iter().position(|forwarder| forwarder.listener == listener)
    }
}
