//! A connection has its turn to send: the segment goes straight into the frame of the link, behind
//! headers that were built when the connection was.

use crate::link::Medium;
use crate::ready::Sender;
use crate::receive::Arrival;
use crate::stack::Stack;
use crate::transmit::{Station, Turned};
use linerate_units::Instant;
use linerate_wire::{Ipv4Header, TcpFlags};

/// Where the flags lie behind the start of the IP packet.
const FLAGS: usize = Ipv4Header::LENGTH + 13;

impl Stack {
    /// Sends the next segment of a connection to the link.
    pub(crate) fn transmit_segment(&mut self, now: Instant, index: u32, frame: &mut [u8]) -> Turned {
        let station = self.station_of(now, index);
        let medium = self.interface.capabilities.medium.header_length();
        let Some(length) = self.write_segment(now, index, medium, frame) else { return Turned::Nothing };
        match station {
            Station::Known(_) => Turned::Frame(length),
            Station::Asked(_) | Station::NoRoute => {
                self.frame_packet(station, &frame[medium..length], &mut [])
            }
        }
    }

    /// The station of a connection's next hop: the one that it remembers, if nothing has changed.
    fn station_of(&mut self, now: Instant, index: u32) -> Station {
        let generation = self.routes.generation() + self.neighbors.generation();
        let Some(socket) = self.sockets.tcp_at(index) else { return Station::NoRoute };
        let own = self.interface.mac;
        if socket.hop == Some(generation) {
            return Station::Known(own);
        }
        let peer = *socket.peer.ip();
        let station = self.station_for(now, peer);
        let generation = self.routes.generation() + self.neighbors.generation();
        if let Station::Known(mac) = station
            && let Some(socket) = self.sockets.tcp_at(index)
        {
            socket.headers.set_stations(own, mac);
            socket.hop = Some(generation);
        }
        station
    }

    /// Writes the next segment with its headers; returns the length of the frame.
    fn write_segment(&mut self, now: Instant, index: u32, medium: usize, frame: &mut [u8]) -> Option<usize> {
        let socket = self.sockets.tcp_at(index)?;
        let at = medium + Ipv4Header::LENGTH;
        let room = frame.get_mut(at..)?;
        if room.len() < socket.room {
            // The link has become narrower than what this connection was promised.
            socket.connection.abort(now);
        }
        let before = socket.connection.statistics().retransmitted_segments;
        let sent = socket.connection.poll_transmit(now, room);
        let after = socket.connection.statistics().retransmitted_segments;
        let length = sent.map(|sent| socket.headers.complete(medium, &sent, frame));
        self.settle(index);
        let length = length?;
        self.counted.ip.out_requests += 1;
        self.counted.tcp.out_segments += 1;
        self.counted.tcp.retransmitted_segments += after - before;
        let is_reset = frame[medium + FLAGS] & TcpFlags::RST.bits() != 0;
        self.counted.tcp.out_resets += u64::from(is_reset);
        Some(length)
    }

    /// Carries the next segment between two sockets of this host. False if there is none.
    pub(crate) fn transmit_local(&mut self, now: Instant, arrival: Arrival) -> bool {
        let Some(sender @ Sender::Socket(index)) = self.local_ready.turn() else { return false };
        let mut packet = core::mem::take(&mut self.scratch);
        packet.resize(crate::ipv4::LOCAL_MTU, 0);
        match self.write_segment(now, index, Medium::Ip.header_length(), &mut packet) {
            Some(length) => self.handle_packet(arrival, &packet[..length]),
            None => self.local_ready.remove(sender),
        }
        self.scratch = packet;
        true
    }
}
