//! Runs a random world: two connections or two hosts in virtual time, with their applications.

use super::application::Application;
use super::coverage::Coverage;
use super::world::{Hosts, World};
use crate::transfer::listen;
use crate::{Access, Connections, End as Tcp, Pair, Setup, Side};
use linerate_stack::{ConnectOptions, Error as StackError, ListenHandle, TcpHandle};
use linerate_tcp::{Connection, Error, State};
use linerate_units::{Duration, Instant};
use std::net::SocketAddrV4;

/// Maximum number of steps in the run of a world. A run that exceeds it fails.
const MOST_STEPS: u64 = 3_000_000;

/// Maximum virtual time in the run of a world. In this time, even slow transfers complete, and
/// connections that the peer has abandoned time out.
const LONGEST: Duration = Duration::from_secs(4 * 3_600);

/// The run of a random world: its hosts or connections, the applications, and the state of the run.
pub(super) struct Stage {
    scene: Scene,
    /// The applications at both ends of each connection.
    applications: Vec<[Application; 2]>,
    is_broken_off: bool,
    /// Whether the path may make a connection time out: it loses, corrupts or marks packets, or has
    /// a bottleneck.
    is_bad: bool,
}

enum Scene {
    Connections(Box<Connections>),
    Hosts(Box<TwoHosts>),
}

struct TwoHosts {
    pair: Pair,
    listener: ListenHandle,
    /// Handles of each connection: the handle at the left host, and the handle at the right host;
    /// `None` until the right host has accepted the connection.
    handles: Vec<(TcpHandle, Option<TcpHandle>)>,
}

/// Whether an endpoint has a connection that its application can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Present,
    /// The endpoint has no connection that the application can use. Either no SYN has arrived, or
    /// the application has not accepted the connection yet.
    Absent,
}

/// Access of an application to its endpoint of a connection, in a world with or without hosts.
pub(super) enum End<'a> {
    Connection(Option<&'a mut Connection>, Instant),
    Socket(&'a mut Pair, Side, Option<TcpHandle>),
}

impl End<'_> {
    pub(super) const fn presence(&self) -> Presence {
        match self {
            Self::Connection(None, _) | Self::Socket(_, _, None) => Presence::Absent,
            _ => Presence::Present,
        }
    }

    pub(super) fn read(&mut self, access: Access, into: &mut [u8]) -> Result<usize, Error> {
        match self {
            Self::Connection(Some(end), now) => access.read(end, *now, into),
            Self::Socket(pair, side, Some(handle)) => {
                let now = pair.now;
                access.read_socket(pair.stack(*side), now, *handle, into).map_err(of_connection)
            }
            _ => Err(Error::WouldBlock),
        }
    }

    pub(super) fn write(&mut self, access: Access, data: &[u8]) -> Result<usize, Error> {
        match self {
            Self::Connection(Some(end), now) => access.write(end, *now, data),
            Self::Socket(pair, side, Some(handle)) => {
                let now = pair.now;
                access.write_socket(pair.stack(*side), now, *handle, data).map_err(of_connection)
            }
            _ => Ok(0),
        }
    }

    pub(super) fn close_direction(&mut self) {
        match self {
            Self::Connection(Some(end), now) => end.shutdown_write(*now),
            Self::Socket(pair, side, Some(handle)) => {
                let now = pair.now;
                assert!(
                    pair.stack(*side).tcp_shutdown_write(now, *handle).is_ok(),
                    "the socket is there"
                );
            }
            _ => {}
        }
    }

    pub(super) fn abort(&mut self) {
        match self {
            Self::Connection(Some(end), now) => end.abort(*now),
            Self::Socket(pair, side, Some(handle)) => {
                let now = pair.now;
                assert!(pair.stack(*side).tcp_abort(now, *handle).is_ok(), "the socket is there");
            }
            _ => {}
        }
    }
}

fn of_connection(error: StackError) -> Error {
    match error {
        StackError::WouldBlock => Error::WouldBlock,
        StackError::Tcp(error) => error,
        other => panic!("a socket is gone: {other}"),
    }
}

impl Scene {
    /// Returns whether the connection has timed out at the endpoint `side`.
    fn has_timed_out(&mut self, index: usize, side: Side) -> bool {
        let error = match self {
            Self::Connections(pair) => match side {
                Side::Left => pair.client.error(),
                Side::Right => pair.server.as_ref().and_then(Connection::error),
            },
            Self::Hosts(hosts) => {
                let (left, right) = hosts.handles[index];
                let handle = if side == Side::Left { Some(left) } else { right };
                let stack = hosts.pair.stack(side);
                handle.and_then(|handle| stack.tcp(handle)?.error())
            }
        };
        error == Some(Error::TimedOut)
    }

