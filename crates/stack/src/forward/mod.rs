//! The state of forwarders. A forwarder accepts TCP connections and UDP flows to addresses of other
//! hosts.
//!
//! The application can defer the answer to a SYN, usually until it has connected to the
//! destination. The host stores a deferred handshake as a record of the SYN. This record is much
//! smaller than a connection, so that a flood of SYNs does not fill the memory.

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

/// The application's callback of a forwarder, which decides about each new flow.
pub(crate) type Hook = Box<dyn FnMut(&Opening) -> Verdict + Send>;

/// A forwarder: a set of destinations, and the function that decides about new flows to them.
pub(crate) struct Forwarder {
    pub(crate) destinations: Destinations,
    pub(crate) options: ForwardOptions,
    /// Index of the forwarder's listener, in whose SYN queue and accept queue the connections of
    /// the forwarder wait.
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

/// The UDP flows of all forwarders, in three lists. Each list is ordered by the time of a flow's
/// most recent datagram, oldest first. At the limit, the oldest unanswered flow is evicted, so that
/// a port scan does not end flows that are in use.
#[derive(Debug)]
pub(crate) struct UdpFlows {
    /// Flows that were not yet reported to the application.
    pub(crate) fresh: List,
    /// Reported flows on which the application has sent no datagram yet.
    pub(crate) unanswered: List,
    /// Flows on which datagrams were sent in both directions.
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
    /// The forwarders in the order of their creation. A flow goes to the first forwarder that
    /// accepts the destination.
    pub(crate) forwarders: Vec<Forwarder>,
    pub(crate) records: Records,
    pub(crate) udp: UdpFlows,
    /// UDP flows that the host has ended, and that must still be reported to the application. If
    /// the application always polls these events before the events of new flows, their number never
    /// exceeds the limit of UDP flows.
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

    /// Returns whether a forwarder accepts flows to this address, at any port.
    pub(crate) fn covers(&self, address: core::net::IpAddr) -> bool {
        self.forwarders.iter().any(|forwarder| forwarder.destinations.covers(address))
    }

    /// Returns the index of the first forwarder that accepts flows to `destination`.
    pub(crate) fn find(&self, destination: SocketAddr) -> Option<usize> {
        let matches = |forwarder: &Forwarder| forwarder.destinations.contains(destination);
        self.forwarders.iter().position(matches)
    }

    /// Returns the index of the forwarder whose listener has the index `listener`.
    pub(crate) fn of_listener(&self, listener: u32) -> Option<usize> {
        self.forwarders.iter().position(|forwarder| forwarder.listener == listener)
    }
}
