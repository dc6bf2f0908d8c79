//! Reads the programs of a scenario.

use super::hosts::HostPlan;
use super::options::TransferOptions;
use super::spread::Spread;
use super::topology::Topology;
use crate::generator::{
    BlastParameters, BlastReceiver, BlastSender, DatagramPlace, DecnetParameters, DecnetReceiver,
    DecnetSender, FrameGenerator, LONGEST_DATAGRAM_FRAME, NfsClient, NfsClientParameters,
    NfsServer, NfsServerParameters, Saturate, SaturateParameters,
};
use crate::parameter::{ParameterError, Section, Settings};
use crate::rng::Stream;
use std::sync::Arc;

/// Upper limit of the number of connections that a transfer has between two hosts. The sink listens
/// at a separate port for each.
const MOST_CONNECTIONS: u16 = 256;

/// Upper limit of the transfers and dialogues of a scenario, all connections included.
const MOST_ENDS: usize = 40_000;

/// All programs of a scenario.
#[derive(Debug, Default)]
pub(super) struct ProgramPlans {
    pub(super) transfers: Vec<TransferPlan>,
    pub(super) dialogues: Vec<DialoguePlan>,
    pub(super) generators: Vec<GeneratorPlan>,
}

/// A dialogue between two hosts.
#[derive(Clone, Debug)]
pub(super) struct DialoguePlan {
    pub(super) name: String,
    /// Numbers of the host with the typist, and of the host with the echo server.
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) spread: Spread,
    pub(super) characters: u64,
}

/// One connection of a transfer. A transfer between groups of hosts has several connections.
#[derive(Clone, Debug)]
pub(super) struct TransferPlan {
    pub(super) name: String,
    /// Numbers of the sending and of the receiving host.
    pub(super) from: usize,
    pub(super) to: usize,
    /// Number of this connection among the connections of the transfer.
    pub(super) number: usize,
    pub(super) spread: Spread,
    pub(super) options: TransferOptions,
}

/// A raw-frame generator and the host on which it runs.
#[derive(Clone, Debug)]
pub(super) struct GeneratorPlan {
    pub(super) name: String,
    pub(super) host: usize,
    kind: GeneratorKind,
}

#[derive(Clone, Debug)]
enum GeneratorKind {
    Saturate(SaturateParameters),
    NfsClient(NfsClientParameters, usize),
    NfsServer(NfsServerParameters),
    BlastSender(BlastParameters, usize),
    BlastReceiver(BlastParameters, usize),
    DecnetSender(DecnetParameters, Vec<usize>),
    DecnetReceiver(DecnetParameters, usize),
}

impl ProgramPlans {
    pub(super) fn read(settings: &Settings, hosts: &[HostPlan]) -> Result<Self, ParameterError> {
        let mut plans = Self::default();
        for name in settings.names("programs") {
            plans.add(&settings.section(format!("programs.{name}")), &name, hosts)?;
        }
        plans.refuse_two_generators(hosts)?;
        plans.refuse_more_than_ports()?;
        Ok(plans)
    }

    fn add(
        &mut self,
        section: &Section<'_>,
        name: &str,
        hosts: &[HostPlan],
    ) -> Result<(), ParameterError> {
        match section.word("kind")? {
            "bulk" => self.transfers.extend(TransferPlan::read(section, name, hosts)?),
            "dialogue" => self.dialogues.push(DialoguePlan::read(section, name, hosts)?),
            "saturate" => {
                let parameters = SaturateParameters::read(section)?;
                for host in group(section, "on", hosts)? {
                    self.add_generator(name, host, GeneratorKind::Saturate(parameters));
                }
            }
            "blast" => {
                let parameters = BlastParameters::read(section)?;
                let (from, to) = (host(section, "from", hosts)?, host(section, "to", hosts)?);
                self.add_generator(name, from, GeneratorKind::BlastSender(parameters, to));
                self.add_generator(name, to, GeneratorKind::BlastReceiver(parameters, from));
            }
            "decnet" => {
                let parameters = DecnetParameters::read(section)?;
                let (from, to) = (host(section, "from", hosts)?, group(section, "to", hosts)?);
                for &peer in &to {
                    self.add_generator(name, peer, GeneratorKind::DecnetReceiver(parameters, from));
                }
                self.add_generator(name, from, GeneratorKind::DecnetSender(parameters, to));
            }
            "nfs-client" => {
                let parameters = NfsClientParameters::read(section)?;
                let server = host(section, "server", hosts)?;
                for host in group(section, "on", hosts)? {
                    self.add_generator(name, host, GeneratorKind::NfsClient(parameters, server));
                }
            }
            "nfs-server" => {
                let parameters = NfsServerParameters::read(section)?;
                self.add_generator(
                    name,
                    host(section, "on", hosts)?,
                    GeneratorKind::NfsServer(parameters),
                );
            }
            kind => {
                return Err(ParameterError::Unknown {
                    what: "kind of program",
                    name: kind.to_owned(),
                    known: "bulk, blast, decnet, dialogue, saturate, nfs-client, nfs-server"
                        .to_owned(),
                });
            }
        }
        Ok(())
    }

