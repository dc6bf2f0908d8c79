//! linerate as a contender: two hosts joined by a memory link, with timestamps, SACK and CUBIC as
//! shipped.

mod crowd;
mod path;
mod shards;

use crate::contender::{Contender, Run, Taken};
use crate::pattern::Pattern;
use crate::stopwatch::Stopwatch;
use crate::work::{BATCH, BUFFER, PIECE, SEGMENT, Work};
use crowd::Crowd;
use linerate_link::memory::pair;
use linerate_link::{MemoryConfig, MemoryLink, MonotonicClock};
use linerate_stack::{
    Budget, ConnectOptions, Error, Host, Limits, Link, ListenHandle, ListenOptions, Stack,
    StackConfig, TcpHandle,
};
use linerate_tcp::Config;
use linerate_units::{Clock, Duration, Instant};
use linerate_wire::MacAddress;
use std::net::{Ipv4Addr, SocketAddrV4};

const LEFT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const RIGHT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const PORT: SocketAddrV4 = SocketAddrV4::new(RIGHT, 9);

/// linerate as a contender, with one of several configurations and kinds of traffic.
pub struct Linerate {
    name: &'static str,
    config: Config,
    /// The connections of the workload `flows`.
    flows: Flows,
    /// The impairments of the path in the workload `path`, such as `rx.loss=1%`; empty for none.
    impairments: &'static str,
    /// Number of shards of each host in the workload `shards`.
    shards: usize,
    /// The hosts of the workload `flows`. The first run opens their connections, and later runs use
    /// them again. `None` before the first run.
    crowd: Option<Crowd>,
}

/// The connections of the workload `flows`.
#[derive(Clone, Copy)]
struct Flows {
    /// Number of connections that are written to, one after the other.
    active: usize,
    /// Number of additional connections that are opened and never used.
    idle: usize,
    /// Number of writes between two turns of the hosts. A turn is one pass of a host's event loop.
    writes: usize,
}

/// A single connection, to which a batch of segments is written before each turn.
const ONE: Flows = Flows { active: 1, idle: 0, writes: BATCH };

impl Linerate {
    /// Returns linerate as shipped, with two exceptions: the buffers have the sizes that all
    /// contenders use, and TIME-WAIT is short.
    pub fn as_shipped() -> Self {
        Self {
            name: "linerate",
            config: rules(),
            flows: ONE,
            impairments: "",
            shards: 1,
            crowd: None,
        }
    }

    /// Returns linerate without timestamps and SACK, for a comparison with peers that lack these
    /// options.
    pub fn without_options() -> Self {
        let config = Config { timestamps: false, selective_acks: false, ..rules() };
        Self { name: "linerate-plain", config, ..Self::as_shipped() }
    }

    /// Returns linerate with one busy connection and 100,000 idle connections.
    pub fn beside_idle() -> Self {
        Self {
            name: "linerate-beside",
            flows: Flows { idle: 100_000, ..ONE },
            ..Self::as_shipped()
        }
    }

    /// Returns linerate on a path that loses one data segment in a hundred.
    pub fn with_loss() -> Self {
        Self { name: "linerate-loss", impairments: "rx.loss=1%", ..Self::as_shipped() }
    }

    /// Returns linerate with one connection and a turn after each write. Each write is thus sent,
    /// read and acknowledged before the next one.
    pub fn apart() -> Self {
        Self { name: "linerate-apart", flows: Flows { writes: 1, ..ONE }, ..Self::as_shipped() }
    }

    /// Returns linerate with two shards at each host. One thread runs a shard of each host, so
    /// there are two threads.
    pub fn in_two_shards() -> Self {
        Self { name: "linerate-shards", shards: 2, ..Self::as_shipped() }
    }

    /// Returns linerate with 10,000 connections that are written to in turn.
    pub fn in_turn() -> Self {
        Self {
            name: "linerate-turns",
            flows: Flows { active: 10_000, ..ONE },
            ..Self::as_shipped()
        }
    }
}

/// Maximum segment lifetime, half the duration of TIME-WAIT. It is short, so that few connections
/// are in TIME-WAIT during a run. Other contenders achieve this by aborting their sockets.
const MSL: Duration = Duration::from_millis(1);

/// Returns linerate's default configuration, except for the buffer sizes, which are equal for all
/// contenders, and a short TIME-WAIT.
pub fn rules() -> Config {
    Config {
        send_buffer: BUFFER.into(),
        receive_buffer: BUFFER.into(),
        msl: MSL,
        ..Config::modern()
    }
}

impl Contender for Linerate {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> String {
        let Config { timestamps, selective_acks, congestion, .. } = self.config;
        format!(
            "this tree; timestamps {timestamps}, \
             selective acknowledgements {selective_acks}, {congestion}"
        )
    }

