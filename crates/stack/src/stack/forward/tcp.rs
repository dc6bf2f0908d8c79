//! Forwarded handshakes.

use crate::demux::Flow;
use crate::error::Error;
use crate::forward::{Deferred, ForwardEvent, Opening, Rejection, Transport, Verdict};
use crate::handle::{DeferredHandle, TcpHandle};
use crate::ip::Arrived;
use crate::link::arrival::Arrival;
use crate::stack::Stack;
use crate::tcp::Owner;
use alloc::boxed::Box;
use alloc::vec;
use core::net::SocketAddr;
use linerate_tcp::judge_unconnected;
use linerate_units::Instant;
use linerate_wire::{IcmpError, Ipv4Header, Ipv4Packet, Segment};

impl Stack {
    /// Accepts a deferred handshake: the SYN-ACK is sent, and the connection belongs to the
    /// application. [`linerate_tcp::Event::Connected`] or [`linerate_tcp::Event::Closed`] follows.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handshake was cancelled or answered; or the reason why there is no
    /// connection, in which case the client gets no answer and repeats its SYN.
    pub fn forward_accept(
        &mut self,
        now: Instant,
        handle: DeferredHandle,
    ) -> Result<TcpHandle, Error> {
        self.advance_clock(now);
        let record = self.forwarding.records.take(handle).ok_or(Error::Closed)?;
        let open = |stack: &mut Self, arrived: &Arrived<'_>, syn: &Segment<'_>| {
            let (local, peer) = arrived.ends(syn);
            if !stack.flows.is_free(Flow::new(local, peer)) {
                return Err(Error::AddressInUse(local));
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

    /// Rejects a deferred handshake.
    ///
    /// # Errors
    /// [`Error::Closed`] if it was cancelled or answered.
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

    /// Drops a deferred handshake without an answer. Its client repeats the SYN.
    ///
    /// # Errors
    /// [`Error::Closed`] if it was cancelled or answered.
    pub fn forward_drop(&mut self, handle: DeferredHandle) -> Result<(), Error> {
        self.forwarding.records.take(handle).ok_or(Error::Closed)?;
        self.forwarding.counted.dropped += 1;
        Ok(())
    }

    pub(super) fn poll_deferred(&mut self) -> Option<ForwardEvent> {
        let (handle, record) = self.forwarding.records.poll()?;
        let packet = Ipv4Packet::parse(&record.packet).ok()?;
        let syn = Segment::parse(packet.payload).ok()?;
        let opening = Opening {
            transport: Transport::Tcp,
            source: SocketAddr::new(packet.header.source.into(), syn.source_port),
            destination: SocketAddr::new(packet.header.destination.into(), syn.destination_port),
            options: syn.options(),
        };
        Some(ForwardEvent::Deferred(handle, opening))
    }

    /// Returns the listener of the forwarder for a segment without a connection.
    pub(crate) fn forwarder_for(
        &self,
        arrived: &Arrived<'_>,
        segment: &Segment<'_>,
    ) -> Option<u32> {
        if self.forwarding.forwarders.is_empty() || arrived.arrival.is_local {
            return None;
        }
        let (local, _) = arrived.ends(segment);
        let place = self.forwarding.find(SocketAddr::V4(local))?;
        Some(self.forwarding.forwarders[place].listener)
    }

    /// Handles a SYN for a forwarder.
    pub(crate) fn forward_syn(&mut self, arrived: &Arrived<'_>, listener: u32, syn: &Segment<'_>) {
        let (local, peer) = arrived.ends(syn);
        let flow = Flow::new(local, peer);
        if let Some((index, record)) = self.forwarding.records.of_flow(flow) {
            let known = Ipv4Packet::parse(&record.packet).ok();
            let known = known.and_then(|packet| Segment::parse(packet.payload).ok());
            // Another sequence number is another attempt of the client.
            if known.is_none_or(|known| known.seq != syn.seq) {
                self.forwarding.records.replace(index, packet_of(arrived, syn));
            }
            self.forwarding.counted.repeated += 1;
            return;
        }
        let Some(place) = self.forwarding.of_listener(listener) else { return };
        let opening = Opening {
            transport: Transport::Tcp,
            source: SocketAddr::V4(peer),
            destination: SocketAddr::V4(local),
            options: syn.options(),
        };
        self.forwarding.counted.syns += 1;
        match (self.forwarding.forwarders[place].hook)(&opening) {
            Verdict::Accept => self.handle_syn(arrived, listener, syn),
            Verdict::Defer => self.defer_syn(flow, listener, packet_of(arrived, syn)),
            Verdict::Reject(rejection) => self.reject_syn(arrived, syn, rejection),
            Verdict::Drop => self.forwarding.counted.dropped += 1,
        }
    }

    /// Keeps a SYN as a record. At the limit it replaces the oldest (RFC 4987 §3.4), so that a
    /// flood to silent destinations does not exclude others.
    fn defer_syn(&mut self, flow: Flow, listener: u32, packet: Box<[u8]>) {
        let records = &mut self.forwarding.records;
        if records.len() >= self.limits.deferred.max(1)
            && let Some(oldest) = records.oldest()
        {
            records.cancel(oldest);
            self.forwarding.counted.recycled += 1;
        }
        self.forwarding.records.insert(flow, listener, packet);
    }

    /// Handles a reset without a connection: it ends a deferred handshake, if it is of the same
    /// attempt (RFC 9293 §3.10.7.4).
    pub(crate) fn cancel_deferred(&mut self, arrived: &Arrived<'_>, reset: &Segment<'_>) {
        if self.forwarding.records.len() == 0 {
            return;
        }
        let (local, peer) = arrived.ends(reset);
        let Some((index, record)) = self.forwarding.records.of_flow(Flow::new(local, peer)) else {
            return;
        };
        let Ok(packet) = Ipv4Packet::parse(&record.packet) else { return };
        let Ok(syn) = Segment::parse(packet.payload) else { return };
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
                self.answer_with_error(arrived, IcmpError::Unreachable(error));
            }
        }
    }

    /// Calls `act` with the SYN of a record, as if it had arrived now.
    fn with_record<R>(
        &mut self,
        record: &Deferred,
        act: impl FnOnce(&mut Self, &Arrived<'_>, &Segment<'_>) -> R,
    ) -> Option<R> {
        let packet = Ipv4Packet::parse(&record.packet).ok()?;
        let syn = Segment::parse(packet.payload).ok()?;
        let arrival = Arrival {
            at: self.now,
            is_verified: true,
            segment_size: None,
            memory: None,
            is_link_broadcast: false,
            is_local: false,
        };
        let (header, payload, bytes) = (packet.header, packet.payload, &*record.packet);
        let arrived = Arrived { arrival, header, payload, bytes, is_broadcast: false };
        Some(act(self, &arrived, &syn))
    }
}

/// Returns the packet of a SYN without IP options and data.
fn packet_of(arrived: &Arrived<'_>, syn: &Segment<'_>) -> Box<[u8]> {
    let header = &arrived.payload[..arrived.payload.len() - syn.payload.len()];
    let mut packet = vec![0; Ipv4Header::LENGTH + header.len()];
    arrived.header.emit(header.len(), &mut packet);
    packet[Ipv4Header::LENGTH..].copy_from_slice(header);
    packet.into()
}
