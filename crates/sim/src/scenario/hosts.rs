//! Reads the hosts of a scenario.

use super::media::{Attachment, MediumPlan};
use crate::machine::MachineParameters;
use crate::nic::NicParameters;
use crate::parameter::{ParameterError, Section, Settings};
use linerate_stack::SMALLEST_MTU;
use linerate_tcp::{AckRule, Config, EcnRule, Profile};
use std::net::IpAddr;

/// Upper limit of the number of hosts. MAC and IPv4 addresses have two bytes for the number of a
/// NIC, and NICs of routers need some of these numbers, too.
pub(super) const MOST_HOSTS: u64 = 10_000;
/// Upper limit of the configured initial window, in segments.
const MOST_SEGMENTS: u64 = 65_535;

/// A host of a scenario: its machine, its NIC, its TCP configuration and its place on a medium.
#[derive(Clone, Debug)]
pub(super) struct HostPlan {
    pub(super) name: String,
    /// Name of the host in the scenario. Hosts of a group have the name of the group.
    pub(super) group: String,
    pub(super) machine: MachineParameters,
    pub(super) nic: NicParameters,
    pub(super) tcp: Config,
    /// Whether the IP identification grows by one with each packet of the host.
    pub(super) count_packets: bool,
    /// Largest IP packet that the host sends, in bytes.
    pub(super) mtu: usize,
    pub(super) attachment: Attachment,
    /// The address of the host; `None` for the default address, which is computed from the number
    /// of its NIC.
    pub(super) address: Option<IpAddr>,
}

impl HostPlan {
    /// Reads a host, or a group of hosts that differ only in their position. On a bus, each host of
    /// a group is `step` metres farther from the end of the cable than the previous one.
    pub(super) fn read_group(
        settings: &Settings,
        name: &str,
        media: &[MediumPlan],
    ) -> Result<Vec<Self>, ParameterError> {
        let section = settings.section(format!("hosts.{name}"));
        if !settings.names(&format!("hosts.{name}.nics")).is_empty() {
            return Err(ParameterError::Topology(format!(
                "{name} has several NICs and is no router: make it [routers.{name}], or remove \
                [hosts.{name}.nics]"
            )));
        }
        let one = Self::read(&section, name, media)?;
        if !section.has("count") {
            return Ok(vec![one]);
        }
        let (count, step) =
            (section.count_within("count", 1..=MOST_HOSTS)?, section.count("step")?);
        let like = |number| Self {
            name: format!("{name}-{}", number + 1),
            attachment: Attachment {
                position: one.attachment.position.saturating_add(step.saturating_mul(number)),
                ..one.attachment
            },
            ..one.clone()
        };
        Ok((0..count).map(like).collect())
    }

    fn read(
        section: &Section<'_>,
        name: &str,
        media: &[MediumPlan],
    ) -> Result<Self, ParameterError> {
        for part in ["machine", "nic", "tcp"] {
            section.word(part)?;
        }
        let tcp = section.below("tcp");
        let nic = NicParameters::read(&section.below("nic"))?;
        let machine = MachineParameters::read(&section.below("machine"))?;
        if nic.queues > machine.processors {
            return Err(ParameterError::Topology(format!(
                "the NIC of {name} has {} queues, and its machine {} processors to serve them: \
                give it {0} processors, or {1} queues",
                nic.queues, machine.processors
            )));
        }
        let machine = match nic.clocks_per_byte {
            None => machine,
            Some(clocks) => machine.with_copy(clocks).ok_or_else(|| {
                ParameterError::Topology(format!(
                    "the NIC of {name} has no DMA and needs an ISA bus: give it a machine with \
                     one, \
                    as 486-isa"
                ))
            })?,
        };
        Ok(Self {
            name: name.to_owned(),
            group: name.to_owned(),
            machine,
            nic,
            mtu: read_mtu(&tcp)?,
            tcp: read_tcp(&tcp)?,
            count_packets: tcp.has("identification") && tcp.switch("identification")?,
            attachment: Attachment::read(section, name, media)?,
            address: read_address(section)?,
        })
    }
}

/// Reads the size of the largest IP packet. It must be at least the minimum MTU of a host.
pub(super) fn read_mtu(section: &Section<'_>) -> Result<usize, ParameterError> {
    section.size_within("mtu", SMALLEST_MTU as u64..=65_535)
}

/// Reads a TCP configuration: a profile, and the values that the scenario changes.
fn read_tcp(section: &Section<'_>) -> Result<Config, ParameterError> {
    section.word("title")?;
    let name = section.word("profile")?;
    let profile = name
        .parse::<Profile>()
        .map_err(|error| section.wrong("profile", format!("is not a TCP profile: {error}")))?;
    let mut config = profile.config();
    config.initial_window =
        u32::try_from(section.count_within("initial_window", 1..=MOST_SEGMENTS)?)
            .unwrap_or(u32::MAX);
    config.delayed_ack_tick = section.span("delayed_ack_tick")?.into();
    config.slow_tick = section.span("slow_tick")?.into();
    if section.has("ecn") && section.switch("ecn")? {
        config.ecn = EcnRule::Request;
    }
    let percent = section.percent("window_update")?;
    if let AckRule::Bsd { window_update_percent } = &mut config.acks {
        *window_update_percent = percent;
    }
    Ok(config)
}

/// Reads the address of a NIC, if the file gives one.
pub(super) fn read_address(section: &Section<'_>) -> Result<Option<IpAddr>, ParameterError> {
    if !section.has("address") {
        return Ok(None);
    }
    let word = section.word("address")?;
    word.parse().map(Some).map_err(|_| {
        ParameterError::Topology(format!(
            "`{word}` is not an IP address: write one, as 10.0.0.7 or fd00::7"
        ))
    })
}
