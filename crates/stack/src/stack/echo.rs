//! Echo requests of the application, and the delivery of replies and errors.

use crate::error::Error;
use crate::event::{EchoError, EchoReply, Event};
use crate::ip::Arrived;
use crate::stack::Stack;
use core::net::{Ipv4Addr, SocketAddrV4};
use linerate_units::Instant;
use linerate_wire::{Echo, IcmpError, IcmpMessage, Ipv4Header, Protocol, Quote};

impl Stack {
    /// Sends an echo request with `data` to `destination`. The reply arrives as
    /// [`Event::EchoReply`], an error as [`Event::EchoError`].
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if the reply queue is full; [`Error::MessageTooLong`]; or the reason
    /// why there is no path to the destination.
    pub fn echo_send(
        &mut self,
        now: Instant,
        destination: Ipv4Addr,
        identifier: u16,
        sequence: u16,
        data: &[u8],
    ) -> Result<(), Error> {
        self.advance_clock(now);
        if destination.is_multicast() || destination.is_unspecified() {
            return Err(Error::InvalidDestination(SocketAddrV4::new(destination, 0)));
        }
        let path = self.path_to(now, destination)?;
        let limit = path.mtu.saturating_sub(Ipv4Header::LENGTH + IcmpMessage::HEADER_LENGTH);
        if data.len() > limit {
            return Err(Error::MessageTooLong { limit });
        }
        let header = Ipv4Header::new(path.source, destination, Protocol::ICMP);
        let message = IcmpMessage::EchoRequest(Echo { identifier, sequence, data });
        if !self.send_icmp(&header, &message) {
            return Err(Error::WouldBlock);
        }
        self.counted.icmp.out_echos += 1;
        self.echoes.insert(destination, identifier);
        Ok(())
    }

    /// Reports an expected reply to the application.
    pub(crate) fn handle_echo_reply(&mut self, arrived: &Arrived<'_>, echo: &Echo<'_>) {
        let source = arrived.header.source;
        let expected = [source, Ipv4Addr::BROADCAST];
        if !expected.iter().any(|&destination| self.echoes.contains(destination, echo.identifier)) {
            return;
        }
        let reply = EchoReply {
            source,
            identifier: echo.identifier,
            sequence: echo.sequence,
            data: echo.data.to_vec(),
            ttl: arrived.header.ttl,
            arrived: arrived.arrival.at,
        };
        self.note_echo(Event::EchoReply(reply));
    }

    /// Reports an error about an echo request to the application.
    pub(crate) fn handle_echo_report(
        &mut self,
        reporter: Ipv4Addr,
        error: IcmpError,
        quote: &Quote<'_>,
    ) {
        let Some((identifier, sequence)) = quote.echo_request() else { return };
        let destination = quote.header.destination;
        if self.echoes.contains(destination, identifier) {
            let error = EchoError { reporter, destination, identifier, sequence, error };
            self.note_echo(Event::EchoError(error));
        }
    }

    fn note_echo(&mut self, event: Event) {
        self.counted.ip.in_discards += u64::from(!self.events.note_echo(event));
    }
}
