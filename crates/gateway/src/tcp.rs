//! Relays TCP connections between clients and the kernel's sockets.

use crate::error::CLOCK;
use crate::flows::{Flow, bits};
use crate::gateway::Gateway;
use crate::poller::Token;
use linerate_link::Readiness;
use linerate_stack::{DeferredHandle, Error, Link, Opening, Rejection, TcpHandle};
use linerate_tcp::Event;
use linerate_units::{Clock, Instant};
use linerate_wire::Unreachable;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

/// Maximum number of bytes that one call moves in each direction of a flow. If more are waiting,
/// the flow is queued, so that other flows are served before it continues.
const SHARE: usize = 1 << 20;
/// Maximum number of bytes that one call reads from a destination's socket into the send buffer
/// towards the client.
const PIECE: usize = 256 << 10;

/// Maximum number of recorded connections whose handshake may be incomplete. Beyond it, each new
/// connection removes the oldest record, and resets that connection if its handshake is still
/// incomplete. Legitimate clients are rarely affected, because they answer within a round trip (RFC
/// 4987 §3.4).
const HALF_OPEN: usize = 1_024;

/// The reason why a relayed connection ends.
#[derive(Clone, Copy)]
enum End {
    /// The client reset its connection, or no longer responds.
    OfClient,
    /// The destination reset its connection, or no longer responds.
    OfFar,
    /// Both directions have been closed normally.
    Done,
}

