//! A world is made after a blueprint, and runs to its end.

use super::blueprint::{Blueprint, HostPlan, MediumPlan, TransferOptions};
use super::programs::{DialoguePlan, TransferPlan};
use crate::machine::Machine;
use crate::medium::{Bus, Cable, Duplex, Medium, Serial, Switch};
use crate::nic::{Arbiter, Nic};
use crate::noise::Noise;
use crate::outcome::{MachineOutcome, Outcome, WireOutcome};
use crate::program::{Bulk, Dialogue, Echo, ProgramReport, Sink, Source, Typist};
use crate::rng::Stream;
use crate::timeline::Part;
use crate::trace::{Keep, Trace};
use crate::world::{Occupant, Place, World, station};
use linerate_stack::{Capabilities, Offloads, Stack, StackConfig};
use linerate_units::{Span, Tick};
use linerate_wire::{Ipv4Cidr, MacAddress};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Discard (RFC 863); of several transfers each has a port of its own.
const PORT: u16 = 9;
/// Login (RFC 1282), whose dialogues these are.
const ECHO_PORT: u16 = 513;
/// Random streams are numbered by who draws from them.
const BUS_STREAMS: u64 = 0;
const HOST_STREAMS: u64 = 1 << 32;
const NOISE_STREAMS: u64 = 2 << 32;
/// One for each period of each machine's other bus master.
const ARBITER_STREAMS: u64 = 1 << 62;

impl Blueprint {
    /// Makes a world and lets it run. The same blueprint, seed and options give the same outcome.
    #[must_use]
    pub fn run(&self, seed: u64, options: &TransferOptions, keep: Keep) -> Outcome {
        let mut world = self.build(seed, options, keep);
        let limit = Tick::ZERO + options.limit.unwrap_or(self.limit);
        world.start_noise();
        for (number, transfer) in (0..).zip(&self.transfers) {
            let bulk = self.bulk(number, transfer, options);
            world.start(transfer.to, Box::new(Sink::new(bulk.clone())));
            world.start(transfer.from, Box::new(Source::new(bulk)));
        }
        for (number, dialogue) in (0..).zip(&self.dialogues) {
            let dialogue = self.dialogue(number, dialogue, options);
            world.start(self.dialogues[usize::from(number)].to, Box::new(Echo::new(dialogue.clone())));
            world.start(self.dialogues[usize::from(number)].from, Box::new(Typist::new(dialogue)));
        }
        for plan in &self.speakers {
            world.attach(plan.host, plan.speaker());
        }
        world.run(limit, |world| world.machines.iter().all(Machine::is_over));
        self.outcome(&mut world)
    }

    fn build(&self, seed: u64, options: &TransferOptions, keep: Keep) -> World {
        let mtu = options.mtu.or_else(|| self.hosts.iter().map(|host| host.mtu).max()).unwrap_or(0);
        let mut world = World::new(mtu + 14, Trace::new(keep), options.checks);
        let stations = self.hosts.len();
        let byte = Span::of_bits(8, self.rate());
        for (number, host) in self.hosts.iter().enumerate() {
            world.machines.push(host.machine(
                number,
                stations,
                seed,
                byte,
                self.capabilities(host, options, keep),
            ));
            world.seats.push((0, number));
        }
        let mut ports = (0..).take(stations).map(Occupant::Machine).collect::<Vec<_>>();
        if let Some(noise) = &self.noise {
            world.noises.push(Noise::new(Stream::new(seed, NOISE_STREAMS), noise.mean, noise.length));
            world.noise_seats.push((0, ports.len()));
            ports.push(Occupant::Noise(0));
        }
        world.places.push(Place { medium: self.medium(seed), ports });
        world
    }

    /// What a host's link can do.
    fn capabilities(&self, host: &HostPlan, options: &TransferOptions, keep: Keep) -> Capabilities {
        Capabilities {
            // Sums are charged for, not made, but where somebody will look at them.
            offloads: Offloads {
                checksums: !keep.frames || host.nic.offload.cuts > 0,
                super_packet: host.nic.offload.cuts,
            },
            ..Capabilities::new(self.framing(), options.mtu.unwrap_or(host.mtu))
        }
    }