    /// Returns whether the server's endpoint of this connection exists. In a world with hosts, it
    /// exists once the server's application has accepted the connection.
    fn has_server(&self, index: usize) -> bool {
        match self {
            Self::Connections(pair) => pair.server.is_some(),
            Self::Hosts(hosts) => hosts.handles[index].1.is_some(),
        }
    }

    fn new(world: &World) -> Self {
        match &world.hosts {
            None => {
                let [client, server] = &world.configs;
                let pair = Connections::new(client, server, world.network, world.seed)
                    .with_forger(world.forgery, world.seed);
                Self::Connections(Box::new(match world.fast_open {
                    Some(lets_in) => pair.opened_fast(lets_in),
                    None => pair,
                }))
            }
            Some(hosts) => Self::Hosts(Box::new(TwoHosts::new(world, hosts))),
        }
    }

    fn now(&self) -> Instant {
        match self {
            Self::Connections(pair) => pair.now,
            Self::Hosts(hosts) => hosts.pair.now,
        }
    }

    fn end(&mut self, index: usize, side: Side) -> End<'_> {
        match self {
            Self::Connections(pair) => {
                let now = pair.now;
                let end =
                    if side == Side::Left { Some(&mut pair.client) } else { pair.server.as_mut() };
                End::Connection(end, now)
            }
            Self::Hosts(hosts) => {
                let (left, right) = hosts.handles[index];
                End::Socket(
                    &mut hosts.pair,
                    side,
                    if side == Side::Left { Some(left) } else { right },
                )
            }
        }
    }

    /// Handles everything that is due at the current time.
    fn process_pending(&mut self) {
        if let Self::Hosts(hosts) = self {
            hosts.process_pending();
        }
    }

    /// Advances to the next event if it is not later than `limit`. Returns false if there is no
    /// event up to `limit`.
    fn move_on(&mut self, limit: Instant) -> bool {
        match self {
            Self::Connections(pair) => pair.step_until(limit),
            Self::Hosts(hosts) => {
                let happens = hosts.pair.move_on(limit);
                if !happens {
                    hosts.pair.now = hosts.pair.now.max(limit);
                }
                happens
            }
        }
    }
}

impl TwoHosts {
    fn new(world: &World, hosts: &Hosts) -> Self {
        let setup = Setup {
            seed: world.seed,
            network: world.network,
            medium: hosts.medium,
            mtu: hosts.mtu,
            capacity: hosts.capacity,
            pause: hosts.pause,
        };
        let mut pair = Pair::new(&setup, |side, config| config.tcp = world.configs[side as usize]);
        let listener = listen(&mut pair);
        let (now, door) = (pair.now, SocketAddrV4::new(Side::Right.address(), 9));
        let mut open = || pair.stack(Side::Left).tcp_connect(now, door, &ConnectOptions::default());
        let opened = world
            .connections
            .iter()
            .map(|_| (open().unwrap_or_else(|error| panic!("{error}")), None));
        let handles = opened.collect();
        Self { pair, listener, handles }
    }

    fn process_pending(&mut self) {
        self.pair.turn();
        while self.pair.stack(Side::Left).poll_event().is_some() {}
        while self.pair.stack(Side::Right).poll_event().is_some() {}
        while let Some((right, peer)) = self.pair.stack(Side::Right).tcp_accept(self.listener) {
            let left = self.pair.stack(Side::Left);
            let is_its = |&(handle, _): &(TcpHandle, _)| left.tcp_local_addr(handle) == Ok(peer);
            // The list contains all clients that still have an address. If none of them has the
            // address `peer`, the client gave up before the server accepted the connection, and the
            // handle is not needed.
            if let Some(index) = self.handles.iter().position(is_its) {
                self.handles[index].1 = Some(right);
            }
        }
    }
}

impl Stage {
    pub(super) fn new(world: &World) -> Self {
        let scene = Scene::new(world);
        let now = scene.now();
        let applications_of = |ends: &[_; 2]| {
            let [client, server]: &[super::world::Habit; 2] = ends;
            [
                Application::new(*client, server.bytes, now),
                Application::new(*server, client.bytes, now),
            ]
        };
        let network = &world.network;
        Self {
            scene,
            applications: world.connections.iter().map(applications_of).collect(),
            is_broken_off: world.is_broken_off(),
            is_bad: network.loss + network.corruption + network.marking > 0
                || network.line.is_some(),
        }
    }

