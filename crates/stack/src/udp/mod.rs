//! UDP sockets: their options and their queues.

use crate::collections::packet_queue::PacketQueue;
use crate::error::Error;
use core::net::SocketAddrV4;
use linerate_wire::{Ipv4Header, UdpHeader};

/// Bytes of a packet before the data of its datagram.
const HEADERS: usize = Ipv4Header::LENGTH + UdpHeader::LENGTH;

/// How a UDP socket is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpOptions {
    /// Bytes of received datagrams that wait for the application; more are dropped. A datagram counts
    /// 64 bytes beside its data.
    pub receive_bytes: usize,
    /// Bytes of datagrams that wait for the link; more are refused. A datagram counts 92 bytes beside
    /// its data. There is always room for an empty one, and one that is larger than all of this is too long.
    pub send_bytes: usize,
    /// May the socket send to all hosts of a network?
    pub broadcast: bool,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self { receive_bytes: 208 << 10, send_bytes: 208 << 10, broadcast: false }
    }
}

/// A UDP socket of this host.
#[derive(Debug)]
pub(crate) struct UdpSocket {
    pub(crate) local: SocketAddrV4,
    pub(crate) peer: Option<SocketAddrV4>,
    pub(crate) broadcast: bool,
    /// Datagrams with their senders.
    pub(crate) received: PacketQueue<SocketAddrV4>,
    /// Finished packets.
    pub(crate) to_send: PacketQueue<()>,
    /// Was a datagram refused for want of room, and no event told of room since?
    pub(crate) starved: bool,
    /// What the network has reported, until it is asked for.
    pub(crate) error: Option<Error>,
}

impl UdpSocket {
    pub(crate) const fn new(local: SocketAddrV4, options: &UdpOptions) -> Self {
        Self {
            local,
            peer: None,
            broadcast: options.broadcast,
            received: PacketQueue::new(options.receive_bytes),
            to_send: PacketQueue::with_room_for(HEADERS, options.send_bytes),
            starved: false,
            error: None,
        }
    }

    /// Does it talk with `remote`? One that is connected talks with its peer alone.
    pub(crate) fn talks_with(&self, remote: SocketAddrV4) -> bool {
        self.peer.is_none_or(|peer| peer == remote)
    }
}

/// Bytes of data in the largest datagram of a packet of `mtu` bytes.
pub(crate) const fn data_limit(mtu: usize) -> usize {
    mtu.saturating_sub(HEADERS)
}
