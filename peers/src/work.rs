//! What the contenders do: the works, how much of each a run does, and the sizes that all share.

use clap::ValueEnum;
use std::fmt;

/// Bytes of application data in a segment that fills an Ethernet frame, without options. Amounts are
/// counted in these, whatever options a contender sends, so that options cost whoever sends them.
pub const SEGMENT: u64 = 1_460;
/// What a bulk application writes and reads at a time.
pub const PIECE: usize = 64 << 10;
/// Bytes of each socket buffer, at both ends and in both directions, where a contender lets them be set.
pub const BUFFER: usize = 256 << 10;
/// Frames that a link holds in one direction, and that an end handles before the other has its turn.
pub const BATCH: usize = 64;

/// A kind of work. Both ends run on one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Work {
    /// A bulk transfer through the copying interface; the receiver may answer after two segments.
    Bulk,
    /// The same acknowledgements, one for two segments, and no turns for their sake: whoever can make them
    /// of a whole batch takes that in at once.
    BulkAcks,
    /// The same, and the receiver takes a whole batch in before it may answer.
    BulkBatch,
    /// As `bulk`, through the interface that lends its buffers, if a contender has one.
    BulkInPlace,
    /// One byte there and one byte back, again and again.
    PingPong,
    /// A connection is opened, accepted and closed from both ends, again and again.
    Connect,
    /// Writes of one segment: to one connection, to one beside 100,000 idle ones, to 10,000 in turn.
    Flows,
    /// A bulk transfer over a path of ten milliseconds: without loss, and with one frame in a hundred lost.
    Path,
    /// Bulk transfers over eight connections, by the clock on the wall: one shard, and two on two cores.
    Shards,
    /// A bulk transfer to the kernel over a TAP device; the stack and the kernel's socket share a processor.
    TapSend,
    /// The same from the kernel.
    TapReceive,
    /// As `tap-send`, over a device with offloads: super-frames, and no checksums.
    TapVnetSend,
    /// The same from the kernel.
    TapVnetReceive,
    /// A bulk transfer to the kernel by a packet socket, over a virtual cable with all offloads: super-frames.
    PacketVnetSend,
    /// The same from the kernel.
    PacketVnetReceive,
    /// A bulk transfer over a virtual cable by AF_XDP at both ends, and frames that are only carried.
    XdpFrames,
    /// A bulk transfer to the kernel by AF_XDP, over a virtual cable without offloads.
    XdpSend,
    /// The same from the kernel.
    XdpReceive,
}

impl Work {
    /// Its name on the command line and in results.
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

    /// What a figure of this work counts.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::PingPong => "round trip",
            Self::Connect => "connection",
            Self::Flows => "write of 1,400 bytes",
            _ => "1,460 bytes",
        }
    }

    /// Units of one run: long enough for the clock, short enough to take turns.
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

    /// Is it done inside of this process, over a link in memory?
    pub const fn is_inside(self) -> bool {
        !matches!(
            self,
            Self::TapSend | Self::TapReceive | Self::XdpFrames | Self::XdpSend | Self::XdpReceive
        ) && !self.has_offloads()
    }

    /// Do super-frames pass, and frames without checksums?
    pub const fn has_offloads(self) -> bool {
        matches!(
            self,
            Self::TapVnetSend
                | Self::TapVnetReceive
                | Self::PacketVnetSend
                | Self::PacketVnetReceive
        )
    }

    /// Does the stack send to the kernel?
    pub const fn is_to_kernel(self) -> bool {
        matches!(self, Self::TapSend | Self::TapVnetSend | Self::PacketVnetSend | Self::XdpSend)
    }

    /// Frames that a receiver takes in before it may answer, if it needs no turn for each acknowledgement.
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
            Self::BulkAcks => {
                "bulk, copying interface, an acknowledgement for two segments, however it comes about"
            }
            Self::BulkBatch => "bulk, copying interface, an answer after a batch",
            Self::BulkInPlace => "bulk, buffers lent in place, an answer after two segments",
            Self::PingPong => "ping-pong of one byte",
            Self::Connect => "connect and close",
            Self::Shards => "bulk over eight connections, time on the wall, one core and two",
            Self::TapSend => "to the kernel over a TAP device",
            Self::TapReceive => "from the kernel over a TAP device",
            Self::TapVnetSend => "to the kernel over a TAP device with offloads",
            Self::TapVnetReceive => "from the kernel over a TAP device with offloads",
            Self::PacketVnetSend => "to the kernel by a packet socket with offloads",
            Self::PacketVnetReceive => "from the kernel by a packet socket with offloads",
            Self::XdpFrames => "by AF_XDP at both ends of a virtual cable",
            Self::XdpSend => "to the kernel by AF_XDP, no offloads",
            Self::XdpReceive => "from the kernel by AF_XDP, no offloads",
            Self::Path => "over 10 ms in virtual time, without loss and with 1 % of the data lost",
            Self::Flows => "one connection, one beside 100,000 idle ones, 10,000 in turn",
        })
    }
}
