//! A scenario with every number read: what a world is made after, again and again.

use super::programs::{DialoguePlan, ProgramPlans, SpeakerPlan, TransferPlan};
use crate::machine::MachineParameters;
use crate::medium::{BusParameters, Cable, DuplexParameters, SerialParameters, SwitchParameters};
use crate::nic::NicParameters;
use crate::parameter::{ParameterError, Section, Settings};
use crate::published::Published;
use linerate_stack::Medium as Framing;
use linerate_tcp::{AckRule, Config, EcnRule, Profile};
use linerate_units::{Rate, Span};

/// A host's number is two bytes of its addresses.
const MOST_HOSTS: u64 = 1_000;

/// What a world is made after.
#[derive(Clone, Debug)]
pub struct Blueprint {
    pub(super) medium: MediumPlan,
    pub(super) hosts: Vec<HostPlan>,
    pub(super) transfers: Vec<TransferPlan>,
    pub(super) dialogues: Vec<DialoguePlan>,
    pub(super) speakers: Vec<SpeakerPlan>,
    published: Vec<Published>,
    pub(super) noise: Option<NoisePlan>,
    /// A world lasts no longer.
    pub(super) limit: Span,
}

#[derive(Clone, Debug)]
pub(super) enum MediumPlan {
    Bus(BusParameters),
    Duplex(DuplexParameters),
    Switch(SwitchParameters),
    Serial(SerialParameters),
}

#[derive(Clone, Debug)]
pub(super) struct HostPlan {
    pub(super) name: String,
    /// What the scenario calls it, or all that are like it.
    pub(super) group: String,
    pub(super) machine: MachineParameters,
    pub(super) nic: NicParameters,
    pub(super) tcp: Config,
    /// Largest IP packet.
    pub(super) mtu: usize,
    /// Metres from the end of a bus.
    pub(super) position: u64,
    /// Its cable to a switch, if that is not the medium's.
    pub(super) cable: Option<Cable>,
}

#[derive(Clone, Debug)]
pub(super) struct NoisePlan {
    pub(super) mean: Span,
    pub(super) length: usize,
    pub(super) position: u64,
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
        let mut hosts = Vec::new();
        for name in settings.names("hosts") {
            hosts.extend(HostPlan::read_group(settings, &name)?);
        }
        if hosts.is_empty() {
            return Err(ParameterError::Topology(
                "a scenario needs [hosts]: give it two at least".to_owned(),
            ));
        }
        let programs = ProgramPlans::read(settings, &hosts)?;
        let plan = Self {
            medium: MediumPlan::read(&root.below("medium"), root.word("medium")?)?,
            transfers: programs.transfers,
            dialogues: programs.dialogues,
            speakers: programs.speakers,
            published: Published::read_all(settings)?,
            noise: NoisePlan::read(&root.below("noise"))?,
            limit: root.below("limit").span("time")?,
            hosts,
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

    /// The bit rate of the wire.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        match &self.medium {
            MediumPlan::Bus(bus) => bus.rate,
            MediumPlan::Duplex(duplex) => duplex.rate,
            MediumPlan::Switch(switch) => switch.cable.rate,
            MediumPlan::Serial(line) => line.rate,
        }
    }

    /// How the hosts' packets are framed.
    pub(super) const fn framing(&self) -> Framing {
        match self.medium {
            MediumPlan::Serial(_) => Framing::Ip,
            MediumPlan::Bus(_) | MediumPlan::Duplex(_) | MediumPlan::Switch(_) => Framing::Ethernet,
        }
    }

    /// Do all stations share one wire?
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        matches!(self.medium, MediumPlan::Bus(_))
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
        let refuse = |what: &str| Err(ParameterError::Topology(what.to_owned()));
        match &self.medium {
            MediumPlan::Bus(bus) => {
                let positions = self.hosts.iter().map(|host| host.position);
                let positions = positions.chain(self.noise.as_ref().map(|noise| noise.position));
                let longest = bus.longest(bus.metre * positions.max().unwrap_or(0));
                if bus.reaches(longest) {
                    Ok(())
                } else {
                    refuse("the bus is too long: a collision must be heard within 512 bits, so shorten it")
                }
            }
            MediumPlan::Duplex(_) | MediumPlan::Serial(_) if self.hosts.len() != 2 => {
                refuse("a cable has two ends: give the scenario two hosts, or a bus")
            }
            MediumPlan::Duplex(_) | MediumPlan::Serial(_) if self.noise.is_some() => {
                refuse("nobody else is on a cable with two ends: leave the noise out, or take a bus")
            }
            MediumPlan::Switch(_) if self.noise.is_some() => {
                refuse("other people's traffic needs a bus: leave the noise out, or take a bus")
            }
            MediumPlan::Serial(_) if !self.speakers.is_empty() => {
                refuse("a serial line carries IP packets only: leave programs out that speak in frames")
            }
            MediumPlan::Duplex(_) | MediumPlan::Switch(_) | MediumPlan::Serial(_) => Ok(()),
        }
    }
}

