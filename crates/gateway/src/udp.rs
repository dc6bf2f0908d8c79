//! Relays UDP flows between clients and the kernel's sockets.

use crate::error::CLOCK;
use crate::flows::Flow;
use crate::gateway::Gateway;
use crate::poller::Token;
use crate::tcp::{open_socket, unreachable_for};
use linerate_link::Readiness;
use linerate_stack::{Error, Link, Opening, UdpHandle};
use linerate_units::Clock;
use linerate_wire::Unreachable;
use rustix::event::epoll::EventFlags;
use rustix::net::{SocketType, connect};
use std::io;
use std::net::UdpSocket;

/// Maximum number of datagrams that one call receives from the destination of a flow. If more are
/// waiting, the flow is queued, so that other flows are served before it continues.
const SHARE: usize = 64;

impl<L: Link + Readiness> Gateway<L> {
    /// Opens a socket of the kernel for a new UDP flow and sends the flow's first datagrams. If the
    /// flow is not allowed or there is no socket, the flow ends.
    pub(crate) fn begin_udp(&mut self, client: UdpHandle, opening: &Opening) {
        let Some(destination) = self.route_of(opening.destination) else {
            self.counters.refused += 1;
            return self.refuse_udp(client, Unreachable::Port);
        };
        if self.flows.len() >= self.limit {
            self.counters.flows_dropped += 1;
            let _ = self.stack().udp_close(client);
            return;
        }
        let (index, generation) = self.flows.reserve();
        let begun = open_socket(destination, SocketType::DGRAM).and_then(|far| {
            connect(&far, &destination)?;
            Ok(UdpSocket::from(far))
        });
        match begun {
            Ok(far) => {
                let token = Token::Flow(index, generation);
                let flags = EventFlags::IN | EventFlags::ET;
                if self.poller.add(&far, token, flags).is_err() {
                    self.counters.flows_dropped += 1;
                    let _ = self.stack().udp_close(client);
                    return;
                }
                self.flows.insert(Flow::Udp { far, client, is_answered: false });
                self.counters.udp_opened += 1;
                self.send_datagrams(index);
            }
            Err(errno) => match unreachable_for(errno) {
                Some(error) => self.refuse_udp(client, error),
                None => {
                    self.counters.flows_dropped += 1;
                    let _ = self.stack().udp_close(client);
                }
            },
        }
    }

    /// Reports to the client that the destination is unreachable, and ends the flow.
    fn refuse_udp(&mut self, client: UdpHandle, error: Unreachable) {
        let _ = self.stack().forward_unreachable(CLOCK.now(), client, error);
        let _ = self.stack().udp_close(client);
    }

    /// Relays datagrams from a client to its destination.
    pub(crate) fn handle_client_udp(&mut self, client: UdpHandle) {
        if let Some(&index) = self.flows.by_udp.get(&client) {
            self.send_datagrams(index);
        }
    }

    fn send_datagrams(&mut self, index: u32) {
        let Some(Flow::Udp { far, client, is_answered }) = self.flows.get_mut(index) else {
            return;
        };
        let (client, stack) = (*client, self.host.stack_mut());
        let mut is_refused = false;
        while let Ok((length, _)) = stack.udp_receive_from(client, &mut self.datagram) {
            let datagram = &self.datagram[..length];
            let mut sent = far.send(datagram);
            if matches!(&sent, Err(error) if error.kind() == io::ErrorKind::ConnectionRefused) {
                // `send` has reported an ICMP error that an earlier datagram caused, and has
                // therefore not sent this datagram.
                is_refused = true;
                sent = far.send(datagram);
            }
            match sent {
                Ok(_) => self.counters.udp_bytes_up += length as u64,
                Err(_) => self.counters.datagrams_dropped += 1,
            }
        }
        if is_refused {
            if !std::mem::replace(is_answered, true) {
                self.pace.note_useless();
            }
            let now = CLOCK.now();
            let _ = self.stack().forward_unreachable(now, client, Unreachable::Port);
        }
    }

    /// Relays datagrams from the destination to its client, after an epoll event.
    pub(crate) fn handle_far_udp(&mut self, index: u32) {
        let now = CLOCK.now();
        let Some(Flow::Udp { far, client, is_answered }) = self.flows.get_mut(index) else {
            return;
        };
        let (client, stack) = (*client, self.host.stack_mut());
        for _ in 0..SHARE {
            match far.recv(&mut self.datagram) {
                Ok(length) => {
                    if !std::mem::replace(is_answered, true) {
                        self.pace.note_useful();
                    }
                    match stack.udp_send(now, client, &self.datagram[..length]) {
                        Ok(()) => self.counters.udp_bytes_down += length as u64,
                        Err(Error::Closed) => {
                            self.flows.remove(index);
                            return;
                        }
                        // The datagram is too long for the link, or the send queue is full.
                        Err(_) => self.counters.datagrams_dropped += 1,
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    if !std::mem::replace(is_answered, true) {
                        self.pace.note_useless();
                    }
                    let _ = stack.forward_unreachable(now, client, Unreachable::Port);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
        self.again_udp.push_back(index);
    }

    /// Continues to receive from the destinations whose flows [`SHARE`] interrupted.
    pub(crate) fn receive_queued(&mut self) {
        for _ in 0..self.again_udp.len() {
            let Some(index) = self.again_udp.pop_front() else { break };
            self.handle_far_udp(index);
        }
    }

    /// Removes a UDP flow that has been idle for too long. The host has already closed its own
    /// socket of the flow.
    pub(crate) fn expire_udp(&mut self, client: UdpHandle) {
        if let Some(&index) = self.flows.by_udp.get(&client)
            && let Some(Flow::Udp { is_answered: false, .. }) = self.flows.remove(index)
        {
            self.pace.note_useless();
        }
    }
}
