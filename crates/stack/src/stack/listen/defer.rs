//! Listeners that wait for the first data of a connection (`TCP_DEFER_ACCEPT`): an acknowledgement that would
//! complete the handshake and brings nothing is ignored, as Linux does, so that the application is woken when
//! there is something to read. The connection stays half open meanwhile, within the limit of the SYN queue, and
//! a newer one may take its place. When the patience is over the SYN-ACK is sent once more, and the peer's
//! answer completes the handshake.

use crate::stack::Stack;
use linerate_units::Instant;
use linerate_wire::Segment;

impl Stack {
    /// Is `segment` ignored, because the listener waits for data and it brings none?
    pub(crate) fn is_deferred(
        &mut self,
        now: Instant,
        (connection, index): (u32, u32),
        segment: &Segment<'_>,
    ) -> bool {
        let patience =
            self.sockets.listener_at(index).and_then(|listener| listener.options.defer_accept);
        let Some(patience) = patience else { return false };
        let Some(socket) = self.sockets.full_at(connection) else { return false };
        if !socket.connection.defer_handshake(now, segment, patience) {
            return false;
        }
        self.dispatch_step(connection);
        if let Some(listener) = self.sockets.listener_at(index) {
            listener.counted.deferred += 1;
        }
        true
    }
}
