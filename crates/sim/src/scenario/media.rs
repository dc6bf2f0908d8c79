//! Reads the media of a scenario: one medium for all hosts, or several media with names.

use crate::background::Noise;
use crate::medium::{
    Bus, BusParameters, CHECK_SEQUENCE, Cable, Duplex, DuplexParameters, Medium, SHORTEST, Serial,
    SerialParameters, Switch, SwitchParameters,
};
use crate::parameter::{ParameterError, Section, Settings};
use crate::rng::Stream;
use linerate_stack::Medium as Framing;
use linerate_units::{Rate, Span};

/// Name of the medium in a scenario with only one medium.
const ONLY: &str = "wire";
/// First number of the random streams of background traffic.
const NOISE_STREAMS: u64 = 2 << 32;

/// Minimum length of a background frame in bytes, check sequence included.
const SHORTEST_NOISE: u64 = SHORTEST as u64;
/// Maximum length of a background frame in bytes, check sequence included.
const LONGEST_NOISE: u64 = 65_535;

/// A medium and its background traffic.
#[derive(Clone, Debug)]
pub(super) struct MediumPlan {
    pub(super) name: String,
    kind: Kind,
    noise: Option<NoisePlan>,
}

#[derive(Clone, Debug)]
enum Kind {
    Bus(BusParameters),
    Duplex(DuplexParameters),
    Switch(SwitchParameters),
    Serial(SerialParameters),
}

#[derive(Clone, Debug)]
struct NoisePlan {
    mean: Span,
    length: usize,
    position: u64,
}

/// The place at which a NIC is attached to a medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attachment {
    /// Number of the medium.
    pub(super) medium: usize,
    /// Distance in metres from one end of a bus. For all stations it is measured from the same end.
    pub(super) position: u64,
    /// The cable between this NIC and a switch, if the scenario specifies one. `None` means the
    /// default cable of the switch.
    pub(super) cable: Option<Cable>,
}

impl MediumPlan {
    /// Reads the media of a scenario. The file has either one medium at its top level, or several
    /// below `[media]`.
    pub(super) fn read_all(settings: &Settings) -> Result<Vec<Self>, ParameterError> {
        let (root, names) = (settings.root(), settings.names("media"));
        if names.is_empty() {
            return Ok(vec![Self::read(&root, ONLY)?]);
        }
        if root.has("medium") {
            return Err(ParameterError::Topology(
                "a scenario has one medium or several with names: leave `medium` out, or [media]"
                    .to_owned(),
            ));
        }
        names
            .iter()
            .map(|name| Self::read(&settings.section(format!("media.{name}")), name))
            .collect()
    }

    fn read(section: &Section<'_>, name: &str) -> Result<Self, ParameterError> {
        section.word("medium")?;
        let kind = Kind::read(&section.below("medium"))?;
        let noise = NoisePlan::read(&section.below("noise"), kind.rate())?;
        Ok(Self { name: name.to_owned(), kind, noise })
    }

    /// Returns the bit rate of the medium. For a switch, it is that of the default cable.
    pub(super) const fn rate(&self) -> Rate {
        self.kind.rate()
    }

    /// Returns the header format of the medium's frames.
    pub(super) const fn framing(&self) -> Framing {
        match self.kind {
            Kind::Serial(_) => Framing::Ip,
            Kind::Bus(_) | Kind::Duplex(_) | Kind::Switch(_) => Framing::Ethernet,
        }
    }

    /// Returns whether all stations share one wire.
    pub(super) const fn is_shared(&self) -> bool {
        matches!(self.kind, Kind::Bus(_))
    }

    /// Returns whether there is background traffic.
    pub(super) const fn has_noise(&self) -> bool {
        self.noise.is_some()
    }

    /// Returns the length of background frames in bytes, without check sequence.
    pub(super) fn noise_length(&self) -> usize {
        self.noise.as_ref().map_or(0, |noise| noise.length)
    }

    /// Checks that the medium permits these attachments and its background traffic.
    pub(super) fn check(&self, attachments: &[Attachment]) -> Result<(), ParameterError> {
        let refuse = |what: &str| Err(ParameterError::Topology(what.to_owned()));
        match &self.kind {
            Kind::Bus(bus) => {
                let positions = attachments.iter().map(|attachment| attachment.position);
                let positions = positions.chain(self.noise.as_ref().map(|noise| noise.position));
                let longest = bus.longest(bus.metre * positions.max().unwrap_or(0));
                if bus.reaches(longest) {
                    Ok(())
                } else {
                    refuse(
                        "the bus is too long: every station must sense a collision within 512 \
                         bits, so \
                         shorten it",
                    )
                }
            }
            Kind::Duplex(_) | Kind::Serial(_) if attachments.len() != 2 => {
                refuse("a cable has two ends: give the scenario two hosts, or a bus")
            }
            Kind::Duplex(_) | Kind::Serial(_) if self.has_noise() => refuse(
                "a cable with two ends has no background traffic: leave the noise out, or take a \
                 bus",
            ),
            Kind::Switch(_) if self.has_noise() => {
                refuse("background traffic needs a bus: leave the noise out, or take a bus")
            }
            Kind::Duplex(_) | Kind::Switch(_) | Kind::Serial(_) => Ok(()),
        }
    }

