//! The hosts, the paths between them, and the packets in transit.

use super::addresses::{IpVersions, MOST_HOSTS, config, host_at};
use super::driver::{Clockwork, HostDriver};
use super::packet::{Packet, Verdict};
use super::port::{Port, capabilities};
use super::schedule::Schedule;
use crate::error::End;
use crate::host::{Net, State};
use linerate_link::capture_file::{CaptureWriter, Direction, Record};
use linerate_link::impair::{Held, ImpairCounters, Impairment, Impairments, Lane};
use linerate_stack::{Budget, Medium, PlainFrame, RxFrame, Stack};
use linerate_units::{Duration, Instant};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Write};
use std::mem;
use std::sync::Arc;
use std::task::Waker;

/// The budget of one turn. It is small, so that the packets of a turn stay in the processor's
/// cache.
const BUDGET: Budget = Budget { receive: 64, timers: 64, transmit: 64 };

/// A summary of the packets that hosts have sent. Runs with equal traces have sent the same
/// packets.
///
/// ```
/// use linerate_tokio::net::TcpStream;
/// use linerate_tokio::sim::{Network, Trace};
///
/// fn trace(seed: u64) -> Trace {
///     let network = Network::builder().seed(seed).build();
///     let _server = network.host("server");
///     network.host("client").run(async { TcpStream::connect("server:80").await.unwrap_err() });
///     network.trace()
/// }
/// assert_eq!(trace(1), trace(1));
/// assert_ne!(trace(1), trace(2), "sequence numbers and ports follow from the seed");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Trace {
    /// Number of packets.
    pub packets: u64,
    /// Hash of the seed, and of the bytes, times and senders of the packets.
    pub hash: u64,
}

/// The counters of a path.
pub type PathCounters = ImpairCounters;

/// A rule: a function that decides about each packet before the packet enters its path.
pub(super) type Rule = Box<dyn FnMut(&Packet<'_>) -> Verdict + Send>;

/// The time after which a packet held for reordering enters its path, even if too few packets have
/// overtaken it.
const REORDER_WITHIN: Duration = Duration::from_secs(1);

/// A packet that a rule holds back before it enters its path.
struct HeldBack {
    from: usize,
    to: usize,
    /// Number of packets that must still be sent on the path before this one is released ahead of
    /// its time. Zero if only the time releases it.
    passes: u32,
    bytes: Vec<u8>,
}

/// A packet that has passed its path and waits for the next turn of its receiver, and the number of
/// the path.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) frame: Held,
    path: usize,
}

impl Arrived {
    /// Returns the packet as a frame without offload metadata, because no path adds any.
    pub(super) fn frame(&self) -> PlainFrame<'_> {
        let RxFrame { bytes, arrived, .. } = self.frame.frame();
        PlainFrame { bytes, arrived }
    }
}

struct Member {
    name: String,
    net: Net,
    inbox: VecDeque<Arrived>,
}

struct PathState {
    lane: Lane,
    to: usize,
    is_partitioned: bool,
}

/// All paths, and the rules that apply to packets before they enter a path.
pub(super) struct Paths {
    seed: u64,
    link: Impairments,
    /// The number of hosts.
    hosts: usize,
    /// The number of each path, by its sender and receiver. A path is added when it is first used,
    /// changed or queried.
    numbers: BTreeMap<(usize, usize), usize>,
    /// For each sender, the receiver of its most recent packet, and the number of the path to that
    /// receiver. It saves the look-up in `numbers` for consecutive packets to one receiver.
    recent: Vec<(usize, usize)>,
    paths: Vec<PathState>,
    /// The time of the next arrival on each path.
    due: Schedule,
    rules: Vec<(u64, Rule)>,
    /// The packets that rules have held back, by the time at which they enter their path, and by
    /// the number of the packet.
    held_back: BTreeMap<(Instant, u64), HeldBack>,
    capture: Option<CaptureWriter>,
    packets: u64,
    hash: u64,
}

/// The state of a network.
pub(super) struct World {
    clockwork: Arc<Clockwork>,
    versions: IpVersions,
    members: Vec<Member>,
    paths: Paths,
    /// The time at which each host needs its next turn, if no packet arrives before.
    deadlines: Schedule,
    /// A scratch buffer: the hosts that need a turn.
    active: Vec<usize>,
    rules_added: u64,
}