impl MediumPlan {
    fn read(section: &Section<'_>, name: &str) -> Result<Self, ParameterError> {
        section.word("title")?;
        match section.word("kind")? {
            "bus" => Ok(Self::Bus(BusParameters::read(section)?)),
            "hub" => Ok(Self::Bus(BusParameters::read_hub(section)?)),
            "duplex" => Ok(Self::Duplex(DuplexParameters::read(section)?)),
            "serial" => Ok(Self::Serial(SerialParameters::read(section)?)),
            "switch" => Ok(Self::Switch(SwitchParameters::read(section)?)),
            kind => Err(ParameterError::Wrong {
                key: "medium.kind".to_owned(),
                file: name.to_owned(),
                what: format!("is {kind}: it must be bus, hub, duplex, switch or serial"),
            }),
        }
    }
}

impl HostPlan {
    /// A host, or as many like it as the scenario says, each a step further along the cable.
    fn read_group(settings: &Settings, name: &str) -> Result<Vec<Self>, ParameterError> {
        let section = settings.section(format!("hosts.{name}"));
        let one = Self::read(&section, name)?;
        if !section.has("count") {
            return Ok(vec![one]);
        }
        let (count, step) = (section.count("count")?.min(MOST_HOSTS), section.count("step")?);
        let like = |number| Self {
            name: format!("{name}-{}", number + 1),
            position: one.position + number * step,
            ..one.clone()
        };
        Ok((0..count).map(like).collect())
    }

    fn read(section: &Section<'_>, name: &str) -> Result<Self, ParameterError> {
        for part in ["machine", "nic", "tcp"] {
            section.word(part)?;
        }
        let tcp = section.below("tcp");
        let nic = NicParameters::read(&section.below("nic"))?;
        let machine = MachineParameters::read(&section.below("machine"))?;
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
            mtu: tcp.size("mtu")?,
            tcp: read_tcp(&tcp)?,
            position: section.count("position")?,
            cable: if section.has("cable.rate") { Some(Cable::read(&section.below("cable"))?) } else { None },
        })
    }
}

/// The rules of TCP: those of a profile, with the numbers that the scenario has of its own.
fn read_tcp(section: &Section<'_>) -> Result<Config, ParameterError> {
    section.word("title")?;
    let name = section.word("profile")?;
    let profile = name.parse::<Profile>().map_err(|error| ParameterError::Wrong {
        key: "profile".to_owned(),
        file: "the rules of tcp".to_owned(),
        what: error.to_string(),
    })?;
    let mut config = profile.config();
    config.initial_window = u32::try_from(section.count("initial_window")?).unwrap_or(1);
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

impl NoisePlan {
    fn read(section: &Section<'_>) -> Result<Option<Self>, ParameterError> {
        if !section.has("rate") {
            return Ok(None);
        }
        let (rate, length, position) =
            (section.rate("rate")?, section.size("frame")?, section.count("position")?);
        if rate.bits_per_second() == 0 {
            return Ok(None);
        }
        Ok(Some(Self {
            mean: Span::of_bits(8 * length as u64, rate),
            length: length.saturating_sub(4),
            position,
        }))
    }
}
