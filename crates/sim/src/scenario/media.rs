//! The media of a scenario, as its file says them: one that all are on, or several with names.

use crate::medium::{
    Bus, BusParameters, CHECK_SEQUENCE, Cable, Duplex, DuplexParameters, Medium, SHORTEST, Serial,
    SerialParameters, Switch, SwitchParameters,
};
use crate::noise::Noise;
use crate::parameter::{ParameterError, Section, Settings};
use crate::rng::Stream;
use linerate_stack::Medium as Framing;
use linerate_units::{Rate, Span};

/// What the only medium of a world is called.
const ONLY: &str = "wire";
/// Random streams of noise are numbered from here on.
const NOISE_STREAMS: u64 = 2 << 32;

/// Bytes of a frame of noise, check sequence included: an Ethernet's shortest, and what a frame has room for.
const SHORTEST_NOISE: u64 = SHORTEST as u64;
const LONGEST_NOISE: u64 = 65_535;

/// A medium, and everybody else on it.
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

/// Where a card is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    /// The number of the medium.
    pub(super) medium: usize,
    /// Metres from the end of a bus.
    pub(super) position: u64,
    /// Its cable to a switch, if that is not the medium's.
    pub(super) cable: Option<Cable>,
}

impl MediumPlan {
    /// The medium that the file's first level names, or those below `[media]`.
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

    /// Its bit rate; of a switch, that of its own cables.
    pub(super) const fn rate(&self) -> Rate {
        self.kind.rate()
    }

    /// What it carries.
    pub(super) const fn framing(&self) -> Framing {
        match self.kind {
            Kind::Serial(_) => Framing::Ip,
            Kind::Bus(_) | Kind::Duplex(_) | Kind::Switch(_) => Framing::Ethernet,
        }
    }

    /// Do all stations share one wire?
    pub(super) const fn is_shared(&self) -> bool {
        matches!(self.kind, Kind::Bus(_))
    }

    /// Is somebody on it who stands for everybody else?
    pub(super) const fn has_noise(&self) -> bool {
        self.noise.is_some()
    }

    /// Bytes of the frames of whoever stands for everybody else.
    pub(super) fn noise_length(&self) -> usize {
        self.noise.as_ref().map_or(0, |noise| noise.length)
    }

    /// Can these cards, and the noise, be on it?
    pub(super) fn check(&self, seats: &[Seat]) -> Result<(), ParameterError> {
        let refuse = |what: &str| Err(ParameterError::Topology(what.to_owned()));
        match &self.kind {
            Kind::Bus(bus) => {
                let positions = seats.iter().map(|seat| seat.position);
                let positions = positions.chain(self.noise.as_ref().map(|noise| noise.position));
                let longest = bus.longest(bus.metre * positions.max().unwrap_or(0));
                if bus.reaches(longest) {
                    Ok(())
                } else {
                    refuse(
                        "the bus is too long: a collision must be heard within 512 bits, so shorten it",
                    )
                }
            }
            Kind::Duplex(_) | Kind::Serial(_) if seats.len() != 2 => {
                refuse("a cable has two ends: give the scenario two hosts, or a bus")
            }
            Kind::Duplex(_) | Kind::Serial(_) if self.has_noise() => refuse(
                "nobody else is on a cable with two ends: leave the noise out, or take a bus",
            ),
            Kind::Switch(_) if self.has_noise() => {
                refuse("other people's traffic needs a bus: leave the noise out, or take a bus")
            }
            Kind::Duplex(_) | Kind::Switch(_) | Kind::Serial(_) => Ok(()),
        }
    }

    /// The medium with these cards on it.
    pub(super) fn medium(&self, seats: &[Seat], seed: u64) -> Medium {
        match &self.kind {
            Kind::Bus(bus) => {
                let positions = seats.iter().map(|seat| seat.position);
                let positions = positions.chain(self.noise.as_ref().map(|noise| noise.position));
                let places: Vec<Span> = positions.map(|metres| bus.metre * metres).collect();
                Medium::Bus(Bus::new(bus.clone(), &places, seed))
            }
            Kind::Duplex(duplex) => Medium::Duplex(Duplex::new(duplex.clone(), seed)),
            Kind::Serial(line) => Medium::Serial(Box::new(Serial::new(line.clone()))),
            Kind::Switch(switch) => {
                let cables = seats.iter().map(|seat| seat.cable.unwrap_or(switch.cable));
                Medium::Switch(Switch::new(switch, &cables.collect::<Vec<Cable>>(), seed))
            }
        }
    }

    /// Everybody else on it.
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
    /// The noise on a wire of this rate.
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

impl Seat {
    /// Where the card of `who` is. In a world of one medium it is there; in one of several the file says where.
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

/// The medium that a card says it is on.
fn medium_of(
    section: &Section<'_>,
    who: &str,
    media: &[MediumPlan],
) -> Result<usize, ParameterError> {
    let known = || media.iter().map(|medium| medium.name.as_str()).collect::<Vec<_>>().join(", ");
    if !section.has("on") {
        return Err(ParameterError::Topology(format!(
            "the card of {who} is on no medium: say which, as on = \"{}\"; there are {}",
            media[0].name,
            known()
        )));
    }
    let names: Vec<&str> =
        section.word("on")?.split([' ', ',']).filter(|name| !name.is_empty()).collect();
    let [name] = names[..] else {
        return Err(ParameterError::Topology(format!(
            "the card of {who} is on {}: a card is on one medium, and who has several cards is a router or a bridge",
            names.join(" and on ")
        )));
    };
    media.iter().position(|medium| medium.name == name).ok_or_else(|| ParameterError::Unknown {
        what: "medium",
        name: name.to_owned(),
        known: known(),
    })
}
