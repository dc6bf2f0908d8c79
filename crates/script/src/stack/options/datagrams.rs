//! Options of a UDP socket.

use super::Known;
use super::values::{byte, number};
use crate::stack::StackMachine;
use crate::stack::errors::errno;
use crate::stack::sockets::Socket;
use crate::syntax::{Errno, OptionValue};
use linerate_stack::Fragmentation;
use linerate_wire::TypeOfService;

impl StackMachine {
    pub(super) fn set_on_datagrams(
        &mut self,
        fd: i32,
        known: Known,
        value: &OptionValue,
    ) -> Result<(), Errno> {
        let Some(Socket::Datagrams { handle, options }) = self.sockets.get_mut(fd) else {
            return Err(Errno::BADF);
        };
        match known {
            Known::TypeOfService => {
                options.type_of_service = TypeOfService::from_byte(byte(value)?);
            }
            Known::Ttl => options.hops = byte(value)?,
            Known::PathMtuDiscovery => {
                options.fragmentation = match number(value)? {
                    1 => Fragmentation::AsNeeded,
                    2 => Fragmentation::Never,
                    _ => return Err(Errno::INVAL),
                };
            }
            _ => return Err(Errno::INVAL),
        }
        let (Some(handle), options) = (*handle, *options) else { return Ok(()) };
        let stack = self.host.stack_mut();
        stack.udp_set_type_of_service(handle, options.type_of_service).map_err(errno)?;
        stack.udp_set_hops(handle, options.hops).map_err(errno)?;
        stack.udp_set_fragmentation(handle, options.fragmentation).map_err(errno)
    }
}
