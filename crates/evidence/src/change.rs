//! Interventions: deliberate changes of one property of a path, which test whether that property
//! limits throughput.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An intervention: a deliberate change of one property of a path for a run. All other properties
/// are as in a run without an intervention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The send buffer is larger. A diagnosis requests at least four times the size. For the table
    /// of a sweep, the intervention is a doubled buffer.
    SendBufferLarger,
    /// The send buffer is halved.
    SendBufferHalved,
    /// The receive buffer is larger. A diagnosis requests at least four times the size. For the
    /// table of a sweep, the intervention is a doubled buffer.
    ReceiveBufferLarger,
    /// The receive buffer is halved.
    ReceiveBufferHalved,
    /// Each write is eight times larger.
    LargerWrites,
    /// The sending program's pauses between writes are a quarter as long.
    ShorterPauses,
    /// The receiving program discards received data in the kernel without copying the data, and
    /// reads without pauses.
    Discard,
    /// The sender paces at 90 % of the estimated link rate. The estimate is the peak delivery rate
    /// of runs without an intervention. If these runs had no losses, it is their throughput.
    Paced,
    /// The sender paces at half the throughput of runs without an intervention.
    PacedAtHalf,
    /// The sender paces at twice the throughput of runs without an intervention.
    PacedAtTwice,
    /// Segments carry at most 512 bytes of data.
    SmallerPackets,
    /// The sending program runs on another CPU than in runs without an intervention.
    OtherCpu,
    /// Two connections share the path.
    TwoConnections,
    /// The sender's processor is faster. Only a simulated network supports this intervention.
    SenderCpuFaster,
    /// The receiver's processor is faster. Only a simulated network supports this intervention.
    ReceiverCpuFaster,
    /// The link with the lowest bit rate on the path is faster. Only a simulated network supports
    /// this intervention.
    LinkFaster,
    /// The queues of switches and routers on the path are ten times longer. Only a simulated
    /// network supports this intervention.
    QueueLonger,
}

impl Change {
    /// All interventions, in the order of their declaration.
    pub const ALL: [Self; 17] = [
        Self::SendBufferLarger,
        Self::SendBufferHalved,
        Self::ReceiveBufferLarger,
        Self::ReceiveBufferHalved,
        Self::LargerWrites,
        Self::ShorterPauses,
        Self::Discard,
        Self::Paced,
        Self::PacedAtHalf,
        Self::PacedAtTwice,
        Self::SmallerPackets,
        Self::OtherCpu,
        Self::TwoConnections,
        Self::SenderCpuFaster,
        Self::ReceiverCpuFaster,
        Self::LinkFaster,
        Self::QueueLonger,
    ];
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SendBufferLarger => "send buffer at least four times larger",
            Self::SendBufferHalved => "send buffer halved",
            Self::ReceiveBufferLarger => "receive buffer at least four times larger",
            Self::ReceiveBufferHalved => "receive buffer halved",
            Self::LargerWrites => "writes eight times larger",
            Self::ShorterPauses => "writer pauses a quarter as long",
            Self::Discard => "reader discards, without copy or pauses",
            Self::Paced => "paced at 90 % of the estimated link rate",
            Self::PacedAtHalf => "paced at half of the rate",
            Self::PacedAtTwice => "paced at twice the rate",
            Self::SmallerPackets => "segments of 512 bytes",
            Self::OtherCpu => "writer on another CPU",
            Self::TwoConnections => "one more connection",
            Self::SenderCpuFaster => "the sender's processor faster",
            Self::ReceiverCpuFaster => "the receiver's processor faster",
            Self::LinkFaster => "the slowest link faster",
            Self::QueueLonger => "queues on the path ten times longer",
        })
    }
}
