//! Interventions: deliberate changes of one property of a path, which test whether that property
//! limits throughput.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An intervention: a deliberate change of one property of a path during one run. All other
/// properties are as in a run without an intervention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The send buffer is larger than in runs without an intervention: at least four times as large
    /// in a diagnosis. A sweep makes no interventions: there, this variant stands for the effect of
    /// doubling the send buffer, computed from a cell with a larger send buffer.
    SendBufferLarger,
    /// The send buffer is halved.
    SendBufferHalved,
    /// The receive buffer is larger than in runs without an intervention: at least four times as
    /// large in a diagnosis. A sweep makes no interventions: there, this variant stands for the
    /// effect of doubling the receive buffer, computed from a cell with a larger receive buffer.
    ReceiveBufferLarger,
    /// The receive buffer is halved.
    ReceiveBufferHalved,
    /// Each write of the sending program is eight times as large as in runs without an
    /// intervention.
    LargerWrites,
    /// The pauses of the sending program between writes are a quarter as long as in runs without an
    /// intervention.
    ShorterPauses,
    /// The receiving program lets the kernel discard received data, so that the data is not copied.
    /// It also reads without pauses.
    Discard,
    /// The sender paces at 90 % of the estimated link rate. The estimate comes from runs without an
    /// intervention: it is their throughput, or their peak delivery rate if they had losses.
    Paced,
    /// The sender paces at half the throughput of runs without an intervention.
    PacedAtHalf,
    /// The sender paces at twice the throughput of runs without an intervention.
    PacedAtTwice,
    /// Segments carry at most 512 bytes of data.
    SmallerPackets,
    /// The sending program runs on another CPU than in runs without an intervention.
    OtherCpu,
    /// Two connections transfer data over the path at the same time; runs without an intervention
    /// use one.
    TwoConnections,
    /// The sender's processor is faster than in runs without an intervention. Only a simulated
    /// network supports this change.
    SenderCpuFaster,
    /// The receiver's processor is faster than in runs without an intervention. Only a simulated
    /// network supports this change.
    ReceiverCpuFaster,
    /// The slowest link of the path has a higher bit rate than in runs without an intervention.
    /// Only a simulated network supports this change.
    LinkFaster,
    /// The queues of switches and routers on the path are ten times as long as in runs without an
    /// intervention. Only a simulated network supports this change.
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
