//! The description of a random world: its hosts or connections, its network, and its applications.

use crate::{Line, Narrow, Network};
use linerate_stack::Medium;
use linerate_tcp::{Config, CongestionName, EcnRule, KeepAlive, PathSearch, Profile};
use linerate_units::{Duration, Rate};
use oorandom::Rand64;

/// The description of a random world, from which its run follows completely.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// Seed of the random faults of the network and of the random choices of the hosts.
    pub seed: u64,
    /// The two hosts; `None` if the world consists of two connections without hosts. In that case,
    /// each connection is compared with a twin: a copy without header prediction.
    pub hosts: Option<Hosts>,
    /// TCP configurations of the active and of the passive endpoint.
    pub configs: [Config; 2],
    /// The simulated network between the two endpoints.
    pub network: Network,
    /// The behaviour of the two applications of each connection.
    pub connections: Vec<[Habit; 2]>,
    /// `Some` if the client has a Fast Open cookie: true if the server accepts it, and false if the
    /// server refuses it. Only used in a world without hosts.
    pub fast_open: Option<bool>,
    /// Average number of forged segments for every thousand genuine segments that arrive. Only used
    /// in a world without hosts.
    pub forgery: u32,
}

/// Properties of the two hosts and their links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// Whether the links carry Ethernet frames or IP packets.
    pub medium: Medium,
    /// Size of the largest IP packet on the links, in bytes.
    pub mtu: usize,
    /// Maximum number of frames in the send queue of a link.
    pub capacity: usize,
    /// Minimum time between two turns of a host, which limits its speed.
    pub pause: Duration,
}

/// The behaviour of one application of a random world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habit {
    /// Number of bytes that the application sends in total.
    pub bytes: usize,
    /// Number of bytes that the application offers in each write.
    pub write_size: usize,
    /// Maximum number of bytes that the application takes in each read.
    pub read_size: usize,
    /// Minimum time between two actions of the application. Zero means that the application acts at
    /// every event of the world.
    pub pause: Duration,
    /// Time from the start of the world during which the application reads nothing.
    pub reads_nothing_for: Duration,
    /// The application resets the connection as soon as it has written, or has read, this number of
    /// bytes; `None` if it never does.
    pub aborts_after: Option<usize>,
}

/// The smallest limit for the length of frames on a random path, in bytes. Every path must carry IP
/// packets of 576 bytes, in frames with an Ethernet header.
const LEAST_WIDTH: usize = 600;

/// A source of random numbers with various distributions.
struct Dice(Rand64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0.rand_range(0..end)
    }

    fn size(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap_or(0)
    }

    /// Returns true with a probability of `percent` %.
    fn once_in_a_while(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn of<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.size(options.len())]
    }

    /// Draws a number from 1 to `most`. Each order of magnitude, in powers of two, has the same
    /// probability, so that small numbers are as frequent as large ones.
    fn magnitude(&mut self, most: usize) -> usize {
        let bits = usize::BITS - most.leading_zeros();
        let bound = 1 << (1 + self.below(u64::from(bits)));
        1 + self.size(most.min(bound))
    }

    fn share(&mut self, percent: u64, most: u64) -> u32 {
        let share = if self.once_in_a_while(percent) { self.below(most) } else { 0 };
        u32::try_from(share).unwrap_or(0)
    }
}

