//! The plan of a sweep, which determines every byte that the sweep transfers. A plan is validated
//! when it is created, so every plan is valid.

mod draft;
mod error;
mod kind;
mod limits;
mod scenario;
mod seconds;
mod serial;

pub use draft::Draft;
pub use error::PlanError;
pub use kind::{BenchKind, Direction, Family};

use linerate_link::LinkSpec;
use linerate_link::impair::Impairments;
use linerate_link::serial::{BAUD, LARGEST_MTU, SerialError};
use linerate_units::{Duration, Rate};
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// A validated plan. It has the fields of [`Draft`], which can only be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Draft", into = "Draft")]
pub struct Plan(Draft);

impl Plan {
    /// Minimum MTU in bytes of the link of a linerate host.
    pub const MIN_MTU: u16 = limits::MIN_MTU;

    /// Validates a draft, and sets the defaults that depend on its engine.
    ///
    /// # Errors
    /// The first violated rule, with the remedy.
    pub fn new(mut draft: Draft) -> Result<Self, PlanError> {
        if draft.peer.is_some() && !matches!(draft.on, BenchKind::Kernel | BenchKind::Interface) {
            return Err(PlanError::PeerNeedsKernel(draft.on));
        }
        match (&draft.host, draft.on) {
            (Some(host), BenchKind::Interface) if draft.peer.is_none() => {
                return Err(PlanError::NoPeer(host.link.clone()));
            }
            (None, BenchKind::Interface) => return Err(PlanError::NoHost),
            (Some(_), BenchKind::Interface) | (None, _) => {}
            (Some(_), _) => return Err(PlanError::HostNeedsInterface),
        }
        resolve_offloads(&mut draft)?;
        if draft.on == BenchKind::Sim && draft.scenario.is_none() {
            return Err(PlanError::NoScenario);
        }
        if draft.on != BenchKind::Sim && !draft.set.is_empty() {
            return Err(PlanError::SetNeedsSim(draft.on));
        }
        check_serial(&draft)?;
        if draft.on == BenchKind::Serial {
            draft.header_compression.get_or_insert(true);
        }
        if draft.on.is_device() {
            draft.direction.get_or_insert(Direction::ToKernel);
            draft.family.get_or_insert_default();
        } else if draft.direction.is_some() {
            return Err(PlanError::DirectionNeedsTap(draft.on));
        }
        if draft.family.is_some() && !draft.on.is_device() && draft.on != BenchKind::Sim {
            return Err(PlanError::FamilyNeedsTap(draft.on));
        }
        if draft.profile.is_some() && draft.on == BenchKind::Kernel {
            return Err(PlanError::ProfileNeedsLinerate);
        }
        if let Some(text) = &draft.impair {
            match draft.on {
                BenchKind::Kernel => return Err(PlanError::ImpairNeedsLinerate),
                BenchKind::Sim => return Err(PlanError::ImpairOnSim),
                BenchKind::Stack
                | BenchKind::Tap
                | BenchKind::Tun
                | BenchKind::Serial
                | BenchKind::Interface => {}
            }
            text.parse::<Impairments>()?;
        }
        if draft.diagonal && draft.send_buffers != draft.receive_buffers {
            return Err(PlanError::DiagonalNeedsEqual);
        }
        if draft.mtu < Self::MIN_MTU {
            return Err(PlanError::Mtu(draft.mtu));
        }
        if draft.max_time == Duration::ZERO {
            return Err(PlanError::NoTime);
        }
        if let Some(budget) = draft.budget {
            if draft.on == BenchKind::Sim {
                return Err(PlanError::BudgetOnSim);
            }
            if budget < Duration::from_secs(limits::MIN_BUDGET) {
                return Err(PlanError::ShortBudget(budget));
            }
        }
        draft.drop_useless_baseline();
        draft.design().check()?;
        Ok(Self(draft))
    }