    fn can(&self, work: Work) -> bool {
        match self.name {
            "linerate" => work.is_inside(),
            "linerate-shards" => work == Work::Shards,
            "linerate-plain" => matches!(work, Work::Bulk | Work::BulkAcks | Work::BulkBatch),
            "linerate-loss" => work == Work::Path,
            _ => work == Work::Flows,
        }
    }

    fn remark(&self, work: Work) -> Option<String> {
        let crowd = self.crowd.as_ref().filter(|_| work == Work::Flows && self.flows.idle > 0)?;
        Some(format!(
            "an idle connection keeps {} bytes resident at each end (bar: at most 512)",
            crowd.bytes_an_end
        ))
    }

    fn run(&mut self, run: Run) -> Result<Taken, String> {
        if run.work == Work::Flows {
            let crowd = match &mut self.crowd {
                Some(crowd) => crowd,
                none => none.insert(Crowd::new(self.config, self.flows)?),
            };
            return crowd.write_in_turn(run.amount);
        }
        if run.work == Work::Path {
            return path::bulk(self.config, self.impairments, run);
        }
        if run.work == Work::Shards {
            return shards::bulk(self.config, self.shards, run);
        }
        let config = Config { stretch_acks: run.work != Work::BulkAcks, ..self.config };
        let mut pair = Pair::new(config, run.work)?;
        match run.work {
            Work::Bulk | Work::BulkAcks | Work::BulkBatch | Work::BulkInPlace => pair.bulk(run),
            Work::PingPong => pair.ping_pong(run.amount),
            Work::Connect => pair.connect(run.amount),
            _ => Err("this work has hosts of its own".to_owned()),
        }
    }
}

/// Two hosts that are joined by a memory link, and the listener of the right host.
struct Pair {
    left: Host<MemoryLink>,
    right: Host<MemoryLink>,
    listener: ListenHandle,
}

impl Pair {
    fn new(config: Config, work: Work) -> Result<Self, String> {
        let link = MemoryConfig { capacity: BATCH, ..MemoryConfig::default() };
        let (left, right) = pair(link).map_err(sentence)?;
        let left = host(LEFT, left, config, BATCH)?;
        let mut right = host(RIGHT, right, config, work.frames_before_answer())?;
        let listener =
            right.stack_mut().tcp_listen(PORT, &ListenOptions::default()).map_err(sentence)?;
        Ok(Self { left, right, listener })
    }

    fn open(&mut self) -> Result<(TcpHandle, TcpHandle), String> {
        // As for all contenders, options are set once per host and not per connection, and the
        // clock is read once per turn.
        let mut time = now();
        let options = ConnectOptions::default();
        let client = self.left.stack_mut().tcp_connect(time, PORT, &options).map_err(sentence)?;
        loop {
            turn(&mut self.left, time)?;
            turn(&mut self.right, now())?;
            if let Some((server, _)) = self.right.stack_mut().tcp_accept(self.listener) {
                return Ok((client, server));
            }
            time = now();
        }
    }

    fn bulk(&mut self, run: Run) -> Result<Taken, String> {
        let in_place = run.work == Work::BulkInPlace;
        let verify = run.verify && !in_place;
        let (client, server) = self.open()?;
        let (pattern, mut received) = (Pattern::new(), vec![0; PIECE]);
        let total = run.amount * SEGMENT;
        let (mut written, mut read) = (0, 0);
        let stopwatch = Stopwatch::start();
        while read < total {
            let now = now();
            while written < total {
                let piece = pattern.at(written, total - written);
                let stack = self.left.stack_mut();
                let count = if in_place {
                    // Nothing is written into the borrowed buffer, so its old contents are sent.
                    // Producing data in place costs the application the same on every stack, so
                    // this cost is left out.
                    stack.tcp_write_with(now, client, piece.len(), |room| room.len())
                } else {
                    stack.tcp_write(now, client, piece)
                };
                match count.map_err(sentence)? {
                    0 => break,
                    count => written += count as u64,
                }
            }
            if written == total {
                self.left.stack_mut().tcp_shutdown_write(now, client).map_err(sentence)?;
            }
            turn(&mut self.left, now)?;
            while turn(&mut self.right, now)? > 0 {
                while let Some(count) = self.read(now, server, &mut received, in_place)? {
                    if verify {
                        pattern.verify(read, &received[..count])?;
                    }
                    read += count as u64;
                }
            }
        }
        let processor = stopwatch.elapsed();
        let frames = self.left.stack().tcp(client).map_or([0, 0], |connection| {
            [connection.statistics().segments_sent, connection.statistics().segments_received]
        });
        Ok(Taken::new(processor, run.amount, frames))
    }