impl World {
    /// Functions that each make one aspect of a world simpler. If a world fails, they are tried one
    /// by one, to find the simplest world that still fails.
    pub const SIMPLIFICATIONS: [fn(&mut Self); 28] = [
        |world| world.connections.truncate(1),
        |world| {
            world.hosts = None;
            world.connections.truncate(1);
        },
        |world| world.each_habit(|habit| habit.aborts_after = None),
        |world| world.each_habit(|habit| habit.reads_nothing_for = Duration::ZERO),
        |world| world.each_habit(|habit| habit.pause = Duration::ZERO),
        |world| world.connections.iter_mut().for_each(|ends| ends[1].bytes = 0),
        |world| world.connections.iter_mut().for_each(|ends| ends[0].bytes = 0),
        |world| world.network.line = None,
        |world| world.network.narrow = None,
        |world| world.network.marking = 0,
        |world| world.network.corruption = 0,
        |world| world.network.duplication = 0,
        |world| world.network.reordering = 0,
        |world| world.network.loss = 0,
        |world| world.configs[0] = Config::modern(),
        |world| world.configs[1] = Config::modern(),
        |world| world.each_config(|config| config.keep_alive = None),
        |world| world.each_config(|config| config.ecn = EcnRule::Off),
        |world| world.each_config(|config| config.accurate_ecn = EcnRule::Off),
        |world| world.each_config(|config| config.timestamps = false),
        |world| world.each_config(|config| config.selective_acks = false),
        |world| world.each_config(|config| config.congestion = CongestionName::NewReno),
        |world| world.network.latency = Duration::from_millis(10),
        |world| world.each_habit(|habit| (habit.write_size, habit.read_size) = (4_096, 4_096)),
        |world| world.each_habit(|habit| habit.bytes /= 4),
        |world| world.each_habit(|habit| habit.bytes /= 4),
        |world| world.fast_open = None,
        |world| world.forgery = 0,
    ];

    fn each_habit(&mut self, change: impl Fn(&mut Habit)) {
        self.connections.iter_mut().flatten().for_each(change);
    }

    fn each_config(&mut self, change: impl Fn(&mut Config)) {
        self.configs.iter_mut().for_each(change);
    }

    /// Draws the world with the number `number` from the sequence of worlds that `seed` determines.
    #[must_use]
    pub fn draw(seed: u64, number: u64) -> Self {
        let mut dice = Dice(Rand64::new(u128::from(seed) << 64 | u128::from(number)));
        let hosts = dice.once_in_a_while(50).then(|| draw_hosts(&mut dice));
        let count = if hosts.is_some() { 1 + dice.below(4) } else { 1 };
        let configs = [draw_config(&mut dice), draw_config(&mut dice)];
        let mut world = Self {
            seed: dice.0.rand_u64(),
            hosts,
            connections: (0..count).map(|_| draw_habits(&mut dice, &configs)).collect(),
            configs,
            network: draw_network(&mut dice),
            fast_open: dice.of(&[None, Some(true), Some(false)]),
            forgery: 0,
        };
        world.narrow(&mut dice);
        world.count_marks(&mut dice);
        world.forgery = dice.share(30, 300);
        world
    }

    /// Adds to some paths a part that silently drops long packets (a black hole). Both endpoints
    /// must search for the path MTU, because a connection would not recover from the losses
    /// otherwise.
    fn narrow(&mut self, dice: &mut Dice) {
        let both_search = self.configs.iter().all(|config| config.path_search != PathSearch::Off);
        if !both_search || !dice.once_in_a_while(25) {
            return;
        }
        if dice.once_in_a_while(30) {
            self.each_config(|config| config.path_search = PathSearch::Always);
        }
        let from = dice.below(200);
        let until = if dice.once_in_a_while(50) { u64::MAX } else { from + dice.below(300) };
        self.network.narrow = Some(Narrow {
            most: dice.of(&[LEAST_WIDTH, 1_114, 1_294, 1_350, 1_414, 1_450]),
            from,
            until,
        });
    }

    /// In many worlds, makes accurate ECN and congestion marks frequent. Its random numbers are
    /// drawn after those of all older properties. So a seed still yields the values of those
    /// properties that it yielded before this method was added.
    fn count_marks(&mut self, dice: &mut Dice) {
        if !dice.once_in_a_while(40) {
            return;
        }
        for config in &mut self.configs {
            config.accurate_ecn =
                dice.of(&[EcnRule::Request, EcnRule::Request, EcnRule::Accept, EcnRule::Off]);
        }
        self.network.marking = dice.of(&[self.network.marking, 20, 60]);
    }

    /// Returns whether any application aborts its connection.
    #[must_use]
    pub fn is_broken_off(&self) -> bool {
        self.connections.iter().flatten().any(|habit| habit.aborts_after.is_some())
    }
}

