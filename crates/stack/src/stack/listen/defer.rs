//! Deferred accept (`TCP_DEFER_ACCEPT`): the acknowledgement that would complete a handshake is
//! ignored unless it carries data, as in Linux, so that the application is notified only when there
//! is data. The connection remains half-open and counts towards the limit of the SYN queue, where a
//! newer one may replace it. After the timeout, the SYN-ACK is sent once more, and the peer's
//! answer completes the handshake.

use crate::stack::Stack;
use linerate_units::Instant;
use linerate_wire::Segment;

impl Stack {
    /// Is `segment` ignored, because it carries no data and the listener waits for data?
    pub(crate) fn is_deferred(
        &mut self,
        now: Instant,
        (connection, index): (u32, u32),
        segment: &Segment<'_>,
    ) -> bool {
        let timeout =
            self.sockets.listener_at(index).and_then(|listener| listener.options.defer_accept);
        let Some(timeout) = timeout else { return false };
        let Some(socket) = self.sockets.full_at(connection) else { return false };
        if !socket.connection.driver().defer_handshake(now, segment, timeout) {
            return false;
        }
        self.dispatch_step(connection);
        if let Some(listener) = self.sockets.listener_at(index) {
            listener.counted.deferred += 1;
        }
        true
    }
}
