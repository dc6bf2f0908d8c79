//! Builds a simulation from a blueprint, runs it and collects the results.

use super::blueprint::Blueprint;
use super::hosts::HostPlan;
use super::media::MediumPlan;
use super::options::TransferOptions;
use super::programs::{DialoguePlan, GeneratorPlan, TransferPlan};
use super::relays::{RelayKind, RelayPlan};
use super::spread::{Ends, Spread};
use crate::mac::mac_address;
use crate::machine::Machine;
use crate::medium::{EgressQueue, Port};
use crate::nic::{Arbiter, Nic};
use crate::outcome::{
    MachineOutcome, Outcome, ProcessorOutcome, RelayNicOutcome, RelayOutcome, WireOutcome,
};
use crate::program::{Bulk, Dialogue, Echo, ProgramReport, Sink, Source, Typist};
use crate::relay::{Bridge, Forwarding, Interface, Relay, RelayNic, Router};
use crate::rng::Stream;
use crate::timeline::{Part, Unit};
use crate::trace::{Captured, Keep, Trace};
use crate::world::{Occupant, Wire, World};
use linerate_stack::{Capabilities, Offloads, Route, Shard, Stack, StackConfig, Steering};
use linerate_units::{Span, Tick};
use linerate_wire::{EthernetHeader, MacAddress};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;

/// Port of the first transfer: that of the discard service (RFC 863). Each later transfer uses the
/// next port.
const PORT: u16 = 9;
/// Port of the first dialogue: that of the login service (RFC 1282). Each later dialogue uses the
/// next port.
const ECHO_PORT: u16 = 513;
/// First number of the random streams of hosts: one stream for each host.
const HOST_STREAMS: u64 = 1 << 32;
/// First number of the random streams of routers and bridges: one stream for each of them.
const RELAY_STREAMS: u64 = 3 << 32;
/// First number of the random streams of switch ports: one stream for each port of each switch.
const PORT_STREAMS: u64 = 4 << 32;
/// First number of the random streams of raw-frame generators: one stream for each host.
const GENERATOR_STREAMS: u64 = 5 << 32;
/// First number of the random streams of bus arbiters: one stream for each period in which a
/// machine's other bus master takes the bus.
const ARBITER_STREAMS: u64 = 1 << 62;

impl Blueprint {
    /// Runs a simulation. The blueprint, the seed and the options determine its results completely.
    /// If frames are captured, the outcome contains all of them, however many there are.
    #[must_use]
    pub fn run(&self, seed: u64, options: &TransferOptions, keep: Keep) -> Outcome {
        let mut frames = Vec::new();
        let outcome = self.run_watched(seed, options, keep, &mut |frame| frames.push(frame));
        Outcome { frames, ..outcome }
    }

    /// Runs a simulation. Passes captured frames to `watch` in the order of time, instead of
    /// collecting them in the outcome.
    #[must_use]
    pub fn run_watched(
        &self,
        seed: u64,
        options: &TransferOptions,
        keep: Keep,
        watch: &mut dyn FnMut(Captured),
    ) -> Outcome {
        let mut world = self.build(seed, options, keep);
        let limit = Tick::ZERO + options.limit.unwrap_or(self.limit);
        world.start_noise();
        for (number, transfer) in (0..).zip(&self.transfers) {
            let &TransferPlan { from, to, spread, .. } = transfer;
            let address = SocketAddr::new(self.topology.address(to), PORT + number);
            let ends = self.ends(&world, seed, (spread, transfer.number), from, (to, address));
            let bulk = self.bulk(transfer, address, ends.local, options);
            world.start(to, ends.to, Box::new(Sink::new(bulk.clone())));
            world.start(from, ends.from, Box::new(Source::new(bulk)));
        }
        // Transfers have the ports from `PORT` on. Dialogues have the ports from `ECHO_PORT` on, or
        // those after the ports of the transfers if there are so many transfers.
        let first = ECHO_PORT.max(PORT + small(self.transfers.len()));
        for (number, dialogue) in (0..).zip(&self.dialogues) {
            let &DialoguePlan { from, to, spread, .. } = dialogue;
            let address = SocketAddr::new(self.topology.address(to), first + number);
            let ends = self.ends(&world, seed, (spread, usize::from(number)), from, (to, address));
            let dialogue = self.dialogue(dialogue, address, ends.local, options);
            world.start(to, ends.to, Box::new(Echo::new(dialogue.clone())));
            world.start(from, ends.from, Box::new(Typist::new(dialogue)));
        }
        for plan in &self.generators {
            let random = Stream::new(seed, GENERATOR_STREAMS + plan.host as u64);
            world.attach(plan.host, plan.build(&self.topology, random));
        }
        world.run(limit, watch);
        self.outcome(&mut world)
    }

