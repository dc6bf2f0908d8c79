//! A scenario with every number read: what a world is made after, again and again.

use super::media::{MediumPlan, Seat};
use super::programs::{DialoguePlan, ProgramPlans, SpeakerPlan, TransferPlan};
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

/// A host's number is two bytes of its addresses, of which routers' cards need some.
const MOST_HOSTS: u64 = 10_000;
/// Of the first window of a connection.
const MOST_SEGMENTS: u64 = 65_535;

/// What a world is made after.
#[derive(Clone, Debug)]
pub struct Blueprint {
    pub(super) media: Vec<MediumPlan>,
    pub(super) hosts: Vec<HostPlan>,
    pub(super) relays: Vec<RelayPlan>,
    pub(super) topology: Topology,
    pub(super) transfers: Vec<TransferPlan>,
    pub(super) dialogues: Vec<DialoguePlan>,
    pub(super) speakers: Vec<SpeakerPlan>,
    published: Vec<Published>,
    /// A world lasts no longer.
    pub(super) limit: Span,
}

#[derive(Clone, Debug)]
pub(super) struct HostPlan {
    pub(super) name: String,
    /// What the scenario calls it, or all that are like it.
    pub(super) group: String,
    pub(super) machine: MachineParameters,
    pub(super) nic: NicParameters,
    pub(super) tcp: Config,
    /// Its IP counts packets in their identification.
    pub(super) count_packets: bool,
    /// Largest IP packet.
    pub(super) mtu: usize,
    pub(super) seat: Seat,
    /// Its address, if that is not the next one.
    pub(super) address: Option<Ipv4Addr>,
}

/// What a transfer is, as the scenario says it.
#[derive(Clone, Copy, Debug)]
pub struct TransferFacts<'a> {
    /// Its name.
    pub name: &'a str,
    /// The rules of TCP of the host where it begins.
    pub config: Config,
    /// The largest IP packet of that host.
    pub mtu: usize,
    /// Bytes of a write.
    pub write_size: usize,
    /// Bytes asked for by a read.
    pub read_size: usize,
}

