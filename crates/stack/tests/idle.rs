//! Test of the memory that idle connections take, as counted by the allocator. It is a program of
//! its own, because the allocator counts all memory of the process.

use linerate_stack::{
    Capabilities, ConnectOptions, Host, ListenHandle, ListenOptions, Medium, Stack, TcpHandle,
};
use linerate_testkit::{Side, TestLink};
use linerate_units::{Duration, Instant};
use peak_alloc::PeakAlloc;
use std::net::SocketAddrV4;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Maximum memory of an idle established connection, in bytes at each end.
const IDLE: usize = 512;

const CONNECTIONS: usize = 10_000;
/// Number of times that [`CONNECTIONS`] connections are opened and closed.
const ROUNDS: usize = 10;
/// Number of connections that the test opens together. It also uses connections in groups of this
/// size.
const BATCH: usize = 64;

/// Number of connections that the host keeps in their full form: those that were opened or used
/// most recently.
const FULL: usize = 1_024;

/// Overhead of the allocator that is not counted, in bytes: 16 for each of the two allocations of a
/// compact connection.
const MARGIN: usize = 2 * 16;

/// Maximum memory that two hosts together keep after all connections have ended, in bytes. Some
/// remains because tables with up to 64 entries do not shrink.
const KEPT: usize = 32 << 10;

/// Two hosts on a link without latency.
struct Hosts {
    hosts: [Host<TestLink>; 2],
    listener: ListenHandle,
    now: Instant,
}

impl Hosts {
    fn new() -> Self {
        let mut hosts = Side::BOTH.map(|side| {
            let capabilities = Capabilities::new(Medium::Ethernet, 1_500);
            Host::new(
                Stack::new(side.config(), [side as u8; 32]),
                TestLink::new(capabilities, 1_024),
            )
        });
        let listener = hosts[1]
            .stack_mut()
            .tcp_listen(Self::address(), &ListenOptions::default())
            .expect("a free port");
        Self { hosts, listener, now: Instant::ZERO + Duration::from_secs(1) }
    }

    const fn address() -> SocketAddrV4 {
        SocketAddrV4::new(Side::Right.address(), 9)
    }

    /// Advances the clock by `span` in steps of 10 ms, and runs both hosts in each step.
    fn advance_clock(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now = end.min(self.now + Duration::from_millis(10));
            while self.turn() {}
        }
    }

    /// Runs a turn of each host. Returns true if a frame was carried, or if a host has more work to
    /// do at once.
    fn turn(&mut self) -> bool {
        let mut moved = false;
        for from in [0, 1] {
            let turn = self.hosts[from].turn(self.now).expect("the link is up");
            moved |= turn.more;
            while self.hosts[from].stack_mut().poll_event().is_some() {}
            while let Some(frame) = self.hosts[from].link_mut().fetch() {
                self.hosts[1 - from].link_mut().put(self.now, frame);
                moved = true;
            }
        }
        moved
    }

    /// Advances the clock by two seconds, and runs the timers that expire. All of them must belong
    /// to connections in full form, because keep-alive is off, so idle connections in compact form
    /// have no timers.
    fn assert_only_full_connections_have_timers(&mut self) {
        self.now += Duration::from_secs(2);
        for host in &mut self.hosts {
            let (stack, mut timers) = (host.stack_mut(), 0);
            while stack.poll_timeout() <= self.now {
                stack.handle_timeout(self.now, 1);
                timers += 1;
            }
            assert!((1..=FULL + BATCH).contains(&timers), "{timers} timers");
        }
    }

    fn open(&mut self) -> Vec<[TcpHandle; 2]> {
        let now = self.now;
        let left: Vec<_> = (0..BATCH)
            .map(|_| {
                let stack = self.hosts[0].stack_mut();
                stack
                    .tcp_connect(now, Self::address(), &ConnectOptions::default())
                    .expect("a route")
            })
            .collect();
        while self.turn() {}
        let accept =
            |_| self.hosts[1].stack_mut().tcp_accept(self.listener).expect("a connection").0;
        let right: Vec<_> = (0..BATCH).map(accept).collect();
        left.into_iter().zip(right).map(|(left, right)| [left, right]).collect()
    }

    /// Closes all connections: first all ends at the server, then all ends at the client.
    fn close(&mut self, pairs: &[[TcpHandle; 2]]) {
        for end in [1, 0] {
            for pair in pairs {
                self.hosts[end]
                    .stack_mut()
                    .tcp_close(self.now, pair[end])
                    .expect("an open connection");
            }
            while self.turn() {}
        }
    }

    /// On each connection, each host sends data, which the other host reads.
    fn exchange_data(&mut self, pairs: &[[TcpHandle; 2]]) {
        let mut received = [0; 4_096];
        for end in [0, 1] {
            for pair in pairs {
                self.hosts[end]
                    .stack_mut()
                    .tcp_write(self.now, pair[end], &[7; 2_000])
                    .expect("room");
            }
            self.advance_clock(Duration::from_millis(50));
            for pair in pairs {
                let read = self.hosts[1 - end].stack_mut().tcp_read(
                    self.now,
                    pair[1 - end],
                    &mut received,
                );
                assert_eq!(read.expect("the data"), 2_000);
            }
        }
    }
}

