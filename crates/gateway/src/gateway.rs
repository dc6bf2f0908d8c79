//! A gateway, and the loop that relays its flows.

use crate::admission::Admission;
use crate::config::GatewayConfig;
use crate::error::{CLOCK, GatewayError};
use crate::flows::{Flow, Flows};
use crate::metrics::GatewayCounters;
use crate::metrics_server::MetricsServer;
use crate::pace::Pace;
use crate::poller::{Poller, Token};
use linerate_link::{FreedMemory, Readiness, return_free_memory};
use linerate_stack::{
    Budget, Destinations, Event, ForwardEvent, ForwardOptions, Host, Limits, Link, ListenOptions,
    Route, Stack, StackConfig, TcpHandle, Turn, UdpEvent,
};
use linerate_units::{Clock, Instant};
use linerate_wire::IpCidr;
use rustix::event::epoll::EventFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Port of DNS servers (RFC 1035).
const DNS: u16 = 53;
/// Number of open files that the process needs for other purposes than flows.
const OTHER_FILES: u64 = 64;
/// Maximum number of frames that one turn receives. Their data, at most 2 MiB, should still be in
/// the processor's cache when it is passed on. A gateway whose turns reach this number counts as
/// saturated, so its new flows get a limited share of the time (see [`Pace`]).
const FRAMES_PER_TURN: usize = 32;
/// Maximum number of new flows that one turn handles.
const NEW_FLOWS: usize = 64;
/// Estimated memory of an idle flow in bytes.
const FLOW: usize = 1_024;
/// Maximum number of turns in which a stopped gateway sends its remaining packets, such as resets.
const LAST_TURNS: usize = 64;

/// A gateway that relays flows from a link to the kernel's network.
///
/// ```
/// use linerate_gateway::{Gateway, GatewayConfig};
/// use linerate_link::memory::{MemoryConfig, pair};
/// use std::io::Write;
/// use std::os::fd::AsFd;
///
/// let (link, _clients) = pair(MemoryConfig::default())?;
/// let mut gateway = Gateway::new(link, &GatewayConfig::default(), [7; 32])?;
/// let (drain, mut stop) = std::io::pipe()?;
/// stop.write_all(b"stop")?;
/// // `run` returns when all flows have ended; here there are none.
/// let summary = gateway.run(drain.as_fd(), None)?;
/// assert_eq!(summary.tcp_accepted, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Gateway<L> {
    pub(crate) host: Host<L>,
    pub(crate) poller: Poller,
    pub(crate) flows: Flows,
    /// Indices of the connections that have more data than one turn may move.
    pub(crate) again: VecDeque<u32>,
    /// Indices of the UDP flows that have more datagrams than one turn may receive.
    pub(crate) again_udp: VecDeque<u32>,
    pub(crate) counters: GatewayCounters,
    pub(crate) metrics: Option<MetricsServer>,
    /// Maximum number of flows.
    pub(crate) limit: usize,
    /// Buffer for one datagram of the maximum size.
    pub(crate) datagram: Box<[u8]>,
    /// The most recently accepted connections to clients, oldest first. Some of their handshakes
    /// may be incomplete. The queue limits the number of incomplete handshakes. Invariant: at most
    /// `HALF_OPEN` connections.
    pub(crate) half_open: VecDeque<TcpHandle>,
    pub(crate) pace: Pace,
    /// Time at which the loop must run to handle the new flows that are waiting; [`Instant::NEVER`]
    /// if none have to wait.
    new_flows_at: Instant,
    freed_memory: FreedMemory,
    config: GatewayConfig,
    /// The state that decides whether a new flow is handled, rejected or dropped. The gateway
    /// shares it with the hook that its forwarders call.
    pub(crate) admission: Arc<Admission>,
}

