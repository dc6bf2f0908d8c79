//! A connection has its turn to send: the segment goes straight into the frame of the link, behind
//! headers that were built when the connection was.

use crate::link::arrival::Arrival;
use crate::link::{Medium, TxFrame};
use crate::ready::Sender;
use crate::stack::Stack;
use crate::tcp::settle::{Settled, concerned};
use crate::tx::{Gathering, Station, Turned};
use core::hint::cold_path;
use core::net::Ipv4Addr;
use linerate_tcp::{Kind, State, Transmit};
use linerate_units::Instant;
use linerate_wire::Ipv4Header;

/// Who sums the payload, and cuts a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finish {
    Host,
    Link,
}

/// What became of a segment that was to leave as soon as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plainly {
    /// It is in the frame.
    Frame(TxFrame),
    /// There was none.
    Nothing,
    /// It cannot: whether there is one was not asked.
    Not,
}

impl Stack {
    /// Sends the next segment of a connection that is awake, and whose next hop is known, if this host does what there
    /// is to do for it: one look at it is enough then.
    #[inline(always)]
    pub(crate) fn transmit_plainly(
        &mut self,
        now: Instant,
        index: u32,
        frame: &mut [u8],
    ) -> Plainly {
        if self.interface.capabilities.offloads.checksums {
            return Plainly::Not;
        }
        let generation = self.routes.generation() + self.neighbors.generation();
        let frames = self.interface.frames;
        let room = frame.len().min(frames.room);
        let medium = (frames.header, false);
        self.write_segment(now, index, medium, Finish::Host, Some(generation), &mut frame[..room])
    }

    /// Sends the next segment of a connection to the link.
    pub(crate) fn transmit_segment(
        &mut self,
        now: Instant,
        index: u32,
        frame: &mut [u8],
    ) -> Turned {
        let station = self.station_of(now, index);
        let frames = self.interface.frames;
        let is_known = matches!(station, Station::Known(_));
        // What has to wait for a neighbour waits finished.
        let sums = is_known && self.interface.capabilities.offloads.checksums;
        let finish = if sums { Finish::Link } else { Finish::Host };
        let room = frame.len().min(frames.room);
        let medium = (frames.header, false);
        let Plainly::Frame(written) =
            self.write_segment(now, index, medium, finish, None, &mut frame[..room])
        else {
            return Turned::Nothing;
        };
        if !is_known {
            return self.frame_packet(station, &frame[frames.header..written.length], &mut []);
        }
        Turned::Frame(written)
    }

    /// The station of a connection's next hop: the one that it remembers, if nothing has changed.
    #[inline]
    fn station_of(&mut self, now: Instant, index: u32) -> Station {
        let generation = self.routes.generation() + self.neighbors.generation();
        let Some(socket) = self.sockets.tcp_at(index) else { return Station::NoRoute };
        if socket.hop == generation {
            return Station::Known(self.interface.mac);
        }
        let peer = *socket.peer.ip();
        self.find_station_of(now, index, peer)
    }

    fn find_station_of(&mut self, now: Instant, index: u32, peer: Ipv4Addr) -> Station {
        let station = self.station_for(now, peer);
        let generation = self.routes.generation() + self.neighbors.generation();
        if let Station::Known(mac) = station
            && let Some(socket) = self.sockets.tcp_at(index)
        {
            socket.headers.set_stations(self.interface.mac, mac);
            socket.hop = generation;
            if self.recent_headers.are_between(socket.local, socket.peer) {
                self.recent_headers.set_stations(self.interface.mac, mac, generation);
            }
        }
        station
    }

