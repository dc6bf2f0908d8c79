//! The states of the DHCP client (RFC 2131 §4.4), without sockets: it takes the time and messages,
//! and returns what is to be done.

use super::DhcpConfig;
use super::lease::DhcpLease;
use crate::keys::Keys;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use linerate_units::{Duration, Instant};
use linerate_wire::MacAddress;
use linerate_wire::dhcp::{DhcpHeader, DhcpMessage, DhcpMessageType, option};
use siphasher::sip::SipHasher24;

/// The delay before the first retransmission; it doubles for each further one (RFC 2131 §4.1).
const FIRST_DELAY: Duration = Duration::from_secs(4);
/// The largest number of doublings: to 64 seconds.
const MAX_DOUBLINGS: u32 = 4;
/// Requests for an offered address, after which the client looks for servers again.
const MAX_REQUESTS: u32 = 4;
/// Requests for a previous address, after which the client looks for servers.
const MAX_REBOOT_REQUESTS: u32 = 2;
/// The shortest time between requests for more time (RFC 2131 §4.4.5).
const RENEWAL_INTERVAL: Duration = Duration::from_secs(60);
/// The time in which another host may answer the probe.
const PROBE_TIME: Duration = Duration::from_secs(1);
/// The time between the release of an address and its removal, in which the message is sent.
const RELEASE_TIME: Duration = Duration::from_millis(100);
/// The wait after an address was found in use (RFC 2131 §3.1, step 5).
const DECLINE_TIME: Duration = Duration::from_secs(10);

/// The state of the client (RFC 2131 figure 5).
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// The client begins at its next timeout.
    Init,
    /// The client requests the address that it had before.
    Rebooting { address: Ipv4Addr },
    /// The client looks for servers.
    Selecting,
    /// The client requests the address that this server offered.
    Requesting { address: Ipv4Addr, server: Ipv4Addr },
    /// A server has granted the lease, and the address is probed.
    Probing,
    /// The client uses its address.
    Bound,
    /// The client asks its server for more time.
    Renewing,
    /// The client asks any server for more time.
    Rebinding,
    /// The client has released its address.
    Released,
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DhcpSend {
    pub(crate) kind: DhcpMessageType,
    pub(crate) header: DhcpHeader,
    /// The destination; the broadcast address for all servers.
    pub(crate) to: Ipv4Addr,
    /// The option with the requested address.
    pub(crate) requested: Option<Ipv4Addr>,
    /// The option with the server.
    pub(crate) server: Option<Ipv4Addr>,
}

/// A step that the host performs for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DhcpAction {
    /// Send a message.
    Send(DhcpSend),
    /// Ask by ARP who has the address.
    Probe(Ipv4Addr),
    /// Use the address and the parameters of the lease, or its new times.
    Configure(DhcpLease),
    /// Stop using the address.
    Remove(DhcpLease),
}

/// The DHCP client of a host.
#[derive(Debug)]
pub(crate) struct DhcpClient {
    config: DhcpConfig,
    mac: MacAddress,
    state: State,
    /// The number of the current exchange.
    xid: u32,
    /// The beginning of the current attempt to get an address.
    began: Instant,
    /// The time of the last request, from which a lease counts.
    requested_at: Instant,
    /// Transmissions of the current message.
    sent: u32,
    /// Refusals and conflicts since the last lease, which slow new attempts down.
    setbacks: u32,
    next: Instant,
    /// The lease in use, or the one that is being probed.
    lease: Option<DhcpLease>,
    hasher: SipHasher24,
    drawn: u64,
}

impl DhcpClient {
    pub(crate) fn new(config: DhcpConfig, mac: MacAddress, keys: &Keys) -> Self {
        Self {
            config,
            mac,
            state: State::Init,
            xid: 0,
            began: Instant::ZERO,
            requested_at: Instant::ZERO,
            sent: 0,
            setbacks: 0,
            next: Instant::ZERO,
            lease: None,
            hasher: keys.visible("dhcp"),
            drawn: 0,
        }
    }

    /// Returns the lease in use.
    pub(crate) fn lease(&self) -> Option<&DhcpLease> {
        let is_used = matches!(self.state, State::Bound | State::Renewing | State::Rebinding);
        self.lease.as_ref().filter(|_| is_used)
    }

    /// Returns the time of the next call of [`DhcpClient::handle_timeout`].
    pub(crate) const fn poll_timeout(&self) -> Instant {
        self.next
    }