    fn build(&self, seed: u64, options: &TransferOptions, keep: Keep) -> World {
        let mtus = self.hosts.iter().map(|host| options.mtu.unwrap_or(host.mtu));
        let router_mtus = self.relays.iter().flat_map(|relay| relay.nics.iter().map(|nic| nic.mtu));
        let packets = mtus.chain(router_mtus).map(|mtu| mtu + EthernetHeader::LENGTH);
        let others = self.generators.iter().map(GeneratorPlan::longest);
        let others = others.chain(self.media.iter().map(MediumPlan::noise_length));
        let room = packets.chain(others).max().unwrap_or(0);
        let mut world = World::new(room, Trace::new(keep), options.checks);
        for number in 0..self.hosts.len() {
            world.machines.push(self.machine(number, seed, options, keep));
        }
        self.attach_nics(&mut world, seed);
        world.bridged = self.bridged(&world);
        let neighbours = Arc::new(self.topology.macs_by_address());
        let mut routers = 0;
        for (number, plan) in self.relays.iter().enumerate() {
            let forwarding = match plan.kind {
                RelayKind::Router => {
                    routers += 1;
                    Forwarding::Router(self.router(routers - 1, plan, Arc::clone(&neighbours)))
                }
                RelayKind::Bridge => Forwarding::Bridge(bridge(&world, number)),
            };
            world.relays.push(self.relay(number, plan, forwarding, seed));
        }
        world
    }

    /// Creates the media and attaches the NICs.
    fn attach_nics(&self, world: &mut World, seed: u64) {
        let mut ports = vec![Vec::new(); self.media.len()];
        let mut sit = |medium: usize, occupant: Occupant| {
            ports[medium].push(occupant);
            (small(medium), ports[medium].len() - 1)
        };
        for (number, host) in self.hosts.iter().enumerate() {
            world.attachments.push(sit(host.attachment.medium, Occupant::Machine(small(number))));
        }
        for (number, plan) in self.relays.iter().enumerate() {
            let nics = (0..).zip(&plan.nics);
            let attachments = nics.map(|(nic, plan)| {
                sit(plan.attachment.medium, Occupant::Relay(small(number), nic))
            });
            let attachments: Vec<(u16, Port)> = attachments.collect();
            if plan.kind == RelayKind::Router {
                world.attachments.extend(&attachments);
            }
            world.relay_attachments.push(attachments);
        }
        for (number, (plan, mut ports)) in self.media.iter().zip(ports).enumerate() {
            if let Some(noise) = plan.noise(number, seed) {
                world.noise_attachments.push((small(number), ports.len()));
                ports.push(Occupant::Noise(small(world.noises.len())));
                world.noises.push(noise);
            }
            // The number of the medium is mixed into the seed, so that each medium has its own
            // random numbers. Medium 0 gets the unchanged seed.
            let medium = plan.medium(&self.attachments(number), seed ^ (number as u64) << 48);
            world.wires.push(Wire { medium, ports });
        }
    }