impl World {
    pub(super) fn new(
        seed: u64,
        link: Impairments,
        versions: IpVersions,
        capture: Option<CaptureWriter>,
        clockwork: Arc<Clockwork>,
    ) -> Self {
        let paths = Paths {
            seed,
            link,
            hosts: 0,
            numbers: BTreeMap::new(),
            recent: Vec::new(),
            paths: Vec::new(),
            due: Schedule::default(),
            rules: Vec::new(),
            held_back: BTreeMap::new(),
            capture,
            packets: 0,
            hash: seed,
        };
        Self {
            clockwork,
            versions,
            members: Vec::new(),
            paths,
            deadlines: Schedule::default(),
            active: Vec::new(),
            rules_added: 0,
        }
    }

    /// Returns the host with this name and its number. Adds the host if there is none.
    ///
    /// # Panics
    /// If no address is left.
    pub(super) fn host(&mut self, name: &str) -> (Net, usize) {
        if let Some(number) = self.members.iter().position(|member| member.name == name) {
            return (self.members[number].net.clone(), number);
        }
        let number = self.members.len();
        assert!(number < MOST_HOSTS, "a network has at most 65,000 hosts");
        let config = config(self.versions, number);
        let tcp_config = config.tcp;
        let mut stack = Stack::new(config, seed_of(self.paths.seed, number as u64));
        stack.attach(capabilities());
        let driver = HostDriver { clockwork: Arc::clone(&self.clockwork), host: number };
        let net = Net::new(Arc::new(Mutex::new(State::new(stack, &tcp_config))), Box::new(driver));
        self.clockwork.add_name(name, self.versions.of(number));
        self.paths.hosts += 1;
        if let Some(capture) = &mut self.paths.capture {
            capture.add_interface(name, &capabilities());
        }
        self.members.push(Member {
            name: name.to_owned(),
            net: net.clone(),
            inbox: VecDeque::new(),
        });
        (net, number)
    }

    /// Delivers the packets that arrive at `now`, and runs one turn of every host that needs one.
    /// Returns false if no host needed a turn. Appends the tasks to wake to `woken`.
    pub(super) fn step(&mut self, now: Instant, woken: &mut Vec<Waker>) -> bool {
        let mut active = mem::take(&mut self.active);
        self.clockwork.take_due(&mut active);
        self.paths.deliver(now, |arrived, to| {
            if active.last() != Some(&to) {
                active.push(to);
            }
            self.members[to].inbox.push_back(arrived);
        });
        while let Some(host) = self.deadlines.pop_due(now) {
            active.push(host);
        }
        // Hosts take their turns in ascending order of their numbers, not in the order in which
        // they became active. So runs are repeatable.
        active.sort_unstable();
        active.dedup();
        for &host in &active {
            self.turn(host, now, woken);
        }
        let has_acted = !active.is_empty();
        active.clear();
        self.active = active;
        has_acted
    }

    fn turn(&mut self, host: usize, now: Instant, woken: &mut Vec<Waker>) {
        let Self { clockwork, members, paths, deadlines, .. } = self;
        let member = &mut members[host];
        let inbox = &mut member.inbox;
        let (next, more) = member.net.turn(woken, |state| {
            let mut port = Port { host, inbox, paths, now };
            // A port never fails, so this is always `Ok`.
            if let Ok(turn) = state.stack.turn(&mut port, BUDGET, now) {
                state.last = turn;
            }
            (state.last.next, state.last.more)
        });
        if more || !member.inbox.is_empty() {
            clockwork.mark_due(host);
        }
        deadlines.set(host, next);
    }

    /// Ends all hosts after a panic, which may have left one of them inconsistent.
    pub(super) fn end(&mut self) {
        for member in &self.members {
            member.net.turn(&mut Vec::new(), |state| state.mark_ended(End::Panicked));
        }
    }

    /// Returns the time of the next event of a host or a path.
    pub(super) fn next_event(&mut self) -> Instant {
        let held = self.paths.held_back.first_key_value();
        let held = held.map_or(Instant::NEVER, |(&(at, _), _)| at);
        self.deadlines.first().min(self.paths.due.first()).min(held)
    }

    /// Changes the impairment of the path from one host to another.
    #[allow(clippy::large_types_passed_by_value, reason = "called rarely")]
    pub(super) fn set_path(&mut self, from: usize, to: usize, impairment: Impairment) {
        self.paths.between(from, to).lane.set_impairment(impairment);
    }

    pub(super) fn partition(&mut self, one: usize, other: usize, is_partitioned: bool) {
        for (from, to) in [(one, other), (other, one)] {
            self.paths.between(from, to).is_partitioned = is_partitioned;
        }
    }

    pub(super) fn path_counters(&mut self, from: usize, to: usize) -> PathCounters {
        *self.paths.between(from, to).lane.counters()
    }

    pub(super) fn add_rule(&mut self, rule: Rule) -> u64 {
        self.rules_added += 1;
        self.paths.rules.push((self.rules_added, rule));
        self.rules_added
    }

