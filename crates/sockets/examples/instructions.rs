//! TCP workloads in one thread and in virtual time. Callgrind counts their instructions. The counts
//! are equal in each run.
//!
//! ```sh
//! cargo xtask instructions
//! ```
//!
//! The first argument is the name of the workload. The second is the amount of work, in a unit that
//! depends on the workload: segments, round trips or connections. Run the program twice, with
//! different amounts. Divide the difference of the two instruction counts by the difference of the
//! amounts. The result is the cost of one unit; the cost of the set-up cancels out.

#![allow(clippy::print_stdout, reason = "the result is the output of this program")]

use linerate_link::memory::pair_with_clock;
use linerate_link::{Impair, ManualClock, MemoryConfig, MemoryLink};
use linerate_stack::{
    Budget, ConnectOptions, Host, Link, ListenHandle, ListenOptions, Stack, StackConfig, TcpHandle,
};
use linerate_tcp::{BatchContent, Config, Connection, Offload, Path, Seeds};
use linerate_units::{Clock, Duration, Instant};
use linerate_wire::{MacAddress, Segment, SeqNum};
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Number of bytes that the applications pass to each write and read.
const PIECE: usize = 64 << 10;
/// Virtual time between two turns of the hosts.
const TURN: Duration = Duration::from_micros(10);
/// Maximum number of frames that the link holds in each direction if the path has no delay.
const BATCH: usize = 64;
/// Maximum number of frames that the link holds in each direction if the path has a delay.
const IN_FLIGHT: usize = 4_096;
/// The delay of a path in one direction.
const ONE_WAY_DELAY: Duration = Duration::from_millis(5);
const PATH: Path = Path::ipv4(1_500);
const PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 9);
const IPV6: SocketAddr =
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)), 9);

type Outcome = Result<u64, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [work, amount] = &arguments[..] else {
        return Err("usage: instructions WORK AMOUNT".into());
    };
    let amount = amount.parse()?;
    let done = match work.as_str() {
        // `data-arm` runs the workload `connection`, but its instructions are counted differently:
        // `cargo xtask instructions` makes Callgrind count only `deliver_data` and the functions
        // that it calls.
        "connection" | "data-arm" => connection(amount),
        "bulk" => Pair::new(2)?.bulk(amount)?,
        "bulk-acks" => {
            Pair::with(&Config { stretch_acks: false, ..Config::modern() }, BATCH)?.bulk(amount)?
        }
        "bulk-batch" => Pair::new(BATCH)?.bulk(amount)?,
        "bulk-ipv6" => Pair::new(2)?.over_ipv6()?.bulk(amount)?,
        "bulk-batch-ipv6" => Pair::new(BATCH)?.over_ipv6()?.bulk(amount)?,
        "connect-ipv6" => Pair::new(BATCH)?.over_ipv6()?.connect(amount)?,
        "ping-pong" => Pair::new(BATCH)?.ping_pong(amount)?,
        "connect" => Pair::new(BATCH)?.connect(amount)?,
        "path" => Pair::with_delay("")?.delayed_bulk(amount)?,
        "path-loss" => Pair::with_delay("rx.loss=1%")?.delayed_bulk(amount)?,
        _ => return Err(format!("there is no work called {work}").into()),
    };
    // Prints the number of units that were done, such as segments. A bulk transfer may do more than
    // `amount`.
    println!("{done}");
    Ok(())
}

/// Runs a bulk transfer between two connections without hosts or a link: segments are passed from
/// one to the other directly. Returns the number of segments that the receiver got.
fn connection(amount: u64) -> u64 {
    let (mut sender, mut receiver) = handshake();
    let mut now = Instant::ZERO;
    let (piece, mut received) = (vec![7; PIECE], vec![0; PIECE]);
    while receiver.statistics().segments_received < amount {
        sender.write(now, &piece).expect("an open connection");
        carry(now, &mut sender, &mut receiver);
        while receiver.read(now, &mut received).is_ok_and(|count| count > 0) {
            // `black_box` prevents an optimising compiler from removing the copy into `received`.
            std::hint::black_box(&received);
        }
        carry(now, &mut receiver, &mut sender);
        now += TURN;
    }
    receiver.statistics().segments_received
}

fn handshake() -> (Connection, Connection) {
    let seeds = |number| Seeds { initial_sequence: SeqNum::new(number), timestamp_offset: 0 };
    let now = Instant::ZERO;
    let mut frame = [0; 1_480];
    let mut sender = Connection::connect(Config::modern(), PATH, seeds(1), now);
    let syn = sender.driver().poll_transmit(now, Offload::None, &mut frame).expect("a SYN");
    let segment = Segment::parse(&frame[..syn.length]).expect("a segment");
    let mut receiver = Connection::accept(Config::modern(), PATH, seeds(2), &segment, now);
    carry(now, &mut receiver, &mut sender);
    carry(now, &mut sender, &mut receiver);
    (sender, receiver)
}