    /// Returns a table for media that bridges connect. For a pair of media, it has the port of the
    /// first medium to which a bridge is attached that leads to the second.
    fn bridged(&self, world: &World) -> BTreeMap<(u16, u16), Port> {
        let bridges = || {
            let all = self.relays.iter().zip(&world.relay_attachments);
            all.filter(|(plan, _)| plan.kind == RelayKind::Bridge)
                .map(|(_, attachments)| attachments)
        };
        let mut bridged = BTreeMap::new();
        for to in (0..).take(self.media.len()) {
            // Search all media that bridges connect with `to`. The search needs no list of the
            // media it has visited, because bridged media form no loop.
            let mut near = vec![to];
            while let Some(medium) = near.pop() {
                for attachments in bridges()
                    .filter(|attachments| attachments.iter().any(|&(wire, _)| wire == medium))
                {
                    for &(wire, port) in attachments.iter().filter(|&&(wire, _)| wire != medium) {
                        if wire != to && !bridged.contains_key(&(wire, to)) {
                            bridged.insert((wire, to), port);
                            near.push(wire);
                        }
                    }
                }
            }
        }
        bridged
    }

    fn machine(&self, number: usize, seed: u64, options: &TransferOptions, keep: Keep) -> Machine {
        let host = &self.hosts[number];
        let medium = &self.media[host.attachment.medium];
        let mut random = Stream::new(seed, HOST_STREAMS + number as u64);
        let mut config =
            StackConfig::new(MacAddress::new(mac_address(number)), self.topology.cidr(number));
        (config.tcp, config.count_packets) = (host.tcp, host.count_packets);
        let routes = self.topology.routes(host.attachment.medium);
        config.routes.extend(routes.map(|(network, gateway)| Route::via(network, gateway)));
        let secret = random.secret();
        let count = host.nic.queues;
        config.limits = config.limits.among(count);
        let shards = (0..count.get()).map(|number| {
            Stack::new(StackConfig { shard: Shard { number, count }, ..config.clone() }, secret)
        });
        let steering = Steering::new(secret, count);
        let head_start = Span::from_picos(random.below(2_000_000_000_000));
        let arbiter =
            Arbiter::new(host.machine.bus, seed, ARBITER_STREAMS + ((number as u64) << 40));
        let nic = Nic::new(host.nic.clone(), Span::of_bits(8, medium.rate()), arbiter);
        let capabilities = self.capabilities(host, options, keep);
        Machine::new(&host.machine, nic, shards, steering, capabilities, head_start)
    }

    /// Returns the capabilities of the link between a host and its NIC.
    fn capabilities(&self, host: &HostPlan, options: &TransferOptions, keep: Keep) -> Capabilities {
        let framing = self.media[host.attachment.medium].framing();
        Capabilities {
            // The stack computes checksums only if frames are captured, because captured frames
            // must be valid. Otherwise the simulated host is only charged the time of computing
            // them. With TSO, the NIC has to compute the checksums, so the simulated link between
            // host and NIC does so.
            offloads: Offloads {
                checksums: !keep.frames || host.nic.offload.tso_max_size > 0,
                gso_max_size: host.nic.offload.tso_max_size,
            },
            ..Capabilities::new(framing, options.mtu.unwrap_or(host.mtu))
        }
    }

    fn relay(&self, number: usize, plan: &RelayPlan, forwarding: Forwarding, seed: u64) -> Relay {
        let masters = ARBITER_STREAMS + (((self.hosts.len() + number) as u64) << 40);
        let arbiter = Arbiter::new(plan.parameters.machine.bus, seed, masters);
        let nics = (0..).zip(&plan.nics).map(|(nic, plan)| {
            let byte = Span::of_bits(8, self.media[plan.attachment.medium].rate());
            let stream = Stream::new(seed, RELAY_STREAMS + ((number as u64) << 16) + nic);
            let nic = Nic::new(plan.nic.clone(), byte, arbiter);
            RelayNic { nic, egress: EgressQueue::new(&plan.queue, stream) }
        });
        Relay::new(plan.parameters.clone(), forwarding, nics.collect())
    }