    /// Returns the name of a field whose value differs between this plan and `other`; `None` if the
    /// plans are equal.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<String> {
        let fields = |plan: &Self| match serde_json::to_value(plan) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        // The JSON of a plan omits fields with default values, so a field may exist in only one of
        // the two plans. The fields of both plans are therefore compared.
        let (ours, theirs) = (fields(self), fields(other));
        let differs = |name: &&String| ours.get(*name) != theirs.get(*name);
        // A difference in another field, such as the number of runs, can have the consequence that
        // one plan has no baseline. That other field is then reported, because it is the cause.
        let is_consequence = |name: &&String| *name == "baseline_every";
        ours.keys().chain(theirs.keys()).filter(differs).min_by_key(is_consequence).cloned()
    }

    /// Returns the impairments of the frames of linerate's host; `None` for an unimpaired link.
    #[must_use]
    pub fn impairments(&self) -> Option<Impairments> {
        // Parsing cannot fail here: the text was parsed when the plan was validated.
        self.impair.as_ref().and_then(|text| text.parse().ok())
    }

    /// Returns the IP version of the packets. If linerate's host is on an interface, it is the
    /// version of the host's address. Otherwise it is the version that the plan states, or IPv4 if
    /// it states none.
    #[must_use]
    pub fn ip_version(&self) -> Family {
        match &self.host {
            Some(host) if host.address.address().is_ipv6() => Family::Ipv6,
            Some(_) => Family::Ipv4,
            None => self.family.unwrap_or_default(),
        }
    }

    /// Do the frames of linerate's host begin with an Ethernet header?
    #[must_use]
    pub fn has_link_header(&self) -> bool {
        match (self.on, self.host.as_ref().map(|host| &host.link)) {
            (BenchKind::Tun | BenchKind::Serial, _) => false,
            (_, link) => !matches!(link, Some(LinkSpec::Tun(_) | LinkSpec::Serial(..))),
        }
    }

    /// Returns the bit rate of the link that the plan states; `None` if it states none.
    #[must_use]
    pub fn line_rate(&self) -> Option<Rate> {
        self.line_rate.map(|rate| Rate::from_bits_per_second(rate.get()))
    }
}

/// Checks the rate, the MTU and the header compression of a serial line inside this machine. A
/// serial line to another machine is checked later, when its device is opened.
fn check_serial(draft: &Draft) -> Result<(), PlanError> {
    match (draft.on, draft.baud) {
        (BenchKind::Serial, None) => return Err(PlanError::NoBaud),
        (BenchKind::Serial, Some(baud)) if !BAUD.contains(&baud.get()) => {
            return Err(SerialError::BaudRange(baud.get()).into());
        }
        (BenchKind::Serial, Some(_)) if usize::from(draft.mtu) > LARGEST_MTU => {
            return Err(SerialError::Mtu(draft.mtu.into()).into());
        }
        (BenchKind::Serial, Some(_)) => {}
        (kind, Some(_)) => return Err(PlanError::BaudNeedsSerial(kind)),
        (_, None) if draft.header_compression.is_some() => {
            return Err(PlanError::CompressionNeedsSerial(draft.on));
        }
        (_, None) => {}
    }
    Ok(())
}