/// Delivers all segments that `from` has to send to `to`.
fn carry(now: Instant, from: &mut Connection, to: &mut Connection) {
    let mut frame = [0; 1_480];
    while let Some(sent) = from.driver().poll_transmit(now, Offload::None, &mut frame) {
        let segment = Segment::parse(&frame[..sent.length]).expect("a segment");
        deliver(now, to, &segment);
        // If the connection has more segments for the same burst, they are delivered, too. Such a
        // segment has a copy of the first segment's header with another sequence number.
        while let Some(next) = from.driver().poll_batch(now, sent.header)
            && next.content == BatchContent::Data
        {
            let frame = &mut frame[..sent.header + next.step as usize];
            for number in 0..next.count {
                let seq = next.first + next.step * number;
                from.copy_of_batch(seq, &mut frame[sent.header..]);
                frame[4..8].copy_from_slice(&seq.number().to_be_bytes());
                deliver(now, to, &Segment::parse(frame).expect("a segment"));
            }
            from.driver().commit_batch(now, next.content, next.count);
        }
    }
}

fn deliver(now: Instant, to: &mut Connection, segment: &Segment<'_>) {
    if segment.payload.is_empty() {
        let _ = to.driver().handle_segment(now, segment);
    } else {
        deliver_data(now, to, segment);
    }
}

/// Processes a data segment. Acknowledgements do not use this function, so its instructions can be
/// counted separately.
#[inline(never)]
fn deliver_data(now: Instant, to: &mut Connection, segment: &Segment<'_>) {
    let _ = to.driver().handle_segment(now, segment);
}

type Near = MemoryLink<ManualClock>;
type Far = Impair<Near, ManualClock>;

/// Two hosts connected by a memory link. In a `Pair<Far>`, the link of the right host is impaired.
struct Pair<L> {
    left: Host<Near>,
    right: Host<L>,
    listener: ListenHandle,
    server: SocketAddr,
    clock: ManualClock,
}

impl Pair<Near> {
    /// Creates two hosts on a link without impairments. The right host receives up to
    /// `frames_before_answer` frames in a turn before it acknowledges them.
    fn new(frames_before_answer: usize) -> Result<Self, Box<dyn Error>> {
        Self::with(&Config::modern(), frames_before_answer)
    }

    /// Creates two hosts with this TCP configuration, on a link without impairments. The right host
    /// receives up to `frames_before_answer` frames in a turn before it acknowledges them.
    fn with(rules: &Config, frames_before_answer: usize) -> Result<Self, Box<dyn Error>> {
        let clock = ManualClock::new(Instant::ZERO);
        let config = MemoryConfig { capacity: BATCH, ..MemoryConfig::default() };
        let (left, right) = pair_with_clock(config, clock.clone())?;
        let (left, mut right) =
            (host(1, left, rules, BATCH)?, host(2, right, rules, frames_before_answer)?);
        let listener = right.stack_mut().tcp_listen(PORT, &ListenOptions::default())?;
        Ok(Self { left, right, listener, server: PORT, clock })
    }
}

impl Pair<Far> {
    /// Creates two hosts for [`Pair::delayed_bulk`]. The link of the right host has the given
    /// `impairments`; the delay is simulated by the clock.
    fn with_delay(impairments: &str) -> Result<Self, Box<dyn Error>> {
        let clock = ManualClock::new(Instant::ZERO);
        let config = MemoryConfig { capacity: IN_FLIGHT, ..MemoryConfig::default() };
        let (left, right) = pair_with_clock(config, clock.clone())?;
        let right = Impair::with_clock(right, impairments.parse()?, 1, clock.clone());
        let rules = &Config::modern();
        let (left, mut right) = (host(1, left, rules, IN_FLIGHT)?, host(2, right, rules, 2)?);
        let listener = right.stack_mut().tcp_listen(PORT, &ListenOptions::default())?;
        Ok(Self { left, right, listener, server: PORT, clock })
    }

    /// Runs a bulk transfer over a path with a delay. The unit of `amount` is 1,448 bytes, the data
    /// of one segment.
    fn delayed_bulk(&mut self, amount: u64) -> Outcome {
        let (client, server) = self.open()?;
        let (piece, mut received) = (vec![7; PIECE], vec![0; PIECE]);
        let mut read = 0;
        while read < amount * 1_448 {
            self.clock.advance(ONE_WAY_DELAY);
            let now = self.clock.now();
            turn(&mut self.left, now)?;
            while self.left.stack_mut().tcp_write(now, client, &piece)? > 0 {}
            turn(&mut self.left, now)?;
            self.clock.advance(ONE_WAY_DELAY);
            let now = self.clock.now();
            while turn(&mut self.right, now)? > 0 {
                while let Ok(count) = self.right.stack_mut().tcp_read(now, server, &mut received) {
                    read += count as u64;
                }
            }
        }
        Ok(read / 1_448)
    }
}

