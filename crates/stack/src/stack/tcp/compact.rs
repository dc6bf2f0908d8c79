//! Conversion of sockets to and from their compact forms: compact idle connections, and TIME-WAIT
//! records.

use crate::sockets::Socket;
use crate::stack::Stack;
use crate::tcp::compact::CompactSocket;
use crate::tcp::{Owner, TcpSocket, TcpTimer};
use alloc::boxed::Box;
use linerate_tcp::{CompactConnection, State};

impl Stack {
    /// Converts a compact connection or TIME-WAIT record to its full form, before an access that
    /// needs the full form. Does nothing to other sockets. The conversion takes place when
    /// [`Stack::dispatch_step`] looks up the socket.
    pub(crate) fn unpack(&mut self, index: u32) {
        if matches!(self.sockets.get(index), Some(Socket::Compact(_) | Socket::TimeWait(_))) {
            self.dispatch_step(index);
        }
    }

    /// Adds a connection that was opened or accepted to the accounting of buffer memory. The number
    /// of connections in full form without buffer memory is limited. At the limit, the oldest of
    /// these connections is converted to its compact form, if it is idle.
    pub(crate) fn handle_newcomer(&mut self, index: u32) {
        let Some(oldest) = self.memory.handle_newcomer(index) else { return };
        if let Some(socket) = self.sockets.full_at(oldest) {
            socket.connection.driver().end_idle_period();
            self.pack_if_idle(oldest);
        }
    }

    /// Converts a connection to its compact form or to a TIME-WAIT record, if it is idle. Sets the
    /// timer of a compact connection to its exact deadline. A timer that expired before this
    /// deadline would convert the connection back to its full form without need.
    pub(super) fn pack_if_idle(&mut self, index: u32) {
        let may = |socket: &&mut TcpSocket| !socket.is_retired && socket.connection.can_compact();
        let Some(socket) = self.sockets.tcp_at(index).filter(may) else { return };
        if socket.state == State::TimeWait && socket.owner == Owner::Orphan {
            self.reduce_to_record(index);
            return;
        }
        let deadline = socket.connection.poll_timeout();
        let Some(compact) = CompactSocket::<CompactConnection>::of(socket) else { return };
        self.sockets.replace_by_compact(index, Socket::Compact(Box::new(compact)));
        self.batch.forget();
        self.timers.set(TcpTimer::Connection(index), deadline);
    }

    /// Replaces a connection in TIME-WAIT by a TIME-WAIT record, if the connection is an orphan
    /// with nothing left to send. Returns whether the connection was replaced.
    pub(crate) fn reduce_to_record(&mut self, index: u32) -> bool {
        let Some(end) = self.sockets.replace_by_record(index) else { return false };
        self.batch.forget();
        self.queue_for_end(index, end);
        true
    }

    /// Replaces a connection in TIME-WAIT by a TIME-WAIT record. If this is not possible yet,
    /// dispatches the most recent step of the connection.
    #[cold]
    pub(super) fn dispatch_in_time_wait(&mut self, index: u32) {
        if !self.reduce_to_record(index) {
            self.dispatch_step(index);
        }
    }

    /// Removes a TIME-WAIT record from all tables. Returns false, without any effect, if the socket
    /// at `index` is not a TIME-WAIT record.
    pub(crate) fn end_record(&mut self, index: u32) -> bool {
        let Some(Socket::TimeWait(socket)) = self.sockets.get(index) else { return false };
        self.flows.remove_hashed(socket.fields.flow_hash, &socket.flow(), index);
        self.leave_time_wait(index);
        self.memory.forget(index, 0);
        self.remove_socket(index);
        true
    }
}
