//! Forwarded TCP connections: handshakes that the application accepts, defers, rejects or drops.

use crate::demux::Flow;
use crate::error::Error;
use crate::forward::{Deferred, ForwardEvent, Opening, Rejection, Transport, Verdict};
use crate::handle::{DeferredHandle, TcpHandle};
use crate::ip::{Arrived, header_length};
use crate::link::arrival::Arrival;
use crate::stack::Stack;
use crate::tcp::Owner;
use alloc::boxed::Box;
use alloc::vec;
use linerate_tcp::judge_unconnected;
use linerate_units::Instant;
use linerate_wire::Segment;

/// # Application calls: forwarded connections
impl Stack {
    /// Accepts a deferred handshake: the host sends the SYN-ACK, and the returned connection
    /// belongs to the application. [`linerate_tcp::Event::Connected`] or
    /// [`linerate_tcp::Event::Closed`] reports the result of the handshake.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handshake was cancelled or already answered; or the reason why the
    /// connection could not be created. In the latter case, the client gets no answer, and
    /// retransmits its SYN.
    pub fn forward_accept(
        &mut self,
        now: Instant,
        handle: DeferredHandle,
    ) -> Result<TcpHandle, Error> {
        self.advance_clock(now);
        let record = self.forwarding.records.take(handle).ok_or(Error::Closed)?;
        let open = |stack: &mut Self, arrived: &Arrived<'_>, syn: &Segment<'_>| {
            let flow = arrived.flow(syn);
            if !stack.flows.is_free(&flow) {
                return Err(Error::AddressInUse(flow.local()));
            }
            stack.insert_from_syn(Owner::Application, arrived, record.listener, syn)
        };
        match self.with_record(&record, open).unwrap_or(Err(Error::Closed)) {
            Ok(index) => {
                self.forwarding.counted.accepted += 1;
                self.schedule_opened(index);
                self.sockets.tcp_handle(index).ok_or(Error::Closed)
            }
            Err(error) => {
                self.forwarding.counted.dropped += 1;
                Err(error)
            }
        }
    }

    /// Rejects a deferred handshake: sends the client a reset or an ICMP error.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handshake was cancelled or already answered.
    pub fn forward_reject(
        &mut self,
        now: Instant,
        handle: DeferredHandle,
        rejection: Rejection,
    ) -> Result<(), Error> {
        self.advance_clock(now);
        let record = self.forwarding.records.take(handle).ok_or(Error::Closed)?;
        self.with_record(&record, |stack, arrived, syn| stack.reject_syn(arrived, syn, rejection));
        Ok(())
    }

    /// Drops a deferred handshake without an answer. The client will retransmit its SYN, and the
    /// forwarder then calls its hook again.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handshake was cancelled or already answered.
    pub fn forward_drop(&mut self, handle: DeferredHandle) -> Result<(), Error> {
        self.forwarding.records.take(handle).ok_or(Error::Closed)?;
        self.forwarding.counted.dropped += 1;
        Ok(())
    }

    pub(super) fn poll_deferred(&mut self) -> Option<ForwardEvent> {
        let (handle, record) = self.forwarding.records.poll()?;
        let (flow, interface) = (record.flow, record.interface);
        let (arrived, _) = Arrived::parse(Arrival::of_stored(Instant::ZERO), &record.packet)?;
        let syn = Segment::parse(arrived.payload).ok()?;
        let opening = Opening::new(Transport::Tcp, &flow, interface, syn.options());
        Some(ForwardEvent::Deferred(handle, opening))
    }

    /// Finds the forwarder for `segment`, which belongs to no connection, and returns the index of
    /// its listener; `None` if no forwarder matches.
    pub(crate) fn forwarder_for(
        &self,
        arrived: &Arrived<'_>,
        segment: &Segment<'_>,
    ) -> Option<u32> {
        if self.forwarding.forwarders.is_empty() || arrived.arrival.is_local {
            return None;
        }
        let place = self.forwarding.find(arrived.flow(segment).local())?;
        Some(self.forwarding.forwarders[place].listener)
    }

