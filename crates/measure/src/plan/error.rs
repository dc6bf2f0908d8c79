//! Errors of a plan.

use super::kind::BenchKind;
use super::limits;
use linerate_evidence::TooManyRuns;
use linerate_link::LinkSpec;
use linerate_link::impair::ImpairmentError;
use linerate_link::serial::SerialError;
use linerate_units::Duration;
use thiserror::Error;

/// The reason why a plan is invalid. The user can correct it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A peer was named, but both ends are on this machine.
    #[error(
        "a HOST cannot be used --on {0}: leave HOST out, or measure --on kernel or --on packet:NAME"
    )]
    PeerNeedsKernel(BenchKind),
    /// An interface was named without a peer.
    #[error("--on {0} sends to another machine: name the HOST where `linerate sink` runs")]
    NoPeer(LinkSpec),
    /// An address of linerate's host was given, but the bench has no interface.
    #[error(
        "--address is for linerate's host on an interface: leave it out, or measure --on \
         packet:NAME"
    )]
    HostNeedsInterface,
    /// The link of the bench has no offloads.
    #[error(
        "--offloads has no meaning --on {0}: leave it out, or measure --on tap, tun or packet:NAME"
    )]
    NoOffloads(String),
    /// A serial line has no rate.
    #[error("--on serial needs the rate of the line: write --on serial:2400")]
    NoBaud,
    /// A rate was given, but there is no serial line.
    #[error("--on {0} has no serial line, so a rate in baud has no meaning: leave it out")]
    BaudNeedsSerial(BenchKind),
    /// Header compression was chosen, but there is no serial line.
    #[error(
        "--header-compression has no meaning --on {0}: leave it out, or measure --on serial:2400"
    )]
    CompressionNeedsSerial(BenchKind),
    /// The serial line is impossible.
    #[error(transparent)]
    Serial(#[from] SerialError),
    /// A direction was given, but both ends are alike.
    #[error("--direction has no meaning --on {0}: leave it out, or measure --on tap or --on tun")]
    DirectionNeedsTap(BenchKind),
    /// An IP version was given, but the bench has no choice.
    #[error("--family has no meaning --on {0}: leave it out, or measure --on tap or --on tun")]
    FamilyNeedsTap(BenchKind),
    /// A profile was given, but no end is linerate's.
    #[error("--profile configures linerate's TCP, which is not used --on kernel: leave it out")]
    ProfileNeedsLinerate,
    /// Impairments were given, but no frames are linerate's.
    #[error(
        "--impair changes frames of linerate's TCP, which is not used --on kernel: leave it out"
    )]
    ImpairNeedsLinerate,
    /// Impairments were given for a scenario, which has its own.
    #[error(
        "--impair is for real links: change a cable of the scenario instead, as in --set \
         medium.loss=1"
    )]
    ImpairOnSim,
    /// A simulation was requested without a scenario.
    #[error(
        "--on sim needs a scenario: write --on sim:NAME or sim:FILE.toml, see `linerate sim list`"
    )]
    NoScenario,
    /// Parameters of a scenario were given, but there is no scenario.
    #[error(
        "--set changes parameters of a scenario, which is not used --on {0}: leave it out, or \
         measure --on sim:NAME"
    )]
    SetNeedsSim(BenchKind),
    /// The impairments are invalid.
    #[error(transparent)]
    Impair(#[from] ImpairmentError),
    /// A diagonal was requested for different lists of buffers.
    #[error("--diagonal needs equal send and receive buffers: give both the same list")]
    DiagonalNeedsEqual,
    /// The MTU is too small for a packet.
    #[error("an MTU of {0} bytes is too small: the minimum is {least}", least = limits::MIN_MTU)]
    Mtu(u16),
    /// The maximum time of a run is zero.
    #[error("--max-seconds is zero: give every run some time, such as 10")]
    NoTime,
    /// A time budget was given for virtual time.
    #[error("--budget is for real time, and --on sim is virtual: leave it out")]
    BudgetOnSim,
    /// The time budget is too short for the fewest runs.
    #[error("--budget {0} is too short: give at least {least} s", least = limits::MIN_BUDGET)]
    ShortBudget(Duration),
    /// The plan has too many runs.
    #[error(transparent)]
    TooManyRuns(#[from] TooManyRuns),
}