    fn medium(&self, seed: u64) -> Medium {
        match &self.medium {
            MediumPlan::Bus(bus) => {
                let positions = self.hosts.iter().map(|host| host.position);
                let positions = positions.chain(self.noise.as_ref().map(|noise| noise.position));
                let places: Vec<Span> = positions.map(|metres| bus.metre * metres).collect();
                Medium::Bus(Bus::new(bus.clone(), &places, seed ^ BUS_STREAMS))
            }
            MediumPlan::Duplex(duplex) => Medium::Duplex(Duplex::new(duplex.clone(), seed)),
            MediumPlan::Serial(line) => Medium::Serial(Box::new(Serial::new(line.clone()))),
            MediumPlan::Switch(switch) => {
                let cables = self.hosts.iter().map(|host| host.cable.unwrap_or(switch.cable));
                Medium::Switch(Switch::new(switch, &cables.collect::<Vec<Cable>>(), seed))
            }
        }
    }

    fn bulk(&self, number: u16, transfer: &TransferPlan, options: &TransferOptions) -> Bulk {
        let plan = &transfer.options;
        let mut config = options.config.unwrap_or(self.hosts[transfer.from].tcp);
        config.send_buffer = options.send_buffer.or(plan.send_buffer).unwrap_or(4_096).into();
        config.receive_buffer = options.receive_buffer.or(plan.receive_buffer).unwrap_or(4_096).into();
        Bulk {
            name: transfer.name.clone(),
            address: SocketAddrV4::new(address(transfer.to), PORT + number),
            bytes: options.bytes.or(plan.bytes).unwrap_or(1),
            write_size: options.write_size.or(plan.write_size).unwrap_or(4_096),
            super_packet: self.hosts[transfer.from].nic.offload.cuts,
            read_size: options.read_size.or(plan.read_size).unwrap_or(4_096),
            verify: options.verify,
            config,
        }
    }

    fn dialogue(&self, number: u16, plan: &DialoguePlan, options: &TransferOptions) -> Dialogue {
        Dialogue {
            name: plan.name.clone(),
            address: SocketAddrV4::new(address(plan.to), ECHO_PORT + number),
            characters: plan.characters,
            config: options.config.unwrap_or(self.hosts[plan.from].tcp),
        }
    }

    fn outcome(&self, world: &mut World) -> Outcome {
        let reports = self.hosts.iter().zip(&world.machines).flat_map(|(host, machine)| {
            machine.reports().map(|report| ProgramReport { host: host.name.clone(), ..report })
        });
        let machines = self.hosts.iter().zip(&world.machines).map(|(host, machine)| {
            let (busy, levels) = machine.busy();
            MachineOutcome {
                name: host.name.clone(),
                busy,
                levels,
                card: *machine.nic().statistics(),
                room: machine.nic().room(host.mtu + 14),
            }
        });
        let names = self.hosts.iter().map(|host| host.name.clone());
        let stations = names.chain(self.noise.iter().map(|_| "others".to_owned())).collect::<Vec<_>>();
        let wires: Vec<WireOutcome> = world
            .places
            .iter()
            .map(|place| WireOutcome { counted: *place.medium.statistics(), stations: stations.clone() })
            .collect();
        let complete = world.machines.iter().all(Machine::is_over);
        let timeline = world.trace.take_timeline(world.now, |part| match part {
            Part::Station { wire, port } => format!("{}: wire", wires[usize::from(wire)].stations[port]),
            Part::Inside { machine, unit } => format!("{}: {}", self.hosts[machine].name, unit.name()),
        });
        Outcome {
            time: world.now,
            events: world.events,
            complete,
            programs: reports.collect(),
            machines: machines.collect(),
            wires,
            frames: std::mem::take(&mut world.trace.frames),
            timeline,
        }
    }
}

impl HostPlan {
    fn machine(
        &self,
        number: usize,
        stations: usize,
        seed: u64,
        byte: Span,
        capabilities: Capabilities,
    ) -> Machine {
        let mut random = Stream::new(seed, HOST_STREAMS + number as u64);
        let here = address(number);
        let prefix = if stations < 250 { 24 } else { 8 };
        let network = Ipv4Cidr::new(here, prefix).unwrap_or_else(|| Ipv4Cidr::single(here));
        let mut config = StackConfig::new(MacAddress::new(station(number)), network);
        config.tcp = self.tcp;
        let stack = Stack::new(config, random.secret());
        let head_start = Span::from_picos(random.below(2_000_000_000_000));
        let arbiter = Arbiter::new(self.machine.bus, seed, ARBITER_STREAMS + ((number as u64) << 40));
        let nic = Nic::new(self.nic.clone(), byte, arbiter);
        Machine::new(&self.machine, nic, stack, capabilities, head_start)
    }
}

/// The address of a host.
fn address(number: usize) -> Ipv4Addr {
    let [.., high, low] = (number + 1).to_be_bytes();
    Ipv4Addr::new(10, 0, high, low)
}