    /// Handles a SYN for the forwarder with this `listener`. Calls the hook of the forwarder,
    /// unless the handshake of this flow is already deferred. For a deferred handshake, a
    /// retransmission of the SYN changes nothing, and the SYN of a new attempt replaces the stored
    /// SYN.
    pub(crate) fn forward_syn(&mut self, arrived: &Arrived<'_>, listener: u32, syn: &Segment<'_>) {
        let flow = arrived.flow(syn);
        if let Some((index, record)) = self.forwarding.records.of_flow(&flow) {
            let known = Arrived::parse(Arrival::of_stored(Instant::ZERO), &record.packet);
            let known = known.and_then(|(known, _)| Segment::parse(known.payload).ok());
            // A SYN with another sequence number than the stored SYN is a new attempt of the
            // client, so it replaces the stored SYN.
            if known.is_none_or(|known| known.seq != syn.seq) {
                self.forwarding.records.replace(index, packet_of(arrived, syn));
            }
            self.forwarding.counted.repeated += 1;
            return;
        }
        let Some(place) = self.forwarding.of_listener(listener) else { return };
        let interface = self.interface.number;
        let opening = Opening::new(Transport::Tcp, &flow, interface, syn.options());
        self.forwarding.counted.syns += 1;
        match (self.forwarding.forwarders[place].hook)(&opening) {
            Verdict::Accept => self.handle_syn(arrived, listener, syn),
            Verdict::Defer => self.defer_syn(flow, listener, packet_of(arrived, syn)),
            Verdict::Reject(rejection) => self.reject_syn(arrived, syn, rejection),
            Verdict::Drop => self.forwarding.counted.dropped += 1,
        }
    }

    /// Stores a SYN as a record until the application answers. If the maximum number of records is
    /// stored, the new record replaces the oldest one (RFC 4987 §3.4). The application may wait for
    /// destinations that never answer, so a flood of SYNs to them fills the records. The
    /// replacement keeps such a flood from excluding other clients.
    fn defer_syn(&mut self, flow: Flow, listener: u32, packet: Box<[u8]>) {
        let records = &mut self.forwarding.records;
        if records.len() >= self.limits.deferred.max(1)
            && let Some(oldest) = records.oldest()
        {
            records.cancel(oldest);
            self.forwarding.counted.recycled += 1;
        }
        let interface = self.interface.number;
        self.forwarding.records.insert(flow, listener, interface, packet);
    }

    /// Handles a reset that belongs to no connection. If its sequence number fits a deferred
    /// handshake, this handshake is cancelled (RFC 9293 §3.10.7.4).
    pub(crate) fn cancel_deferred(&mut self, arrived: &Arrived<'_>, reset: &Segment<'_>) {
        if self.forwarding.records.len() == 0 {
            return;
        }
        let records = &self.forwarding.records;
        let Some((index, record)) = records.of_flow(&arrived.flow(reset)) else { return };
        let known = Arrived::parse(Arrival::of_stored(Instant::ZERO), &record.packet);
        let Some((known, _)) = known else { return };
        let Ok(syn) = Segment::parse(known.payload) else { return };
        if reset.seq == syn.seq || reset.seq == syn.seq + 1 {
            self.forwarding.records.cancel(index);
            self.forwarding.counted.cancelled += 1;
        }
    }

    fn reject_syn(&mut self, arrived: &Arrived<'_>, syn: &Segment<'_>, rejection: Rejection) {
        self.forwarding.counted.rejected += 1;
        match rejection {
            Rejection::Reset => {
                if let Some(reset) = judge_unconnected(syn) {
                    self.send_reset(arrived, syn, &reset);
                }
            }
            Rejection::Unreachable(error) => {
                self.answer_with_error(arrived, error);
            }
        }
    }

    /// Calls `act` with the stored SYN of a record, as if the SYN had arrived now. Returns `None`
    /// if the SYN cannot be parsed.
    fn with_record<R>(
        &mut self,
        record: &Deferred,
        act: impl FnOnce(&mut Self, &Arrived<'_>, &Segment<'_>) -> R,
    ) -> Option<R> {
        let (arrived, _) = Arrived::parse(Arrival::of_stored(self.now), &record.packet)?;
        let syn = Segment::parse(arrived.payload).ok()?;
        Some(self.serving(record.interface, |stack| act(stack, &arrived, &syn)))
    }
}

/// Returns a copy of the packet of a SYN, without IP options, extension headers and data.
fn packet_of(arrived: &Arrived<'_>, syn: &Segment<'_>) -> Box<[u8]> {
    let header = &arrived.payload[..arrived.payload.len() - syn.payload.len()];
    let mut packet = vec![0; header_length(arrived.source()) + header.len()];
    let at = arrived.header().map_or(0, |ip| ip.emit(header.len(), &mut packet));
    packet[at..at + header.len()].copy_from_slice(header);
    packet.into()
}