/// What varies from run to run of a transfer; what is not given is what the scenario says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TransferOptions {
    /// Bytes to transfer.
    pub bytes: Option<u64>,
    /// The sender's buffer, in bytes.
    pub send_buffer: Option<usize>,
    /// The receiver's buffer, in bytes.
    pub receive_buffer: Option<usize>,
    /// Bytes of a write.
    pub write_size: Option<usize>,
    /// Bytes asked for by a read.
    pub read_size: Option<usize>,
    /// Compare what arrives with what was sent?
    pub verify: bool,
    /// The rules of all connections, in place of the hosts'.
    pub config: Option<Config>,
    /// The largest IP packet, in place of the hosts'.
    pub mtu: Option<usize>,
    /// No longer than this.
    pub limit: Option<Span>,
    /// Judge every invariant after every event?
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
            speakers: programs.speakers,
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

    /// What documents say of it.
    #[must_use]
    pub fn published(&self) -> &[Published] {
        &self.published
    }

    /// The names of the wires; `wire` if there is only one.
    pub fn wires(&self) -> impl Iterator<Item = &str> {
        self.media.iter().map(|medium| medium.name.as_str())
    }

    /// The bit rate of each wire, and what its frames begin with.
    pub fn framings(&self) -> impl Iterator<Item = (Rate, Framing)> {
        self.media.iter().map(|medium| (medium.rate(), medium.framing()))
    }

    /// The bit rate of the wire: of the slowest that the first transfer crosses.
    #[must_use]
    pub fn rate(&self) -> Rate {
        let slowest = self.path().map(MediumPlan::rate).min_by_key(|rate| rate.bits_per_second());
        slowest.unwrap_or_else(|| self.media[0].rate())
    }

    /// Does the first transfer cross a wire that all stations share?
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.path().any(MediumPlan::is_shared)
    }

    /// The media that the first transfer crosses, or the first medium if there is none.
    fn path(&self) -> impl Iterator<Item = &MediumPlan> {
        let medium = |host: usize| self.hosts[host].seat.medium;
        let path = match self.transfers.first() {
            Some(transfer) => {
                self.topology.path(medium(transfer.from), medium(transfer.to), &self.relays)
            }
            None => vec![0],
        };
        path.into_iter().map(|number| &self.media[number])
    }

    /// The first bulk transfer, if there is one.
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
            let seats = self.seats(number);
            if seats.is_empty() {
                return refuse(format!(
                    "nobody is on {}: leave it out, or say on = \"{0}\"",
                    medium.name
                ));
            }
            medium.check(&seats)?;
        }
        for plan in self.relays.iter().filter(|relay| relay.kind == RelayKind::Bridge) {
            if plan.cards.iter().any(|card| self.media[card.seat.medium].framing() == Framing::Ip) {
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
            if !self.topology.reaches(from.seat.medium, to.seat.medium) {
                return refuse(format!(
                    "there is no way from {} to {} for {name}: join {} and {} by a router or a bridge",
                    from.name,
                    to.name,
                    self.media[from.seat.medium].name,
                    self.media[to.seat.medium].name
                ));
            }
        }
        self.speakers.iter().try_for_each(|plan| self.check_speaker(plan))
    }

    /// Programs that speak in frames reach as far as frames do.
    fn check_speaker(&self, plan: &SpeakerPlan) -> Result<(), ParameterError> {
        let here = &self.hosts[plan.host];
        if self.media[here.seat.medium].framing() == Framing::Ip {
            return Err(ParameterError::Topology(
                "a serial line carries IP packets only: leave programs out that speak in frames"
                    .to_owned(),
            ));
        }
        let Some(there) = plan.peer().map(|peer| &self.hosts[peer]) else { return Ok(()) };
        if self.topology.is_one_network(here.seat.medium, there.seat.medium) {
            return Ok(());
        }
        Err(ParameterError::Topology(format!(
            "{} speaks in frames, which no router passes on: join {} and {} by bridges",
            plan.name, self.media[here.seat.medium].name, self.media[there.seat.medium].name
        )))
    }

    /// Who is on a medium, in the order of ports: hosts, then the cards of routers and bridges.
    pub(super) fn seats(&self, medium: usize) -> Vec<Seat> {
        let hosts = self.hosts.iter().map(|host| host.seat);
        let cards = self.relays.iter().flat_map(|relay| relay.cards.iter().map(|card| card.seat));
        hosts.chain(cards).filter(|seat| seat.medium == medium).collect()
    }
}

impl HostPlan {
    /// A host, or as many like it as the scenario says, each a step further along the cable.
    fn read_group(
        settings: &Settings,
        name: &str,
        media: &[MediumPlan],
    ) -> Result<Vec<Self>, ParameterError> {
        let section = settings.section(format!("hosts.{name}"));
        if !settings.names(&format!("hosts.{name}.cards")).is_empty() {
            return Err(ParameterError::Topology(format!(
                "{name} has several cards, and is no router: a host has one, so make it [routers.{name}], or take \
                 [hosts.{name}.cards] out"
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
            seat: Seat {
                position: one.seat.position.saturating_add(step.saturating_mul(number)),
                ..one.seat
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
                "the card of {name} has {} queues, and its machine {} to serve them: give it {0} processors, or {1} queues",
                nic.queues, machine.processors
            )));
        }
        let machine = match nic.clocks_per_byte {
            None => machine,
            Some(clocks) => machine.with_copy(clocks).ok_or_else(|| {
                ParameterError::Topology(format!(
                    "the card of {name} has no DMA and wants an ISA bus: give it a machine with one, as 486-isa"
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
            seat: Seat::read(section, name, media)?,
            address: read_address(section)?,
        })
    }
}

/// The largest IP packet: what a host needs, and what there is at all.
pub(super) fn read_mtu(section: &Section<'_>) -> Result<usize, ParameterError> {
    section.size_within("mtu", SMALLEST_MTU as u64..=65_535)
}

/// The rules of TCP: those of a profile, with the numbers that the scenario has of its own.
fn read_tcp(section: &Section<'_>) -> Result<Config, ParameterError> {
    section.word("title")?;
    let name = section.word("profile")?;
    let profile = name
        .parse::<Profile>()
        .map_err(|error| section.wrong("profile", format!("is no set of rules: {error}")))?;
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