    /// Writes the next segment with its headers, or a burst of them for a link that cuts it. The medium takes so
    /// many bytes, unless the peer is this host itself. If the next hop must be the one of a generation, it is asked
    /// whether that is known, and the connection is awake.
    #[inline(always)]
    fn write_segment(
        &mut self,
        now: Instant,
        index: u32,
        (medium, is_local): (usize, bool),
        finish: Finish,
        hop: Option<u64>,
        frame: &mut [u8],
    ) -> Plainly {
        let socket = match hop {
            Some(hop) => self.sockets.awake_at(index).filter(|socket| socket.hop == hop),
            None => self.sockets.tcp_at(index),
        };
        let Some(socket) = socket else { return Plainly::Not };
        let at = medium + Ipv4Header::LENGTH;
        let Some(room) = frame.get_mut(at..) else { return Plainly::Nothing };
        if room.len() < socket.room as usize {
            cold_path();
            // The link has become narrower than what this connection was promised.
            socket.connection.abort(now);
        }
        if finish == Finish::Host
            && let Some(sent) = socket.connection.poll_predicted(now, room)
        {
            // All that follows from it is that the connection has had its turn, and may have a deadline: its memory
            // and its state are what they were, and there is nothing that its application would want to know.
            let length = socket.headers.complete(medium, &sent, frame);
            if self.identification.is_counting() {
                self.identification.write(&mut frame[medium..], 1);
            }
            self.counted.ip.out_requests += 1;
            self.counted.tcp.out_segments += 1;
            if socket.state == State::TimeWait {
                // It may have been all that was left to say.
                self.settle_in_time_wait(index);
            } else {
                socket.arm(index, &mut self.timers);
            }
            let ready = if is_local { &mut self.local_ready } else { &mut self.ready };
            ready.remove(Sender::Socket(index));
            return Plainly::Frame(TxFrame::whole(length));
        }
        let sent = match finish {
            Finish::Host => socket.connection.poll_unpredicted(now, room),
            Finish::Link if self.gathering == Gathering::Wanted => {
                socket.connection.poll_transmit_to_gather(now, room)
            }
            Finish::Link => socket.connection.poll_transmit_uncut(now, room),
        };
        let Some(sent) = sent else {
            cold_path();
            self.settle(index);
            return Plainly::Nothing;
        };
        let written = match finish {
            Finish::Host => TxFrame::whole(socket.headers.complete(medium, &sent, frame)),
            Finish::Link => socket.headers.complete_but_for_checksum(medium, &sent, frame),
        };
        let segments = if finish == Finish::Host { 1 } else { sent.segments() };
        if self.identification.is_counting() {
            self.identification.write(&mut frame[medium..], segments);
        }
        if finish == Finish::Link
            && let Some(data) = sent.lent
        {
            self.gathering = Gathering::Of(index, data);
        }
        self.counted.ip.out_requests += 1;
        self.counted.tcp.out_segments += segments as u64;
        if sent.kind != Kind::Ordinary {
            cold_path();
            self.counted.tcp.retransmitted_segments += u64::from(sent.kind == Kind::Again);
            self.counted.tcp.out_resets += u64::from(sent.kind == Kind::Reset);
        }
        let goes_on = socket.connection.wants_transmit();
        if socket.state == State::TimeWait {
            self.settle_in_time_wait(index);
        } else if concerned!(self).settle(index, socket) == Settled::Not {
            self.follow(index);
        }
        if goes_on {
            self.plan_next(index, &sent, medium, frame);
        } else {
            let ready = if is_local { &mut self.local_ready } else { &mut self.ready };
            ready.remove(Sender::Socket(index));
        }
        Plainly::Frame(written)
    }

    /// More is to follow what has just been `sent`; perhaps it is more of a burst.
    #[inline(never)]
    fn plan_next(&mut self, index: u32, sent: &Transmit, medium: usize, frame: &[u8]) {
        let Some(socket) = self.sockets.tcp_at(index) else { return };
        let ready = if socket.is_local { &mut self.local_ready } else { &mut self.ready };
        // A burst for a link that cuts it takes the turns of all its segments.
        ready.count(u32::try_from(sent.segments()).unwrap_or(u32::MAX) - 1);
        // The headers of a burst say all the same.
        if socket.is_local || self.identification.is_counting() {
            return;
        }
        if socket.connection.is_in_burst() {
            self.burst.keep(index, socket, None, sent, medium, frame);
        } else if sent.length == sent.header {
            self.begin_row(index, sent, medium, frame);
        }
    }

    /// Carries the next segment of a connection to another socket of this host.
    pub(crate) fn transmit_local(&mut self, now: Instant, arrival: Arrival<'_>, index: u32) {
        let mut packet = core::mem::take(&mut self.scratch);
        packet.resize(crate::ip::LOCAL_MTU, 0);
        let medium = (Medium::Ip.header_length(), true);
        match self.write_segment(now, index, medium, Finish::Host, None, &mut packet) {
            Plainly::Frame(written) => self.handle_packet(arrival, &packet[..written.length]),
            Plainly::Nothing | Plainly::Not => self.local_ready.remove(Sender::Socket(index)),
        }
        self.scratch = packet;
    }
}
