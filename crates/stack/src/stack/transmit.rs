//! The link offers an empty frame: who fills it, and with what header in front.

use crate::ip::CachedRoute;
use crate::ip::interface::Audience;
use crate::link::{Medium, TxFrame, ZeroCopyFrame};
use crate::ready::Sender;
use crate::sockets::Socket;
use crate::stack::Stack;
use crate::stack::tcp::output::Plainly;
use crate::tx::Gathering;
use crate::tx::Reply;
use crate::tx::Station;
use crate::tx::Turned;
use core::net::Ipv4Addr;
use linerate_units::Instant;
use linerate_wire::{EtherType, EthernetHeader, MacAddress, VlanTags};

impl Stack {
    /// Writes the next frame that is to be sent into `frame`, which has room for the largest one of the
    /// link (with a packet of [`crate::SMALLEST_MTU`] bytes at least), and says how long it is. `None` if there
    /// is nothing to send.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, frame: &mut [u8]) -> Option<TxFrame> {
        self.pass_time(now);
        if !self.wants_transmit() {
            return None;
        }
        let frame = self.transmit_next(now, frame);
        self.tell_of_burst();
        frame
    }

    /// The same for a link that gathers: the data of a large frame stay where they are, and are lent.
    pub fn poll_transmit_to_gather(
        &mut self,
        now: Instant,
        frame: &mut [u8],
    ) -> Option<ZeroCopyFrame<'_>> {
        self.gathering = Gathering::Wanted;
        let frame = self.poll_transmit(now, frame);
        let gathering = core::mem::replace(&mut self.gathering, Gathering::Unwanted);
        let frame = frame?;
        let rest = match gathering {
            Gathering::Of(index, data) => self.sockets.tcp_at(index)?.connection.lent(data),
            Gathering::Wanted | Gathering::Unwanted => [&[][..]; 2],
        };
        let beside: usize = rest.iter().map(|part| part.len()).sum();
        self.counted.transmit.bytes += beside as u64;
        Some(ZeroCopyFrame { frame, rest })
    }

    /// The same at the time that the host was told last, for whoever asks for one frame after the other; then,
    /// and before anything else, [`Stack::tell_of_burst`] is to be called.
    #[inline]
    pub(crate) fn transmit_next(&mut self, now: Instant, frame: &mut [u8]) -> Option<TxFrame> {
        if self.burst.goes_on()
            && let Some(length) = self.next_of_burst(frame)
        {
            return Some(TxFrame::whole(length));
        }
        self.transmit_chosen(now, frame)
    }

    #[inline(always)]
    pub(crate) fn transmit_chosen(&mut self, now: Instant, frame: &mut [u8]) -> Option<TxFrame> {
        if frame.len() < self.interface.frames.least {
            // A link that does not keep its promise gets nothing.
            return None;
        }
        if self.burst.is_somebodys()
            && let Some(length) = self.go_on_with_burst(now, frame)
        {
            return Some(TxFrame::whole(length));
        }
        loop {
            let sender = self.ready.turn()?;
            let plainly = match sender {
                Sender::Socket(index) => self.transmit_plainly(now, index, frame),
                Sender::Replies => Plainly::Not,
            };
            let frame = match plainly {
                Plainly::Frame(frame) => return Some(self.count_frame(frame)),
                Plainly::Nothing => self.pass_by(sender),
                Plainly::Not => self.transmit_of(now, sender, frame),
            };
            if frame.is_some() {
                return frame;
            }
        }
    }

    /// The next frame of a burst that was interrupted, if it goes on.
    #[inline(never)]
    fn go_on_with_burst(&mut self, now: Instant, frame: &mut [u8]) -> Option<usize> {
        self.tell_of_burst();
        if self.resume_burst(now, frame.len())
            && let Some(length) = self.next_of_burst(frame)
        {
            return Some(length);
        }
        self.burst.forget();
        None
    }

    /// The sender whose turn it is has nothing to send.
    #[inline(never)]
    fn pass_by(&mut self, sender: Sender) -> Option<TxFrame> {
        self.ready.remove(sender);
        None
    }

    /// Has the host itself something to send?
    pub(crate) fn has_replies(&self) -> bool {
        !self.replies.is_empty() || self.neighbors.wants_transmit()
    }

    /// Gives the host its own place in the ring if it has something to send. To be called after whatever may
    /// have made a reply, a question for a neighbour, or an end of waiting for one.
    pub(crate) fn call_replies(&mut self) {
        if self.has_replies() {
            self.ready.push(Sender::Replies);
        }
    }

    #[inline(always)]
    const fn count_frame(&mut self, frame: TxFrame) -> TxFrame {
        self.counted.transmit.packets += 1;
        self.counted.transmit.bytes += frame.length as u64;
        frame
    }

    /// What the sender has, whatever that is, if it is for the link.
    #[inline(never)]
    fn transmit_of(&mut self, now: Instant, sender: Sender, frame: &mut [u8]) -> Option<TxFrame> {
        let turned = match sender {
            Sender::Replies => self.transmit_reply(now, frame),
            Sender::Socket(index) => match self.sockets.get(index) {
                Some(Socket::Tcp(_)) => self.transmit_segment(now, index, frame),
                Some(Socket::Udp(_)) => self.transmit_datagram(now, index, frame),
                Some(Socket::Resting(_) | Socket::Waiting(_) | Socket::Listen(_)) | None => {
                    Turned::Nothing
                }
            },
        };
        match turned {
            Turned::Frame(frame) => Some(self.count_frame(frame)),
            Turned::Elsewhere => None,
            Turned::Nothing => self.pass_by(sender),
        }
    }

    /// Questions for neighbours go first, then packets whose neighbour has answered, then replies.
    fn transmit_reply(&mut self, now: Instant, frame: &mut [u8]) -> Turned {
        if let Some(question) = self.neighbors.poll_request() {
            let (request, station) = self.arp_request(&question);
            let at = self.emit_ethernet(station, EtherType::ARP, frame);
            return Turned::Frame(TxFrame::whole(at + request.emit(&mut frame[at..])));
        }
        if let Some((station, packet)) = self.neighbors.poll_released() {
            return self.frame_packet(Station::Known(station), &packet, frame);
        }
        let Some((reply, packet)) = self.replies.pop() else { return Turned::Nothing };
        let turned = match reply {
            Reply::Packet => self.route_packet(now, &packet, frame),
            Reply::Arp(station) => {
                let at = self.emit_ethernet(station, EtherType::ARP, frame);
                frame[at..at + packet.len()].copy_from_slice(&packet);
                Turned::Frame(TxFrame::whole(at + packet.len()))
            }
        };
        self.replies.recycle(packet);
        turned
    }

    /// Sends a finished packet along its route.
    pub(crate) fn route_packet(&mut self, now: Instant, packet: &[u8], frame: &mut [u8]) -> Turned {
        let Some(&[a, b, c, d]) = packet.get(16..20) else { return Turned::Elsewhere };
        let station = self.station_for(now, Ipv4Addr::new(a, b, c, d));
        self.frame_packet(station, packet, frame)
    }

    /// The station to which packets for `destination` are sent now.
    pub(crate) fn station_for(&mut self, now: Instant, destination: Ipv4Addr) -> Station {
        if self.interface.capabilities.medium == Medium::Ip {
            return Station::Known(MacAddress::ZERO);
        }
        let route = match self.cached_route_to(destination) {
            Some(route) => Some(route),
            None if self.interface.audience(destination) == Audience::Broadcast => {
                return Station::Known(MacAddress::BROADCAST);
            }
            None => self.find_route(destination),
        };
        let Some(CachedRoute { next_hop, .. }) = route else { return Station::NoRoute };
        let station = self.neighbors.lookup(now, next_hop);
        self.call_replies();
        station.map_or(Station::Asked(next_hop), Station::Known)
    }

    /// Puts a finished packet into the frame, or where it has to wait.
    pub(crate) fn frame_packet(
        &mut self,
        station: Station,
        packet: &[u8],
        frame: &mut [u8],
    ) -> Turned {
        match station {
            Station::Known(station) => {
                let at = self.emit_ethernet(station, EtherType::IPV4, frame);
                let Some(room) = frame.get_mut(at..at + packet.len()) else {
                    // Only if the link has become narrower since the packet was made.
                    self.counted.ip.out_discards += 1;
                    return Turned::Elsewhere;
                };
                room.copy_from_slice(packet);
                Turned::Frame(TxFrame::whole(at + packet.len()))
            }
            Station::Asked(next_hop) => {
                self.neighbors.enqueue(next_hop, packet);
                Turned::Elsewhere
            }
            Station::NoRoute => {
                self.counted.ip.out_no_routes += 1;
                Turned::Elsewhere
            }
        }
    }

    /// Writes the medium's header, and says where the packet begins.
    pub(crate) fn emit_ethernet(
        &self,
        station: MacAddress,
        ether_type: EtherType,
        frame: &mut [u8],
    ) -> usize {
        match self.interface.capabilities.medium {
            Medium::Ip => 0,
            Medium::Ethernet => {
                let source = self.interface.mac;
                EthernetHeader { destination: station, source, tags: VlanTags::NONE, ether_type }
                    .emit(frame)
            }
        }
    }
}
