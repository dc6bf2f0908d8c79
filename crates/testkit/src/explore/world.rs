//! The description of a random world: its hosts or connections, its network, and its applications.

use crate::{Line, Narrow, Network};
use linerate_stack::Medium;
use linerate_tcp::{Config, CongestionName, EcnRule, KeepAlive, PathSearch, Profile};
use linerate_units::{Duration, Rate};
use oorandom::Rand64;

/// The complete description of a random world.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// Seed of the world's random faults and choices.
    pub seed: u64,
    /// The two hosts; `None` if the world has two connections without hosts. Each of these
    /// connections is compared with a twin without header prediction.
    pub hosts: Option<Hosts>,
    /// TCP configurations of the active and of the passive endpoint.
    pub configs: [Config; 2],
    /// The simulated network between the two endpoints.
    pub network: Network,
    /// The behaviour of the two applications of each connection.
    pub connections: Vec<[Habit; 2]>,
    /// In a world without hosts: `Some` if the client has a Fast Open cookie, with true if the
    /// server accepts it.
    pub fast_open: Option<bool>,
    /// In a world without hosts: number of forged segments for every thousand that arrive.
    pub forgery: u32,
}

/// Properties of the two hosts and their links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// Whether the links carry Ethernet frames or IP packets.
    pub medium: Medium,
    /// Size of the largest IP packet in bytes.
    pub mtu: usize,
    /// Number of frames that the send queue of a link holds.
    pub capacity: usize,
    /// Time between two turns of a host.
    pub pause: Duration,
}

/// The behaviour of a random application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habit {
    /// Number of bytes to send.
    pub bytes: usize,
    /// Number of bytes of each write.
    pub write_size: usize,
    /// Number of bytes of each read.
    pub read_size: usize,
    /// Time between two actions. Zero means that the application acts at every event.
    pub pause: Duration,
    /// Time from the start during which the application reads nothing.
    pub reads_nothing_for: Duration,
    /// Number of bytes written, or number of bytes read, at which the application resets the
    /// connection; `None` if it never does.
    pub aborts_after: Option<usize>,
}

/// Smallest maximum length of frames that a random path has, in bytes. Every path takes IP packets
/// of 576 bytes. An Ethernet header is added to their length.
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

    /// Draws a number from 1 to `most`. Its order of magnitude is uniformly distributed, so that
    /// small and large numbers are equally frequent.
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
    /// Functions that simplify a world. Shrinking a failure tries them one by one.
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

    /// Draws the world with number `number` in the sequence of `seed`.
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

    /// Adds a black hole to the path, which drops long packets. It is added only if both endpoints
    /// search for the path MTU, because others would not recover.
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

    /// Makes accurate ECN and congestion marks frequent in many worlds. This method draws its
    /// numbers after those of older properties, so that a given seed still yields the previous
    /// values of these properties.
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
        // The smallest of these sizes limits the bytes that one step of the transfer can move. More
        // than a thousand steps test nothing new, and with steps of one byte they are slow. So the
        // transfer is limited to the bytes of a thousand steps.
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