    pub(super) fn remove_rule(&mut self, number: u64) -> Option<Rule> {
        let at = self.paths.rules.iter().position(|&(known, _)| known == number)?;
        Some(self.paths.rules.remove(at).1)
    }

    pub(super) const fn trace(&self) -> Trace {
        Trace { packets: self.paths.packets, hash: self.paths.hash }
    }

    pub(super) fn flush_capture(&mut self) {
        if let Some(capture) = &mut self.paths.capture {
            capture.flush();
        }
    }

    pub(super) fn netstat(&self) -> String {
        let mut text = String::new();
        for member in &self.members {
            for entry in member.net.sockets() {
                let _ = writeln!(text, "{:<12} {entry}", member.name);
            }
        }
        text
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("hosts", &self.members.len()).finish_non_exhaustive()
    }
}

impl Paths {
    /// Processes a packet that a host sends: applies the rules, and lets the packet enter its path.
    pub(super) fn carry(&mut self, now: Instant, from: usize, bytes: &[u8]) {
        self.packets += 1;
        self.trace(now, from, bytes);
        self.record(now, from, Direction::Sent, bytes);
        let Some(packet) = Packet::new(now.since(Instant::ZERO).into(), bytes) else { return };
        let verdicts = self.rules.iter_mut().map(|(_, rule)| rule(&packet));
        let verdict = verdicts.into_iter().find(|verdict| *verdict != Verdict::Pass);
        // A packet to an address that no host has is dropped without an answer, as in a real
        // network.
        let to = host_at(packet.destination).filter(|&to| to < self.hosts);
        let Some(to) = to else { return };
        match verdict {
            None => self.enter(now, from, to, bytes),
            Some(verdict) => self.treat(now, from, to, &packet, verdict),
        }
    }

    /// Executes the verdict of a rule about a packet.
    fn treat(
        &mut self,
        now: Instant,
        from: usize,
        to: usize,
        packet: &Packet<'_>,
        verdict: Verdict,
    ) {
        let bytes = packet.bytes;
        let mut hold = |span: Duration, passes| {
            let held = HeldBack { from, to, passes, bytes: bytes.to_vec() };
            self.held_back.insert((now + span, self.packets), held);
        };
        match verdict {
            Verdict::Drop => {}
            Verdict::Pass | Verdict::Reorder(0) => self.enter(now, from, to, bytes),
            Verdict::Delay(span) => hold(span.into(), 0),
            Verdict::Reorder(passes) => hold(REORDER_WITHIN, passes),
            Verdict::Duplicate => {
                self.enter(now, from, to, bytes);
                self.enter(now, from, to, bytes);
            }
            Verdict::Corrupt => {
                let mut bytes = bytes.to_vec();
                let header = bytes.len() - packet.payload().len();
                let draw = mix(self.hash, self.packets);
                if let Some(above) = bytes.get_mut(header..).filter(|above| !above.is_empty()) {
                    let at = usize::try_from(draw >> 8).unwrap_or(0) % above.len();
                    above[at] ^= 1 << (draw % 8);
                }
                self.enter(now, from, to, &bytes);
            }
        }
    }

    /// Lets a packet enter its path. It overtakes the packets that rules hold back on this path;
    /// those that enough packets have overtaken enter too, and overtake the others.
    fn enter(&mut self, now: Instant, from: usize, to: usize, bytes: &[u8]) {
        let mut uncounted = u32::from(self.send(now, from, to, bytes));
        while uncounted > 0 && !self.held_back.is_empty() {
            uncounted -= 1;
            for held in self.overtake(from, to) {
                uncounted += u32::from(self.send(now, from, to, &held.bytes));
            }
        }
    }

    /// Counts a packet that overtakes all packets held back from `from` to `to`. Removes and
    /// returns those that enough packets have overtaken.
    fn overtake(&mut self, from: usize, to: usize) -> Vec<HeldBack> {
        let is_released = |held: &mut HeldBack| {
            if held.passes == 0 || (held.from, held.to) != (from, to) {
                return false;
            }
            held.passes -= 1;
            held.passes == 0
        };
        let released = self.held_back.extract_if(.., |_, held| is_released(held));
        released.map(|(_, held)| held).collect()
    }

    /// Sends a packet on its path. A partitioned path drops the packet. Returns whether the path
    /// has taken it.
    fn send(&mut self, now: Instant, from: usize, to: usize, bytes: &[u8]) -> bool {
        let number = self.number(from, to);
        let path = &mut self.paths[number];
        let is_open = !path.is_partitioned;
        if is_open {
            path.lane.send(RxFrame::plain(bytes, now), Medium::Ip, now);
            self.schedule(number, now);
        }
        is_open
    }

