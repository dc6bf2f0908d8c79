//! Forwarded UDP flows. The first datagram of a flow creates a socket, which is closed after an
//! idle time.

use crate::demux::{Binding, Flow};
use crate::error::Error;
use crate::forward::{ForwardEvent, Opening, Rejection, Transport, Verdict};
use crate::handle::UdpHandle;
use crate::ip::Arrived;
use crate::ip::egress::Egress;
use crate::ip::zone::with_zone;
use crate::link::arrival::Arrival;
use crate::sockets::Socket;
use crate::stack::Stack;
use crate::tcp::TcpTimer;
use crate::udp::{UdpFlow, UdpFlowList, UdpOptions, UdpSocket};
use alloc::boxed::Box;
use linerate_units::Instant;
use linerate_wire::{IpHeader, Ipv6Header, Protocol, Sum, TcpOptions, UdpHeader, Unreachable};

/// # Application calls: forwarded UDP flows
impl Stack {
    /// Sends the source of a forwarded UDP flow an ICMP error, which says that the destination of
    /// the flow is unreachable. The application calls this method when its own socket to the
    /// destination reports an error.
    ///
    /// # Errors
    /// [`Error::Closed`]; [`Error::NotConnected`] if the socket does not belong to a forwarded
    /// flow.
    pub fn forward_unreachable(
        &mut self,
        now: Instant,
        handle: UdpHandle,
        error: Unreachable,
    ) -> Result<(), Error> {
        self.advance_clock(now);
        let socket = self.sockets.udp(handle)?;
        let (Some(peer), Some(_)) = (socket.peer, socket.forwarded) else {
            return Err(Error::NotConnected);
        };
        let local = socket.binding.local();
        // The datagrams of the flow are not stored, so the ICMP error quotes only addresses and
        // ports. From these, the source host can find the socket that sent the datagram.
        let header = IpHeader::new(peer.ip(), local.ip(), Protocol::UDP).ok_or(Error::Closed)?;
        let mut bytes = [0; Ipv6Header::LENGTH + UdpHeader::LENGTH];
        let bytes = &mut bytes[..header.length() + UdpHeader::LENGTH];
        let (head, datagram) = bytes.split_at_mut(header.length());
        header.emit(UdpHeader::LENGTH, head);
        UdpHeader { source_port: peer.port(), destination_port: local.port() }.emit(0, datagram);
        let sum = Sum::of(datagram);
        UdpHeader::fill_checksum(datagram, header.pseudo_header(UdpHeader::LENGTH), sum);
        let arrival = Arrival::of_stored(self.now);
        if let Some((arrived, _)) = Arrived::parse(arrival, bytes) {
            self.answer_with_error(&arrived, error);
        }
        self.schedule_replies();
        Ok(())
    }

    pub(super) fn poll_udp_flow(&mut self) -> Option<ForwardEvent> {
        let index = self.queues.pop_front(&mut self.forwarding.udp.fresh)?;
        self.queues.push_back(&mut self.forwarding.udp.unanswered, index);
        let handle = self.sockets.udp_handle(index)?;
        let socket = self.sockets.udp_at(index)?;
        if let Some(flow) = &mut socket.forwarded {
            flow.list = UdpFlowList::Unanswered;
        }
        let flow = Flow::new(socket.binding.local(), socket.peer?);
        let opening = opening(&flow, socket.egress.interface());
        Some(ForwardEvent::Datagrams(handle, opening))
    }

    /// Handles a datagram that no socket accepts. If a forwarder accepts the flow, creates a socket
    /// and returns its index. Otherwise returns `None`, and may send an ICMP error.
    pub(crate) fn forward_datagram(&mut self, arrived: &Arrived<'_>, flow: &Flow) -> Option<u32> {
        let (local, remote) = (flow.local(), flow.remote());
        let may = !arrived.is_broadcast && !arrived.arrival.is_local;
        let Some(place) = self.forwarding.find(local).filter(|_| may) else {
            self.counted.udp.no_ports += 1;
            self.answer_with_error(arrived, Unreachable::Port);
            return None;
        };
        // A datagram whose source or destination port is zero is dropped, because it could not be
        // answered.
        let verdict = if remote.port() == 0 || local.port() == 0 {
            Verdict::Drop
        } else {
            (self.forwarding.forwarders[place].hook)(&opening(flow, self.interface.number))
        };
        match verdict {
            Verdict::Accept | Verdict::Defer => self.open_udp_flow(place, flow),
            Verdict::Reject(rejection) => {
                self.forwarding.counted.rejected += 1;
                let error = match rejection {
                    Rejection::Reset => Unreachable::Port,
                    Rejection::Unreachable(error) => error,
                };
                self.answer_with_error(arrived, error);
                None
            }
            Verdict::Drop => {
                self.forwarding.counted.dropped += 1;
                None
            }
        }
    }