impl<L: Link> Pair<L> {
    /// Makes the connections that are opened later use IPv6.
    fn over_ipv6(mut self) -> Result<Self, Box<dyn Error>> {
        self.listener = self.right.stack_mut().tcp_listen(IPV6, &ListenOptions::default())?;
        self.server = IPV6;
        Ok(self)
    }

    /// Advances the clock by [`TURN`], and returns the time.
    fn later(&self) -> Instant {
        self.clock.advance(TURN);
        self.clock.now()
    }

    fn open(&mut self) -> Result<(TcpHandle, TcpHandle), Box<dyn Error>> {
        let now = self.later();
        let client =
            self.left.stack_mut().tcp_connect(now, self.server, &ConnectOptions::default())?;
        loop {
            let now = self.later();
            turn(&mut self.left, now)?;
            turn(&mut self.right, now)?;
            if let Some((server, _)) = self.right.stack_mut().tcp_accept(self.listener) {
                return Ok((client, server));
            }
        }
    }

    /// Runs a bulk transfer until the server has received at least `amount` segments. Returns how
    /// many it has received.
    fn bulk(&mut self, amount: u64) -> Outcome {
        let (client, server) = self.open()?;
        let (piece, mut received) = (vec![7; PIECE], vec![0; PIECE]);
        let segments =
            |host: &Host<L>| host.stack().tcp(server).map(|end| end.statistics().segments_received);
        while segments(&self.right).is_some_and(|received| received < amount) {
            let now = self.later();
            while self.left.stack_mut().tcp_write(now, client, &piece)? > 0 {}
            turn(&mut self.left, now)?;
            while turn(&mut self.right, now)? > 0 {
                while self.right.stack_mut().tcp_read(now, server, &mut received).is_ok() {}
            }
        }
        segments(&self.right).ok_or_else(|| "the connection is gone".into())
    }

    /// Makes `amount` round trips: the client sends one byte to the server, and the server sends
    /// one byte back.
    fn ping_pong(&mut self, amount: u64) -> Outcome {
        let (client, server) = self.open()?;
        let now = self.later();
        self.left
            .stack_mut()
            .tcp_configure(now, client, |connection| connection.set_no_delay(true))?;
        self.right
            .stack_mut()
            .tcp_configure(now, server, |connection| connection.set_no_delay(true))?;
        for _ in 0..amount {
            let now = self.later();
            pass_byte(now, (&mut self.left, client), (&mut self.right, server))?;
            pass_byte(now, (&mut self.right, server), (&mut self.left, client))?;
        }
        Ok(amount)
    }

    /// Opens and closes `amount` connections. The server closes first, so it has the TIME-WAIT
    /// record.
    fn connect(&mut self, amount: u64) -> Outcome {
        for _ in 0..amount {
            let (client, server) = self.open()?;
            let now = self.later();
            self.right.stack_mut().tcp_close(now, server)?;
            turn(&mut self.right, now)?;
            turn(&mut self.left, now)?;
            self.left.stack_mut().tcp_close(now, client)?;
            while turn(&mut self.left, now)? + turn(&mut self.right, now)? > 0 {}
        }
        Ok(amount)
    }
}

fn host<L: Link>(
    number: u8,
    link: L,
    rules: &Config,
    receive: usize,
) -> Result<Host<L>, Box<dyn Error>> {
    let address = format!("192.0.2.{number}/24").parse()?;
    let mut config = StackConfig::new(MacAddress::new([2, 0, 0, 0, 0, number]), address);
    config.addresses.push(format!("2001:db8::{number}/64").parse()?);
    // With this short MSL, TIME-WAIT records expire within milliseconds. With the default MSL, they
    // would accumulate during a run.
    config.tcp = Config { msl: Duration::from_millis(1), ..*rules };
    let budget = Budget { receive, ..Budget::default() };
    Ok(Host::new(Stack::new(config, [number; 32]), link).with_budget(budget))
}

/// Executes one turn of a host, and returns the number of frames received.
fn turn(host: &mut Host<impl Link>, now: Instant) -> Result<usize, Box<dyn Error>> {
    let turn = host.turn(now)?;
    while host.stack_mut().poll_event().is_some() {}
    Ok(turn.received)
}

/// Writes one byte at one host, and reads it at the other.
fn pass_byte(
    now: Instant,
    (from, writer): (&mut Host<impl Link>, TcpHandle),
    (to, reader): (&mut Host<impl Link>, TcpHandle),
) -> Result<(), Box<dyn Error>> {
    from.stack_mut().tcp_write(now, writer, b"?")?;
    loop {
        turn(from, now)?;
        turn(to, now)?;
        if to.stack_mut().tcp_read(now, reader, &mut [0]).is_ok() {
            return Ok(());
        }
    }
}
