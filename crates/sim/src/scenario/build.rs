//! A world is made after a blueprint, and runs to its end.

use super::blueprint::{Blueprint, HostPlan, TransferOptions};
use super::media::MediumPlan;
use super::programs::{DialoguePlan, SpeakerPlan, TransferPlan};
use super::relays::{RelayKind, RelayPlan};
use super::spread::{Ends, Spread};
use crate::machine::Machine;
use crate::medium::{Outlet, Port};
use crate::nic::{Arbiter, Nic};
use crate::outcome::{
    MachineOutcome, Outcome, ProcessorOutcome, RelayCardOutcome, RelayOutcome, WireOutcome,
};
use crate::program::{Bulk, Dialogue, Echo, ProgramReport, Sink, Source, Typist};
use crate::relay::{Bridge, Interface, Mind, Relay, RelayCard, Router};
use crate::rng::Stream;
use crate::station::station;
use crate::timeline::{Part, Unit};
use crate::trace::{Captured, Keep, Trace};
use crate::world::{Occupant, Place, World};
use linerate_stack::{Capabilities, Offloads, Route, Shard, Stack, StackConfig, Steering};
use linerate_units::{Span, Tick};
use linerate_wire::{EthernetHeader, MacAddress};
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::num::NonZeroU16;
use std::sync::Arc;

/// Discard (RFC 863); of several transfers each has a port of its own.
const PORT: u16 = 9;
/// Login (RFC 1282), whose dialogues these are.
const ECHO_PORT: u16 = 513;
/// Random streams are numbered by who draws from them.
const HOST_STREAMS: u64 = 1 << 32;
const RELAY_STREAMS: u64 = 3 << 32;
/// One for each port of each server.
const PORT_STREAMS: u64 = 4 << 32;
/// One for each period of each machine's other bus master.
const ARBITER_STREAMS: u64 = 1 << 62;

impl Blueprint {
    /// Makes a world and lets it run. The same blueprint, seed and options give the same outcome. Frames that are to be
    /// kept are in it, however many they are.
    #[must_use]
    pub fn run(&self, seed: u64, options: &TransferOptions, keep: Keep) -> Outcome {
        let mut frames = Vec::new();
        let outcome = self.run_watched(seed, options, keep, &mut |frame| frames.push(frame));
        Outcome { frames, ..outcome }
    }

