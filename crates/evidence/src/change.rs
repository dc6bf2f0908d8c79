//! Interventions: the single difference between a run and the plain transfer.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The single difference between a run and the plain transfer, which runs without any intervention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The send buffer has twice the size.
    SendBufferDoubled,
    /// The send buffer has half the size.
    SendBufferHalved,
    /// The receive buffer has twice the size.
    ReceiveBufferDoubled,
    /// The receive buffer has half the size.
    ReceiveBufferHalved,
    /// Writes are eight times larger.
    LargerWrites,
    /// The writer does not pause between writes.
    WriterWithoutPauses,
    /// The reader discards the data in the kernel, without a copy and without pauses.
    Discard,
    /// The sender is paced at 90 % of the plain transfer's peak delivery rate.
    Paced,
    /// The sender is paced at half of the plain transfer's rate.
    PacedAtHalf,
    /// Segments have at most 512 bytes.
    SmallerPackets,
    /// The writer runs on another CPU.
    OtherCpu,
    /// Two connections share the path.
    TwoConnections,
    /// The sender's processor is faster; possible in a simulated network.
    SenderCpuFaster,
    /// The receiver's processor is faster; possible in a simulated network.
    ReceiverCpuFaster,
}

impl Change {
    /// All changes, in the order of their declaration.
    pub const ALL: [Self; 14] = [
        Self::SendBufferDoubled,
        Self::SendBufferHalved,
        Self::ReceiveBufferDoubled,
        Self::ReceiveBufferHalved,
        Self::LargerWrites,
        Self::WriterWithoutPauses,
        Self::Discard,
        Self::Paced,
        Self::PacedAtHalf,
        Self::SmallerPackets,
        Self::OtherCpu,
        Self::TwoConnections,
        Self::SenderCpuFaster,
        Self::ReceiverCpuFaster,
    ];
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SendBufferDoubled => "send buffer doubled",
            Self::SendBufferHalved => "send buffer halved",
            Self::ReceiveBufferDoubled => "receive buffer doubled",
            Self::ReceiveBufferHalved => "receive buffer halved",
            Self::LargerWrites => "writes eight times larger",
            Self::WriterWithoutPauses => "writer without pauses",
            Self::Discard => "reader discards, without copy or pauses",
            Self::Paced => "paced at 90 % of the peak rate",
            Self::PacedAtHalf => "paced at half of the rate",
            Self::SmallerPackets => "segments of 512 bytes",
            Self::OtherCpu => "writer on another CPU",
            Self::TwoConnections => "one more connection",
            Self::SenderCpuFaster => "the sender's processor faster",
            Self::ReceiverCpuFaster => "the receiver's processor faster",
        })
    }
}
