//! Handover of reassembled segments to other shards. The ports of a segment select its shard (see
//! [`crate::steering`]), but only the first fragment contains them. Therefore all fragments go to
//! the first shard, which reassembles them and passes the segment to the selected shard.

use crate::demux::flow::Hosts;
use crate::ip::Arrived;
use crate::link::{Link, Medium, RxFrame};
use crate::stack::Stack;
use alloc::vec::Vec;
use core::net::SocketAddr;
use linerate_wire::{EtherType, EthernetHeader, VlanTags};

impl Stack {
    /// Removes and returns the next frame for another shard of this host, with the number of that
    /// shard. The frame contains a segment that arrived in fragments. The other shard must handle
    /// it like a received frame. [`Stack::turn`] passes these frames to [`Link::hand_over`].
    pub fn poll_handover(&mut self) -> Option<(u16, Vec<u8>)> {
        self.handovers.pop()
    }

    /// Passes all queued frames for other shards to the link.
    #[cold]
    pub(crate) fn hand_over(&mut self, link: &mut impl Link) {
        while let Some((shard, frame)) = self.handovers.pop() {
            link.hand_over(shard, RxFrame::plain(&frame, self.now));
            self.handovers.recycle(frame);
        }
    }

    /// Delivers a reassembled segment to its connection, if the connection belongs to this shard.
    /// Otherwise queues a frame with the segment for the shard of the connection.
    pub(crate) fn deliver_to_shard(&mut self, arrived: &Arrived<'_>) {
        let &[a, b, c, d, ..] = arrived.payload else { return self.deliver(arrived) };
        let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let local = SocketAddr::new(arrived.destination(), to);
        let owner = self.steering.of_connection(local, SocketAddr::new(arrived.source(), from));
        if owner == self.shard.number || arrived.is_broadcast {
            return self.deliver(arrived);
        }
        let (medium, mac) = (self.interface.capabilities.medium, self.interface.mac);
        let at = medium.header_length();
        let ether_type = match arrived.hosts {
            Hosts::V4(_) => EtherType::IPV4,
            Hosts::V6(_) => EtherType::IPV6,
        };
        // The other shard checks the destination MAC address of the frame, so this must be our own
        // address. The source MAC address is not used, so it can have any value.
        let header =
            EthernetHeader { destination: mac, source: mac, tags: VlanTags::NONE, ether_type };
        let kept = self.handovers.push_with(owner, at + arrived.bytes.len(), |frame| {
            if medium == Medium::Ethernet {
                header.emit(frame);
            }
            frame[at..].copy_from_slice(arrived.bytes);
        });
        self.counted.ip.in_discards += u64::from(!kept);
    }
}