    /// Runs the world until all applications have finished, and then until all packets and timers
    /// are handled. Returns the events that occurred.
    pub(super) fn play(mut self) -> Coverage {
        let end = self.scene.now() + LONGEST;
        let mut steps = 0_u64;
        while !self.is_over() {
            steps += 1;
            assert!(
                steps < MOST_STEPS,
                "too many steps after {} s",
                self.scene.now().as_nanos() / 1_000_000_000
            );
            let busy = self.act();
            self.scene.process_pending();
            // The applications act a second time before the virtual time advances, since further
            // actions may now be possible. The reason may be their first actions, or data that has
            // just arrived.
            if busy | self.act() {
                continue;
            }
            let now = self.scene.now();
            let wakes = self
                .applications
                .iter()
                .flatten()
                .map(|one| one.wakes(now))
                .fold(end, Instant::min);
            let happened = self.scene.move_on(wakes);
            if !happened && wakes == end {
                assert!(self.is_broken_off, "stalled with bytes missing: {:?}", self.applications);
                break;
            }
            assert!(self.scene.now() < end || self.is_broken_off, "not finished after {LONGEST}");
            if self.scene.now() >= end {
                break;
            }
        }
        self.drain();
        self.judge()
    }

    fn act(&mut self) -> bool {
        let mut busy = false;
        for (index, ends) in self.applications.iter_mut().enumerate() {
            for (application, side) in ends.iter_mut().zip(Side::BOTH) {
                let now = self.scene.now();
                busy |= application.act(&mut self.scene.end(index, side), now);
            }
        }
        busy
    }

    /// Returns whether all applications have finished. In three cases, the run does not wait for an
    /// application that has not finished:
    ///
    /// - The handshake has not reached the server, and the client has failed. The server's
    ///   application then has nothing to do.
    /// - The peer's connection has timed out without a reset. The application's connection is then
    ///   half-open, and waits in vain (RFC 9293 §3.5.1).
    /// - On a bad network, the peer's connection has timed out after the peer's application had
    ///   finished. That application made no further call which could have reported the timeout.
    fn is_over(&mut self) -> bool {
        let Self { scene, applications, is_bad, .. } = self;
        applications.iter().enumerate().all(|(index, [client, server])| {
            let was_never_reached = client.failed.is_some() && !scene.has_server(index);
            let mut is_over = |one: &Application, other: &Application, far: Side| {
                one.is_done()
                    || other.has_given_up()
                    || (*is_bad && scene.has_timed_out(index, far))
            };
            is_over(client, server, Side::Right)
                && (is_over(server, client, Side::Left) || was_never_reached)
        })
    }

    /// Runs the world without its applications for at most `LONGEST`: all packets in flight are
    /// delivered, and all timers that expire are handled.
    fn drain(&mut self) {
        let end = self.scene.now() + LONGEST;
        let mut steps = 0_u64;
        self.scene.process_pending();
        while self.scene.move_on(end) {
            self.scene.process_pending();
            steps += 1;
            assert!(steps < MOST_STEPS, "packets or timers without end");
        }
    }

    /// Checks that each connection which has failed had a reason: a bad network, or an application
    /// that aborts its connection. Returns the events that occurred.
    fn judge(&mut self) -> Coverage {
        let mut coverage = Coverage::of_one_world();
        for application in self.applications.iter().flatten() {
            match application.failed {
                None => {}
                Some(Error::TimedOut | Error::Unreachable) if self.is_bad || self.is_broken_off => {
                }
                Some(Error::Reset | Error::Refused) if self.is_broken_off || self.is_bad => {}
                Some(error) => panic!("a connection failed without a cause: {error}"),
            }
            coverage.add_end(application.failed, application.aborted);
        }
        self.add_connections(&mut coverage);
        coverage
    }

    fn add_connections(&mut self, coverage: &mut Coverage) {
        match &mut self.scene {
            Scene::Connections(pair) => {
                for end in [Tcp::Client, Tcp::Server] {
                    if end == Tcp::Client || pair.server.is_some() {
                        coverage.add_connection(pair.end(end).statistics());
                        let closed = pair.end(end).state() == State::Closed;
                        let is_alone =
                            self.applications.iter().flatten().any(Application::has_given_up);
                        let may_be_open = self.is_broken_off || is_alone;
                        assert!(closed || may_be_open, "{end:?} is {:?}", pair.end(end).state());
                    }
                }
            }
            Scene::Hosts(hosts) => {
                for &(left, right) in &hosts.handles {
                    for (side, handle) in [(Side::Left, Some(left)), (Side::Right, right)] {
                        let end = handle.and_then(|handle| hosts.pair.stack(side).tcp(handle));
                        end.into_iter().for_each(|end| coverage.add_connection(end.statistics()));
                    }
                }
            }
        }
    }
}
