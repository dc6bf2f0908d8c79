//! The state machine of the DHCP client (RFC 2131 §4.4), without sockets. The caller passes the
//! time and the received messages, and performs the actions that the state machine returns.

use super::DhcpConfig;
use super::lease::DhcpLease;
use crate::keys::Keys;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use linerate_units::{Duration, Instant};
use linerate_wire::MacAddress;
use linerate_wire::dhcp::{DhcpHeader, DhcpMessage, DhcpMessageType, option};
use siphasher::sip::SipHasher24;

/// Delay before the first retransmission. The delay doubles with each retransmission (RFC 2131
/// §4.1).
const FIRST_DELAY: Duration = Duration::from_secs(4);
/// Maximum number of doublings of the retransmission delay, which limits the delay to 64 seconds.
const MAX_DOUBLINGS: u32 = 4;
/// Number of requests for an offered address after which the client, if all were unanswered, looks
/// for servers anew.
const MAX_REQUESTS: u32 = 4;
/// Number of requests for the previous address after which the client, if all were unanswered,
/// gives up this address and looks for servers.
const MAX_REBOOT_REQUESTS: u32 = 2;
/// Minimum time between two requests to extend a lease (RFC 2131 §4.4.5).
const RENEWAL_INTERVAL: Duration = Duration::from_secs(60);
/// Time for which the client waits for an ARP reply after its ARP probe. A reply shows that another
/// host uses the leased address.
const PROBE_TIME: Duration = Duration::from_secs(1);
/// Time for which the host keeps an address after its release, so that it can send the DHCPRELEASE,
/// whose source is this address.
const RELEASE_TIME: Duration = Duration::from_millis(100);
/// Time for which the client waits before it looks for servers again, after another host turned out
/// to use the leased address (RFC 2131 §3.1, step 5).
const DECLINE_TIME: Duration = Duration::from_secs(10);

/// The state of the client (RFC 2131 figure 5).
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// INIT: at its next timeout, the client begins to request an address.
    Init,
    /// REBOOTING: the client requests the address that it had before the restart.
    Rebooting { address: Ipv4Addr },
    /// SELECTING: the client looks for servers.
    Selecting,
    /// REQUESTING: the client requests the address that a server has offered.
    Requesting { address: Ipv4Addr, server: Ipv4Addr },
    /// A server has granted a lease, and the client probes the leased address by ARP.
    Probing,
    /// BOUND: the client has a lease, and its address is in use.
    Bound,
    /// RENEWING: the client asks the server that granted the lease to extend the lease.
    Renewing,
    /// REBINDING: the client asks all servers to extend the lease.
    Rebinding,
    /// The client has released its address, and has stopped.
    Released,
}

/// A DHCP message that the host must send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DhcpSend {
    pub(crate) kind: DhcpMessageType,
    pub(crate) header: DhcpHeader,
    /// Destination address; the broadcast address means all servers.
    pub(crate) to: Ipv4Addr,
    /// Value of the option "requested IP address".
    pub(crate) requested: Option<Ipv4Addr>,
    /// Value of the option "server identifier".
    pub(crate) server: Option<Ipv4Addr>,
}

/// An action that the host must perform for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DhcpAction {
    /// Send a DHCP message.
    Send(DhcpSend),
    /// Ask by ARP whether another host uses the address.
    Probe(Ipv4Addr),
    /// Use the address and the parameters of the lease. After a renewal, the host already uses
    /// them, so that only the times of the lease have changed.
    Configure(DhcpLease),
    /// Stop using the address and the parameters of the lease.
    Remove(DhcpLease),
}