impl<L: Link + Readiness> Gateway<L> {
    /// Creates a gateway on a link. `seed` must be random; equal seeds give equal sequence numbers.
    ///
    /// Raises the process's limit of open files to its maximum, because each flow needs an open
    /// file.
    ///
    /// # Errors
    /// [`GatewayError`], if the system or the host refuses an operation.
    pub fn new(link: L, config: &GatewayConfig, seed: [u8; 32]) -> Result<Self, GatewayError> {
        let limit = usize::try_from(raise_file_limit().saturating_sub(OTHER_FILES))
            .unwrap_or(usize::MAX)
            .min(config.flows)
            .max(1);
        let udp_flows = config.udp_flows.min(limit.div_ceil(2));
        let served = [IpCidr::ALL_IPV4, IpCidr::ALL_IPV6]
            .into_iter()
            .filter(|all| config.addresses.iter().any(|own| all.contains(own.address())));
        let stack_config = StackConfig {
            addresses: config.addresses.clone(),
            routes: served.clone().map(Route::direct).collect(),
            tcp: config.tcp,
            limits: Limits {
                sockets: limit.saturating_mul(2).saturating_add(16_384),
                deferred: limit.min(Limits::default().deferred),
                udp_flows,
                buffer_bytes: config.buffer_bytes,
                ..Limits::default()
            },
            ..StackConfig::new(config.mac, IpCidr::ALL_IPV4)
        };
        let mut stack = Stack::new(stack_config, seed);
        let admission = Arc::new(Admission::default());
        let options = ForwardOptions {
            listen: ListenOptions { config: Some(config.tcp), ..ListenOptions::default() },
            echo: config.echo,
            ..ForwardOptions::default()
        };
        for all in served {
            let admission = Arc::clone(&admission);
            let all = Destinations::network(all);
            stack.forward(all, &options, move |opening| admission.decide(opening))?;
        }
        let poller = Poller::new(&link)?;
        Ok(Self {
            host: Host::new(stack, link)
                .with_budget(Budget { receive: FRAMES_PER_TURN, ..Budget::default() }),
            poller,
            flows: Flows::default(),
            again: VecDeque::new(),
            again_udp: VecDeque::new(),
            counters: GatewayCounters::default(),
            metrics: None,
            limit,
            datagram: vec![0; 65_535].into(),
            half_open: VecDeque::new(),
            freed_memory: FreedMemory::new(),
            pace: Pace::new(CLOCK.now()),
            new_flows_at: Instant::NEVER,
            config: config.clone(),
            admission,
        })
    }

    pub(crate) const fn stack(&mut self) -> &mut Stack {
        self.host.stack_mut()
    }

    /// Relays flows until `drain` or `end` becomes readable, and returns the final counters. After
    /// `drain`, new flows are rejected, and existing connections have [`GatewayConfig::drain`] to
    /// finish. After `end`, the gateway does not wait for them. Connections that have not finished
    /// are reset.
    ///
    /// # Errors
    /// [`GatewayError`], if the link fails, or if the system refuses to wait for events.
    pub fn run(
        &mut self,
        drain: BorrowedFd<'_>,
        end: Option<BorrowedFd<'_>>,
    ) -> Result<GatewayCounters, GatewayError> {
        self.poller.add(drain, Token::Drain, EventFlags::IN)?;
        if let Some(end) = end {
            self.poller.add(end, Token::End, EventFlags::IN)?;
        }
        let result = self.relay(drain);
        self.poller.remove(drain);
        if let Some(end) = end {
            self.poller.remove(end);
        }
        result?;
        self.end_all_tcp();
        // Relaying has ended. These turns only send the packets that are still queued, such as
        // resets. A failure of the link is not reported here, because a network may lose these
        // packets anyway.
        for _ in 0..LAST_TURNS {
            if !self.host.stack().wants_transmit() || self.host.turn(CLOCK.now()).is_err() {
                break;
            }
        }
        Ok(self.counters)
    }

    fn relay(&mut self, drain: BorrowedFd<'_>) -> Result<(), GatewayError> {
        let mut deadline = Instant::NEVER;
        loop {
            let now = CLOCK.now();
            self.admission.begin_turn(self.host.stack().new_flows());
            let turn = self.host.turn(now)?;
            self.return_memory(now);
            self.serve(turn.more);
            self.pump_queued();
            self.receive_queued();
            let is_drained = self.flows.by_tcp.is_empty() && self.flows.by_deferred.is_empty();
            if deadline != Instant::NEVER && (is_drained || CLOCK.now() >= deadline) {
                return Ok(());
            }
            if self.wait(&turn, deadline)? {
                return Ok(());
            }
            if deadline == Instant::NEVER && self.admission.is_draining() {
                self.poller.remove(drain);
                deadline = CLOCK.now() + self.config.drain;
            }
        }
    }

