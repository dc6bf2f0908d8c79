//! Everything that decides the bytes of an experiment, parsed once and from then on right.

use crate::buffers::BufferList;
use linerate_link::impair::{ImpairmentError, Impairments};
use linerate_units::{Duration, Rate};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv6Addr;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Deref;
use std::str::FromStr;
use thiserror::Error;

/// What carries the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchKind {
    /// linerate's TCP at both ends, over an in-process link.
    Stack,
    /// linerate's TCP against the kernel's, across a TAP device.
    Tap,
    /// The kernel's TCP at both ends.
    Kernel,
}

impl fmt::Display for BenchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stack => "stack",
            Self::Tap => "tap",
            Self::Kernel => "kernel",
        })
    }
}

/// Which way the bytes go when the two ends differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// linerate sends, the kernel receives.
    ToKernel,
    /// The kernel sends, linerate receives.
    FromKernel,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ToKernel => "to-kernel",
            Self::FromKernel => "from-kernel",
        })
    }
}

/// The machine at the other end of a network, and the port its `linerate sink` listens on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// A name or an address; one of IPv6 without its brackets.
    pub host: String,
    /// The port of the control connection.
    pub port: u16,
}

impl Peer {
    /// Where a sink listens unless it is told otherwise.
    pub const DEFAULT_PORT: u16 = 1988;
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// `HOST` or `HOST:PORT`; an address of IPv6 stands in brackets if a port follows.
impl FromStr for Peer {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let wrong = || PlanError::NotAPeer(text.to_owned());
        let (host, port) = host_and_port(text).ok_or_else(wrong)?;
        let port = match port {
            Some(port) => port.parse().ok().filter(|&port| port != 0).ok_or_else(wrong)?,
            None => Self::DEFAULT_PORT,
        };
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(wrong());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

/// The two parts of `HOST:PORT`, `[HOST]:PORT` or `HOST`; none if the brackets are in the wrong place.
fn host_and_port(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(inside) = text.strip_prefix('[') {
        let (host, rest) = inside.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        return if rest.is_empty() {
            Some((host, None))
        } else {
            Some((host, Some(rest.strip_prefix(':')?)))
        };
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        return Some((text, None));
    }
    Some(text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))))
}

/// A plan as somebody asks for it. Each field is right by itself; [`Plan::new`] checks that they fit
/// together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// What carries the bytes.
    pub on: BenchKind,
    /// The machine at the other end; only the kernel's TCP reaches one.
    pub peer: Option<Peer>,
    /// Which way the bytes go; only across TAP do the ends differ.
    pub direction: Option<Direction>,
    /// The sender's socket buffers.
    pub send_buffers: BufferList,
    /// The receiver's socket buffers.
    pub receive_buffers: BufferList,
    /// Only the cells where both buffers are equal?
    pub diagonal: bool,
    /// Runs of each cell.
    pub repeat: NonZeroU32,
    /// Bytes that a run transfers.
    pub bytes: NonZeroU64,
    /// A run that takes longer is cut short.
    #[serde(rename = "max_seconds", with = "seconds")]
    pub max_time: Duration,
    /// Decides the order of the runs, and in each run everything that is drawn.
    pub seed: u64,
    /// Bytes that the source offers in one write.
    pub write_size: NonZeroU32,
    /// Bytes that the sink asks for in one read.
    pub read_size: NonZeroU32,
    /// Largest IP packet, in bytes.
    pub mtu: u16,
    /// Congestion control of the sender; the bench's own default if there is none.
    pub congestion: Option<String>,
    /// The rules that linerate's TCP keeps to (`modern`, `bsd_tahoe` …).
    pub profile: Option<String>,
    /// What is done to the frames of linerate's host (`loss=1%,delay=10ms`).
    pub impair: Option<String>,
    /// The bit rate of the link, in bits per second, where its driver does not tell or is wrong.
    pub line_rate: Option<NonZeroU64>,
    /// Compare what arrives with what was sent, byte for byte?
    pub verify: bool,
}

impl Draft {
    /// The experiment of 1988 on this bench: every pair of buffers from 1 to 17 packets, four runs
    /// of 8 MiB each, in random order.
    ///
    /// # Panics
    /// Never: the constants are right.
    #[must_use]
    pub fn of_1988(on: BenchKind) -> Self {
        let one_to_seventeen = BufferList::up_to(const { NonZeroU32::new(17).unwrap() });
        Self {
            on,
            peer: None,
            direction: None,
            send_buffers: one_to_seventeen.clone(),
            receive_buffers: one_to_seventeen,
            diagonal: false,
            repeat: const { NonZeroU32::new(4).unwrap() },
            bytes: const { NonZeroU64::new(8 << 20).unwrap() },
            max_time: Duration::from_secs(10),
            seed: 1988,
            write_size: const { NonZeroU32::new(64 << 10).unwrap() },
            read_size: const { NonZeroU32::new(64 << 10).unwrap() },
            mtu: 1_500,
            congestion: None,
            profile: None,
            impair: None,
            line_rate: None,
            verify: false,
        }
    }
}