impl<L: Link + Readiness> Gateway<L> {
    /// Begins to connect to the destination of a new flow. The client's handshake stays deferred
    /// until the destination has accepted.
    pub(crate) fn begin_tcp(&mut self, deferred: DeferredHandle, opening: &Opening) {
        let now = CLOCK.now();
        let Some(destination) = self.route_of(opening.destination) else {
            self.counters.refused += 1;
            let _ = self.stack().forward_reject(now, deferred, Rejection::Reset);
            return;
        };
        if self.flows.len() >= self.limit {
            self.counters.flows_dropped += 1;
            let _ = self.stack().forward_drop(deferred);
            return;
        }
        let (index, generation) = self.flows.reserve();
        let begun = open_socket(destination, SocketType::STREAM).and_then(|far| {
            sockopt::set_tcp_nodelay(&far, true)?;
            match connect(&far, &destination) {
                Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from(far)),
                Err(errno) => Err(errno),
            }
        });
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        match begun {
            Ok(far) if self.poller.add(&far, Token::Flow(index, generation), flags).is_ok() => {
                self.flows.insert(Flow::Connecting { far, deferred });
            }
            Ok(_) => self.refuse(now, deferred, Errno::NOMEM),
            Err(errno) => self.refuse(now, deferred, errno),
        }
    }

    /// Rejects a client because the connection to its destination has failed. Sends a reset or an
    /// ICMP error. If neither expresses `errno`, the client gets no answer.
    fn refuse(&mut self, now: Instant, deferred: DeferredHandle, errno: Errno) {
        self.pace.note_useless();
        let rejection = match errno {
            Errno::CONNREFUSED | Errno::CONNRESET => Some(Rejection::Reset),
            errno => unreachable_for(errno).map(Rejection::Unreachable),
        };
        let Some(rejection) = rejection else {
            // The destination did not answer, or this machine lacks resources. No answer is sent to
            // the client, so its TCP treats the SYN as lost: it repeats the SYN until it gives up.
            self.counters.flows_dropped += 1;
            let _ = self.stack().forward_drop(deferred);
            return;
        };
        self.counters.refused += 1;
        let _ = self.stack().forward_reject(now, deferred, rejection);
    }

    /// Handles an epoll event of the socket to a destination.
    pub(crate) fn handle_far_tcp(&mut self, index: u32, flags: EventFlags) {
        match self.flows.get_mut(index) {
            Some(Flow::Connecting { far, deferred }) => {
                let errors = EventFlags::ERR | EventFlags::HUP;
                if !flags.intersects(EventFlags::OUT | errors) {
                    return;
                }
                // epoll reports a failed `connect` as an error event. Without such an event, the
                // connection is established, and need not be asked for an error.
                let result = if flags.intersects(errors) {
                    sockopt::socket_error(far.as_fd()).and_then(|result| result)
                } else {
                    Ok(())
                };
                let deferred = *deferred;
                // To save memory, `CAN_READ` is set only when data has arrived from the
                // destination. A read goes directly into the send buffer towards the client, and
                // thus allocates this buffer. An earlier attempt to read would allocate it even for
                // a flow that remains idle.
                let mut state = bits::CAN_WRITE;
                if flags.intersects(EventFlags::IN | EventFlags::RDHUP) {
                    state |= bits::CAN_READ;
                }
                if flags.contains(EventFlags::RDHUP) {
                    state |= bits::FAR_FINISHED;
                }
                self.finish_connecting(index, deferred, result, state);
            }
            Some(Flow::Tcp { state, .. }) => {
                let ends = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
                if flags.intersects(EventFlags::IN | ends) {
                    *state |= bits::CAN_READ;
                }
                if flags.intersects(ends) {
                    *state |= bits::FAR_FINISHED;
                }
                if flags.intersects(EventFlags::OUT | EventFlags::ERR) {
                    *state |= bits::CAN_WRITE;
                }
                self.pump(index);
            }
            Some(Flow::Udp { .. }) | None => {}
        }
    }

    fn finish_connecting(
        &mut self,
        index: u32,
        deferred: DeferredHandle,
        result: Result<(), Errno>,
        state: u8,
    ) {
        let now = CLOCK.now();
        if let Err(errno) = result {
            self.flows.remove(index);
            return self.refuse(now, deferred, errno);
        }
        match self.stack().forward_accept(now, deferred) {
            Ok(client) => {
                self.counters.tcp_accepted += 1;
                self.flows.advance(index, |flow| match flow {
                    Flow::Connecting { far, .. } => Flow::Tcp { far, client, state },
                    other => other,
                });
                self.limit_half_open(client);
            }
            Err(_) => {
                self.counters.flows_dropped += 1;
                self.end_far(index);
            }
        }
    }

    /// Records a connection whose handshake is incomplete. At the limit, ends the oldest recorded
    /// connection if its handshake is still incomplete.
    fn limit_half_open(&mut self, client: TcpHandle) {
        if self.half_open.len() >= HALF_OPEN
            && let Some(oldest) = self.half_open.pop_front()
            && let Some(&index) = self.flows.by_tcp.get(&oldest)
            && let Some(Flow::Tcp { state, .. }) = self.flows.get_mut(index)
            && *state & bits::OPEN == 0
        {
            self.counters.half_open_recycled += 1;
            self.pace.note_useless();
            self.end_far(index);
            let _ = self.stack().tcp_abort(CLOCK.now(), oldest);
        }
        self.half_open.push_back(client);
    }

    /// Handles an event of the connection to a client.
    pub(crate) fn handle_client_tcp(&mut self, client: TcpHandle, event: Event) {
        let Some(&index) = self.flows.by_tcp.get(&client) else { return };
        if event == Event::Connected
            && let Some(Flow::Tcp { state, .. }) = self.flows.get_mut(index)
        {
            *state |= bits::OPEN;
            self.pace.note_useful();
        }
        self.pump(index);
        if event == Event::Closed && self.flows.by_tcp.contains_key(&client) {
            let failed = self.stack().tcp(client).is_none_or(|tcp| tcp.error().is_some());
            self.end_tcp(index, if failed { End::OfClient } else { End::Done });
        }
    }

    /// Removes a flow whose client has given up its handshake.
    pub(crate) fn cancel_tcp(&mut self, deferred: DeferredHandle) {
        if let Some(&index) = self.flows.by_deferred.get(&deferred) {
            self.pace.note_useless();
            self.end_far(index);
        }
    }

    /// Removes a flow, and resets the kernel's connection to its destination: a linger time of zero
    /// makes the kernel send a reset when the socket is closed.
    fn end_far(&mut self, index: u32) {
        if let Some(Flow::Connecting { far, .. } | Flow::Tcp { far, .. }) = self.flows.remove(index)
        {
            let _ = sockopt::set_socket_linger(&far, Some(Duration::ZERO));
        }
    }

    /// Moves the data of a connection in both directions, up to [`SHARE`] bytes in each.
    pub(crate) fn pump(&mut self, index: u32) {
        let now = CLOCK.now();
        let Some(Flow::Tcp { far, client, state }) = self.flows.get_mut(index) else { return };
        if *state & bits::OPEN == 0 {
            return;
        }
        let stack = self.host.stack_mut();
        let up = pump_up(stack, now, *client, far, state);
        let down = pump_down(stack, now, *client, far, state);
        let (moved_up, up) = up;
        let (moved_down, down) = down;
        let has_more = moved_up >= SHARE || moved_down >= SHARE;
        if has_more && *state & bits::QUEUED == 0 {
            *state |= bits::QUEUED;
            self.again.push_back(index);
        }
        let is_done = *state & bits::UP_DONE != 0 && *state & bits::DOWN_DONE != 0;
        self.counters.tcp_bytes_up += moved_up as u64;
        self.counters.tcp_bytes_down += moved_down as u64;
        if let Some(end) = up.or(down).or_else(|| is_done.then_some(End::Done)) {
            self.end_tcp(index, end);
        }
    }

    /// Continues the flows that [`SHARE`] interrupted.
    pub(crate) fn pump_queued(&mut self) {
        for _ in 0..self.again.len() {
            let Some(index) = self.again.pop_front() else { break };
            if let Some(Flow::Tcp { state, .. }) = self.flows.get_mut(index) {
                *state &= !bits::QUEUED;
                self.pump(index);
            }
        }
    }

    fn end_tcp(&mut self, index: u32, end: End) {
        let now = CLOCK.now();
        let Some(Flow::Tcp { client, state, .. }) = self.flows.get_mut(index) else { return };
        let client = *client;
        if *state & bits::OPEN == 0 {
            self.pace.note_useless();
        }
        let _ = match end {
            End::OfClient => {
                self.counters.tcp_reset += 1;
                self.end_far(index);
                self.stack().tcp_close(now, client)
            }
            End::OfFar => {
                self.counters.tcp_reset += 1;
                self.flows.remove(index);
                self.stack().tcp_abort(now, client)
            }
            End::Done => {
                self.counters.tcp_closed += 1;
                self.flows.remove(index);
                self.stack().tcp_close(now, client)
            }
        };
    }

    /// Ends all TCP flows: rejects deferred handshakes, and resets connections.
    pub(crate) fn end_all_tcp(&mut self) {
        let now = CLOCK.now();
        for index in self.flows.indices() {
            match self.flows.get_mut(index) {
                Some(Flow::Connecting { deferred, .. }) => {
                    let deferred = *deferred;
                    self.end_far(index);
                    let _ = self.stack().forward_reject(now, deferred, Rejection::Reset);
                }
                Some(Flow::Tcp { client, .. }) => {
                    let client = *client;
                    self.end_far(index);
                    let _ = self.stack().tcp_abort(now, client);
                }
                Some(Flow::Udp { .. }) | None => {}
            }
        }
    }
}

