//! One work of a TCP, an amount of it, in one thread and in virtual time: made to be counted by
//! callgrind, which counts the same each time.
//!
//! ```sh
//! cargo xtask instructions
//! ```
//!
//! The difference between two amounts, divided by the difference in units, leaves out what is done
//! once. The first argument is the work, the second the amount.

#![allow(clippy::print_stdout, reason = "what was done is what this program says")]

use linerate_link::memory::pair_with_clock;
use linerate_link::{Impair, ManualClock, MemoryConfig, MemoryLink};
use linerate_stack::{
    Budget, ConnectOptions, Host, Link, ListenHandle, ListenOptions, Stack, StackConfig, TcpHandle,
};
use linerate_tcp::{Config, Connection, Path, Seeds};
use linerate_units::{Clock, Duration, Instant};
use linerate_wire::{MacAddress, Segment, SeqNum};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddrV4};

/// What the application writes and reads at a time.
const PIECE: usize = 64 << 10;
/// A turn of the two ends.
const TURN: Duration = Duration::from_micros(10);
/// Frames that the link holds each way.
const BATCH: usize = 64;
/// Frames that are under way at most on a path of ten milliseconds.
const UNDER_WAY: usize = 4_096;
/// How long they are.
const WAY: Duration = Duration::from_millis(5);
const PATH: Path = Path::ipv4(1_500);
const PORT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 2), 9);

type Outcome = Result<u64, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [work, amount] = &arguments[..] else {
        return Err("usage: instructions WORK AMOUNT".into());
    };
    let amount = amount.parse()?;
    let done = match work.as_str() {
        // The second is the same, of which only what `deliver_data` leads to is counted.
        "connection" | "data-arm" => connection(amount),
        "bulk" => Pair::new(2)?.bulk(amount)?,
        "bulk-acks" => {
            Pair::with(&Config { stretch_acks: false, ..Config::modern() }, BATCH)?.bulk(amount)?
        }
        "bulk-batch" => Pair::new(BATCH)?.bulk(amount)?,
        "ping-pong" => Pair::new(BATCH)?.ping_pong(amount)?,
        "connect" => Pair::new(BATCH)?.connect(amount)?,
        "path" => Pair::far_apart("")?.bulk_far_away(amount)?,
        "path-loss" => Pair::far_apart("rx.loss=1%")?.bulk_far_away(amount)?,
        _ => return Err(format!("there is no work called {work}").into()),
    };
    // The exact number of units, which a bulk transfer may pass.
    println!("{done}");
    Ok(())
}