/// Runs several cases one after the other. They are not separate tests, because tests run in
/// parallel and the allocator counts the memory of all of them together.
#[test]
fn an_idle_connection_takes_little_memory() {
    let [busy, idle] = idle_connections_take_at_most_512_bytes();
    println!("{idle} bytes for an idle connection, {busy} soon after a conversation");
    let waiting = time_wait_records_take_at_most_256_bytes();
    println!("{waiting} bytes for one in TIME-WAIT");
    let silent = only_the_last_opened_connections_are_full();
    println!("{silent} bytes for a connection of many that have just been opened");
    only_the_last_accepted_connections_are_full();
    let kept = the_memory_of_closed_connections_is_given_back();
    println!("{kept} bytes kept of {} connections", ROUNDS * CONNECTIONS);
}

/// Opens and closes [`CONNECTIONS`] connections several times. Returns the number of bytes by which
/// the memory of both hosts has grown.
fn the_memory_of_closed_connections_is_given_back() -> usize {
    let mut hosts_under_test = Hosts::new();
    let first = hosts_under_test.open();
    hosts_under_test.exchange_data(&first);
    hosts_under_test.close(&first);
    // TIME-WAIT lasts a minute, which the stack may extend by a sixteenth. After 64 seconds, every
    // TIME-WAIT has ended.
    hosts_under_test.advance_clock(Duration::from_secs(64));
    let before = MEMORY.current_usage();
    for _ in 0..ROUNDS {
        let mut pairs = Vec::new();
        while pairs.len() < CONNECTIONS {
            pairs.extend(hosts_under_test.open());
        }
        hosts_under_test.close(&pairs);
        hosts_under_test.advance_clock(Duration::from_secs(64));
    }
    hosts_under_test.hosts.iter().for_each(|host| host.stack().check());
    let kept = MEMORY.current_usage().saturating_sub(before);
    assert!(kept <= KEPT, "{kept} bytes are kept");
    kept
}

/// The server closes each connection first, so the connection enters TIME-WAIT on the server.
/// Returns the memory of a TIME-WAIT record in bytes.
fn time_wait_records_take_at_most_256_bytes() -> usize {
    let mut hosts_under_test = Hosts::new();
    let mut pairs = hosts_under_test.open();
    while pairs.len() < CONNECTIONS {
        pairs.extend(hosts_under_test.open());
    }
    // The last group of connections stays open, so that the tables which are indexed by socket do
    // not shrink. Their memory is therefore not part of the difference that is computed below.
    pairs.truncate(pairs.len() - BATCH);
    hosts_under_test.close(&pairs);
    hosts_under_test.hosts.iter().for_each(|host| host.stack().check());
    let waiting = MEMORY.current_usage();
    // TIME-WAIT lasts a minute, which the stack may extend by a sixteenth. After 64 seconds, every
    // TIME-WAIT has ended.
    hosts_under_test.advance_clock(Duration::from_secs(64));
    hosts_under_test.hosts.iter().for_each(|host| host.stack().check());
    let each = (waiting - MEMORY.current_usage()) / pairs.len();
    assert!((64..=256 - MARGIN / 2).contains(&each), "{each} bytes");
    each
}

