//! A blueprint: a scenario with all numbers read and checked, which can be run many times.

use super::media::{Attachment, MediumPlan};
use super::programs::{DialoguePlan, GeneratorPlan, ProgramPlans, TransferPlan};
use super::relays::{RelayKind, RelayPlan, read_address};
use super::topology::Topology;
use crate::machine::MachineParameters;
use crate::nic::NicParameters;
use crate::parameter::{ParameterError, Section, Settings};
use crate::published::Published;
use linerate_stack::{Medium as Framing, SMALLEST_MTU};
use linerate_tcp::{AckRule, Config, EcnRule, Profile};
use linerate_units::{Rate, Span};
use std::net::Ipv4Addr;

/// Upper limit of the hosts: the number of a host is two bytes of its addresses, and the NICs of
/// routers need some.
const MOST_HOSTS: u64 = 10_000;
/// Upper limit of the initial window, in segments.
const MOST_SEGMENTS: u64 = 65_535;

/// A scenario with all numbers read and checked.
#[derive(Clone, Debug)]
pub struct Blueprint {
    pub(super) media: Vec<MediumPlan>,
    pub(super) hosts: Vec<HostPlan>,
    pub(super) relays: Vec<RelayPlan>,
    pub(super) topology: Topology,
    pub(super) transfers: Vec<TransferPlan>,
    pub(super) dialogues: Vec<DialoguePlan>,
    pub(super) generators: Vec<GeneratorPlan>,
    published: Vec<Published>,
    /// Upper limit of the simulated time.
    pub(super) limit: Span,
}

#[derive(Clone, Debug)]
pub(super) struct HostPlan {
    pub(super) name: String,
    /// Name of the host, or of its group, in the scenario.
    pub(super) group: String,
    pub(super) machine: MachineParameters,
    pub(super) nic: NicParameters,
    pub(super) tcp: Config,
    /// Whether its IP identification counts packets.
    pub(super) count_packets: bool,
    /// Largest IP packet.
    pub(super) mtu: usize,
    pub(super) attachment: Attachment,
    /// Its address, or `None` for the next one.
    pub(super) address: Option<Ipv4Addr>,
}

/// The parameters of a transfer in the scenario.
#[derive(Clone, Copy, Debug)]
pub struct TransferFacts<'a> {
    /// Its name.
    pub name: &'a str,
    /// TCP configuration of the sending host.
    pub config: Config,
    /// Largest IP packet of that host.
    pub mtu: usize,
    /// Bytes of a write.
    pub write_size: usize,
    /// Buffer size of a read.
    pub read_size: usize,
}

/// Parameters of a run. `None` keeps the value of the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TransferOptions {
    /// Bytes to transfer.
    pub bytes: Option<u64>,
    /// Send buffer in bytes.
    pub send_buffer: Option<usize>,
    /// Receive buffer in bytes.
    pub receive_buffer: Option<usize>,
    /// Bytes of a write.
    pub write_size: Option<usize>,
    /// Buffer size of a read.
    pub read_size: Option<usize>,
    /// Whether the received bytes are verified.
    pub verify: bool,
    /// TCP configuration of all connections.
    pub config: Option<Config>,
    /// Largest IP packet of all hosts.
    pub mtu: Option<usize>,
    /// Upper limit of the simulated time.
    pub limit: Option<Span>,
    /// Whether every invariant is checked after every event.
    pub checks: bool,
}

impl Blueprint {
    pub(super) fn new(settings: &Settings) -> Result<Self, ParameterError> {
        let root = settings.root();
        root.word("title")?;
        let media = MediumPlan::read_all(settings)?;
        let mut hosts = Vec::new();
        for name in settings.names("hosts") {
            hosts.extend(HostPlan::read_group(settings, &name, &media)?);
            if hosts.len() as u64 > MOST_HOSTS {
                let what =
                    format!("a scenario has up to {MOST_HOSTS} hosts: leave some of {name} out");
                return Err(ParameterError::Topology(what));
            }
        }
        if hosts.is_empty() {
            return Err(ParameterError::Topology(
                "a scenario needs [hosts]: give it two at least".to_owned(),
            ));
        }
        let relays = RelayPlan::read_all(settings, &media)?;
        let programs = ProgramPlans::read(settings, &hosts)?;
        let plan = Self {
            transfers: programs.transfers,
            dialogues: programs.dialogues,
            generators: programs.generators,
            published: Published::read_all(settings)?,
            limit: root.below("limit").span("time")?,
            topology: Topology::new(&media, &hosts, &relays)?,
            media,
            hosts,
            relays,
        };
        settings.refuse_unread()?;
        plan.check()?;
        Ok(plan)
    }

    /// Returns the published figures of the scenario.
    #[must_use]
    pub fn published(&self) -> &[Published] {
        &self.published
    }

    /// Returns the names of the wires; a single one is called `wire`.
    pub fn wires(&self) -> impl Iterator<Item = &str> {
        self.media.iter().map(|medium| medium.name.as_str())
    }

    /// Returns the bit rate and the framing of each wire.
    pub fn framings(&self) -> impl Iterator<Item = (Rate, Framing)> {
        self.media.iter().map(|medium| (medium.rate(), medium.framing()))
    }

    /// Returns the lowest bit rate on the path of the first transfer, cables of switches included.
    #[must_use]
    pub fn rate(&self) -> Rate {
        let rates = self.crossed().map(|attachment| match attachment.cable {
            Some(cable) => cable.rate,
            None => self.media[attachment.medium].rate(),
        });
        rates.min_by_key(|rate| rate.bits_per_second()).unwrap_or_else(|| self.media[0].rate())
    }