    fn add_generator(&mut self, name: &str, host: usize, kind: GeneratorKind) {
        self.generators.push(GeneratorPlan { name: name.to_owned(), host, kind });
    }

    fn refuse_two_generators(&self, hosts: &[HostPlan]) -> Result<(), ParameterError> {
        for (index, plan) in self.generators.iter().enumerate() {
            if self.generators[..index].iter().any(|other| other.host == plan.host) {
                let host = &hosts[plan.host].name;
                return Err(ParameterError::Topology(format!(
                    "two programs send raw frames on {host}: give one of them a host of its own"
                )));
            }
        }
        Ok(())
    }
}

impl ProgramPlans {
    /// Refuses so many transfers and dialogues that the ports of their servers would reach the
    /// range of ephemeral ports, from which clients take theirs.
    fn refuse_more_than_ports(&self) -> Result<(), ParameterError> {
        let count = self.transfers.len() + self.dialogues.len();
        if count <= MOST_ENDS {
            return Ok(());
        }
        let what = format!(
            "{count} transfers and dialogues are too many: leave some out, down to {MOST_ENDS}"
        );
        Err(ParameterError::Topology(what))
    }
}

impl GeneratorPlan {
    /// Returns the number of the host to which the generator sends, if there is one.
    pub(super) const fn peer(&self) -> Option<usize> {
        match self.kind {
            GeneratorKind::Saturate(_)
            | GeneratorKind::NfsServer(_)
            | GeneratorKind::DecnetSender(..) => None,
            GeneratorKind::NfsClient(_, peer)
            | GeneratorKind::BlastSender(_, peer)
            | GeneratorKind::BlastReceiver(_, peer)
            | GeneratorKind::DecnetReceiver(_, peer) => Some(peer),
        }
    }

    /// Returns the length in bytes of the generator's longest frame, without check sequence.
    pub(super) const fn longest(&self) -> usize {
        match &self.kind {
            GeneratorKind::Saturate(parameters) => parameters.longest(),
            GeneratorKind::NfsClient(..) | GeneratorKind::NfsServer(_) => LONGEST_DATAGRAM_FRAME,
            GeneratorKind::BlastSender(parameters, _)
            | GeneratorKind::BlastReceiver(parameters, _) => parameters.longest(),
            GeneratorKind::DecnetSender(parameters, _)
            | GeneratorKind::DecnetReceiver(parameters, _) => parameters.longest(),
        }
    }

