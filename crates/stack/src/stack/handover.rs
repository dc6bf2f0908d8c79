//! Segments that arrived in fragments and belong to connections of other shards. Fragments reach
//! the first shard, because only one of them has the ports (see [`crate::steering`]).

use crate::demux::flow::Hosts;
use crate::ip::Arrived;
use crate::link::{Link, Medium, RxFrame};
use crate::stack::Stack;
use alloc::vec::Vec;
use core::net::SocketAddr;
use linerate_wire::{EtherType, EthernetHeader, VlanTags};

impl Stack {
    /// Returns the next frame for another shard of this host, and the number of that shard, which
    /// handles the frame like a received one. It has a segment that arrived in fragments.
    /// [`Stack::turn`] passes such frames to [`Link::hand_over`].
    pub fn poll_handover(&mut self) -> Option<(u16, Vec<u8>)> {
        self.handovers.pop()
    }

    /// Passes the frames for other shards to the link.
    #[cold]
    pub(crate) fn hand_over(&mut self, link: &mut impl Link) {
        while let Some((shard, frame)) = self.handovers.pop() {
            link.hand_over(shard, RxFrame::plain(&frame, self.now));
            self.handovers.recycle(frame);
        }
    }

    /// Delivers a segment that arrived in fragments, or queues it for the shard of its connection.
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
        // The shard examines the addresses of the frame, but learns nothing from its source.
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
