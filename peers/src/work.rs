//! The workloads: their names, the amount of work in a run, and the sizes that all contenders
//! share.

use clap::ValueEnum;
use std::fmt;

/// Number of data bytes in a full Ethernet frame without TCP options. It is the unit of work of all
/// bulk transfers, also for contenders whose segments have options. Such segments carry less data,
/// so these contenders send more segments for the same work.
pub const SEGMENT: u64 = 1_460;
/// Maximum number of bytes that the application of a bulk transfer writes or reads at a time.
pub const PIECE: usize = 64 << 10;
/// Size of each send buffer and each receive buffer in bytes, if the contender lets it be
/// configured.
pub const BUFFER: usize = 256 << 10;
/// Number of frames that a link holds in one direction. One end handles at most this number of
/// frames before the turn of the other end.
pub const BATCH: usize = 64;

/// A workload. Except for `Shards`, both ends of its connections run on one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Work {
    /// A bulk transfer through the application interface that copies. The receiver may, but need
    /// not, acknowledge after every two segments.
    Bulk,
    /// A bulk transfer in which the receiver must acknowledge every two segments. If its stack can
    /// send several acknowledgements per turn, it receives a whole batch of frames in one turn.
    BulkAcks,
    /// A bulk transfer whose receiver may acknowledge only after a whole batch of frames.
    BulkBatch,
    /// A bulk transfer through the in-place interface, for contenders that have such an interface.
    BulkInPlace,
    /// One byte from the client and one byte from the server, in alternation.
    PingPong,
    /// Connections that are opened, accepted, and closed from both ends. Each is opened after the
    /// previous one was closed.
    Connect,
    /// Writes of one segment each, in three variants: to one connection, to one connection beside
    /// 100,000 idle ones, and to 10,000 connections in turn.
    Flows,
    /// A bulk transfer over a path with a round-trip time of 10 ms, in two variants. One is without
    /// loss, and the other loses one data frame in a hundred.
    Path,
    /// Bulk transfers over eight connections in two variants: with one shard, and with two shards
    /// on two cores. The result is wall-clock time.
    Shards,
    /// A bulk transfer to the kernel over a TAP device. The stack and the kernel's socket share a
    /// processor.
    TapSend,
    /// A bulk transfer from the kernel over a TAP device.
    TapReceive,
    /// A bulk transfer to the kernel over a TAP device with offloads: GSO frames without checksums.
    TapVnetSend,
    /// A bulk transfer from the kernel over a TAP device with offloads.
    TapVnetReceive,
    /// A bulk transfer to the kernel by a packet socket, over a veth pair with all offloads
    /// (GSO).
    PacketVnetSend,
    /// A bulk transfer from the kernel by a packet socket, over a veth pair with all offloads.
    PacketVnetReceive,
    /// A bulk transfer by AF_XDP at both ends of a veth pair. As a reference, bare AF_XDP sockets
    /// carry the same number of frames without a TCP stack.
    XdpFrames,
    /// A bulk transfer to the kernel by AF_XDP, over a veth pair without offloads.
    XdpSend,
    /// A bulk transfer from the kernel by AF_XDP, over a veth pair without offloads.
    XdpReceive,
}

impl Work {
    /// Returns the name of the workload on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::BulkAcks => "bulk-acks",
            Self::BulkBatch => "bulk-batch",
            Self::BulkInPlace => "bulk-in-place",
            Self::PingPong => "ping-pong",
            Self::Connect => "connect",
            Self::Flows => "flows",
            Self::Path => "path",
            Self::Shards => "shards",
            Self::TapSend => "tap-send",
            Self::TapReceive => "tap-receive",
            Self::TapVnetSend => "tap-vnet-send",
            Self::TapVnetReceive => "tap-vnet-receive",
            Self::PacketVnetSend => "packet-vnet-send",
            Self::PacketVnetReceive => "packet-vnet-receive",
            Self::XdpFrames => "xdp-frames",
            Self::XdpSend => "xdp-send",
            Self::XdpReceive => "xdp-receive",
        }
    }

    /// Returns the unit of work to which the results of this workload refer.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::PingPong => "round trip",
            Self::Connect => "connection",
            Self::Flows => "write of 1,400 bytes",
            _ => "1,460 bytes",
        }
    }

    /// Returns the number of units of work in a run. A run takes much longer than the resolution of
    /// the clock, but is short enough that contenders alternate often.
    pub const fn amount(self, quick: bool) -> u64 {
        let full = match self {
            Self::Bulk | Self::BulkAcks | Self::BulkBatch | Self::BulkInPlace | Self::Path => {
                400_000
            }
            Self::Shards => 800_000,
            Self::TapVnetSend
            | Self::TapVnetReceive
            | Self::PacketVnetSend
            | Self::PacketVnetReceive => 400_000,
            Self::PingPong | Self::Flows => 200_000,
            Self::TapSend | Self::TapReceive => 100_000,
            Self::XdpFrames | Self::XdpSend | Self::XdpReceive => 200_000,
            Self::Connect => 40_000,
        };
        if quick { full / 4 } else { full }
    }

    /// Returns whether both ends run inside this process, over a link in memory.
    pub const fn is_inside(self) -> bool {
        !matches!(
            self,
            Self::TapSend | Self::TapReceive | Self::XdpFrames | Self::XdpSend | Self::XdpReceive
        ) && !self.has_offloads()
    }

    /// Returns whether the link has offloads. It then carries GSO frames, and frames without
    /// checksums.
    pub const fn has_offloads(self) -> bool {
        matches!(
            self,
            Self::TapVnetSend
                | Self::TapVnetReceive
                | Self::PacketVnetSend
                | Self::PacketVnetReceive
        )
    }

    /// Returns whether the contender's stack sends the data and the kernel receives them.
    pub const fn is_to_kernel(self) -> bool {
        matches!(self, Self::TapSend | Self::TapVnetSend | Self::PacketVnetSend | Self::XdpSend)
    }

    /// Returns the maximum number of frames that a receiver handles in one turn. It may postpone
    /// its acknowledgement until it has handled them. In `BulkAcks`, a stack that sends at most one
    /// acknowledgement per turn must handle two frames per turn instead.
    pub const fn frames_before_answer(self) -> usize {
        match self {
            Self::BulkAcks | Self::BulkBatch | Self::Flows => BATCH,
            _ => 2,
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bulk => "bulk, copying interface, an answer after two segments",
            Self::BulkAcks => "bulk, copying interface, an acknowledgement for two segments",
            Self::BulkBatch => "bulk, copying interface, an answer after a batch",
            Self::BulkInPlace => "bulk, in-place interface, an answer after two segments",
            Self::PingPong => "ping-pong of one byte",
            Self::Connect => "connect and close",
            Self::Shards => "bulk over eight connections, wall-clock time, one core and two",
            Self::TapSend => "to the kernel over a TAP device",
            Self::TapReceive => "from the kernel over a TAP device",
            Self::TapVnetSend => "to the kernel over a TAP device with offloads",
            Self::TapVnetReceive => "from the kernel over a TAP device with offloads",
            Self::PacketVnetSend => "to the kernel by a packet socket with offloads",
            Self::PacketVnetReceive => "from the kernel by a packet socket with offloads",
            Self::XdpFrames => "by AF_XDP at both ends of a veth pair",
            Self::XdpSend => "to the kernel by AF_XDP, no offloads",
            Self::XdpReceive => "from the kernel by AF_XDP, no offloads",
            Self::Path => "over 10 ms in virtual time, without loss and with 1 % of the data lost",
            Self::Flows => "one connection, one beside 100,000 idle ones, 10,000 in turn",
        })
    }
}