    /// Creates the forwarding rules of router `number`, counted without bridges.
    fn router(
        &self,
        number: usize,
        plan: &RelayPlan,
        neighbours: Arc<BTreeMap<IpAddr, usize>>,
    ) -> Router {
        let interfaces = plan.nics.iter().enumerate().map(|(nic, plan)| {
            let mac = self.topology.mac(number, nic);
            let framing = self.media[plan.attachment.medium].framing();
            Interface { mac, address: self.topology.address(mac), framing, mtu: plan.mtu }
        });
        Router::new(interfaces.collect(), self.topology.routes_of_router(number), neighbours)
    }

    /// Chooses the local port of connection `number` of a program, and thus the processors of both
    /// hosts that process it.
    fn ends(
        &self,
        world: &World,
        seed: u64,
        (spread, number): (Spread, usize),
        from: usize,
        (to, server): (usize, SocketAddr),
    ) -> Ends {
        let steering = |host: usize| world.machines[host].steering();
        let stream = PORT_STREAMS + ((from as u64) << 16) + u64::from(server.port());
        let here = (self.topology.address(from), steering(from));
        Ends::new(spread, number, here, (server, steering(to)), Stream::new(seed, stream))
    }

    fn bulk(
        &self,
        transfer: &TransferPlan,
        address: SocketAddr,
        local: Option<SocketAddr>,
        options: &TransferOptions,
    ) -> Bulk {
        let plan = &transfer.options;
        let mut config = options.config.unwrap_or(self.hosts[transfer.from].tcp);
        config.send_buffer = options.send_buffer.or(plan.send_buffer).unwrap_or(4_096).into();
        config.receive_buffer =
            options.receive_buffer.or(plan.receive_buffer).unwrap_or(4_096).into();
        config.max_pacing_rate = options.max_pacing_rate.or(config.max_pacing_rate);
        Bulk {
            name: transfer.name.clone(),
            address,
            local,
            bytes: options.bytes.or(plan.bytes).unwrap_or(1),
            write_size: options.write_size.or(plan.write_size).unwrap_or(4_096),
            gso_max_size: self.hosts[transfer.from].nic.offload.tso_max_size,
            read_size: options.read_size.or(plan.read_size).unwrap_or(4_096),
            verify: options.verify,
            config,
        }
    }

    fn dialogue(
        &self,
        plan: &DialoguePlan,
        address: SocketAddr,
        local: Option<SocketAddr>,
        options: &TransferOptions,
    ) -> Dialogue {
        Dialogue {
            name: plan.name.clone(),
            address,
            local,
            characters: plan.characters,
            config: options.config.unwrap_or(self.hosts[plan.from].tcp),
        }
    }

    fn outcome(&self, world: &mut World) -> Outcome {
        let reports = self.hosts.iter().zip(&world.machines).flat_map(|(host, machine)| {
            machine.reports().map(|report| ProgramReport { host: host.name.clone(), ..report })
        });
        let machines =
            self.hosts.iter().zip(&world.machines).map(|(host, machine)| host.outcome(machine));
        let wires = self.media.iter().zip(&world.wires).map(|(plan, wire)| WireOutcome {
            name: plan.name.clone(),
            rate: plan.rate(),
            framing: plan.framing(),
            counted: wire.medium.statistics(),
            stations: wire.ports.iter().map(|&occupant| self.name_of(occupant)).collect(),
        });
        let wires: Vec<WireOutcome> = wires.collect();
        let complete = world.machines.iter().all(Machine::is_finished);
        let timeline = world.trace.take_timeline(world.now, |part| match part {
            Part::Station { wire, port } => {
                let wire = &wires[usize::from(wire)];
                format!("{}: {}", wire.stations[port], wire.name)
            }
            Part::Inside { machine, processor, unit } => {
                self.hosts[machine].name_of(processor, unit)
            }
            Part::Relay { relay, unit } => {
                format!("{}: {}", self.relays[usize::from(relay)].name, unit.name())
            }
            Part::RelayNic { relay, nic, unit } => {
                let relay = &self.relays[usize::from(relay)];
                format!("{}/{}: {}", relay.name, relay.nics[usize::from(nic)].name, unit.name())
            }
        });
        Outcome {
            time: world.now,
            events: world.events,
            complete,
            programs: reports.collect(),
            machines: machines.collect(),
            relays: self
                .relays
                .iter()
                .zip(&world.relays)
                .map(|(plan, relay)| plan.outcome(relay))
                .collect(),
            wires,
            frames: Vec::new(),
            timeline,
        }
    }

