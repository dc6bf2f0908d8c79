//! Forwarders: accept flows to addresses of other hosts, and give them to the application as
//! ordinary sockets.
//!
//! A forwarder is a listener for all addresses in a prefix, or for all addresses. A function of the
//! application, the hook, accepts, defers or rejects each new flow. The local address of an
//! accepted socket is the destination of the first packet of the flow.

mod tcp;
mod udp;

use crate::demux::Binding;
use crate::error::Error;
use crate::forward::{
    Destinations, EchoPolicy, ForwardEvent, ForwardOptions, ForwardStatistics, Forwarder, Opening,
    Verdict,
};
use crate::handle::ListenHandle;
use crate::ip::Arrived;
use crate::ip::interface::is_link_local;
use crate::stack::Stack;
use alloc::boxed::Box;
use core::net::{IpAddr, Ipv4Addr};
use linerate_wire::Unreachable;

/// # Application calls: forwarders
impl Stack {
    /// Creates a forwarder, which accepts flows to `destinations`; these need not be addresses of
    /// this host. `hook` is called with the first packet of each flow, and returns what the host
    /// does with the flow. If several forwarders match, the forwarder that was created first
    /// decides. Ordinary listeners and UDP sockets that match a destination take precedence.
    /// Multicast, broadcast, loopback, link-local IPv6 and IPv4-mapped IPv6 addresses never match.
    ///
    /// Connections that the hook accepts at once appear in the accept queue of the returned
    /// listener ([`Stack::tcp_accept`]). [`Stack::poll_forward`] reports deferred handshakes and
    /// UDP flows. [`Stack::tcp_listen_close`] ends the forwarder. The host then no longer receives
    /// packets to its destinations, so the application should end all flows first.
    ///
    /// ```
    /// use linerate_stack::{Destinations, ForwardOptions, Rejection, Stack, StackConfig, Verdict};
    /// # use linerate_wire::MacAddress;
    ///
    /// # let config = StackConfig::new(MacAddress::ZERO, "192.0.2.1/24".parse()?);
    /// let mut stack = Stack::new(config, [7; 32]);
    /// let web_only = |flow: &linerate_stack::Opening| match flow.destination.port() {
    ///     80 | 443 => Verdict::Defer,
    ///     _ => Verdict::Reject(Rejection::Reset),
    /// };
    /// stack.forward(Destinations::EVERYTHING, &ForwardOptions::default(), web_only)?;
    /// assert_eq!(stack.poll_forward(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooManySockets`] if the limit of sockets is reached.
    pub fn forward(
        &mut self,
        destinations: Destinations,
        options: &ForwardOptions,
        hook: impl FnMut(&Opening) -> Verdict + Send + 'static,
    ) -> Result<ListenHandle, Error> {
        self.sockets.has_room()?;
        let listener = self.insert_listener(Binding::NONE, &options.listen);
        let forwarder =
            Forwarder { destinations, options: *options, listener, hook: Box::new(hook) };
        self.forwarding.forwarders.push(forwarder);
        self.sockets.listen_handle(listener).ok_or(Error::Closed)
    }

    /// Removes and returns the next event of all forwarders; `None` if there is no event. Events
    /// about ended flows come first, then new flows.
    pub fn poll_forward(&mut self) -> Option<ForwardEvent> {
        self.poll_ended_flow().or_else(|| self.poll_new_flow())
    }

    /// Removes and returns the next event about a flow that has ended ([`ForwardEvent::Cancelled`]
    /// or [`ForwardEvent::Expired`]); `None` if there is no such event. Does not remove events
    /// about new flows.
    pub fn poll_ended_flow(&mut self) -> Option<ForwardEvent> {
        if let Some(handle) = self.forwarding.records.cancelled.pop_front() {
            return Some(ForwardEvent::Cancelled(handle));
        }
        self.forwarding.expired.pop_front().map(ForwardEvent::Expired)
    }

    /// Removes and returns the next event about a new flow ([`ForwardEvent::Deferred`] or
    /// [`ForwardEvent::Datagrams`]). Before each call, the application should poll all events of
    /// [`Stack::poll_ended_flow`]. Their number has no limit, so they would accumulate in an
    /// application that polls only new flows.
    pub fn poll_new_flow(&mut self) -> Option<ForwardEvent> {
        self.poll_deferred().or_else(|| self.poll_udp_flow())
    }

    /// Returns the number of new flows that [`Stack::poll_new_flow`] has not returned yet.
    #[must_use]
    pub const fn new_flows(&self) -> usize {
        self.forwarding.records.fresh() + self.forwarding.udp.fresh.len()
    }

    /// Returns the counters of all forwarders, with the current numbers of deferred handshakes and
    /// of forwarded UDP flows.
    #[must_use]
    pub fn forward_statistics(&self) -> ForwardStatistics {
        let (deferred, udp_flows) = (self.forwarding.records.len(), self.forwarding.udp.len());
        ForwardStatistics { deferred, udp_flows, ..self.forwarding.counted }
    }

    /// Does any forwarder accept packets to `address`, which is not an address of this host?
    ///
    /// Link-local IPv6 addresses are excluded, because routers do not forward packets to them (RFC
    /// 4291 §2.5.6). IPv4-mapped IPv6 addresses are excluded too (RFC 4291 §2.5.5.2): an
    /// application that connects to such a destination would reach the IPv4 host, past all filters
    /// for IPv4 addresses.
    pub(crate) fn forwards_to(&self, address: IpAddr) -> bool {
        !self.forwarding.forwarders.is_empty()
            && !address.is_multicast()
            && address != IpAddr::V4(Ipv4Addr::BROADCAST)
            && !address.is_unspecified()
            && !address.is_loopback()
            && address.to_canonical() == address
            && !is_link_local(address)
            && self.forwarding.covers(address)
    }

    /// Returns whether the host should answer an echo request with an echo reply. Before it returns
    /// false, this method applies the policy of the forwarder for its destination: it drops the
    /// request, or sends an ICMP error.
    pub(crate) fn may_answer_echo(&mut self, arrived: &Arrived<'_>) -> bool {
        let destination = arrived.destination();
        if arrived.is_broadcast || self.is_ours(destination) {
            return true;
        }
        let mut forwarders = self.forwarding.forwarders.iter();
        let covers = |forwarder: &&Forwarder| forwarder.destinations.covers(destination);
        match forwarders.find(covers).map(|forwarder| forwarder.options.echo) {
            Some(EchoPolicy::Answer) => return true,
            Some(EchoPolicy::Reject) => {
                self.answer_with_error(arrived, Unreachable::Prohibited);
            }
            Some(EchoPolicy::Drop) | None => {}
        }
        false
    }

    /// Removes the forwarder whose listener is being closed. Does nothing if the listener does not
    /// belong to a forwarder.
    pub(crate) fn close_forwarder(&mut self, listener: u32) {
        if let Some(place) = self.forwarding.of_listener(listener) {
            self.forwarding.forwarders.remove(place);
            self.forwarding.records.remove_of(listener);
            // The flow cache may contain destination addresses that only the removed forwarder made
            // valid. They are discarded, so that packets to them are no longer accepted.
            self.all_interfaces_mut().for_each(|interface| interface.flow_cache.forget_hosts());
        }
    }

    pub(crate) fn check_forwarding(&self) {
        self.forwarding.records.check(self.limits.deferred);
        self.check_udp_flows();
    }
}
