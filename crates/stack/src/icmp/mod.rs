//! Echo requests of this host whose replies are expected. Other replies are dropped, so that no peer
//! can fill the queue of an application.

use crate::ip::path_mtu::plausible;
use alloc::collections::VecDeque;
use core::net::Ipv4Addr;
use linerate_wire::Quote;

/// Destinations and identifiers whose answers are awaited at the same time.
const FLOWS: usize = 64;

/// Which destinations have been asked by which programs lately.
#[derive(Debug, Default)]
pub(crate) struct EchoFlows {
    flows: VecDeque<(Ipv4Addr, u16)>,
}

impl EchoFlows {
    pub(crate) fn note(&mut self, destination: Ipv4Addr, identifier: u16) {
        if !self.awaits(destination, identifier) {
            if self.flows.len() == FLOWS {
                self.flows.pop_front();
            }
            self.flows.push_back((destination, identifier));
        }
    }

    pub(crate) fn awaits(&self, destination: Ipv4Addr, identifier: u16) -> bool {
        self.flows.contains(&(destination, identifier))
    }
}

/// The MTU that a report about a quoted packet asks for, as far as it can be believed.
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
    fn the_oldest_of_too_many_flows_is_awaited_no_more() {
        let mut flows = EchoFlows::default();
        for identifier in 0..=64 {
            flows.note(Ipv4Addr::LOCALHOST, identifier);
            flows.note(Ipv4Addr::LOCALHOST, identifier);
        }
        assert!(!flows.awaits(Ipv4Addr::LOCALHOST, 0) && flows.awaits(Ipv4Addr::LOCALHOST, 1));
        assert!(!flows.awaits(Ipv4Addr::UNSPECIFIED, 1));
    }
}
