//! Outstanding echo requests of this host. Unexpected replies are dropped, so that no peer can fill
//! the event queue of an application.

use crate::ip::path_mtu::plausible;
use alloc::collections::VecDeque;
use core::net::Ipv4Addr;
use linerate_wire::Quote;

/// Flows of echo requests that are remembered.
const FLOWS: usize = 64;

/// The destinations and identifiers of recent echo requests.
#[derive(Debug, Default)]
pub(crate) struct EchoFlows {
    flows: VecDeque<(Ipv4Addr, u16)>,
}

impl EchoFlows {
    pub(crate) fn insert(&mut self, destination: Ipv4Addr, identifier: u16) {
        if !self.contains(destination, identifier) {
            if self.flows.len() == FLOWS {
                self.flows.pop_front();
            }
            self.flows.push_back((destination, identifier));
        }
    }

    pub(crate) fn contains(&self, destination: Ipv4Addr, identifier: u16) -> bool {
        self.flows.contains(&(destination, identifier))
    }
}

/// Returns the MTU that an ICMP error about a quoted packet reports, if it is plausible.
pub(crate) fn reported_mtu(next_hop_mtu: u16, quote: &Quote<'_>) -> Option<usize> {
    let sent = quote
        .bytes()
        .get(2..4)
        .map_or(0, |length| usize::from(u16::from_be_bytes([length[0], length[1]])));
    plausible(usize::from(next_hop_mtu), sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_flow_is_evicted_at_the_limit() {
        let mut flows = EchoFlows::default();
        for identifier in 0..=64 {
            flows.insert(Ipv4Addr::LOCALHOST, identifier);
            flows.insert(Ipv4Addr::LOCALHOST, identifier);
        }
        assert!(!flows.contains(Ipv4Addr::LOCALHOST, 0) && flows.contains(Ipv4Addr::LOCALHOST, 1));
        assert!(!flows.contains(Ipv4Addr::UNSPECIFIED, 1));
    }
}