    /// Reads received data, by a copy or in place. Returns the number of bytes; `None` if no data
    /// are available or the stream has ended.
    fn read(
        &mut self,
        now: Instant,
        server: TcpHandle,
        into: &mut [u8],
        in_place: bool,
    ) -> Result<Option<usize>, String> {
        let stack = self.right.stack_mut();
        let read = if in_place {
            stack.tcp_read_with(now, server, |bytes| bytes.len().min(into.len()))
        } else {
            stack.tcp_read(now, server, into)
        };
        match read {
            Ok(0) | Err(Error::WouldBlock) => Ok(None),
            Ok(count) => Ok(Some(count)),
            Err(error) => Err(sentence(error)),
        }
    }

    fn ping_pong(&mut self, amount: u64) -> Result<Taken, String> {
        let (client, server) = self.open()?;
        for (host, handle) in [(&mut self.left, client), (&mut self.right, server)] {
            host.stack_mut()
                .tcp_configure(now(), handle, |connection| connection.set_no_delay(true))
                .map_err(sentence)?;
        }
        let stopwatch = Stopwatch::start();
        for _ in 0..amount {
            pass_byte((&mut self.left, client), (&mut self.right, server))?;
            pass_byte((&mut self.right, server), (&mut self.left, client))?;
        }
        let processor = stopwatch.elapsed();
        let frames = self.left.stack().tcp(client).map_or([0, 0], |connection| {
            [connection.statistics().segments_sent, connection.statistics().segments_received]
        });
        Ok(Taken::new(processor, amount, frames))
    }

    fn connect(&mut self, amount: u64) -> Result<Taken, String> {
        let before = self.segments();
        let stopwatch = Stopwatch::start();
        for _ in 0..amount {
            let (client, server) = self.open()?;
            let time = now();
            self.right.stack_mut().tcp_close(time, server).map_err(sentence)?;
            turn(&mut self.right, time)?;
            turn(&mut self.left, now())?;
            let mut time = now();
            self.left.stack_mut().tcp_close(time, client).map_err(sentence)?;
            // The hosts run until the application's closed connections have finished at both ends.
            // The end that closed first is then in TIME-WAIT.
            while self.left.stack().orphans() + self.right.stack().orphans() > 0 {
                turn(&mut self.left, time)?;
                turn(&mut self.right, now())?;
                time = now();
            }
        }
        let processor = stopwatch.elapsed();
        let after = self.segments();
        Ok(Taken::new(processor, amount, [after[0] - before[0], after[1] - before[1]]))
    }

    /// Returns the number of segments that each host has sent.
    fn segments(&self) -> [u64; 2] {
        [&self.left, &self.right].map(|host| host.stack().counters().tcp.out_segments)
    }
}

fn host(
    address: Ipv4Addr,
    link: MemoryLink,
    config: Config,
    receive: usize,
) -> Result<Host<MemoryLink>, String> {
    host_with(address, link, config, receive, Limits::default())
}

fn host_with<L: Link>(
    address: Ipv4Addr,
    link: L,
    config: Config,
    receive: usize,
    limits: Limits,
) -> Result<Host<L>, String> {
    let stack_config = StackConfig { limits, ..config_of(address, config)? };
    let budget = Budget { receive, transmit: BATCH, ..Budget::default() };
    Ok(Host::new(Stack::new(stack_config, [address.octets()[3]; 32]), link).with_budget(budget))
}

fn config_of(address: Ipv4Addr, tcp: Config) -> Result<StackConfig, String> {
    let mac = MacAddress::new([2, 0, 0, 0, 0, address.octets()[3]]);
    let config = StackConfig::new(mac, format!("{address}/24").parse().map_err(sentence)?);
    Ok(StackConfig { tcp, ..config })
}

/// Runs one turn of a host, which is one pass of its event loop. Returns the number of frames that
/// it received. Events are discarded.
fn turn(host: &mut Host<impl Link>, now: Instant) -> Result<usize, String> {
    let turn = host.turn(now).map_err(sentence)?;
    while host.stack_mut().poll_event().is_some() {}
    Ok(turn.received)
}

/// Transfers one byte from the application of one host to the application of the other.
fn pass_byte(
    from: (&mut Host<MemoryLink>, TcpHandle),
    to: (&mut Host<MemoryLink>, TcpHandle),
) -> Result<(), String> {
    let now = now();
    let mut byte = [0];
    from.0.stack_mut().tcp_write(now, from.1, b"?").map_err(sentence)?;
    loop {
        turn(from.0, now)?;
        turn(to.0, now)?;
        if to.0.stack_mut().tcp_read(now, to.1, &mut byte).is_ok() {
            return Ok(());
        }
    }
}

fn now() -> Instant {
    MonotonicClock.now()
}

fn sentence(error: impl std::fmt::Display) -> String {
    error.to_string()
}