/// Sets the default of `offloads` if the link of the plan supports offloads. On other links,
/// returns an error if the draft has a value. The default is on, except on a TAP or TUN device that
/// the bench creates. There, GSO frames would be larger than the packets of the plan.
fn resolve_offloads(draft: &mut Draft) -> Result<(), PlanError> {
    let link = draft.host.as_ref().map(|host| &host.link);
    match (draft.on, link) {
        (BenchKind::Tap | BenchKind::Tun, _) => draft.offloads.get_or_insert(false),
        (BenchKind::Interface, Some(LinkSpec::Tap(_) | LinkSpec::Tun(_) | LinkSpec::Packet(_))) => {
            draft.offloads.get_or_insert(true)
        }
        _ if draft.offloads.is_none() => return Ok(()),
        (_, Some(link)) => return Err(PlanError::NoOffloads(link.to_string())),
        (kind, None) => return Err(PlanError::NoOffloads(kind.to_string())),
    };
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_ends::{OwnHost, Peer};
    use linerate_evidence::{Design, TooManyRuns};
    use std::num::NonZeroU32;

    fn refused(change: impl FnOnce(&mut Draft)) -> PlanError {
        let mut draft = Draft::of_1988(BenchKind::Stack);
        change(&mut draft);
        Plan::new(draft).unwrap_err()
    }

    #[test]
    fn a_plan_survives_a_round_trip_through_a_file() {
        let mut draft = Draft::of_1988(BenchKind::Tap);
        draft.max_time = Duration::from_millis(100);
        draft.budget = Some(Duration::from_secs(60));
        draft.receive_buffers = "4KiB..64KiB/4KiB".parse().unwrap();
        let plan = Plan::new(draft).unwrap();
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }

    #[test]
    fn an_invalid_plan_in_a_file_is_refused() {
        let text = serde_json::to_string(&Draft::of_1988(BenchKind::Stack)).unwrap();
        for (right, wrong) in [("\"mtu\":1500", "\"mtu\":10"), ("\"repeat\":32", "\"repeat\":0")] {
            assert!(text.contains(right));
            serde_json::from_str::<Plan>(&text.replace(right, wrong)).unwrap_err();
        }
    }

    #[test]
    fn parts_that_contradict_each_other_are_refused() {
        let peer = "192.0.2.1".parse::<Peer>().unwrap();
        assert_eq!(
            refused(|draft| draft.peer = Some(peer)),
            PlanError::PeerNeedsKernel(BenchKind::Stack)
        );
        assert_eq!(
            refused(|draft| draft.direction = Some(Direction::ToKernel)),
            PlanError::DirectionNeedsTap(BenchKind::Stack)
        );
        assert_eq!(
            refused(|draft| draft.family = Some(Family::Ipv6)),
            PlanError::FamilyNeedsTap(BenchKind::Stack)
        );
        assert_eq!(
            refused(|draft| {
                draft.diagonal = true;
                draft.send_buffers = "1..4".parse().unwrap();
            }),
            PlanError::DiagonalNeedsEqual
        );
        assert_eq!(refused(|draft| draft.on = BenchKind::Sim), PlanError::NoScenario);
        let budget = Duration::from_secs(4);
        let short = refused(|draft| draft.budget = Some(budget));
        assert_eq!(short, PlanError::ShortBudget(budget));
        assert_eq!(refused(|draft| draft.mtu = 87), PlanError::Mtu(87));
        assert_eq!(refused(|draft| draft.max_time = Duration::ZERO), PlanError::NoTime);
        assert_eq!(
            refused(|draft| draft.repeat = NonZeroU32::MAX),
            PlanError::TooManyRuns(TooManyRuns(1_241_245_548_255))
        );
    }

    #[test]
    fn an_interface_needs_a_peer_and_has_the_offloads_of_its_link() {
        let host = |link: &str| {
            let address = "10.0.0.7/24".parse().unwrap();
            Some(OwnHost::new(link.parse().unwrap(), address))
        };
        let to = |link: &str| Draft {
            host: host(link),
            peer: Some("192.0.2.1".parse().unwrap()),
            ..Draft::of_1988(BenchKind::Interface)
        };
        let plan = Plan::new(to("packet:eth1")).unwrap();
        assert_eq!(plan.offloads, Some(true));
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
        assert_eq!(Plan::new(to("xdp:eth1")).unwrap().offloads, None);
        let refused = |draft| Plan::new(draft).unwrap_err();
        let offloads = Some(false);
        let error = refused(Draft { offloads, ..to("xdp:eth1:2") });
        assert_eq!(error, PlanError::NoOffloads("xdp:eth1:2".to_owned()));
        let error = refused(Draft { offloads, ..Draft::of_1988(BenchKind::Kernel) });
        assert_eq!(error, PlanError::NoOffloads("kernel".to_owned()));
        assert!(matches!(refused(Draft { peer: None, ..to("packet:eth1") }), PlanError::NoPeer(_)));
        let error = refused(Draft { host: host("packet:eth1"), ..Draft::of_1988(BenchKind::Tap) });
        assert_eq!(error, PlanError::HostNeedsInterface);
        let error = refused(Draft { host: None, ..to("packet:eth1") });
        assert_eq!(error, PlanError::NoHost);
        assert_eq!(Plan::new(Draft::of_1988(BenchKind::Tap)).unwrap().offloads, Some(false));
    }

    #[test]
    fn limits_are_inclusive() {
        let mut draft = Draft { mtu: Plan::MIN_MTU, ..Draft::of_1988(BenchKind::Stack) };
        draft.send_buffers = "1..1000".parse().unwrap();
        draft.receive_buffers = "1..1000".parse().unwrap();
        draft.repeat = NonZeroU32::MIN;
        draft.baseline_every = None;
        assert_eq!(Plan::new(draft).unwrap().design().run_count(), Design::MOST_RUNS);
    }

    #[test]
    fn a_plan_of_few_runs_has_no_baseline() {
        let mut draft = Draft::of_1988(BenchKind::Stack);
        draft.diagonal = true;
        draft.repeat = 3.try_into().unwrap();
        let baseline = |draft: &Draft| Plan::new(draft.clone()).unwrap().baseline_every;
        assert_eq!(baseline(&draft).map(NonZeroU32::get), Some(8));
        draft.repeat = 2.try_into().unwrap();
        assert_eq!(baseline(&draft), None);
    }

    #[test]
    fn a_written_plan_has_the_names_that_were_promised() {
        let draft = Draft {
            send_buffers: "1..2".parse().unwrap(),
            receive_buffers: "1..2".parse().unwrap(),
            ..Draft::of_1988(BenchKind::Stack)
        };
        insta::assert_snapshot!(serde_json::to_string_pretty(&Plan::new(draft).unwrap()).unwrap());
    }

    #[test]
    fn the_difference_of_two_plans_is_a_field() {
        let plan = Plan::new(Draft::of_1988(BenchKind::Stack)).unwrap();
        let other = Plan::new(Draft { mtu: 576, ..plan.clone().into() }).unwrap();
        assert_eq!(plan.difference(&other), Some("mtu".to_owned()));
        assert_eq!(plan.difference(&plan), None);
    }

    #[test]
    fn a_field_that_one_plan_leaves_out_of_its_file_is_a_difference() {
        const MINUTE: Option<Duration> = Some(Duration::from_secs(60));
        let with = |on, change: fn(&mut Draft)| {
            let mut draft = Draft::of_1988(on);
            (draft.scenario, draft.baud) = match on {
                BenchKind::Sim => (Some("a".to_owned()), None),
                BenchKind::Serial => (None, NonZeroU32::new(2_400)),
                _ => (None, None),
            };
            change(&mut draft);
            Plan::new(draft).unwrap()
        };
        let changes: [(_, _, fn(&mut Draft)); 8] = [
            (BenchKind::Tap, Some("family"), |draft| draft.family = Some(Family::Ipv6)),
            (BenchKind::Sim, Some("family"), |draft| draft.family = Some(Family::Ipv4)),
            (BenchKind::Sim, Some("set"), |draft| draft.set.push("b=1".to_owned())),
            (BenchKind::Kernel, Some("blocks"), |draft| draft.blocks = false),
            (BenchKind::Kernel, Some("budget_seconds"), |draft| draft.budget = MINUTE),
            // A plan with a time budget has no baseline, so two fields differ. The budget is
            // reported, because it is the cause.
            (BenchKind::Stack, Some("budget_seconds"), |draft| draft.budget = MINUTE),
            // The changed values are the defaults, so the two plans are equal.
            (BenchKind::Tap, None, |draft| draft.family = Some(Family::Ipv4)),
            (BenchKind::Serial, None, |draft| draft.header_compression = Some(true)),
        ];
        for (on, field, change) in changes {
            let (plan, other) = (with(on, |_| ()), with(on, change));
            assert_eq!(plan.difference(&other).as_deref(), field, "{on}");
            assert_eq!(other.difference(&plan).as_deref(), field, "{on}");
        }
    }
}
