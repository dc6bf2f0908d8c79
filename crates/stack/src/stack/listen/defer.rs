//! Deferred accept (`TCP_DEFER_ACCEPT`): the host ignores the acknowledgement that would complete a
//! handshake unless the segment carries data, as in Linux. The application is thus notified only
//! when there is data to read. Meanwhile the connection remains half-open and counts towards the
//! limit of the SYN queue, where a newer connection may replace it. After the timeout, the host
//! sends the SYN-ACK once more, and the peer's acknowledgement completes the handshake without
//! data.

use crate::stack::Stack;
use linerate_units::Instant;
use linerate_wire::Segment;

impl Stack {
    /// Must the host ignore `segment`, which would complete a handshake, because it carries no data
    /// although the listener waits for data? `connection` and `index` are the indices of the
    /// half-open connection and of its listener.
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
