//! Socket options of a socket that is neither listening nor connected.

use super::Known;
use super::values::{
    byte, changed, congestion, defer_accept, largest_segment, linger, low_water, max_pacing_rate,
    number, seconds, size, syn_retries, user_timeout,
};
use crate::stack::StackMachine;
use crate::stack::sockets::Socket;
use crate::syntax::{Errno, OptionValue};

impl StackMachine {
    pub(super) fn set_on_unconnected(
        &mut self,
        fd: i32,
        known: Known,
        value: &OptionValue,
    ) -> Result<(), Errno> {
        let default = self.keep_alive;
        let Some(Socket::Unconnected { config, options, .. }) = self.sockets.get_mut(fd) else {
            return Err(Errno::INVAL);
        };
        match (known, value) {
            (Known::SendBuffer, value) => config.send_buffer = size(value)?.into(),
            (Known::ReceiveBuffer, value) => config.receive_buffer = size(value)?.into(),
            (Known::NoDelay, value) => config.no_delay = number(value)? != 0,
            (Known::Linger, value) => config.linger = linger(value)?,
            (Known::KeepAlive, value) => {
                let wanted = options.keep_alive.unwrap_or(default);
                config.keep_alive = (number(value)? != 0).then_some(wanted);
            }
            (Known::KeepIdle | Known::KeepInterval | Known::KeepCount, value) => {
                let changed = changed(options.keep_alive.unwrap_or(default), known, value)?;
                options.keep_alive = Some(changed);
                config.keep_alive = config.keep_alive.map(|_| changed);
            }
            (Known::UserTimeout, value) => config.user_timeout = user_timeout(value)?,
            (Known::Congestion, OptionValue::Text(name)) => {
                config.congestion = congestion(name).ok_or(Errno::INVAL)?;
            }
            (Known::TypeOfService, value) => options.type_of_service = byte(value)?,
            (Known::FastOpen, value) => options.fast_open = size(value)?,
            (Known::Ttl, value) => options.ttl = Some(byte(value)?),
            (Known::LargestSegment, value) => config.largest_segment = largest_segment(value)?,
            (Known::SynRetries, value) => config.give_up_syn_after = syn_retries(value)?,
            (Known::OrphanTimeout, value) => config.orphan_timeout = seconds(value)?,
            (Known::Cork, value) => options.cork = number(value)? != 0,
            (Known::UnsentLowWater, value) => options.unsent_low_water = low_water(value)?,
            (Known::MaxPacingRate, value) => config.max_pacing_rate = max_pacing_rate(value)?,
            (Known::DeferAccept, value) => options.defer_accept = defer_accept(value)?,
            (Known::FastOpenConnect, value) => options.fast_connect = number(value)? != 0,
            (Known::ReuseAddress | Known::PathMtuDiscovery | Known::UrgentInLine, _) => {}
            _ => return Err(Errno::INVAL),
        }
        Ok(())
    }
}
