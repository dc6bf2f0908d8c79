//! Runs scripts against linerate's own host, in virtual time.

mod calls;
mod datagrams;
mod epoll;
mod epoll_calls;
mod error_queue;
mod errors;
mod fast_open;
mod information;
mod options;
mod polling;
mod script_link;
mod settings;
mod sockets;
mod transfer;
mod unsupported;

use crate::family::{end_like, longer};
use crate::flows::Flows;
use crate::machine::{Answer, Machine, MachineError};
use crate::packet::{Captured, MOST_CAPTURED, is_expectable};
use crate::report::Report;
use crate::run::{Options, Run};
use crate::syntax::{Call, Line, LineMark, Script, Setting, Settings};
use error_queue::ErrorQueue;
use fast_open::FastOpenRules;
use linerate_stack::{Event, Host, Route, Stack, StackConfig, SynCookies};
use linerate_units::{Duration, Instant};
use linerate_wire::{IpCidr, MacAddress};
use script_link::ScriptLink;
use sockets::{Socket, Sockets};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Maximum number of turns at one instant of virtual time. If the host still has work after so many
/// turns, it would never become idle, and the script could not continue. The script is ended with
/// an error.
const TURNS: usize = 100_000;
/// The seed of the host. It is constant, so that every run of a script is identical.
const SEED: [u8; 32] = *b"a script always finds this host.";

/// Runs a script against linerate's host. Every run of a script returns an identical report.
#[must_use]
pub fn run_on_stack(script: &Script, options: &Options) -> Report {
    let settings = match options.family.settings(&script.settings) {
        Ok(settings) => settings,
        Err(what) => return Report::refused(what),
    };
    let longer = longer(&script.settings, &settings);
    let flows = Flows::new(settings.clone(), longer);
    Run::new(script, flows, *options, StackMachine::new(&settings, longer)).run_to_end()
}

/// linerate's host, its virtual clock, and the sockets of the application.
#[derive(Debug)]
struct StackMachine {
    host: Host<ScriptLink>,
    begin: Instant,
    now: Instant,
    /// Number of bytes by which IP headers on the wire are longer than those that the script
    /// assumes.
    longer: u16,
    local: IpAddr,
    remote: IpAddr,
    ports: (u16, u16),
    sent: VecDeque<Captured>,
    sockets: Sockets,
    /// The error queue of each socket that has one.
    error_queues: BTreeMap<i32, ErrorQueue>,
    /// Sockets whose received messages include the number of unread bytes (`TCP_INQ`).
    inquiring: BTreeSet<i32>,
    /// The host's default route.
    route: Route,
    /// Configuration of sockets that are created from now on.
    config: linerate_tcp::Config,
    /// Whether listeners use SYN cookies.
    syn_cookies: SynCookies,
    /// Limit of unsent bytes that sockets have by default (`tcp_notsent_lowat`); `None` for no
    /// limit.
    unsent_low_water: Option<u32>,
    /// The rules for TCP Fast Open.
    fast_open: FastOpenRules,
    /// Keep-alive settings of sockets that enable keep-alive probes.
    keep_alive: linerate_tcp::KeepAlive,
    /// The call in progress: the call, the number of the socket that it may create, and its start.
    /// `None` between calls.
    waiting: Option<(Call, i32, Duration)>,
    finished: Option<(Duration, Answer)>,
    /// Bytes that the write in progress has written so far.
    written: usize,
}

impl StackMachine {
    fn new(settings: &Settings, longer: u16) -> Self {
        let mac = MacAddress::new([2, 0, 0, 0, 0, 1]);
        let everywhere = if settings.local.is_ipv4() { IpCidr::ALL_IPV4 } else { IpCidr::ALL_IPV6 };
        let here = IpCidr::new(settings.local, 16).unwrap_or(everywhere);
        let mut config = StackConfig::new(mac, here);
        // On a serial line with header compression, the identification of IP packets counts up by
        // one. It then takes no bytes in a compressed header (RFC 1144 §3.2.2).
        config.count_packets = settings.line == Some(Line::Cslip);
        let route = Route::direct(everywhere);
        config.routes.push(route);
        let stack = Stack::new(config, SEED);
        // The clock starts at 1,000 s: the host's fields use the time zero for "never", so an event
        // at the start of the script must not have the time zero.
        let begin = Instant::ZERO + Duration::from_secs(1_000);
        Self {
            host: Host::new(stack, ScriptLink::new(settings.mtu.into(), settings.line)),
            begin,
            now: begin,
            longer,
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
            written: 0,
        }
    }

