//! Echo requests that the application sends (ping), and the delivery of replies and errors to the
//! application.

use crate::error::Error;
use crate::event::{EchoError, EchoReply, Event};
use crate::icmp::Report;
use crate::ip::path_mtu::SMALLEST_PATH_MTU;
use crate::ip::{Arrived, LOCAL_MTU, header_length};
use crate::stack::Stack;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use linerate_units::Instant;
use linerate_wire::{Echo, IcmpMessage, Icmpv6Message, IpHeader, Ipv6Header, Protocol};

/// # Application calls: echo requests
impl Stack {
    /// Sends an echo request with `data` to `destination`. [`Event::EchoReply`] reports the reply,
    /// and [`Event::EchoError`] an ICMP error about the request.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if the reply queue is full; [`Error::MessageTooLong`] if the packet
    /// would exceed 65,535 bytes; or an error that says why there is no path to the destination.
    pub fn echo_send(
        &mut self,
        now: Instant,
        destination: impl Into<IpAddr>,
        identifier: u16,
        sequence: u16,
        data: &[u8],
    ) -> Result<(), Error> {
        let destination = destination.into();
        let interface = self.interface_towards(destination);
        let echo = Echo { identifier, sequence, data };
        self.serving(interface, |stack| stack.send_echo(now, destination, echo))
    }

    fn send_echo(
        &mut self,
        now: Instant,
        destination: IpAddr,
        echo: Echo<'_>,
    ) -> Result<(), Error> {
        self.advance_clock(now);
        let destination = destination.to_canonical();
        if destination.is_multicast() || destination.is_unspecified() {
            return Err(Error::InvalidDestination(SocketAddr::new(destination, 0)));
        }
        let source = self.path_to(now, destination)?.source;
        let limit = LOCAL_MTU - header_length(destination) - IcmpMessage::HEADER_LENGTH;
        if echo.data.len() > limit {
            return Err(Error::MessageTooLong { limit });
        }
        let version = |protocol| IpHeader::new(source, destination, protocol);
        let is_sent = match (version(Protocol::ICMP), version(Protocol::ICMPV6)) {
            (Some(header @ IpHeader::V4(_)), _) => {
                self.send_icmp(&header, &IcmpMessage::EchoRequest(echo))
            }
            (_, Some(IpHeader::V6(header))) => {
                self.send_icmpv6(header, &Icmpv6Message::EchoRequest(echo))
            }
            _ => return Err(Error::NoAddress),
        };
        if !is_sent {
            return Err(Error::WouldBlock);
        }
        self.counted.icmp.out_echos += 1;
        self.echoes.insert(destination, echo.identifier);
        Ok(())
    }

    /// Reports an echo reply to the application, if the reply answers a recent request of this
    /// host. This is the case if the host has sent a request with the same identifier to the source
    /// of the reply, or to the broadcast address.
    pub(crate) fn handle_echo_reply(&mut self, arrived: &Arrived<'_>, echo: &Echo<'_>) {
        let source = arrived.source();
        let expected = [source, Ipv4Addr::BROADCAST.into()];
        if !expected.iter().any(|&destination| self.echoes.contains(destination, echo.identifier)) {
            return;
        }
        let reply = EchoReply {
            source,
            identifier: echo.identifier,
            sequence: echo.sequence,
            data: echo.data.to_vec(),
            ttl: arrived.ttl,
            arrived: arrived.arrival.at,
        };
        self.note_echo(Event::EchoReply(reply));
    }

    /// Records the destination and identifier of an echo reply that may exceed the MTU of its path.
    /// If a router then reports the path MTU, [`Stack::note_echo_mtu`] finds that this host has
    /// sent the quoted reply, and accepts the report.
    pub(crate) fn note_answered_echo(&mut self, destination: IpAddr, echo: &Echo<'_>) {
        if echo.data.len() > SMALLEST_PATH_MTU - Ipv6Header::LENGTH {
            self.answered_echoes.insert(destination, echo.identifier);
        }
    }

    /// Records the path MTU that a router reports about an echo request or reply, if this host has
    /// recently sent the quoted message. Other reports may be forged, and are ignored.
    pub(crate) fn note_echo_mtu(&mut self, now: Instant, report: &Report<'_>) {
        let destination = report.destination();
        let is_known = match (report.echo_request(), report.echo_reply()) {
            (Some((identifier, _)), _) => self.echoes.contains(destination, identifier),
            (_, Some((identifier, _))) => self.answered_echoes.contains(destination, identifier),
            _ => false,
        };
        if let Some(mtu) = report.mtu().filter(|_| is_known) {
            self.path_mtus.note_reported(now, destination, mtu);
        }
    }

    /// Reports an ICMP error about an echo request to the application, if the host has recently
    /// sent this request.
    pub(crate) fn handle_echo_report(&mut self, reporter: IpAddr, report: &Report<'_>) {
        let Some((identifier, sequence)) = report.echo_request() else { return };
        let (destination, error) = (report.destination(), report.error);
        if self.echoes.contains(destination, identifier) {
            let error = EchoError { reporter, destination, identifier, sequence, error };
            self.note_echo(Event::EchoError(error));
        }
    }

    fn note_echo(&mut self, event: Event) {
        self.counted.ip.in_discards += u64::from(!self.events.note_echo(event));
    }
}