    /// Returns the name of a port's owner, as results show it.
    fn name_of(&self, occupant: Occupant) -> String {
        match occupant {
            Occupant::Machine(number) => self.hosts[usize::from(number)].name.clone(),
            Occupant::Relay(number, _) => self.relays[usize::from(number)].name.clone(),
            Occupant::Noise(_) => "others".to_owned(),
        }
    }
}

impl HostPlan {
    fn outcome(&self, machine: &Machine) -> MachineOutcome {
        let served = machine.busy().zip(machine.nic().queues().map(Some));
        // A machine may have more processors than its NIC has queues. Each processor without a
        // queue is idle all the time, and gets an outcome of zeros.
        let all = served.chain(std::iter::repeat(((Span::ZERO, [Span::ZERO; 3]), None)));
        let outcome = |((busy, levels), queue)| ProcessorOutcome { busy, levels, queue };
        let processors: Vec<ProcessorOutcome> =
            all.map(outcome).take(self.machine.processors.get().into()).collect();
        let sum = |of: fn(&ProcessorOutcome) -> Span| {
            processors.iter().map(of).fold(Span::ZERO, |a, b| a + b)
        };
        MachineOutcome {
            name: self.name.clone(),
            busy: sum(|one| one.busy),
            levels: [sum(|one| one.levels[0]), sum(|one| one.levels[1]), sum(|one| one.levels[2])],
            processors,
            nic: machine.nic().statistics(),
            room: machine.nic().room(self.mtu + 14),
        }
    }

    /// Returns the name that the timeline shows for a unit of this host.
    fn name_of(&self, processor: u16, unit: Unit) -> String {
        let is_one_of_several = self.machine.processors > NonZeroU16::MIN && unit != Unit::Bus;
        let (name, unit) = (&self.name, unit.name());
        if is_one_of_several {
            format!("{name}: {unit} {processor}")
        } else {
            format!("{name}: {unit}")
        }
    }
}

impl RelayPlan {
    fn outcome(&self, relay: &Relay) -> RelayOutcome {
        let (busy, levels) = relay.busy();
        let nics = self.nics.iter().zip(relay.nics()).map(|(plan, (nic, egress))| {
            RelayNicOutcome { name: plan.name.clone(), nic, egress: *egress }
        });
        RelayOutcome {
            name: self.name.clone(),
            busy,
            levels,
            counted: *relay.statistics(),
            nics: nics.collect(),
        }
    }
}

/// Creates the forwarding table of bridge `number`: for each MAC address, the number of the
/// bridge's NIC that leads to it.
fn bridge(world: &World, number: usize) -> Bridge {
    let own = &world.relay_attachments[number];
    let behind = world.attachments.iter().map(|&(at, _)| {
        let leads = |&(wire, port): &(u16, Port)| {
            // A NIC of the bridge leads to the medium `at` if it is attached to `at`, or if another
            // bridge on its medium leads to `at`.
            wire == at || world.bridged.get(&(wire, at)).is_some_and(|&other| other != port)
        };
        own.iter().position(leads).map(small)
    });
    Bridge::new(behind.collect())
}

/// Converts the number of a medium, a machine or a NIC. There are at most a few thousand of each.
fn small(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