    /// Runs the host until it has nothing more to do at this time. Returns the time of its next
    /// timer.
    fn run_host(&mut self) -> Result<Instant, MachineError> {
        for _ in 0..TURNS {
            let turn = self.host.turn(self.now).map_err(|error| {
                MachineError::Broken(format!("linerate's host failed: {error}"))
            })?;
            self.collect();
            self.host.stack().check();
            let moved = self.retry_call();
            if !turn.more && turn.next > self.now && !turn.blocked && !moved {
                return Ok(self.host.stack().poll_timeout());
            }
        }
        Err(MachineError::Broken("linerate's host does not become idle".to_owned()))
    }

    /// Converts the address and port of an endpoint in the script to the IP version of the host.
    fn end(&self, end: SocketAddr) -> SocketAddr {
        end_like(self.local, end)
    }

    /// Takes the packets and events that the host has produced since the previous call. Packets are
    /// queued for comparison with the script; events update the state of the sockets.
    fn collect(&mut self) {
        let at = self.now();
        while let Some((bytes, line)) = self.host.link_mut().fetch() {
            if self.sent.len() < MOST_CAPTURED && is_expectable(&bytes, self.local, self.remote) {
                self.sent.push_back(Captured { at, bytes, line });
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

    /// Repeats the attempt to execute the call in progress. Returns whether the call has returned
    /// now.
    fn retry_call(&mut self) -> bool {
        let Some((call, name, began)) = self.waiting.clone() else { return false };
        let Some(answer) = self.attempt(&call, name, began) else { return false };
        self.waiting = None;
        self.finished = Some((self.now(), answer));
        true
    }

    /// Lets time pass until `limit`, or until `done` returns true.
    fn run_until(
        &mut self,
        limit: Instant,
        done: impl Fn(&Self) -> bool,
    ) -> Result<(), MachineError> {
        loop {
            let next = self.run_host()?;
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
    const MAX_WAIT: Duration = Duration::from_secs(24 * 3_600);
    const HAS_COARSE_TIMERS: bool = false;

    fn now(&self) -> Duration {
        self.now.since(self.begin)
    }

    fn wait_until(&mut self, at: Duration) -> Result<(), MachineError> {
        self.run_until(self.begin + at, |_| false)
    }

    fn inject(&mut self, packet: &[u8], line: Option<LineMark>) -> Result<(), MachineError> {
        let now = self.now;
        self.host.link_mut().put(now, packet, line).map_err(MachineError::Refused)?;
        self.run_host().map(drop)
    }

    fn next_packet(&mut self, until: Duration) -> Result<Option<Captured>, MachineError> {
        self.run_until(self.begin + until, |machine| !machine.sent.is_empty())?;
        Ok(self.sent.pop_front())
    }

    fn set(&mut self, setting: &Setting) -> Result<(), MachineError> {
        settings::set(self, setting).map_err(MachineError::Refused)
    }

    fn begin(
        &mut self,
        call: &Call,
        name: i32,
        may_wait: bool,
    ) -> Result<Option<Answer>, MachineError> {
        self.written = 0;
        if let Some(what) = self.unsupported(call) {
            return Err(MachineError::Refused(what));
        }
        let answer = self.attempt(call, name, self.now());
        if answer.is_none() {
            self.waiting = Some((call.clone(), name, self.now()));
        }
        self.run_host()?;
        if !may_wait && let Some((_, answer)) = self.finished.take() {
            return Ok(Some(answer));
        }
        Ok(answer)
    }

    fn finish(&mut self, until: Duration) -> Result<Option<(Duration, Answer)>, MachineError> {
        self.run_until(self.begin + until, |machine| machine.finished.is_some())?;
        Ok(self.finished.take())
    }

    fn field(&self, name: i32, field: &str) -> Option<u64> {
        let Some(Socket::Connection { handle, .. }) = self.sockets.get(name) else { return None };
        information::field(&*self.host.stack().tcp(*handle)?, self.now, field).map(|value| {
            // A script that was written for IPv4 expects an MTU with an IPv4 header of 20 bytes. If
            // it runs over IPv6, the host's MTU has room for 40 bytes of header. `self.longer` is
            // this difference; it is zero if the script runs over the IP version for which it was
            // written.
            let longer = if field == "tcpi_pmtu" || field == "pmtu" { self.longer } else { 0 };
            value.saturating_sub(longer.into())
        })
    }
}