    fn open_udp_flow(&mut self, place: usize, flow: &Flow) -> Option<u32> {
        let (local, remote) = (flow.local(), flow.remote());
        let udp = &self.forwarding.udp;
        if udp.len() >= self.limits.udp_flows {
            let oldest = udp.unanswered.first().or_else(|| udp.fresh.first());
            let oldest = oldest.or_else(|| udp.answered.first());
            if let Some(oldest) = oldest {
                self.forwarding.counted.udp_evicted += 1;
                self.end_udp_flow(oldest);
            }
        }
        if self.limits.udp_flows == 0 || self.sockets.has_room().is_err() {
            self.forwarding.counted.dropped += 1;
            return None;
        }
        let options = &self.forwarding.forwarders[place].options;
        let is_well_known = local.port() < 1_024;
        let idle = if is_well_known { options.udp_idle_well_known } else { options.udp_idle };
        let queues = options.udp_queue_bytes;
        let queues =
            UdpOptions { receive_bytes: queues, send_bytes: queues, ..UdpOptions::default() };
        let forwarded = UdpFlow { idle, last: self.now, list: UdpFlowList::Fresh };
        let socket = UdpSocket {
            peer: Some(with_zone(remote, self.interface.number)),
            egress: Egress::over(self.interface.number),
            forwarded: Some(forwarded),
            ..UdpSocket::new(Binding::to_flow(local), &queues)
        };
        let index = self.sockets.insert(Socket::Udp(Box::new(socket))).index();
        self.datagrams.insert(flow, index);
        self.queues.push_back(&mut self.forwarding.udp.fresh, index);
        self.timers.arm(TcpTimer::Connection(index), self.now + idle);
        self.forwarding.counted.udp_opened += 1;
        Some(index)
    }

    /// Restarts the idle time of a forwarded UDP flow, because its socket has received a datagram,
    /// or, if `is_answer` is true, has sent one. Does nothing if the socket at `index` belongs to
    /// no forwarded flow.
    #[inline]
    pub(crate) fn note_datagram(&mut self, index: u32, is_answer: bool) {
        if let Some(socket) = self.sockets.udp_at(index)
            && let Some(flow) = &mut socket.forwarded
        {
            flow.last = self.now;
            let before = flow.list;
            if is_answer && before == UdpFlowList::Unanswered {
                flow.list = UdpFlowList::Answered;
            }
            let after = flow.list;
            let udp = &mut self.forwarding.udp;
            self.queues.remove(udp.list(before), index);
            self.queues.push_back(udp.list(after), index);
        }
    }

    /// Handles the timer of a UDP socket that belongs to a forwarded flow. Ends the flow if no
    /// datagram has passed for the idle time. Otherwise arms the timer again, for the end of the
    /// idle time after the most recent datagram.
    #[cold]
    pub(crate) fn expire_udp_flow(&mut self, now: Instant, index: u32) {
        let Some(socket) = self.sockets.udp_at(index) else { return };
        let Some(flow) = socket.forwarded else { return };
        let end = flow.last + flow.idle;
        if end <= now {
            self.forwarding.counted.udp_expired += 1;
            self.end_udp_flow(index);
        } else {
            self.timers.arm(TcpTimer::Connection(index), end);
        }
    }

    /// Closes the socket of a forwarded flow. Reports the end of the flow to the application, if
    /// the beginning of the flow was reported.
    fn end_udp_flow(&mut self, index: u32) {
        let Some(handle) = self.sockets.udp_handle(index) else { return };
        let flow = self.sockets.udp_at(index).and_then(|socket| socket.forwarded);
        let _ = self.udp_close(handle);
        if flow.is_some_and(|flow| flow.list != UdpFlowList::Fresh) {
            self.forwarding.expired.push_back(handle);
        }
    }

    /// Removes the socket at `index` from the list of forwarded UDP flows that contains it.
    pub(crate) fn leave_udp_flows(&mut self, index: u32, flow: UdpFlow) {
        self.queues.remove(self.forwarding.udp.list(flow.list), index);
    }

    pub(super) fn check_udp_flows(&self) {
        let udp = &self.forwarding.udp;
        assert!(udp.len() <= self.limits.udp_flows, "UDP flows are limited");
        let flows = self.sockets.iter().filter(
            |(_, socket)| matches!(socket, Socket::Udp(socket) if socket.forwarded.is_some()),
        );
        assert_eq!(flows.count(), udp.len(), "each UDP flow is in one list");
    }
}

fn opening(flow: &Flow, interface: u16) -> Opening {
    Opening::new(Transport::Udp, flow, interface, TcpOptions::default())
}