    /// Creates the generator. It takes its random numbers from `random`.
    pub(super) fn build(&self, topology: &Topology, mut random: Stream) -> Box<dyn FrameGenerator> {
        let name = self.name.clone();
        let mut place = || DatagramPlace {
            mac: self.host,
            address: topology.cidr(self.host),
            neighbours: Arc::new(topology.macs_by_address()),
            secret: random.secret(),
        };
        match &self.kind {
            GeneratorKind::Saturate(parameters) => {
                Box::new(Saturate::new(*parameters, name, self.host))
            }
            GeneratorKind::BlastSender(parameters, to) => {
                Box::new(BlastSender::new(*parameters, name, self.host, *to))
            }
            GeneratorKind::BlastReceiver(parameters, from) => {
                Box::new(BlastReceiver::new(*parameters, name, self.host, *from))
            }
            GeneratorKind::DecnetSender(parameters, to) => {
                Box::new(DecnetSender::new(*parameters, name, self.host, to))
            }
            GeneratorKind::DecnetReceiver(parameters, from) => {
                Box::new(DecnetReceiver::new(*parameters, name, self.host, *from))
            }
            GeneratorKind::NfsClient(parameters, server) => {
                Box::new(NfsClient::new(*parameters, name, place(), topology.address(*server)))
            }
            GeneratorKind::NfsServer(parameters) => {
                Box::new(NfsServer::new(*parameters, name, place()))
            }
        }
    }
}

impl DialoguePlan {
    fn read(section: &Section<'_>, name: &str, hosts: &[HostPlan]) -> Result<Self, ParameterError> {
        let (from, to) = (host(section, "from", hosts)?, host(section, "to", hosts)?);
        if from == to {
            let what = format!("the dialogue {name} has one host at both ends: name two");
            return Err(ParameterError::Topology(what));
        }
        let (spread, characters) =
            (Spread::read(section)?, section.count_within("characters", 1..=u64::MAX)?);
        Ok(Self { name: name.to_owned(), from, to, spread, characters })
    }
}

impl TransferPlan {
    /// Reads a transfer. A transfer between groups has one or several connections for each pair of
    /// hosts.
    fn read(
        section: &Section<'_>,
        name: &str,
        hosts: &[HostPlan],
    ) -> Result<Vec<Self>, ParameterError> {
        let options = TransferOptions {
            bytes: Some(section.count_within("bytes", 1..=u64::MAX)?),
            send_buffer: Some(section.size("send_buffer")?),
            receive_buffer: Some(section.size("receive_buffer")?),
            write_size: Some(section.size_within("write_size", 1..=u64::MAX)?),
            read_size: Some(section.size_within("read_size", 1..=u64::MAX)?),
            ..TransferOptions::default()
        };
        let (from, to) = (group(section, "from", hosts)?, group(section, "to", hosts)?);
        if from.len() != to.len() {
            let (from, to) = (from.len(), to.len());
            let what =
                format!("the transfer {name} is from {from} hosts to {to}: name as many of both");
            return Err(ParameterError::Topology(what));
        }
        if from.iter().zip(&to).any(|(from, to)| from == to) {
            let what = format!("the transfer {name} has one host at both ends: name two");
            return Err(ParameterError::Topology(what));
        }
        let (spread, connections) =
            (Spread::read(section)?, section.several("connections", MOST_CONNECTIONS)?);
        let pairs = from.into_iter().zip(to);
        let all = pairs.flat_map(|pair| std::iter::repeat_n(pair, usize::from(connections.get())));
        let plan = |(number, (from, to))| Self {
            name: name.to_owned(),
            from,
            to,
            number,
            spread,
            options,
        };
        Ok(all.enumerate().map(plan).collect())
    }
}

/// Returns the number of the host that the entry `word` names.
fn host(section: &Section<'_>, word: &str, hosts: &[HostPlan]) -> Result<usize, ParameterError> {
    let wanted = section.word(word)?;
    let found = hosts.iter().position(|host| host.name == wanted);
    found.ok_or_else(|| unknown(wanted, hosts))
}

/// Returns the numbers of the hosts that the entry `word` names: one host, or all hosts of a group.
fn group(
    section: &Section<'_>,
    word: &str,
    hosts: &[HostPlan],
) -> Result<Vec<usize>, ParameterError> {
    let wanted = section.word(word)?;
    let named = |host: &HostPlan| host.group == wanted || host.name == wanted;
    let found: Vec<usize> = (0..hosts.len()).filter(|&number| named(&hosts[number])).collect();
    if found.is_empty() { Err(unknown(wanted, hosts)) } else { Ok(found) }
}

fn unknown(name: &str, hosts: &[HostPlan]) -> ParameterError {
    let known: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    ParameterError::Unknown { what: "host", name: name.to_owned(), known: known.join(", ") }
}