    /// Does the same, and shows frames that are to be kept to `watch` as they leave, the earliest first: they are not in
    /// the outcome.
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
            let address = SocketAddrV4::new(self.topology.address(to), PORT + number);
            let ends = self.ends(&world, seed, (spread, transfer.number), from, (to, address));
            let bulk = self.bulk(transfer, address, ends.local, options);
            world.start(to, ends.to, Box::new(Sink::new(bulk.clone())));
            world.start(from, ends.from, Box::new(Source::new(bulk)));
        }
        // Behind the ports of the transfers, if there are so many.
        let first = ECHO_PORT.max(PORT + small(self.transfers.len()));
        for (number, dialogue) in (0..).zip(&self.dialogues) {
            let &DialoguePlan { from, to, spread, .. } = dialogue;
            let address = SocketAddrV4::new(self.topology.address(to), first + number);
            let ends = self.ends(&world, seed, (spread, usize::from(number)), from, (to, address));
            let dialogue = self.dialogue(dialogue, address, ends.local, options);
            world.start(to, ends.to, Box::new(Echo::new(dialogue.clone())));
            world.start(from, ends.from, Box::new(Typist::new(dialogue)));
        }
        for plan in &self.speakers {
            world.attach(plan.host, plan.speaker());
        }
        world.run(limit, watch);
        self.outcome(&mut world)
    }

    fn build(&self, seed: u64, options: &TransferOptions, keep: Keep) -> World {
        let mtus = self.hosts.iter().map(|host| options.mtu.unwrap_or(host.mtu));
        let router_mtus =
            self.relays.iter().flat_map(|relay| relay.cards.iter().map(|card| card.mtu));
        let packets = mtus.chain(router_mtus).map(|mtu| mtu + EthernetHeader::LENGTH);
        let others = self.speakers.iter().map(SpeakerPlan::longest);
        let others = others.chain(self.media.iter().map(MediumPlan::noise_length));
        let room = packets.chain(others).max().unwrap_or(0);
        let mut world = World::new(room, Trace::new(keep), options.checks);
        for number in 0..self.hosts.len() {
            world.machines.push(self.machine(number, seed, options, keep));
        }
        self.take_seats(&mut world, seed);
        world.bridged = self.bridged(&world);
        let neighbours = Arc::new(self.topology.neighbours());
        let mut routers = 0;
        for (number, plan) in self.relays.iter().enumerate() {
            let mind = match plan.kind {
                RelayKind::Router => {
                    routers += 1;
                    Mind::Router(self.router(routers - 1, plan, Arc::clone(&neighbours)))
                }
                RelayKind::Bridge => Mind::Bridge(bridge(&world, number)),
            };
            world.relays.push(self.relay(number, plan, mind, seed));
        }
        world
    }

    /// Makes the media, and puts everybody where he belongs.
    fn take_seats(&self, world: &mut World, seed: u64) {
        let mut ports = vec![Vec::new(); self.media.len()];
        let mut sit = |medium: usize, occupant: Occupant| {
            ports[medium].push(occupant);
            (small(medium), ports[medium].len() - 1)
        };
        for (number, host) in self.hosts.iter().enumerate() {
            world.seats.push(sit(host.seat.medium, Occupant::Machine(small(number))));
        }
        for (number, plan) in self.relays.iter().enumerate() {
            let cards = (0..).zip(&plan.cards);
            let seats = cards
                .map(|(card, plan)| sit(plan.seat.medium, Occupant::Relay(small(number), card)));
            let seats: Vec<(u16, Port)> = seats.collect();
            if plan.kind == RelayKind::Router {
                world.seats.extend(&seats);
            }
            world.relay_seats.push(seats);
        }
        for (number, (plan, mut ports)) in self.media.iter().zip(ports).enumerate() {
            if let Some(noise) = plan.noise(number, seed) {
                world.noise_seats.push((small(number), ports.len()));
                ports.push(Occupant::Noise(small(world.noises.len())));
                world.noises.push(noise);
            }
            // Each medium draws from streams of its own; those of the first are the seed's.
            let medium = plan.medium(&self.seats(number), seed ^ (number as u64) << 48);
            world.places.push(Place { medium, ports });
        }
    }

    /// By which port a bridge leads from each medium to each other one of its network.
    fn bridged(&self, world: &World) -> BTreeMap<(u16, u16), Port> {
        let bridges = || {
            let all = self.relays.iter().zip(&world.relay_seats);
            all.filter(|(plan, _)| plan.kind == RelayKind::Bridge).map(|(_, seats)| seats)
        };
        let mut bridged = BTreeMap::new();
        for to in (0..).take(self.media.len()) {
            // There is no ring: from medium to medium away from `to`, each is met once.
            let mut near = vec![to];
            while let Some(medium) = near.pop() {
                for seats in
                    bridges().filter(|seats| seats.iter().any(|&(place, _)| place == medium))
                {
                    for &(place, port) in seats.iter().filter(|&&(place, _)| place != medium) {
                        if place != to && !bridged.contains_key(&(place, to)) {
                            bridged.insert((place, to), port);
                            near.push(place);
                        }
                    }
                }
            }
        }
        bridged
    }

    fn machine(&self, number: usize, seed: u64, options: &TransferOptions, keep: Keep) -> Machine {
        let host = &self.hosts[number];
        let medium = &self.media[host.seat.medium];
        let mut random = Stream::new(seed, HOST_STREAMS + number as u64);
        let mut config =
            StackConfig::new(MacAddress::new(station(number)), self.topology.cidr(number));
        (config.tcp, config.count_packets) = (host.tcp, host.count_packets);
        let routes = self.topology.routes(host.seat.medium);
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

    /// What a host's link can do.
    fn capabilities(&self, host: &HostPlan, options: &TransferOptions, keep: Keep) -> Capabilities {
        let framing = self.media[host.seat.medium].framing();
        Capabilities {
            // Sums are charged for, not made, but where somebody will look at them.
            offloads: Offloads {
                checksums: !keep.frames || host.nic.offload.cuts > 0,
                super_packet: host.nic.offload.cuts,
            },
            ..Capabilities::new(framing, options.mtu.unwrap_or(host.mtu))
        }
    }

    fn relay(&self, number: usize, plan: &RelayPlan, mind: Mind, seed: u64) -> Relay {
        let masters = ARBITER_STREAMS + (((self.hosts.len() + number) as u64) << 40);
        let arbiter = Arbiter::new(plan.parameters.machine.bus, seed, masters);
        let cards = (0..).zip(&plan.cards).map(|(card, plan)| {
            let byte = Span::of_bits(8, self.media[plan.seat.medium].rate());
            let stream = Stream::new(seed, RELAY_STREAMS + ((number as u64) << 16) + card);
            let nic = Nic::new(plan.nic.clone(), byte, arbiter);
            RelayCard { nic, outlet: Outlet::new(&plan.queue, stream) }
        });
        Relay::new(plan.parameters.clone(), mind, cards.collect())
    }

    /// The mind of the router with this number among the routers.
    fn router(
        &self,
        number: usize,
        plan: &RelayPlan,
        neighbours: Arc<BTreeMap<std::net::Ipv4Addr, usize>>,
    ) -> Router {
        let interfaces = plan.cards.iter().enumerate().map(|(card, plan)| {
            let station = self.topology.station(number, card);
            let framing = self.media[plan.seat.medium].framing();
            Interface { station, address: self.topology.address(station), framing, mtu: plan.mtu }
        });
        Router::new(interfaces.collect(), self.topology.ways(number), neighbours)
    }

    /// The ends of a connection: which of its program it is, and how that spreads them.
    fn ends(
        &self,
        world: &World,
        seed: u64,
        (spread, number): (Spread, usize),
        from: usize,
        (to, server): (usize, SocketAddrV4),
    ) -> Ends {
        let steering = |host: usize| world.machines[host].steering();
        let stream = PORT_STREAMS + ((from as u64) << 16) + u64::from(server.port());
        let here = (self.topology.address(from), steering(from));
        Ends::new(spread, number, here, (server, steering(to)), Stream::new(seed, stream))
    }

    fn bulk(
        &self,
        transfer: &TransferPlan,
        address: SocketAddrV4,
        local: Option<SocketAddrV4>,
        options: &TransferOptions,
    ) -> Bulk {
        let plan = &transfer.options;
        let mut config = options.config.unwrap_or(self.hosts[transfer.from].tcp);
        config.send_buffer = options.send_buffer.or(plan.send_buffer).unwrap_or(4_096).into();
        config.receive_buffer =
            options.receive_buffer.or(plan.receive_buffer).unwrap_or(4_096).into();
        Bulk {
            name: transfer.name.clone(),
            address,
            local,
            bytes: options.bytes.or(plan.bytes).unwrap_or(1),
            write_size: options.write_size.or(plan.write_size).unwrap_or(4_096),
            super_packet: self.hosts[transfer.from].nic.offload.cuts,
            read_size: options.read_size.or(plan.read_size).unwrap_or(4_096),
            verify: options.verify,
            config,
        }
    }

    fn dialogue(
        &self,
        plan: &DialoguePlan,
        address: SocketAddrV4,
        local: Option<SocketAddrV4>,
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
        let wires = self.media.iter().zip(&world.places).map(|(plan, place)| WireOutcome {
            name: plan.name.clone(),
            rate: plan.rate(),
            framing: plan.framing(),
            counted: place.medium.statistics(),
            stations: place.ports.iter().map(|&occupant| self.name_of(occupant)).collect(),
        });
        let wires: Vec<WireOutcome> = wires.collect();
        let complete = world.machines.iter().all(Machine::is_over);
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
            Part::RelayCard { relay, card, unit } => {
                let relay = &self.relays[usize::from(relay)];
                format!("{}/{}: {}", relay.name, relay.cards[usize::from(card)].name, unit.name())
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

    /// Who is at a port.
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
        // Who serves no queue has nothing to do.
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
            card: machine.nic().statistics(),
            room: machine.nic().room(self.mtu + 14),
        }
    }

    /// What a timeline calls something in it.
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
        let cards = self.cards.iter().zip(relay.cards()).map(|(plan, (card, outlet))| {
            RelayCardOutcome { name: plan.name.clone(), card, outlet: *outlet }
        });
        RelayOutcome {
            name: self.name.clone(),
            busy,
            levels,
            counted: *relay.statistics(),
            cards: cards.collect(),
        }
    }
}

/// The mind of a bridge: behind which of its cards each station is.
fn bridge(world: &World, number: usize) -> Bridge {
    let own = &world.relay_seats[number];
    let behind = world.seats.iter().map(|&(at, _)| {
        let leads = |&(place, port): &(u16, Port)| {
            // Towards another medium than the card's own, by a bridge that is not this one.
            place == at || world.bridged.get(&(place, at)).is_some_and(|&other| other != port)
        };
        own.iter().position(leads).map(small)
    });
    Bridge::new(behind.collect())
}

/// Numbers of media, machines and cards, of which there are some thousands at most.
fn small(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
