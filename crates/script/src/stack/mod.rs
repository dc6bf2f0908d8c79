//! linerate's own host as the machine that a script examines: the whole of it, in virtual time.

mod cable;
mod calls;
mod epoll;
mod error_queue;
mod errors;
mod fast_open;
mod information;
mod lacks;
mod options;
mod polling;
mod settings;
mod sockets;
mod transfer;

use crate::flows::Flows;
use crate::machine::{Answer, Machine, Trouble};
use crate::packet::{Captured, MOST_CAPTURED, is_segment};
use crate::report::Report;
use crate::run::{Options, Run};
use crate::syntax::{Call, Script, Setting, Settings};
use cable::Cable;
use error_queue::ErrorQueue;
use fast_open::FastOpenRules;
use linerate_stack::{Event, Host, Route, Stack, StackConfig, SynCookies};
use linerate_units::{Duration, Instant};
use linerate_wire::{Ipv4Cidr, MacAddress};
use sockets::{Socket, Sockets};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Turns at one moment; a host that wants more of them has lost its way.
const TURNS: usize = 100_000;
/// What everything random is drawn from: a script always meets the same host.
const SEED: [u8; 32] = *b"a script always finds this host.";

/// Runs a script against linerate's host. The same script gives the same report, always.
#[must_use]
pub fn run_on_stack(script: &Script, options: &Options) -> Report {
    let flows = Flows::new(script.settings.clone());
    Run::new(script, flows, *options, StackMachine::new(&script.settings)).go()
}

/// The host, its time, and its application's sockets.
#[derive(Debug)]
struct StackMachine {
    host: Host<Cable>,
    begin: Instant,
    now: Instant,
    local: std::net::Ipv4Addr,
    remote: std::net::Ipv4Addr,
    ports: (u16, u16),
    sent: VecDeque<Captured>,
    sockets: Sockets,
    /// The error queues of those sockets that have one.
    error_queues: BTreeMap<i32, ErrorQueue>,
    /// Sockets that tell with each message how much is left to read (`TCP_INQ`).
    inquiring: BTreeSet<i32>,
    /// The route to everything.
    route: Route,
    /// What the sockets of the application are made with.
    config: linerate_tcp::Config,
    /// When listeners give cookies.
    syn_cookies: SynCookies,
    /// Bytes that may be unsent for a write to be taken, where a socket does not say.
    unsent_low_water: Option<u32>,
    /// What may be opened fast.
    fast_open: FastOpenRules,
    /// How a silent peer is probed once an application asks for that.
    keep_alive: linerate_tcp::KeepAlive,
    /// The call that waits, the name of what may come of it, and when it began.
    waiting: Option<(Call, i32, Duration)>,
    finished: Option<(Duration, Answer)>,
    /// Bytes that the waiting write has given already.
    given: usize,
}

impl StackMachine {
    fn new(settings: &Settings) -> Self {
        let mac = MacAddress::new([2, 0, 0, 0, 0, 1]);
        // Any address has a network of 16 bits.
        let here = Ipv4Cidr::new(settings.local, 16).unwrap_or(Ipv4Cidr::ALL);
        let mut config = StackConfig::new(mac, here);
        let route = Route::direct(Ipv4Cidr::ALL);
        config.routes.push(route);
        let stack = Stack::new(config, SEED);
        // Not zero, so that a forgotten time shows.
        let begin = Instant::ZERO + Duration::from_secs(1_000);
        Self {
            host: Host::new(stack, Cable::new(usize::from(settings.mtu))),
            begin,
            now: begin,
            local: settings.local,
            remote: settings.remote,
            ports: (settings.bind_port, settings.connect_port),
            sent: VecDeque::new(),
            sockets: Sockets::default(),
            error_queues: BTreeMap::new(),
            inquiring: BTreeSet::new(),
            route,
            config: linerate_tcp::Config::modern(),
            syn_cookies: SynCookies::default(),
            unsent_low_water: None,
            fast_open: FastOpenRules::default(),
            keep_alive: linerate_tcp::KeepAlive::default(),
            waiting: None,
            finished: None,
            given: 0,
        }
    }