fn only_the_last_opened_connections_are_full() -> usize {
    let mut hosts_under_test = Hosts::new();
    let mut pairs = hosts_under_test.open();
    let before = MEMORY.current_usage();
    while pairs.len() < CONNECTIONS {
        pairs.extend(hosts_under_test.open());
    }
    let silent = (MEMORY.current_usage() - before) / (2 * pairs.len());
    // No time has passed, so the 1,024 most recently opened connections are still in full form,
    // with 2.5 KiB each. All other connections are compact.
    assert!(silent + MARGIN <= IDLE + FULL * 2_560 / CONNECTIONS, "{silent} bytes");
    hosts_under_test.hosts.iter().for_each(|host| host.stack().check());
    hosts_under_test.assert_only_full_connections_have_timers();
    // Compact connections transfer data as connections in full form do.
    for pairs in [&pairs[..BATCH], &pairs[pairs.len() - BATCH..]] {
        hosts_under_test.exchange_data(pairs);
    }
    hosts_under_test.hosts.iter().for_each(|host| host.stack().check());
    silent
}

/// Connections that wait in the accept queue are compact. When the application accepts many of
/// them, only the most recently accepted ones take their full form.
fn only_the_last_accepted_connections_are_full() {
    let mut hosts_under_test = Hosts::new();
    let address = SocketAddrV4::new(Side::Right.address(), 10);
    let options = ListenOptions { backlog: CONNECTIONS, ..ListenOptions::default() };
    let listener =
        hosts_under_test.hosts[1].stack_mut().tcp_listen(address, &options).expect("a free port");
    let count = CONNECTIONS / BATCH * BATCH;
    for _ in 0..count / BATCH {
        for _ in 0..BATCH {
            let stack = hosts_under_test.hosts[0].stack_mut();
            stack
                .tcp_connect(hosts_under_test.now, address, &ConnectOptions::default())
                .expect("a route");
        }
        while hosts_under_test.turn() {}
    }
    hosts_under_test.advance_clock(Duration::from_secs(5));
    let before = MEMORY.current_usage();
    let accepted =
        core::iter::from_fn(|| hosts_under_test.hosts[1].stack_mut().tcp_accept(listener)).count();
    assert_eq!(accepted, count);
    let each = MEMORY.current_usage().saturating_sub(before) / count;
    assert!(each <= FULL * 2_560 / CONNECTIONS, "{each} bytes more");
    hosts_under_test.hosts.iter().for_each(|host| host.stack().check());
}

fn idle_connections_take_at_most_512_bytes() -> [usize; 2] {
    let mut hosts_under_test = Hosts::new();
    let mut pairs = Vec::with_capacity(CONNECTIONS + BATCH);
    // The first connections make the hosts allocate memory that is shared by all connections. The
    // measurement begins after them, so that it does not include this memory.
    let first = hosts_under_test.open();
    hosts_under_test.exchange_data(&first);
    hosts_under_test.advance_clock(Duration::from_secs(5));
    let before = MEMORY.current_usage();
    while pairs.len() < CONNECTIONS {
        let opened = hosts_under_test.open();
        hosts_under_test.exchange_data(&opened);
        pairs.extend(opened);
    }
    let busy = (MEMORY.current_usage() - before) / (2 * pairs.len());
    hosts_under_test.advance_clock(Duration::from_secs(5));
    let idle = (MEMORY.current_usage() - before) / (2 * pairs.len());
    assert!(idle + MARGIN <= IDLE, "{idle} bytes");
    hosts_under_test.hosts.iter().for_each(|host| host.stack().check());
    // All connections must still transfer data.
    for pairs in pairs.chunks(BATCH) {
        hosts_under_test.exchange_data(pairs);
    }
    hosts_under_test.advance_clock(Duration::from_secs(5));
    let again = (MEMORY.current_usage() - before) / (2 * pairs.len());
    assert!(again + MARGIN <= IDLE, "{again} bytes after the second conversation");
    [busy, idle]
}
