//! What a connection takes to which nothing happens: everything that a host keeps for it, as the allocator
//! of this program counts it. It is a program of its own, because all that it allocates is counted.

use linerate_stack::{
    Capabilities, ConnectOptions, Host, ListenHandle, ListenOptions, Medium, Stack, TcpHandle,
};
use linerate_testkit::{Side, TestLink};
use linerate_units::{Duration, Instant};
use peak_alloc::PeakAlloc;
use std::net::SocketAddrV4;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What an idle established connection may take, at each end.
const IDLE: usize = 512;

const CONNECTIONS: usize = 10_000;
/// Connections that are opened and used at a time.
const BATCH: usize = 64;

/// The newest connections, which stay awake.
const AWAKE: usize = 1_024;

/// What allocators add to each piece: a connection at rest has two.
const MARGIN: usize = 2 * 16;

/// Two hosts on a wire that takes no time.
struct Crowd {
    hosts: [Host<TestLink>; 2],
    listener: ListenHandle,
    now: Instant,
}

impl Crowd {
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
            .tcp_listen(Self::door(), &ListenOptions::default())
            .expect("a free port");
        Self { hosts, listener, now: Instant::ZERO + Duration::from_secs(1) }
    }

    const fn door() -> SocketAddrV4 {
        SocketAddrV4::new(Side::Right.address(), 9)
    }

    /// Lets `span` go by, and both hosts do in it what there is to do.
    fn advance_clock(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now = end.min(self.now + Duration::from_millis(10));
            while self.turn() {}
        }
    }

    /// Lets each host have a turn; true if anything went from one to the other.
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

    /// Two seconds go by, in which nobody looks at what rests.
    fn only_those_awake_have_timers(&mut self) {
        self.now += Duration::from_secs(2);
        for host in &mut self.hosts {
            let (stack, mut timers) = (host.stack_mut(), 0);
            while stack.poll_timeout() <= self.now {
                stack.handle_timeout(self.now, 1);
                timers += 1;
            }
            assert!((1..=AWAKE + BATCH).contains(&timers), "{timers} timers");
        }
    }

    fn open(&mut self) -> Vec<[TcpHandle; 2]> {
        let now = self.now;
        let left: Vec<_> = (0..BATCH)
            .map(|_| {
                let stack = self.hosts[0].stack_mut();
                stack.tcp_connect(now, Self::door(), &ConnectOptions::default()).expect("a way")
            })
            .collect();
        while self.turn() {}
        let accept =
            |_| self.hosts[1].stack_mut().tcp_accept(self.listener).expect("a connection").0;
        let right: Vec<_> = (0..BATCH).map(accept).collect();
        left.into_iter().zip(right).map(|(left, right)| [left, right]).collect()
    }

    /// Each end says something, and hears what the other has said.
    fn converse(&mut self, pairs: &[[TcpHandle; 2]]) {
        let mut heard = [0; 4_096];
        for end in [0, 1] {
            for pair in pairs {
                self.hosts[end]
                    .stack_mut()
                    .tcp_write(self.now, pair[end], &[7; 2_000])
                    .expect("room");
            }
            self.advance_clock(Duration::from_millis(50));
            for pair in pairs {
                let read =
                    self.hosts[1 - end].stack_mut().tcp_read(self.now, pair[1 - end], &mut heard);
                assert_eq!(read.expect("what was said"), 2_000);
            }
        }
    }
}

/// One after the other, because all memory of this program is counted.
#[test]
fn an_idle_connection_takes_little_memory() {
    let [busy, idle] = an_idle_connection_takes_at_most_512_bytes_whatever_it_has_lived_through();
    println!("{idle} bytes for an idle connection, {busy} soon after a conversation");
    let waiting = a_connection_in_time_wait_takes_at_most_256_bytes_beside_its_numbers();
    println!("{waiting} bytes for one in TIME-WAIT");
    let silent = of_many_that_are_opened_at_once_only_the_last_are_awake();
    println!("{silent} bytes for a connection of many that have just been opened");
    of_many_that_are_accepted_late_only_the_last_are_awake();
}

