//! Two hosts with up to 100,000 connections between them. Some of the connections are written to in
//! turn, and the others are idle.

use super::{Flows, LEFT, RIGHT, host_with, now, sentence, turn};
use crate::contender::Taken;
use crate::stopwatch::Stopwatch;
use crate::work::BATCH;
use linerate_link::memory::pair;
use linerate_link::{MemoryConfig, MemoryLink};
use linerate_stack::{ConnectOptions, Error, Host, Limits, ListenHandle, ListenOptions, TcpHandle};
use linerate_tcp::Config;
use linerate_units::{Duration, Instant};
use std::fs;
use std::net::SocketAddrV4;

/// Size of each write in bytes. It fits into one segment, with or without timestamps.
const WRITE: usize = 1_400;
/// Maximum number of connections to one port of the server. The server listens on as many ports as
/// the connections need.
const TO_ONE_PORT: usize = 10_000;
/// First port on which the server listens.
const FIRST_PORT: u16 = 1_000;
/// Time without segments that is long enough for connections to take their compact form.
const REST: Duration = Duration::from_millis(2_500);

/// Two hosts with many connections between them.
pub struct Crowd {
    left: Host<MemoryLink>,
    right: Host<MemoryLink>,
    /// The active connections, to which data are written: the client's end and the server's end of
    /// each.
    active: Vec<(TcpHandle, TcpHandle)>,
    /// Number of writes so far. The next write goes to the active connection with this number as
    /// index, modulo the number of active connections.
    next: usize,
    /// Number of writes after which both hosts run a turn.
    writes: usize,
    /// Growth of this process's resident memory when the idle connections were opened, in bytes per
    /// end of a connection.
    pub bytes_an_end: usize,
}

impl Crowd {
    /// Creates the hosts, opens all connections, and measures the memory of the idle ones.
    ///
    /// # Errors
    /// A message that says which step has failed.
    pub fn new(config: Config, flows: Flows) -> Result<Self, String> {
        let link = MemoryConfig { capacity: BATCH, ..MemoryConfig::default() };
        let limits = Limits { sockets: 2 * (flows.active + flows.idle), ..Limits::default() };
        let (left, right) = pair(link).map_err(sentence)?;
        let (left, right) = (
            host_with(LEFT, left, config, BATCH, limits)?,
            host_with(RIGHT, right, config, BATCH, limits)?,
        );
        let mut crowd = Self {
            left,
            right,
            active: Vec::new(),
            next: 0,
            writes: flows.writes,
            bytes_an_end: 0,
        };
        crowd.active = crowd.open(flows.active, FIRST_PORT)?;
        let before = resident();
        drop(crowd.open(flows.idle, FIRST_PORT + 1_000)?);
        crowd.pass_time(REST)?;
        crowd.bytes_an_end = resident().saturating_sub(before) / (2 * flows.idle).max(1);
        Ok(crowd)
    }

    /// Runs both hosts for the time `span`. Connections that are idle meanwhile take their compact
    /// form.
    fn pass_time(&mut self, span: Duration) -> Result<(), String> {
        let end = now() + span;
        while now() < end {
            turn(&mut self.left, now())?;
            turn(&mut self.right, now())?;
        }
        Ok(())
    }

    /// Opens `count` connections to the ports of the server from `first_port` on, at most
    /// [`TO_ONE_PORT`] connections to each port.
    fn open(
        &mut self,
        count: usize,
        first_port: u16,
    ) -> Result<Vec<(TcpHandle, TcpHandle)>, String> {
        let mut opened = Vec::with_capacity(count);
        for (port, start) in (first_port..).zip((0..count).step_by(TO_ONE_PORT)) {
            let address = SocketAddrV4::new(RIGHT, port);
            let options = ListenOptions::default();
            let listener =
                self.right.stack_mut().tcp_listen(address, &options).map_err(sentence)?;
            for _ in start..count.min(start + TO_ONE_PORT) {
                opened.push(self.open_one(address, listener)?);
            }
        }
        Ok(opened)
    }

    fn open_one(
        &mut self,
        address: SocketAddrV4,
        listener: ListenHandle,
    ) -> Result<(TcpHandle, TcpHandle), String> {
        let options = ConnectOptions::default();
        let client =
            self.left.stack_mut().tcp_connect(now(), address, &options).map_err(sentence)?;
        self.no_delay(client)?;
        loop {
            turn(&mut self.left, now())?;
            turn(&mut self.right, now())?;
            if let Some((server, _)) = self.right.stack_mut().tcp_accept(listener) {
                return Ok((client, server));
            }
        }
    }

    fn no_delay(&mut self, client: TcpHandle) -> Result<(), String> {
        let configured = self
            .left
            .stack_mut()
            .tcp_configure(now(), client, |connection| connection.set_no_delay(true));
        configured.map_err(sentence)
    }

    /// Writes `amount` segments, each to the next active connection in turn, and reads each segment
    /// at the server.
    ///
    /// # Errors
    /// A message that says which step has failed.
    pub fn write_in_turn(&mut self, amount: u64) -> Result<Taken, String> {
        let (data, mut received) = ([7; WRITE], [0; WRITE * BATCH]);
        let total = amount * WRITE as u64;
        let mut read = 0;
        let before = self.segments();
        let stopwatch = Stopwatch::start();
        let mut written = 0;
        while read < total {
            let now = now();
            let batch: Vec<usize> =
                (self.next..self.next + self.writes).map(|flow| flow % self.active.len()).collect();
            for &flow in &batch {
                if written < total {
                    let count = self
                        .left
                        .stack_mut()
                        .tcp_write(now, self.active[flow].0, &data)
                        .map_err(sentence)?;
                    written += count as u64;
                }
            }
            self.next += self.writes;
            turn(&mut self.left, now)?;
            turn(&mut self.right, now)?;
            for &flow in &batch {
                read += self.read(now, self.active[flow].1, &mut received)?;
            }
        }
        let processor = stopwatch.elapsed();
        let after = self.segments();
        Ok(Taken::new(processor, amount, [after[0] - before[0], after[1] - before[1]]))
    }

    fn read(&mut self, now: Instant, server: TcpHandle, into: &mut [u8]) -> Result<u64, String> {
        match self.right.stack_mut().tcp_read(now, server, into) {
            Ok(count) => Ok(count as u64),
            Err(Error::WouldBlock) => Ok(0),
            Err(error) => Err(sentence(error)),
        }
    }

    /// Returns the number of segments that each host has sent.
    fn segments(&self) -> [u64; 2] {
        [&self.left, &self.right].map(|host| host.stack().counters().tcp.out_segments)
    }
}

/// Returns the resident memory of this process in bytes; zero if the system does not report it.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * rustix::param::page_size()
}
