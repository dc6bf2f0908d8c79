//! Reads the routers and bridges of a scenario.

use super::hosts::{read_address, read_mtu};
use super::media::{Attachment, MediumPlan};
use crate::medium::QueueParameters;
use crate::nic::NicParameters;
use crate::parameter::{ParameterError, Section, Settings};
use crate::relay::RelayParameters;
use std::net::IpAddr;
use std::num::NonZeroU16;

/// A router or a bridge of a scenario.
#[derive(Clone, Debug)]
pub(super) struct RelayPlan {
    pub(super) name: String,
    pub(super) kind: RelayKind,
    pub(super) parameters: RelayParameters,
    pub(super) nics: Vec<RelayNicPlan>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelayKind {
    Router,
    Bridge,
}

/// A NIC of a router or a bridge, and its place on a medium.
#[derive(Clone, Debug)]
pub(super) struct RelayNicPlan {
    pub(super) name: String,
    pub(super) nic: NicParameters,
    pub(super) attachment: Attachment,
    /// Parameters of the queue in front of the NIC.
    pub(super) queue: QueueParameters,
    /// Size of the largest IP packet that a router can send through this NIC, in bytes. Zero for a
    /// NIC of a bridge, which does not look at packets.
    pub(super) mtu: usize,
    pub(super) address: Option<IpAddr>,
}

impl RelayPlan {
    /// Reads all routers, then all bridges.
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
        let mut nics = Vec::new();
        for nic in settings.names(&format!("{prefix}.nics")) {
            let section = settings.section(format!("{prefix}.nics.{nic}"));
            nics.push(RelayNicPlan::read(&section, name, &nic, kind, media)?);
        }
        if nics.len() < 2 {
            return Err(ParameterError::Topology(format!(
                "{name} joins nothing: give it at least two NICs, each in [{prefix}.nics.NAME]"
            )));
        }
        let parameters = RelayParameters::read(&section)?;
        let queues = nics
            .iter()
            .map(|nic| nic.nic.queues)
            .fold(parameters.machine.processors, NonZeroU16::max);
        if queues > NonZeroU16::MIN {
            return Err(ParameterError::Topology(format!(
                "{name} has {queues} processors or queues: give a router or a bridge one, and NICs \
                with one"
            )));
        }
        Ok(Self { name: name.to_owned(), kind, parameters, nics })
    }
}

impl RelayNicPlan {
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
                "the NIC {name} of {relay} has no DMA: give a router or a bridge NICs with it"
            )));
        }
        let (mtu, address) = match kind {
            RelayKind::Router => (read_mtu(section)?, read_address(section)?),
            RelayKind::Bridge => (0, None),
        };
        Ok(Self {
            name: name.to_owned(),
            nic,
            attachment: Attachment::read(section, relay, media)?,
            queue: QueueParameters::read(&section.below("queue"))?,
            mtu,
            address,
        })
    }
}