/// The server's ends close first, and wait; the clients' are gone.
fn a_connection_in_time_wait_takes_at_most_256_bytes_beside_its_numbers() -> usize {
    let mut crowd = Crowd::new();
    let mut pairs = crowd.open();
    while pairs.len() < CONNECTIONS {
        pairs.extend(crowd.open());
    }
    let hosts = [1, 0];
    for end in hosts {
        for pair in &pairs {
            crowd.hosts[end]
                .stack_mut()
                .tcp_close(crowd.now, pair[end])
                .expect("an open connection");
        }
        while crowd.turn() {}
    }
    crowd.hosts.iter().for_each(|host| host.stack().check());
    let waiting = MEMORY.current_usage();
    // A minute, and the sixteenth of it by which the queue may be late.
    crowd.advance_clock(Duration::from_secs(64));
    crowd.hosts.iter().for_each(|host| host.stack().check());
    let each = (waiting - MEMORY.current_usage()) / pairs.len();
    assert!((64..=256 - MARGIN / 2).contains(&each), "{each} bytes");
    each
}

fn of_many_that_are_opened_at_once_only_the_last_are_awake() -> usize {
    let mut crowd = Crowd::new();
    let mut pairs = crowd.open();
    let before = MEMORY.current_usage();
    while pairs.len() < CONNECTIONS {
        pairs.extend(crowd.open());
    }
    let silent = (MEMORY.current_usage() - before) / (2 * pairs.len());
    // No time has passed. A thousand are awake, in two and a half kilobytes each.
    assert!(silent + MARGIN <= IDLE + AWAKE * 2_560 / CONNECTIONS, "{silent} bytes");
    crowd.hosts.iter().for_each(|host| host.stack().check());
    crowd.only_those_awake_have_timers();
    // Those that rest hear and speak, as the others do.
    for pairs in [&pairs[..BATCH], &pairs[pairs.len() - BATCH..]] {
        crowd.converse(pairs);
    }
    crowd.hosts.iter().for_each(|host| host.stack().check());
    silent
}

/// They were at rest, and accepting wakes them.
fn of_many_that_are_accepted_late_only_the_last_are_awake() {
    let mut crowd = Crowd::new();
    let door = SocketAddrV4::new(Side::Right.address(), 10);
    let options = ListenOptions { backlog: CONNECTIONS, ..ListenOptions::default() };
    let listener = crowd.hosts[1].stack_mut().tcp_listen(door, &options).expect("a free port");
    let count = CONNECTIONS / BATCH * BATCH;
    for _ in 0..count / BATCH {
        for _ in 0..BATCH {
            let stack = crowd.hosts[0].stack_mut();
            stack.tcp_connect(crowd.now, door, &ConnectOptions::default()).expect("a way");
        }
        while crowd.turn() {}
    }
    crowd.advance_clock(Duration::from_secs(5));
    let before = MEMORY.current_usage();
    let accepted = core::iter::from_fn(|| crowd.hosts[1].stack_mut().tcp_accept(listener)).count();
    assert_eq!(accepted, count);
    let each = MEMORY.current_usage().saturating_sub(before) / count;
    assert!(each <= AWAKE * 2_560 / CONNECTIONS, "{each} bytes more");
    crowd.hosts.iter().for_each(|host| host.stack().check());
}

fn an_idle_connection_takes_at_most_512_bytes_whatever_it_has_lived_through() -> [usize; 2] {
    let mut crowd = Crowd::new();
    let mut pairs = Vec::with_capacity(CONNECTIONS + BATCH);
    // What a host keeps of which nothing belongs to a connection.
    let first = crowd.open();
    crowd.converse(&first);
    crowd.advance_clock(Duration::from_secs(5));
    let before = MEMORY.current_usage();
    while pairs.len() < CONNECTIONS {
        let opened = crowd.open();
        crowd.converse(&opened);
        pairs.extend(opened);
    }
    let busy = (MEMORY.current_usage() - before) / (2 * pairs.len());
    crowd.advance_clock(Duration::from_secs(5));
    let idle = (MEMORY.current_usage() - before) / (2 * pairs.len());
    assert!(idle + MARGIN <= IDLE, "{idle} bytes");
    crowd.hosts.iter().for_each(|host| host.stack().check());
    // They are all still there.
    for pairs in pairs.chunks(BATCH) {
        crowd.converse(pairs);
    }
    crowd.advance_clock(Duration::from_secs(5));
    let again = (MEMORY.current_usage() - before) / (2 * pairs.len());
    assert!(again + MARGIN <= IDLE, "{again} bytes after the second conversation");
    [busy, idle]
}
