//! Why a plan cannot be carried out.

use super::kind::BenchKind;
use super::limits;
use linerate_evidence::TooManyRuns;
use linerate_link::LinkSpec;
use linerate_link::impair::ImpairmentError;
use thiserror::Error;

/// Why a plan cannot be carried out. The person who asked for it can mend it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Both ends are on this machine.
    #[error(
        "a HOST cannot be reached --on {0}: leave HOST out, or measure --on kernel or --on packet:NAME"
    )]
    PeerNeedsKernel(BenchKind),
    /// An interface leads to another machine.
    #[error("--on {0} sends to another machine: name the HOST where `linerate sink` runs")]
    NoPeer(LinkSpec),
    /// An interface is needed by the bench of that name, and by no other.
    #[error(
        "--address is that of linerate's host on an interface: leave it out, or measure --on packet:NAME"
    )]
    HostNeedsInterface,
    /// Nothing is left to a link there.
    #[error(
        "--offloads has no meaning --on {0}: leave it out, or measure --on tap or --on packet:NAME"
    )]
    NoOffloads(String),
    /// Both ends are the same, so there is no direction to choose.
    #[error("--direction has no meaning --on {0}: leave it out, or measure --on tap")]
    DirectionNeedsTap(BenchKind),
    /// A profile is a set of rules of linerate's TCP.
    #[error("--profile chooses rules of linerate's TCP, there is none --on kernel: leave it out")]
    ProfileNeedsOurs,
    /// Only frames of linerate's own are in reach.
    #[error(
        "--impair mistreats frames of linerate's TCP, there are none --on kernel: leave it out"
    )]
    ImpairNeedsOurs,
    /// The cables of a scenario are its own.
    #[error(
        "--impair mistreats frames of real links: change a cable of the scenario, as --set medium.loss=1"
    )]
    ImpairOnSim,
    /// A simulation is one of a scenario.
    #[error(
        "--on sim needs a scenario: write --on sim:NAME or sim:FILE.toml, see `linerate sim list`"
    )]
    NoScenario,
    /// Only scenarios have parameters.
    #[error(
        "--set changes parameters of a scenario, there is none --on {0}: leave it out, or measure --on sim:NAME"
    )]
    SetNeedsSim(BenchKind),
    /// The impairments are not known.
    #[error(transparent)]
    Impair(#[from] ImpairmentError),
    /// A diagonal has equal sides.
    #[error("--diagonal needs equal send and receive buffers: give both the same list")]
    DiagonalNeedsEqual,
    /// No IP packet can be so small.
    #[error("an MTU of {0} bytes is too small: the least is {least}", least = limits::LEAST_MTU)]
    Mtu(u16),
    /// A run of no time transfers nothing.
    #[error("--max-seconds is zero: give every run some time, such as 10")]
    NoTime,
    /// More runs than anyone can wait for.
    #[error(transparent)]
    TooManyRuns(#[from] TooManyRuns),
}