/// A plan that can be carried out. Its fields are those of [`Draft`], to read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Draft", into = "Draft")]
pub struct Plan(Draft);

impl Plan {
    /// More runs than this nobody waits for.
    pub const MOST_RUNS: u64 = 1_000_000;
    /// The smallest packet that every host must take (RFC 791) is the smallest MTU.
    pub const LEAST_MTU: u16 = 68;

    /// The plan, if its parts fit together.
    ///
    /// # Errors
    /// The first rule that is broken, with what to do about it.
    pub fn new(mut draft: Draft) -> Result<Self, PlanError> {
        if draft.peer.is_some() && draft.on != BenchKind::Kernel {
            return Err(PlanError::PeerNeedsKernel(draft.on));
        }
        if draft.on == BenchKind::Tap {
            draft.direction.get_or_insert(Direction::ToKernel);
        } else if draft.direction.is_some() {
            return Err(PlanError::DirectionNeedsTap(draft.on));
        }
        if draft.profile.is_some() && draft.on == BenchKind::Kernel {
            return Err(PlanError::ProfileNeedsOurs);
        }
        if let Some(text) = &draft.impair {
            if draft.on == BenchKind::Kernel {
                return Err(PlanError::ImpairNeedsOurs);
            }
            text.parse::<Impairments>()?;
        }
        if draft.diagonal && draft.send_buffers != draft.receive_buffers {
            return Err(PlanError::DiagonalNeedsEqual);
        }
        if draft.mtu < Self::LEAST_MTU {
            return Err(PlanError::Mtu(draft.mtu));
        }
        if draft.max_time == Duration::ZERO {
            return Err(PlanError::NoTime);
        }
        let plan = Self(draft);
        match plan.runs() {
            runs if runs > Self::MOST_RUNS => Err(PlanError::TooManyRuns(runs)),
            _ => Ok(plan),
        }
    }

    /// Cells of the experiment: pairs of a send buffer and a receive buffer.
    #[must_use]
    pub fn cells(&self) -> u64 {
        let (sends, receives) = (self.send_buffers.sizes().len(), self.receive_buffers.sizes().len());
        let cells = if self.diagonal { sends } else { sends * receives };
        cells as u64
    }

    /// Runs of the experiment.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.cells() * u64::from(self.repeat.get())
    }

    /// The first field, by the name it has in a file, in which `other` differs.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<String> {
        let fields = |plan: &Self| match serde_json::to_value(plan) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let theirs = fields(other);
        fields(self).into_iter().find(|(name, value)| theirs.get(name) != Some(value)).map(|(name, _)| name)
    }

    /// What is done to the frames of linerate's host, if anything is.
    #[must_use]
    pub fn impairments(&self) -> Option<Impairments> {
        // The text was found right when the plan was made.
        self.impair.as_ref().and_then(|text| text.parse().ok())
    }

    /// The line rate that the plan gives.
    #[must_use]
    pub fn line_rate(&self) -> Option<Rate> {
        self.line_rate.map(|rate| Rate::from_bits_per_second(rate.get()))
    }
}

impl Deref for Plan {
    type Target = Draft;
    fn deref(&self) -> &Draft {
        &self.0
    }
}

impl TryFrom<Draft> for Plan {
    type Error = PlanError;
    fn try_from(draft: Draft) -> Result<Self, PlanError> {
        Self::new(draft)
    }
}

impl From<Plan> for Draft {
    fn from(plan: Plan) -> Self {
        plan.0
    }
}

/// Why a plan cannot be carried out. The person who asked for it can mend it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The text names no machine.
    #[error("`{0}` is no peer: write HOST or HOST:PORT, with a port from 1 to 65535")]
    NotAPeer(String),
    /// Only the kernel's TCP reaches other machines.
    #[error("a HOST cannot be reached --on {0}: leave HOST out, or measure --on kernel")]
    PeerNeedsKernel(BenchKind),
    /// Both ends are the same, so there is no direction to choose.
    #[error("--direction has no meaning --on {0}: leave it out, or measure --on tap")]
    DirectionNeedsTap(BenchKind),
    /// A profile is a set of rules of linerate's TCP.
    #[error("--profile chooses rules of linerate's TCP, there is none --on kernel: leave it out")]
    ProfileNeedsOurs,
    /// Only frames of linerate's own are in reach.
    #[error("--impair mistreats frames of linerate's TCP, there are none --on kernel: leave it out")]
    ImpairNeedsOurs,
    /// The impairments are not known.
    #[error(transparent)]
    Impair(#[from] ImpairmentError),
    /// A diagonal has equal sides.
    #[error("--diagonal needs equal send and receive buffers: give both the same list")]
    DiagonalNeedsEqual,
    /// No IP packet can be so small.
    #[error("an MTU of {0} bytes is too small: the least is {least}", least = Plan::LEAST_MTU)]
    Mtu(u16),
    /// A run of no time transfers nothing.
    #[error("--max-seconds is zero: give every run some time, such as 10")]
    NoTime,
    /// More runs than anyone can wait for.
    #[error("{0} runs are too many, the most are {most}: take fewer buffers or a smaller --repeat", most = Plan::MOST_RUNS)]
    TooManyRuns(u64),
}