/// The DHCP client of a host, as a state machine.
#[derive(Debug)]
pub(crate) struct DhcpClient {
    config: DhcpConfig,
    mac: MacAddress,
    state: State,
    /// Transaction ID of the current exchange.
    xid: u32,
    /// Time from which the `secs` field counts: the beginning of the current attempt to get an
    /// address, of RENEWING, or of REBINDING.
    began: Instant,
    /// The `secs` field of the most recent DHCPDISCOVER. The DHCPREQUEST that follows it has an
    /// equal value, so that relays forward it to the servers that received the DHCPDISCOVER (RFC
    /// 2131 §3.1, step 3).
    discovered_secs: u16,
    /// Time at which the client sent its most recent request. If a server grants the request, the
    /// lease time counts from this time.
    requested_at: Instant,
    /// Number of transmissions of the current message.
    sent: u32,
    /// Number of restarts since a lease was last granted. A restart follows, for example, a
    /// DHCPNAK. The first restart is immediate, and the second is delayed by four seconds. Each
    /// further delay is twice the previous delay, up to 64 seconds.
    setbacks: u32,
    next: Instant,
    /// The lease in use, or the lease whose address is being probed.
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
            discovered_secs: 0,
            requested_at: Instant::ZERO,
            sent: 0,
            setbacks: 0,
            next: Instant::ZERO,
            lease: None,
            hasher: keys.visible("dhcp"),
            drawn: 0,
        }
    }

    /// Returns the lease, if its address is in use.
    pub(crate) fn lease(&self) -> Option<&DhcpLease> {
        let is_used = matches!(self.state, State::Bound | State::Renewing | State::Rebinding);
        self.lease.as_ref().filter(|_| is_used)
    }

    /// Returns the time of the next call of [`DhcpClient::handle_timeout`].
    pub(crate) const fn poll_timeout(&self) -> Instant {
        self.next
    }

    /// Performs the step that is due at `now`, such as a retransmission, and returns the resulting
    /// actions.
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
                self.began = now;
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

    /// Begins to get an address, from the state INIT or INIT-REBOOT. If the configuration asks for
    /// desynchronisation, the first call sends nothing but sets a random delay, after which the
    /// client begins (RFC 2131 §4.4.1).
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

    /// Begins to look for servers (SELECTING), and sends a DHCPDISCOVER.
    fn discover(&mut self, now: Instant) -> Vec<DhcpAction> {
        self.state = State::Selecting;
        self.begin_exchange(now);
        self.transmit(now)
    }

    /// Begins an exchange with a new random transaction ID.
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
        // RFC 2131 §4.1: the delay varies randomly by up to a second in either direction.
        let delay = FIRST_DELAY * (1 << self.sent.min(MAX_DOUBLINGS));
        self.next = now + delay + self.draw(Duration::from_secs(2)) - Duration::from_secs(1);
        self.sent += 1;
        if kind == DhcpMessageType::Request {
            self.requested_at = now;
        }
        let mut header = DhcpHeader { broadcast: true, ..self.header(now) };
        match self.state {
            State::Requesting { .. } => header.secs = self.discovered_secs,
            _ => self.discovered_secs = header.secs,
        }
        let to = Ipv4Addr::BROADCAST;
        Vec::from([DhcpAction::Send(DhcpSend { kind, header, to, requested, server })])
    }

    /// Sends a request to extend the lease, or ends the lease if it has expired.
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

    /// Handles a message from a server. Returns `None` if the client ignores the message: it
    /// answers no message of this exchange, does not fit the present state, or contains no usable
    /// lease. `probes` says whether the link has ARP, so that the client can probe an address.
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

    /// Accepts a lease that a server has granted. If the link has ARP (`probes`) and the
    /// configuration asks for an ARP probe, probes the leased address before the host uses it.
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

    /// Begins to use the lease, and sets the next timeout to the renewal time of the lease.
    fn bind(&mut self) -> Vec<DhcpAction> {
        let Some(lease) = self.lease.clone() else { return Vec::new() };
        (self.state, self.next, self.setbacks) = (State::Bound, lease.renew_at, 0);
        Vec::from([DhcpAction::Configure(lease)])
    }

    /// Returns to the state INIT, for example after a DHCPNAK, and schedules a new attempt. The
    /// delay before this attempt grows with each restart, so that a server which refuses every
    /// request cannot make the client send continuously.
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

    /// Handles an ARP packet which has shown that another host uses `address`. If the client is
    /// probing this address, declines the lease. In every other state, returns no actions.
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

    /// Releases the address, and stops the client.
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

    /// Draws a random duration below `most`.
    fn draw(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.random() % most.as_nanos().max(1))
    }

    fn random(&mut self) -> u64 {
        self.drawn += 1;
        self.hasher.hash(&self.drawn.to_be_bytes())
    }
}
