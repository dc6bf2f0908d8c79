//! A blueprint: a scenario whose numbers have been read and checked. It can be run many times.

use super::family::Family;
use super::hosts::{HostPlan, MOST_HOSTS};
use super::media::{Attachment, MediumPlan};
use super::programs::{DialoguePlan, GeneratorPlan, ProgramPlans, TransferPlan};
use super::relays::{RelayKind, RelayPlan};
use super::topology::Topology;
use crate::parameter::{ParameterError, Settings};
use crate::published::Published;
use linerate_stack::Medium as Framing;
use linerate_tcp::Config;
use linerate_units::{Rate, Span};

/// A scenario whose numbers have been read and checked.
#[derive(Clone, Debug)]
pub struct Blueprint {
    pub(super) media: Vec<MediumPlan>,
    pub(super) hosts: Vec<HostPlan>,
    pub(super) relays: Vec<RelayPlan>,
    pub(super) family: Family,
    pub(super) topology: Topology,
    pub(super) transfers: Vec<TransferPlan>,
    pub(super) dialogues: Vec<DialoguePlan>,
    pub(super) generators: Vec<GeneratorPlan>,
    published: Vec<Published>,
    /// Maximum simulated time of a run.
    pub(super) limit: Span,
}

/// An attachment that a transfer's data cross, with their direction. Two transfers share a sending
/// NIC or cable if they have an equal crossing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crossing {
    /// The NIC of the sending host with this number.
    From(usize),
    /// The NIC of the receiving host with this number.
    To(usize),
    /// A NIC of a relay. `first` and `last` are the media of the sending and of the receiving host,
    /// which determine the direction through the NIC.
    Relay { relay: usize, nic: usize, first: usize, last: usize },
}

/// Parameters of a transfer, and of its sending host.
#[derive(Clone, Copy, Debug)]
pub struct TransferFacts<'a> {
    /// Name of the transfer.
    pub name: &'a str,
    /// TCP configuration of the sending host.
    pub config: Config,
    /// Size in bytes of the largest IP packet that the sending host may send.
    pub mtu: usize,
    /// The IP version.
    pub family: Family,
    /// Number of bytes that the source passes to each write.
    pub write_size: usize,
    /// Number of bytes that the sink requests from each read.
    pub read_size: usize,
}

/// Length of a TCP header without options, in bytes.
const TCP_HEADER: usize = 20;

impl TransferFacts<'_> {
    /// Returns the number of data bytes in a full segment without TCP options.
    #[must_use]
    pub fn segment(self) -> usize {
        self.mtu.saturating_sub(self.family.header_length() + TCP_HEADER)
    }
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
        let family = Family::read(settings)?;
        let plan = Self {
            transfers: programs.transfers,
            dialogues: programs.dialogues,
            generators: programs.generators,
            published: Published::read_all(settings)?,
            limit: root.below("limit").span("time")?,
            family,
            topology: Topology::new(family, &media, &hosts, &relays)?,
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

    /// Returns the names of the wires. The only wire of a scenario is called `wire`.
    pub fn wires(&self) -> impl Iterator<Item = &str> {
        self.media.iter().map(|medium| medium.name.as_str())
    }

    /// Returns the bit rate and the header format of each wire.
    pub fn framings(&self) -> impl Iterator<Item = (Rate, Framing)> {
        self.media.iter().map(|medium| (medium.rate(), medium.framing()))
    }

    /// Returns the lowest bit rate on the path of the first transfer; it may be that of a cable of
    /// a switch. Without a transfer, returns the bit rate of the first medium.
    #[must_use]
    pub fn rate(&self) -> Rate {
        let rates = self.transfers.first().map(|transfer| self.crossed(transfer));
        let rates = rates.into_iter().flatten().map(|(_, attachment)| self.rate_of(attachment));
        rates.min_by_key(|rate| rate.bits_per_second()).unwrap_or_else(|| self.media[0].rate())
    }

    /// Returns the names of all transfers that cross the bottleneck of the first transfer,
    /// including the first transfer itself. The bottleneck is the cable with the lowest bit rate on
    /// its path. Transfers in the opposite direction do not count.
    pub fn sharing_the_narrowest(&self) -> impl Iterator<Item = &str> {
        let narrowest = self.transfers.first().and_then(|transfer| {
            let crossed = self.crossed(transfer);
            let rate = |attachment| self.rate_of(attachment).bits_per_second();
            crossed.min_by_key(|&(_, attachment)| rate(attachment)).map(|(place, _)| place)
        });
        let shares = move |transfer: &&TransferPlan| {
            self.crossed(transfer).any(|(place, _)| Some(place) == narrowest)
        };
        self.transfers.iter().filter(shares).map(|transfer| transfer.name.as_str())
    }

    /// Returns the bit rate at which an attachment sends.
    fn rate_of(&self, attachment: Attachment) -> Rate {
        attachment.cable.map_or_else(|| self.media[attachment.medium].rate(), |cable| cable.rate)
    }

    /// Returns the attachments that a transfer crosses: the NICs of its two hosts, and the NICs of
    /// the relays between its media.
    fn crossed(&self, transfer: &TransferPlan) -> impl Iterator<Item = (Crossing, Attachment)> {
        let medium = |host: usize| self.hosts[host].attachment.medium;
        let (first, last) = (medium(transfer.from), medium(transfer.to));
        let media = self.topology.path(first, last, &self.relays);
        let hosts = [Crossing::From(transfer.from), Crossing::To(transfer.to)]
            .into_iter()
            .zip([transfer.from, transfer.to])
            .map(|(place, host)| (place, self.hosts[host].attachment));
        let of_relays = self.relays.iter().enumerate().flat_map(move |(relay, plan)| {
            let nics = plan.nics.iter().enumerate().map(move |(nic, plan)| {
                (Crossing::Relay { relay, nic, first, last }, plan.attachment)
            });
            let on_path: Vec<(Crossing, Attachment)> =
                nics.filter(|(_, attachment)| media.contains(&attachment.medium)).collect();
            if on_path.len() > 1 { on_path } else { Vec::new() }
        });
        hosts.chain(of_relays)
    }

    /// Returns whether the first transfer crosses a medium that several stations share.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.path().any(MediumPlan::is_shared)
    }

    /// Returns the media that the first transfer crosses. Without a transfer, returns the first
    /// medium.
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

    /// Returns the parameters of the first bulk transfer; `None` if the scenario has no bulk
    /// transfer.
    #[must_use]
    pub fn transfer(&self) -> Option<TransferFacts<'_>> {
        let transfer = self.transfers.first()?;
        let host = &self.hosts[transfer.from];
        Some(TransferFacts {
            name: &transfer.name,
            config: host.tcp,
            mtu: host.mtu,
            family: self.family,
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
        for host in &self.hosts {
            self.family.check_mtu(&host.name, host.mtu)?;
        }
        for router in self.relays.iter().filter(|relay| relay.kind == RelayKind::Router) {
            for nic in &router.nics {
                let owner = format!("the NIC {} of {}", nic.name, router.name);
                self.family.check_mtu(&owner, nic.mtu)?;
            }
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

    /// Refuses a raw-frame generator whose frames cannot reach its receiver.
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

    /// Returns the attachments to a medium in the order of its ports: hosts first, then the NICs of
    /// routers and bridges.
    pub(super) fn attachments(&self, medium: usize) -> Vec<Attachment> {
        let hosts = self.hosts.iter().map(|host| host.attachment);
        let nics = self.relays.iter().flat_map(|relay| relay.nics.iter().map(|nic| nic.attachment));
        hosts.chain(nics).filter(|attachment| attachment.medium == medium).collect()
    }
}