/// Moves data from the client to the destination. Returns the number of bytes, and the reason why
/// the connection has ended, if it has.
fn pump_up(
    stack: &mut linerate_stack::Stack,
    now: Instant,
    client: TcpHandle,
    mut far: &TcpStream,
    state: &mut u8,
) -> (usize, Option<End>) {
    let mut moved = 0;
    while *state & (bits::UP_DONE | bits::CAN_WRITE) == bits::CAN_WRITE && moved < SHARE {
        let (mut is_end, mut result) = (false, Ok(0));
        let read = stack.tcp_read_with(now, client, |data| {
            is_end = data.is_empty();
            if !is_end {
                result = far.write(data);
                if result.as_ref().is_ok_and(|&written| written < data.len()) {
                    *state &= !bits::CAN_WRITE;
                }
            }
            result.as_ref().map_or(0, |&written| written)
        });
        match read {
            Ok(_) if is_end => {
                *state |= bits::UP_DONE;
                // The shutdown fails only if the destination has reset the connection. The error is
                // ignored, because the next read reports the reset.
                let _ = far.shutdown(Shutdown::Write);
            }
            Ok(count) => moved += count,
            Err(Error::WouldBlock) => break,
            Err(_) => return (moved, Some(End::OfClient)),
        }
        match result {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => *state &= !bits::CAN_WRITE,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return (moved, Some(End::OfFar)),
        }
    }
    (moved, None)
}

/// Moves data from the destination to the client. Returns the number of bytes, and the reason why
/// the connection has ended, if it has.
fn pump_down(
    stack: &mut linerate_stack::Stack,
    now: Instant,
    client: TcpHandle,
    mut far: &TcpStream,
    state: &mut u8,
) -> (usize, Option<End>) {
    let mut moved = 0;
    while *state & (bits::DOWN_DONE | bits::CAN_READ) == bits::CAN_READ && moved < SHARE {
        // Stays `None` if the send buffer towards the client is full. In this case,
        // `tcp_write_with` does not call the closure that reads from the destination.
        let mut result = None;
        let written = stack.tcp_write_with(now, client, PIECE, |room| {
            let read = far.read(room);
            if read.as_ref().is_ok_and(|&read| read < room.len())
                && *state & bits::FAR_FINISHED == 0
            {
                // The read returned fewer bytes than the buffer has room for, so the socket is
                // empty now. No further read is attempted until epoll, which is edge-triggered,
                // reports new data.
                *state &= !bits::CAN_READ;
            }
            let count = read.as_ref().map_or(0, |&read| read);
            result = Some(read);
            count
        });
        match written {
            Ok(count) => moved += count,
            Err(_) => return (moved, Some(End::OfClient)),
        }
        match result {
            None => break,
            Some(Ok(0)) => {
                *state |= bits::DOWN_DONE;
                let _ = stack.tcp_shutdown_write(now, client);
            }
            Some(Ok(_)) => {}
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                *state &= !bits::CAN_READ;
            }
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Some(Err(_)) => return (moved, Some(End::OfFar)),
        }
    }
    (moved, None)
}

/// Returns the ICMP error that tells a client why `connect` to its destination failed; `None` if no
/// ICMP error corresponds to `errno`.
pub(crate) const fn unreachable_for(errno: Errno) -> Option<Unreachable> {
    match errno {
        // `AFNOSUPPORT` means that the kernel lacks the IP version, so the network is unreachable.
        Errno::NETUNREACH | Errno::AFNOSUPPORT => Some(Unreachable::Net),
        Errno::HOSTUNREACH => Some(Unreachable::Host),
        Errno::ACCESS | Errno::PERM => Some(Unreachable::Prohibited),
        _ => None,
    }
}

/// Opens a non-blocking socket of the kernel for a destination.
pub(crate) fn open_socket(
    destination: SocketAddr,
    kind: SocketType,
) -> Result<std::os::fd::OwnedFd, Errno> {
    let family = if destination.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let protocol = if kind == SocketType::STREAM { ipproto::TCP } else { ipproto::UDP };
    socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, Some(protocol))
}