/// A bulk transfer between two connections with nothing between them, in segments.
fn connection(amount: u64) -> u64 {
    let (mut sender, mut receiver) = handshake();
    let mut now = Instant::ZERO;
    let (piece, mut heard) = (vec![7; PIECE], vec![0; PIECE]);
    while receiver.statistics().segments_received < amount {
        sender.write(now, &piece).expect("an open connection");
        carry(now, &mut sender, &mut receiver);
        while receiver.read(now, &mut heard).is_ok_and(|count| count > 0) {
            // Or a compiler that sees all of it leaves out the copy.
            std::hint::black_box(&heard);
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
    let syn = sender.poll_transmit(now, &mut frame).expect("a SYN");
    let segment = Segment::parse(&frame[..syn.length]).expect("a segment");
    let mut receiver = Connection::accept(Config::modern(), PATH, seeds(2), &segment, now);
    carry(now, &mut receiver, &mut sender);
    carry(now, &mut sender, &mut receiver);
    (sender, receiver)
}

/// Everything that `from` has to say reaches `to`.
fn carry(now: Instant, from: &mut Connection, to: &mut Connection) {
    let mut frame = [0; 1_480];
    while let Some(sent) = from.poll_transmit(now, &mut frame) {
        let segment = Segment::parse(&frame[..sent.length]).expect("a segment");
        hear(now, to, &segment);
        // The segments of a burst, as a host writes them: the same header with the next number.
        while let Some(next) = from.poll_burst(now) {
            let frame = &mut frame[..sent.header + next.length as usize];
            for number in 0..next.segments {
                let seq = next.seq + next.length * number;
                from.copy_of_burst(seq, &mut frame[sent.header..]);
                frame[4..8].copy_from_slice(&seq.number().to_be_bytes());
                hear(now, to, &Segment::parse(frame).expect("a segment"));
            }
            from.note_burst(next.segments);
        }
    }
}

fn hear(now: Instant, to: &mut Connection, segment: &Segment<'_>) {
    if segment.payload.is_empty() {
        let _ = to.handle_segment(now, segment);
    } else {
        deliver_data(now, to, segment);
    }
}

/// A function of its own, so that what data take is counted apart from what their acknowledgements take.
#[inline(never)]
fn deliver_data(now: Instant, to: &mut Connection, segment: &Segment<'_>) {
    let _ = to.handle_segment(now, segment);
}

type Near = MemoryLink<ManualClock>;
type Far = Impair<Near, ManualClock>;

/// Two hosts on a memory link, or on what the right one's link makes of it.
struct Pair<L> {
    left: Host<Near>,
    right: Host<L>,
    listener: ListenHandle,
    clock: ManualClock,
}

impl Pair<Near> {
    /// The right host takes in so many frames before it may answer.
    fn new(frames_before_answer: usize) -> Result<Self, Box<dyn Error>> {
        Self::with(&Config::modern(), frames_before_answer)
    }

    /// The same with such a TCP.
    fn with(rules: &Config, frames_before_answer: usize) -> Result<Self, Box<dyn Error>> {
        let clock = ManualClock::new(Instant::ZERO);
        let config = MemoryConfig { capacity: BATCH, ..MemoryConfig::default() };
        let (left, right) = pair_with_clock(config, clock.clone())?;
        let (left, mut right) =
            (host(1, left, rules, BATCH)?, host(2, right, rules, frames_before_answer)?);
        let listener = right.stack_mut().tcp_listen(PORT, &ListenOptions::default())?;
        Ok(Self { left, right, listener, clock })
    }
}

impl Pair<Far> {
    /// Between the hosts lies a path that does so to what the right one receives and sends.
    fn far_apart(impairments: &str) -> Result<Self, Box<dyn Error>> {
        let clock = ManualClock::new(Instant::ZERO);
        let config = MemoryConfig { capacity: UNDER_WAY, ..MemoryConfig::default() };
        let (left, right) = pair_with_clock(config, clock.clone())?;
        let right = Impair::with_clock(right, impairments.parse()?, 1, clock.clone());
        let rules = &Config::modern();
        let (left, mut right) = (host(1, left, rules, UNDER_WAY)?, host(2, right, rules, 2)?);
        let listener = right.stack_mut().tcp_listen(PORT, &ListenOptions::default())?;
        Ok(Self { left, right, listener, clock })
    }

    /// A bulk transfer in which all that one end sends arrives at the other some time later.
    fn bulk_far_away(&mut self, amount: u64) -> Outcome {
        let (client, server) = self.open()?;
        let (piece, mut heard) = (vec![7; PIECE], vec![0; PIECE]);
        let mut read = 0;
        while read < amount * 1_448 {
            self.clock.advance(WAY);
            let now = self.clock.now();
            turn(&mut self.left, now)?;
            while self.left.stack_mut().tcp_write(now, client, &piece)? > 0 {}
            turn(&mut self.left, now)?;
            self.clock.advance(WAY);
            let now = self.clock.now();
            while turn(&mut self.right, now)? > 0 {
                while let Ok(count) = self.right.stack_mut().tcp_read(now, server, &mut heard) {
                    read += count as u64;
                }
            }
        }
        Ok(read / 1_448)
    }
}

impl<L: Link> Pair<L> {
    /// The next instant.
    fn later(&self) -> Instant {
        self.clock.advance(TURN);
        self.clock.now()
    }

    fn open(&mut self) -> Result<(TcpHandle, TcpHandle), Box<dyn Error>> {
        let now = self.later();
        let client = self.left.stack_mut().tcp_connect(now, PORT, &ConnectOptions::default())?;
        loop {
            let now = self.later();
            turn(&mut self.left, now)?;
            turn(&mut self.right, now)?;
            if let Some((server, _)) = self.right.stack_mut().tcp_accept(self.listener) {
                return Ok((client, server));
            }
        }
    }

    /// A bulk transfer, in data segments.
    fn bulk(&mut self, amount: u64) -> Outcome {
        let (client, server) = self.open()?;
        let (piece, mut heard) = (vec![7; PIECE], vec![0; PIECE]);
        let received =
            |host: &Host<L>| host.stack().tcp(server).map(|end| end.statistics().segments_received);
        while received(&self.right).is_some_and(|received| received < amount) {
            let now = self.later();
            while self.left.stack_mut().tcp_write(now, client, &piece)? > 0 {}
            turn(&mut self.left, now)?;
            while turn(&mut self.right, now)? > 0 {
                while self.right.stack_mut().tcp_read(now, server, &mut heard).is_ok() {}
            }
        }
        received(&self.right).ok_or_else(|| "the connection is gone".into())
    }

    /// One byte there and one byte back.
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

    /// Connections that the server closes first, and then the client.
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
    // Or the connections of a run would be kept, and every new one would find more of them.
    config.tcp = Config { msl: Duration::from_millis(1), ..*rules };
    let budget = Budget { receive, ..Budget::default() };
    Ok(Host::new(Stack::new(config, [number; 32]), link).with_budget(budget))
}

/// One turn of a host, and how many frames it took in.
fn turn(host: &mut Host<impl Link>, now: Instant) -> Result<usize, Box<dyn Error>> {
    let turn = host.turn(now)?;
    while host.stack_mut().poll_event().is_some() {}
    Ok(turn.received)
}

/// One byte from one application to the other.
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