fn draw_hosts(dice: &mut Dice) -> Hosts {
    Hosts {
        medium: dice.of(&[Medium::Ethernet, Medium::Ip]),
        mtu: dice.of(&[1_500, 1_500, 576, 9_000, 296]),
        capacity: dice.of(&[256, 256, 16, 2, 1]),
        pause: dice.of(&[
            Duration::ZERO,
            Duration::ZERO,
            Duration::from_micros(100),
            Duration::from_millis(3),
        ]),
    }
}

fn draw_config(dice: &mut Dice) -> Config {
    let config = dice.of(&[
        Profile::Modern,
        Profile::Modern,
        Profile::Modern,
        Profile::BsdTahoe,
        Profile::BsdReno,
    ]);
    let config = config.config();
    let keep_alive = KeepAlive {
        idle: Duration::from_millis(100 + dice.below(5_000)),
        interval: Duration::from_millis(500 + dice.below(2_000)),
        probes: 9,
    };
    Config {
        send_buffer: dice.magnitude(1 << 20).into(),
        receive_buffer: dice.magnitude(1 << 20).into(),
        no_delay: dice.once_in_a_while(30),
        keep_alive: dice.once_in_a_while(20).then_some(keep_alive),
        window_scaling: config.window_scaling && dice.once_in_a_while(80),
        timestamps: config.timestamps && dice.once_in_a_while(70),
        selective_acks: config.selective_acks && dice.once_in_a_while(70),
        congestion: if dice.once_in_a_while(60) {
            dice.of(&CongestionName::ALL)
        } else {
            config.congestion
        },
        ecn: dice.of(&[config.ecn, EcnRule::Request, EcnRule::Off]),
        stretch_acks: dice.once_in_a_while(60),
        limited_transmit: dice.once_in_a_while(50),
        initial_window: dice.of(&[config.initial_window, 1, 4, 10]),
        reassembly_ranges: dice.of(&[config.reassembly_ranges, 1, 3]),
        ..config
    }
}

fn draw_network(dice: &mut Dice) -> Network {
    let line = Line {
        rate: Rate::from_bits_per_second(100_000 << dice.below(14)),
        queue: 3_000 << dice.below(9),
    };
    Network {
        latency: Duration::from_micros(dice.magnitude(200_000) as u64),
        line: dice.once_in_a_while(50).then_some(line),
        narrow: None,
        loss: dice.share(60, 120),
        duplication: dice.share(30, 100),
        reordering: dice.share(40, 150),
        corruption: dice.share(30, 50),
        marking: dice.share(30, 100),
        lateness: Duration::from_micros(dice.magnitude(200_000) as u64),
    }
}

fn draw_habits(dice: &mut Dice, configs: &[Config; 2]) -> [Habit; 2] {
    let mut habits = [draw_habit(dice), draw_habit(dice)];
    for (from, to) in [(0, 1), (1, 0)] {
        // The smallest of these sizes limits the bytes that one step of the transfer can move. A
        // transfer of many small steps is slow, and its steps after the first thousand test nothing
        // new. So the transfer is limited to the bytes of a thousand steps.
        let steps = [habits[from].write_size, habits[to].read_size];
        let buffers = [configs[from].send_buffer.initial(), configs[to].receive_buffer.initial()];
        let least = steps.into_iter().chain(buffers).min().unwrap_or(1);
        habits[from].bytes = habits[from].bytes.min(least * 1_000);
    }
    habits
}

fn draw_habit(dice: &mut Dice) -> Habit {
    let (write_size, read_size) = (dice.magnitude(20_000), dice.magnitude(20_000));
    let pause = Duration::from_millis(10 + dice.below(300));
    let silence = Duration::from_millis(dice.below(10_000));
    Habit {
        bytes: if dice.once_in_a_while(20) { 0 } else { dice.magnitude(300_000) },
        write_size,
        read_size,
        pause: if dice.once_in_a_while(20) { pause } else { Duration::ZERO },
        reads_nothing_for: if dice.once_in_a_while(15) { silence } else { Duration::ZERO },
        aborts_after: dice.once_in_a_while(10).then(|| dice.magnitude(20_000)),
    }
}
