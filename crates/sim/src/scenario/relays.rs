//! The routers and bridges of a scenario, as its file says them.

use super::blueprint::read_mtu;
use super::media::{MediumPlan, Seat};
use crate::medium::QueueParameters;
use crate::nic::NicParameters;
use crate::parameter::{ParameterError, Section, Settings};
use crate::relay::RelayParameters;
use std::net::Ipv4Addr;
use std::num::NonZeroU16;

/// A machine with several cards.
#[derive(Clone, Debug)]
pub(super) struct RelayPlan {
    pub(super) name: String,
    pub(super) kind: RelayKind,
    pub(super) parameters: RelayParameters,
    pub(super) cards: Vec<RelayCardPlan>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelayKind {
    Router,
    Bridge,
}

/// One of its cards.
#[derive(Clone, Debug)]
pub(super) struct RelayCardPlan {
    pub(super) name: String,
    pub(super) nic: NicParameters,
    pub(super) seat: Seat,
    /// What may wait for it.
    pub(super) queue: QueueParameters,
    /// Of a router: the largest IP packet, and its address if that is not the next one.
    pub(super) mtu: usize,
    pub(super) address: Option<Ipv4Addr>,
}

impl RelayPlan {
    /// All routers, then all bridges.
    pub(super) fn read_all(
        settings: &Settings,
        media: &[MediumPlan],
    ) -> Result<Vec<Self>, ParameterError> {
        let mut plans = Vec::new();
        for (place, kind) in [("routers", RelayKind::Router), ("bridges", RelayKind::Bridge)] {
            for name in settings.names(place) {
                plans.push(Self::read(settings, place, &name, kind, media)?);
            }
        }
        Ok(plans)
    }

    fn read(
        settings: &Settings,
        place: &str,
        name: &str,
        kind: RelayKind,
        media: &[MediumPlan],
    ) -> Result<Self, ParameterError> {
        let prefix = format!("{place}.{name}");
        let section = settings.section(prefix.as_str());
        let mut cards = Vec::new();
        for card in settings.names(&format!("{prefix}.cards")) {
            let section = settings.section(format!("{prefix}.cards.{card}"));
            cards.push(RelayCardPlan::read(&section, name, &card, kind, media)?);
        }
        if cards.len() < 2 {
            return Err(ParameterError::Topology(format!(
                "{name} joins nothing: give it two cards at least, [{prefix}.cards.NAME] each"
            )));
        }
        let parameters = RelayParameters::read(&section)?;
        let queues = cards
            .iter()
            .map(|card| card.nic.queues)
            .fold(parameters.machine.processors, NonZeroU16::max);
        if queues > NonZeroU16::MIN {
            return Err(ParameterError::Topology(format!(
                "{name} has {queues} processors or queues: give a router or a bridge one, and cards with one"
            )));
        }
        Ok(Self { name: name.to_owned(), kind, parameters, cards })
    }
}

impl RelayCardPlan {
    fn read(
        section: &Section<'_>,
        relay: &str,
        name: &str,
        kind: RelayKind,
        media: &[MediumPlan],
    ) -> Result<Self, ParameterError> {
        section.word("nic")?;
        section.word("queue")?;
        let nic = NicParameters::read(&section.below("nic"))?;
        if nic.clocks_per_byte.is_some() {
            return Err(ParameterError::Topology(format!(
                "the card {name} of {relay} has no DMA: give a router or a bridge cards with it"
            )));
        }
        let (mtu, address) = match kind {
            RelayKind::Router => (read_mtu(section)?, read_address(section)?),
            RelayKind::Bridge => (0, None),
        };
        Ok(Self {
            name: name.to_owned(),
            nic,
            seat: Seat::read(section, relay, media)?,
            queue: QueueParameters::read(&section.below("queue"))?,
            mtu,
            address,
        })
    }
}

/// The address that a card is to have, if the file says one.
pub(super) fn read_address(section: &Section<'_>) -> Result<Option<Ipv4Addr>, ParameterError> {
    if !section.has("address") {
        return Ok(None);
    }
    let word = section.word("address")?;
    word.parse().map(Some).map_err(|_| {
        ParameterError::Topology(format!("`{word}` is no address: write four numbers, as 10.0.0.7"))
    })
}