    /// Performs what is due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Vec<DhcpAction> {
        if now < self.next {
            return Vec::new();
        }
        match self.state.clone() {
            State::Init => self.begin(now),
            State::Rebooting { .. } if self.sent >= MAX_REBOOT_REQUESTS => self.discover(now),
            State::Requesting { .. } if self.sent >= MAX_REQUESTS => self.discover(now),
            State::Rebooting { .. } | State::Selecting | State::Requesting { .. } => {
                self.transmit(now)
            }
            State::Probing => self.bind(),
            State::Bound => {
                self.state = State::Renewing;
                self.begin_exchange(now);
                self.extend_lease(now)
            }
            State::Renewing | State::Rebinding => self.extend_lease(now),
            State::Released => {
                self.next = Instant::NEVER;
                self.lease.take().map(DhcpAction::Remove).into_iter().collect()
            }
        }
    }

    /// Begins in INIT or INIT-REBOOT. The first call may only choose a delay.
    fn begin(&mut self, now: Instant) -> Vec<DhcpAction> {
        if core::mem::take(&mut self.config.desynchronize) {
            self.next = now + Duration::from_secs(1) + self.draw(Duration::from_secs(9));
            return Vec::new();
        }
        self.began = now;
        match self.config.previous.take() {
            Some(address) => {
                self.state = State::Rebooting { address };
                self.begin_exchange(now);
                self.transmit(now)
            }
            None => self.discover(now),
        }
    }

    /// Looks for servers.
    fn discover(&mut self, now: Instant) -> Vec<DhcpAction> {
        self.state = State::Selecting;
        self.begin_exchange(now);
        self.transmit(now)
    }

    /// Draws the number of a new exchange.
    fn begin_exchange(&mut self, now: Instant) {
        #[allow(clippy::cast_possible_truncation, reason = "any 32 of the bits do")]
        let xid = self.random() as u32;
        (self.xid, self.sent, self.requested_at) = (xid, 0, now);
    }

    /// Sends the message of the current state, and schedules its retransmission.
    fn transmit(&mut self, now: Instant) -> Vec<DhcpAction> {
        let (kind, requested, server) = match self.state {
            State::Rebooting { address } => (DhcpMessageType::Request, Some(address), None),
            State::Requesting { address, server } => {
                (DhcpMessageType::Request, Some(address), Some(server))
            }
            _ => (DhcpMessageType::Discover, None, None),
        };
        // RFC 2131 §4.1: randomised by a second in both directions.
        let delay = FIRST_DELAY * (1 << self.sent.min(MAX_DOUBLINGS));
        self.next = now + delay + self.draw(Duration::from_secs(2)) - Duration::from_secs(1);
        self.sent += 1;
        if kind == DhcpMessageType::Request {
            self.requested_at = now;
        }
        let header = DhcpHeader { broadcast: true, ..self.header(now) };
        let to = Ipv4Addr::BROADCAST;
        Vec::from([DhcpAction::Send(DhcpSend { kind, header, to, requested, server })])
    }

    /// Asks for more time, or ends the lease.
    fn extend_lease(&mut self, now: Instant) -> Vec<DhcpAction> {
        let Some(lease) = self.lease.clone() else { return self.restart(now) };
        if now >= lease.expires_at {
            self.lease = None;
            self.state = State::Init;
            self.next = now;
            return Vec::from([DhcpAction::Remove(lease)]);
        }
        let (until, to) = if now >= lease.rebind_at {
            if self.state == State::Renewing {
                self.state = State::Rebinding;
                self.began = now;
            }
            (lease.expires_at, Ipv4Addr::BROADCAST)
        } else {
            (lease.rebind_at, lease.server)
        };
        self.next = until.min(now + RENEWAL_INTERVAL.max(until.since(now) / 2));
        self.requested_at = now;
        let header = DhcpHeader { client: lease.own(), ..self.header(now) };
        let kind = DhcpMessageType::Request;
        Vec::from([DhcpAction::Send(DhcpSend { kind, header, to, requested: None, server: None })])
    }

    fn header(&self, now: Instant) -> DhcpHeader {
        DhcpHeader {
            is_reply: false,
            xid: self.xid,
            secs: u16::try_from(now.since(self.began).as_millis() / 1_000).unwrap_or(u16::MAX),
            broadcast: false,
            client: Ipv4Addr::UNSPECIFIED,
            yours: Ipv4Addr::UNSPECIFIED,
            mac: self.mac,
        }
    }

    /// Handles a message of a server. Returns `None` if it is not one that the client waits for.
    /// `probes` says whether the link has ARP.
    pub(crate) fn handle_message(
        &mut self,
        now: Instant,
        message: &DhcpMessage<'_>,
        probes: bool,
    ) -> Option<Vec<DhcpAction>> {
        let header = &message.header;
        if !header.is_reply || header.xid != self.xid || header.mac != self.mac {
            return None;
        }
        match (message.message_type, self.state.clone()) {
            (DhcpMessageType::Offer, State::Selecting) => {
                let offer = DhcpLease::read(message, now)?;
                self.state = State::Requesting { address: offer.own(), server: offer.server };
                self.sent = 0;
                Some(self.transmit(now))
            }
            (DhcpMessageType::Ack, State::Requesting { address, server }) => {
                let lease = DhcpLease::read(message, self.requested_at)?;
                let is_offered = lease.own() == address && lease.server == server;
                is_offered.then(|| self.accept(now, lease, probes))
            }
            (DhcpMessageType::Ack, State::Rebooting { address }) => {
                let lease = DhcpLease::read(message, self.requested_at)?;
                (lease.own() == address).then(|| self.accept(now, lease, probes))
            }
            (DhcpMessageType::Ack, State::Renewing | State::Rebinding) => {
                let lease = DhcpLease::read(message, self.requested_at)?;
                let is_same = self.lease.as_ref().is_some_and(|old| old.own() == lease.own());
                is_same.then(|| {
                    self.lease = Some(lease);
                    self.bind()
                })
            }
            (DhcpMessageType::Nak, state) => {
                let sender = message.options.address(option::SERVER_ID);
                match state {
                    State::Requesting { server, .. } if sender == Some(server) => {}
                    State::Rebooting { .. } | State::Renewing | State::Rebinding => {}
                    _ => return None,
                }
                Some(self.restart(now))
            }
            _ => None,
        }
    }

    /// Takes a lease that a server has granted. On Ethernet its address is probed first.
    fn accept(&mut self, now: Instant, lease: DhcpLease, probes: bool) -> Vec<DhcpAction> {
        let address = lease.own();
        self.lease = Some(lease);
        if !self.config.probe || !probes {
            return self.bind();
        }
        self.state = State::Probing;
        self.next = now + PROBE_TIME;
        Vec::from([DhcpAction::Probe(address)])
    }

    /// Uses the lease until it is time to renew it.
    fn bind(&mut self) -> Vec<DhcpAction> {
        let Some(lease) = self.lease.clone() else { return Vec::new() };
        (self.state, self.next, self.setbacks) = (State::Bound, lease.renew_at, 0);
        Vec::from([DhcpAction::Configure(lease)])
    }

    /// Returns to INIT after a refusal. Further ones slow down, so that no server can keep the
    /// client busy.
    fn restart(&mut self, now: Instant) -> Vec<DhcpAction> {
        let delay = match self.setbacks {
            0 => Duration::ZERO,
            count => FIRST_DELAY * (1 << (count - 1).min(MAX_DOUBLINGS)),
        };
        self.setbacks += 1;
        self.state = State::Init;
        self.next = now + delay;
        self.lease.take().map(DhcpAction::Remove).into_iter().collect()
    }

    /// Another host uses `address`. Declines it, if it is the one that is being probed.
    pub(crate) fn handle_conflict(&mut self, now: Instant, address: Ipv4Addr) -> Vec<DhcpAction> {
        let is_probed = self.state == State::Probing
            && self.lease.as_ref().is_some_and(|it| it.own() == address);
        let Some(lease) = self.lease.take_if(|_| is_probed) else { return Vec::new() };
        self.state = State::Init;
        self.next = now + DECLINE_TIME;
        let header = DhcpHeader { secs: 0, ..self.header(now) };
        let (requested, server) = (Some(address), Some(lease.server));
        let (kind, to) = (DhcpMessageType::Decline, Ipv4Addr::BROADCAST);
        Vec::from([DhcpAction::Send(DhcpSend { kind, header, to, requested, server })])
    }

    /// Gives the address back, and stops.
    pub(crate) fn release(&mut self, now: Instant) -> Vec<DhcpAction> {
        let lease = self.lease().cloned();
        (self.state, self.next) = (State::Released, now + RELEASE_TIME);
        let Some(lease) = lease else {
            self.lease = None;
            return Vec::new();
        };
        self.begin_exchange(now);
        let header = DhcpHeader { secs: 0, client: lease.own(), ..self.header(now) };
        let (kind, to, server) = (DhcpMessageType::Release, lease.server, Some(lease.server));
        let send = DhcpSend { kind, header, to, requested: None, server };
        Vec::from([DhcpAction::Send(send)])
    }

    /// Draws a duration below `most`.
    fn draw(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.random() % most.as_nanos().max(1))
    }

    fn random(&mut self) -> u64 {
        self.drawn += 1;
        self.hasher.hash(&self.drawn.to_be_bytes())
    }
}