    /// Returns the attachments that the first transfer crosses: those of its two hosts, and of the
    /// relays between its media.
    fn crossed(&self) -> impl Iterator<Item = Attachment> {
        let media: Vec<usize> = if self.transfers.is_empty() { Vec::new() } else { self.route() };
        let hosts = self.transfers.first().map(|transfer| [transfer.from, transfer.to]);
        let hosts = hosts.into_iter().flatten().map(|host| self.hosts[host].attachment);
        let of_relays = self.relays.iter().flat_map(move |relay| {
            let nics = relay.nics.iter().map(|nic| nic.attachment);
            let on_path: Vec<Attachment> =
                nics.filter(|attachment| media.contains(&attachment.medium)).collect();
            if on_path.len() > 1 { on_path } else { Vec::new() }
        });
        hosts.chain(of_relays)
    }

    /// Returns whether the first transfer crosses a shared wire.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.path().any(MediumPlan::is_shared)
    }

    /// Returns the media that the first transfer crosses, or the first medium if there is no
    /// transfer.
    fn path(&self) -> impl Iterator<Item = &MediumPlan> {
        self.route().into_iter().map(|number| &self.media[number])
    }

    /// Returns the numbers of the media in [`Blueprint::path`].
    fn route(&self) -> Vec<usize> {
        let medium = |host: usize| self.hosts[host].attachment.medium;
        match self.transfers.first() {
            Some(transfer) => {
                self.topology.path(medium(transfer.from), medium(transfer.to), &self.relays)
            }
            None => vec![0],
        }
    }

    /// Returns the parameters of the first bulk transfer.
    #[must_use]
    pub fn transfer(&self) -> Option<TransferFacts<'_>> {
        let transfer = self.transfers.first()?;
        let host = &self.hosts[transfer.from];
        Some(TransferFacts {
            name: &transfer.name,
            config: host.tcp,
            mtu: host.mtu,
            write_size: transfer.options.write_size.unwrap_or(1),
            read_size: transfer.options.read_size.unwrap_or(1),
        })
    }

    fn check(&self) -> Result<(), ParameterError> {
        let refuse = |what: String| Err(ParameterError::Topology(what));
        for (number, medium) in self.media.iter().enumerate() {
            let attachments = self.attachments(number);
            if attachments.is_empty() {
                return refuse(format!(
                    "no host is on {}: leave it out, or set on = \"{0}\"",
                    medium.name
                ));
            }
            medium.check(&attachments)?;
        }
        for plan in self.relays.iter().filter(|relay| relay.kind == RelayKind::Bridge) {
            if plan
                .nics
                .iter()
                .any(|nic| self.media[nic.attachment.medium].framing() == Framing::Ip)
            {
                return refuse(format!(
                    "{} is on a serial line: a bridge joins Ethernets only",
                    plan.name
                ));
            }
        }
        let transfers =
            self.transfers.iter().map(|transfer| (&transfer.name, transfer.from, transfer.to));
        let dialogues =
            self.dialogues.iter().map(|dialogue| (&dialogue.name, dialogue.from, dialogue.to));
        for (name, from, to) in transfers.chain(dialogues) {
            let (from, to) = (&self.hosts[from], &self.hosts[to]);
            if !self.topology.reaches(from.attachment.medium, to.attachment.medium) {
                return refuse(format!(
                    "no path leads from {} to {} for {name}: join {} and {} by a router or a \
                     bridge",
                    from.name,
                    to.name,
                    self.media[from.attachment.medium].name,
                    self.media[to.attachment.medium].name
                ));
            }
        }
        self.generators.iter().try_for_each(|plan| self.check_generator(plan))
    }

    /// Refuses a raw-frame generator whose frames cannot reach its peer.
    fn check_generator(&self, plan: &GeneratorPlan) -> Result<(), ParameterError> {
        let here = &self.hosts[plan.host];
        if self.media[here.attachment.medium].framing() == Framing::Ip {
            return Err(ParameterError::Topology(
                "a serial line carries IP packets only: leave out programs that send raw frames"
                    .to_owned(),
            ));
        }
        let Some(there) = plan.peer().map(|peer| &self.hosts[peer]) else { return Ok(()) };
        if self.topology.is_one_network(here.attachment.medium, there.attachment.medium) {
            return Ok(());
        }
        Err(ParameterError::Topology(format!(
            "{} sends raw frames, which no router forwards: join {} and {} by bridges",
            plan.name,
            self.media[here.attachment.medium].name,
            self.media[there.attachment.medium].name
        )))
    }

    /// Returns the attachments to a medium in the order of its ports: hosts, then the NICs of
    /// routers and bridges.
    pub(super) fn attachments(&self, medium: usize) -> Vec<Attachment> {
        let hosts = self.hosts.iter().map(|host| host.attachment);
        let nics = self.relays.iter().flat_map(|relay| relay.nics.iter().map(|nic| nic.attachment));
        hosts.chain(nics).filter(|attachment| attachment.medium == medium).collect()
    }
}

impl HostPlan {
    /// Reads a host or a group of equal hosts, each `step` metres further along the cable.
    fn read_group(
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

/// Reads the largest IP packet, at least the minimum MTU of a host.
pub(super) fn read_mtu(section: &Section<'_>) -> Result<usize, ParameterError> {
    section.size_within("mtu", SMALLEST_MTU as u64..=65_535)
}

/// Reads a TCP configuration: a profile and the scenario's own values.
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
