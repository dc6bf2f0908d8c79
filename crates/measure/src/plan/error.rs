//! The errors of an invalid plan.

use super::kind::BenchKind;
use super::limits;
use linerate_evidence::TooManyRuns;
use linerate_link::LinkSpec;
use linerate_link::impair::ImpairmentError;
use linerate_link::serial::SerialError;
use linerate_units::Duration;
use thiserror::Error;

/// The reason why a plan is invalid, with the remedy for the user.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A peer is given for an engine whose two ends are both on this machine.
    #[error(
        "a HOST cannot be used --on {0}: leave HOST out, or measure --on kernel or --on packet:NAME"
    )]
    PeerNeedsKernel(BenchKind),
    /// The plan uses a link on an interface, but has no peer.
    #[error("--on {0} sends to another machine: name the HOST where `linerate sink` runs")]
    NoPeer(LinkSpec),
    /// The plan is for an interface, but configures no host of linerate on it.
    #[error(
        "linerate's host on an interface needs an address: give --on packet:NAME and --address \
         ADDR/LENGTH"
    )]
    NoHost,
    /// A host of linerate is configured for an engine that does not use an interface.
    #[error(
        "--address is for linerate's host on an interface: leave it out, or measure --on \
         packet:NAME"
    )]
    HostNeedsInterface,
    /// Offloads are switched on or off, but the engine's link does not have them. The text names
    /// the engine or the link.
    #[error(
        "--offloads has no meaning --on {0}: leave it out, or measure --on tap, tun or packet:NAME"
    )]
    NoOffloads(String),
    /// The plan is for a serial line inside this machine, but has no rate.
    #[error("--on serial needs the rate of the line: write --on serial:2400")]
    NoBaud,
    /// A rate in baud is given for an engine without a serial line inside this machine.
    #[error("--on {0} has no serial line, so a rate in baud has no meaning: leave it out")]
    BaudNeedsSerial(BenchKind),
    /// Header compression is switched on or off for an engine without a serial line inside this
    /// machine.
    #[error(
        "--header-compression has no meaning --on {0}: leave it out, or measure --on serial:2400"
    )]
    CompressionNeedsSerial(BenchKind),
    /// The rate or the MTU of the serial line is out of range.
    #[error(transparent)]
    Serial(#[from] SerialError),
    /// A direction is given for an engine whose two ends have the same TCP.
    #[error("--direction has no meaning --on {0}: leave it out, or measure --on tap or --on tun")]
    DirectionNeedsTap(BenchKind),
    /// An IP version is given for an engine that offers no choice.
    #[error(
        "--family has no meaning --on {0}: leave it out, or measure --on tap, --on tun or --on sim"
    )]
    FamilyNeedsTap(BenchKind),
    /// A profile is given, but neither end uses linerate's TCP.
    #[error("--profile configures linerate's TCP, which is not used --on kernel: leave it out")]
    ProfileNeedsLinerate,
    /// Impairments are given, but neither end uses linerate's TCP.
    #[error(
        "--impair changes frames of linerate's TCP, which is not used --on kernel: leave it out"
    )]
    ImpairNeedsLinerate,
    /// Impairments are given for a simulation, whose scenario has its own impairments.
    #[error(
        "--impair is for real links: change a cable of the scenario instead, as in --set \
         medium.loss=1"
    )]
    ImpairOnSim,
    /// A simulation is requested without a scenario.
    #[error(
        "--on sim needs a scenario: write --on sim:NAME or sim:FILE.toml, see `linerate sim list`"
    )]
    NoScenario,
    /// Parameters of a scenario are given for an engine without a scenario.
    #[error(
        "--set changes parameters of a scenario, which is not used --on {0}: leave it out, or \
         measure --on sim:NAME"
    )]
    SetNeedsSim(BenchKind),
    /// The text of the impairments is invalid.
    #[error(transparent)]
    Impair(#[from] ImpairmentError),
    /// Only cells with equal buffers are requested, but the lists of send and receive buffers
    /// differ.
    #[error("--diagonal needs equal send and receive buffers: give both the same list")]
    DiagonalNeedsEqual,
    /// The MTU, in bytes, is smaller than the minimum.
    #[error("an MTU of {0} bytes is too small: the minimum is {least}", least = limits::MIN_MTU)]
    Mtu(u16),
    /// The maximum duration of a run is zero.
    #[error("--max-seconds is zero: give every run some time, such as 10")]
    NoTime,
    /// A time budget, which is real time, is given for a simulation, which runs in virtual time.
    #[error("--budget is for real time, and --on sim is virtual: leave it out")]
    BudgetOnSim,
    /// The time budget is shorter than the minimum.
    #[error("--budget {0} is too short: give at least {least} s", least = limits::MIN_BUDGET)]
    ShortBudget(Duration),
    /// The plan has too many runs.
    #[error(transparent)]
    TooManyRuns(#[from] TooManyRuns),
}
