//! Socket options of a connection.

use super::Known;
use super::values::{
    byte, changed, linger, low_water, max_pacing_rate, number, seconds, size, syn_retries,
    user_timeout,
};
use crate::stack::StackMachine;
use crate::stack::errors::errno;
use crate::stack::sockets::Socket;
use crate::syntax::{Errno, OptionValue};
use linerate_tcp::{Connection, KeepAlive};
use linerate_units::Instant;
use linerate_wire::TypeOfService;

impl StackMachine {
    pub(super) fn set_on_connection(
        &mut self,
        fd: i32,
        known: Known,
        value: &OptionValue,
    ) -> Result<(), Errno> {
        let handle = self.handle(fd)?;
        let now = self.now;
        let Some(Socket::Connection { keep_alive, .. }) = self.sockets.get_mut(fd) else {
            return Err(Errno::BADF);
        };
        if matches!(known, Known::KeepIdle | Known::KeepInterval | Known::KeepCount) {
            *keep_alive = changed(*keep_alive, known, value)?;
        }
        let keep_alive = *keep_alive;
        let stack = self.host.stack_mut();
        match known {
            Known::TypeOfService => {
                let tos = TypeOfService::from_byte(byte(value)?);
                return stack.tcp_set_type_of_service(handle, tos).map_err(errno);
            }
            Known::Ttl => {
                let ttl = core::num::NonZeroU8::new(byte(value)?).ok_or(Errno::INVAL)?;
                return stack.tcp_set_ttl(handle, ttl).map_err(errno);
            }
            Known::ReuseAddress | Known::PathMtuDiscovery | Known::UrgentInLine => return Ok(()),
            _ => {}
        }
        let change = change(now, known, value, keep_alive)?;
        stack.tcp_configure(now, handle, change).map_err(errno)
    }
}

type Change = Box<dyn FnOnce(&mut Connection)>;

/// Returns a function that applies the socket option `known` with this value to a connection.
fn change(
    now: Instant,
    known: Known,
    value: &OptionValue,
    keep_alive: KeepAlive,
) -> Result<Change, Errno> {
    Ok(match known {
        Known::NoDelay => {
            let on = number(value)? != 0;
            Box::new(move |connection| connection.set_no_delay(on))
        }
        Known::Cork => {
            let on = number(value)? != 0;
            Box::new(move |connection| connection.set_cork(on))
        }
        Known::Linger => {
            let linger = linger(value)?;
            Box::new(move |connection| connection.set_linger(linger))
        }
        Known::SendBuffer => {
            let size = size(value)?;
            Box::new(move |connection| connection.set_send_buffer(size))
        }
        Known::ReceiveBuffer => {
            let size = size(value)?;
            Box::new(move |connection| connection.set_receive_buffer(size))
        }
        Known::UnsentLowWater => {
            let bytes = low_water(value)?;
            Box::new(move |connection| connection.set_unsent_low_water(bytes))
        }
        Known::MaxPacingRate => {
            let rate = max_pacing_rate(value)?;
            Box::new(move |connection| connection.set_max_pacing_rate(rate))
        }
        Known::OrphanTimeout => {
            let timeout = seconds(value)?;
            Box::new(move |connection| connection.set_orphan_timeout(Some(timeout)))
        }
        Known::SynRetries => {
            let timeout = syn_retries(value)?;
            Box::new(move |connection| connection.set_handshake_timeout(Some(timeout)))
        }
        Known::UserTimeout => {
            let timeout = user_timeout(value)?;
            Box::new(move |connection| connection.set_user_timeout(now, timeout))
        }
        Known::KeepAlive => {
            let wanted = (number(value)? != 0).then_some(keep_alive);
            Box::new(move |connection| connection.set_keep_alive(now, wanted))
        }
        Known::KeepIdle | Known::KeepInterval | Known::KeepCount => Box::new(move |connection| {
            if connection.keep_alive().is_some() {
                connection.set_keep_alive(now, Some(keep_alive));
            }
        }),
        _ => return Err(Errno::INVAL),
    })
}
