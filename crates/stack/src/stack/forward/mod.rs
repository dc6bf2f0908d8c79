//! Forwarders: flows to addresses of other hosts, as ordinary sockets.
//!
//! A forwarder is a listener that matches a prefix or everything. Its hook decides about each new
//! flow. The local address of an accepted socket is the destination of its first packet.

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
    /// Accepts flows to `destinations`, which need not be addresses of this host. `hook` decides
    /// about the first packet of each flow. If several forwarders match, the forwarder that was
    /// created first decides. Listeners and sockets at the same address have precedence. Multicast,
    /// broadcast and loopback addresses never match, nor do IPv6 addresses of link-local scope and
    /// IPv4-mapped ones.
    ///
    /// Connections that the hook accepts at once appear in the accept queue of the returned
    /// listener ([`Stack::tcp_accept`]). Everything else is reported by [`Stack::poll_forward`].
    /// [`Stack::tcp_listen_close`] ends the forwarder: packets to its destinations are no longer
    /// received, so flows should be ended first.
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
    /// [`Error::TooManySockets`].
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

    /// Removes and returns the next event of the forwarders: first the ends of flows, then new
    /// flows.
    pub fn poll_forward(&mut self) -> Option<ForwardEvent> {
        self.poll_ended_flow().or_else(|| self.poll_new_flow())
    }

    /// Removes and returns the next event about a flow that has ended
    /// ([`ForwardEvent::Cancelled`], [`ForwardEvent::Expired`]). New flows wait.
    pub fn poll_ended_flow(&mut self) -> Option<ForwardEvent> {
        if let Some(handle) = self.forwarding.records.cancelled.pop_front() {
            return Some(ForwardEvent::Cancelled(handle));
        }
        self.forwarding.expired.pop_front().map(ForwardEvent::Expired)
    }

    /// Removes and returns the next new flow ([`ForwardEvent::Deferred`],
    /// [`ForwardEvent::Datagrams`]).
    pub fn poll_new_flow(&mut self) -> Option<ForwardEvent> {
        self.poll_deferred().or_else(|| self.poll_udp_flow())
    }

    /// Returns the number of new flows that the application has not polled.
    #[must_use]
    pub const fn new_flows(&self) -> usize {
        self.forwarding.records.fresh() + self.forwarding.udp.fresh.len()
    }

    /// Returns the counters and the state of the forwarders.
    #[must_use]
    pub fn forward_statistics(&self) -> ForwardStatistics {
        let (deferred, udp_flows) = (self.forwarding.records.len(), self.forwarding.udp.len());
        ForwardStatistics { deferred, udp_flows, ..self.forwarding.counted }
    }

    /// Does a forwarder accept packets to this address of another host?
    ///
    /// Routers do not forward packets to IPv6 addresses of link-local scope (RFC 4291 §2.5.6). An
    /// IPv4 address in an IPv6 packet would pass filters for IPv4 addresses, and reach its host
    /// when the application connects to it (RFC 4291 §2.5.5.2).
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

    /// Returns whether an echo request may be answered in the name of its destination. If not, this
    /// function has applied the policy of the forwarder.
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

    /// Removes the forwarder of a listener that is closed.
    pub(crate) fn close_forwarder(&mut self, listener: u32) {
        if let Some(place) = self.forwarding.of_listener(listener) {
            self.forwarding.forwarders.remove(place);
            self.forwarding.records.remove_of(listener);
            // Packets to the addresses of the forwarder are no longer for this host.
            self.all_interfaces_mut().for_each(|interface| interface.flow_cache.forget_hosts());
        }
    }

    pub(crate) fn check_forwarding(&self) {
        self.forwarding.records.check(self.limits.deferred);
        self.check_udp_flows();
    }
}