    /// Lets packets that rules have held back enter their paths, if their time has come. Then
    /// passes all packets that arrive at `now` to `hand_over`, with their receivers.
    fn deliver(&mut self, now: Instant, mut hand_over: impl FnMut(Arrived, usize)) {
        while let Some(first) = self.held_back.first_entry()
            && first.key().0 <= now
        {
            let held = first.remove();
            self.enter(now, held.from, held.to, &held.bytes);
        }
        while let Some(number) = self.due.pop_due(now) {
            let path = &mut self.paths[number];
            path.lane.release(now);
            while let Some(frame) = self.paths[number].lane.pop() {
                let to = self.paths[number].to;
                self.record(now, to, Direction::Received, frame.frame().bytes);
                hand_over(Arrived { frame, path: number }, to);
            }
            self.schedule(number, now);
        }
    }

    /// Updates the scheduled time of the next arrival on a path.
    fn schedule(&mut self, number: usize, now: Instant) {
        let lane = &self.paths[number].lane;
        self.due.set(number, if lane.has_ready() { now } else { lane.next_release() });
    }

    /// Returns the buffer of a packet to its path, for reuse.
    pub(super) fn recycle(&mut self, arrived: Arrived) {
        self.paths[arrived.path].lane.recycle(arrived.frame);
    }

    /// Returns the path from one host to another.
    fn between(&mut self, from: usize, to: usize) -> &mut PathState {
        let number = self.number(from, to);
        &mut self.paths[number]
    }

    /// Returns the number of a path, which is added if there is none. The random decisions of the
    /// path depend on its sender and receiver, not on the order in which paths are added.
    fn number(&mut self, from: usize, to: usize) -> usize {
        let Self { numbers, recent, paths, seed, link, .. } = self;
        if let Some(&(receiver, number)) = recent.get(from)
            && receiver == to
        {
            return number;
        }
        let number = *numbers.entry((from, to)).or_insert_with(|| {
            let impairment = if from <= to { link.transmit } else { link.receive };
            let seed = mix(mix(*seed, from as u64 + 1), to as u64 + 1);
            paths.push(PathState { lane: Lane::new(impairment, seed), to, is_partitioned: false });
            paths.len() - 1
        });
        if recent.len() <= from {
            recent.resize(from + 1, (usize::MAX, 0));
        }
        recent[from] = (to, number);
        number
    }

    fn record(&mut self, now: Instant, host: usize, direction: Direction, bytes: &[u8]) {
        if let Some(capture) = &mut self.capture {
            let interface = u32::try_from(host).unwrap_or(u32::MAX);
            let time: Duration = now.since(Instant::ZERO);
            capture.write(&Record { interface, time, direction, bytes });
        }
    }

    /// Adds a packet to the hash that [`Trace`] reports.
    fn trace(&mut self, now: Instant, from: usize, bytes: &[u8]) {
        self.hash = digest(mix(mix(self.hash, now.as_nanos()), from as u64), bytes);
    }
}

impl fmt::Debug for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paths").field("paths", &self.paths.len()).finish_non_exhaustive()
    }
}

/// Mixes a number into a hash. Not cryptographic: it serves to compare runs and to derive seeds.
const fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 32)
}

/// Adds bytes to a hash. Uses four independent lanes: in a single chain, each multiplication would
/// wait for the previous one.
fn digest(hash: u64, bytes: &[u8]) -> u64 {
    let mut lanes = [1, 2, 3, 4].map(|lane| mix(hash, lane));
    let (blocks, rest) = bytes.as_chunks::<64>();
    for block in blocks {
        for (lane, pair) in lanes.iter_mut().zip(block.as_chunks::<16>().0) {
            let pair = u128::from_le_bytes(*pair);
            let [low, high] = [pair, pair >> 64].map(low_half);
            let product = u128::from(*lane ^ low) * u128::from(high ^ 0x9E37_79B9_7F4A_7C15);
            *lane = lane.rotate_left(23) ^ low_half(product) ^ low_half(product >> 64);
        }
    }
    let mut hash = lanes.into_iter().fold(mix(hash, bytes.len() as u64), mix);
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    for &byte in rest {
        hash = mix(hash, byte.into());
    }
    hash
}

#[allow(clippy::cast_possible_truncation, reason = "the other half is taken separately")]
const fn low_half(number: u128) -> u64 {
    number as u64
}

/// Returns the seed of a host, derived from the seed of the network and the number of the host.
fn seed_of(seed: u64, host: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    let mut word = mix(seed, host);
    for chunk in bytes.chunks_exact_mut(8) {
        word = mix(word, host + 1);
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