    /// Does everything that there is to do at this moment; when there will be more.
    fn settle(&mut self) -> Result<Instant, Trouble> {
        for _ in 0..TURNS {
            let turn = self.host.turn(self.now).map_err(|error| {
                Trouble::Broken(format!("linerate's host cannot go on: {error}"))
            })?;
            self.collect();
            self.host.stack().check();
            let moved = self.go_on_with_call();
            if !turn.more && turn.next > self.now && !turn.blocked && !moved {
                return Ok(self.host.stack().poll_timeout());
            }
        }
        Err(Trouble::Broken("linerate's host does not come to rest".to_owned()))
    }

    /// Takes down what was sent and what happened.
    fn collect(&mut self) {
        let at = self.now();
        while let Some(bytes) = self.host.link_mut().fetch() {
            if self.sent.len() < MOST_CAPTURED && is_segment(&bytes, self.local, self.remote) {
                self.sent.push_back(Captured { at, bytes });
            }
        }
        self.advance_error_queues();
        while let Some(event) = self.host.stack_mut().poll_event() {
            match event {
                Event::Incoming(listener) => self.sockets.note_incoming(listener),
                Event::Tcp(handle, _) => self.sockets.note_connection(handle),
                _ => {}
            }
        }
    }

    /// Tries the call that waits again; true if it has ended.
    fn go_on_with_call(&mut self) -> bool {
        let Some((call, name, began)) = self.waiting.clone() else { return false };
        let Some(answer) = self.attempt(&call, name, began) else { return false };
        self.waiting = None;
        self.finished = Some((self.now(), answer));
        true
    }

    /// Lets time go by until `limit`, or until `done`.
    fn run_until(&mut self, limit: Instant, done: impl Fn(&Self) -> bool) -> Result<(), Trouble> {
        loop {
            let next = self.settle()?;
            if done(self) {
                return Ok(());
            }
            let next = self.deadline().map_or(next, |deadline| next.min(self.begin + deadline));
            if next > limit {
                self.now = self.now.max(limit);
                return Ok(());
            }
            self.now = self.now.max(next);
        }
    }
}

impl Machine for StackMachine {
    const PATIENCE: Duration = Duration::from_secs(24 * 3_600);
    const COARSE: bool = false;

    fn now(&self) -> Duration {
        self.now.since(self.begin)
    }

    fn pass_until(&mut self, at: Duration) -> Result<(), Trouble> {
        self.run_until(self.begin + at, |_| false)
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), Trouble> {
        let now = self.now;
        self.host.link_mut().put(now, packet);
        self.settle().map(drop)
    }

    fn next_packet(&mut self, until: Duration) -> Result<Option<Captured>, Trouble> {
        self.run_until(self.begin + until, |machine| !machine.sent.is_empty())?;
        Ok(self.sent.pop_front())
    }

    fn set(&mut self, setting: &Setting) -> Result<(), Trouble> {
        settings::set(self, setting).map_err(Trouble::Refused)
    }

    fn begin(&mut self, call: &Call, name: i32, may_wait: bool) -> Result<Option<Answer>, Trouble> {
        self.given = 0;
        if let Some(what) = self.lacks(call) {
            return Err(Trouble::Refused(what));
        }
        let answer = self.attempt(call, name, self.now());
        if answer.is_none() {
            self.waiting = Some((call.clone(), name, self.now()));
        }
        self.settle()?;
        if !may_wait && let Some((_, answer)) = self.finished.take() {
            return Ok(Some(answer));
        }
        Ok(answer)
    }

    fn finish(&mut self, until: Duration) -> Result<Option<(Duration, Answer)>, Trouble> {
        self.run_until(self.begin + until, |machine| machine.finished.is_some())?;
        Ok(self.finished.take())
    }

    fn field(&self, name: i32, field: &str) -> Option<u64> {
        let Some(Socket::Connection { handle, .. }) = self.sockets.get(name) else { return None };
        information::field(&*self.host.stack().tcp(*handle)?, self.now, field)
    }
}
