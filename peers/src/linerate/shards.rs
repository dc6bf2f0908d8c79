//! Two hosts with one or two shards each, and a thread for each pair of shards.
//!
//! This measures the gain from a second core, so the result is wall-clock time instead of processor
//! time.

use super::{LEFT, PORT, RIGHT, config_of, now, sentence};
use crate::contender::{Run, Taken};
use crate::pattern::Pattern;
use crate::work::{BATCH, PIECE, SEGMENT};
use linerate_link::memory::queues;
use linerate_link::shard::share;
use linerate_link::{MemoryConfig, MemoryLink, ShardLink};
use linerate_stack::{
    Budget, ConnectOptions, Error, Host, ListenHandle, ListenOptions, Stack, StackConfig, TcpHandle,
};
use linerate_tcp::Config;
use linerate_units::Instant;
use std::net::Ipv4Addr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Number of connections. They are divided equally among the shards.
const CONNECTIONS: usize = 8;
/// The seed of both hosts, which determines the shard of each connection. With equal seeds, the two
/// ends of a connection are on corresponding shards, between which its frames pass directly. A NIC
/// achieves this with a symmetric hash.
const SEED: [u8; 32] = [19; 32];

/// One shard of a host, with the queue of the link that belongs to this shard.
type ShardHost = Host<ShardLink<MemoryLink>>;

/// Transfers the data over eight connections between two hosts with `shards` shards each.
pub fn bulk(config: Config, shards: usize, run: Run) -> Result<Taken, String> {
    let (left, right) = queues(MemoryConfig { capacity: BATCH, ..MemoryConfig::default() }, shards)
        .map_err(sentence)?;
    let (left, right) = (hosts(LEFT, left, config)?, hosts(RIGHT, right, config)?);
    let (open, begin) = (AtomicUsize::new(0), Barrier::new(shards));
    let taken = thread::scope(|scope| {
        let threads: Vec<_> = left
            .into_iter()
            .zip(right)
            .map(|(left, right)| {
                let (open, begin) = (&open, &begin);
                scope.spawn(move || Pair { left, right }.bulk(config, shards, run, open, begin))
            })
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err("a shard has panicked".to_owned()))
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>, String>>()
    })?;
    // The measured time runs from the start of the first thread to the end of the last thread.
    let began = taken.iter().map(|taken| taken.began).min().unwrap_or(Instant::ZERO);
    let ended = taken.iter().map(|taken| taken.ended).max().unwrap_or(began);
    let frames = taken
        .iter()
        .fold([0, 0], |[out, back], taken| [out + taken.frames[0], back + taken.frames[1]]);
    Ok(Taken::new(ended.since(began).into(), run.amount, frames))
}

/// Creates the shards of one host, one for each queue of the link.
fn hosts(
    address: Ipv4Addr,
    queues: Vec<MemoryLink>,
    tcp: Config,
) -> Result<Vec<ShardHost>, String> {
    let links = share(queues, SEED).map_err(sentence)?;
    links
        .into_iter()
        .map(|link| {
            let shard = link.shard();
            let config = config_of(address, tcp)?;
            let limits = config.limits.among(shard.count);
            let stack = Stack::new(StackConfig { shard, limits, ..config }, SEED);
            let budget = Budget { receive: BATCH, transmit: BATCH, ..Budget::default() };
            Ok(Host::new(stack, link).with_budget(budget))
        })
        .collect()
}

/// A shard of the left host and the corresponding shard of the right host. One thread runs both.
struct Pair {
    left: ShardHost,
    right: ShardHost,
}

/// The times at which a thread started and ended its transfers, and the segments that each host has
/// sent.
struct Done {
    began: Instant,
    ended: Instant,
    frames: [u64; 2],
}

/// The transfer over one connection: its two ends, and the number of bytes written and read.
struct Transfer {
    client: TcpHandle,
    server: TcpHandle,
    written: u64,
    read: u64,
}

impl Pair {
    fn bulk(
        mut self,
        config: Config,
        shards: usize,
        run: Run,
        open: &AtomicUsize,
        begin: &Barrier,
    ) -> Result<Done, String> {
        let transfers = self.open(config, CONNECTIONS / shards);
        open.fetch_add(1, Ordering::SeqCst);
        // This thread must run its hosts until all threads have opened their connections. Only the
        // first shard of a host answers ARP requests, and the other shards need the answers.
        while open.load(Ordering::SeqCst) < shards {
            self.turn(now())?;
        }
        begin.wait();
        let began = now();
        let total = run.amount * SEGMENT / CONNECTIONS as u64;
        self.transfer(transfers?, total, run.verify)?;
        let frames = [&self.left, &self.right].map(|host| host.stack().counters().tcp.out_segments);
        Ok(Done { began, ended: now(), frames })
    }

    fn open(&mut self, config: Config, count: usize) -> Result<Vec<Transfer>, String> {
        let listener =
            self.right.stack_mut().tcp_listen(PORT, &ListenOptions::default()).map_err(sentence)?;
        (0..count).map(|_| self.open_one(config, listener)).collect()
    }

    fn open_one(&mut self, config: Config, listener: ListenHandle) -> Result<Transfer, String> {
        let options = ConnectOptions { config: Some(config), ..ConnectOptions::default() };
        let client = self.left.stack_mut().tcp_connect(now(), PORT, &options).map_err(sentence)?;
        loop {
            self.turn(now())?;
            if let Some((server, _)) = self.right.stack_mut().tcp_accept(listener) {
                return Ok(Transfer { client, server, written: 0, read: 0 });
            }
        }
    }

    fn turn(&mut self, now: Instant) -> Result<(), String> {
        for host in [&mut self.left, &mut self.right] {
            host.turn(now).map_err(sentence)?;
            while host.stack_mut().poll_event().is_some() {}
        }
        Ok(())
    }

    fn transfer(
        &mut self,
        mut transfers: Vec<Transfer>,
        total: u64,
        verify: bool,
    ) -> Result<(), String> {
        let (pattern, mut received) = (Pattern::new(), vec![0; PIECE]);
        while transfers.iter().any(|transfer| transfer.read < total) {
            for transfer in &mut transfers {
                let now = now();
                self.write(transfer, &pattern, total, now)?;
                self.turn(now)?;
                self.read(transfer, &pattern, &mut received, verify, now)?;
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        transfer: &mut Transfer,
        pattern: &Pattern,
        total: u64,
        now: Instant,
    ) -> Result<(), String> {
        while transfer.written < total {
            let piece = pattern.at(transfer.written, total - transfer.written);
            match self.left.stack_mut().tcp_write(now, transfer.client, piece).map_err(sentence)? {
                0 => return Ok(()),
                count => transfer.written += count as u64,
            }
            if transfer.written == total {
                self.left.stack_mut().tcp_shutdown_write(now, transfer.client).map_err(sentence)?;
            }
        }
        Ok(())
    }

    fn read(
        &mut self,
        transfer: &mut Transfer,
        pattern: &Pattern,
        received: &mut [u8],
        verify: bool,
        now: Instant,
    ) -> Result<(), String> {
        loop {
            match self.right.stack_mut().tcp_read(now, transfer.server, received) {
                Ok(0) | Err(Error::WouldBlock) => return Ok(()),
                Ok(count) => {
                    if verify {
                        pattern.verify(transfer.read, &received[..count])?;
                    }
                    transfer.read += count as u64;
                }
                Err(error) => return Err(sentence(error)),
            }
        }
    }
}