    /// Waits for events until `deadline` or until a turn is due, and handles the events of the
    /// kernel's sockets. Returns true if an immediate end was requested.
    fn wait(&mut self, turn: &Turn, deadline: Instant) -> Result<bool, GatewayError> {
        let stack = self.host.stack();
        let is_busy = turn.more
            || stack.wants_turn_since(turn)
            || !self.again.is_empty()
            || !self.again_udp.is_empty();
        let next = turn.next.min(stack.poll_timeout()).min(deadline).min(self.new_flows_at);
        let next = next.min(self.freed_memory.deadline());
        self.poller.wait(self.host.link_mut(), next, !is_busy)?;
        let ready = std::mem::take(&mut self.poller.ready);
        let mut is_over = false;
        for event in &ready {
            match event.token {
                Token::Link => {}
                Token::Drain => self.admission.drain(),
                Token::End => is_over = true,
                Token::Metrics => self.accept_metrics_client(),
                Token::MetricsClient(place) => self.serve_metrics_client(place),
                Token::Flow(index, generation) => {
                    if self.flows.is_current(index, generation) {
                        self.handle_far(index, event.flags);
                    }
                }
            }
        }
        self.poller.ready = ready;
        Ok(is_over)
    }

    /// Returns free memory to the system if buffers and flows have used much less memory than their
    /// maximum for a while.
    fn return_memory(&mut self, now: Instant) {
        let held = self.host.stack().buffer_memory() + self.flows.len() * FLOW;
        self.freed_memory.note(now, held);
        if self.freed_memory.take_due(now).is_some() {
            return_free_memory();
        }
    }

    fn handle_far(&mut self, index: u32, flags: EventFlags) {
        if matches!(self.flows.get_mut(index), Some(Flow::Udp { .. })) {
            self.handle_far_udp(index);
        } else {
            self.handle_far_tcp(index, flags);
        }
    }

    /// Handles the events of the host: new flows, and data of clients. `is_saturated` is true if
    /// the most recent turn left frames unprocessed, because it reached its budget.
    fn serve(&mut self, is_saturated: bool) {
        self.begin_flows(is_saturated);
        while let Some(event) = self.stack().poll_event() {
            match event {
                Event::Tcp(client, event) => self.handle_client_tcp(client, event),
                Event::Udp(client, UdpEvent::Readable) => self.handle_client_udp(client),
                _ => {}
            }
        }
    }

    /// Handles new, cancelled and expired flows, as far as [`Pace`] allows. If new flows have to
    /// wait, cancelled and expired flows wait with them.
    fn begin_flows(&mut self, is_saturated: bool) {
        let begun = CLOCK.now();
        self.new_flows_at = Instant::NEVER;
        let share = self.pace.begin(begun, is_saturated);
        // While new flows have to wait, a link that can recognize their frames leaves these frames
        // unread. If the gateway read and dropped them during a flood, less processor time would
        // remain for the other flows.
        self.host.link_mut().hold_new_flows(share.is_none());
        let Some(limit) = share else {
            self.new_flows_at = self.pace.resumes();
            return;
        };
        let mut left = NEW_FLOWS;
        while let Some(event) = self.stack().poll_forward() {
            let is_new = matches!(event, ForwardEvent::Deferred(..) | ForwardEvent::Datagrams(..));
            match event {
                ForwardEvent::Deferred(deferred, opening) => self.begin_tcp(deferred, &opening),
                ForwardEvent::Cancelled(deferred) => self.cancel_tcp(deferred),
                ForwardEvent::Datagrams(client, opening) => self.begin_udp(client, &opening),
                ForwardEvent::Expired(client) => self.expire_udp(client),
                _ => {}
            }
            if is_new {
                left -= 1;
                if left == 0 || CLOCK.now().since(begun) >= limit {
                    // New flows have reached the maximum time or the maximum number for one turn.
                    // The next turn begins at once. It asks the pace again, and handles the new
                    // flows that are left.
                    self.new_flows_at = begun;
                    break;
                }
            }
        }
        self.pace.spend(CLOCK.now().since(begun));
    }

    /// Returns the address to which a flow is relayed, or `None` if the configuration refuses the
    /// flow.
    pub(crate) fn route_of(&self, destination: SocketAddr) -> Option<SocketAddr> {
        let config = &self.config;
        let address = destination.ip();
        if let Some(dns) = &config.dns
            && destination.port() == DNS
            && dns.addresses.contains(&address)
        {
            return Some(dns.resolver);
        }
        if config.addresses.iter().any(|own| own.address() == address) {
            let loopback: IpAddr = match address {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            };
            let loopback = SocketAddr::new(loopback, destination.port());
            return config.host_loopback.then_some(loopback);
        }
        let is_denied = config.denied.iter().any(|network| network.contains(address));
        (!is_denied).then_some(destination)
    }
}

/// Raises the process's limit of open files as far as allowed. Returns the resulting limit.
fn raise_file_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { maximum } else { current };
    limit.unwrap_or(u64::MAX)
}