/// Spans of time as seconds, the unit of the files.
mod seconds {
    use linerate_units::Duration;
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(span.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        let span = std::time::Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)?;
        Ok(span.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Draft)) -> PlanError {
        let mut draft = Draft::of_1988(BenchKind::Stack);
        change(&mut draft);
        Plan::new(draft).unwrap_err()
    }

    #[test]
    fn the_experiment_of_1988_has_1156_runs_of_289_cells() {
        let plan = Plan::new(Draft::of_1988(BenchKind::Stack)).unwrap();
        assert_eq!((plan.cells(), plan.runs()), (289, 1_156));
    }

    #[test]
    fn the_diagonal_has_one_cell_for_each_buffer() {
        let plan = Plan::new(Draft { diagonal: true, ..Draft::of_1988(BenchKind::Stack) }).unwrap();
        assert_eq!(plan.cells(), 17);
    }

    #[test]
    fn a_plan_is_read_back_as_it_was_written() {
        let mut draft = Draft::of_1988(BenchKind::Tap);
        draft.max_time = Duration::from_millis(100);
        draft.receive_buffers = "4KiB..64KiB/4KiB".parse().unwrap();
        let plan = Plan::new(draft).unwrap();
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }

    #[test]
    fn a_written_plan_that_breaks_a_rule_is_not_read() {
        let text = serde_json::to_string(&Draft::of_1988(BenchKind::Stack)).unwrap();
        for (right, wrong) in [("\"mtu\":1500", "\"mtu\":10"), ("\"repeat\":4", "\"repeat\":0")] {
            assert!(text.contains(right));
            serde_json::from_str::<Plan>(&text.replace(right, wrong)).unwrap_err();
        }
    }

    #[test]
    fn parts_that_do_not_fit_together_are_refused() {
        let peer = "192.0.2.1".parse::<Peer>().unwrap();
        assert_eq!(refused(|draft| draft.peer = Some(peer)), PlanError::PeerNeedsKernel(BenchKind::Stack));
        assert_eq!(
            refused(|draft| draft.direction = Some(Direction::ToKernel)),
            PlanError::DirectionNeedsTap(BenchKind::Stack)
        );
        assert_eq!(
            refused(|draft| {
                draft.diagonal = true;
                draft.send_buffers = "1..4".parse().unwrap();
            }),
            PlanError::DiagonalNeedsEqual
        );
        assert_eq!(refused(|draft| draft.mtu = 67), PlanError::Mtu(67));
        assert_eq!(refused(|draft| draft.max_time = Duration::ZERO), PlanError::NoTime);
        assert_eq!(
            refused(|draft| draft.repeat = NonZeroU32::MAX),
            PlanError::TooManyRuns(1_241_245_548_255)
        );
    }

    #[test]
    fn two_plans_differ_by_a_field() {
        let plan = Plan::new(Draft::of_1988(BenchKind::Stack)).unwrap();
        let other = Plan::new(Draft { mtu: 576, ..plan.clone().into() }).unwrap();
        assert_eq!(plan.difference(&other), Some("mtu".to_owned()));
        assert_eq!(plan.difference(&plan), None);
    }

    #[test]
    fn a_peer_is_a_host_and_perhaps_a_port() {
        assert_eq!("sun.example".parse(), Ok(Peer { host: "sun.example".into(), port: 1988 }));
        assert_eq!("192.0.2.1:7000".parse(), Ok(Peer { host: "192.0.2.1".into(), port: 7000 }));
        for (text, shown) in [("::1", "[::1]:1988"), ("[::1]", "[::1]:1988"), ("[fe80::7]:9", "[fe80::7]:9")]
        {
            assert_eq!(text.parse::<Peer>().unwrap().to_string(), shown);
        }
        for text in ["", ":7", "a:", "a:0", "a:70000", "a b", "[::1]9", "[a]:9", "[::1]:", "::1:x"] {
            assert_eq!(text.parse::<Peer>(), Err(PlanError::NotAPeer(text.into())));
        }
    }
}
