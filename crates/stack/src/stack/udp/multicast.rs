//! Delivery of datagrams to multicast groups. Several sockets may receive the same datagram.

use crate::demux::Flow;
use crate::ip::zone::with_zone;
use crate::stack::Stack;
use alloc::vec::Vec;

impl Stack {
    /// Delivers a datagram to each socket that has joined the group on this interface, admits the
    /// source of the datagram, and is bound to its destination port.
    #[inline(never)]
    pub(super) fn deliver_to_group(&mut self, flow: &Flow, data: &[u8]) {
        let group = flow.local();
        let remote = with_zone(flow.remote(), self.interface.number);
        let members: Vec<u32> = self.interface.groups.members(group.ip(), remote.ip()).collect();
        let mut is_delivered = false;
        for index in members {
            let is_receiver = self
                .sockets
                .udp_at(index)
                .is_some_and(|socket| socket.is_bound_for(group) && socket.accepts(remote));
            if is_receiver {
                self.deliver_datagram(index, flow, data);
                is_delivered = true;
            }
        }
        self.counted.udp.no_ports += u64::from(!is_delivered);
    }
}