    /// Creates the simulated medium.
    pub(super) fn medium(&self, attachments: &[Attachment], seed: u64) -> Medium {
        match &self.kind {
            Kind::Bus(bus) => {
                let positions = attachments.iter().map(|attachment| attachment.position);
                let positions = positions.chain(self.noise.as_ref().map(|noise| noise.position));
                let places: Vec<Span> = positions.map(|metres| bus.metre * metres).collect();
                Medium::Bus(Bus::new(bus.clone(), &places, seed))
            }
            Kind::Duplex(duplex) => Medium::Duplex(Duplex::new(duplex.clone(), seed)),
            Kind::Serial(line) => Medium::Serial(Box::new(Serial::new(line.clone()))),
            Kind::Switch(switch) => {
                let cables =
                    attachments.iter().map(|attachment| attachment.cable.unwrap_or(switch.cable));
                Medium::Switch(Switch::new(switch, &cables.collect::<Vec<Cable>>(), seed))
            }
        }
    }

    /// Creates the source of the medium's background traffic, if it has any.
    pub(super) fn noise(&self, number: usize, seed: u64) -> Option<Noise> {
        let plan = self.noise.as_ref()?;
        Some(Noise::new(Stream::new(seed, NOISE_STREAMS + number as u64), plan.mean, plan.length))
    }
}

impl Kind {
    const fn rate(&self) -> Rate {
        match self {
            Self::Bus(bus) => bus.rate,
            Self::Duplex(duplex) => duplex.rate,
            Self::Switch(switch) => switch.cable.rate,
            Self::Serial(line) => line.rate,
        }
    }

    fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        section.word("title")?;
        match section.word("kind")? {
            "bus" => Ok(Self::Bus(BusParameters::read(section)?)),
            "hub" => Ok(Self::Bus(BusParameters::read_hub(section)?)),
            "duplex" => Ok(Self::Duplex(DuplexParameters::read(section)?)),
            "serial" => Ok(Self::Serial(SerialParameters::read(section)?)),
            "switch" => Ok(Self::Switch(SwitchParameters::read(section)?)),
            kind => Err(section.wrong(
                "kind",
                format!(
                    "is {}: it must be bus, hub, duplex, switch or serial",
                    kind.escape_debug()
                ),
            )),
        }
    }
}

impl NoisePlan {
    /// Reads the background traffic on a wire of this rate; `None` if there is none.
    fn read(section: &Section<'_>, wire: Rate) -> Result<Option<Self>, ParameterError> {
        if !section.has("rate") {
            return Ok(None);
        }
        let (rate, length, position) = (
            section.rate("rate")?,
            section.size_within("frame", SHORTEST_NOISE..=LONGEST_NOISE)?,
            section.count("position")?,
        );
        if rate.bits_per_second() == 0 {
            return Ok(None);
        }
        if rate > wire {
            return Err(section.wrong(
                "rate",
                format!("is {rate}, more than the wire carries: it must be at most {wire}"),
            ));
        }
        Ok(Some(Self {
            mean: Span::of_bits(8 * length as u64, rate),
            length: length - CHECK_SEQUENCE,
            position,
        }))
    }
}

impl Attachment {
    /// Reads the attachment of the NIC of `who`. If the scenario has several media, the section
    /// names the medium.
    pub(super) fn read(
        section: &Section<'_>,
        who: &str,
        media: &[MediumPlan],
    ) -> Result<Self, ParameterError> {
        let is_only = matches!(media, [only] if only.name == ONLY);
        Ok(Self {
            medium: if is_only { 0 } else { medium_of(section, who, media)? },
            position: section.count("position")?,
            cable: if section.has("cable.rate") {
                Some(Cable::read(&section.below("cable"))?)
            } else {
                None
            },
        })
    }
}

/// Returns the number of the medium to which the NIC of `who` is attached.
fn medium_of(
    section: &Section<'_>,
    who: &str,
    media: &[MediumPlan],
) -> Result<usize, ParameterError> {
    let known = || media.iter().map(|medium| medium.name.as_str()).collect::<Vec<_>>().join(", ");
    if !section.has("on") {
        return Err(ParameterError::Topology(format!(
            "the NIC of {who} is on no medium: name one, as on = \"{}\"; there are {}",
            media[0].name,
            known()
        )));
    }
    let names: Vec<&str> =
        section.word("on")?.split([' ', ',']).filter(|name| !name.is_empty()).collect();
    let [name] = names[..] else {
        return Err(ParameterError::Topology(format!(
            "the NIC of {who} is on {}: a NIC is on one medium, and several NICs need a router \
            or a bridge",
            names.join(" and on ")
        )));
    };
    media.iter().position(|medium| medium.name == name).ok_or_else(|| ParameterError::Unknown {
        what: "medium",
        name: name.to_owned(),
        known: known(),
    })
}
