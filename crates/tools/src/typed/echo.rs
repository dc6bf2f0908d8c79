//! A host on a serial line that echoes what it receives.

use super::TypedError;
use crate::turns::SLICE;
use linerate_ends::Interrupt;
use linerate_link::{MonotonicClock, SerialLink, Waiter};
use linerate_stack::{Error, Event, Host, ListenHandle, ListenOptions, TcpHandle};
use linerate_units::{Clock, Instant};
use std::net::SocketAddr;

/// Maximum number of bytes that are read at once.
const BLOCK: usize = 1_024;

/// Runs `host` until `stop` is raised. It answers echo requests like any host, and serves TCP's
/// echo port at `address` (RFC 862), one connection after the other.
///
/// # Errors
/// [`TypedError`]: the address cannot be used, or the link failed.
pub fn serve_echo(
    host: &mut Host<SerialLink>,
    address: SocketAddr,
    stop: &Interrupt,
) -> Result<(), TypedError> {
    let mut waiter = Waiter::new()?;
    let listener = host.stack_mut().tcp_listen(address, &ListenOptions::default())?;
    let mut connection = None;
    while !stop.is_raised() {
        let now = MonotonicClock.now();
        let turn = host.turn(now)?;
        accept(host, listener, &mut connection);
        if let Some(handle) = connection
            && !echo(host, now, handle)
        {
            host.stack_mut().tcp_close(now, handle)?;
            connection = None;
        }
        if !turn.more && turn.received == 0 {
            waiter.wait(host.link_mut(), turn.next.min(now + SLICE))?;
        }
    }
    Ok(())
}

/// Accepts a connection if none is being served.
fn accept(host: &mut Host<SerialLink>, listener: ListenHandle, connection: &mut Option<TcpHandle>) {
    while let Some(event) = host.stack_mut().poll_event() {
        if event == Event::Incoming(listener) && connection.is_none() {
            *connection = host.stack_mut().tcp_accept(listener).map(|(handle, _)| handle);
        }
    }
}

/// Sends the received data back. Returns false if the connection is to be closed: it has ended or
/// failed, or the send buffer has no room for the data.
fn echo(host: &mut Host<SerialLink>, now: Instant, handle: TcpHandle) -> bool {
    let mut block = [0; BLOCK];
    match host.stack_mut().tcp_read(now, handle, &mut block) {
        Ok(0) => false,
        // The write takes all bytes if the send buffer has room. It has, because the peer types its
        // next character only when it has received the echo of this one.
        Ok(count) => host.stack_mut().tcp_write(now, handle, &block[..count]) == Ok(count),
        Err(error) => error == Error::WouldBlock,
    }
}
