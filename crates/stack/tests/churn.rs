//! Test of the memory that a host uses after many connections were opened and closed, as counted by
//! the allocator. It is a program of its own, because the allocator counts all memory of the
//! process.

use linerate_stack::{
    Capabilities, ConnectOptions, Event, Host, ListenHandle, ListenOptions, Medium, Stack,
    TcpHandle,
};
use linerate_tcp::Event as TcpEvent;
use linerate_testkit::{Side, TestLink};
use linerate_units::{Duration, Instant};
use peak_alloc::PeakAlloc;
use std::net::SocketAddrV4;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const CONNECTIONS: usize = 100_000;
/// Number of connections that are opened and closed before the memory is measured for the first
/// time. It exceeds the maximum number of connections in TIME-WAIT.
const PEAK: usize = 20_000;
/// Maximum memory that the tables of both hosts together keep after [`PEAK`] connections, in bytes
/// for each of these connections.
const TABLES: usize = 192;
/// Number of connections that are open at the same time: they are opened together, and then closed
/// together.
const BATCH: usize = 50;
/// Time after which all timers have expired. The longest timer is that of TIME-WAIT, which lasts a
/// minute.
const IDLE: Duration = Duration::from_secs(300);
/// Maximum number of bytes by which later connections may increase the memory of both hosts
/// together. The first [`PEAK`] connections have brought the tables to their final size, so later
/// ones need hardly more.
const KEPT: usize = 16 << 10;

/// A client and a server on a link without latency.
struct Hosts {
    hosts: [Host<TestLink>; 2],
    listener: ListenHandle,
    now: Instant,
}

impl Hosts {
    fn new() -> Self {
        let mut hosts = Side::BOTH.map(|side| {
            let capabilities = Capabilities::new(Medium::Ethernet, 1_500);
            let stack = Stack::new(side.config(), [side as u8; 32]);
            Host::new(stack, TestLink::new(capabilities, 1_024))
        });
        let options = ListenOptions::default();
        let listener = hosts[1].stack_mut().tcp_listen(Self::address(), &options);
        let listener = listener.expect("a free port");
        Self { hosts, listener, now: Instant::ZERO + Duration::from_secs(1) }
    }

    const fn address() -> SocketAddrV4 {
        SocketAddrV4::new(Side::Right.address(), 9)
    }

    /// Carries frames until both hosts are idle. The server closes its end of each connection that
    /// the client has closed.
    fn carry(&mut self) {
        let mut is_busy = true;
        while is_busy {
            is_busy = false;
            for from in [0, 1] {
                let turn = self.hosts[from].turn(self.now).expect("the link is up");
                is_busy |= turn.more;
                let stack = self.hosts[from].stack_mut();
                while let Some(event) = stack.poll_event() {
                    if let (1, Event::Tcp(handle, TcpEvent::EndOfStream)) = (from, event) {
                        stack.tcp_close(self.now, handle).expect("an open connection");
                        is_busy = true;
                    }
                }
                while let Some(frame) = self.hosts[from].link_mut().fetch() {
                    self.hosts[1 - from].link_mut().put(self.now, frame);
                    is_busy = true;
                }
            }
        }
    }

    /// Opens and closes `count` connections, and then advances the virtual time by 10 ms.
    fn open_and_close(&mut self, count: usize) {
        let now = self.now;
        let stack = self.hosts[0].stack_mut();
        let open = |_| {
            stack
                .tcp_connect(now, Self::address(), &ConnectOptions::default())
                .expect("a free port")
        };
        let clients: Vec<TcpHandle> = (0..count).map(open).collect();
        self.carry();
        let server = self.hosts[1].stack_mut();
        let accepted = std::iter::from_fn(|| server.tcp_accept(self.listener)).count();
        assert_eq!(accepted, count, "all connections were accepted");
        for client in clients {
            self.hosts[0].stack_mut().tcp_close(now, client).expect("an open connection");
        }
        self.carry();
        self.now += Duration::from_millis(10);
    }

    /// Advances the virtual time by `IDLE`, and runs all timers that expire within this time.
    fn idle(&mut self) {
        let end = self.now + IDLE;
        loop {
            let next = self.hosts.iter().map(|host| host.stack().poll_timeout()).min();
            let next = next.unwrap_or(end).max(self.now);
            if next >= end {
                self.now = end;
                return self.carry();
            }
            self.now = next;
            self.carry();
        }
    }
}

#[test]
fn a_hundred_thousand_connections_keep_no_more_than_their_tables() {
    let mut hosts = Hosts::new();
    let start = MEMORY.current_usage();
    // Opens and closes enough connections to reach the limit of connections in TIME-WAIT. The
    // tables of sockets and timers then have their final size, and do not shrink later.
    for _ in 0..PEAK / BATCH {
        hosts.open_and_close(BATCH);
    }
    let used = MEMORY.current_usage();
    hosts.idle();
    let before = MEMORY.current_usage();
    let tables = before - start;
    assert!(tables <= TABLES * PEAK, "{tables} bytes stay, and {used} were in use");
    for _ in 0..CONNECTIONS / BATCH {
        hosts.open_and_close(BATCH);
    }
    hosts.idle();
    let after = MEMORY.current_usage();
    assert!(after <= before + KEPT, "{before} bytes before, {after} after");
}
